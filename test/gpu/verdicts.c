/* Who holds kernels up, as rondo_explain says it while nobody else calls rondo: a rank that has not enqueued its call,
 * one whose device has not begun it, one that sums by another operator than the others, two communicators whose calls
 * are enqueued in two orders, and a call that is replayed from a graph on all ranks but one. What was planted is known
 * here, and the answer must name the rank, the call and its number; until it does, no other rank may be named.
 *
 *   verdicts [--seed S] [--count N]     N trials besides the one of each kind
 */
#include <getopt.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/device.h"

#define MOST_RANKS 4
#define MOST_BYTES 4000 /* of calls by kernels that have an epoch, on every machine */

typedef enum { LATE, HELD, REPLAYED, UNLIKE, ORDER, KINDS } kind_t;

static const char *const kind_names[KINDS] = {"late", "held", "replayed", "unlike", "order"};

typedef struct trial {
    kind_t kind;
    int victim, coll;
    size_t count;
} trial_t;

typedef enum { ALLREDUCE, ALLGATHER, ALLTOALL, REDUCE_SCATTER, COLLS } coll_t;

static const char *const coll_names[COLLS] = {"allreduce", "allgather", "alltoall", "reduce_scatter"};

static int nranks;
static rondo_comm_t comms[MOST_RANKS], others[MOST_RANKS];
static cudaStream_t streams[MOST_RANKS];
static int *in[MOST_RANKS], *out[MOST_RANKS];
static unsigned long long made; /* calls on `comms` since it was created */
static atomic_int let_go;

static void must(int right, const char *what)
{
    if (right)
        return;
    printf("verdicts: FAILED: %s (%s)\n", what, rondo_last_error(NULL));
    exit(1);
}

static void call(const rondo_comm_t *of, int rank, const trial_t *t)
{
    rondo_comm_t comm = of[rank];
    cudaStream_t stream = streams[rank];
    rondo_result_t result =
        t->coll == ALLREDUCE   ? rondo_allreduce(in[rank], out[rank], t->count, RONDO_INT32, RONDO_SUM, comm, stream)
        : t->coll == ALLGATHER ? rondo_allgather(in[rank], out[rank], t->count, RONDO_INT32, comm, stream)
        : t->coll == ALLTOALL
            ? rondo_alltoall(in[rank], out[rank], t->count, RONDO_INT32, comm, stream)
            : rondo_reduce_scatter(in[rank], out[rank], t->count, RONDO_INT32, RONDO_SUM, comm, stream);

    must(result == RONDO_SUCCESS, rondo_last_error(comm));
}

static void settle(void)
{
    for (int i = 0; i < nranks; i++)
        must(cudaStreamSynchronize(streams[i]) == cudaSuccess, "cudaStreamSynchronize");
}

/* May it be said until the verdict is known? Of two calls in two orders each is held up by what stands before it, which
 * is true as long as that kernel is not seen to wait. */
static bool may_come_first(const trial_t *t, const char *text, const char *named)
{
    return !*text || !strncmp(text, "unknown", 7) || !strncmp(text, "nobody", 6) ||
           (t->kind < UNLIKE && !strncmp(text, named, strlen(named))) ||
           (t->kind == ORDER && strstr(text, " is held up on its device: "));
}

static void await(const trial_t *t, const char *first, const char *second)
{
    const struct timespec pause = {0, 10000000};
    const int asks = t->victim ? 0 : 1;
    char text[1024] = "", named[32];

    snprintf(named, sizeof named, "rank %d (", t->victim);
    while (!strstr(text, first) || !strstr(text, second)) { /* or until the alarm */
        if (!may_come_first(t, text, named)) {
            printf("verdicts: FAILED: %s, rank %d, %s: %s\n", kind_names[t->kind], t->victim, coll_names[t->coll],
                   text);
            exit(1);
        }
        must(rondo_explain(comms[asks], text, sizeof text) == RONDO_SUCCESS, "rondo_explain");
        nanosleep(&pause, NULL);
    }
    if (t->kind < UNLIKE)
        must(!strncmp(text, named, strlen(named)), text);
}

static void others_call(const trial_t *t)
{
    for (int i = 0; i < nranks; i++)
        if (i != t->victim)
            call(comms, i, t);
}

static void which(const trial_t *t, char text[128])
{
    snprintf(text, 128, "%s, collective number %llu (%zu int32", coll_names[t->coll], made + 1, t->count);
}

static void late(const trial_t *t)
{
    char text[128];

    which(t, text);
    others_call(t);
    await(t, " is late, by 1 call: ", text);
    call(comms, t->victim, t);
}

static void hold(void *arg)
{
    const struct timespec pause = {0, 1000000};

    (void)arg;
    while (!atomic_load(&let_go))
        nanosleep(&pause, NULL);
}

static void held(const trial_t *t)
{
    char text[128];

    which(t, text);
    atomic_store(&let_go, 0);
    must(cudaLaunchHostFunc(streams[t->victim], hold, NULL) == cudaSuccess, "cudaLaunchHostFunc");
    others_call(t);
    call(comms, t->victim, t);
    await(t, " is held up on its device: it has enqueued ", text);
    atomic_store(&let_go, 1);
}

static void replayed(const trial_t *t)
{
    cudaGraphExec_t exec[MOST_RANKS];
    cudaGraph_t graph;
    char text[128];

    which(t, text);
    for (int i = 0; i < nranks; i++) {
        must(cudaSetDevice(i) == cudaSuccess, "cudaSetDevice");
        must(cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeThreadLocal) == cudaSuccess, "capture");
        call(comms, i, t);
        must(cudaStreamEndCapture(streams[i], &graph) == cudaSuccess, "cudaStreamEndCapture");
        must(cudaGraphInstantiate(&exec[i], graph, 0) == cudaSuccess, "cudaGraphInstantiate");
        must(cudaGraphDestroy(graph) == cudaSuccess, "cudaGraphDestroy");
    }
    for (int i = 0; i < nranks; i++)
        must(i == t->victim || cudaGraphLaunch(exec[i], streams[i]) == cudaSuccess, "cudaGraphLaunch");
    await(t, " has not begun the replay of ", text);
    must(cudaGraphLaunch(exec[t->victim], streams[t->victim]) == cudaSuccess, "cudaGraphLaunch");
    settle();
    for (int i = 0; i < nranks; i++)
        must(cudaGraphExecDestroy(exec[i]) == cudaSuccess, "cudaGraphExecDestroy");
}

/* The kernels do not mind; of two ranks nobody can know which is wrong. It is said until all have enqueued another
 * call, so they do before the next trial. */
static void unlike(const trial_t *t)
{
    const int i = t->victim;
    char first[128], second[128];

    others_call(t);
    must(rondo_allreduce(in[i], out[i], t->count, RONDO_INT32, RONDO_MAX, comms[i], streams[i]) == RONDO_SUCCESS,
         "allreduce");
    snprintf(first, sizeof first, "differ in op, in collective number %llu%s. rank %d (", made + 1,
             nranks > 2 ? "" : ", and nobody can know who is wrong", nranks > 2 || t->victim ? t->victim : 1);
    snprintf(second, sizeof second, "int32, max)");
    await(t, first, second);
    made++;
    for (int r = 0; r < nranks; r++)
        call(comms, r, t);
}

static void create(void)
{
    int devices[MOST_RANKS] = {0, 1, 2, 3};

    must(rondo_comm_create_all(comms, nranks, devices, NULL) == RONDO_SUCCESS, "create");
    must(rondo_comm_create_all(others, nranks, devices, NULL) == RONDO_SUCCESS, "create");
    made = 0;
}

static void end(void)
{
    for (int i = 0; i < nranks; i++)
        must(rondo_comm_abort(comms[i]) == RONDO_SUCCESS && rondo_comm_abort(others[i]) == RONDO_SUCCESS, "abort");
    settle();
}

/* Only an abort ends it. */
static void order(const trial_t *t)
{
    char text[128];

    which(t, text);
    for (int i = 0; i < nranks; i++) {
        call(i == t->victim ? others : comms, i, t);
        call(i == t->victim ? comms : others, i, t);
    }
    await(t, "kernels wait for each other in different communicators", text);
    end();
    create();
}

static void run(const trial_t *t)
{
    static void (*const kinds[KINDS])(const trial_t *) = {late, held, replayed, unlike, order};

    printf("%s: rank %d of %d, %s of %zu\n", kind_names[t->kind], t->victim, nranks, coll_names[t->coll], t->count);
    kinds[t->kind](t);
    if (t->kind != ORDER) {
        settle();
        made++;
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'}, {"count", required_argument, NULL, 'n'}, {0}};
    uint64_t random, seed = 1;
    int count = 0, c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 's')
            seed = strtoull(optarg, NULL, 0);
        else if (c == 'n')
            count = atoi(optarg);
        else
            return 2;
    }
    test_begin("verdicts", 60 + 5 * count);
    if (device_none())
        return TEST_SKIPPED;
    must(cudaGetDeviceCount(&nranks) == cudaSuccess, "cudaGetDeviceCount");
    if (nranks < 2) {
        printf("verdicts: one GPU: not run\n");
        return 0;
    }
    nranks = nranks < MOST_RANKS ? nranks : MOST_RANKS;
    for (int i = 0; i < nranks; i++) {
        must(cudaSetDevice(i) == cudaSuccess, "cudaSetDevice");
        must(cudaMalloc((void **)&in[i], MOST_RANKS * MOST_BYTES) == cudaSuccess, "cudaMalloc");
        must(cudaMalloc((void **)&out[i], MOST_RANKS * MOST_BYTES) == cudaSuccess, "cudaMalloc");
        must(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking) == cudaSuccess, "a stream");
        must(cudaMemsetAsync(in[i], 0, MOST_RANKS * MOST_BYTES, streams[i]) == cudaSuccess, "cudaMemset");
    }
    settle();
    create();
    random = seed;
    for (int i = 0; i < KINDS + count; i++) {
        static const size_t counts[] = {2, 100, MOST_BYTES / 4};
        trial_t t = {.kind = i < KINDS                      ? (kind_t)i
                             : test_below(&random, 10) == 0 ? ORDER
                                                            : (kind_t)test_below(&random, ORDER),
                     .victim = (int)test_below(&random, (unsigned)nranks),
                     .coll = (int)test_below(&random, COLLS),
                     .count = counts[test_below(&random, 3)]};
        t.coll = t.kind == UNLIKE ? ALLREDUCE : t.coll;
        run(&t);
    }
    end();
    for (int i = 0; i < nranks; i++)
        must(cudaStreamDestroy(streams[i]) == cudaSuccess && cudaFree(in[i]) == cudaSuccess &&
                 cudaFree(out[i]) == cudaSuccess,
             "free");
    printf("verdicts: %d trials, seed %llu: right\n", KINDS + count, (unsigned long long)seed);
    return 0;
}
