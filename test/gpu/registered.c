/* Registered buffers: long messages, and the collectives that move blocks, into buffers that are registered on all ranks,
 * on some, in part, or not any more; between plain calls, in groups and from graphs that were captured before and after;
 * and where the sender of a message deregisters before its receiver. Results are the same as ever. What is registered
 * comes and goes while operations are under way.
 *
 *   registered [--seed S]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device.h"

#define INTS (1 << 18) /* of a buffer: 1 MB */
#define BUFFERS 3

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    cudaStream_t stream;
    int *buffer[BUFFERS], *source, *host; /* each buffer an allocation of its own: such can be exported */
    rondo_registration_t reg[BUFFERS];
    uint64_t random; /* the same on all ranks */
    int round;
} world_t;

static int value(int from, int to, int round, size_t at)
{
    return (from * 16 + to) * 10000000 + round * 100000 + (int)(at % 99991);
}

/* Block `to` of the source is what rank `to` gets. */
static void fill(world_t *w, size_t block)
{
    int n = w->t->nranks;

    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    for (int to = 0; to < n; to++)
        for (size_t i = 0; i < block; i++)
            w->host[(size_t)to * block + i] = value(w->t->rank, to, w->round, i);
    TEST_CUDA(w->t, cudaMemcpyAsync(w->source, w->host, (size_t)n * block * sizeof(int), cudaMemcpyDefault, w->stream));
}

static void verify(world_t *w, const int *buffer, int from, size_t block)
{
    TEST_CUDA(w->t, cudaMemcpyAsync(w->host, buffer, block * sizeof(int), cudaMemcpyDefault, w->stream));
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    for (size_t i = 0; i < block; i++) {
        if (w->host[i] != value(from, w->t->rank, w->round, i))
            test_stop(w->t, "round %d, from rank %d: int %zu is %d, should be %d", w->round, from, i, w->host[i],
                      value(from, w->t->rank, w->round, i));
    }
}

/* Each to the next, in one group. */
static void shift(world_t *w, int *to, size_t block)
{
    int n = w->t->nranks, next = (w->t->rank + 1) % n, previous = (w->t->rank + n - 1) % n;

    TEST_OK(w->t, NULL, rondo_group_start());
    TEST_OK(w->t, w->comm, rondo_send(w->source + (size_t)next * block, block, RONDO_INT32, next, w->comm, w->stream));
    TEST_OK(w->t, w->comm, rondo_recv(to, block, RONDO_INT32, previous, w->comm, w->stream));
    TEST_OK(w->t, NULL, rondo_group_end());
}

static void one_round(world_t *w)
{
    int n = w->t->nranks, previous = (w->t->rank + n - 1) % n, all = (int)test_below(&w->random, 2);
    size_t most = INTS / (size_t)n - 64, block = most - test_below(&w->random, test_below(&w->random, 2) ? 1000 : (unsigned)most);
    int *to = w->buffer[(test_below(&w->random, BUFFERS) + (unsigned)w->t->rank) % BUFFERS] + test_below(&w->random, 64);

    w->round++;
    test_note(w->t, "round %d: %s of %zu", w->round, all ? "alltoall" : "shift", block);
    fill(w, block);
    if (all) {
        TEST_OK(w->t, w->comm, rondo_alltoall(w->source, to, block, RONDO_INT32, w->comm, w->stream));
        for (int from = 0; from < n; from++)
            verify(w, to + (size_t)from * block, from, block);
    } else {
        shift(w, to, block);
        verify(w, to, previous, block);
    }
}

/* One of them comes or goes; some ranks register a part alone, some none of it. */
static void change(world_t *w)
{
    unsigned i = test_below(&w->random, BUFFERS), kind = test_below(&w->random, 3);

    if (w->reg[i]) {
        TEST_OK(w->t, w->comm, rondo_comm_deregister(w->comm, w->reg[i]));
        w->reg[i] = NULL;
    } else {
        size_t bytes = kind == 1 && w->t->rank == 0 ? INTS : kind == 2 && w->t->rank == 1 ? 0 : INTS * sizeof(int);
        TEST_OK(w->t, w->comm, rondo_comm_register(w->comm, bytes ? w->buffer[i] : NULL, bytes, &w->reg[i]));
    }
}

static cudaGraphExec_t capture(world_t *w, size_t block)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    shift(w, w->buffer[0] + 3, block);
    TEST_CUDA(w->t, cudaStreamEndCapture(w->stream, &graph));
    TEST_CUDA(w->t, cudaGraphInstantiate(&exec, graph, 0));
    TEST_CUDA(w->t, cudaGraphDestroy(graph));
    return exec;
}

/* Captured with and without a registration, replayed with and without. */
static void graphs(world_t *w)
{
    size_t block = INTS / (size_t)w->t->nranks - 64;
    int previous = (w->t->rank + w->t->nranks - 1) % w->t->nranks;
    cudaGraphExec_t exec[2];

    exec[0] = capture(w, block);
    if (!w->reg[0])
        TEST_OK(w->t, w->comm, rondo_comm_register(w->comm, w->buffer[0], INTS * sizeof(int), &w->reg[0]));
    exec[1] = capture(w, block);
    for (int i = 0; i < 5; i++) {
        w->round++;
        test_note(w->t, "replay %d", w->round);
        fill(w, block);
        TEST_CUDA(w->t, cudaGraphLaunch(exec[i % 2], w->stream));
        if (i == 3) { /* while it runs */
            TEST_OK(w->t, w->comm, rondo_comm_deregister(w->comm, w->reg[0]));
            w->reg[0] = NULL;
        }
        verify(w, w->buffer[0] + 3, previous, block);
    }
    device_graphs_destroy(w->t, exec, 2);
}

/* Rank 0's graph against the others' plain calls, on a communicator of its own: captured before a buffer is registered
 * and launched after it, or captured while one is registered and launched when none is. */
static void graph_against_calls(world_t *w, bool before)
{
    size_t block = INTS / (size_t)w->t->nranks - 64;
    int previous = (w->t->rank + w->t->nranks - 1) % w->t->nranks;
    cudaGraphExec_t exec[2] = {NULL, NULL};
    rondo_registration_t reg;
    rondo_comm_t comm = w->comm;

    w->comm = device_comm(w->t);
    for (int i = 0; i < 2; i++) {
        if ((i == 0) == before && w->t->rank == 0)
            exec[0] = capture(w, block);
        if (i == 0)
            TEST_OK(w->t, w->comm, rondo_comm_register(w->comm, w->buffer[0], INTS * sizeof(int), &reg));
    }
    if (!before)
        TEST_OK(w->t, w->comm, rondo_comm_deregister(w->comm, reg));
    w->round++;
    test_note(w->t, "a graph captured %s, against calls", before ? "before the first" : "with a registered buffer");
    fill(w, block);
    if (w->t->rank == 0)
        TEST_CUDA(w->t, cudaGraphLaunch(exec[0], w->stream));
    else
        shift(w, w->buffer[0] + 3, block);
    verify(w, w->buffer[0] + 3, previous, block);
    device_graphs_destroy(w->t, exec, w->t->rank == 0);
    TEST_OK(w->t, NULL, rondo_comm_destroy(w->comm));
    w->comm = comm;
}

/* The sender has deregistered; the receiver, which is behind, still posts its buffer. */
static void sender_first(world_t *w)
{
    size_t block = INTS / (size_t)w->t->nranks - 64;

    if (!w->reg[0])
        TEST_OK(w->t, w->comm, rondo_comm_register(w->comm, w->buffer[0], INTS * sizeof(int), &w->reg[0]));
    w->round++;
    test_note(w->t, "deregistered by the sender first");
    fill(w, block);
    if (w->t->rank == 1)
        TEST_OK(w->t, w->comm, rondo_recv(w->buffer[0], block, RONDO_INT32, 0, w->comm, w->stream));
    TEST_OK(w->t, w->comm, rondo_comm_deregister(w->comm, w->reg[0]));
    w->reg[0] = NULL;
    if (w->t->rank == 0)
        TEST_OK(w->t, w->comm, rondo_send(w->source + block, block, RONDO_INT32, 1, w->comm, w->stream));
    if (w->t->rank == 1)
        verify(w, w->buffer[0], 0, block);
    TEST_OK(w->t, w->comm, rondo_barrier(w->comm, w->stream));
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
}

static void body(test_rank_t *t, void *arg)
{
    world_t w = {.t = t};

    w.random = *(const uint64_t *)arg * 1000 + (uint64_t)t->nranks;
    w.comm = device_comm(t);
    for (int i = 0; i < BUFFERS; i++)
        TEST_CUDA(t, cudaMalloc((void **)&w.buffer[i], INTS * sizeof(int)));
    TEST_CUDA(t, cudaMalloc((void **)&w.source, INTS * sizeof(int)));
    w.host = device_memory(t, INTS * sizeof(int), 1);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking));
    test_barrier(t);
    for (int i = 0; i < 9; i++) { /* what goes by slots is slow where devices are simulated */
        if (i != 0)
            change(&w);
        one_round(&w);
    }
    graphs(&w);
    sender_first(&w);
    graph_against_calls(&w, true);
    graph_against_calls(&w, false);
    test_note(t, "destroy");
    if (w.reg[1]) /* the others are left to the communicator */
        TEST_OK(t, w.comm, rondo_comm_deregister(w.comm, w.reg[1]));
    TEST_OK(t, NULL, rondo_comm_destroy(w.comm));
    test_barrier(t);
    for (int i = 0; i < BUFFERS; i++)
        TEST_CUDA(t, cudaFree(w.buffer[i]));
    TEST_CUDA(t, cudaFree(w.source));
    TEST_CUDA(t, cudaStreamDestroy(w.stream));
    device_finish(t);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc == 3 && strcmp(argv[1], "--seed") == 0 ? strtoull(argv[2], NULL, 0) : 5;
    int bad = 0;

    test_begin("registered", 300);
    if (sim_live) /* what goes by slots has to and fro many times: more at once there */
        setenv("RONDO_CUDA_FIFOS", "32", 0);
    if (device_none())
        return TEST_SKIPPED;
    for (int nranks = 2; nranks <= 4 && bad == 0; nranks++)
        for (int kind = TEST_PROCESSES; kind <= TEST_THREADS && bad == 0; kind++) {
            if (kind == TEST_THREADS && nranks != 3)
                continue; /* there a registration is a promise alone */
            bad += test_run((test_kind_t)kind, nranks, 140, body, &seed);
            printf("registered: %d %s, seed %llu: %s\n", nranks, test_kind_name((test_kind_t)kind),
                   (unsigned long long)seed, bad ? "WRONG" : "right");
        }
    return bad != 0;
}
