/* Operations between played nodes, which go by phases (lib/sched/phases.h, lib/exec/cuda/hier/hier_run.c): at lengths
 * about those from which they do, and about the ends of pieces; from every root, in place and not, plainly and from
 * graphs. How many kernels a graph has got tells what went how: of an operation that is short, or that cannot be cut,
 * there is one. Ranks that abort or are killed in the middle do so here, too.
 *
 *   rails [--seed S] [--nodes 2+2] [--whole]
 *
 * --whole: on every layout, and every case plainly too, and from its graph twice; otherwise on the layouts that have
 * the others' traits, where the longest case of each operation and type goes one of these ways, and a layout has every
 * other root, skew and further length of float32: a layout like it has the others.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu/device.h"

#define FIFOS 1 /* whose memory is the scratch of an operation that has pieces */
#define SCRATCH ((size_t)FIFOS * 16 * 1024)
#define REST 256    /* bytes of it that a reduction does not use */
#define LOST 384    /* and where nodes differ a reduce-scatter, for each node */
#define SHORT 1024u /* RONDO_PROXY_ROUND: bytes from which a part goes inside a node */
#define INTS ((size_t)20000)

typedef struct {
    const char *nodes;
    int here;    /* ranks on each node; 0: not equally many, or one */
    int ordered; /* they are counted node by node */
    int rails;   /* places that every node has; 0: nowhere has a node several ranks */
    int nnodes;
    int seldom; /* only with --whole, or if it is named */
    int turn;   /* 0 or 1: which cases it has of those that go by turns */
} map_t;

static const map_t maps[] = {{"2+2", 2, 1, 2, 2, 0, 0},   {"3+3", 3, 1, 3, 2, 1, 1},    {"2+2+2", 2, 1, 2, 3, 1, 0},
                             {"abab", 2, 0, 2, 2, 1, 1},  {"abbcca", 2, 0, 2, 3, 0, 1}, {"4+2", 0, 1, 2, 2, 0, 0},
                             {"2+1+3", 0, 1, 1, 3, 0, 1}, {"abbba", 0, 0, 2, 2, 0, 1},  {"1+1+1", 0, 1, 0, 3, 0, 1}};
#define MAPS (sizeof maps / sizeof maps[0])

typedef struct {
    const map_t *map;
    uint64_t seed;
    int whole;
} options_t;

typedef struct {
    test_rank_t *t;
    const map_t *map;
    rondo_comm_t comm;
    cudaStream_t stream;
    uint64_t random; /* the same on all ranks */
    int whole;
    unsigned turn; /* counts the longest cases */
} walk_t;

static int has_blocks(do_what_t what)
{
    return what == DO_ALLGATHER || what == DO_ALLGATHERV || what == DO_REDUCE_SCATTER || what == DO_ALLTOALL;
}

/* From the root or to it, a block each. */
static int has_one_side(do_what_t what)
{
    return what == DO_GATHER || what == DO_GATHERV || what == DO_SCATTER || what == DO_SCATTERV;
}

/* Elements of a whole, or of a block, that a piece holds; those that have none: some length. */
static size_t piece_of(const walk_t *w, const do_case_t *c)
{
    size_t element = ref_size(c->type), nodes = (size_t)w->map->nnodes, rails = (size_t)w->map->rails;

    if (rails && c->what == DO_REDUCE)
        return (SCRATCH - REST) / element * rails;
    if (rails && c->what == DO_REDUCE_SCATTER)
        return w->map->here ? SCRATCH / nodes / 128 * 128 / element
                            : (SCRATCH - LOST * nodes) * rails / (size_t)w->t->nranks / element;
    return 5000;
}

/* Bytes that all kinds of rails ask for, but those of an exchange. */
static size_t bytes_of(const walk_t *w, const do_case_t *c)
{
    size_t bytes = c->count * ref_size(c->type), all = bytes * (size_t)w->t->nranks / (size_t)w->map->nnodes;

    if (!w->map->here && w->map->ordered && (c->what == DO_REDUCE_SCATTER || c->what == DO_REDUCE_SCATTERV))
        return all;
    if (c->what == DO_ALLGATHERV)
        return all;
    return has_blocks(c->what) && w->map->rails ? bytes * (size_t)w->map->rails : bytes;
}

/* Where nodes differ, sums of which a rank has its block, or one rank all. */
static int sums_to_one(const walk_t *w, do_what_t what)
{
    return !w->map->here && (what == DO_REDUCE || what == DO_REDUCE_SCATTER || what == DO_REDUCE_SCATTERV);
}

/* A quarter where nothing is summed, and four times where sums go to one; for each rail where nodes differ; much where
 * there is a reduction for each rank. */
static size_t short_of(const walk_t *w, do_what_t what)
{
    size_t rails = w->map->rails ? (size_t)w->map->rails : 1, each = w->map->here ? 1 : rails;

    if (what == DO_REDUCE_SCATTERV && (w->map->here || !w->map->ordered))
        return 32 * SHORT * rails;
    if (what == DO_BROADCAST || what == DO_ALLGATHER || what == DO_ALLGATHERV)
        return SHORT / 4 * each;
    if (sums_to_one(w, what))
        return 4 * SHORT * each;
    return what == DO_ALLTOALL || has_one_side(what) ? SHORT : SHORT * each;
}

/* These are not cut where ranks are not counted node by node. */
static int is_whole(const walk_t *w, do_what_t what)
{
    return !w->map->ordered &&
           (what == DO_REDUCE_SCATTER || (!w->map->here && (what == DO_ALLGATHER || what == DO_ALLGATHERV)));
}

/* Averages that are divided at the end, or summed in a wider type, go by proxies alone. */
static int goes_alone(const do_case_t *c)
{
    return c->op == RONDO_AVG && (c->type == RONDO_INT32 || c->type == RONDO_BFLOAT16);
}

/* The kernels of the first rank, at least, which is not alone on its node; 1: no more. */
static size_t kernels_wanted(const walk_t *w, const do_case_t *c)
{
    size_t piece = piece_of(w, c), pieces = (c->count + piece - 1) / piece;

    if (!w->map->rails || goes_alone(c) || is_whole(w, c->what) || (w->map->rails < 2 && sums_to_one(w, c->what)))
        return 1;
    if (has_one_side(c->what) && w->t->rank != c->root)
        return 1; /* inside the root's node alone, or else the root had one, too */
    if (bytes_of(w, c) < short_of(w, c->what) && c->what != DO_ALLTOALLV)
        return 1;
    if (c->what == DO_REDUCE_SCATTER)
        return pieces * ((size_t)w->map->nnodes + 1);
    if (c->what == DO_REDUCE_SCATTERV)
        return !w->map->here && w->map->ordered ? (size_t)w->map->nnodes + 1 : 2 * (size_t)w->t->nranks;
    return c->what == DO_REDUCE && pieces > 1 ? 2 * pieces - 1 : 2; /* the last may be too short for some rails */
}

static void post(walk_t *w, device_call_t *d)
{
    if (!TEST_OK(w->t, w->comm, device_post(d, w->comm, w->stream)))
        test_stop(w->t, "cannot go on");
}

static void plain(walk_t *w, const do_case_t *c)
{
    device_call_t d;
    char text[200];

    do_text(c, text, sizeof text);
    test_note(w->t, "%s", text);
    device_prepare(w->t, &d, c, 0);
    device_fill(w->t, &d, w->stream);
    post(w, &d);
    device_verify(w->t, &d, 1, w->stream);
    device_release(&d);
}

static void captured(walk_t *w, const do_case_t *c, int times)
{
    size_t wanted = kernels_wanted(w, c), kernels;
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    device_call_t d;
    char text[200];

    do_text(c, text, sizeof text);
    test_note(w->t, "%s, from a graph", text);
    device_prepare(w->t, &d, c, 0);
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    post(w, &d);
    TEST_CUDA(w->t, cudaStreamEndCapture(w->stream, &graph));
    kernels = device_nodes_of(w->t, graph, cudaGraphNodeTypeKernel);
    if ((w->map->here || w->t->rank == 0) && (wanted == 1 ? kernels != 1 : kernels < wanted))
        test_fail(w->t, "%zu kernels, should be %zu", kernels, wanted);
    TEST_CUDA(w->t, cudaGraphInstantiate(&exec, graph, 0));
    TEST_CUDA(w->t, cudaGraphDestroy(graph));
    test_barrier(w->t); /* as long as others instantiate theirs, which may wait for what runs on the device */
    for (int i = 0; i < times; i++) {
        device_fill(w->t, &d, w->stream);
        TEST_CUDA(w->t, cudaGraphLaunch(exec, w->stream));
    }
    device_verify(w->t, &d, 1, w->stream);
    device_graphs_destroy(w->t, &exec, 1);
    device_release(&d);
}

/* `longest`: this case has all that the shorter ones of its kind have. */
static void run_case(walk_t *w, do_case_t *c, int longest)
{
    int plainly = w->whole || (longest && w->turn % 2), twice = w->whole || (longest && w->turn % 2 == 0);

    c->seed = test_random(&w->random) >> 32;
    c->data = do_reduces(c->what) ? REF_EXACT : REF_BYTES;
    c->in_place = do_has_in_place(c->what) && test_below(&w->random, 2);
    c->send_shift = (int)(test_below(&w->random, 3) * ref_size(c->type));
    c->recv_shift = (int)(test_below(&w->random, 3) * ref_size(c->type));
    w->turn += (unsigned)longest;
    if (plainly)
        plain(w, c);
    captured(w, c, twice ? 2 : 1);
    if (test_failures(w->t) > 10)
        test_stop(w->t, "too many failures");
}

/* The other layouts' turn. */
static int others_turn(const walk_t *w, int i)
{
    return !w->whole && (i + w->map->turn) % 2 != 0;
}

/* About the length from which a part goes inside, and about the ends of one and two pieces; of float32 these, too. */
static void walk_lengths(walk_t *w, do_case_t *c)
{
    size_t piece = piece_of(w, c), first = 1;

    for (c->count = 1; bytes_of(w, c) < short_of(w, c->what); c->count++)
        first = c->count + 1;
    const size_t counts[] = {first, 2 * piece + 3, first - 1, piece + 1, 1, piece};
    enum { LONGEST = 1, BY_TURNS = 4 };
    for (size_t i = 0; i < (w->map->rails && c->type == RONDO_FLOAT32 ? 6 : 2); i++) {
        if (i >= BY_TURNS && others_turn(w, (int)i))
            continue;
        c->count = counts[i];
        c->root = do_rooted(c->what) ? (int)test_below(&w->random, (unsigned)w->t->nranks) : 0;
        run_case(w, c, i == LONGEST);
    }
}

static void walk_roots(walk_t *w, do_what_t what)
{
    do_case_t c = {.what = what, .type = RONDO_INT32, .op = RONDO_SUM};

    for (c.root = 0; c.root < w->t->nranks; c.root++) {
        if (others_turn(w, c.root + (int)what))
            continue;
        c.count = piece_of(w, &c) + 1 + (size_t)c.root;
        run_case(w, &c, c.root == w->t->nranks - 1);
    }
}

static void walk_skews(walk_t *w, do_what_t what, size_t count)
{
    do_case_t c = {.what = what, .type = RONDO_INT32, .op = RONDO_SUM, .count = count};

    c.data = do_reduces(what) ? REF_EXACT : REF_BYTES;
    for (c.skew = 0; c.skew < 6; c.skew++) {
        if (others_turn(w, c.skew))
            continue;
        c.in_place = c.skew % 3 == 1;
        plain(w, &c);
    }
}

static void walk_unequal(walk_t *w, do_what_t what)
{
    do_case_t c = {.what = what, .type = RONDO_INT32, .op = RONDO_SUM, .count = 3000};

    for (c.root = 0; c.root < w->t->nranks; c.root++) {
        c.skew = 0;
        if (!others_turn(w, c.root))
            run_case(w, &c, c.root >= w->t->nranks - 2);
        c.skew = 1 + c.root;
        if (!others_turn(w, c.root + 1))
            plain(w, &c);
    }
}

static void walk(walk_t *w)
{
    static const struct {
        do_what_t what;
        rondo_type_t type;
        rondo_op_t op;
    } few[] = {
        {DO_ALLREDUCE, RONDO_FLOAT32, RONDO_SUM},      {DO_REDUCE, RONDO_FLOAT32, RONDO_SUM},
        {DO_ALLREDUCE, RONDO_FLOAT64, RONDO_AVG},      {DO_ALLREDUCE, RONDO_INT32, RONDO_AVG},
        {DO_REDUCE, RONDO_UINT8, RONDO_MAX},           {DO_REDUCE, RONDO_INT32, RONDO_AVG},
        {DO_REDUCE_SCATTER, RONDO_FLOAT32, RONDO_SUM}, {DO_REDUCE_SCATTER, RONDO_BFLOAT16, RONDO_AVG},
        {DO_REDUCE_SCATTER, RONDO_INT32, RONDO_AVG},   {DO_REDUCE_SCATTER, RONDO_COMPLEX128, RONDO_SUM},
        {DO_BROADCAST, RONDO_FLOAT32, RONDO_SUM},      {DO_ALLGATHER, RONDO_FLOAT32, RONDO_SUM},
        {DO_ALLGATHERV, RONDO_FLOAT32, RONDO_SUM},     {DO_ALLTOALL, RONDO_FLOAT32, RONDO_SUM},
        {DO_ALLTOALL, RONDO_UINT8, RONDO_SUM},         {DO_GATHER, RONDO_FLOAT32, RONDO_SUM},
        {DO_GATHER, RONDO_UINT8, RONDO_SUM},           {DO_SCATTER, RONDO_FLOAT32, RONDO_SUM},
        {DO_SCATTER, RONDO_BFLOAT16, RONDO_SUM},       {DO_REDUCE_SCATTERV, RONDO_FLOAT32, RONDO_SUM},
        {DO_REDUCE_SCATTERV, RONDO_INT32, RONDO_AVG},
    };
    do_case_t v = {.what = DO_ALLTOALLV, .type = RONDO_INT32, .op = RONDO_SUM, .count = 3000};

    for (size_t i = 0; i < sizeof few / sizeof few[0]; i++) {
        do_case_t c = {.what = few[i].what, .type = few[i].type, .op = few[i].op};
        walk_lengths(w, &c);
    }
    walk_roots(w, DO_REDUCE);
    walk_roots(w, DO_BROADCAST);
    walk_roots(w, DO_GATHER);
    walk_roots(w, DO_SCATTER);
    run_case(w, &v, 1);
    v.skew = 5;
    plain(w, &v);
    walk_skews(w, DO_ALLGATHERV, 3000);
    walk_skews(w, DO_REDUCE_SCATTERV, 30000);
    walk_unequal(w, DO_GATHERV);
    walk_unequal(w, DO_SCATTERV);
}

/* Each rank's result over its own block of the input: the other place that a reduce-scatter has. */
static void in_own_block(walk_t *w)
{
    size_t n = (size_t)w->t->nranks, rank = (size_t)w->t->rank;
    int *buffer = device_memory(w->t, n * INTS * sizeof(int), 0), *own = buffer + rank * INTS;
    int *host = device_memory(w->t, n * INTS * sizeof(int), 1);

    test_note(w->t, "reduce_scatter into the own block");
    for (size_t i = 0; i < n * INTS; i++)
        host[i] = (int)(i % 1000 + rank * i % 7);
    TEST_CUDA(w->t, cudaMemcpyAsync(buffer, host, n * INTS * sizeof(int), cudaMemcpyDefault, w->stream));
    TEST_OK(w->t, w->comm, rondo_reduce_scatter(buffer, own, INTS, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
    TEST_CUDA(w->t, cudaMemcpyAsync(host, own, INTS * sizeof(int), cudaMemcpyDefault, w->stream));
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    for (size_t k = 0; k < INTS; k++) {
        size_t i = rank * INTS + k, sum = 0;
        for (size_t r = 0; r < n; r++)
            sum += i % 1000 + r * i % 7;
        if (host[k] != (int)sum)
            test_stop(w->t, "int %zu is %d, should be %zu", k, host[k], sum);
    }
    device_memory_back(host);
    device_memory_back(buffer);
}

/* Every contribution is scaled once, that of a rank which is alone on its node, too. The last rank, or all, have the
 * result. */
static void scaled(walk_t *w, do_what_t what)
{
    size_t n = (size_t)w->t->nranks, count = what == DO_REDUCE_SCATTER ? INTS / n : INTS;
    int *buffer = device_memory(w->t, INTS * sizeof(int), 0), *host = device_memory(w->t, INTS * sizeof(int), 1);
    int scale = w->t->rank + 2, sum = 0;
    rondo_op_t op;

    test_note(w->t, "%s of what is scaled", do_name(what));
    for (int r = 0; r < w->t->nranks; r++)
        sum += (r + 2) * (r + 1);
    for (size_t i = 0; i < INTS; i++)
        host[i] = w->t->rank + 1;
    TEST_OK(w->t, w->comm, rondo_op_create_premulsum(&op, &scale, RONDO_INT32, 0, w->comm));
    TEST_CUDA(w->t, cudaMemcpyAsync(buffer, host, INTS * sizeof(int), cudaMemcpyDefault, w->stream));
    TEST_OK(w->t, w->comm,
            what == DO_ALLREDUCE ? rondo_allreduce(buffer, buffer, count, RONDO_INT32, op, w->comm, w->stream)
            : what == DO_REDUCE
                ? rondo_reduce(buffer, buffer, count, RONDO_INT32, op, w->t->nranks - 1, w->comm, w->stream)
                : rondo_reduce_scatter(buffer, buffer, count, RONDO_INT32, op, w->comm, w->stream));
    TEST_CUDA(w->t, cudaMemcpyAsync(host, buffer, INTS * sizeof(int), cudaMemcpyDefault, w->stream));
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    for (size_t i = 0; i < count && (what != DO_REDUCE || w->t->rank == w->t->nranks - 1); i++)
        if (host[i] != sum)
            test_stop(w->t, "int %zu is %d, should be %d", i, host[i], sum);
    TEST_OK(w->t, w->comm, rondo_op_destroy(op, w->comm));
    device_memory_back(host);
    device_memory_back(buffer);
}

static void right(test_rank_t *t, void *arg)
{
    const options_t *o = arg;
    walk_t w = {.t = t, .map = o->map, .random = o->seed, .whole = o->whole, .turn = (unsigned)o->map->turn};

    w.comm = device_comm(t);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking));
    walk(&w);
    in_own_block(&w);
    scaled(&w, DO_ALLREDUCE);
    scaled(&w, DO_REDUCE);
    scaled(&w, DO_REDUCE_SCATTER);
    device_end(t, w.comm, &w.stream, 1);
}

/* A little more than a piece, which is everywhere as long as the fullest node has scratch for. */
#define LONG_NODES "5+2"
#define LONG (2 * ((size_t)2 << 20) + 1000) /* a rail has half of it */
static void long_piece(test_rank_t *t, void *unused)
{
    const do_case_t c = {.what = DO_REDUCE, .type = RONDO_UINT8, .op = RONDO_MAX, .count = LONG, .root = 5};
    walk_t w = {.t = t};

    (void)unused;
    w.comm = device_comm(t);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking));
    plain(&w, &c);
    device_end(t, w.comm, &w.stream, 1);
}

static int run_long(void)
{
    setenv("RONDO_CUDA_FIFOS", "512", 1);
    int wrong = test_run(TEST_PROCESSES, device_nodes(LONG_NODES), 60, long_piece, NULL);
    setenv("RONDO_CUDA_FIFOS", "1", 1);
    printf("rails: %s, a long reduce: %s\n", LONG_NODES, wrong ? "WRONG" : "right");
    return wrong;
}

/* ---- in the middle */

typedef struct {
    do_what_t what;
    int kill_it;
} middle_t;

static rondo_result_t long_one(do_what_t what, const int *in, int *out, rondo_comm_t comm, cudaStream_t stream)
{
    if (what == DO_REDUCE)
        return rondo_reduce(in, out, 4 * INTS, RONDO_INT32, RONDO_SUM, 0, comm, stream);
    if (what == DO_ALLREDUCE)
        return rondo_allreduce(in, out, 4 * INTS, RONDO_INT32, RONDO_SUM, comm, stream);
    if (what == DO_REDUCE_SCATTER)
        return rondo_reduce_scatter(in, out, INTS, RONDO_INT32, RONDO_SUM, comm, stream);
    if (what == DO_GATHER)
        return rondo_gather(in, out, INTS, RONDO_INT32, 0, comm, stream);
    return rondo_alltoall(in, out, INTS, RONDO_INT32, comm, stream);
}

/* The last rank goes: the others leave, and say who it was. */
static void in_the_middle(test_rank_t *t, void *arg)
{
    const middle_t *m = arg;
    int gone = t->nranks - 1;
    rondo_comm_t comm = device_comm(t);
    size_t bytes = 8 * INTS * sizeof(int); /* of so many ranks, at most */
    int *in = device_memory(t, bytes, 0), *out = device_memory(t, bytes, 0);
    cudaStream_t stream;
    char name[20];

    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TEST_CUDA(t, cudaMemsetAsync(in, 0, bytes, stream));
    TEST_OK(t, comm, long_one(m->what, in, out, comm, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    test_barrier(t);
    if (t->rank == gone) {
        TEST_OK(t, comm, long_one(m->what, in, out, comm, stream));
        if (m->kill_it)
            raise(SIGKILL);
        TEST_OK(t, NULL, rondo_comm_abort(comm));
        comm = NULL;
    } else {
        for (int i = 0; i < 4; i++) /* kernels or calls find it out */
            (void)long_one(m->what, in, out, comm, stream);
        (void)rondo_barrier(comm, stream); /* a gather waits for nobody but at its root */
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        TEST_GIVES(t, comm, RONDO_ERR_REMOTE, rondo_barrier(comm, stream));
        snprintf(name, sizeof name, "rank %d", gone);
        TEST_TRUE(t, strstr(rondo_last_error(comm), name) != NULL);
    }
    if (m->kill_it) /* no barrier comes about any more */
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    else
        device_end(t, comm, &stream, 1);
}

static int gone(const char *nodes, do_what_t what)
{
    int ranks = device_nodes(nodes), bad = 0;

    for (int kill_it = 0; kill_it < 2; kill_it++) {
        middle_t m = {what, kill_it};
        test_director_t director = {.victims = 1u << (ranks - 1)};
        int wrong = m.kill_it ? test_run_directed(&director, ranks, 60, in_the_middle, &m)
                              : test_run(TEST_PROCESSES, ranks, 60, in_the_middle, &m);
        printf("rails: %s, %s in the middle of a %s: %s\n", nodes, m.kill_it ? "killed" : "aborted", do_name(m.what),
               wrong ? "WRONG" : "right");
        bad += wrong;
    }
    return bad;
}

/* ---- */

static void probe(test_rank_t *t, void *unsupported)
{
    rondo_comm_t comm = test_comm_on(t, 2);

    if (comm)
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    else
        *(int *)unsupported = 1;
}

static int run(const char *only, uint64_t seed, int whole)
{
    int bad = 0;

    for (size_t i = 0; i < MAPS; i++) {
        const map_t *m = &maps[i];
        options_t o = {m, seed + i, whole};
        if (only ? strcmp(only, m->nodes) != 0 : m->seldom && !whole)
            continue;
        int wrong = test_run(TEST_PROCESSES, device_nodes(m->nodes), 200, right, &o);
        printf("rails: %s, seed %llu: %s\n", m->nodes, (unsigned long long)o.seed, wrong ? "WRONG" : "right");
        bad += wrong;
    }
    bad += run_long();
    bad += gone("2+2", DO_REDUCE) + gone("2+2", DO_REDUCE_SCATTER) + gone("2+2", DO_ALLTOALL) + gone("2+2", DO_GATHER);
    bad += gone("2+4", DO_REDUCE) + gone("2+3", DO_REDUCE_SCATTER); /* two ranks have no part between nodes */
    return bad + gone("3+1", DO_ALLREDUCE) + gone("1+3", DO_ALLREDUCE);
}

int main(int argc, char **argv)
{
    static const struct option table[] = {
        {"seed", 1, NULL, 's'}, {"nodes", 1, NULL, 'n'}, {"whole", 0, NULL, 'w'}, {NULL, 0, NULL, 0}};
    int *unsupported = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), option;
    const char *only = NULL;
    uint64_t seed = 1;
    int whole = 0;

    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == 's')
            seed = strtoull(optarg, NULL, 0);
        else if (option == 'n')
            only = optarg;
        else if (option == 'w')
            whole = 1;
        else
            return 2;
    }
    if (unsupported == MAP_FAILED)
        return 2;
    test_begin("rails", 400);
    setenv("RONDO_PROXY_BYTES", "16K", 1);
    setenv("RONDO_PROXY_ROUND", "1K", 1); /* SHORT */
    setenv("RONDO_CUDA_FIFOS", "1", 1);   /* FIFOS */
    setenv("RONDO_PROXY_THREADS", "3", 0);
    if (device_none())
        return TEST_SKIPPED;
    (void)device_nodes("1+1");
    if (test_run(TEST_PROCESSES, 2, 60, probe, unsupported) != 0)
        return 1;
    if (*unsupported) /* not even a network */
        return sim_live ? TEST_SKIPPED : 0;
    return run(only, seed, whole) != 0;
}
