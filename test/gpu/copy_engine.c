/* Collectives by copy engines, out of registered buffers: right at any length and offset, in place or not, in a stream,
 * in groups and from graphs; inputs are spoiled at once when an operation is over, and ranks come late. Ranks that call
 * with buffers that lie elsewhere are told so, and nobody's memory is written by another rank, whatever fails.
 *
 *   copies [--seed S]
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/device.h"

#define INTS (sim_live ? 1 << 15 : 1 << 22) /* of a buffer */
#define BUFFERS 2
#define EDGE 16 /* ints around an output that must stay as they are */

typedef enum { GATHER, GATHER_IN_PLACE, ALL, CAST, CAST_IN_PLACE, KINDS } kind_t;

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    cudaStream_t stream;
    int *buffer[BUFFERS], *plain, *host, *back; /* each buffer an allocation of its own; plain: not registered */
    rondo_registration_t reg[BUFFERS];
    uint64_t random; /* the same on all ranks */
} world_t;

/* One operation. */
typedef struct {
    kind_t kind;
    int root, round;
    size_t block, at; /* ints; where what is read begins in its buffer */
    int *source, *in, *out;
} op_t;

static int value(int from, int to, int round, size_t at)
{
    return (from * 16 + to) * 10000000 + round * 10000 + (int)(at % 9973);
}

static void world_open(world_t *w, test_rank_t *t, const rondo_config_t *config, uint64_t seed)
{
    *w = (world_t){.t = t, .random = seed * 1000 + (uint64_t)t->nranks};
    w->comm = config ? device_comm_config(t, *config) : device_comm(t);
    for (int i = 0; i < BUFFERS; i++)
        TEST_CUDA(t, cudaMalloc((void **)&w->buffer[i], (size_t)INTS * sizeof(int)));
    TEST_CUDA(t, cudaMalloc((void **)&w->plain, (size_t)INTS * sizeof(int)));
    TEST_CUDA(t, cudaHostAlloc((void **)&w->host, (size_t)INTS * sizeof(int), cudaHostAllocPortable));
    TEST_CUDA(t, cudaHostAlloc((void **)&w->back, (size_t)INTS * sizeof(int), cudaHostAllocPortable));
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking));
    for (int i = 0; i < BUFFERS; i++)
        TEST_OK(t, w->comm, rondo_comm_register(w->comm, w->buffer[i], (size_t)INTS * sizeof(int), &w->reg[i]));
}

/* `others`: ranks that are left to wait for. */
static void world_close(world_t *w, int others)
{
    TEST_OK(w->t, NULL, rondo_comm_destroy(w->comm));
    if (others)
        test_barrier(w->t);
    for (int i = 0; i < BUFFERS; i++)
        TEST_CUDA(w->t, cudaFree(w->buffer[i]));
    TEST_CUDA(w->t, cudaFree(w->plain));
    TEST_CUDA(w->t, cudaFreeHost(w->host));
    TEST_CUDA(w->t, cudaFreeHost(w->back));
    TEST_CUDA(w->t, cudaStreamDestroy(w->stream));
    if (others)
        device_finish(w->t);
}

/* ---- one operation ---- */

static size_t in_ints(const world_t *w, const op_t *o)
{
    return o->kind == ALL ? o->block * (size_t)w->t->nranks : o->block;
}

static size_t out_ints(const world_t *w, const op_t *o)
{
    return o->kind <= ALL ? o->block * (size_t)w->t->nranks : o->block;
}

/* Where it reads and writes. `drift`: what need not be alike is not. */
static void place(world_t *w, op_t *o, int buffer, size_t drift)
{
    size_t own = (size_t)w->t->rank * o->block;
    int root = w->t->rank == o->root;

    o->source = w->buffer[buffer] + o->at;
    o->in = o->source;
    o->out = w->plain + EDGE + drift;
    if (o->kind == GATHER_IN_PLACE) {
        o->out = o->source;
        o->in = o->source + own;
    } else if (o->kind >= CAST) {
        o->out = o->source;
        o->in = !root ? NULL : o->kind == CAST ? w->plain + EDGE + drift : o->source;
    }
}

static void draw(world_t *w, op_t *o, int round)
{
    size_t n = (size_t)w->t->nranks, most = ((size_t)INTS - 4 * EDGE - 200) / n;

    o->kind = (kind_t)test_below(&w->random, KINDS);
    o->round = round;
    o->root = (int)test_below(&w->random, (unsigned)n);
    o->block = 1 + test_below(&w->random, test_below(&w->random, 2) ? 40 : (unsigned)most);
    o->at = EDGE + test_below(&w->random, 100);
    place(w, o, (int)test_below(&w->random, BUFFERS), (size_t)w->t->rank * 7);
}

/* The input, in the stream; edges of the output, too. */
static void fill(world_t *w, const op_t *o)
{
    size_t n = o->in ? in_ints(w, o) : 0, out = out_ints(w, o);

    TEST_CUDA(w->t, cudaMemsetAsync(o->out - EDGE, 0x77, (out + 2 * EDGE) * sizeof(int), w->stream));
    for (size_t i = 0; i < n; i++)
        w->host[i] = value(w->t->rank, o->kind == ALL ? (int)(i / o->block) : 0, o->round, i % o->block);
    if (n)
        TEST_CUDA(w->t, cudaMemcpyAsync(o->in, w->host, n * sizeof(int), cudaMemcpyDefault, w->stream));
}

static rondo_result_t post(world_t *w, const op_t *o)
{
    if (o->kind == ALL)
        return rondo_alltoall(o->in, o->out, o->block, RONDO_INT32, w->comm, w->stream);
    if (o->kind >= CAST)
        return rondo_broadcast(o->in, o->out, o->block, RONDO_INT32, o->root, w->comm, w->stream);
    return rondo_allgather(o->in, o->out, o->block, RONDO_INT32, w->comm, w->stream);
}

/* The result comes back. */
static void take(world_t *w, const op_t *o)
{
    size_t all = out_ints(w, o) + 2 * EDGE;

    TEST_CUDA(w->t, cudaMemcpyAsync(w->back, o->out - EDGE, all * sizeof(int), cudaMemcpyDefault, w->stream));
}

/* What others have read from is the caller's again, as soon as the operation is over here. */
static void spoil(world_t *w, const op_t *o)
{
    size_t all = out_ints(w, o) + 2 * EDGE;

    TEST_CUDA(w->t, cudaMemsetAsync(o->source - EDGE, 0x55, all * sizeof(int), w->stream));
}

static void verify(world_t *w, const op_t *o)
{
    size_t out = out_ints(w, o);

    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    for (size_t i = 0; i < out + 2 * EDGE; i++) {
        size_t at = i - EDGE;
        int edge = i < EDGE || at >= out, from = o->kind >= CAST ? o->root : (int)(at / o->block);
        int want = edge ? 0x77777777 : value(from, o->kind == ALL ? w->t->rank : 0, o->round, at % o->block);
        if (w->back[i] != want)
            test_stop(w->t, "round %d, operation %d, %zu ints, root %d: int %zd is %d, should be %d", o->round,
                      (int)o->kind, o->block, o->root, (ssize_t)at, w->back[i], want);
    }
}

static void hold(void *milliseconds)
{
    usleep(1000u * *(unsigned *)milliseconds);
}

/* ---- parts ---- */

static void rounds(test_rank_t *t, void *arg)
{
    static unsigned pause = 2; /* milliseconds */
    world_t w;
    op_t o;

    world_open(&w, t, NULL, *(const uint64_t *)arg);
    for (int round = 0; round < 60; round++) {
        int late = (int)test_below(&w.random, 3 * (unsigned)t->nranks), grouped = test_below(&w.random, 4) == 0;
        draw(&w, &o, round);
        test_note(t, "round %d: operation %d of %zu, root %d", round, (int)o.kind, o.block, o.root);
        if (late == t->rank)
            TEST_CUDA(t, cudaLaunchHostFunc(w.stream, hold, &pause));
        fill(&w, &o);
        if (grouped)
            TEST_OK(t, NULL, rondo_group_start());
        TEST_OK(t, w.comm, post(&w, &o));
        if (grouped)
            TEST_OK(t, NULL, rondo_group_end());
        take(&w, &o);
        spoil(&w, &o);
        verify(&w, &o);
        if (round % 20 == 19) { /* by kernels in between: the same epochs */
            TEST_OK(t, w.comm, rondo_allreduce(w.plain, w.plain, 100, RONDO_INT32, RONDO_MAX, w.comm, w.stream));
            TEST_OK(t, w.comm, rondo_comm_deregister(w.comm, w.reg[1]));
            TEST_OK(t, w.comm,
                    rondo_comm_register(w.comm, w.buffer[1], (size_t)INTS * sizeof(int), &w.reg[1]));
        }
    }
    world_close(&w, 1);
}

/* An operation and its result's way back in each graph, with more ranks another operation before; captured in every
 * mode, and replayed between plain calls. */
static void graphs(test_rank_t *t, void *arg)
{
    static const enum cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                                                       cudaStreamCaptureModeRelaxed};
    world_t w;
    cudaGraphExec_t exec[KINDS];
    cudaGraph_t graph;

    world_open(&w, t, NULL, *(const uint64_t *)arg);
    for (int kind = 0; kind < KINDS; kind++) {
        op_t o = {.kind = (kind_t)kind, .root = kind % t->nranks, .block = 3001, .at = EDGE + 5};
        place(&w, &o, kind % BUFFERS, 3);
        TEST_CUDA(t, cudaStreamBeginCapture(w.stream, modes[kind % 3]));
        for (int i = 1; i < t->nranks; i++)
            TEST_OK(t, w.comm, post(&w, &o));
        take(&w, &o);
        TEST_CUDA(t, cudaStreamEndCapture(w.stream, &graph));
        TEST_CUDA(t, cudaGraphInstantiate(&exec[kind], graph, 0));
        TEST_CUDA(t, cudaGraphDestroy(graph));
        for (int i = 0; i < 8; i++) {
            o.round = 10 * kind + i;
            test_note(t, "operation %d, replay %d", kind, i);
            fill(&w, &o);
            if (i % 4 == 1)
                TEST_OK(t, w.comm, post(&w, &o));
            TEST_CUDA(t, cudaGraphLaunch(exec[kind], w.stream));
            spoil(&w, &o);
            verify(&w, &o);
        }
    }
    device_graphs_destroy(t, exec, KINDS);
    world_close(&w, 1);
}

/* What lies in a buffer that peers have mapped is still there. */
static void untouched(world_t *w, int byte)
{
    size_t wrong = 0, all = (size_t)INTS * sizeof(int);

    for (int b = 0; b < BUFFERS; b++) {
        TEST_CUDA(w->t, cudaMemcpyAsync(w->back, w->buffer[b], all, cudaMemcpyDefault, w->stream));
        TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
        for (size_t i = 0; i < all; i++)
            wrong += ((unsigned char *)w->back)[i] != byte;
    }
    if (wrong)
        test_fail(w->t, "%zu bytes of registered buffers were written", wrong);
}

static void set_all(world_t *w, int byte)
{
    for (int b = 0; b < BUFFERS; b++)
        TEST_CUDA(w->t, cudaMemsetAsync(w->buffer[b], byte, (size_t)INTS * sizeof(int), w->stream));
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
}

/* One rank's buffer lies elsewhere; or is another one; or the length is another; or the operation is. */
static void differs(test_rank_t *t, void *arg)
{
    rondo_result_t error = RONDO_SUCCESS;
    world_t w;

    for (int how = 0; how < 4; how++) {
        op_t o = {.kind = GATHER, .block = 1000, .at = EDGE};
        test_note(t, "difference %d", how);
        world_open(&w, t, NULL, *(const uint64_t *)arg);
        o.at += t->rank == 1 && how == 0 ? 64 : 0;
        o.block += t->rank == 1 && how == 2;
        o.kind = t->rank == 1 && how == 3 ? ALL : GATHER;
        place(&w, &o, t->rank == 1 && how == 1, 0);
        set_all(&w, 0x31 + t->rank);
        test_barrier(t);
        TEST_OK(t, w.comm, post(&w, &o));
        TEST_CUDA(t, cudaStreamSynchronize(w.stream)); /* the kernels leave */
        TEST_OK(t, w.comm, rondo_comm_get_error(w.comm, &error));
        TEST_TRUE(t, error == RONDO_ERR_MISMATCH);
        TEST_TRUE(t, strstr(rondo_last_error(w.comm), "rank ") != NULL);
        TEST_GIVES(t, w.comm, error, post(&w, &o));
        untouched(&w, 0x31 + t->rank);
        test_barrier(t);
        world_close(&w, 1);
    }
}

/* What is not registered, not at all ranks or not as long, is refused; the right call works then. */
static void refused(test_rank_t *t, void *arg)
{
    rondo_registration_t less;
    world_t w;
    op_t o = {.kind = GATHER, .block = 1000, .at = EDGE, .round = 3};

    world_open(&w, t, NULL, *(const uint64_t *)arg);
    TEST_GIVES(t, w.comm, RONDO_ERR_INVALID_ARGUMENT,
               rondo_allgather(w.plain, w.buffer[0], 1000, RONDO_INT32, w.comm, w.stream));
    TEST_TRUE(t, strstr(rondo_last_error(w.comm), "send") && strstr(rondo_last_error(w.comm), "not registered"));
    TEST_GIVES(t, w.comm, RONDO_ERR_INVALID_ARGUMENT,
               rondo_broadcast(w.buffer[0], w.plain, 1000, RONDO_INT32, 0, w.comm, w.stream));
    TEST_TRUE(t, strstr(rondo_last_error(w.comm), "recv") != NULL);
    TEST_OK(t, w.comm, rondo_comm_deregister(w.comm, w.reg[0]));
    TEST_OK(t, w.comm, rondo_comm_register(w.comm, w.buffer[0], t->rank ? (size_t)INTS * sizeof(int) : 4000, &less));
    place(&w, &o, 0, 0);
    TEST_GIVES(t, w.comm, RONDO_ERR_INVALID_ARGUMENT, post(&w, &o));
    TEST_TRUE(t, t->rank == 0 || strstr(rondo_last_error(w.comm), "rank 0"));
    place(&w, &o, 1, 0);
    fill(&w, &o);
    TEST_OK(t, w.comm, post(&w, &o));
    take(&w, &o);
    verify(&w, &o);
    world_close(&w, 1);
}

/* The last rank is killed when the others have come. */
static void killed(test_rank_t *t, void *arg)
{
    world_t w;
    op_t o = {.kind = ALL, .block = 3000, .at = EDGE};

    world_open(&w, t, NULL, *(const uint64_t *)arg);
    place(&w, &o, 0, 0);
    fill(&w, &o);
    TEST_OK(t, w.comm, post(&w, &o));
    TEST_CUDA(t, cudaStreamSynchronize(w.stream));
    set_all(&w, 0x31 + t->rank);
    test_barrier(t);
    if (t->rank == t->nranks - 1)
        raise(SIGKILL);
    for (int i = 0; i < 3; i++)
        (void)post(&w, &o);
    TEST_CUDA(t, cudaStreamSynchronize(w.stream));
    TEST_GIVES(t, w.comm, RONDO_ERR_REMOTE, rondo_barrier(w.comm, w.stream));
    untouched(&w, 0x31 + t->rank);
    world_close(&w, 0);
}

/* Rank 1 does not wait so long as rank 0 copies, which begins later. Before it has said a word to the others, rank 0
 * knows. */
static void gives_up(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_result_t error = RONDO_SUCCESS;
    world_t w;
    op_t o = {.kind = GATHER, .block = 1000, .at = EDGE};

    config.timeout_ms = t->rank ? 300 : 0;
    setenv("SIM_LATE_COPIES", t->rank ? "0" : "1500000", 1);
    world_open(&w, t, &config, *(const uint64_t *)arg);
    place(&w, &o, 0, 0);
    fill(&w, &o);
    if (t->rank)
        TEST_OK(t, w.comm, post(&w, &o));
    test_barrier(t);
    if (t->rank == 0)
        TEST_OK(t, w.comm, post(&w, &o));
    TEST_CUDA(t, cudaStreamSynchronize(w.stream));
    if (t->rank == 0) {
        TEST_OK(t, w.comm, rondo_comm_get_error(w.comm, &error));
        TEST_TRUE(t, error == RONDO_ERR_REMOTE && strstr(rondo_last_error(w.comm), "rank 1"));
    }
    test_barrier(t);
    TEST_TRUE(t, rondo_barrier(w.comm, w.stream) != RONDO_SUCCESS);
    test_barrier(t);
    world_close(&w, 1);
}

static int run_killed(int nranks, uint64_t seed)
{
    test_director_t director = {.victims = 1u << (nranks - 1)};

    return test_run_directed(&director, nranks, 60, killed, &seed);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        test_body_fn body;
        int least, most; /* ranks */
    } parts[] = {{"rounds", rounds, 2, 4}, {"graphs", graphs, 2, 3}, {"differs", differs, 3, 3},
                 {"refused", refused, 2, 2}, {"gives up", gives_up, 2, 2}};
    uint64_t seed = argc == 3 && strcmp(argv[1], "--seed") == 0 ? strtoull(argv[2], NULL, 0) : 5;
    int bad = 0;

    test_begin("copies", 300);
    setenv("RONDO_CUDA_COPY", "64", 0);
    setenv("RONDO_ALGO", "allgather=copy,alltoall=copy,broadcast=copy", 1); /* however short */
    setenv("SIM_LATE_COPIES", "500", 0);
    if (device_none())
        return TEST_SKIPPED;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && bad == 0; i++)
        for (int n = parts[i].least; n <= parts[i].most && bad == 0; n++) {
            if (parts[i].body == gives_up && !sim_live) /* no copy takes so long */
                continue;
            bad += test_run(TEST_PROCESSES, n, 140, parts[i].body, &seed);
            printf("copies: %s, %d ranks, seed %llu: %s\n", parts[i].name, n, (unsigned long long)seed,
                   bad ? "WRONG" : "right");
        }
    if (bad == 0) {
        bad += run_killed(3, seed);
        printf("copies: killed, 3 ranks: %s\n", bad ? "WRONG" : "right");
    }
    return bad != 0;
}
