/* Messages between GPUs of a node whose two ends give different lengths (kind C, "what is there is not compared"):
 * RONDO_ERR_MISMATCH with both lengths, without RONDO_CHECK. The rank that comes later is told so before its kernel
 * starts, and the other one's kernel leaves: not a byte has come. Equal messages notice nothing, in graphs of one rank
 * alone too, and behind those.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device.h"

#define ROOM (4u << 20)

typedef struct plan {
    size_t sent, wanted;
    int late;  /* the rank that comes later */
    int calls; /* 0: send and recv, 1: in a group, 2: alltoallv */
} plan_t;

/* Rank 1 sends to rank 0. */
static rondo_result_t run(test_rank_t *t, int calls, rondo_comm_t comm, char *buffer, size_t bytes, cudaStream_t stream)
{
    size_t some[TEST_MAX_RANKS] = {0}, none[TEST_MAX_RANKS] = {0};
    rondo_result_t result, end;

    if (t->rank > 1 && calls < 2)
        return RONDO_SUCCESS;
    if (calls == 2) {
        some[1 - t->rank < 0 ? 0 : 1 - t->rank] = t->rank < 2 ? bytes : 0;
        return t->rank == 1 ? rondo_alltoallv(buffer, some, NULL, NULL, none, NULL, RONDO_UINT8, comm, stream)
                            : rondo_alltoallv(NULL, none, NULL, buffer, some, NULL, RONDO_UINT8, comm, stream);
    }
    result = calls ? rondo_group_start() : RONDO_SUCCESS;
    if (result == RONDO_SUCCESS)
        result = t->rank ? rondo_send(buffer, bytes, RONDO_UINT8, 0, comm, stream)
                         : rondo_recv(buffer, bytes, RONDO_UINT8, 1, comm, stream);
    end = calls ? rondo_group_end() : RONDO_SUCCESS;
    return result != RONDO_SUCCESS ? result : end;
}

static void equal(test_rank_t *t, const plan_t *p, rondo_comm_t comm, char *buffer, cudaStream_t stream)
{
    for (size_t i = 0; i < 80; i++) /* more than a ring of lengths has; rank 1 is ahead */
        TEST_OK(t, comm, run(t, p->calls, comm, buffer, i % 7 ? i * 100 : 0, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
}

/* What the sender has in a graph, the receiver has not: there is nothing to compare from then on. */
static void captured(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    rondo_comm_t comm = device_comm(t);
    char *buffer = device_memory(t, ROOM, 0);
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    cudaStream_t stream;

    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    equal(t, p, comm, buffer, stream);
    test_note(t, "a graph of the sender's");
    if (t->rank == 1) {
        TEST_CUDA(t, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        TEST_OK(t, comm, run(t, p->calls, comm, buffer, 5000, stream));
        TEST_CUDA(t, cudaStreamEndCapture(stream, &graph));
        TEST_CUDA(t, cudaGraphInstantiate(&exec, graph, 0));
        TEST_CUDA(t, cudaGraphDestroy(graph));
    }
    for (int i = 0; i < 3; i++) {
        if (t->rank == 1)
            TEST_CUDA(t, cudaGraphLaunch(exec, stream));
        else
            TEST_OK(t, comm, run(t, p->calls, comm, buffer, 5000, stream));
    }
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    equal(t, p, comm, buffer, stream);
    TEST_OK(t, comm, rondo_barrier(comm, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    device_graphs_destroy(t, &exec, t->rank == 1);
    device_end(t, comm, &stream, 1);
}

static void check_sentence(test_rank_t *t, const plan_t *p, const char *said)
{
    char sent[32], wanted[32];

    snprintf(sent, sizeof sent, " %zu bytes", p->sent);
    snprintf(wanted, sizeof wanted, "expects %zu", p->wanted);
    if (!strstr(said, sent) || !strstr(said, wanted))
        test_fail(t, "the sentence must name%s and %s: \"%s\"", sent, wanted, said);
}

static void body(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    rondo_comm_t comm = device_comm(t);
    char *buffer = device_memory(t, ROOM, 0), *host = malloc(ROOM);
    rondo_result_t error = RONDO_SUCCESS;
    cudaStream_t stream;
    size_t i;

    if (!host)
        test_stop(t, "no memory");
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    equal(t, p, comm, buffer, stream);
    TEST_CUDA(t, cudaMemset(buffer, t->rank == 1 ? 3 : 0x77, ROOM));
    test_barrier(t);
    test_note(t, "%zu bytes sent, %zu expected, rank %d comes later, way %d", p->sent, p->wanted, p->late, p->calls);
    if (t->rank == p->late)
        test_barrier(t);
    test_result(t, comm, run(t, p->calls, comm, buffer, t->rank == 1 ? p->sent : p->wanted, stream),
                t->rank == p->late ? RONDO_ERR_MISMATCH : RONDO_SUCCESS, test_noted(t));
    if (t->rank != p->late)
        test_barrier(t);
    TEST_CUDA(t, cudaStreamSynchronize(stream)); /* kernels that wait leave */
    while (error == RONDO_SUCCESS)               /* or the test is out of time */
        TEST_OK(t, comm, rondo_comm_get_error(comm, &error));
    TEST_TRUE(t, error == RONDO_ERR_MISMATCH);
    TEST_GIVES(t, comm, RONDO_ERR_MISMATCH, rondo_barrier(comm, stream));
    check_sentence(t, p, rondo_last_error(comm));
    TEST_CUDA(t, cudaMemcpy(host, buffer, ROOM, cudaMemcpyDeviceToHost));
    for (i = 0; t->rank != 1 && i < ROOM && host[i] == 0x77; i++)
        ;
    if (t->rank != 1 && i < ROOM)
        test_fail(t, "%s: byte %zu was written", test_noted(t), i);
    free(host);
    rondo_comm_destroy(comm);
    device_end(t, NULL, &stream, 1);
}

int main(void)
{
    static const size_t pairs[][2] = {{100, 50}, {50, 100}, {8, 7}, {30000, 100}, {100, 30000}, {ROOM, ROOM - 1}};
    plan_t p = {0};
    int bad = 0, n = 0;

    test_begin("gpu/lengths", 400);
    if (device_none())
        return TEST_SKIPPED;
    for (p.calls = 0; p.calls < 3 && bad == 0; p.calls++) {
        bad += test_run(TEST_PROCESSES, 2, 60, captured, &p);
        for (size_t k = 0; k < sizeof pairs / sizeof pairs[0] && bad == 0; k++, n++) {
            p.sent = pairs[k][0];
            p.wanted = pairs[k][1];
            p.late = n % 2;
            bad += test_run(n / 2 % 2 ? TEST_THREADS : TEST_PROCESSES, 2, 60, body, &p);
        }
    }
    return bad != 0;
}
