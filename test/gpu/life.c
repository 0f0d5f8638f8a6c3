/* A CUDA communicator's life: made and destroyed many times without a leak, destroyed in any order, misused, aborted
 * while kernels wait, deserted by a rank that dies or never calls, held all at once by one thread, ended beside another
 * one whose kernel waits, and beside another one whose kernels GPUs begin in another order, or before what stands in
 * front of its operations.
 *
 *   life [--times N] [--nodes | --on 10+10] [--part NAME]
 *
 * With --nodes every rank is on a node of its own, played; in the last part two ranks share one. With --on one part
 * runs on such nodes.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/life.h"

static int times = 24, played;
static const char *only; /* part; NULL: all */
static const char *on;   /* nodes; NULL: those that a part has */

void life_sum(test_rank_t *t, rondo_comm_t comm, cudaStream_t stream, int *buffer, size_t count)
{
    TEST_OK(t, comm, rondo_allreduce(buffer, buffer, count, RONDO_INT32, RONDO_SUM, comm, stream));
}

void life_sum_checked(test_rank_t *t, rondo_comm_t comm, int nranks, cudaStream_t stream, size_t count)
{
    int *device = device_memory(t, count * sizeof(int), 0), *host = device_memory(t, count * sizeof(int), 1);

    for (size_t i = 0; i < count; i++)
        host[i] = 1;
    TEST_CUDA(t, cudaMemcpyAsync(device, host, count * sizeof(int), cudaMemcpyDefault, stream));
    life_sum(t, comm, stream, device, count);
    TEST_CUDA(t, cudaMemcpyAsync(host, device, count * sizeof(int), cudaMemcpyDefault, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    for (size_t i = 0; i < count; i++) {
        if (host[i] != nranks)
            test_stop(t, "element %zu is %d, should be %d", i, host[i], nranks);
    }
    device_memory_back(host);
    device_memory_back(device);
}

/* ---- made and destroyed ---- */

static int tasks(void)
{
    return test_count_entries("/proc/self/task");
}

/* What a communicator left behind for its peers goes with the next one that ends when they have left. */
static void sweep(test_rank_t *t)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id;
    rondo_comm_t comm = NULL;

    test_barrier(t);
    TEST_CUDA(t, cudaGetDevice(&config.device));
    if (TEST_OK(t, NULL, rondo_unique_id_create(&id)) && TEST_OK(t, NULL, rondo_comm_create(&comm, 1, &id, 0, &config)))
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* In one process one rank counts for all: another one that counts has the folder open, too. */
static int counts(const test_rank_t *t)
{
    return t->kind == TEST_PROCESSES || t->rank == 0;
}

/* Threads that have been told to end need a while. */
static int more_than(int fds, int threads)
{
    for (int i = 0; i < 500; i++) {
        if (test_count_entries("/proc/self/fd") <= fds && tasks() <= threads)
            return 0;
        usleep(10000);
    }
    return 1;
}

/* Of the device: a window that stays behind has 62 MB; CUDA itself takes a little now and then. */
static size_t device_free(test_rank_t *t)
{
    size_t left = 0, all = 0;

    TEST_CUDA(t, cudaMemGetInfo(&left, &all));
    return left + ((size_t)16 << 20);
}

static void many(test_rank_t *t, void *arg)
{
    int fds = 0, threads = 0;
    size_t left = 0;
    cudaStream_t stream;
    char text[200];

    (void)arg;
    for (int i = 0; i < times; i++) {
        test_note(t, "round %d", i);
        rondo_comm_t comm = device_comm(t), second = NULL;
        TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        if (i % 3 == 0)
            second = device_comm(t);
        life_sum_checked(t, comm, t->nranks, stream, 1 + (size_t)i * 100);
        if (second)
            life_sum_checked(t, second, t->nranks, stream, 5);
        if (i % 2 == 0) /* not waited for */
            TEST_OK(t, comm, rondo_barrier(comm, stream));
        TEST_OK(t, NULL, rondo_comm_destroy(i % 2 && second ? second : comm));
        if (second)
            TEST_OK(t, NULL, rondo_comm_destroy(i % 2 ? comm : second));
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        TEST_CUDA(t, cudaStreamDestroy(stream));
        if (i != 2 && i != times - 1)
            continue;
        sweep(t);
        device_finish(t);
        test_barrier(t);
        usleep(30000);
        if (i == 2 && counts(t)) {
            fds = test_count_entries("/proc/self/fd");
            threads = tasks();
            left = device_free(t) - ((size_t)16 << 20);
        }
        test_barrier(t);
    }
    if (counts(t) && device_free(t) < left)
        test_fail(t, "the device has %zu MB less than before", (left - device_free(t)) >> 20);
    if (counts(t) && more_than(fds, threads))
        test_fail(t, "%d descriptors, there were %d; %d threads, there were %d", test_count_entries("/proc/self/fd"),
                  fds, tasks(), threads);
    test_barrier(t);
    if (t->kind == TEST_PROCESSES && sim_live && sim_live(text, sizeof text))
        test_fail(t, "left behind: %s", text);
}

/* ---- misused ---- */

static void wrong(test_rank_t *t, void *arg)
{
    static int pageable[4];
    rondo_comm_t comm = device_comm(t);
    int *device = device_memory(t, 64, 0);
    cudaStream_t stream;

    (void)arg;
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT,
               rondo_allreduce(pageable, device, 4, RONDO_INT32, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, strstr(rondo_last_error(comm), "send") && strstr(rondo_last_error(comm), "pageable"));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_send(pageable, 4, RONDO_INT32, 0, comm, NULL));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_send(device, 4, RONDO_INT32, t->rank, comm, NULL));
    TEST_OK(t, NULL, rondo_group_start());
    TEST_OK(t, comm, rondo_send(device, 4, RONDO_INT32, t->rank, comm, NULL));
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_USAGE, rondo_group_end());
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id;
    rondo_comm_t none = NULL;
    config.device = 1000;
    TEST_OK(t, NULL, rondo_unique_id_create(&id));
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_create(&none, 1, &id, 0, &config));
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    life_sum_checked(t, comm, t->nranks, stream, 100); /* unharmed */
    device_end(t, comm, &stream, 1);
}

/* ---- a graph outlives its communicator, and the other way round ---- */

static void graphs(test_rank_t *t, void *arg)
{
    int *device = device_memory(t, 4096, 0);
    cudaGraphExec_t exec[2];
    rondo_comm_t comm[2];
    cudaStream_t stream;
    cudaGraph_t graph;

    (void)arg;
    TEST_CUDA(t, cudaSetDevice(0));
    comm[0] = device_comm(t);
    comm[1] = device_comm(t);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < 2; i++) {
        test_note(t, "capture %d", i);
        TEST_CUDA(t, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int k = 0; k < 3; k++)
            life_sum(t, comm[i], stream, device, 100);
        /* Between nodes its root goes on while the proxy sends. */
        TEST_OK(t, comm[i], rondo_broadcast(device, device, 100, RONDO_INT32, 0, comm[i], stream));
        TEST_CUDA(t, cudaStreamEndCapture(stream, &graph));
        TEST_CUDA(t, cudaGraphInstantiate(&exec[i], graph, 0));
        TEST_CUDA(t, cudaGraphDestroy(graph));
        TEST_CUDA(t, cudaGraphUpload(exec[i], stream));
    }
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    test_barrier(t); /* CUDA might wait for kernels of another rank of this process while it makes a graph */
    for (int i = 0; i < 2; i++) {
        test_note(t, "launch %d", i);
        TEST_CUDA(t, cudaGraphLaunch(exec[i], stream));
        life_sum(t, comm[i], stream, device, 1);
        TEST_CUDA(t, cudaGraphLaunch(exec[i], stream));
    }
    test_note(t, "wait");
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    test_note(t, "destroy");
    TEST_OK(t, NULL, rondo_comm_destroy(comm[0]));
    device_graphs_destroy(t, exec, 2);
    life_sum_checked(t, comm[1], t->nranks, stream, 1000);
    device_end(t, comm[1], &stream, 1);
}

/* ---- one thread with all ranks ---- */

static void one_thread(test_rank_t *t, void *arg)
{
    enum { RANKS = 3 };
    rondo_comm_t comms[RANKS];
    cudaStream_t streams[RANKS];
    device_call_t calls[RANKS];
    int devices[RANKS], count;
    uint64_t random = 5;

    (void)arg;
    TEST_CUDA(t, cudaGetDeviceCount(&count));
    for (int r = 0; r < RANKS; r++)
        devices[r] = r % count;
    test_note(t, "create all");
    if (!TEST_OK(t, NULL, rondo_comm_create_all(comms, RANKS, devices, NULL)))
        return;
    for (int r = 0; r < RANKS; r++) {
        TEST_CUDA(t, cudaSetDevice(devices[r]));
        device_pools(t);
        TEST_CUDA(t, cudaStreamCreateWithFlags(&streams[r], cudaStreamNonBlocking));
    }
    for (int i = 0; i < 2 * DO_NUM; i++) {
        do_case_t c = {
            .what = (do_what_t)(i % DO_NUM), .type = RONDO_FLOAT32, .op = RONDO_SUM, .count = 1 + 700 * (size_t)i};
        test_note(t, "case %d", i);
        c.data = do_reduces(c.what) ? REF_EXACT : REF_BYTES;
        c.seed = test_random(&random);
        c.root = i % RANKS;
        int grouped = i % 2 || c.what == DO_SHIFT; /* a shift is a group of its own: only one of all ranks can end */
        if (grouped)
            TEST_OK(t, NULL, rondo_group_start());
        for (int r = 0; r < RANKS; r++) {
            TEST_CUDA(t, cudaSetDevice(devices[r]));
            device_prepare_as(t, &calls[r], &c, 0, r, RANKS);
            device_fill(t, &calls[r], streams[r]);
            TEST_CUDA(t, cudaSetDevice(devices[(r + 1) % RANKS])); /* the current device does not matter to a call */
            TEST_OK(t, comms[r], device_post(&calls[r], comms[r], streams[r]));
        }
        if (grouped)
            TEST_OK(t, NULL, rondo_group_end());
        test_note(t, "case %d is called", i);
        for (int r = 0; r < RANKS; r++) {
            TEST_CUDA(t, cudaSetDevice(devices[r]));
            device_verify(t, &calls[r], 1, streams[r]);
            device_release(&calls[r]);
        }
    }
    for (int r = 0; r < RANKS; r++)
        TEST_OK(t, NULL, rondo_comm_destroy(comms[r]));
    for (int r = 0; r < RANKS; r++)
        TEST_CUDA(t, cudaStreamDestroy(streams[r]));
    device_finish(t);
}

/* ---- trouble ---- */

/* Rank 0 aborts while the kernels of the others wait for it. */
static void abort_it(test_rank_t *t, void *arg)
{
    int *device = device_memory(t, 1 << 16, 0);
    rondo_result_t error = RONDO_SUCCESS;
    cudaStream_t stream;

    (void)arg;
    rondo_comm_t comm = device_comm(t);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    life_sum(t, comm, stream, device, 100);
    test_barrier(t); /* nobody is in that call when rank 0 aborts */
    if (t->rank == 0) {
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        usleep(20000);
        TEST_OK(t, NULL, rondo_comm_abort(comm));
    } else {
        for (int i = 0; i < 3; i++)
            (void)rondo_allreduce(device, device, 16000, RONDO_INT32, RONDO_SUM, comm, stream);
        TEST_CUDA(t, cudaStreamSynchronize(stream)); /* the kernels leave */
        TEST_GIVES(t, comm, RONDO_ERR_REMOTE, rondo_barrier(comm, stream));
        TEST_OK(t, comm, rondo_comm_get_error(comm, &error));
        TEST_TRUE(t, error == RONDO_ERR_REMOTE && strstr(rondo_last_error(comm), "rank 0"));
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    }
    test_barrier(t);
    comm = device_comm(t); /* the context is usable */
    life_sum_checked(t, comm, t->nranks, stream, 1000);
    device_end(t, comm, &stream, 1);
}

/* Rank 1 is there and does not call. */
static void late(test_rank_t *t, void *arg)
{
    int *device = device_memory(t, 4096, 0);
    rondo_config_t config = RONDO_CONFIG_INIT;
    cudaStream_t stream;

    (void)arg;
    config.timeout_ms = t->kind == TEST_THREADS ? 0 : 300;
    rondo_comm_t comm = device_comm_config(t, config);
    if (t->kind == TEST_THREADS)
        TEST_OK(t, comm, rondo_timeout_set(comm, 300));
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    test_barrier(t); /* the time of one is not over while another one makes the communicator */
    if (t->rank != 1) {
        life_sum(t, comm, stream, device, 100);
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT, rondo_barrier(comm, stream));
        TEST_TRUE(t, strstr(rondo_last_error(comm), "rank 1") != NULL || t->nranks > 2);
    }
    test_barrier(t);
    device_failed(t, comm); /* rank 1, too, whose rondo_comm_destroy would else be told of it, or not */
    device_end(t, comm, &stream, 1);
}

static void over(test_rank_t *t, rondo_comm_t comm)
{
    rondo_result_t error = RONDO_IN_PROGRESS;

    while (error == RONDO_IN_PROGRESS)
        TEST_OK(t, NULL, rondo_comm_get_error(comm, &error));
    if (error != RONDO_SUCCESS)
        test_stop(t, "a call with blocking = 0 failed: %s", rondo_last_error(comm));
}

/* blocking = 0: rank 0's calls return before the others have called. */
static void behind(test_rank_t *t, void *arg)
{
    rondo_comm_t first = device_comm(t), comm, part = NULL, never;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id, lost;
    cudaStream_t stream;
    int device, made;

    (void)arg;
    TEST_OK(t, first, rondo_comm_device(first, &device)); /* and AUTO is the device that is current in this thread */
    config.blocking = 0;
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    test_id(t, &id);
    test_id(t, &lost);
    if (t->rank != 0)
        test_barrier(t);
    TEST_GIVES(t, NULL, RONDO_IN_PROGRESS, rondo_comm_create(&comm, t->nranks, &id, t->rank, &config));
    if (t->rank == 0) {
        TEST_GIVES(t, NULL, RONDO_IN_PROGRESS, rondo_comm_create(&never, t->nranks, &lost, 0, &config));
        TEST_OK(t, NULL, rondo_comm_abort(never));
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_USAGE, rondo_barrier(comm, stream));
        test_barrier(t);
    }
    over(t, comm);
    TEST_OK(t, comm, rondo_comm_device(comm, &made));
    TEST_TRUE(t, made == device);
    life_sum_checked(t, comm, t->nranks, stream, 1000);
    test_barrier(t);
    if (t->rank != 0)
        test_barrier(t);
    TEST_GIVES(t, comm, RONDO_IN_PROGRESS, rondo_comm_split(comm, 0, t->rank, &part, NULL));
    if (t->rank == 0)
        test_barrier(t);
    over(t, part);
    over(t, comm);
    life_sum_checked(t, part, t->nranks, stream, 1000);
    test_note(t, "finalize");
    TEST_GIVES(t, part, RONDO_IN_PROGRESS, rondo_comm_finalize(part));
    over(t, part);
    life_sum_checked(t, comm, t->nranks, stream, 1000);
    TEST_OK(t, part, rondo_comm_destroy(part));
    TEST_OK(t, comm, rondo_comm_destroy(comm));
    device_end(t, first, &stream, 1);
}

/* Rank 1 ends its communicator in order while a kernel of another one waits for it: no time is set. */
static void peer_left(test_rank_t *t, void *arg)
{
    int *device = device_memory(t, 4096, 0);
    cudaStream_t stream;

    (void)arg;
    rondo_comm_t comm = device_comm(t);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    life_sum_checked(t, comm, t->nranks, stream, 100);
    if (t->rank != 1) {
        life_sum(t, comm, stream, device, 100);
        test_barrier(t);
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        TEST_GIVES(t, comm, RONDO_ERR_REMOTE, rondo_barrier(comm, stream));
        TEST_TRUE(t, strstr(rondo_last_error(comm), "rank 1 (") != NULL);
    } else {
        test_barrier(t);
    }
    (void)rondo_comm_destroy(comm);
    device_end(t, NULL, &stream, 1);
}

static void await_gate(void *arg)
{
    atomic_int *open = arg;

    while (!atomic_load(open))
        usleep(100);
}

/* Operations stand behind something of the program's in their stream, which goes on only when their communicator has
 * been aborted, or destroyed after the error. Meanwhile a later one is used; what was kept for the operations is found
 * again when they have left. */
static void in_front(test_rank_t *t, void *arg)
{
    enum { ROUNDS = 3 };
    int *device = device_memory(t, 4096, 0), live[ROUNDS];
    cudaStream_t stream[2];
    char text[200];

    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_int open = 0;
        rondo_comm_t comm = device_comm(t), later = NULL;
        rondo_result_t error = RONDO_SUCCESS;
        for (int k = 0; k < 2 && i == 0; k++)
            TEST_CUDA(t, cudaStreamCreateWithFlags(&stream[k], cudaStreamNonBlocking));
        life_sum_checked(t, comm, t->nranks, stream[0], 100);
        TEST_CUDA(t, cudaLaunchHostFunc(stream[0], await_gate, &open));
        for (int k = 0; k < 3; k++)
            life_sum(t, comm, stream[0], device, 1000);
        test_barrier(t);
        test_note(t, "the end in front of its operations, %d", i);
        while (t->rank != 0 && error == RONDO_SUCCESS)
            TEST_OK(t, comm, rondo_comm_get_error(comm, &error));
        TEST_OK(t, NULL, t->rank == 0 ? rondo_comm_abort(comm) : rondo_comm_destroy(comm));
        test_barrier(t);
        test_note(t, "another one beside them, %d", i);
        if (sim_live && !played) /* CUDA might wait for the device; between nodes rondo does, to try GDR */
            later = device_comm(t);
        if (later)
            life_sum_checked(t, later, t->nranks, stream[1], 1000);
        atomic_store(&open, 1);
        TEST_CUDA(t, cudaStreamSynchronize(stream[0]));
        test_barrier(t);
        if (later)
            TEST_OK(t, NULL, rondo_comm_destroy(later));
        sweep(t); /* this rank says that it has left */
        sweep(t); /* its peers have */
        test_barrier(t);
        live[i] = sim_live ? sim_live(text, sizeof text) : 0;
    }
    if (t->kind == TEST_PROCESSES && live[ROUNDS - 1] > live[0])
        test_fail(t, "%d things of CUDA are there, and were %d: %s", live[ROUNDS - 1], live[0], text);
    for (int i = 0; i < 2; i++)
        TEST_CUDA(t, cudaStreamDestroy(stream[i]));
    device_finish(t);
}

/* The last rank is killed while the others' kernels wait for it; those that are left go on without it. */
static void killed(test_rank_t *t, void *arg)
{
    int *device = device_memory(t, 1 << 16, 0), gone = t->nranks - 1;
    rondo_comm_t less = NULL;
    cudaStream_t stream;

    (void)arg;
    rondo_comm_t comm = device_comm(t);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    life_sum_checked(t, comm, t->nranks, stream, 100);
    test_barrier(t);
    if (t->rank == gone)
        raise(SIGKILL);
    (void)rondo_allreduce(device, device, 16000, RONDO_INT32, RONDO_SUM, comm, stream);
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    TEST_GIVES(t, comm, RONDO_ERR_REMOTE, rondo_barrier(comm, stream));
    char name[20];
    snprintf(name, sizeof name, "rank %d", gone);
    TEST_TRUE(t, strstr(rondo_last_error(comm), name) != NULL);
    rondo_config_t config = RONDO_CONFIG_INIT;
    TEST_CUDA(t, cudaGetDevice(&config.device));
    if (TEST_OK(t, comm, rondo_comm_shrink(comm, &gone, 1, &less, &config))) {
        life_sum_checked(t, less, t->nranks - 1, stream, 1000);
        TEST_OK(t, NULL, rondo_comm_destroy(less));
    }
    device_end(t, comm, &stream, 1);
}

static int run_killed(int nranks)
{
    test_director_t director = {.victims = 1u << (nranks - 1)};

    return test_run_directed(&director, nranks, 60, killed, NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        test_body_fn body;
        int ranks, kinds;
    } parts[] = {
        {"wrong", wrong, 2, 3},        {"graphs", graphs, 3, 3},      {"one_thread", one_thread, 1, 1},
        {"abort", abort_it, 3, 3},     {"behind", behind, 2, 3},      {"late", late, 2, 3},
        {"deserted", peer_left, 3, 3}, {"beside", life_beside, 2, 3}, {"crossing", life_crossing, 2, 3},
        {"front", in_front, 2, 3},     {"many", many, 2, 3},
    };
    int bad = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--nodes") == 0)
            played = 1;
        else if (strcmp(argv[i], "--times") == 0 && i + 1 < argc)
            times = atoi(argv[++i]);
        else if (strcmp(argv[i], "--part") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--on") == 0 && i + 1 < argc)
            on = argv[++i];
        else
            return 2;
    }
    if (on && (!only || !device_nodes(on)))
        return 2;
    setenv("RONDO_CREATE_TIMEOUT_MS", "60000", 0); /* before the test's own limit, which says less */
    test_begin("life", 400);
    if (device_none())
        return TEST_SKIPPED;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && bad == 0; i++)
        for (int kind = TEST_PROCESSES; kind <= TEST_THREADS && bad == 0; kind++) {
            int64_t began = test_clock_us();
            if (only && strcmp(only, parts[i].name) != 0)
                continue;
            if (!(parts[i].kinds & 1 << kind) || ((played || on) && kind == TEST_THREADS))
                continue;
            /* Between nodes also where each has two: there kernels of the node and rails take part. */
            for (int rails = 0; rails <= played && bad == 0; rails++) {
                int ranks = rails && parts[i].ranks > 1 ? 4 : parts[i].ranks;
                if (on)
                    ranks = device_nodes(on);
                else if (played)
                    device_nodes(rails ? "2+2" : "1+1+1");
                bad += test_run((test_kind_t)kind, ranks, 120, parts[i].body, NULL);
                printf("life: %s, %d %s: %s, %.1f s\n", parts[i].name, ranks, test_kind_name((test_kind_t)kind),
                       bad ? "WRONG" : "right", (double)(test_clock_us() - began) * 1e-6);
            }
        }
    for (int ranks = 3; ranks <= 3 + played && bad == 0 && !only; ranks++) {
        if (played)
            device_nodes(ranks == 3 ? "2+1" : "2+2");
        bad += run_killed(ranks);
        printf("life: killed, %d processes: %s\n", ranks, bad ? "WRONG" : "right");
    }
    return bad != 0;
}
