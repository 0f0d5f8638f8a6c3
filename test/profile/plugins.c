/* NCCL's profiler plugins, by a recorder of each version from 1 to 7 (recorder.c): what it is shown of calls, messages
 * and groups, with their parents, numbers, words; that what starts is stopped once, and nothing comes after the end,
 * whatever the mask does and however a communicator ends; that a refusal or errors disturb nobody; and by which names a
 * plugin is found. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/recorder.h"
#include "util/harness.h"
#include "util/start_with.h"

#define ALL 0xffff
enum {
    GROUP = 1 << 0,
    COLL = 1 << 1,
    P2P = 1 << 2,
    CHANNEL = 1 << 6,
    GROUP_API = 1 << 8,
    COLL_API = 1 << 9,
    P2P_API = 1 << 10
};
enum { CHANNEL_STOP = 22, GROUP_START_STOP = 23, GROUP_END_START = 24 };

static char library[512];

static recorder_t *recorder(test_rank_t *t)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    recorder_t *seen = handle ? dlsym(handle, RECORDER_SYMBOL) : NULL;

    if (!seen)
        test_stop(t, "%s was not loaded", library);
    return seen;
}

/* Returns the n-th event of a type, from 0 on. */
static const recorder_event_t *event(test_rank_t *t, const recorder_t *seen, unsigned type, int n)
{
    for (int i = 0; i < seen->nevents; i++)
        if (seen->events[i].type == type && n-- == 0)
            return &seen->events[i];
    test_stop(t, "there is no such event of type %#x", type);
}

static int events(const recorder_t *seen, unsigned type)
{
    int n = 0;

    for (int i = 0; i < seen->nevents; i++)
        n += (seen->events[i].type & type) != 0;
    return n;
}

/* After the end of all communicators. `wants`: the types that had handles. */
static void balanced(test_rank_t *t, const recorder_t *seen, unsigned wants)
{
    TEST_TRUE(t, seen->wrong == 0);
    TEST_TRUE(t, seen->most == 0);
    TEST_TRUE(t, seen->inits - seen->refused == seen->finals);
    for (int i = 0; i < seen->nevents; i++) {
        const recorder_event_t *e = &seen->events[i];
        int want = (wants & e->type) != 0;

        if (e->stops != want || (want && (e->stopped <= e->started || e->stopped >= seen->comms[e->comm].over)))
            test_fail(t, "event %d of type %#x (%s): started %d, stopped %d, %d times; its communicator ended at %d", i,
                      e->type, e->func, e->started, e->stopped, e->stops, seen->comms[e->comm].over);
    }
}

/* ---- what is shown ---- */

typedef struct {
    const char *func;
    int func_number;
    const char *type;
    int type_number;
    uint64_t count, number;
    int root;
} want_t;

static void described(test_rank_t *t, const recorder_t *seen, const recorder_event_t *e, const want_t *w)
{
    int fits = seen->version == 1 ? e->func_number == w->func_number && e->type_number == w->type_number
                                  : strcmp(e->func, w->func) == 0 && strcmp(e->datatype, w->type) == 0;

    if (!fits || e->count != w->count || e->root != w->root || (e->type == COLL && e->number != w->number) ||
        e->rank != t->rank)
        test_fail(t,
                  "version %d: %s (%d), %s (%d), count %llu, number %llu, root %d, rank %d, but it is %s, %s, %llu, "
                  "%llu, %d",
                  seen->version, e->func, e->func_number, e->datatype, e->type_number, (unsigned long long)e->count,
                  (unsigned long long)e->number, e->root, e->rank, w->func, w->type, (unsigned long long)w->count,
                  (unsigned long long)w->number, w->root);
}

/* The ways up from an operation. Up to version 4 it is in a group, from 5 on in a call, which is in a group of calls.
 */
static void related(test_rank_t *t, const recorder_t *seen, const recorder_event_t *e)
{
    const recorder_event_t *up = e->parent, *group = e->group;

    if (!up) {
        test_fail(t, "%s has no parent", e->func);
        return;
    }
    if (seen->version <= 4) {
        TEST_TRUE(t, up->type == GROUP && up->started < e->started && up->stopped > e->stopped);
        return;
    }
    const recorder_event_t *top = up->parent;
    TEST_TRUE(t, up->type == (e->type == COLL ? COLL_API : P2P_API) && strcmp(up->func, e->func) == 0);
    TEST_TRUE(t, up->count == e->count && strcmp(up->datatype, e->datatype) == 0 && up->started < e->started);
    TEST_TRUE(t, group && group->type == GROUP && group->started < e->started && group->stopped > e->stopped);
    TEST_TRUE(t, top && top->type == GROUP_API && top->started < up->started && top->stopped > up->stopped);
    TEST_TRUE(t, top->states[GROUP_START_STOP] && top->states[GROUP_END_START] > top->states[GROUP_START_STOP]);
}

static void channels(test_rank_t *t, const recorder_t *seen, int operations)
{
    if (seen->version < 3) {
        TEST_TRUE(t, events(seen, CHANNEL) == 0);
        return;
    }
    TEST_TRUE(t, events(seen, CHANNEL) == operations);
    for (int n = 0; n < operations; n++) {
        const recorder_event_t *e = event(t, seen, CHANNEL, n), *up = e->parent;

        TEST_TRUE(t, up && up->type & (COLL | P2P) && e->channels == 0);
        TEST_TRUE(t, up->type == P2P && seen->version < 4 ? true : up->channels == 1);
        TEST_TRUE(t, seen->version < 4 || (e->begun && e->ended >= e->begun && e->states[CHANNEL_STOP]));
    }
}

#define COLLS 11 /* of these calls */
static void calls(test_rank_t *t, rondo_comm_t comm)
{
    float f[3] = {1, 2, 3}, sum[3];
    double d[7] = {0};
    int32_t five[5] = {0};
    uint16_t own[2] = {1, 2}, all[3], six[6];
    int8_t b[4] = {0}, c[4];
    const size_t counts[2] = {1, 2}, at[3] = {0, 1, 2}, mine[2] = {1, 1};
    rondo_request_t request;
    int other = 1 - t->rank;

    TEST_OK(t, comm, rondo_allreduce(f, sum, 3, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    TEST_OK(t, comm, rondo_allreduce(f, sum, 3, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    TEST_OK(t, comm, rondo_broadcast(five, five, 5, RONDO_INT32, 1, comm, NULL));
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    if (t->rank == 0)
        TEST_OK(t, comm, rondo_send(d, 7, RONDO_FLOAT64, 1, comm, NULL));
    else
        TEST_OK(t, comm, rondo_recv(d, 7, RONDO_FLOAT64, 0, comm, NULL));
    TEST_OK(t, comm, rondo_allgatherv(own, counts[t->rank], all, counts, at, RONDO_UINT16, comm, NULL));
    TEST_OK(t, comm, rondo_reduce_scatterv(all, own, counts, RONDO_UINT16, RONDO_SUM, comm, NULL));
    TEST_OK(t, comm, rondo_alltoallv(all, mine, at, six, mine, at + 1, RONDO_UINT16, comm, NULL));
    TEST_OK(t, comm, rondo_gatherv(own, counts[t->rank], all, counts, at, RONDO_UINT16, 1, comm, NULL));
    TEST_OK(t, comm, rondo_scatterv(all, counts, at, own, counts[t->rank], RONDO_UINT16, 1, comm, NULL));
    rondo_group_start();
    rondo_group_start();
    TEST_OK(t, comm, rondo_allreduce(b, c, 4, RONDO_INT8, RONDO_MAX, comm, NULL));
    TEST_OK(t, comm, rondo_send(f, 2, RONDO_FLOAT32, other, comm, NULL));
    TEST_OK(t, comm, rondo_group_end());
    TEST_OK(t, comm, rondo_recv(sum, 2, RONDO_FLOAT32, other, comm, NULL));
    TEST_OK(t, comm, rondo_group_end());
    rondo_group_start();
    TEST_OK(t, comm, rondo_allreduce(f, sum, 3, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    TEST_OK(t, comm, rondo_group_submit(&request));
    TEST_OK(t, comm, rondo_request_wait(&request));
    TEST_TRUE(t, sum[2] == 6);
}

static rondo_comm_t named(test_rank_t *t, const char *name)
{
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.name = name;
    config.device = RONDO_DEVICE_HOST;
    return test_comm(t, &config);
}

static void shown(test_rank_t *t, void *arg)
{
    const want_t colls[] = {{"AllReduce", 4, "ncclFloat32", 7, 3, 0, 0},
                            {"AllReduce", 4, "ncclFloat32", 7, 3, 1, 0},
                            {"Broadcast", 0, "ncclInt32", 2, 5, 0, 1},
                            {"Barrier", 255, "ncclUint8", 1, 0, 0, 0},
                            {"AllGatherV", 11, "uint16", 255, (uint64_t)t->rank + 1, 0, 0},
                            {"ReduceScatterV", 255, "uint16", 255, (uint64_t)t->rank + 1, 0, 0},
                            {"AlltoAllV", 255, "uint16", 255, 2, 0, 0},
                            {"GatherV", 255, "uint16", 255, (uint64_t)t->rank + 1, 0, 1},
                            {"ScatterV", 255, "uint16", 255, (uint64_t)t->rank + 1, 0, 1},
                            {"AllReduce", 4, "ncclInt8", 0, 4, 2, 0},
                            {"AllReduce", 4, "ncclFloat32", 7, 3, 3, 0}};
    const int other = 1 - t->rank;
    const want_t messages[] = {{t->rank ? "Recv" : "Send", t->rank ? 7 : 6, "ncclFloat64", 8, 7, 0, other},
                               {"Send", 6, "ncclFloat32", 7, 2, 0, other},
                               {"Recv", 7, "ncclFloat32", 7, 2, 0, other}};

    (void)arg;
    rondo_comm_t comm = named(t, "shown");
    calls(t, comm);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    const recorder_t *seen = recorder(t);
    balanced(t, seen, ALL);
    TEST_TRUE(t, seen->version < 4 || (strcmp(seen->comms[0].name, "shown") == 0 && seen->comms[0].nodes == 1 &&
                                       seen->comms[0].nranks == 2 && seen->comms[0].rank == t->rank));
    if (seen->version >= 4)
        test_agree(t, seen->comms[0].id, "the communicator's number");
    TEST_TRUE(t, events(seen, COLL) == COLLS && events(seen, P2P) == 3 && events(seen, GROUP) == COLLS + 1);
    for (int n = 0; n < COLLS; n++) {
        const recorder_event_t *e = event(t, seen, COLL, n);
        described(t, seen, e, &colls[n]);
        related(t, seen, e);
        TEST_TRUE(t, seen->version == 1 || (e->algo[0] && e->proto[0]));
    }
    for (int n = 0; n < 3; n++) {
        described(t, seen, event(t, seen, P2P, n), &messages[n]);
        related(t, seen, event(t, seen, P2P, n));
    }
    channels(t, seen, COLLS + 3);
    if (seen->version < 5)
        return;
    TEST_TRUE(t, events(seen, GROUP_API) == COLLS + 1 && events(seen, COLL_API) == COLLS && events(seen, P2P_API) == 3);
    for (int n = 0; n < COLLS + 1; n++) /* the last two are groups of the program's */
        TEST_TRUE(t, event(t, seen, GROUP_API, n)->depth == (n == COLLS - 1 ? 3 : n == COLLS ? 2 : 1));
    TEST_TRUE(t, event(t, seen, P2P_API, 2)->parent == event(t, seen, COLL_API, COLLS - 2)->parent);
    TEST_TRUE(t, event(t, seen, P2P, 2)->group == event(t, seen, COLL, COLLS - 2)->group);
}

/* ---- masks ---- */

static void sum_ones(test_rank_t *t, rondo_comm_t comm, int times)
{
    int64_t one = 1, sum = 0;

    for (int i = 0; i < times; i++)
        TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT64, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, sum == t->nranks);
}

/* The mask counts from the next call on. What a call has in a group belongs to the mask of the call. */
static void masks(test_rank_t *t, void *arg)
{
    int64_t one = 1, sum = 0;

    (void)arg;
    rondo_comm_t comm = named(t, "masks");
    recorder_t *seen = recorder(t);
    sum_ones(t, comm, 3);
    TEST_TRUE(t, seen->nevents == 0);
    *(volatile int *)seen->mask = COLL | CHANNEL;
    sum_ones(t, comm, 50);
    TEST_TRUE(t, events(seen, COLL) == 50 && events(seen, P2P | P2P_API) == 0);
    TEST_TRUE(t, event(t, seen, COLL, 49)->number == 52);
    rondo_group_start();
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT64, RONDO_SUM, comm, NULL));
    *(volatile int *)seen->mask = 0;
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT64, RONDO_SUM, comm, NULL));
    TEST_OK(t, comm, rondo_group_end());
    TEST_TRUE(t, events(seen, COLL) == 51);
    sum_ones(t, comm, 2);
    TEST_TRUE(t, events(seen, COLL) == 51);
    *(volatile int *)seen->mask = ALL;
    sum_ones(t, comm, 1);
    TEST_TRUE(t, event(t, seen, COLL, 51)->number == 57);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    balanced(t, seen, ALL);
}

/* The plugin has handles for collectives alone: there are no parents. */
static void orphans(test_rank_t *t, void *arg)
{
    (void)arg;
    rondo_comm_t comm = named(t, "orphans");
    calls(t, comm);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    const recorder_t *seen = recorder(t);
    balanced(t, seen, COLL);
    for (int n = 0; n < COLLS; n++)
        TEST_TRUE(t, !event(t, seen, COLL, n)->parent && !event(t, seen, COLL, n)->group);
}

/* ---- ends ---- */

static void *abort_soon(void *arg)
{
    usleep(50000);
    rondo_comm_abort(arg);
    return NULL;
}

/* The other rank does not come. A thread aborts while a call waits, with a request under way and a group open on a
 * second communicator. */
static void aborted(test_rank_t *t, void *arg)
{
    int64_t in = 1, out;
    rondo_request_t request;
    pthread_t thread;

    (void)arg;
    rondo_comm_t first = named(t, "aborted"), second = named(t, "open");
    sum_ones(t, first, 2);
    sum_ones(t, second, 2);
    test_barrier(t); /* nobody's abort comes before this */
    if (t->rank == 1) {
        test_barrier(t);
        rondo_comm_abort(first);
        rondo_comm_abort(second);
    } else {
        rondo_group_start();
        TEST_OK(t, first, rondo_allreduce(&in, &out, 1, RONDO_INT64, RONDO_SUM, first, NULL));
        rondo_result_t result = rondo_group_submit(&request);
        rondo_group_start();
        (void)rondo_allreduce(&in, &out, 1, RONDO_INT64, RONDO_SUM, second, NULL);
        rondo_comm_abort(second);
        TEST_TRUE(t, rondo_group_end() != RONDO_SUCCESS);
        if (pthread_create(&thread, NULL, abort_soon, first) != 0)
            test_stop(t, "no thread");
        test_barrier(t);
        TEST_TRUE(t, rondo_barrier(first, NULL) != RONDO_SUCCESS);
        if (result == RONDO_SUCCESS)
            TEST_TRUE(t, rondo_request_wait(&request) != RONDO_SUCCESS);
        pthread_join(thread, NULL);
    }
    balanced(t, recorder(t), ALL);
}

static void refused(test_rank_t *t, void *arg)
{
    (void)arg;
    rondo_comm_t first = named(t, "taken"), second = named(t, "refused"), third = named(t, "taken too");
    calls(t, second);
    sum_ones(t, first, 3);
    sum_ones(t, third, 4);
    TEST_OK(t, NULL, rondo_comm_destroy(first));
    TEST_OK(t, NULL, rondo_comm_destroy(second));
    TEST_OK(t, NULL, rondo_comm_destroy(third));
    const recorder_t *seen = recorder(t);
    balanced(t, seen, ALL);
    TEST_TRUE(t, seen->inits == 3 && seen->refused == 1 && events(seen, COLL) == 7 && events(seen, P2P) == 0);
}

static void errors(test_rank_t *t, void *arg)
{
    (void)arg;
    rondo_comm_t comm = named(t, "errors");
    calls(t, comm);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    const recorder_t *seen = recorder(t);
    TEST_TRUE(t, seen->errors > 7 && seen->wrong == 0 && seen->finals == 1);
}

/* ---- names ---- */

static void found(test_rank_t *t, void *arg)
{
    const int *want = arg;

    rondo_comm_t comm = named(t, "names");
    sum_ones(t, comm, 2);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    TEST_TRUE(t, (handle != NULL) == *want);
}

static int names(int version)
{
    static const struct {
        const char *rondo, *nccl; /* %d: the version */
        int found;
    } cases[] = {{NULL, "recorder%d", 1},
                 {NULL, "libnccl-profiler-recorder%d.so", 1},
                 {NULL, "none", 0},
                 {NULL, "NONE", 0},
                 {NULL, "no_such_recorder", 0},
                 {NULL, "STATIC_PLUGIN", 0},
                 {"recorder%d", "none", 1},
                 {"none", "recorder%d", 0},
                 {NULL, NULL, 0}};
    int bad = 0;

    setenv("RONDO_DEBUG", "none", 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char rondo[64] = "", nccl[64] = "";

        snprintf(rondo, sizeof rondo, cases[i].rondo ? cases[i].rondo : "", version);
        snprintf(nccl, sizeof nccl, cases[i].nccl ? cases[i].nccl : "", version);
        setenv("RONDO_PROFILER", rondo, 1);
        if (cases[i].nccl)
            setenv("NCCL_PROFILER_PLUGIN", nccl, 1);
        else
            unsetenv("NCCL_PROFILER_PLUGIN");
        int want = cases[i].found;
        if (test_run(TEST_PROCESSES, 2, 20, found, &want) != 0) {
            printf("RONDO_PROFILER=%s NCCL_PROFILER_PLUGIN=%s\n", rondo, nccl);
            bad = 1;
        }
    }
    unsetenv("RONDO_PROFILER");
    return bad;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name, *mask, *wants, *refuse, *errors;
        test_body_fn body;
    } cases[] = {{"shown", "0xffff", "0xffff", "0", "0", shown},     {"masks", "0", "0xffff", "0", "0", masks},
                 {"orphans", "0xffff", "2", "0", "0", orphans},      {"aborted", "0xffff", "0xffff", "0", "0", aborted},
                 {"refused", "0xffff", "0xffff", "2", "0", refused}, {"errors", "0xffff", "0xffff", "0", "1", errors}};
    const char *build = getenv("top_builddir");
    char folder[400];
    int bad = 0;

    (void)argc;
    snprintf(folder, sizeof folder, "%s/.libs", build ? build : ".");
    start_with(folder, argv);
    test_begin("plugins", 120);
    unsetenv("RONDO_PROFILER");
    for (int version = 1; version <= 7; version++) {
        snprintf(library, sizeof library, "%s/libnccl-profiler-recorder%d.so", folder, version);
        if (access(library, R_OK) != 0) {
            printf("there is no %s: modules are not built\n", library);
            return TEST_SKIPPED;
        }
        setenv("NCCL_PROFILER_PLUGIN", library, 1);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            setenv("RECORDER_MASK", cases[i].mask, 1);
            setenv("RECORDER_WANTS", cases[i].wants, 1);
            setenv("RECORDER_REFUSE", cases[i].refuse, 1);
            setenv("RECORDER_ERRORS", cases[i].errors, 1);
            if (test_run(TEST_PROCESSES, 2, 20, cases[i].body, NULL) != 0) {
                printf("version %d, %s\n", version, cases[i].name);
                bad = 1;
            }
        }
    }
    setenv("RECORDER_MASK", "0xffff", 1);
    return names(7) || bad;
}
