/* One-sided operations on streams: puts short and long, signals, waits, gets and flushes, alone, in groups and from
 * graphs, beside messages and on several streams, in windows of rondo's and of the program's. What rondo.h orders is
 * what a rank reads: data behind a signal, also where the signal has come by way of other ranks; a put behind another
 * one. A wait ends where a rank is late, aborts or dies, and what is wrong is refused in a sentence.
 *
 *   onesided [--seed S] [--ranks N] [--rounds N] [--words N]   ranks: 2 to N; words: of the longest put
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/device.h"
#include "gpu/litmus_options.h"

#define REPLAYS 3
#define SIGNALS 5
#define CONTEXTS 3

static litmus_options_t options = {1, 4, 40, 300000};

/* The part of each rank: two areas of `words` words. */
typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    cudaStream_t stream, other;
    rondo_window_t window;
    void *memory;            /* of the window; NULL: rondo's own */
    uint32_t *part;          /* this rank's */
    uint32_t *source, *sink; /* device memory */
    uint32_t *from, *to;     /* pinned */
    int left, right;
} world_t;

static void must(world_t *w, rondo_result_t result, const char *what)
{
    if (result != RONDO_SUCCESS)
        test_stop(w->t, "%s: %s: %s", test_noted(w->t), what, rondo_last_error(w->comm));
}

static void put_at(world_t *w, const uint32_t *from, size_t n, int peer, size_t at, cudaStream_t stream)
{
    must(w, rondo_put(from, n, RONDO_UINT32, peer, w->window, at * sizeof *from, 1, 0, w->comm, stream), "put");
}

static void signal_to(world_t *w, int peer, int signal, cudaStream_t stream)
{
    must(w, rondo_signal(peer, signal, 1, 0, w->comm, stream), "signal");
}

static void wait_for(world_t *w, int peer, int signal, int count, cudaStream_t stream)
{
    const rondo_wait_desc_t wait = {count, peer, signal, 1};

    must(w, rondo_wait_signal(1, &wait, w->comm, stream), "wait");
}

static void copy(world_t *w, uint32_t *to, const uint32_t *from, size_t n, cudaStream_t stream)
{
    TEST_CUDA(w->t, cudaMemcpyAsync(to, from, n * sizeof *to, cudaMemcpyDefault, stream));
}

/* What rank r puts in round k. */
static uint32_t value(int r, unsigned k, size_t i)
{
    return (uint32_t)r * 1000003u + k * 10007u + (uint32_t)i;
}

static void give(world_t *w, unsigned k, size_t n)
{
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    for (size_t i = 0; i < n; i++)
        w->from[i] = value(w->t->rank, k, i);
    copy(w, w->source, w->from, n, w->stream);
}

static void look(world_t *w, int r, unsigned k, size_t n, const char *what)
{
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    TEST_CUDA(w->t, cudaStreamSynchronize(w->other));
    for (size_t i = 0; i < n; i++)
        if (w->to[i] != value(r, k, i))
            test_stop(w->t, "%s, round %u: word %zu of %zu is %#x, should be %#x", what, k, i, n, w->to[i],
                      value(r, k, i));
}

static void begin(world_t *w, test_rank_t *t, int own, int timeout_ms)
{
    const size_t bytes = 2 * options.words * sizeof(uint32_t);
    rondo_config_t config = RONDO_CONFIG_INIT;

    memset(w, 0, sizeof *w);
    w->t = t;
    config.signals = SIGNALS;
    config.contexts = CONTEXTS;
    config.timeout_ms = timeout_ms;
    w->comm = device_comm_config(t, config);
    w->right = (t->rank + 1) % t->nranks;
    w->left = (t->rank + t->nranks - 1) % t->nranks;
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking));
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w->other, cudaStreamNonBlocking));
    if (own)
        TEST_CUDA(t, cudaMalloc(&w->memory, bytes + 4096));
    test_barrier(t);
    must(w, rondo_window_create(w->comm, own ? (char *)w->memory + 4096 : NULL, bytes, &w->window, 0), "window");
    must(w, rondo_window_buffer(w->comm, w->window, (void **)&w->part), "buffer");
    w->source = device_memory(t, bytes, 0);
    w->sink = device_memory(t, bytes, 0);
    w->from = device_memory(t, bytes, 1);
    w->to = device_memory(t, bytes, 1);
}

static void end(world_t *w)
{
    const cudaStream_t streams[] = {w->stream, w->other};

    must(w, rondo_window_destroy(w->comm, w->window), "window_destroy");
    test_barrier(w->t);
    if (w->memory)
        TEST_CUDA(w->t, cudaFree(w->memory));
    test_barrier(w->t);
    device_end(w->t, w->comm, streams, 2);
}

/* ---- litmus tests ---- */

/* Data goes to the right; it has been read before the next comes. `grouped`: the put and the wait are a group. */
static void ring(world_t *w, size_t n, bool grouped)
{
    const rondo_wait_desc_t come = {1, w->left, 2, 0};

    TEST_OK(w->t, NULL, grouped ? rondo_group_start() : RONDO_SUCCESS);
    must(w, rondo_put_signal(w->source, n, RONDO_UINT32, w->right, w->window, 0, 2, 0, 0, w->comm, w->stream), "put");
    must(w, rondo_wait_signal(1, &come, w->comm, w->stream), "wait");
    must(w, grouped ? rondo_group_end() : RONDO_SUCCESS, "group");
    copy(w, w->to, w->part, n, w->stream);
    signal_to(w, w->left, 0, w->stream);
    wait_for(w, w->right, 0, 1, w->stream);
}

/* Rank 0 puts to the last rank, whom the signal reaches by way of all others: before is transitive. */
static void around(world_t *w, unsigned k, size_t n)
{
    const int last = w->t->nranks - 1;

    if (w->t->rank == 0)
        put_at(w, w->source, n, last, options.words, w->stream);
    else
        wait_for(w, w->left, 1, 1, w->stream);
    if (w->t->rank != last)
        signal_to(w, w->right, 1, w->stream);
    if (w->t->rank == last)
        copy(w, w->to, w->part + options.words, n, w->stream);
    must(w, rondo_barrier(w->comm, w->stream), "barrier");
    if (w->t->rank == last)
        look(w, 0, k, n, "around");
}

/* What a rank has written to its own part another one gets behind the signal; puts of two streams in their order: the
 * second one is what stays, also where it is another way. */
static void got(world_t *w, unsigned k, size_t n)
{
    copy(w, w->part, w->source, n, w->stream);
    signal_to(w, w->left, 3, w->stream);
    wait_for(w, w->right, 3, 1, w->stream);
    must(w, rondo_get(w->sink, n, RONDO_UINT32, w->right, w->window, 0, 1, 0, w->comm, w->other), "get");
    copy(w, w->to, w->sink, n, w->other);
    look(w, w->right, k, n, "get");
    must(w, rondo_barrier(w->comm, w->stream), "barrier");
    put_at(w, w->sink, n, w->left, options.words, w->other);
    must(w, rondo_fence(w->left, 1, w->comm, w->stream), "fence");
    put_at(w, w->source, n, w->left, options.words, w->stream);
    must(w, rondo_flush(RONDO_PEER_ALL, 1, w->comm, w->other), "flush");
    must(w, rondo_barrier(w->comm, w->other), "barrier");
    copy(w, w->to, w->part + options.words, n, w->other);
    look(w, w->right, k, n, "put behind a put");
    must(w, rondo_barrier(w->comm, w->stream), "barrier");
}

/* Every rank signals every rank, itself too, by all numbers, twice; waits in pieces, with entries that are alike. */
static void counted(world_t *w)
{
    rondo_wait_desc_t waits[3 * SIGNALS * CONTEXTS * 16];
    int n = 0;

    for (int times = 0; times < 2; times++) {
        TEST_OK(w->t, NULL, rondo_group_start());
        for (int i = 0; i < w->t->nranks * SIGNALS * CONTEXTS; i++)
            must(w, rondo_signal(i / (SIGNALS * CONTEXTS), i % SIGNALS, i / SIGNALS % CONTEXTS, 0, w->comm, w->stream),
                 "signal");
        must(w, rondo_group_end(), "group");
    }
    for (int i = 0; i < w->t->nranks * SIGNALS * CONTEXTS; i++)
        for (int piece = 0; piece < 3; piece++)
            waits[n++] = (rondo_wait_desc_t){piece != 2, i / (SIGNALS * CONTEXTS), i % SIGNALS, i / SIGNALS % CONTEXTS};
    must(w, rondo_wait_signal(n, waits, w->comm, w->other), "wait");
    TEST_CUDA(w->t, cudaStreamSynchronize(w->other));
}

/* In a group puts do not stand behind collectives, nor messages behind waits: either would be waited for in vain. */
static void beside(world_t *w, unsigned k, size_t n)
{
    const rondo_wait_desc_t come = {1, w->left, 4, 2};
    const bool even = w->t->rank % 2 == 0;

    if (!even)
        must(w, rondo_wait_signal(1, &come, w->comm, w->stream), "wait");
    TEST_OK(w->t, NULL, even ? rondo_group_start() : RONDO_SUCCESS);
    must(w, rondo_allreduce(w->source, w->sink, n, RONDO_UINT32, RONDO_SUM, w->comm, w->stream), "allreduce");
    if (even)
        must(w, rondo_put_signal(w->source, n, RONDO_UINT32, w->right, w->window, 0, 4, 2, 0, w->comm, w->stream),
             "put");
    must(w, even ? rondo_group_end() : RONDO_SUCCESS, "group");
    if (even) {
        must(w, rondo_recv(w->sink, n, RONDO_UINT32, w->right, w->comm, w->stream), "recv");
        must(w, rondo_signal(w->right, 4, 2, 0, w->comm, w->stream), "signal");
        copy(w, w->to, w->sink, n, w->stream);
    } else {
        TEST_OK(w->t, NULL, rondo_group_start());
        must(w, rondo_wait_signal(1, &come, w->comm, w->stream), "wait");
        must(w, rondo_send(w->source, n, RONDO_UINT32, w->left, w->comm, w->stream), "send");
        must(w, rondo_group_end(), "group");
        copy(w, w->to, w->part, n, w->stream);
    }
    look(w, even ? w->right : w->left, k, n, "in a group");
    must(w, rondo_barrier(w->comm, w->stream), "barrier");
}

static void replayed(world_t *w, size_t n)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    ring(w, n, false);
    ring(w, n, true);
    TEST_CUDA(w->t, cudaStreamEndCapture(w->stream, &graph));
    TEST_CUDA(w->t, cudaGraphInstantiate(&exec, graph, 0));
    TEST_CUDA(w->t, cudaGraphDestroy(graph));
    for (unsigned i = 0; i < REPLAYS; i++) {
        give(w, 1000 + i, n);
        TEST_CUDA(w->t, cudaGraphLaunch(exec, w->stream));
        look(w, w->left, 1000 + i, n, "a graph");
        if (i == 0)
            ring(w, n, false); /* between replays */
    }
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    device_graphs_destroy(w->t, &exec, 1);
}

static void litmus(test_rank_t *t, void *arg)
{
    uint64_t random = options.seed * 1000 + (uint64_t)t->nranks;
    world_t w;

    (void)arg;
    for (int own = 0; own < 2; own++) {
        begin(&w, t, own, 0);
        for (unsigned k = 0; k < options.rounds; k++) {
            const size_t n = 1 + test_below(&random, k % 4 == 3 ? options.words : 40);
            test_note(t, "round %u, %zu words", k, n);
            give(&w, k, n);
            ring(&w, n, k % 2);
            look(&w, w.left, k, n, "ring");
            around(&w, k, n);
            got(&w, k, n);
            if (t->nranks % 2 == 0)
                beside(&w, k, n);
        }
        test_note(t, "counts");
        counted(&w);
        test_note(t, "a graph");
        replayed(&w, options.words);
        replayed(&w, 5);
        end(&w);
    }
}

/* In a group of two communicators on one stream, neither a collective nor a signal of one stands behind a wait of the
 * other, whichever of them comes first: the other rank does what is waited for behind both. */
static void two_in_group(test_rank_t *t, void *arg)
{
    const rondo_wait_desc_t come = {1, 1, 0, 0};
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comms[2];
    cudaStream_t stream;
    uint32_t *words;

    (void)arg;
    config.timeout_ms = 20000;
    for (int i = 0; i < 2; i++)
        comms[i] = device_comm_config(t, config);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    words = device_memory(t, 2 * sizeof *words, 0);
    for (int i = 0; i < 2; i++) {
        rondo_comm_t one = comms[i], other = comms[1 - i];
        TEST_OK(t, NULL, t->rank ? RONDO_SUCCESS : rondo_group_start());
        TEST_OK(t, one, rondo_allreduce(words, words + 1, 1, RONDO_UINT32, RONDO_SUM, one, stream));
        if (t->rank == 0) {
            TEST_OK(t, one, rondo_signal(1, 1, 0, 0, one, stream));
            TEST_OK(t, other, rondo_wait_signal(1, &come, other, stream));
            TEST_OK(t, NULL, rondo_group_end());
        } else {
            TEST_OK(t, one, rondo_wait_signal(1, &(rondo_wait_desc_t){1, 0, 1, 0}, one, stream));
            TEST_OK(t, other, rondo_signal(0, 0, 0, 0, other, stream));
        }
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        TEST_OK(t, one, rondo_barrier(one, stream));
        TEST_OK(t, other, rondo_barrier(other, stream));
        TEST_CUDA(t, cudaStreamSynchronize(stream));
    }
    TEST_OK(t, NULL, rondo_comm_destroy(comms[0]));
    device_end(t, comms[1], &stream, 1);
}

/* ---- what is wrong ---- */

#define REFUSED(t, comm, want, word, call)                                                                             \
    do {                                                                                                               \
        TEST_GIVES(t, comm, want, call);                                                                               \
        test_sentence(t, word);                                                                                        \
    } while (0)

static void refusals(test_rank_t *t, void *arg)
{
    const rondo_result_t bad = RONDO_ERR_INVALID_ARGUMENT;
    const size_t whole = 2 * options.words * sizeof(uint32_t);
    rondo_config_t many = RONDO_CONFIG_INIT;
    rondo_status_t status = {.size = sizeof status};
    world_t w;

    (void)arg;
    begin(&w, t, 0, 0);
    REFUSED(t, w.comm, bad, "leave the part",
            rondo_put(w.source, 2, RONDO_UINT32, 0, w.window, whole - 4, 0, 0, w.comm, w.stream));
    must(&w, rondo_comm_status(w.comm, &status), "status");
    if (status.sends || status.bytes) /* what is refused is no call */
        test_stop(t, "a refused put counts: %llu sends", (unsigned long long)status.sends);
    REFUSED(t, w.comm, bad, "NULL", rondo_put(w.source, 2, RONDO_UINT32, 0, NULL, 0, 0, 0, w.comm, w.stream));
    REFUSED(t, w.comm, bad, "peer", rondo_signal(t->nranks, 0, 0, 0, w.comm, w.stream));
    REFUSED(t, w.comm, bad, "signal", rondo_signal(0, SIGNALS, 0, 0, w.comm, w.stream));
    REFUSED(t, w.comm, bad, "context", rondo_signal(0, 0, CONTEXTS, 0, w.comm, w.stream));
    TEST_OK(t, NULL, rondo_group_start());
    TEST_GIVES(t, w.comm, bad, rondo_get(w.sink, 2, RONDO_UINT32, 0, w.window, whole, 0, 0, w.comm, w.stream));
    TEST_GIVES(t, w.comm, bad, rondo_group_end());
    TEST_OK(t, w.comm, rondo_put(NULL, 0, RONDO_UINT32, 0, w.window, 0, 0, 0, w.comm, w.stream));
    TEST_OK(t, w.comm, rondo_wait_signal(0, NULL, w.comm, w.stream));
    end(&w);
    many.signals = 4096;
    w.comm = device_comm_config(t, many);
    REFUSED(t, w.comm, bad, "on GPUs", rondo_signal(0, 600, 0, 0, w.comm, NULL));
    device_end(t, w.comm, NULL, 0);
}

/* Where GPUs do not reach each other, signals go all the same; between nodes nothing does. */
static void apart(test_rank_t *t, void *arg)
{
    const bool nodes = *(const int *)arg;
    rondo_comm_t comm = device_comm(t);
    const rondo_wait_desc_t wait = {1, 1 - t->rank, 0, 0};
    cudaStream_t stream;

    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (nodes) {
        REFUSED(t, comm, RONDO_ERR_UNSUPPORTED, "one node", rondo_signal(1 - t->rank, 0, 0, 0, comm, stream));
        REFUSED(t, comm, RONDO_ERR_UNSUPPORTED, "one node", rondo_wait_signal(1, &wait, comm, stream));
    } else {
        TEST_OK(t, comm, rondo_signal(1 - t->rank, 0, 0, 0, comm, stream));
        TEST_OK(t, comm, rondo_wait_signal(1, &wait, comm, stream));
        TEST_CUDA(t, cudaStreamSynchronize(stream));
    }
    device_end(t, comm, &stream, 1);
}

enum { LATE, ABORTED, DESTROYED, DIED, WAYS };

/* Rank 0 waits for a signal that does not come; a short put behind that wait puts nothing. */
static void leaves(test_rank_t *t, void *arg)
{
    static const rondo_result_t want[WAYS] = {RONDO_ERR_TIMEOUT, RONDO_ERR_REMOTE, RONDO_ERR_REMOTE, RONDO_ERR_REMOTE};
    const int way = *(const int *)arg;
    rondo_result_t error;
    world_t w;

    begin(&w, t, 0, way == LATE && t->rank == 0 ? 700 : 0);
    if (t->rank == 0) {
        give(&w, 7, 8);
        wait_for(&w, 1, 0, 1, w.stream);
        put_at(&w, w.source, 8, 0, 0, w.stream);
        copy(&w, w.to, w.part, 8, w.stream);
    }
    test_barrier(t);
    if (t->rank != 0 && way == DIED)
        raise(SIGKILL);
    if (t->rank != 0 && way != LATE) {
        TEST_OK(t, NULL, way == ABORTED ? rondo_comm_abort(w.comm) : rondo_comm_destroy(w.comm));
        w.comm = NULL;
    }
    if (t->rank == 0) {
        TEST_CUDA(t, cudaStreamSynchronize(w.stream));
        TEST_OK(t, NULL, rondo_comm_get_error(w.comm, &error));
        if (error != want[way] || !strstr(rondo_last_error(w.comm), "rank 1"))
            test_fail(t, "the error is %s, should be %s with 'rank 1': %s", rondo_result_string(error),
                      rondo_result_string(want[way]), rondo_last_error(w.comm));
        TEST_TRUE(t, w.to[1] == 0);
    }
    if (way == DIED) { /* alone */
        TEST_OK(t, NULL, rondo_comm_destroy(w.comm));
        return;
    }
    test_barrier(t);
    if (w.comm) /* rank 1 is told of rank 0's failure */
        device_failed(t, w.comm);
    device_end(t, w.comm, (const cudaStream_t[]){w.stream, w.other}, 2);
}

/* ---- */

static int both(const char *what, int ranks, test_body_fn body, void *arg, bool threads)
{
    return litmus_kinds("one-sided", what, options.seed, ranks, body, arg, threads);
}

static int died(void)
{
    static int way = DIED;
    test_director_t director = {.victims = 2};
    int bad = test_run_directed(&director, 2, 60, leaves, &way);

    printf("one-sided: a rank dies: %s\n", bad ? "WRONG" : "right");
    return bad;
}

int main(int argc, char **argv)
{
    static const char *const ways[DIED] = {"a rank is late", "a rank aborts", "a rank leaves"};
    int bad = 0, nodes = 0;

    test_begin("onesided", 600);
    if (sim_live) {
        options.rounds = 4;
        options.words = 17000; /* more than kernels put */
        options.ranks = 3;
    }
    if (litmus_options(&options, argc, argv, 2, 16) != 0) {
        fprintf(stderr, "onesided [--seed S] [--ranks N] [--rounds N] [--words N]\n");
        return 2;
    }
    if (device_none())
        return TEST_SKIPPED;
    for (int n = 2; n <= options.ranks; n++)
        bad += both("litmus tests", n, litmus, NULL, true);
    bad += both("two communicators in a group", 2, two_in_group, NULL, true);
    bad += both("refusals", 2, refusals, NULL, true);
    bad += died();
    for (int way = 0; way < DIED; way++)
        bad += both(ways[way], 2, leaves, &way, true);
    setenv("RONDO_P2P", "0", 1);
    bad += both("signals without peer access", 2, apart, &nodes, false);
    unsetenv("RONDO_P2P");
    nodes = device_nodes("1+1") != 0;
    if (nodes)
        bad += both("on two nodes", 2, apart, &nodes, false);
    return bad != 0;
}
