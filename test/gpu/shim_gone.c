/* Calls behind another rank's end, as NCCL has them: the call succeeds, its stream stalls until the communicator is
 * aborted or destroyed, and the communicator's error says what has happened. The other rank has aborted, has destroyed
 * its communicator, or was killed. For a program that never asks, calls return the error after RONDO_NCCL_STALL_MS. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/shim.h"

#define STALL_MS "300"

static void await_error(test_rank_t *t, ncclComm_t comm)
{
    ncclResult_t error;

    do {
        usleep(100);
        NCCL_OK(t, ncclCommGetAsyncError(comm, &error));
    } while (error == ncclSuccess);
    NCCL_GIVES(t, ncclRemoteError, error);
}

/* Calls of every kind go into the stream, none of them comes to its end, and the error stays. */
static void calls_stall(test_rank_t *t, ncclComm_t comm, cudaStream_t stream, int *data)
{
    int other = (t->rank + 1) % t->nranks;
    ncclResult_t error;

    test_note(t, "a call behind the end");
    NCCL_OK(t, ncclAllReduce(data, data, 100, ncclInt, ncclSum, comm, stream));
    test_note(t, "a group behind the end");
    NCCL_OK(t, ncclGroupStart());
    NCCL_OK(t, ncclSend(data, 10, ncclInt, other, comm, stream));
    NCCL_OK(t, ncclRecv(data + 10, 10, ncclInt, other, comm, stream));
    NCCL_OK(t, ncclAlltoAll(data, data, 10, ncclInt, comm, stream));
    NCCL_OK(t, ncclGroupEnd());
    usleep(20000);
    TEST_TRUE(t, cudaStreamQuery(stream) == cudaErrorNotReady);
    NCCL_OK(t, ncclCommGetAsyncError(comm, &error));
    NCCL_GIVES(t, ncclRemoteError, error);
}

/* A captured call cannot stall: it says so at once, and the capture may be given up. */
static void captured_fails(test_rank_t *t, ncclComm_t comm, int *data)
{
    cudaStream_t stream = shim_stream(t);
    cudaGraph_t graph = NULL;

    test_note(t, "a captured call behind the end");
    TEST_CUDA(t, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    NCCL_GIVES(t, ncclRemoteError, ncclAllReduce(data, data, 100, ncclInt, ncclSum, comm, stream));
    (void)cudaStreamEndCapture(stream, &graph);
    if (graph)
        TEST_CUDA(t, cudaGraphDestroy(graph));
    TEST_CUDA(t, cudaStreamDestroy(stream));
}

/* The last rank aborts, or destroys its communicator; the others call, and abort theirs, destroy it or revoke it. */
void shim_gone(test_rank_t *t, void *arg)
{
    int *data = device_memory(t, 4096 * sizeof *data, 0), last = t->nranks - 1;
    cudaStream_t stream = NULL;

    (void)arg;
    if (t->kind == TEST_PROCESSES)
        setenv("RONDO_NCCL_STALL_MS", "3600000", 1); /* nothing here waits for that */
    for (int way = 0; way < 3; way++) {
        ncclComm_t comm = shim_comm(t, way != 1);

        if (!stream)
            stream = shim_stream(t);
        shim_sum_is(t, comm, stream, t->nranks);
        NCCL_OK(t, ncclAlltoAll(data, data, 10, ncclInt, comm, stream)); /* by memory that the end frees */
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        test_barrier(t);
        if (t->rank == last)
            NCCL_OK(t, way == 0 ? ncclCommAbort(comm) : ncclCommDestroy(comm));
        test_barrier(t);
        if (t->rank != last) {
            test_note(t, "the first call behind the end");
            NCCL_OK(t, ncclAllReduce(data, data, 4000, ncclInt, ncclSum, comm, stream));
            await_error(t, comm);
            captured_fails(t, comm, data);
            calls_stall(t, comm, stream, data);
            test_note(t, "the end of the stall");
            if (way < 2) /* not all that was called has been done */
                NCCL_GIVES(t, ncclRemoteError, nccl_settled(comm, ncclCommFinalize(comm)));
            else
                NCCL_OK(t, ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
            if (way == 2)
                TEST_CUDA(t, cudaStreamSynchronize(stream));
            NCCL_OK(t, way == 0 ? ncclCommAbort(comm) : ncclCommDestroy(comm));
            TEST_CUDA(t, cudaStreamSynchronize(stream));
        }
        test_barrier(t);
    }
    ncclComm_t comm = shim_comm(t, 1); /* the context is usable */
    shim_sum_is(t, comm, stream, t->nranks);
    NCCL_OK(t, ncclCommDestroy(comm));
    device_end(t, NULL, &stream, 1);
}

/* As PyTorch's shrink_group: the last rank is excluded and ends its communicator in order, before or after the others
 * have aborted theirs by the shrink. That is no error on any rank. */
void shim_shrunk(test_rank_t *t, void *arg)
{
    int last = t->nranks - 1;
    cudaStream_t stream = NULL;

    (void)arg;
    for (int order = 0; order < 3; order++) {
        ncclComm_t comm = shim_comm(t, 1), rest;

        if (!stream)
            stream = shim_stream(t);
        shim_sum_is(t, comm, stream, t->nranks);
        test_barrier(t);
        test_note(t, "shrink, where the excluded rank ends %s",
                  order == 0   ? "first"
                  : order == 1 ? "last"
                               : "at the same time");
        if (t->rank != last) {
            if (order == 0)
                test_barrier(t);
            NCCL_OK(t, ncclCommShrink(comm, &last, 1, &rest, NULL, NCCL_SHRINK_ABORT));
            shim_sum_is(t, rest, stream, last);
            NCCL_OK(t, ncclCommFinalize(comm));
            NCCL_OK(t, ncclCommFinalize(rest));
            NCCL_OK(t, ncclCommDestroy(rest));
        } else if (order == 1) {
            test_barrier(t);
        }
        if (t->rank == last)
            NCCL_OK(t, ncclCommFinalize(comm));
        NCCL_OK(t, ncclCommDestroy(comm));
        if (order == 2 || (order == 0) == (t->rank == last))
            test_barrier(t);
        test_barrier(t);
    }
    device_end(t, NULL, &stream, 1);
}

/* What all ranks have revoked is split, into communicators of the same devices. */
void shim_resplit(test_rank_t *t, void *arg)
{
    const int n = t->nranks;
    ncclComm_t comm = shim_comm(t, 1), part = NULL;
    cudaStream_t stream = shim_stream(t);
    int device = -1;

    (void)arg;
    shim_sum_is(t, comm, stream, n);
    test_barrier(t);
    test_note(t, "split what has been revoked");
    NCCL_OK(t, ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
    NCCL_OK(t, ncclCommSplit(comm, t->rank % 2, 0, &part, NULL));
    NCCL_OK(t, ncclCommCuDevice(part, &device));
    TEST_TRUE(t, device == shim_device(t));
    shim_sum_is(t, part, stream, (n + 1 - t->rank % 2) / 2);
    NCCL_OK(t, ncclCommDestroy(comm));
    NCCL_OK(t, ncclCommDestroy(part));
    device_end(t, NULL, &stream, 1);
}

/* As CuPy's sparse gather, where the root raises an exception before it receives: the others send a group of three
 * arrays and destroy their communicators, the root only does the latter. Short messages are complete when they have
 * been sent; long ones wait for the root, and its end is an error. Nothing waits for ever. */
void shim_unmatched(test_rank_t *t, void *arg)
{
    static const size_t lengths[] = {24, 3000000};
    char *data = device_memory(t, 3 * lengths[1], 0);
    cudaStream_t stream = NULL;

    (void)arg;
    for (int i = 0; i < 4; i++) {
        size_t bytes = lengths[i / 2];
        ncclComm_t comm = shim_comm(t, 1);

        if (!stream)
            stream = shim_stream(t);
        test_note(t, "messages of %zu bytes to a rank that does not receive", bytes);
        if (t->rank != 0) {
            NCCL_OK(t, ncclGroupStart());
            for (size_t k = 0; k < 3; k++)
                NCCL_OK(t, ncclSend(data + k * bytes, bytes, ncclInt8, 0, comm, stream));
            NCCL_OK(t, ncclGroupEnd());
        }
        if (i % 2) /* the sends are there before the root's end */
            test_barrier(t);
        ncclResult_t result = ncclCommDestroy(comm);
        if (t->rank == 0)
            nccl_result(t, result, ncclSuccess, "ncclCommDestroy");
        else if (bytes == lengths[1])
            nccl_result(t, result, ncclRemoteError, "ncclCommDestroy behind long messages");
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        test_barrier(t);
    }
    device_end(t, NULL, &stream, 1);
}

__attribute__((weak)) extern int sim_trapped;

/* A rank's context is lost, and so is its peer: it finalizes and destroys its communicator without an error, though
 * what it has called will never complete. Only the simulated driver can be made to say so. The rank's current device is
 * another one meanwhile, and stays so. */
void shim_lost(test_rank_t *t, void *arg)
{
    int *data = device_memory(t, 4096 * sizeof *data, 0), own = 0, other = 0, after = -1, count = 0;
    ncclComm_t comm = shim_comm(t, 1);
    cudaStream_t stream = shim_stream(t);

    (void)arg;
    TEST_CUDA(t, cudaGetDevice(&own));
    TEST_CUDA(t, cudaGetDeviceCount(&count));
    other = (own + 1) % (count ? count : 1);
    shim_sum_is(t, comm, stream, t->nranks);
    test_barrier(t);
    if (t->rank == 1)
        NCCL_OK(t, ncclCommAbort(comm));
    test_barrier(t);
    if (t->rank == 0) {
        NCCL_OK(t, ncclAllReduce(data, data, 4000, ncclInt, ncclSum, comm, stream));
        await_error(t, comm);
        if (&sim_trapped)
            sim_trapped = 1; /* for one query */
        TEST_CUDA(t, cudaSetDevice(other));
        NCCL_GIVES(t, &sim_trapped ? ncclSuccess : ncclRemoteError, nccl_settled(comm, ncclCommFinalize(comm)));
        if (&sim_trapped) { /* what a finalize says, ncclCommGetAsyncError says from then on: PyTorch asks it */
            ncclResult_t says = ncclInternalError;
            NCCL_OK(t, ncclCommGetAsyncError(comm, &says));
            TEST_TRUE(t, says == ncclSuccess);
        }
        TEST_CUDA(t, cudaGetDevice(&after));
        TEST_TRUE(t, after == other);
        TEST_CUDA(t, cudaSetDevice(own));
        NCCL_OK(t, ncclCommDestroy(comm));
    }
    device_end(t, NULL, &stream, 1);
}

/* A kernel of the program's own traps before the communicator's first call, which is alone or in a group: that call
 * says so. Only the simulated driver can be made to. */
void shim_traps(test_rank_t *t, void *arg)
{
    int *data = device_memory(t, 4096 * sizeof *data, 0);
    cudaStream_t stream = NULL;

    (void)arg;
    for (int grouped = 0; grouped < 2 && &sim_trapped; grouped++) {
        ncclComm_t comm = shim_comm(t, 1);

        if (!stream)
            stream = shim_stream(t);
        sim_trapped = 3;
        if (grouped)
            NCCL_OK(t, ncclGroupStart());
        nccl_result(t, ncclAllReduce(data, data, 10, ncclInt, ncclSum, comm, stream),
                    grouped ? ncclSuccess : ncclUnhandledCudaError, "ncclAllReduce behind a trap");
        if (grouped)
            NCCL_GIVES(t, ncclUnhandledCudaError, ncclGroupEnd());
        TEST_TRUE(t, strstr(ncclGetLastError(comm), "719") != NULL);
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        NCCL_OK(t, ncclCommDestroy(comm));
    }
    device_end(t, NULL, &stream, stream != NULL);
}

/* The last rank is killed when all is done. Two others call, the next one finalizes: for that one all is well. */
static void killed(test_rank_t *t, void *arg)
{
    int *data = device_memory(t, 4096 * sizeof *data, 0), last = t->nranks - 1;
    ncclComm_t comm = shim_comm(t, 1);
    cudaStream_t stream = shim_stream(t);
    ncclResult_t error;

    (void)arg;
    shim_sum_is(t, comm, stream, t->nranks);
    const int64_t before = test_clock_us();
    test_barrier(t);
    if (t->rank == last)
        raise(SIGKILL);
    if (t->rank == 1) /* a kernel that waits for it */
        NCCL_OK(t, ncclAllReduce(data, data, 4000, ncclInt, ncclSum, comm, stream));
    await_error(t, comm);
    TEST_TRUE(t, test_clock_us() - before > 900000); /* who ends in this time has noticed nothing */
    if (t->rank == 0) {
        test_note(t, "finalize behind the end");
        NCCL_OK(t, ncclCommFinalize(comm));
        NCCL_OK(t, ncclCommGetAsyncError(comm, &error));
        NCCL_GIVES(t, ncclSuccess, error);
        NCCL_OK(t, ncclCommDestroy(comm));
    } else {
        calls_stall(t, comm, stream, data);
        NCCL_OK(t, ncclCommAbort(comm));
    }
    TEST_CUDA(t, cudaStreamSynchronize(stream));
}

/* The same where the stall has an end, and where there is none: the call says what has happened. */
static void impatient(test_rank_t *t, void *arg)
{
    int *data = device_memory(t, 4096 * sizeof *data, 0), last = t->nranks - 1, stalls = *(int *)arg;
    ncclComm_t comm = shim_comm(t, 1);
    cudaStream_t stream = shim_stream(t);

    shim_sum_is(t, comm, stream, t->nranks);
    test_barrier(t);
    if (t->rank == last)
        raise(SIGKILL);
    await_error(t, comm);
    test_note(t, "a stall with an end");
    if (stalls) {
        NCCL_OK(t, ncclAllReduce(data, data, 100, ncclInt, ncclSum, comm, stream));
        TEST_CUDA(t, cudaStreamSynchronize(stream));
    }
    NCCL_GIVES(t, ncclRemoteError, ncclAllReduce(data, data, 100, ncclInt, ncclSum, comm, stream));
    TEST_TRUE(t, strstr(ncclGetLastError(comm), "rank 2") != NULL);
    NCCL_OK(t, ncclGroupStart());
    NCCL_OK(t, ncclAllReduce(data, data, 100, ncclInt, ncclSum, comm, stream));
    NCCL_GIVES(t, ncclRemoteError, ncclGroupEnd());
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    NCCL_OK(t, ncclCommDestroy(comm));
}

int shim_gone_killed(void)
{
    test_director_t director = {.victims = 1u << 2};
    int yes = 1, no = 0, bad;

    bad = test_run_directed(&director, 3, 60, killed, NULL);
    setenv("RONDO_NCCL_STALL_MS", STALL_MS, 1);
    bad += bad ? 0 : test_run_directed(&director, 3, 60, impatient, &yes);
    setenv("RONDO_NCCL_STALL_MS", "0", 1);
    bad += bad ? 0 : test_run_directed(&director, 3, 60, impatient, &no);
    unsetenv("RONDO_NCCL_STALL_MS");
    printf("shim: killed, 3 processes: %s\n", bad ? "WRONG" : "right");
    return bad;
}
