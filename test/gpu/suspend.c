/* rondo_comm_suspend and rondo_comm_resume: the device memory is free in between, calls are refused, and operations of
 * every kind go on afterwards where they were; what was under way at the suspension is done before. A graph that holds
 * operations, a rank without memory, one that dies, aborts or does not come are seen by all.
 *
 *   suspend [--nodes | --host-windows] [--part NAME]
 *
 * With --nodes the ranks are on played nodes, with --host-windows they meet in host memory. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu/device.h"
#include "sim/poor.h"

#define ROUNDS 2

static int played, host_windows;

/* One of each operation, of so many lengths, and what they must give. The simulated machine is slow. */
static void operations(test_rank_t *t, rondo_comm_t comm, cudaStream_t stream, uint64_t *random, int lengths)
{
    const size_t counts[] = {100, sim_live ? 9000 : 600000, 40000};
    device_call_t call;

    for (int i = 0; i < (sim_live && lengths > 2 ? 2 : lengths) * DO_NUM; i++) {
        do_case_t c = {.what = (do_what_t)(i % DO_NUM), .type = RONDO_FLOAT32, .op = RONDO_SUM};
        c.count = counts[i / DO_NUM];
        c.data = do_reduces(c.what) ? REF_EXACT : REF_BYTES;
        c.seed = test_random(random);
        c.root = i % t->nranks;
        device_prepare(t, &call, &c, 0);
        device_fill(t, &call, stream);
        TEST_OK(t, comm, device_post(&call, comm, stream));
        device_verify(t, &call, 1, stream);
        device_release(&call);
    }
}

static rondo_memory_t memory_of(test_rank_t *t, rondo_comm_t comm)
{
    rondo_memory_t m = {.size = sizeof m};

    TEST_OK(t, comm, rondo_comm_memory_now(comm, &m));
    return m;
}

/* Bytes of the device, when no rank takes or frees any. */
static size_t left_now(test_rank_t *t)
{
    size_t left = 0, all = 0;

    test_barrier(t);
    TEST_CUDA(t, cudaMemGetInfo(&left, &all));
    test_barrier(t);
    return left;
}

static void refused(test_rank_t *t, rondo_comm_t comm, cudaStream_t stream)
{
    rondo_result_t error = RONDO_ERR_INTERNAL;
    rondo_comm_t part = NULL;
    int rank = -1, size = -1;
    float *x = device_memory(t, 64, 0);

    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_allreduce(x, x, 1, RONDO_FLOAT32, RONDO_SUM, comm, stream));
    TEST_TRUE(t, strstr(rondo_last_error(comm), "comm is suspended") != NULL);
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE,
               rondo_send(x, 1, RONDO_FLOAT32, (t->rank + 1) % t->nranks, comm, stream));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_barrier(comm, stream));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_comm_split(comm, 0, 0, &part, NULL));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_comm_suspend(comm));
    TEST_OK(t, NULL, rondo_group_start());
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_comm_resume(comm));
    TEST_OK(t, NULL, rondo_group_end());
    TEST_OK(t, comm, rondo_comm_rank(comm, &rank));
    TEST_OK(t, comm, rondo_comm_size(comm, &size));
    TEST_OK(t, comm, rondo_comm_get_error(comm, &error));
    TEST_TRUE(t, rank == t->rank && size == t->nranks && error == RONDO_SUCCESS);
    device_memory_back(x);
}

static void rounds(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = device_comm(t), idle = device_comm(t);
    const rondo_memory_t had = memory_of(t, comm);
    uint64_t random = 11;
    cudaStream_t stream;

    (void)arg;
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TEST_TRUE(t, had.suspended == 0 && had.suspend <= had.device && (had.suspend > 0 || played));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_comm_resume(comm));
    for (int round = 0; round < ROUNDS; round++) {
        test_note(t, "round %d", round);
        operations(t, comm, stream, &random, 3);
        size_t left = left_now(t);
        TEST_OK(t, comm, rondo_comm_suspend(comm));
        size_t more = left_now(t);
        if (more < left + had.suspend)
            test_fail(t, "the device has %zu bytes more, and %llu were to be given back", more - left,
                      (unsigned long long)had.suspend);
        rondo_memory_t now = memory_of(t, comm);
        TEST_TRUE(t, now.device == had.device - had.suspend && now.suspend == 0 && now.suspended == had.suspend);
        refused(t, comm, stream);
        operations(t, idle, stream, &random, 1); /* another one is not concerned */
        TEST_OK(t, comm, rondo_comm_resume(comm));
        now = memory_of(t, comm);
        TEST_TRUE(t, memcmp(&now, &had, sizeof now) == 0);
    }
    operations(t, comm, stream, &random, 1);
    TEST_OK(t, comm, rondo_comm_suspend(comm)); /* and is destroyed so */
    TEST_OK(t, NULL, rondo_comm_destroy(idle));
    device_end(t, comm, &stream, 1);
}

/* What is enqueued at the suspension is done before. */
static void outstanding(test_rank_t *t, void *arg)
{
    const size_t count = 5000;
    rondo_comm_t comm = device_comm(t);
    int *data = device_memory(t, count * sizeof(int), 0), *host = device_memory(t, count * sizeof(int), 1);
    cudaStream_t stream;
    int want = 1;

    (void)arg;
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (size_t i = 0; i < count; i++)
        host[i] = 1;
    TEST_CUDA(t, cudaMemcpyAsync(data, host, count * sizeof(int), cudaMemcpyDefault, stream));
    for (int i = 0; i < 5; i++, want *= t->nranks) {
        if (t->rank == 1 && i == 3)
            usleep(50000);
        TEST_OK(t, comm, rondo_allreduce(data, data, count, RONDO_INT32, RONDO_SUM, comm, stream));
    }
    TEST_OK(t, comm, rondo_comm_suspend(comm));
    TEST_CUDA(t, cudaMemcpyAsync(host, data, count * sizeof(int), cudaMemcpyDefault, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    for (size_t i = 0; i < count; i++)
        if (host[i] != want)
            test_stop(t, "element %zu is %d, not %d", i, host[i], want);
    TEST_OK(t, comm, rondo_comm_resume(comm));
    device_end(t, comm, &stream, 1);
}

/* Rank 1 alone has captured its operations. The graph is of no consequence any more, but who knows? */
static void graphs(test_rank_t *t, void *arg)
{
    int *data = device_memory(t, 4096, 0);
    rondo_comm_t comm = device_comm(t);
    uint64_t random = 12;
    cudaGraphExec_t exec;
    cudaStream_t stream;
    cudaGraph_t graph;

    (void)arg;
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (t->rank == 1)
        TEST_CUDA(t, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 3; i++)
        TEST_OK(t, comm, rondo_allreduce(data, data, 100, RONDO_INT32, RONDO_SUM, comm, stream));
    if (t->rank == 1) {
        TEST_CUDA(t, cudaStreamEndCapture(stream, &graph));
        TEST_CUDA(t, cudaGraphInstantiate(&exec, graph, 0));
        TEST_CUDA(t, cudaGraphDestroy(graph));
        TEST_CUDA(t, cudaGraphLaunch(exec, stream));
    }
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    for (int round = 0; round < 2; round++) {
        TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_comm_suspend(comm));
        TEST_TRUE(t, strstr(rondo_last_error(comm), "have been captured") != NULL);
        operations(t, comm, stream, &random, 1); /* nothing has changed */
        if (round == 0 && t->rank == 1)
            TEST_CUDA(t, cudaGraphExecDestroy(exec));
    }
    device_end(t, comm, &stream, 1);
}

/* The device of the last rank is full when it is to resume. */
static void full(test_rank_t *t, void *arg)
{
    const int last = t->nranks - 1;
    rondo_comm_t comm = device_comm(t);
    uint64_t random = 13;
    cudaStream_t stream;

    (void)arg;
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TEST_OK(t, comm, rondo_comm_suspend(comm));
    for (int i = 0; i < 2; i++) {
        if (t->rank == last)
            setenv("SIM_FULL", "1", 1);
        TEST_GIVES(t, comm, RONDO_ERR_NO_MEMORY, rondo_comm_resume(comm));
        if (t->rank == last)
            unsetenv("SIM_FULL");
        TEST_TRUE(t, memory_of(t, comm).suspend == 0);
        refused(t, comm, stream);
    }
    TEST_OK(t, comm, rondo_comm_resume(comm));
    operations(t, comm, stream, &random, 1);
    device_end(t, comm, &stream, 1);
}

typedef struct outcome {
    rondo_result_t result, error;
    int hit;
} outcome_t;

static outcome_t *outcomes; /* of each rank */

/* How a suspension or resumption went where the last rank ran out of host memory: alike for all. */
static rondo_result_t alike(test_rank_t *t, rondo_comm_t comm, rondo_result_t result, int hit)
{
    rondo_result_t error = RONDO_SUCCESS;

    TEST_OK(t, comm, rondo_comm_get_error(comm, &error));
    outcomes[t->rank] = (outcome_t){result, error, hit};
    test_barrier(t);
    for (int r = 0; r < t->nranks; r++)
        if ((outcomes[r].result == RONDO_SUCCESS) != (result == RONDO_SUCCESS) ||
            (outcomes[r].error == RONDO_SUCCESS) != (error == RONDO_SUCCESS))
            test_stop(t, "%s, and the communicator has %s; on rank %d %s and %s", rondo_result_string(result),
                      rondo_result_string(error), r, rondo_result_string(outcomes[r].result),
                      rondo_result_string(outcomes[r].error));
    test_barrier(t);
    return error;
}

/* The k-th request of the last rank for host memory is refused, and all that follow, for every k. A suspension leaves
 * everything as it was then, a resumption that, or the communicator fails for all, and in time. */
static void poor(test_rank_t *t, void *arg)
{
    const int last = t->nranks - 1;
    uint64_t random = 14;
    cudaStream_t stream;

    (void)arg;
    device_begin(t);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int resumes = 0; resumes < 2; resumes++) {
        rondo_comm_t comm = device_comm(t);
        int hit = 1;
        operations(t, comm, stream, &random, 1);
        long k = 1;
        for (; hit; k++) {
            if (resumes)
                TEST_OK(t, comm, rondo_comm_suspend(comm));
            test_note(t, "%s, request %ld", resumes ? "resume" : "suspend", k);
            if (t->rank == last)
                sim_poor(k);
            rondo_result_t result = resumes ? rondo_comm_resume(comm) : rondo_comm_suspend(comm);
            rondo_result_t failed = alike(t, comm, result, t->rank == last ? sim_poor_end() : 0);
            hit = outcomes[last].hit;
            TEST_TRUE(t, resumes || failed == RONDO_SUCCESS);
            if (failed != RONDO_SUCCESS) {
                TEST_OK(t, NULL, rondo_comm_abort(comm));
                comm = device_comm(t);
            } else if ((result == RONDO_SUCCESS) != resumes) {
                TEST_OK(t, comm, rondo_comm_resume(comm));
            }
            operations(t, comm, stream, &random, 1);
        }
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
        if (t->rank == last)
            printf("suspend: %ld requests to %s\n", k - 2, resumes ? "resume" : "suspend");
    }
    device_end(t, NULL, &stream, 1);
}

/* By GDR, rails send from the node communicators' windows, and from where they lie, though after a suspension they lie
 * where others have been. */
static void rails(test_rank_t *t, void *arg)
{
    cudaStream_t stream;
    uint64_t random = 15;

    (void)arg;
    setenv("RONDO_GDR", "1", 1);
    setenv("RONDO_GDR_MIN", "256", 1);
    setenv("RONDO_GDR_COLL_MIN", "64", 1);
    setenv("RONDO_PROXY_ROUND", "1024", 1);
    setenv("RONDO_CUDA_FIFOS", "1", 1);
    rondo_comm_t comm = device_comm(t);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    operations(t, comm, stream, &random, 3);
    const rondo_memory_t had = memory_of(t, comm);
    for (int round = 0; round < 3; round++) {
        test_note(t, "round %d", round);
        TEST_OK(t, comm, rondo_comm_suspend(comm));
        TEST_OK(t, comm, rondo_comm_resume(comm));
        operations(t, comm, stream, &random, 3);
        const rondo_memory_t now = memory_of(t, comm);
        if (now.device > had.device)
            test_stop(t, "messages are copied to %llu bytes of device memory",
                      (unsigned long long)(now.device - had.device));
    }
    device_end(t, comm, &stream, 1);
}

/* Rank 1 does not come, to a suspension or to what follows it. */
static void late(test_rank_t *t, void *arg)
{
    rondo_comm_t comm;

    (void)arg;
    setenv("RONDO_CREATE_TIMEOUT_MS", "4000", 1);
    for (int resumes = 0; resumes < 2; resumes++) {
        comm = device_comm(t);
        if (resumes)
            TEST_OK(t, comm, rondo_comm_suspend(comm));
        test_barrier(t);
        if (t->rank != 1)
            TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT, resumes ? rondo_comm_resume(comm) : rondo_comm_suspend(comm));
        test_barrier(t);
        TEST_OK(t, NULL, rondo_comm_abort(comm));
    }
    device_end(t, NULL, NULL, 0);
}

/* Rank 0 aborts instead. */
static void aborted(test_rank_t *t, void *arg)
{
    rondo_comm_t comm;

    (void)arg;
    for (int resumes = 0; resumes < 2; resumes++) {
        comm = device_comm(t);
        if (resumes)
            TEST_OK(t, comm, rondo_comm_suspend(comm));
        test_barrier(t);
        if (t->rank == 0) {
            usleep(20000);
            TEST_OK(t, NULL, rondo_comm_abort(comm));
        } else {
            TEST_GIVES(t, comm, RONDO_ERR_REMOTE, resumes ? rondo_comm_resume(comm) : rondo_comm_suspend(comm));
            TEST_TRUE(t, strstr(rondo_last_error(comm), "rank 0") != NULL);
            TEST_OK(t, NULL, rondo_comm_destroy(comm));
        }
        test_barrier(t);
    }
    device_end(t, NULL, NULL, 0);
}

/* The last rank dies; those that are left go on. *arg: it died suspended. */
static void killed(test_rank_t *t, void *arg)
{
    const int resumes = *(const int *)arg;
    int gone = t->nranks - 1;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = device_comm(t), less = NULL;
    rondo_result_t error = RONDO_SUCCESS;
    char name[20];

    if (resumes)
        TEST_OK(t, comm, rondo_comm_suspend(comm));
    test_barrier(t);
    if (t->rank == gone)
        raise(SIGKILL);
    TEST_GIVES(t, comm, RONDO_ERR_REMOTE, resumes ? rondo_comm_resume(comm) : rondo_comm_suspend(comm));
    snprintf(name, sizeof name, "rank %d", gone);
    TEST_TRUE(t, strstr(rondo_last_error(comm), name) != NULL);
    TEST_OK(t, comm, rondo_comm_get_error(comm, &error));
    TEST_TRUE(t, error == RONDO_ERR_REMOTE);
    TEST_CUDA(t, cudaGetDevice(&config.device));
    if (TEST_OK(t, comm, rondo_comm_shrink(comm, &gone, 1, &less, &config)))
        TEST_OK(t, NULL, rondo_comm_destroy(less));
    device_end(t, comm, NULL, 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        test_body_fn body;
        int ranks, kinds, sim; /* sim: on the simulated runtime alone; 1: and without nodes; 3: with them */
    } parts[] = {{"rounds", rounds, 3, 3, 0}, {"outstanding", outstanding, 3, 3, 0},
                 {"graphs", graphs, 2, 3, 0}, {"full", full, 2, 1, 1},
                 {"poor", poor, 3, 1, 2},     {"rails", rails, 4, 1, 3},
                 {"late", late, 2, 1, 0},     {"aborted", aborted, 3, 3, 0}};
    const char *only = NULL;
    int bad = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--nodes") == 0)
            played = 1;
        else if (strcmp(argv[i], "--host-windows") == 0)
            host_windows = 1;
        else if (strcmp(argv[i], "--part") == 0 && i + 1 < argc)
            only = argv[++i];
        else
            return 2;
    }
    test_begin("suspend", 400);
    if (device_none())
        return TEST_SKIPPED;
    outcomes = mmap(NULL, TEST_MAX_RANKS * sizeof *outcomes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (outcomes == MAP_FAILED)
        return 1;
    if (host_windows)
        setenv("RONDO_P2P", "0", 1);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && bad == 0; i++)
        for (int kind = TEST_PROCESSES; kind <= TEST_THREADS && bad == 0; kind++) {
            if ((only && strcmp(only, parts[i].name) != 0) || !(parts[i].kinds & 1 << kind) ||
                (played && kind == TEST_THREADS) || (parts[i].sim && !sim_live) || (parts[i].sim == 1 && played) ||
                (parts[i].sim == 3 && !played))
                continue;
            if (played)
                device_nodes(parts[i].ranks == 4 ? "2+2" : parts[i].ranks == 3 ? "2+1" : "1+1");
            bad += test_run((test_kind_t)kind, parts[i].ranks, 120, parts[i].body, NULL);
            printf("suspend: %s, %d %s: %s\n", parts[i].name, parts[i].ranks, test_kind_name((test_kind_t)kind),
                   bad ? "WRONG" : "right");
        }
    for (int resumes = 0; resumes < 2 && bad == 0 && !only; resumes++) {
        test_director_t director = {.victims = 1u << 2};
        if (played)
            device_nodes("2+1");
        bad += test_run_directed(&director, 3, 60, killed, &resumes);
        printf("suspend: killed%s: %s\n", resumes ? ", suspended" : "", bad ? "WRONG" : "right");
    }
    return bad != 0;
}
