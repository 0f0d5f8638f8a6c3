/* Groups of short collectives, which a rank launches together: any mix of operations, types, operators and roots, with
 * long ones between. Rank 0 has all in one group, rank 1 calls one by one, the others draw their groups; plain, and
 * from graphs in turns with plain calls. What depends on an earlier call of the group comes behind it. A list of 64 is
 * one kernel: of allreduces; of broadcasts and reductions to and from all ranks, and mixed with allreduces. An estimate
 * of such a list is less than the sum of those of its calls.
 *
 *   fused [--seed S]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device.h"

#define CALLS 150 /* more than a launch has */
#define LIST 64
#define INTS 1024 /* of one of the list */

static uint64_t seed = 1;

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    cudaStream_t stream;
    device_call_t call[CALLS];
    int *in, *out, *host; /* LIST * INTS; host: pinned */
} world_t;

/* The same on every rank. One of `longs` is long. */
static do_case_t draw(uint64_t *random, int nranks, unsigned longs)
{
    static const rondo_type_t types[] = {RONDO_FLOAT32, RONDO_INT32,   RONDO_BFLOAT16, RONDO_FLOAT64,
                                         RONDO_UINT8,   RONDO_FLOAT16, RONDO_INT64};
    static const do_what_t whats[] = {DO_ALLREDUCE, DO_REDUCE, DO_REDUCE_SCATTER, DO_BROADCAST,
                                      DO_ALLGATHER, DO_GATHER, DO_SCATTER,        DO_ALLTOALL};
    do_case_t c;

    memset(&c, 0, sizeof c);
    c.what = whats[test_below(random, sizeof whats / sizeof whats[0])];
    c.type = types[test_below(random, sizeof types / sizeof types[0])];
    c.op = test_below(random, 4) ? RONDO_SUM : RONDO_MAX;
    c.data = do_reduces(c.what) ? REF_EXACT : REF_BYTES;
    c.count = test_below(random, longs) ? 1 + test_below(random, 700) : 20000;
    c.root = (int)test_below(random, (unsigned)nranks);
    c.seed = test_random(random) >> 32;
    c.in_place = test_below(random, 4) == 0 && do_has_in_place(c.what);
    return c;
}

/* Returns how many calls from `first` on are this rank's next group; `round`: each has other groups. */
static int group_of(const test_rank_t *t, int round, int first)
{
    uint64_t random = seed * 1000 + (uint64_t)(round * 100 + t->rank);
    int left = CALLS - first, who = (t->rank + round) % t->nranks;

    for (int i = 0; i <= first; i++)
        (void)test_random(&random);
    return who == 0 ? left : who == 1 ? 1 : 1 + (int)test_below(&random, (unsigned)left);
}

static void post_all(world_t *w, int round)
{
    for (int first = 0, n; first < CALLS; first += n) {
        n = group_of(w->t, round, first);
        if (n > 1)
            TEST_OK(w->t, NULL, rondo_group_start());
        for (int i = first; i < first + n; i++)
            TEST_OK(w->t, w->comm, device_post(&w->call[i], w->comm, w->stream));
        if (n > 1)
            TEST_OK(w->t, NULL, rondo_group_end());
    }
}

static void fill_all(world_t *w)
{
    for (int i = 0; i < CALLS; i++) {
        device_refill(&w->call[i]);
        device_fill(w->t, &w->call[i], w->stream);
    }
}

static void verify_all(world_t *w, const char *what)
{
    for (int i = 0; i < CALLS; i++) {
        test_note(w->t, "%s, call %d", what, i);
        device_verify(w->t, &w->call[i], 1, w->stream);
    }
}

static void plain(world_t *w)
{
    for (int round = 0; round < 3; round++) {
        fill_all(w);
        post_all(w, round);
        verify_all(w, "plain");
    }
}

static cudaGraphExec_t capture(world_t *w, int round)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    post_all(w, round);
    TEST_CUDA(w->t, cudaStreamEndCapture(w->stream, &graph));
    TEST_CUDA(w->t, cudaGraphInstantiate(&exec, graph, 0));
    TEST_CUDA(w->t, cudaGraphDestroy(graph));
    return exec;
}

static void graphs(world_t *w)
{
    cudaGraphExec_t exec[2] = {capture(w, 3), capture(w, 4)};

    for (int round = 0; round < 5; round++) {
        fill_all(w);
        if (round == 2)
            post_all(w, 5);
        else
            TEST_CUDA(w->t, cudaGraphLaunch(exec[round % 2], w->stream));
        verify_all(w, "a graph");
    }
    device_graphs_destroy(w->t, exec, 2);
}

static void fill_list(world_t *w)
{
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    for (int i = 0; i < LIST * INTS; i++)
        w->host[i] = w->t->rank * 1000 + i % 997;
    TEST_CUDA(w->t, cudaMemcpyAsync(w->in, w->host, LIST * INTS * sizeof(int), cudaMemcpyDefault, w->stream));
}

/* Every int must be `times` the sum. */
static void verify_list(world_t *w, int ints, int times)
{
    int n = w->t->nranks;

    TEST_CUDA(w->t, cudaMemcpyAsync(w->host, w->out, LIST * INTS * sizeof(int), cudaMemcpyDefault, w->stream));
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    for (int i = 0; i < ints; i++) {
        int want = times * (n * (n - 1) / 2 * 1000 + n * (i % 997));
        if (w->host[i] != want)
            test_stop(w->t, "int %d is %d, should be %d", i, w->host[i], want);
    }
}

/* Call i of a list, of `ints` ints each. */
static void post_one(world_t *w, int i, int ints, int rooted)
{
    const int root = i / 3 % w->t->nranks, *in = w->in + i * ints;
    int *out = w->out + i * ints;

    if (!rooted || i % 3 == 2)
        TEST_OK(w->t, w->comm, rondo_allreduce(in, out, ints, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
    else if (i % 3 == 1)
        TEST_OK(w->t, w->comm, rondo_broadcast(in, out, ints, RONDO_INT32, root, w->comm, w->stream));
    else
        TEST_OK(w->t, w->comm, rondo_reduce(in, out, ints, RONDO_INT32, RONDO_SUM, root, w->comm, w->stream));
}

/* What is not the root's of a reduction stays as it was. */
static void verify_one(world_t *w, int i, int ints, int round)
{
    const int n = w->t->nranks, root = i / 3 % n;

    for (int k = 0; k < ints; k++) {
        const int at = i * ints + k, sum = n * (n - 1) / 2 * 1000 + n * (at % 997);
        const int want = i % 3 == 1 ? root * 1000 + at % 997 : i % 3 == 2 || w->t->rank == root ? sum : -1;
        if (w->host[at] != want)
            test_stop(w->t, "round %d, call %d: int %d is %d, should be %d", round, i, k, w->host[at], want);
    }
}

/* Rank 0 replays a graph of one kernel, or of few where a launch does not serve all; the others have groups of 5, and
 * call one by one. */
static void rooted_list(world_t *w, int ints)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    TEST_OK(w->t, NULL, rondo_group_start());
    for (int i = 0; i < LIST; i++)
        post_one(w, i, ints, 1);
    TEST_OK(w->t, NULL, rondo_group_end());
    TEST_CUDA(w->t, cudaStreamEndCapture(w->stream, &graph));
    if (ints < 300) /* all by cells and chains */
        TEST_TRUE(w->t, device_nodes_of(w->t, graph, cudaGraphNodeTypeKernel) == 1);
    TEST_CUDA(w->t, cudaGraphInstantiate(&exec, graph, 0));
    TEST_CUDA(w->t, cudaGraphDestroy(graph));
    for (int round = 0; round <= w->t->nranks; round++) { /* each way on each rank, and one of them again */
        const int who = (w->t->rank + round) % w->t->nranks;

        fill_list(w);
        TEST_CUDA(w->t, cudaMemsetAsync(w->out, 0xff, LIST * INTS * sizeof(int), w->stream));
        if (who == 0)
            TEST_CUDA(w->t, cudaGraphLaunch(exec, w->stream));
        for (int i = 0; i < LIST && who != 0; i++) {
            if (who == 1 && i % 5 == 0)
                TEST_OK(w->t, NULL, rondo_group_start());
            post_one(w, i, ints, 1);
            if (who == 1 && (i % 5 == 4 || i == LIST - 1))
                TEST_OK(w->t, NULL, rondo_group_end());
        }
        TEST_CUDA(w->t, cudaMemcpyAsync(w->host, w->out, LIST * INTS * sizeof(int), cudaMemcpyDefault, w->stream));
        TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
        for (int i = 0; i < LIST; i++)
            verify_one(w, i, ints, round);
    }
    device_graphs_destroy(w->t, &exec, 1);
}

static double estimate_of(world_t *w, int calls)
{
    double us = -1;

    TEST_OK(w->t, NULL, rondo_group_start());
    for (int i = 0; i < calls; i++)
        post_one(w, i, 256, 1);
    TEST_OK(w->t, w->comm, rondo_group_estimate(&us));
    return us;
}

static void estimates(world_t *w)
{
    const double three = estimate_of(w, 3), all = estimate_of(w, LIST - LIST % 3);

    TEST_TRUE(w->t, three > 0 && all >= three && all < LIST / 3 * three / 2);
}

static void list(world_t *w)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    fill_list(w);
    TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    TEST_OK(w->t, NULL, rondo_group_start());
    for (int i = 0; i < LIST; i++)
        TEST_OK(w->t, w->comm,
                rondo_allreduce(w->in + i * INTS, w->out + i * INTS, INTS, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
    TEST_OK(w->t, NULL, rondo_group_end());
    TEST_CUDA(w->t, cudaStreamEndCapture(w->stream, &graph));
    TEST_TRUE(w->t, device_nodes_of(w->t, graph, cudaGraphNodeTypeKernel) == 1);
    TEST_CUDA(w->t, cudaGraphInstantiate(&exec, graph, 0));
    TEST_CUDA(w->t, cudaGraphDestroy(graph));
    TEST_CUDA(w->t, cudaGraphLaunch(exec, w->stream));
    verify_list(w, LIST * INTS, 1);
    device_graphs_destroy(w->t, &exec, 1);
}

/* A chain in one group: each call reads what the one before has written. And calls that write where earlier ones read.
 */
static void chain(world_t *w)
{
    fill_list(w);
    TEST_OK(w->t, NULL, rondo_group_start());
    TEST_OK(w->t, w->comm, rondo_reduce(w->in, w->out, INTS, RONDO_INT32, RONDO_SUM, 0, w->comm, w->stream));
    TEST_OK(w->t, w->comm, rondo_broadcast(w->out, w->in, INTS, RONDO_INT32, 0, w->comm, w->stream));
    TEST_OK(w->t, w->comm, rondo_allreduce(w->in, w->in, INTS, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
    TEST_OK(w->t, w->comm, rondo_allreduce(w->in, w->out, INTS, RONDO_INT32, RONDO_MAX, w->comm, w->stream));
    TEST_OK(w->t, NULL, rondo_group_end());
    verify_list(w, INTS, w->t->nranks);
}

/* An operator's factor that lies on the device is read when its turn comes: behind the call that makes it, and before
 * the one that makes it anew. */
static void scaled(world_t *w)
{
    const int made = w->t->nranks * (w->t->nranks - 1) / 2 * 1000;
    int *factor = w->out + 2 * INTS;
    rondo_op_t op;

    TEST_OK(w->t, w->comm, rondo_op_create_premulsum(&op, factor, RONDO_INT32, 1, w->comm));
    for (int last = 0; last < 2; last++) {
        fill_list(w);
        if (!last)
            TEST_CUDA(w->t, cudaMemsetAsync(factor, 0, sizeof *factor, w->stream));
        TEST_OK(w->t, NULL, rondo_group_start());
        if (!last)
            TEST_OK(w->t, w->comm, rondo_allreduce(w->in, factor, 1, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
        TEST_OK(w->t, w->comm, rondo_allreduce(w->in, w->out, INTS, RONDO_INT32, op, w->comm, w->stream));
        if (last)
            TEST_OK(w->t, w->comm, rondo_allreduce(w->in + 1, factor, 1, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
        TEST_OK(w->t, NULL, rondo_group_end());
        verify_list(w, INTS, made);
    }
    TEST_OK(w->t, w->comm, rondo_op_destroy(op, w->comm));
}

static void body(test_rank_t *t, void *arg)
{
    uint64_t random = seed * 16 + (uint64_t)t->nranks;
    world_t w = {.t = t};

    (void)arg;
    w.comm = device_comm(t);
    w.in = device_memory(t, LIST * INTS * sizeof(int), 0);
    w.out = device_memory(t, LIST * INTS * sizeof(int), 0);
    w.host = device_memory(t, LIST * INTS * sizeof(int), 1);
    for (int i = 0; i < CALLS; i++) {
        do_case_t c = draw(&random, t->nranks, i < CALLS / 2 ? 1000 : 12);
        device_prepare(t, &w.call[i], &c, 0);
    }
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking));
    test_barrier(t); /* kernels wait for each other from here on, and what CUDA makes may wait for kernels */
    list(&w);
    rooted_list(&w, 256);
    rooted_list(&w, INTS);
    estimates(&w);
    chain(&w);
    scaled(&w);
    plain(&w);
    graphs(&w);
    for (int i = 0; i < CALLS; i++)
        device_release(&w.call[i]);
    device_end(t, w.comm, &w.stream, 1);
}

int main(int argc, char **argv)
{
    int bad = 0;

    if (argc == 3 && strcmp(argv[1], "--seed") == 0)
        seed = strtoull(argv[2], NULL, 0);
    test_begin("fused", 300);
    printf("seed %llu\n", (unsigned long long)seed);
    if (device_none())
        return TEST_SKIPPED;
    if (sim_live)
        setenv("RONDO_CUDA_BANK", "4M", 1);
    for (int nranks = 2; nranks <= (sim_live ? 3 : 4) && bad == 0; nranks++)
        for (int kind = TEST_PROCESSES; kind <= TEST_THREADS && bad == 0; kind++) {
            if (sim_live && (nranks == 2) != (kind == TEST_THREADS)) /* each number, each kind */
                continue;
            bad += test_run((test_kind_t)kind, nranks, 140, body, NULL);
            printf("fused: %d %s: %s\n", nranks, test_kind_name((test_kind_t)kind), bad ? "WRONG" : "right");
        }
    return bad != 0;
}
