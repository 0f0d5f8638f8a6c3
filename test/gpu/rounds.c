/* Operations that take many rounds. Between nodes proxy channels share them, and rounds come out of order, so what is
 * done in place must bear it; messages of several pieces stand beside short ones, and are grouped otherwise by sender
 * and receiver; everybody exchanges something with everybody; graphs of both come in turns with plain calls; and ranks
 * abort or are killed in the middle. Between nodes also what RONDO_ALGO and RONDO_PROTO force.
 *
 *   rounds [--nodes [MAP]|--many]   between played nodes, or those of one MAP (2+2) alone; with more ranks than map
 *                                   each other's memory, on one node and on two; without: on one, where rounds are
 *                                   passes of the kernels
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/device.h"

#define INTS ((size_t)40000)
#define LONG ((size_t)1100000) /* more than a piece of exec/cuda/copy_over.c, of few ranks */
#define FEW 3
#define MESSAGES 12

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    cudaStream_t stream;
    int *in, *out, *host; /* host: pinned */
    size_t room;          /* ints of each */
} world_t;

static int rounds = 3; /* of everything */

static int value(int rank, int round, size_t i)
{
    return (rank + 1) * 1000000 + round * 100000 + (int)(i % 90001);
}

static int sum(int nranks, int round, size_t i)
{
    int s = 0;

    for (int r = 0; r < nranks; r++)
        s += value(r, round, i);
    return s;
}

/* Behind what is in the stream, and before what comes. */
static void fill(world_t *w, int *device, int round, size_t ints)
{
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    for (size_t i = 0; i < ints; i++)
        w->host[i] = value(w->t->rank, round, i);
    TEST_CUDA(w->t, cudaMemcpyAsync(device, w->host, ints * sizeof(int), cudaMemcpyDefault, w->stream));
}

static void fetch(world_t *w, const int *device, size_t ints)
{
    TEST_CUDA(w->t, cudaMemcpyAsync(w->host, device, ints * sizeof(int), cudaMemcpyDefault, w->stream));
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
}

static void same(world_t *w, const char *what, size_t i, int got, int wanted)
{
    if (got != wanted)
        test_stop(w->t, "%s: int %zu is %d, should be %d", what, i, got, wanted);
}

/* ---- in place */

static void sums(world_t *w, int round)
{
    fill(w, w->in, round, INTS);
    TEST_OK(w->t, w->comm, rondo_allreduce(w->in, w->in, INTS, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
    fetch(w, w->in, INTS);
    for (size_t i = 0; i < INTS; i++)
        same(w, "allreduce", i, w->host[i], sum(w->t->nranks, round, i));
}

/* Blocks of a reduce_scatter. Rank 0's is so short that the others' results lie over what is yet to be read of further
 * blocks. */
typedef struct {
    size_t counts[TEST_MAX_RANKS], before, all; /* before: what lies before this rank's */
} blocks_t;

static blocks_t blocks_of(const test_rank_t *t, size_t last)
{
    blocks_t b = {.before = 0};

    for (int r = 0; r < t->nranks; r++) {
        b.counts[r] = r == 0 ? 3 : r == t->nranks - 1 ? last : INTS / 2 + (size_t)r;
        b.before += r < t->rank ? b.counts[r] : 0;
        b.all += b.counts[r];
    }
    return b;
}

static void scattered_is_right(world_t *w, const blocks_t *b, const int *data, int round)
{
    size_t own = b->counts[w->t->rank];

    fetch(w, data, own);
    for (size_t i = 0; i < own; i++)
        same(w, "reduce_scatterv", i, w->host[i], sum(w->t->nranks, round, b->before + i));
}

static void scattered(world_t *w, int round)
{
    const blocks_t b = blocks_of(w->t, INTS - 3);

    fill(w, w->in, round, b.all);
    TEST_OK(w->t, w->comm, rondo_reduce_scatterv(w->in, w->in, b.counts, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
    scattered_is_right(w, &b, w->in, round);
}

static void gathered(world_t *w, int round)
{
    int n = w->t->nranks, *own = w->in + (size_t)w->t->rank * (INTS / 2);

    fill(w, own, round, INTS / 2);
    TEST_OK(w->t, w->comm, rondo_allgather(own, w->in, INTS / 2, RONDO_INT32, w->comm, w->stream));
    fetch(w, w->in, (size_t)n * (INTS / 2));
    for (int r = 0; r < n; r++)
        for (size_t i = 0; i < INTS / 2; i++)
            same(w, "allgather", i, w->host[(size_t)r * (INTS / 2) + i], value(r, round, i));
}

/* In place and, at odd rounds, not: then the root has its copy too. */
static void spread(world_t *w, int round, int root)
{
    int *to = round % 2 ? w->out : w->in;

    fill(w, w->in, round, INTS);
    TEST_CUDA(w->t, cudaMemsetAsync(w->out, 0xff, INTS * sizeof(int), w->stream));
    TEST_OK(w->t, w->comm, rondo_broadcast(w->in, to, INTS - 1, RONDO_INT32, root, w->comm, w->stream));
    fetch(w, to, INTS);
    for (size_t i = 0; i < INTS - 1; i++)
        same(w, "broadcast", i, w->host[i], value(root, round, i));
    same(w, "behind a broadcast", INTS - 1, w->host[INTS - 1], round % 2 ? -1 : value(w->t->rank, round, INTS - 1));
}

/* An estimate has a price for what it sums up, or says that there is none. */
static void estimated(world_t *w, int proxied)
{
    size_t counts[TEST_MAX_RANKS];
    double us = 77;

    for (int r = 0; r < w->t->nranks; r++)
        counts[r] = 10 + (size_t)r;
    for (int uneven = 0; uneven < 2; uneven++) {
        int priced = !proxied && !uneven;

        test_note(w->t, "an estimate of %s", uneven ? "reduce_scatterv" : "allreduce");
        TEST_OK(w->t, NULL, rondo_group_start());
        TEST_OK(w->t, w->comm, rondo_allreduce(w->in, w->in, INTS, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
        if (uneven)
            TEST_OK(w->t, w->comm,
                    rondo_reduce_scatterv(w->in, w->out, counts, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
        TEST_GIVES(w->t, w->comm, priced ? RONDO_SUCCESS : RONDO_ERR_UNSUPPORTED, rondo_group_estimate(&us));
        TEST_TRUE(w->t, priced ? us > 0 && us < 77000000 : us == 77);
        us = 77;
    }
}

/* Short ones in a row, in which only the last rank gets anything. */
static void briefly(world_t *w, int round)
{
    size_t counts[TEST_MAX_RANKS] = {0}, ints = 700;
    int n = w->t->nranks, last = n - 1;

    counts[last] = ints;
    fill(w, w->in, round, ints);
    for (int i = 0; i < 40; i++)
        TEST_OK(w->t, w->comm,
                rondo_reduce_scatterv(w->in, w->out, counts, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
    TEST_OK(w->t, w->comm, rondo_broadcast(w->out, w->out, ints, RONDO_INT32, last, w->comm, w->stream));
    fetch(w, w->out, ints);
    for (size_t i = 0; i < ints; i++)
        same(w, "inline", i, w->host[i], sum(n, round, i));
}

/* ---- messages */

static size_t length(int i)
{
    return i % 4 == 1 ? 9000 + (size_t)i : i % 4 == 3 ? 1500 : 1 + (size_t)i;
}

static void post(world_t *w, int i, size_t at, int send)
{
    int n = w->t->nranks, next = (w->t->rank + 1) % n, previous = (w->t->rank + n - 1) % n;

    if (send)
        TEST_OK(w->t, w->comm, rondo_send(w->in + at, length(i), RONDO_INT32, next, w->comm, w->stream));
    else
        TEST_OK(w->t, w->comm, rondo_recv(w->out + at, length(i), RONDO_INT32, previous, w->comm, w->stream));
}

/* Rank 0 has all in one group, the others groups of five. */
static size_t post_all(world_t *w)
{
    int each = w->t->rank == 0 ? MESSAGES : 5;
    size_t at = 0;

    for (int first = 0; first < MESSAGES; first += each) {
        TEST_OK(w->t, NULL, rondo_group_start());
        for (int i = first; i < first + each && i < MESSAGES; i++) {
            post(w, i, at, 0);
            post(w, i, at, 1);
            at += length(i);
        }
        TEST_OK(w->t, NULL, rondo_group_end());
    }
    return at;
}

static void messages(world_t *w, int round)
{
    int n = w->t->nranks, previous = (w->t->rank + n - 1) % n;
    size_t ints = 0;

    for (int i = 0; i < MESSAGES; i++)
        ints += length(i);
    fill(w, w->in, round, ints);
    TEST_CUDA(w->t, cudaMemsetAsync(w->out, 0xff, ints * sizeof(int), w->stream));
    post_all(w);
    fetch(w, w->out, ints);
    for (size_t i = 0; i < ints; i++)
        same(w, "messages", i, w->host[i], value(previous, round, i));
}

/* Message i of a pair: both ends know its length, and of one in three that it is none. */
static size_t pair_length(int from, int to, int i)
{
    return (from + to + i) % 3 == 0 ? 0 : (from * 7 + to + i) % 11 == 0 ? 700 : 1 + (size_t)(from + 2 * to + i) % 9;
}

/* Messages of a pair: more than a launch of staged ones has room for. */
static int each(const test_rank_t *t)
{
    return t->nranks > 6 ? 5 : 30;
}

/* In one group, so many messages from everybody to everybody, itself too: among many ranks more than a launch has pairs
 * for, too. Returns the ints of all that this rank receives. */
static size_t everybody_posts(world_t *w)
{
    size_t out = 0, in = 0;
    int rank = w->t->rank;

    TEST_OK(w->t, NULL, rondo_group_start());
    for (int peer = 0; peer < w->t->nranks; peer++)
        for (int i = 0; i < each(w->t); i++) {
            size_t to = pair_length(rank, peer, i), from = pair_length(peer, rank, i);
            TEST_OK(w->t, w->comm, rondo_send(w->in + out, to, RONDO_INT32, peer, w->comm, w->stream));
            TEST_OK(w->t, w->comm, rondo_recv(w->out + in, from, RONDO_INT32, peer, w->comm, w->stream));
            out += to;
            in += from;
        }
    TEST_OK(w->t, NULL, rondo_group_end());
    return in;
}

/* Where message i to `to` begins at its sender. */
static size_t pair_place(const test_rank_t *t, int from, int to, int i)
{
    size_t at = 0;

    for (int peer = 0; peer < t->nranks; peer++)
        for (int k = 0; k < each(t) && (peer < to || (peer == to && k < i)); k++)
            at += pair_length(from, peer, k);
    return at;
}

static void everybody_verifies(world_t *w, int round, size_t ints)
{
    int n = w->t->nranks, rank = w->t->rank;
    size_t at = 0;

    fetch(w, w->out, ints);
    for (int peer = 0; peer < n; peer++)
        for (int i = 0; i < each(w->t); i++) {
            size_t first = pair_place(w->t, peer, rank, i);
            for (size_t k = 0; k < pair_length(peer, rank, i); k++, at++)
                same(w, "everybody", at, w->host[at], value(peer, round, first + k));
        }
}

static void everybody(world_t *w, int round)
{
    fill(w, w->in, round, INTS / 2);
    TEST_CUDA(w->t, cudaMemsetAsync(w->out, 0xff, INTS / 2 * sizeof(int), w->stream));
    everybody_verifies(w, round, everybody_posts(w));
}

/* ---- graphs */

/* The same from a graph, beside which it is called plainly. */
static void everybody_replayed(world_t *w)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    size_t ints = everybody_posts(w);
    TEST_CUDA(w->t, cudaStreamEndCapture(w->stream, &graph));
    TEST_CUDA(w->t, cudaGraphInstantiate(&exec, graph, 0));
    TEST_CUDA(w->t, cudaGraphDestroy(graph));
    for (int round = 0; round < rounds; round++) {
        fill(w, w->in, round, INTS / 2);
        TEST_CUDA(w->t, cudaGraphLaunch(exec, w->stream));
        everybody_verifies(w, round, ints);
        everybody(w, round);
    }
    device_graphs_destroy(w->t, &exec, 1);
}

/* A graph that may be instantiated twice, as one with nodes that allocate may not. */
static void scattered_replayed(world_t *w)
{
    const blocks_t b = blocks_of(w->t, w->t->nranks <= FEW ? LONG : INTS - 3);
    cudaGraphExec_t exec[2];
    cudaGraph_t graph;

    test_note(w->t, "a graph of a reduce_scatterv in place");
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    TEST_OK(w->t, w->comm, rondo_reduce_scatterv(w->in, w->in, b.counts, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
    TEST_CUDA(w->t, cudaStreamEndCapture(w->stream, &graph));
    for (int i = 0; i < 2; i++)
        TEST_CUDA(w->t, cudaGraphInstantiate(&exec[i], graph, 0));
    TEST_CUDA(w->t, cudaGraphDestroy(graph));
    for (int round = 0; round < 4; round++) {
        fill(w, w->in, round, b.all);
        TEST_CUDA(w->t, cudaGraphLaunch(exec[round % 2], w->stream));
        scattered_is_right(w, &b, w->in, round);
    }
    device_graphs_destroy(w->t, exec, 2);
}

/* Of a long sum, messages and a short sum; replayed in turns with plain calls. */
static void graphs(world_t *w)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    size_t ints = 0;
    int n = w->t->nranks, previous = (w->t->rank + n - 1) % n;

    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    ints = post_all(w);
    TEST_OK(w->t, w->comm, rondo_allreduce(w->in, w->in, INTS, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
    TEST_OK(w->t, w->comm, rondo_allreduce(w->in, w->in, 1, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
    TEST_CUDA(w->t, cudaStreamEndCapture(w->stream, &graph));
    TEST_CUDA(w->t, cudaGraphInstantiate(&exec, graph, 0));
    TEST_CUDA(w->t, cudaGraphDestroy(graph));
    for (int round = 0; round < 2 * rounds; round++) {
        test_note(w->t, "replay %d", round);
        fill(w, w->in, round, INTS);
        TEST_CUDA(w->t, cudaGraphLaunch(exec, w->stream));
        fetch(w, w->in, INTS);
        for (size_t i = 1; i < INTS; i++)
            same(w, "replayed allreduce", i, w->host[i], sum(n, round, i));
        fetch(w, w->out, ints);
        for (size_t i = 0; i < ints; i++)
            same(w, "replayed messages", i, w->host[i], value(previous, round, i));
        sums(w, round);
    }
    device_graphs_destroy(w->t, &exec, 1);
}

/* ---- the parts */

static void begin(world_t *w, test_rank_t *t)
{
    *w = (world_t){.t = t, .room = (size_t)t->nranks * INTS + (t->nranks <= FEW ? LONG : 0)};
    w->comm = device_comm(t);
    w->in = device_memory(t, w->room * sizeof(int), 0);
    w->out = device_memory(t, w->room * sizeof(int), 0);
    w->host = device_memory(t, w->room * sizeof(int), 1);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking));
    test_barrier(t);
}

static void right(test_rank_t *t, void *arg)
{
    world_t w;

    begin(&w, t);
    estimated(&w, *(int *)arg);
    for (int round = 0; round < rounds; round++) {
        test_note(t, "round %d", round);
        sums(&w, round);
        scattered(&w, round);
        gathered(&w, round);
        for (int root = 0; root < t->nranks; root += 1 + t->nranks / 4)
            spread(&w, round, root);
        briefly(&w, round);
        messages(&w, round);
        everybody(&w, round);
    }
    graphs(&w);
    everybody_replayed(&w);
    scattered_replayed(&w);
    device_end(t, w.comm, &w.stream, 1);
}

/* The last rank goes while rounds of an operation are under way: the others leave, and say who it was. */
static void in_the_middle(test_rank_t *t, void *arg)
{
    int gone = t->nranks - 1, kill_it = *(int *)arg;
    char name[20];
    world_t w;

    begin(&w, t);
    sums(&w, 0);
    test_barrier(t);
    if (t->rank == gone) {
        TEST_OK(t, w.comm, rondo_allreduce(w.in, w.in, INTS, RONDO_INT32, RONDO_SUM, w.comm, w.stream));
        if (kill_it)
            raise(SIGKILL);
        TEST_OK(t, NULL, rondo_comm_abort(w.comm));
        w.comm = NULL;
    } else {
        for (int i = 0; i < 4; i++) /* kernels or calls find it out */
            (void)rondo_allreduce(w.in, w.in, INTS, RONDO_INT32, RONDO_SUM, w.comm, w.stream);
        TEST_CUDA(t, cudaStreamSynchronize(w.stream));
        TEST_GIVES(t, w.comm, RONDO_ERR_REMOTE, rondo_barrier(w.comm, w.stream));
        snprintf(name, sizeof name, "rank %d", gone);
        TEST_TRUE(t, strstr(rondo_last_error(w.comm), name) != NULL);
    }
    if (kill_it) /* no barrier comes about any more */
        TEST_OK(t, NULL, rondo_comm_destroy(w.comm));
    else
        device_end(t, w.comm, &w.stream, 1);
}

/* What is forced goes by that, inside a node or between nodes, or is refused with a sentence. */
typedef struct forced {
    const char *nodes, *algo, *proto;
    int allreduce, broadcast, alltoall; /* these are served */
} forced_t;

static const forced_t forced[] = {
    {"1+1", "ring", "", 1, 1, 0},
    {"1+1", "chain", "", 0, 1, 0},
    {"1+1", "allreduce=copy", "", 0, 1, 1},
    {"1+1", "", "ll128", 0, 0, 0},
    {"1+1", "", "ll", 0, 0, 0},
    {"1+1", "", "simple", 1, 1, 1},
    {"2+1", "allreduce=twoshot", "", 1, 1, 1},
    {"2+2", "", "ll128", 1, 1, 0},
    {"1+1", "allgather=messages", "", 1, 1, 1},
};

static void served(world_t *w, rondo_result_t result, int as, const char *what)
{
    test_note(w->t, "%s by what is forced", what);
    TEST_GIVES(w->t, w->comm, as ? RONDO_SUCCESS : RONDO_ERR_UNSUPPORTED, result);
    if (result == RONDO_ERR_UNSUPPORTED)
        TEST_TRUE(w->t, strstr(rondo_last_error(w->comm), "RONDO_ALGO") != NULL);
}

static void by_force(test_rank_t *t, void *arg)
{
    const forced_t *f = arg;
    world_t w;

    begin(&w, t);
    fill(&w, w.in, 0, INTS);
    served(&w, rondo_allreduce(w.in, w.in, INTS, RONDO_INT32, RONDO_SUM, w.comm, w.stream), f->allreduce, "allreduce");
    if (f->allreduce) {
        fetch(&w, w.in, INTS);
        for (size_t i = 0; i < INTS; i++)
            same(&w, "allreduce", i, w.host[i], sum(t->nranks, 0, i));
    }
    fill(&w, w.in, 1, INTS);
    served(&w, rondo_broadcast(w.in, w.in, INTS, RONDO_INT32, 0, w.comm, w.stream), f->broadcast, "broadcast");
    if (f->broadcast) {
        fetch(&w, w.in, INTS);
        for (size_t i = 0; i < INTS; i++)
            same(&w, "broadcast", i, w.host[i], value(0, 1, i));
    }
    served(&w, rondo_alltoall(w.in, w.out, 100, RONDO_INT32, w.comm, w.stream), f->alltoall, "alltoall");
    TEST_OK(t, w.comm, rondo_barrier(w.comm, w.stream));
    device_end(t, w.comm, &w.stream, 1);
}

static int run_forced(void)
{
    int bad = 0;

    for (size_t i = 0; i < sizeof forced / sizeof forced[0]; i++) {
        const forced_t *f = &forced[i];

        setenv("RONDO_ALGO", f->algo, 1);
        setenv("RONDO_PROTO", f->proto, 1);
        int wrong = test_run(TEST_PROCESSES, device_nodes(f->nodes), 60, by_force, (void *)(uintptr_t)f);
        printf("rounds: %s, RONDO_ALGO=%s RONDO_PROTO=%s: %s\n", f->nodes, f->algo, f->proto,
               wrong ? "WRONG" : "right");
        bad += wrong;
    }
    unsetenv("RONDO_ALGO");
    unsetenv("RONDO_PROTO");
    return bad;
}

/* "3": on one node. */
static int run(const char *nodes)
{
    int ranks = device_nodes(nodes), kill_it = 0, proxied = strchr(nodes, '+') || ranks > 16;
    int bad = test_run(TEST_PROCESSES, ranks, 120, right, &proxied);

    printf("rounds: %s: %s\n", nodes, bad ? "WRONG" : "right");
    bad += test_run(TEST_PROCESSES, ranks, 60, in_the_middle, &kill_it);
    printf("rounds: %s, aborted in the middle: %s\n", nodes, bad ? "WRONG" : "right");
    test_director_t director = {.victims = 1u << (ranks - 1)};
    kill_it = 1;
    bad += test_run_directed(&director, ranks, 60, in_the_middle, &kill_it);
    printf("rounds: %s, killed in the middle: %s\n", nodes, bad ? "WRONG" : "right");
    return bad;
}

int main(int argc, char **argv)
{
    int played = argc > 1 && strcmp(argv[1], "--nodes") == 0, many = argc > 1 && strcmp(argv[1], "--many") == 0;

    if (argc > 1 + 2 * played + many)
        return 2;
    test_begin("rounds", 400);
    setenv("RONDO_PROXY_BYTES", "16K", 0);
    setenv("RONDO_PROXY_ROUND", "2K", 0);
    setenv("RONDO_PROXY_THREADS", "3", 0);
    if (device_none())
        return TEST_SKIPPED;
    if (many) {
        rounds = 1; /* most of it is the ranks' waiting for processors */
        return run("18") + run("10+8") != 0;
    }
    if (!played)
        return run("3") != 0;
    if (argc > 2)
        return run_forced() + run(argv[2]) != 0;
    return run_forced() + run("1+1") + run("1+1+1") + run("2+2") + run("3+3") != 0;
}
