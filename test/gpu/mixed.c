/* Messages between ranks of one node and of different ones, and of a rank to itself, in the same groups, on played
 * nodes of several ranks each. Drawn from a seed: of any length, on two streams, grouped otherwise by each rank,
 * between sums, plainly and from graphs. Knots: what a rank has in one group the others have one behind the other, so
 * that a message within the node must not wait for one between nodes, nor the other way round. And a rank that dies,
 * aborts, leaves or is late while a rank of its node waits for its message.
 *
 *   mixed [--seed S] [--nodes | --on 2+2]    without: on one node, where all go the same way
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/device.h"

#define ROOM ((size_t)(sim_live ? 1 : 3) << 20) /* ints of each buffer */
#define LONG (sim_live ? (size_t)350000 : ROOM) /* more than is ever under way */
#define MESSAGES 40
#define OWN 7 /* messages of a group, at most: so few are one launch */
#define ROUNDS 4

typedef struct {
    int from, to;
    size_t ints, out, in; /* where it begins at its sender and its receiver */
} message_t;

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    cudaStream_t stream[2];
    cudaEvent_t event;
    int *in, *out, *host, *sum; /* host: pinned */
    uint64_t random;            /* the same on all ranks */
    uint64_t own;               /* of this one */
    message_t all[MESSAGES];
    int sums;
} world_t;

static uint64_t seed = 41;
static int first_of_other; /* rank */

static int value(int rank, int round, size_t i)
{
    return (rank + 1) * 10000000 + round * 1000000 + (int)(i % 900001);
}

/* ---- drawn */

static size_t draw_ints(uint64_t *r)
{
    switch (test_below(r, 8)) {
    case 0:
        return 0;
    case 1:
    case 2:
        return 1 + test_below(r, 8);
    case 3:
        return 1000 + test_below(r, 20000);
    case 4:
        return test_below(r, 12) ? test_below(r, 60000) : 300000 + test_below(r, 400000);
    default:
        return 1 + test_below(r, 3000);
    }
}

static void draw(world_t *w)
{
    size_t out[TEST_MAX_RANKS] = {0}, in[TEST_MAX_RANKS] = {0};
    unsigned n = (unsigned)w->t->nranks;

    for (int k = 0; k < MESSAGES; k++) {
        message_t *m = &w->all[k];
        m->from = (int)test_below(&w->random, n);
        m->to = (int)test_below(&w->random, n);
        m->ints = draw_ints(&w->random);
        if (out[m->from] + m->ints > ROOM || in[m->to] + m->ints > ROOM)
            m->ints = 0;
        m->out = out[m->from];
        m->in = in[m->to];
        out[m->from] += m->ints;
        in[m->to] += m->ints;
    }
}

static void fill(world_t *w, int round)
{
    test_rank_t *t = w->t;

    for (int s = 0; s < 2; s++)
        TEST_CUDA(t, cudaStreamSynchronize(w->stream[s]));
    for (size_t i = 0; i < ROOM; i++)
        w->host[i] = value(t->rank, round, i);
    TEST_CUDA(t, cudaMemcpyAsync(w->in, w->host, ROOM * sizeof(int), cudaMemcpyDefault, w->stream[0]));
    TEST_CUDA(t, cudaMemsetAsync(w->out, 0xff, ROOM * sizeof(int), w->stream[0]));
    TEST_CUDA(t, cudaStreamSynchronize(w->stream[0]));
    w->host[0] = 1;
    TEST_CUDA(t, cudaMemcpyAsync(w->sum, w->host, sizeof(int), cudaMemcpyDefault, w->stream[0]));
    TEST_CUDA(t, cudaStreamSynchronize(w->stream[0]));
}

static void post(world_t *w, const message_t *m)
{
    int rank = w->t->rank;
    cudaStream_t stream = w->stream[test_below(&w->own, 2)];

    if (m->from == rank)
        TEST_OK(w->t, w->comm, rondo_send(w->in + m->out, m->ints, RONDO_INT32, m->to, w->comm, stream));
    if (m->to == rank)
        TEST_OK(w->t, w->comm, rondo_recv(w->out + m->in, m->ints, RONDO_INT32, m->from, w->comm, stream));
}

/* Every rank goes through its messages in their order, so the first one that is not over waits for none behind it. */
static void post_all(world_t *w)
{
    int rank = w->t->rank, left = 0;

    w->sums = 0;
    for (int k = 0; k < MESSAGES; k++) {
        const message_t *m = &w->all[k];
        if (m->from == rank || m->to == rank) {
            if (left == 0) {
                left = 1 + (int)test_below(&w->own, OWN);
                TEST_OK(w->t, NULL, rondo_group_start());
            }
            post(w, m);
            if (--left == 0)
                TEST_OK(w->t, NULL, rondo_group_end());
        }
        if (k % 13 != 12)
            continue;
        if (left)
            TEST_OK(w->t, NULL, rondo_group_end());
        left = 0;
        TEST_OK(w->t, w->comm,
                rondo_allreduce(w->sum, w->sum, 1, RONDO_INT32, RONDO_SUM, w->comm, w->stream[w->sums++ % 2]));
    }
    if (left)
        TEST_OK(w->t, NULL, rondo_group_end());
}

static void fetch(world_t *w, const int *from, size_t ints)
{
    for (int s = 0; s < 2; s++)
        TEST_CUDA(w->t, cudaStreamSynchronize(w->stream[s]));
    TEST_CUDA(w->t, cudaMemcpyAsync(w->host, from, ints * sizeof(int), cudaMemcpyDefault, w->stream[0]));
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream[0]));
}

static void compare(world_t *w, int round)
{
    int sum = 1;
    size_t at = 0;

    fetch(w, w->out, ROOM);
    for (int k = 0; k < MESSAGES; k++) {
        const message_t *m = &w->all[k];
        for (size_t i = 0; i < m->ints && m->to == w->t->rank; i++, at++)
            if (w->host[at] != value(m->from, round, m->out + i))
                test_stop(w->t, "round %d, message %d, %zu ints from rank %d: int %zu is %d, should be %d", round, k,
                          m->ints, m->from, i, w->host[at], value(m->from, round, m->out + i));
    }
    if (w->host[at] != -1)
        test_stop(w->t, "round %d: something was written behind the last message", round);
    fetch(w, w->sum, 1);
    for (int i = 0; i < w->sums; i++)
        sum *= w->t->nranks;
    if (w->host[0] != sum)
        test_stop(w->t, "round %d: the sum is %d, should be %d", round, w->host[0], sum);
}

/* Both streams belong to the capture. */
static cudaGraphExec_t captured(world_t *w, enum cudaStreamCaptureMode mode, void (*body)(world_t *w))
{
    test_rank_t *t = w->t;
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    TEST_CUDA(t, cudaStreamBeginCapture(w->stream[0], mode));
    TEST_CUDA(t, cudaEventRecord(w->event, w->stream[0]));
    TEST_CUDA(t, cudaStreamWaitEvent(w->stream[1], w->event, 0));
    body(w);
    TEST_CUDA(t, cudaEventRecord(w->event, w->stream[1]));
    TEST_CUDA(t, cudaStreamWaitEvent(w->stream[0], w->event, 0));
    TEST_CUDA(t, cudaStreamEndCapture(w->stream[0], &graph));
    TEST_CUDA(t, cudaGraphInstantiate(&exec, graph, 0));
    TEST_CUDA(t, cudaGraphDestroy(graph));
    test_barrier(t); /* as long as others instantiate theirs, which may wait for what runs on the device */
    return exec;
}

static void drawn(world_t *w)
{
    static const enum cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                                                       cudaStreamCaptureModeRelaxed};

    for (int round = 0; round < ROUNDS; round++) {
        test_note(w->t, "drawn, round %d", round);
        draw(w);
        fill(w, round);
        post_all(w);
        compare(w, round);
        if (round == ROUNDS - 1)
            continue;
        cudaGraphExec_t exec = captured(w, modes[round % 3], post_all);
        for (int replay = 1; replay < 4; replay++) {
            test_note(w->t, "drawn, round %d, replay %d", round, replay);
            fill(w, round + replay);
            if (replay == 2)
                post_all(w);
            else
                TEST_CUDA(w->t, cudaGraphLaunch(exec, w->stream[0]));
            compare(w, round + replay);
        }
        device_graphs_destroy(w->t, &exec, 1);
    }
}

/* ---- knots: A and B share a node, C is on another one */

static void pass(world_t *w, int send, int peer)
{
    if (send)
        TEST_OK(w->t, w->comm, rondo_send(w->in, LONG, RONDO_INT32, peer, w->comm, w->stream[0]));
    else
        TEST_OK(w->t, w->comm, rondo_recv(w->out, LONG, RONDO_INT32, peer, w->comm, w->stream[0]));
}

/* A sends to B and has from C at once; the others do what they do in turns, the way round. */
static void near_waits(world_t *w)
{
    enum { A, B };
    int c = first_of_other, rank = w->t->rank;

    if (rank == A) {
        TEST_OK(w->t, NULL, rondo_group_start());
        pass(w, 1, B);
        pass(w, 0, c);
        TEST_OK(w->t, NULL, rondo_group_end());
    } else if (rank == B) {
        pass(w, 1, c);
        pass(w, 0, A);
    } else if (rank == c) {
        pass(w, 1, A);
        pass(w, 0, B);
    }
}

/* The same with what is between nodes as what comes last. */
static void far_waits(world_t *w)
{
    enum { A, B };
    int c = first_of_other, rank = w->t->rank;

    if (rank == A) {
        TEST_OK(w->t, NULL, rondo_group_start());
        pass(w, 1, c);
        pass(w, 0, B);
        TEST_OK(w->t, NULL, rondo_group_end());
    } else if (rank == B) {
        pass(w, 1, A);
        pass(w, 1, c);
    } else if (rank == c) {
        pass(w, 0, B);
        pass(w, 0, A);
    }
}

/* `from`: of what each of the three has last; -1: nothing. */
static void knot(world_t *w, const char *name, void (*body)(world_t *w), const int from[3])
{
    test_rank_t *t = w->t;
    int ctx = t->rank < 2 ? t->rank : t->rank == first_of_other ? 2 : -1;
    cudaGraphExec_t exec = captured(w, cudaStreamCaptureModeThreadLocal, body);

    for (int round = 0; round < 3; round++) {
        test_note(t, "knot: %s, round %d", name, round);
        fill(w, round);
        if (round == 1)
            TEST_CUDA(t, cudaGraphLaunch(exec, w->stream[0]));
        else
            body(w);
        fetch(w, w->out, ROOM);
        for (size_t i = 0; ctx >= 0 && from[ctx] >= 0 && i < LONG; i++)
            if (w->host[i] != value(from[ctx], round, i))
                test_stop(t, "%s, round %d: int %zu is %d, should be %d", name, round, i, w->host[i],
                          value(from[ctx], round, i));
    }
    device_graphs_destroy(t, &exec, 1);
}

/* ---- two captures that go on at the same time, with calls in turns */

#define TURNS 6

static void sum_once(world_t *w, cudaStream_t stream)
{
    TEST_OK(w->t, w->comm, rondo_allreduce(w->sum, w->sum, 1, RONDO_INT32, RONDO_SUM, w->comm, stream));
}

/* Each graph waits for what comes before it once, as one that is captured alone does: its own calls follow each other.
 */
static void in_turns(world_t *w)
{
    cudaGraphExec_t exec[2];
    cudaGraph_t alone, graph[2];
    int want = 1;

    test_note(w->t, "captures in turns");
    TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream[0], cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < TURNS / 2; i++)
        sum_once(w, w->stream[0]);
    TEST_CUDA(w->t, cudaStreamEndCapture(w->stream[0], &alone));
    const size_t wanted = device_nodes_of(w->t, alone, cudaGraphNodeTypeWaitEvent);
    for (int g = 0; g < 2; g++)
        TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream[g], cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < TURNS; i++, want *= w->t->nranks)
        sum_once(w, w->stream[i % 2]);
    for (int g = 0; g < 2; g++)
        TEST_CUDA(w->t, cudaStreamEndCapture(w->stream[g], &graph[g]));
    for (int g = 0; g < 2; g++) {
        size_t waits = device_nodes_of(w->t, graph[g], cudaGraphNodeTypeWaitEvent);
        if (waits != wanted)
            test_fail(w->t, "graph %d waits for %zu events, one captured alone for %zu", g, waits, wanted);
        TEST_CUDA(w->t, cudaGraphInstantiate(&exec[g], graph[g], 0));
        TEST_CUDA(w->t, cudaGraphDestroy(graph[g]));
    }
    TEST_CUDA(w->t, cudaGraphDestroy(alone));
    test_barrier(w->t); /* as long as others instantiate theirs */
    fill(w, 0);
    for (int g = 0; g < 2; g++)
        TEST_CUDA(w->t, cudaGraphLaunch(exec[g], w->stream[g]));
    fetch(w, w->sum, 1);
    if (w->host[0] != want)
        test_fail(w->t, "captures in turns: the sum is %d, should be %d", w->host[0], want);
    device_graphs_destroy(w->t, exec, 2);
}

/* ---- the parts */

static void begin(world_t *w, test_rank_t *t, int timeout_ms)
{
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.timeout_ms = timeout_ms ? timeout_ms : config.timeout_ms;
    *w = (world_t){.t = t, .random = seed * 1000 + (uint64_t)t->nranks, .own = seed * 1000 + 77 * (uint64_t)t->rank};
    w->comm = device_comm_config(t, config);
    w->in = device_memory(t, ROOM * sizeof(int), 0);
    w->out = device_memory(t, ROOM * sizeof(int), 0);
    w->sum = device_memory(t, sizeof(int), 0);
    w->host = device_memory(t, ROOM * sizeof(int), 1);
    for (int s = 0; s < 2; s++)
        TEST_CUDA(t, cudaStreamCreateWithFlags(&w->stream[s], cudaStreamNonBlocking));
    TEST_CUDA(t, cudaEventCreateWithFlags(&w->event, cudaEventDisableTiming));
    fill(w, 0);
    test_barrier(t);
}

static void end(world_t *w)
{
    test_barrier(w->t);
    if (w->comm)
        (void)rondo_comm_destroy(w->comm);
    TEST_CUDA(w->t, cudaEventDestroy(w->event));
    device_end(w->t, NULL, w->stream, 2);
}

static void right(test_rank_t *t, void *arg)
{
    world_t w;

    (void)arg;
    begin(&w, t, 0);
    knot(&w, "near waits", near_waits, (const int[3]){first_of_other, 0, 1});
    knot(&w, "far waits", far_waits, (const int[3]){1, -1, 0});
    in_turns(&w);
    drawn(&w);
    end(&w);
}

typedef enum { LATE, LATE_ALONE, LEAVES, ABORTS, DIES, HOWS } how_t;
static const char *const hows[HOWS] = {"late", "late, and none but it is waited for", "gone", "aborting", "killed"};

static void go(world_t *w, how_t how)
{
    usleep(50000);
    if (how == DIES)
        raise(SIGKILL);
    if (how == ABORTS)
        TEST_OK(w->t, NULL, rondo_comm_abort(w->comm));
    if (how == LEAVES)
        TEST_OK(w->t, NULL, rondo_comm_destroy(w->comm));
    if (how != LATE && how != LATE_ALONE)
        w->comm = NULL;
}

/* The last rank waits for the one before, of its node, whose number there is another one. */
static void amiss(test_rank_t *t, void *arg)
{
    how_t how = *(how_t *)arg;
    int last = t->nranks - 1, gone = last - 1, late = how <= LATE_ALONE;
    char name[20];
    world_t w;

    snprintf(name, sizeof name, "rank %d (", gone);
    begin(&w, t, late ? 300 : 0);
    if (t->rank == gone) {
        go(&w, how);
    } else if (t->rank == last) {
        TEST_OK(t, NULL, rondo_group_start());
        pass(&w, 0, gone);
        if (how != LATE_ALONE)
            TEST_OK(t, w.comm, rondo_recv(w.sum, 1, RONDO_INT32, 0, w.comm, w.stream[1]));
        TEST_OK(t, NULL, rondo_group_end());
        TEST_CUDA(t, cudaStreamSynchronize(w.stream[0]));
        TEST_GIVES(t, w.comm, late ? RONDO_ERR_TIMEOUT : RONDO_ERR_REMOTE, rondo_barrier(w.comm, w.stream[0]));
        if (!strstr(rondo_last_error(w.comm), name))
            test_fail(t, "'%s' should name %s)", rondo_last_error(w.comm), name);
    } else if (t->rank == 0 && how != LATE_ALONE) {
        TEST_OK(t, w.comm, rondo_send(w.sum, 1, RONDO_INT32, last, w.comm, w.stream[0]));
        TEST_CUDA(t, cudaStreamSynchronize(w.stream[0]));
    }
    if (how != DIES)
        end(&w);
    else /* no barrier comes about any more */
        (void)rondo_comm_destroy(w.comm);
}

static int run(const char *nodes)
{
    int ranks = device_nodes(nodes), first = atoi(nodes);

    if (ranks < 4 || first < 2) /* A and B share the first one */
        return 2;
    first_of_other = first < ranks ? first : 2;
    int bad = test_run(TEST_PROCESSES, ranks, 200, right, NULL);
    printf("mixed: %s, seed %llu: %s\n", nodes, (unsigned long long)seed, bad ? "WRONG" : "right");
    return bad;
}

static int trouble(const char *nodes)
{
    int ranks = device_nodes(nodes), bad = 0;

    for (how_t how = LATE; how < HOWS; how++) {
        test_director_t director = {.victims = how == DIES ? 1u << (ranks - 2) : 0};
        int worse = test_run_directed(&director, ranks, 60, amiss, &how);
        printf("mixed: %s, a rank %s: %s\n", nodes, hows[how], worse ? "WRONG" : "right");
        bad += worse;
    }
    return bad;
}

int main(int argc, char **argv)
{
    const char *on = NULL;
    int played = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--nodes") == 0)
            played = 1;
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[++i], NULL, 0);
        else if (i + 1 < argc && strcmp(argv[i], "--on") == 0)
            on = argv[++i];
        else
            return 2;
    }
    test_begin("mixed", 600);
    setenv("RONDO_PROXY_BYTES", "64K", 0);
    setenv("RONDO_PROXY_ROUND", "8K", 0);
    if (device_none())
        return TEST_SKIPPED;
    if (on || !played)
        return run(on ? on : "4") + trouble(on ? on : "4") != 0;
    return run("2+2") + run("3+3") + run("2+1+3") + trouble("2+2") + trouble("1+3") != 0;
}
