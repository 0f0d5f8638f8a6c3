/* rondo_comm_grow on devices: members have a communicator with work under way, a captured graph and a window; new ranks
 * come with the id. What is made is whole, and so is what the members had: while both live, when the one ends, and when
 * the other does. On one node and on played ones; what has been grown is grown again.
 *
 *   whole    every number of members, as processes and as threads (on simulated GPUs in turns), waiting or in the
 *            background
 *   unlike   a new rank on host memory is refused on all ranks, which then grow without that
 *   killed   the last new rank dies: the grown communicator fails, and the members' one goes on
 *
 *   grow [--seed S] [--part NAME]
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu/device.h"

#define COUNT 3000
#define PART 64 /* ints of a window that each rank has */

typedef struct {
    int members;
    uint64_t seed;
} plan_t;

/* A communicator and what hangs on it. */
typedef struct {
    rondo_comm_t comm;
    int nranks;
    cudaStream_t stream;
    int *data, *host;
    cudaGraphExec_t exec;
    rondo_window_t window; /* NULL: kernels do not reach each other's memory */
} world_t;

static rondo_comm_t members_comm(test_rank_t *t, int m)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;

    config.device = device_begin(t);
    test_id(t, &id);
    if (t->rank < m && !TEST_OK(t, NULL, rondo_comm_create(&comm, m, &id, t->rank, &config)))
        test_stop(t, "the members have no communicator");
    return comm;
}

/* A new rank goes to its thread's device, and a member stays on the communicator's, wherever its thread is. */
static rondo_comm_t grown(test_rank_t *t, rondo_comm_t comm, int nranks, const rondo_unique_id_t *id, int blocking)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_result_t result;
    rondo_comm_t made = NULL;
    int device, count, own = -1;

    config.blocking = blocking;
    TEST_CUDA(t, cudaGetDevice(&device));
    TEST_CUDA(t, cudaGetDeviceCount(&count));
    if (comm)
        TEST_CUDA(t, cudaSetDevice((device + 1) % count));
    result = rondo_comm_grow(comm, nranks, id, comm ? -1 : t->rank, &made, &config);
    if (!TEST_OK(t, made, test_settled(made, result)))
        test_stop(t, "no communicator");
    TEST_CUDA(t, cudaSetDevice(device));
    TEST_OK(t, made, rondo_comm_device(made, &own));
    TEST_TRUE(t, own == device);
    return made;
}

/* ---- what hangs on a communicator ---- */

/* All at once in a stream: sums, and everyone's blocks. `round` makes other numbers. */
static void post(test_rank_t *t, world_t *w, int round)
{
    for (int i = 0; i < COUNT; i++)
        w->host[i] = (t->rank + 1) * (i % 97 + round);
    TEST_CUDA(t, cudaMemcpyAsync(w->data, w->host, COUNT * sizeof(int), cudaMemcpyDefault, w->stream));
    TEST_OK(t, w->comm, rondo_allreduce(w->data, w->data, COUNT, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
}

static void verify(test_rank_t *t, world_t *w, int round, int times)
{
    int sum = w->nranks * (w->nranks + 1) / 2;

    for (int i = 0; i < times; i++) /* a graph's replays sum what is alike on all ranks */
        sum *= w->nranks;
    TEST_CUDA(t, cudaMemcpyAsync(w->host, w->data, COUNT * sizeof(int), cudaMemcpyDefault, w->stream));
    TEST_CUDA(t, cudaStreamSynchronize(w->stream));
    for (int i = 0; i < COUNT; i++)
        if (w->host[i] != sum * (i % 97 + round))
            test_stop(t, "element %d of the sum over %d ranks is %d, should be %d", i, w->nranks, w->host[i],
                      sum * (i % 97 + round));
}

/* Each block to everyone, and a number from the last rank. */
static void move(test_rank_t *t, world_t *w)
{
    int n = w->nranks, *to = w->data + COUNT, block = COUNT / n;

    for (int i = 0; i < COUNT; i++)
        w->host[i] = t->rank * 10000 + i;
    TEST_CUDA(t, cudaMemcpyAsync(w->data, w->host, COUNT * sizeof(int), cudaMemcpyDefault, w->stream));
    TEST_OK(t, w->comm, rondo_alltoall(w->data, to, (size_t)block, RONDO_INT32, w->comm, w->stream));
    TEST_OK(t, w->comm, rondo_broadcast(w->data, w->data, 1, RONDO_INT32, n - 1, w->comm, w->stream));
    TEST_CUDA(t, cudaMemcpyAsync(w->host, to, COUNT * sizeof(int), cudaMemcpyDefault, w->stream));
    TEST_CUDA(t, cudaMemcpyAsync(w->host + COUNT, w->data, sizeof(int), cudaMemcpyDefault, w->stream));
    TEST_CUDA(t, cudaStreamSynchronize(w->stream));
    for (int i = 0; i < n * block; i++)
        if (w->host[i] != i / block * 10000 + t->rank * block + i % block)
            test_stop(t, "element %d from rank %d is %d", i % block, i / block, w->host[i]);
    TEST_TRUE(t, w->host[COUNT] == (n - 1) * 10000);
}

static void capture(test_rank_t *t, world_t *w)
{
    cudaGraph_t graph;

    TEST_CUDA(t, cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    TEST_OK(t, w->comm, rondo_allreduce(w->data, w->data, COUNT, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
    TEST_CUDA(t, cudaStreamEndCapture(w->stream, &graph));
    TEST_CUDA(t, cudaGraphInstantiate(&w->exec, graph, 0));
    TEST_CUDA(t, cudaGraphDestroy(graph));
}

static void open_window(test_rank_t *t, world_t *w)
{
    rondo_result_t result = rondo_window_create(w->comm, NULL, PART * sizeof(int), &w->window, 0);

    if (result != RONDO_ERR_UNSUPPORTED)
        TEST_OK(t, w->comm, result);
}

/* Everyone writes into its own part; each then reads all of them where its kernels would. */
static void use_window(test_rank_t *t, world_t *w, int round)
{
    rondo_device_window_t view = {.size = sizeof view};

    if (!w->window)
        return;
    TEST_OK(t, w->comm, rondo_device_window(w->comm, w->window, &view));
    TEST_OK(t, w->comm, rondo_barrier(w->comm, w->stream)); /* nobody reads the last round's any more */
    for (int i = 0; i < PART; i++)
        w->host[i] = round * 1000 + t->rank * 100 + i;
    TEST_CUDA(t, cudaMemcpyAsync(view.base[t->rank], w->host, PART * sizeof(int), cudaMemcpyDefault, w->stream));
    TEST_OK(t, w->comm, rondo_barrier(w->comm, w->stream));
    for (int r = 0; r < w->nranks; r++)
        TEST_CUDA(t, cudaMemcpyAsync(w->host + (1 + r) * PART, view.base[r], PART * sizeof(int), cudaMemcpyDefault,
                                     w->stream));
    TEST_CUDA(t, cudaStreamSynchronize(w->stream));
    for (int r = 0; r < w->nranks; r++)
        for (int i = 0; i < PART; i++)
            if (w->host[(1 + r) * PART + i] != round * 1000 + r * 100 + i)
                test_stop(t, "word %d of rank %d's part of the window of %d ranks is %d", i, r, w->nranks,
                          w->host[(1 + r) * PART + i]);
}

static void use(test_rank_t *t, world_t *w, int round)
{
    test_note(t, "the communicator of %d ranks, round %d", w->nranks, round);
    post(t, w, round);
    TEST_CUDA(t, cudaGraphLaunch(w->exec, w->stream));
    verify(t, w, round, 1);
    move(t, w);
    use_window(t, w, round);
}

/* Streams and memory are taken when no kernel waits for this rank. */
static void prepare(test_rank_t *t, world_t *w)
{
    w->data = device_memory(t, 2 * COUNT * sizeof(int), 0);
    w->host = device_memory(t, 2 * COUNT * sizeof(int), 1);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking));
}

static void begin(test_rank_t *t, world_t *w, rondo_comm_t comm, int nranks)
{
    w->comm = comm;
    w->nranks = nranks;
    capture(t, w);
    open_window(t, w);
}

/* Nobody has anything under way: CUDA waits for that when a graph is destroyed. */
static void end(test_rank_t *t, world_t *w)
{
    test_barrier(t);
    if (w->comm)
        TEST_OK(t, NULL, rondo_comm_destroy(w->comm));
    test_barrier(t);
    if (w->comm)
        TEST_CUDA(t, cudaGraphExecDestroy(w->exec));
    test_barrier(t);
}

/* ---- whole ---- */

static void whole(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    uint64_t random = test_mix(p->seed);
    world_t parent = {0}, made[2] = {{0}, {0}};
    rondo_unique_id_t id;
    rondo_comm_t comm = members_comm(t, p->members);

    prepare(t, &parent);
    prepare(t, &made[0]);
    prepare(t, &made[1]);
    if (comm) {
        begin(t, &parent, comm, p->members);
        use(t, &parent, 1);
    }
    for (int i = 0; i < 2; i++) {
        unsigned holder = test_below(&random, (unsigned)p->members), late = test_below(&random, (unsigned)t->nranks);
        int blocking = (int)test_below(&random, 2);
        test_note(t, "grow of %d by %d, id with %u, blocking %d", p->members, t->nranks - p->members, holder, blocking);
        test_id(t, &id);
        if (comm) { /* under way, as far as the device has come with it */
            post(t, &parent, 2);
            TEST_CUDA(t, cudaGraphLaunch(parent.exec, parent.stream));
        }
        if (t->rank == (int)late)
            usleep(3000);
        int has = !comm || t->rank == (int)holder;
        begin(t, &made[i], grown(t, comm, t->nranks, has ? &id : NULL, blocking), t->nranks);
        if (comm)
            verify(t, &parent, 2, 1);
        use(t, &made[i], 3);
        if (comm)
            use(t, &parent, 4);
    }
    end(t, &made[0]);
    use(t, &made[1], 5);
    if (comm)
        use(t, &parent, 6);
    end(t, &parent);
    use(t, &made[1], 7);
    end(t, &made[1]);
    device_end(t, NULL, (cudaStream_t[]){parent.stream, made[0].stream, made[1].stream}, 3);
}

/* ---- one rank more each time ---- */

static void steps(test_rank_t *t, void *arg)
{
    world_t w = {0};
    rondo_unique_id_t id;
    rondo_comm_t comm = members_comm(t, 1);

    (void)arg;
    prepare(t, &w);
    for (int n = 2; n <= t->nranks; n++) {
        test_note(t, "grow to %d", n);
        test_id(t, &id);
        if (t->rank >= n)
            continue;
        w.comm = grown(t, comm, n, &id, 1);
        w.nranks = n;
        if (comm)
            TEST_OK(t, NULL, rondo_comm_destroy(comm));
        comm = w.comm;
        post(t, &w, n);
        verify(t, &w, n, 0);
        move(t, &w);
    }
    device_end(t, comm, &w.stream, 1);
}

/* ---- unlike ---- */

static void unlike(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    rondo_config_t config = RONDO_CONFIG_INIT;
    world_t parent = {0}, w = {0};
    rondo_comm_t comm = members_comm(t, p->members), made = NULL;
    rondo_unique_id_t id;

    prepare(t, &parent);
    prepare(t, &w);
    if (t->rank == t->nranks - 1)
        config.device = RONDO_DEVICE_HOST;
    test_note(t, "a new rank on host memory");
    test_id(t, &id);
    if (TEST_GIVES(t, NULL, RONDO_ERR_INVALID_USAGE,
                   rondo_comm_grow(comm, t->nranks, &id, comm ? -1 : t->rank, &made, &config)))
        test_sentence(t, "host memory");
    test_note(t, "and on a device");
    test_id(t, &id);
    begin(t, &w, grown(t, comm, t->nranks, &id, 1), t->nranks);
    use(t, &w, 1);
    if (comm) {
        begin(t, &parent, comm, p->members);
        use(t, &parent, 2);
    }
    end(t, &w);
    end(t, &parent);
    device_end(t, NULL, (cudaStream_t[]){parent.stream, w.stream}, 2);
}

/* ---- killed ---- */

static void killed(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    world_t parent = {0}, w = {0};
    rondo_comm_t comm = members_comm(t, p->members);
    rondo_unique_id_t id;
    char name[20];

    snprintf(name, sizeof name, "rank %d", t->nranks - 1);
    prepare(t, &parent);
    prepare(t, &w);
    test_id(t, &id);
    w.comm = grown(t, comm, t->nranks, &id, 1);
    w.nranks = t->nranks;
    post(t, &w, 1);
    verify(t, &w, 1, 0);
    if (comm)
        begin(t, &parent, comm, p->members);
    test_barrier(t);
    if (t->rank == t->nranks - 1)
        raise(SIGKILL);
    test_note(t, "sums with the dead rank");
    (void)rondo_allreduce(w.data, w.data, COUNT, RONDO_INT32, RONDO_SUM, w.comm, w.stream);
    TEST_CUDA(t, cudaStreamSynchronize(w.stream));
    if (TEST_GIVES(t, w.comm, RONDO_ERR_REMOTE, rondo_barrier(w.comm, w.stream)))
        TEST_TRUE(t, strstr(rondo_last_error(w.comm), name) != NULL);
    TEST_OK(t, NULL, rondo_comm_destroy(w.comm));
    if (comm) {
        use(t, &parent, 2);
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
        TEST_CUDA(t, cudaGraphExecDestroy(parent.exec));
    }
    TEST_CUDA(t, cudaStreamDestroy(parent.stream));
    TEST_CUDA(t, cudaStreamDestroy(w.stream));
}

/* ---- all ---- */

static void probe(test_rank_t *t, void *unsupported)
{
    rondo_comm_t comm = test_comm_on(t, 2);

    if (comm)
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    else
        *(int *)unsupported = 1;
}

/* Is there a network between nodes? */
static int networked(void)
{
    int *unsupported = mmap(NULL, sizeof *unsupported, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (unsupported == MAP_FAILED)
        return 0;
    int bad = test_run(TEST_PROCESSES, 2, 60, probe, unsupported);
    int found = bad || !*unsupported; /* what is wrong there shows in the parts */
    munmap(unsupported, sizeof *unsupported);
    return found;
}

static const char *only; /* part; NULL: all */

static int run(const char *part, test_kind_t kind, const char *nodes, int nranks, const plan_t *p, test_body_fn body)
{
    test_director_t director = {.victims = 1u << (nranks - 1)};
    plan_t own = *p;
    int bad;

    if (only && strcmp(only, part) != 0)
        return 0;
    device_nodes(nodes);
    bad =
        body == killed ? test_run_directed(&director, nranks, 90, body, &own) : test_run(kind, nranks, 90, body, &own);
    printf("grow: %s, %d members, %d %s%s%s, seed %llu: %s\n", part, p->members, nranks, test_kind_name(kind),
           nodes ? " on " : "", nodes ? nodes : "", (unsigned long long)p->seed, bad ? "WRONG" : "right");
    device_nodes(NULL);
    return bad;
}

/* On simulated GPUs every other number of members, as processes or as threads: the other kind has the others. */
static int others_turn(test_kind_t kind, int n, int members)
{
    return sim_live && (n + members + (int)kind) % 2 == 0;
}

int main(int argc, char **argv)
{
    static const char *const played[] = {"1+1", "2+1", "2+2"};
    uint64_t seed = 1;
    int bad = 0;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--part") == 0)
            only = argv[i + 1];
        else
            return 2;
    }
    test_begin("grow", 400);
    setenv("RONDO_CREATE_TIMEOUT_MS", "60000", 1);
    if (device_none())
        return TEST_SKIPPED;
    const int networks = networked();
    for (test_kind_t kind = TEST_PROCESSES; kind <= TEST_THREADS && !bad; kind++) {
        for (int n = 2; n <= 4 && !bad; n++)
            for (int m = n > 3 ? n - 2 : 1; m < n && !bad; m++)
                if (!others_turn(kind, n, m))
                    bad += run("whole", kind, NULL, n, &(plan_t){m, seed++}, whole);
        bad += bad ? 0 : run("steps", kind, NULL, 4, &(plan_t){1, seed++}, steps);
        bad += bad ? 0 : run("unlike", kind, NULL, 3, &(plan_t){2, seed++}, unlike);
    }
    for (size_t i = 0; i < sizeof played / sizeof *played && !bad && networks; i++) {
        int n = device_nodes(played[i]);
        for (int m = 1; m < n && !bad; m++)
            bad += run("whole", TEST_PROCESSES, played[i], n, &(plan_t){m, seed++}, whole);
        bad += bad ? 0 : run("steps", TEST_PROCESSES, played[i], n, &(plan_t){1, seed++}, steps);
    }
    for (int m = 1; m <= 2 && !bad; m++)
        bad += run("killed", TEST_PROCESSES, NULL, 3, &(plan_t){m, seed++}, killed);
    return bad != 0;
}
