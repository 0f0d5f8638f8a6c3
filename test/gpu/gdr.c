/* Messages between played nodes that go by GDR from GPU to GPU: right at many lengths, about the shortest that does
 * and far beyond, among staged ones, in groups that sender and receiver make differently, of memory that is new each
 * time, and from graphs. What a rank that goes in the middle has begun is given up, and nothing comes into a buffer
 * after its stream has drained. More streams than the GPU has queues do not hold messages up. Where there is no direct
 * way, to insist on one is refused.
 *
 *   direct [--seed S]
 *
 * On the simulated runtime device memory is the host's, and any UCX moves it; on GPUs UCX must have CUDA:
 * RONDO_UCX_TLS=tcp,cuda_copy,cuda_ipc. Where it has not, there is nothing to test.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu/device.h"

#define LEAST 4096u /* RONDO_GDR_MIN */
#define LONGEST ((size_t)3 << 20)
#define GUARD 256
#define MOST 24 /* messages of a round */
#define ROUNDS 5
#define STREAMS 16
#define EACH ((size_t)1 << 20)

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    cudaStream_t stream[2];
    char *in, *out, *host; /* host: pinned */
    size_t room;
    uint64_t random; /* the same on all ranks */
    int n;           /* messages from each rank to the next, of a round */
    size_t at[MOST + 1], bytes[MOST];
} world_t;

static char value(int rank, int round, size_t i)
{
    return (char)(i * 7 + i / 251 + (size_t)rank * 61 + (size_t)round * 17);
}

static int next_of(const test_rank_t *t)
{
    return (t->rank + 1) % t->nranks;
}

static int previous_of(const test_rank_t *t)
{
    return (t->rank + t->nranks - 1) % t->nranks;
}

static size_t draw_bytes(uint64_t *r)
{
    switch (test_below(r, 6)) {
    case 0:
        return LEAST - 2 + test_below(r, 5);
    case 1:
        return 1 + test_below(r, 300);
    case 2:
        return test_below(r, 3 * LEAST);
    case 3:
        return test_below(r, 4) ? LEAST + test_below(r, 100000) : LONGEST - test_below(r, 9);
    default:
        return LEAST + test_below(r, 20000);
    }
}

static void draw(world_t *w)
{
    w->n = 1 + (int)test_below(&w->random, MOST);
    w->at[0] = GUARD;
    for (int i = 0; i < w->n; i++) {
        w->bytes[i] = draw_bytes(&w->random);
        if (w->at[i] + w->bytes[i] + GUARD + 64 > w->room)
            w->bytes[i] = 5;
        w->at[i + 1] = w->at[i] + w->bytes[i] + test_below(&w->random, 17) + 1;
    }
}

/* Behind what is in the stream, and before what comes; the output is all ones. */
static void fill(world_t *w, int round)
{
    size_t bytes = w->at[w->n] + GUARD;

    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream[0]));
    for (size_t i = 0; i < bytes; i++)
        w->host[i] = value(w->t->rank, round, i);
    TEST_CUDA(w->t, cudaMemcpyAsync(w->in, w->host, bytes, cudaMemcpyDefault, w->stream[0]));
    TEST_CUDA(w->t, cudaMemsetAsync(w->out, 0xff, bytes, w->stream[0]));
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream[0]));
}

static void compare(world_t *w, int round)
{
    int previous = previous_of(w->t), m = -1;
    size_t bytes = w->at[w->n] + GUARD;

    for (int s = 0; s < 2; s++) /* copies behind kernels that wait do not keep UCX's own from the device */
        TEST_CUDA(w->t, cudaMemcpyAsync(w->host, w->out, bytes, cudaMemcpyDefault, w->stream[s]));
    for (int s = 0; s < 2; s++)
        TEST_CUDA(w->t, cudaStreamSynchronize(w->stream[s]));
    TEST_CUDA(w->t, cudaMemcpyAsync(w->host, w->out, bytes, cudaMemcpyDefault, w->stream[0]));
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream[0]));
    for (size_t i = 0; i < bytes; i++) {
        m += m + 1 < w->n && i == w->at[m + 1];
        char wanted = m >= 0 && i < w->at[m] + w->bytes[m] ? value(previous, round, i) : (char)0xff;
        if (w->host[i] != wanted)
            test_stop(w->t, "round %d, byte %zu, behind the start of message %d of %d, %zu bytes: %d, should be %d",
                      round, i, m, w->n, m >= 0 ? w->bytes[m] : 0, w->host[i], wanted);
    }
}

/* Each rank groups otherwise, and takes its streams in turn. */
static void post_all(world_t *w, int streams)
{
    int each = 1 + (w->n + w->t->rank * 3) % 7;
    test_rank_t *t = w->t;

    for (int first = 0; first < w->n; first += each) {
        TEST_OK(t, NULL, rondo_group_start());
        for (int i = first; i < first + each && i < w->n; i++) {
            char *out = w->out + w->at[i], *in = w->in + w->at[i];
            cudaStream_t stream = w->stream[i / each % streams];
            TEST_OK(t, w->comm, rondo_recv(out, w->bytes[i], RONDO_INT8, previous_of(t), w->comm, stream));
            TEST_OK(t, w->comm, rondo_send(in, w->bytes[i], RONDO_INT8, next_of(t), w->comm, stream));
        }
        TEST_OK(t, NULL, rondo_group_end());
    }
}

static void graph(world_t *w)
{
    cudaGraphExec_t exec;
    cudaGraph_t captured;
    int *sum = device_memory(w->t, 4, 0);

    draw(w);
    fill(w, 0);
    test_barrier(w->t);
    TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream[0], cudaStreamCaptureModeThreadLocal));
    post_all(w, 1);
    TEST_OK(w->t, w->comm, rondo_allreduce(sum, sum, 1, RONDO_INT32, RONDO_SUM, w->comm, w->stream[0]));
    TEST_CUDA(w->t, cudaStreamEndCapture(w->stream[0], &captured));
    TEST_CUDA(w->t, cudaGraphInstantiate(&exec, captured, 0));
    TEST_CUDA(w->t, cudaGraphDestroy(captured));
    for (int round = 0; round < ROUNDS; round++) {
        test_note(w->t, "replay %d", round);
        fill(w, round);
        TEST_CUDA(w->t, cudaGraphLaunch(exec, w->stream[0]));
        compare(w, round);
        fill(w, round + 50);
        post_all(w, 2);
        compare(w, round + 50);
    }
    device_graphs_destroy(w->t, &exec, 1);
}

/* Of memory that is given back and taken anew, often at the same address. */
static void anew(world_t *w)
{
    char *in = w->in, *out = w->out;

    for (int round = 0; round < ROUNDS; round++) {
        test_note(w->t, "new memory %d", round);
        test_barrier(w->t); /* cudaFree waits for kernels of whoever shares the device */
        TEST_CUDA(w->t, cudaMalloc((void **)&w->in, w->room));
        TEST_CUDA(w->t, cudaMalloc((void **)&w->out, w->room));
        draw(w);
        fill(w, round);
        post_all(w, 2);
        compare(w, round);
        test_barrier(w->t);
        TEST_CUDA(w->t, cudaFree(w->in));
        TEST_CUDA(w->t, cudaFree(w->out));
    }
    w->in = in;
    w->out = out;
}

static void begin(world_t *w, test_rank_t *t, uint64_t seed)
{
    *w = (world_t){.t = t, .room = 4 * LONGEST, .random = seed};
    w->comm = device_comm(t);
    w->in = device_memory(t, w->room, 0);
    w->out = device_memory(t, w->room, 0);
    w->host = device_memory(t, w->room, 1);
    for (int s = 0; s < 2; s++)
        TEST_CUDA(t, cudaStreamCreateWithFlags(&w->stream[s], cudaStreamNonBlocking));
    test_barrier(t);
}

static void right(test_rank_t *t, void *seed)
{
    world_t w;

    begin(&w, t, *(uint64_t *)seed);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        draw(&w);
        test_note(t, "round %d, %d messages", round, w.n);
        fill(&w, round);
        post_all(&w, 1 + round % 2);
        compare(&w, round);
    }
    anew(&w);
    graph(&w);
    device_end(t, w.comm, w.stream, 2);
}

/* ---- trouble */

typedef enum { ABORTS, DIES, LATE } trouble_t;

static rondo_result_t swap(world_t *w, int with)
{
    rondo_result_t result;

    (void)rondo_group_start();
    (void)rondo_recv(w->out + GUARD, LONGEST, RONDO_INT8, with, w->comm, w->stream[0]);
    (void)rondo_send(w->in + GUARD, LONGEST, RONDO_INT8, with, w->comm, w->stream[0]);
    result = rondo_group_end();
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream[0]));
    return result;
}

/* Where a third one is to go, the first rank and the one before the last have messages for each other meanwhile. */
static int partner(const test_rank_t *t, trouble_t what)
{
    int last = t->nranks - 1;

    if (t->nranks == 2 || what != ABORTS)
        return last;
    return t->rank == 0 ? last - 1 : t->rank == last - 1 ? 0 : last;
}

/* The last rank goes, or does not come, while a message to it and one from it are under way or wait for it. */
static void trouble(test_rank_t *t, void *arg)
{
    static const rondo_result_t codes[] = {RONDO_ERR_REMOTE, RONDO_ERR_REMOTE, RONDO_ERR_TIMEOUT};
    trouble_t what = *(trouble_t *)arg;
    rondo_result_t result;
    int gone = t->nranks - 1;
    char name[20], *was;
    world_t w;

    if (what == LATE)
        setenv("RONDO_TIMEOUT_MS", "400", 1);
    begin(&w, t, 1);
    w.n = 1;
    w.at[0] = GUARD;
    w.at[1] = GUARD + (w.bytes[0] = LONGEST);
    fill(&w, 0);
    test_barrier(t);
    if (t->rank == gone) {
        if (what != LATE && t->nranks == 2)
            post_all(&w, 1);
        else if (what != LATE)
            usleep(50000);
        if (what == DIES)
            raise(SIGKILL);
        if (what == ABORTS)
            TEST_OK(t, NULL, rondo_comm_abort(w.comm));
        if (what == ABORTS)
            w.comm = NULL;
    } else {
        was = malloc(w.room);
        do { /* kernels or calls find it out */
            result = swap(&w, partner(t, what));
            TEST_CUDA(t, cudaMemcpy(was, w.out, LONGEST, cudaMemcpyDefault));
        } while (result == RONDO_SUCCESS);
        TEST_GIVES(t, w.comm, codes[what], rondo_barrier(w.comm, w.stream[0]));
        snprintf(name, sizeof name, "rank %d", gone);
        TEST_TRUE(t, strstr(rondo_last_error(w.comm), name) != NULL);
        /* What might yet come has come when the network and its copies have ended. */
        TEST_OK(t, NULL, rondo_comm_destroy(w.comm));
        w.comm = NULL;
        TEST_CUDA(t, cudaDeviceSynchronize());
        TEST_CUDA(t, cudaMemcpy(w.host, w.out, LONGEST, cudaMemcpyDefault));
        TEST_TRUE(t, memcmp(was, w.host, LONGEST) == 0);
        free(was);
    }
    if (what == DIES) /* no barrier comes about any more */
        return;
    if (what == LATE)
        test_barrier(t);
    device_end(t, w.comm, w.stream, 2);
}

/* ---- whether there is a way */

static rondo_result_t create(test_rank_t *t, rondo_comm_t *comm)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id;
    char host[16];

    snprintf(host, sizeof host, "played%d", t->rank);
    setenv("RONDO_HOSTID", host, 1);
    TEST_CUDA(t, cudaSetDevice(0));
    config.device = 0;
    test_id(t, &id);
    return rondo_comm_create(comm, t->nranks, &id, t->rank, &config);
}

static void refused(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = NULL;

    (void)arg;
    setenv("SIM_FAR", "1", 1);
    setenv("RONDO_GDR", "1", 1);
    TEST_TRUE(t, create(t, &comm) == RONDO_ERR_UNSUPPORTED);
    TEST_TRUE(t, strstr(rondo_last_error(NULL), "RONDO_GDR") != NULL);
    setenv("RONDO_GDR", "-1", 1);
    if (TEST_OK(t, NULL, create(t, &comm)))
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* Vectors of many lengths, and their sums. */
static void sums(test_rank_t *t, rondo_comm_t comm)
{
    const size_t most = (size_t)1 << 19;
    int *data = device_memory(t, most * sizeof(int), 0), *host = device_memory(t, most * sizeof(int), 1);
    cudaStream_t stream;

    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (size_t count = 100; count <= most; count *= 8) {
        for (size_t i = 0; i < count; i++)
            host[i] = t->rank + (int)i;
        TEST_CUDA(t, cudaMemcpyAsync(data, host, count * sizeof(int), cudaMemcpyDefault, stream));
        TEST_OK(t, comm, rondo_allreduce(data, data, count, RONDO_INT32, RONDO_SUM, comm, stream));
        TEST_CUDA(t, cudaMemcpyAsync(host, data, count * sizeof(int), cudaMemcpyDefault, stream));
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        for (size_t i = 0; i < count; i++)
            if (host[i] != t->nranks * (t->nranks - 1) / 2 + t->nranks * (int)i)
                test_stop(t, "%zu elements, element %zu: %d", count, i, host[i]);
    }
    device_end(t, comm, &stream, 1);
}

/* The network reaches the GPUs of two nodes, and not that of the third, rank 1's: by force there is no communicator,
 * and every rank names that rank and why; otherwise all are staged. */
static void mixed(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = NULL;
    char host[16];

    (void)arg;
    if (t->rank == 1)
        setenv("SIM_FAR", "1", 1);
    setenv("RONDO_GDR", "1", 1);
    TEST_TRUE(t, create(t, &comm) == RONDO_ERR_UNSUPPORTED);
    const char *said = rondo_last_error(NULL);
    if (!strstr(said, "RONDO_GDR is 1") || !strstr(said, "rank 1 (") || !strstr(said, "takes no GPU's memory"))
        test_fail(t, "where rank 1 alone cannot: %s", said);
    setenv("RONDO_GDR", "-1", 1);
    snprintf(host, sizeof host, "played%d", t->rank);
    setenv("RONDO_HOSTID", host, 1);
    sums(t, device_comm(t));
}

#define SCRATCH ((unsigned long long)200 << 20)

/* The last rank has no RONDO_GDR_SCRATCH bytes: sums are staged then, on all ranks, and no rank holds that memory. */
static void without_scratch(test_rank_t *t, void *arg)
{
    rondo_memory_t m = {.size = sizeof m};
    const int is_short = *(const int *)arg;
    char bytes[24];

    snprintf(bytes, sizeof bytes, "%llu", SCRATCH);
    setenv("RONDO_GDR_SCRATCH", bytes, 1);
    setenv("RONDO_GDR_COLL_MIN", "1024", 1);
    if (is_short && t->rank == t->nranks - 1)
        setenv("SIM_FULL", bytes, 1);
    rondo_comm_t comm = device_comm(t);
    TEST_OK(t, comm, rondo_comm_memory_now(comm, &m));
    TEST_TRUE(t, (m.device < SCRATCH) == is_short);
    sums(t, comm);
}

/* Has a log line said it? Rank 0 says how the communicator goes. */
static int is_said(const char *name, const char *word)
{
    char line[1024];
    int said = 0;
    FILE *file = fopen(name, "r");

    while (file && fgets(line, sizeof line, file))
        said |= strstr(line, word) != NULL;
    if (file)
        fclose(file);
    return said;
}

/* Of 64K, three others have 5376 bytes each: that is enough for messages of 4992, and not of 6016. */
static void little_scratch(test_rank_t *t, void *arg)
{
    const char *least = arg;
    char log[32];

    snprintf(log, sizeof log, "gdr_said.%d", (int)getpid());
    setenv("RONDO_GDR_SCRATCH", "64K", 1);
    setenv("RONDO_GDR_COLL_MIN", least, 1);
    if (t->rank == 0) {
        setenv("RONDO_DEBUG", "trace", 1);
        setenv("RONDO_DEBUG_FILE", log, 1);
    }
    sums(t, device_comm(t));
    if (t->rank == 0 && is_said(log, ": by GDR, in ") == (atoi(least) == 6016))
        test_fail(t, "messages of at least %s bytes", least);
    if (t->rank == 0 && is_said(log, "do not go by GDR: RONDO_GDR_SCRATCH") != (atoi(least) == 6016))
        test_fail(t, "of messages of at least %s bytes rank 0 has not said whether they go by GDR", least);
    if (t->rank == 0)
        unlink(log);
}

/* Can a communicator be made? Where one cannot, its peer may have heard only of that. */
static void probe(test_rank_t *t, void *unsupported)
{
    rondo_comm_t comm = NULL;
    rondo_result_t result = create(t, &comm);

    if (result == RONDO_ERR_UNSUPPORTED) {
        *(int *)unsupported = 1;
        printf("direct: rank %d: %s\n", t->rank, rondo_last_error(NULL));
    } else if (result != RONDO_ERR_REMOTE && TEST_OK(t, NULL, result)) {
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    }
}

/* More streams than the GPU has queues, each with a message, and work behind it: whatever way they go, they come. */
static void streams(test_rank_t *t, void *unused)
{
    rondo_comm_t comm = device_comm(t);
    cudaStream_t stream[STREAMS];
    char *in[STREAMS], *out[STREAMS], *seen = malloc(EACH);

    (void)unused;
    for (int i = 0; i < STREAMS; i++) {
        in[i] = device_memory(t, EACH, 0);
        out[i] = device_memory(t, EACH, 0);
        TEST_CUDA(t, cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
        TEST_CUDA(t, cudaMemsetAsync(in[i], 16 * t->rank + i, EACH, stream[i]));
    }
    for (int i = 0; i < STREAMS; i++) {
        TEST_OK(t, comm, rondo_group_start());
        TEST_OK(t, comm, rondo_send(in[i], EACH, RONDO_INT8, next_of(t), comm, stream[i]));
        TEST_OK(t, comm, rondo_recv(out[i], EACH, RONDO_INT8, previous_of(t), comm, stream[i]));
        TEST_OK(t, comm, rondo_group_end());
        TEST_CUDA(t, cudaMemsetAsync(in[i], 0, EACH, stream[i]));
    }
    for (int i = 0; i < STREAMS && seen; i++) {
        TEST_CUDA(t, cudaStreamSynchronize(stream[i]));
        TEST_CUDA(t, cudaMemcpy(seen, out[i], EACH, cudaMemcpyDefault));
        if (seen[0] != (char)(16 * previous_of(t) + i) || memcmp(seen, seen + 1, EACH - 1) != 0)
            test_fail(t, "stream %d: %d came, %d was sent", i, seen[0], 16 * previous_of(t) + i);
    }
    free(seen);
    device_end(t, comm, stream, STREAMS);
}

static int run(const char *nodes, uint64_t seed)
{
    static const char *const names[] = {"aborts", "dies", "is late"};
    int ranks = device_nodes(nodes), bad = test_run(TEST_PROCESSES, ranks, 200, right, &seed);

    printf("direct: %s: %s\n", nodes, bad ? "WRONG" : "right");
    for (trouble_t what = ABORTS; what <= LATE; what++) {
        for (int i = 0; i < (what == ABORTS ? 3 : 1); i++) { /* in this or that moment */
            test_director_t director = {.victims = what == DIES ? 1u << (ranks - 1) : 0};
            bad += test_run_directed(&director, ranks, 60, trouble, &what);
        }
        printf("direct: %s, a rank %s: %s\n", nodes, names[what], bad ? "WRONG" : "right");
    }
    return bad;
}

int main(int argc, char **argv)
{
    static const char *const nodes[] = {"1+1", "1+1+1", "2+2"}, *const channels[] = {"5", "3", "2"};
    uint64_t seed = argc == 3 && strcmp(argv[1], "--seed") == 0 ? strtoull(argv[2], NULL, 0) : 1;
    int *unsupported = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), bad;

    if ((argc != 1 && argc != 3) || unsupported == MAP_FAILED)
        return 2;
    test_begin("direct", 600);
    if (device_none())
        return TEST_SKIPPED;
    device_nodes("1+1");
    setenv("RONDO_GDR", "0", 1);
    bad = test_run(TEST_PROCESSES, 2, 60, probe, unsupported);
    if (*unsupported) /* not even a network */
        return sim_live ? TEST_SKIPPED : 0;
    bad += sim_live ? test_run(TEST_PROCESSES, 2, 60, refused, NULL) : 0;
    bad += sim_live ? test_run(TEST_PROCESSES, device_nodes("1+1+1"), 60, mixed, NULL) : 0;
    device_nodes("1+1");
    setenv("RONDO_GDR", "1", 1);
    setenv("RONDO_GDR_MIN", "4K", 1);
    bad += test_run(TEST_PROCESSES, 2, 60, probe, unsupported);
    if (*unsupported && !sim_live)
        return bad != 0;
    printf("direct: where there is no way: %s\n", bad ? "WRONG" : "right");
    device_nodes("1+1");
    setenv("RONDO_GDR", "-1", 1);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 1);
    bad += test_run(TEST_PROCESSES, 2, 60, streams, NULL);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    setenv("RONDO_GDR", "1", 1);
    printf("direct: as many streams as the GPU has queues: %s\n", bad ? "WRONG" : "right");
    for (int is_short = 0; is_short < 2 && sim_live; is_short++)
        bad += test_run(TEST_PROCESSES, device_nodes("1+1+1"), 60, without_scratch, &is_short);
    for (int i = 0; i < 2; i++)
        bad += test_run(TEST_PROCESSES, device_nodes("1+1+1+1"), 60, little_scratch, i ? "6016" : "4992");
    printf("direct: without scratch, and with little of it: %s\n", bad ? "WRONG" : "right");
    for (int i = 0; i < 3; i++) {
        setenv("RONDO_PROXY_THREADS", channels[i], 1);
        bad += run(nodes[i], seed + (uint64_t)i);
    }
    return bad != 0;
}
