/* Parts of shim.c: communicators of libnccl.so.2 that are aborted while kernels wait, by the caller or by a watchdog as
 * PyTorch has one, and while calls stand behind something of the program's. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "gpu/shim.h"

/* The last rank does not come; all of them abort, as PyTorch's watchdogs do. Then the same with one rank that aborts
 * and others that learn of it from their communicator. */
void shim_aborted(test_rank_t *t, void *arg)
{
    const int last = t->nranks - 1;
    int32_t *data = device_memory(t, 4000 * sizeof *data, 0);
    cudaStream_t stream = NULL;
    ncclResult_t error;

    (void)arg;
    for (int alone = 0; alone < 2; alone++) {
        ncclComm_t comm = shim_comm(t, alone);

        if (!stream)
            stream = shim_stream(t);
        shim_sum_is(t, comm, stream, t->nranks);
        test_note(t, "%s while kernels wait", alone ? "the last rank aborts" : "all abort");
        test_barrier(t);
        if (t->rank != last)
            NCCL_OK(t, ncclAllReduce(data, data, 4000, ncclInt, ncclSum, comm, stream));
        NCCL_OK(t, ncclCommGetAsyncError(comm, &error));
        TEST_TRUE(t, error == ncclSuccess);
        test_barrier(t); /* nobody has begun to abort before all have asked */
        if (alone && t->rank != last) {
            do {
                usleep(100);
                NCCL_OK(t, ncclCommGetAsyncError(comm, &error));
            } while (error == ncclSuccess);
            TEST_TRUE(t, error == ncclRemoteError);
            NCCL_OK(t, ncclAllReduce(data, data, 1, ncclInt, ncclSum, comm, stream)); /* the stream stalls */
        }
        NCCL_OK(t, ncclCommAbort(comm));
        TEST_CUDA(t, cudaStreamSynchronize(stream)); /* the kernel has left */
        test_barrier(t);
    }
    ncclComm_t comm = shim_comm(t, 1); /* the context is usable */
    shim_sum_is(t, comm, stream, t->nranks);
    NCCL_OK(t, ncclCommDestroy(comm));
    device_end(t, NULL, &stream, 1);
}

static void await_gate(void *arg)
{
    while (!atomic_load((atomic_int *)arg))
        usleep(100);
}

/* Ends with an all-to-all in place, for which the library has memory: while a kernel of another communicator waits for
 * what this rank calls next, or while it stands behind something of the program's. */
static void abort_aside(test_rank_t *t, cudaStream_t stream, int *data, atomic_int *open)
{
    ncclComm_t other = shim_comm(t, 1), comm = shim_comm(t, 1);
    cudaStream_t beside = shim_stream(t);

    shim_sum_is(t, comm, stream, t->nranks);
    if (open)
        TEST_CUDA(t, cudaLaunchHostFunc(stream, await_gate, open));
    NCCL_OK(t, ncclAlltoAll(data, data, 10, ncclInt, comm, stream));
    if (!open)
        TEST_CUDA(t, cudaStreamSynchronize(stream));
    test_barrier(t);
    if (t->rank == 0)
        NCCL_OK(t, ncclAllReduce(data + 1000, data + 1000, 100, ncclInt, ncclSum, other, beside));
    test_note(t, "abort %s", open ? "in front of a call" : "beside a kernel that waits");
    NCCL_OK(t, ncclCommAbort(comm));
    test_barrier(t);
    if (t->rank != 0)
        NCCL_OK(t, ncclAllReduce(data + 1000, data + 1000, 100, ncclInt, ncclSum, other, beside));
    TEST_CUDA(t, cudaStreamSynchronize(beside));
    if (open)
        atomic_store(open, 1);
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    NCCL_OK(t, ncclCommDestroy(other));
    TEST_CUDA(t, cudaStreamDestroy(beside));
}

void shim_behind(test_rank_t *t, void *arg)
{
    int *data = device_memory(t, 4096 * sizeof *data, 0);
    ncclComm_t comm = shim_comm(t, 1);
    cudaStream_t stream = shim_stream(t);
    atomic_int open = 0;

    (void)arg;
    abort_aside(t, stream, data, NULL);
    abort_aside(t, stream, data, &open);
    NCCL_OK(t, ncclCommDestroy(comm));
    device_end(t, NULL, &stream, 1);
}

typedef struct watch {
    ncclComm_t comm;
    atomic_int stop;
    unsigned asked;
    ncclResult_t error, aborted;
} watch_t;

/* PyTorch's watchdog: asks all the time, and aborts what has failed. */
static void *watchdog(void *arg)
{
    watch_t *w = arg;

    while (!atomic_load(&w->stop) && w->error == ncclSuccess) {
        usleep(50);
        if (ncclCommGetAsyncError(w->comm, &w->error) != ncclSuccess)
            w->error = ncclInternalError;
        w->asked++;
    }
    if (w->error != ncclSuccess)
        w->aborted = ncclCommAbort(w->comm);
    return NULL;
}

/* Calls while a watchdog asks; then the last rank aborts, and the others' watchdogs find that. */
void shim_watched(test_rank_t *t, void *arg)
{
    enum { CALLS = 30 };
    const int last = t->nranks - 1;
    watch_t w = {.comm = shim_comm(t, 0), .aborted = ncclInternalError};
    cudaStream_t stream = shim_stream(t);
    int32_t *data = device_memory(t, 4000 * sizeof *data, 0);
    pthread_t thread;

    (void)arg;
    if (pthread_create(&thread, NULL, watchdog, &w) != 0)
        test_stop(t, "no thread");
    test_note(t, "calls while a watchdog asks");
    for (int i = 0; i < CALLS; i++) {
        NCCL_OK(t, ncclAllReduce(data, data, 1 + 50 * (size_t)i, ncclInt, ncclSum, w.comm, stream));
        if (i % 10 == 9)
            shim_sum_is(t, w.comm, stream, t->nranks);
    }
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    test_note(t, "the last rank aborts, the others' watchdogs do while they wait for the stream");
    if (t->rank != last)
        NCCL_OK(t, ncclAllReduce(data, data, 4000, ncclInt, ncclSum, w.comm, stream));
    test_barrier(t);
    if (t->rank == last) {
        atomic_store(&w.stop, 1);
        pthread_join(thread, NULL);
        TEST_TRUE(t, w.error == ncclSuccess && w.asked > 0);
        NCCL_OK(t, ncclCommAbort(w.comm));
    } else {
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        pthread_join(thread, NULL);
        TEST_TRUE(t, w.error == ncclRemoteError && w.aborted == ncclSuccess);
    }
    test_barrier(t);
    device_end(t, NULL, &stream, 1);
}
