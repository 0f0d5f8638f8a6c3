/* NCCL's one-sided operations on devices: puts into symmetric windows and signals, alone, in groups and from a graph,
 * between processes. Threads, whose windows are not mapped, have the signals, and a put is refused in a sentence. */
#include <stdlib.h>
#include <string.h>

#include "gpu/shim.h"
#include "nccl/signal_calls.h"

#define N 30000 /* more than a kernel puts */
#define REPLAYS 3

typedef struct {
    test_rank_t *t;
    ncclComm_t comm;
    cudaStream_t stream;
    ncclWindow_t window;
    int32_t *buffer; /* the window: N numbers that come, and N that go */
    int32_t *host;   /* pinned */
    int peer;
} signals_t;

static void give(signals_t *s, int k)
{
    TEST_CUDA(s->t, cudaStreamSynchronize(s->stream));
    for (int i = 0; i < N; i++)
        s->host[i] = 100000 * k + 50000 * s->t->rank + i;
    TEST_CUDA(s->t, cudaMemcpyAsync(s->buffer + N, s->host, N * sizeof(int32_t), cudaMemcpyDefault, s->stream));
    TEST_CUDA(s->t, cudaStreamSynchronize(s->stream));
}

/* The first n numbers go to the peer and come from it; each says that it has read them. */
static void exchange(signals_t *s, int n, bool grouped)
{
    ncclWaitSignalDesc_t come = {1, s->peer, 0, 0}, read = {1, s->peer, 1, 0};

    NCCL_OK(s->t, grouped ? ncclGroupStart() : ncclSuccess);
    NCCL_OK(s->t, ncclPutSignal(s->buffer + N, (size_t)n, ncclInt, s->peer, s->window, 0, 0, 0, 0, s->comm, s->stream));
    NCCL_OK(s->t, ncclWaitSignal(1, &come, s->comm, s->stream));
    NCCL_OK(s->t, grouped ? ncclGroupEnd() : ncclSuccess);
    TEST_CUDA(s->t, cudaMemcpyAsync(s->host, s->buffer, (size_t)n * sizeof(int32_t), cudaMemcpyDefault, s->stream));
    NCCL_OK(s->t, ncclSignal(s->peer, 1, 0, 0, s->comm, s->stream));
    NCCL_OK(s->t, ncclWaitSignal(1, &read, s->comm, s->stream));
}

static void came(signals_t *s, int k, int n)
{
    TEST_CUDA(s->t, cudaStreamSynchronize(s->stream));
    for (int i = 0; i < n; i++)
        if (s->host[i] != 100000 * k + 50000 * s->peer + i)
            test_stop(s->t, "%s: number %d is %d (k %d)", test_noted(s->t), i, s->host[i], k);
}

static void replayed(signals_t *s)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    test_note(s->t, "a graph");
    TEST_CUDA(s->t, cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeThreadLocal));
    exchange(s, 100, true);
    exchange(s, N, false);
    TEST_CUDA(s->t, cudaStreamEndCapture(s->stream, &graph));
    TEST_CUDA(s->t, cudaGraphInstantiate(&exec, graph, 0));
    TEST_CUDA(s->t, cudaGraphDestroy(graph));
    for (int k = 0; k < REPLAYS; k++) {
        give(s, k);
        TEST_CUDA(s->t, cudaGraphLaunch(exec, s->stream));
        came(s, k, N);
    }
    device_graphs_destroy(s->t, &exec, 1);
}

static void served(signals_t *s)
{
    for (int k = 0; k < 4; k++) {
        test_note(s->t, "exchange %d", k);
        give(s, k);
        exchange(s, k % 2 ? N : 77, k / 2);
        came(s, k, k % 2 ? N : 77);
    }
    replayed(s);
    NCCL_GIVES(
        s->t, ncclInvalidArgument,
        ncclPutSignal(s->buffer, 1, ncclInt, s->peer, s->window, 2 * N * sizeof(int32_t), 0, 0, 0, s->comm, s->stream));
}

void shim_signals(test_rank_t *t, void *arg)
{
    signals_t s = {.t = t, .peer = 1 - t->rank};
    void *memory = NULL;

    (void)arg;
    shim_device(t);
    s.comm = shim_comm(t, 1);
    s.stream = shim_stream(t);
    s.host = device_memory(t, N * sizeof(int32_t), 1);
    NCCL_OK(t, ncclMemAlloc(&memory, 2 * N * sizeof(int32_t)));
    s.buffer = memory;
    NCCL_OK(t, ncclCommWindowRegister(s.comm, memory, 2 * N * sizeof(int32_t), &s.window, NCCL_WIN_COLL_SYMMETRIC));
    if (t->kind == TEST_PROCESSES) {
        served(&s);
    } else {
        ncclWaitSignalDesc_t come = {1, s.peer, 0, 0};
        NCCL_OK(t, ncclSignal(s.peer, 0, 0, 0, s.comm, s.stream));
        NCCL_OK(t, ncclWaitSignal(1, &come, s.comm, s.stream));
        TEST_CUDA(t, cudaStreamSynchronize(s.stream));
    }
    NCCL_OK(t, ncclCommWindowDeregister(s.comm, t->kind == TEST_PROCESSES ? s.window : NULL));
    NCCL_GIVES(t, ncclInvalidArgument,
               ncclPutSignal(memory, 1, ncclInt, s.peer, s.window, 0, 0, 0, 0, s.comm, s.stream));
    test_barrier(t);
    device_memory_back(s.host);
    NCCL_OK(t, ncclCommDestroy(s.comm));
    NCCL_OK(t, ncclMemFree(memory));
    device_end(t, NULL, &s.stream, 1);
}
