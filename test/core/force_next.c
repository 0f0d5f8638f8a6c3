/* rondo_force_next, rondo_prefer_next, and what else is said for the next call. Each collective runs by what was said
 * for it, as the log's line of each call says, alone and in groups, on one node and between two; the one behind it, and
 * repetitions, by what rondo chooses. What cannot serve is refused on all ranks, which go on, or, if it was preferred,
 * is done by something else. Sends leave it to what comes after them. Ranks that force differently are told so. NULL
 * leaves what the variable says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"

#define MOST 35

static char log_file[] = "/tmp/rondo-force_next-XXXXXX";
static long log_read; /* of rank 0 */

/* Does the log, from where this was called last, have this many lines with both texts? Rank 0 alone looks. */
static void logged(test_rank_t *t, int want, const char *one, const char *two)
{
    char line[1024];
    int found = 0;

    if (t->rank)
        return;
    FILE *f = fopen(log_file, "r");
    if (!f || fseek(f, log_read, SEEK_SET) != 0)
        test_stop(t, "no log");
    while (fgets(line, sizeof line, f))
        found += strstr(line, one) != NULL && strstr(line, two) != NULL;
    log_read = ftell(f);
    fclose(f);
    if (found != want)
        test_fail(t, "%s: %d lines have '%s' and '%s', not %d", test_noted(t), found, one, two, want);
}

static rondo_result_t sum_of(test_rank_t *t, rondo_comm_t comm, int count)
{
    float in[MOST] = {0}, out[MOST];

    for (int i = 0; i < count; i++)
        in[i] = (float)(t->rank + i), out[i] = -1;
    rondo_result_t result = rondo_allreduce(in, out, (size_t)count, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    for (int i = 0; i < count && result == RONDO_SUCCESS; i++)
        TEST_TRUE(t, out[i] == (float)(t->nranks * i + t->nranks * (t->nranks - 1) / 2));
    return result;
}

static rondo_result_t sum(test_rank_t *t, rondo_comm_t comm)
{
    return sum_of(t, comm, 33);
}

/* Each algorithm is forced, and the choice is free again after it. */
static void alone(test_rank_t *t, rondo_comm_t comm, int nodes)
{
    static const char *const algos[] = {"ring", "tree", "rd"};
    const char *proto = nodes > 1 ? "simple" : "ll";
    char by[64];

    for (int round = 0; round < 2; round++) { /* made, then found */
        for (int a = 0; a < 3; a++) {
            test_note(t, "%s by %s, round %d", algos[a], proto, round);
            TEST_OK(t, comm, rondo_force_next(algos[a], proto));
            TEST_OK(t, comm, sum_of(t, comm, 35));
            snprintf(by, sizeof by, "%s by %s", algos[a], proto);
            test_barrier(t);
            logged(t, round == 0 ? 1 : 0, "allreduce of 35 ", by); /* the plan */
        }
    }
    test_note(t, "a list that excludes");
    TEST_OK(t, comm, rondo_force_next("allreduce=^ring+tree+twoshot+oneshot+central+direct", NULL));
    TEST_OK(t, comm, sum_of(t, comm, 35));
    test_barrier(t);
    logged(t, 0, "allreduce of 35 ", "ring by");
}

/* A forced call comes between repetitions of one that is not, which are a plan of their own. */
static void repeated(test_rank_t *t, rondo_comm_t comm, int nodes)
{
    const char *proto = nodes > 1 ? "simple" : "ll"; /* whose plans are repeated without a look at the cache */
    char by[64];

    test_note(t, "forced first");
    TEST_OK(t, comm, rondo_force_next("ring", proto));
    TEST_OK(t, comm, sum(t, comm));
    test_barrier(t);
    snprintf(by, sizeof by, "ring by %s", proto);
    logged(t, 1, "allreduce of 33 ", by);
    TEST_OK(t, comm, sum(t, comm));
    test_barrier(t);
    logged(t, 1, "allreduce of 33 ", "");
    for (int i = 0; i < 3; i++)
        TEST_OK(t, comm, sum(t, comm));
    TEST_OK(t, comm, rondo_force_next("tree", proto));
    TEST_OK(t, comm, sum(t, comm));
    test_barrier(t);
    snprintf(by, sizeof by, "tree by %s", proto);
    logged(t, 1, "allreduce of 33 ", by);
    for (int i = 0; i < 3; i++)
        TEST_OK(t, comm, sum(t, comm));
    TEST_OK(t, comm, rondo_force_next("tree", proto));
    TEST_OK(t, comm, rondo_force_next(NULL, NULL)); /* as if nothing had been said */
    TEST_OK(t, comm, sum(t, comm));
    test_barrier(t);
    logged(t, 0, "allreduce of 33 ", "");
}

static void grouped(test_rank_t *t, rondo_comm_t comm)
{
    static const char *const algos[] = {"ring", "tree", "rd"};
    int in[3] = {1, 2, 3}, out[3] = {0}, got = -1, next = (t->rank + 1) % t->nranks;

    test_note(t, "a group");
    TEST_OK(t, comm, rondo_group_start());
    for (int i = 0; i < 3; i++) {
        TEST_OK(t, comm, rondo_force_next(algos[i], "simple"));
        if (i == 1) {
            TEST_OK(t, comm, rondo_send(&t->rank, 1, RONDO_INT32, next, comm, NULL));
            TEST_OK(t, comm, rondo_recv(&got, 1, RONDO_INT32, (t->rank + t->nranks - 1) % t->nranks, comm, NULL));
        }
        TEST_OK(t, comm, rondo_allreduce(&in[i], &out[i], 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    }
    TEST_OK(t, comm, rondo_group_end());
    for (int i = 0; i < 3; i++)
        TEST_TRUE(t, out[i] == in[i] * t->nranks);
    TEST_TRUE(t, got == (t->rank + t->nranks - 1) % t->nranks);
    test_barrier(t);
    logged(t, 3, "allreduce of 1 ", " by simple");
}

/* A call that is refused on one rank is none of the communicator's: the next one has the same number everywhere. */
static void refused_alone(test_rank_t *t, rondo_comm_t comm)
{
    rondo_status_t status = {.size = sizeof status};
    int in[8] = {1}, out[8];

    test_note(t, "what is refused on one rank");
    if (t->rank == 0) {
        TEST_OK(t, comm, rondo_force_next("tree", NULL));
        TEST_GIVES(t, comm, RONDO_ERR_UNSUPPORTED, rondo_alltoall(in, out, 1, RONDO_INT32, comm, NULL));
    }
    TEST_OK(t, comm, rondo_comm_status(comm, &status));
    test_agree(t, status.collectives, "calls behind one that was refused");
    test_agree(t, status.collectives_ended, "calls that have ended behind it");
    test_agree(t, status.bytes, "bytes behind it");
    TEST_OK(t, comm, sum(t, comm));
    TEST_OK(t, comm, rondo_comm_status(comm, &status));
    test_agree(t, status.collectives, "calls behind the next one");
    test_agree(t, status.bytes, "bytes behind the next one");
}

static void refused(test_rank_t *t, rondo_comm_t comm)
{
    int counts[8] = {0}, in[8] = {1}, out[64];

    test_note(t, "what is refused");
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_force_next(NULL, "pigeon"));
    TEST_OK(t, comm, rondo_force_next("pigeon", NULL));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, sum(t, comm));
    TEST_TRUE(t, strstr(rondo_last_error(comm), "pigeon") != NULL);
    TEST_OK(t, comm, sum(t, comm)); /* what was said is over */
    TEST_OK(t, comm, rondo_force_next("tree", NULL));
    TEST_GIVES(t, comm, RONDO_ERR_UNSUPPORTED, rondo_alltoall(in, out, 1, RONDO_INT32, comm, NULL));
    TEST_OK(t, comm, rondo_prefer_next("tree", NULL));
    for (int i = 0; i < t->nranks; i++)
        in[i] = counts[i] = 1;
    TEST_OK(t, comm, rondo_alltoall(in, out, 1, RONDO_INT32, comm, NULL));
    TEST_OK(t, comm, rondo_prefer_next("tree", "simple"));
    TEST_OK(t, comm, sum(t, comm));
    test_note(t, "what GPUs alone have");
    TEST_OK(t, comm, rondo_force_next("chain", NULL));
    TEST_GIVES(t, comm, RONDO_ERR_UNSUPPORTED, sum(t, comm));
    TEST_OK(t, comm, rondo_prefer_next("chain", NULL));
    TEST_OK(t, comm, sum(t, comm));
    TEST_OK(t, comm, rondo_prefer_next(NULL, "ll128"));
    TEST_OK(t, comm, sum(t, comm));
    TEST_OK(t, comm, rondo_prefer_next("pigeon", NULL));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, sum(t, comm));
    test_note(t, "with tables");
    size_t many[8];
    for (int i = 0; i < t->nranks; i++)
        many[i] = (size_t)i;
    TEST_OK(t, comm, rondo_force_next("ring", "simple"));
    TEST_OK(t, comm, rondo_allgatherv(in, many[t->rank], out, many, NULL, RONDO_INT32, comm, NULL));
    TEST_TRUE(t, out[0] == 1);
}

/* RONDO_ALGO=ring: NULL leaves it, "" does not. */
static void variable(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm_on(t, 1);

    (void)arg;
    test_note(t, "what the variable says stays");
    logged(t, 0, "no such line", "");
    TEST_OK(t, comm, rondo_force_next(NULL, "simple"));
    TEST_OK(t, comm, sum(t, comm));
    test_barrier(t);
    logged(t, 1, "allreduce of 33 ", "ring by simple");
    test_note(t, "it applies where a preference cannot");
    TEST_OK(t, comm, rondo_prefer_next("binomial", NULL));
    TEST_OK(t, comm, sum_of(t, comm, 35));
    test_barrier(t);
    logged(t, 1, "allreduce of 35 ", "ring by");
    test_note(t, "the empty text leaves nothing of it");
    TEST_OK(t, comm, rondo_force_next("", "simple"));
    TEST_OK(t, comm, rondo_alltoall(&t->rank, (int[8]){0}, 0, RONDO_INT32, comm, NULL));
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

/* On host memory budgets change nothing, not even if they differ, and an event is refused. */
static void no_kernel(test_rank_t *t, rondo_comm_t comm)
{
    int in = t->rank, got = -1;

    test_note(t, "budgets");
    TEST_OK(t, comm, rondo_resources_next(1 + t->rank, RONDO_CTA_POLICY_ZERO));
    TEST_OK(t, comm, rondo_force_next("ring", "simple"));
    TEST_OK(t, comm, sum(t, comm));
    TEST_OK(t, comm, rondo_resources_next(1024, -1));
    TEST_OK(t, comm, sum(t, comm));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_resources_next(0, -1));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_resources_next(1025, -1));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_resources_next(-1, 3));
    TEST_OK(t, comm, sum(t, comm));
    test_note(t, "an event");
    for (int repeated = 0; repeated < 2; repeated++) {
        TEST_OK(t, comm, rondo_launch_event_next((rondo_cuda_event_t)&in));
        TEST_OK(t, comm, rondo_group_start());
        TEST_OK(t, comm, rondo_send(&in, 1, RONDO_INT32, (t->rank + 1) % t->nranks, comm, NULL));
        TEST_OK(t, comm, rondo_recv(&got, 1, RONDO_INT32, (t->rank + t->nranks - 1) % t->nranks, comm, NULL));
        TEST_OK(t, comm, rondo_group_end());
        TEST_TRUE(t, got == (t->rank + t->nranks - 1) % t->nranks);
        TEST_GIVES(t, comm, RONDO_ERR_UNSUPPORTED, sum(t, comm));
        TEST_TRUE(t, strstr(rondo_last_error(comm), "rondo_launch_event_next") != NULL);
        TEST_OK(t, comm, sum(t, comm));
    }
    TEST_OK(t, comm, rondo_launch_event_next((rondo_cuda_event_t)&in));
    TEST_OK(t, comm, rondo_launch_event_next(NULL));
    TEST_OK(t, comm, sum(t, comm));
}

static void body(test_rank_t *t, void *arg)
{
    const int nodes = *(int *)arg;
    rondo_comm_t comm = test_comm_on(t, nodes);

    if (!comm)
        return;
    logged(t, 0, "no such line", "");
    repeated(t, comm, nodes);
    alone(t, comm, nodes);
    grouped(t, comm);
    refused(t, comm);
    refused_alone(t, comm);
    no_kernel(t, comm);
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

static void differ(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm_on(t, 1);

    (void)arg;
    test_note(t, "ranks that force differently");
    if (t->rank)
        TEST_OK(t, comm, rondo_force_next("ring", "simple"));
    TEST_GIVES(t, comm, RONDO_ERR_MISMATCH, sum(t, comm));
    TEST_TRUE(t, strstr(rondo_last_error(comm), "rondo_force_next does not force alike") != NULL);
    rondo_comm_abort(comm);
}

/* A process has room for so many. */
static void many(test_rank_t *t, void *arg)
{
    rondo_result_t result = RONDO_SUCCESS;
    char text[32];
    int n = 0;

    (void)arg;
    while (result == RONDO_SUCCESS && n < 1000) {
        snprintf(text, sizeof text, "broadcast=ring%d", n++);
        result = rondo_force_next(text, NULL);
    }
    TEST_TRUE(t, result == RONDO_ERR_UNSUPPORTED && n > 250 && n <= 256);
    TEST_OK(t, NULL, rondo_force_next("broadcast=ring0", NULL)); /* a known one */
}

int main(void)
{
    int bad = 0, fd = mkstemp(log_file);

    test_begin("force_next", 120);
    setenv("RONDO_DEBUG_FILE", log_file, 1);
    setenv("RONDO_DEBUG", "info", 1);
    for (int nodes = 1; nodes <= 2; nodes++)
        bad |= test_run(TEST_PROCESSES, 3, 40, body, &nodes) != 0;
    bad |= test_run(TEST_THREADS, 4, 40, body, &(int){1}) != 0;
    setenv("RONDO_ALGO", "allreduce=ring", 1);
    bad |= test_run(TEST_PROCESSES, 3, 40, variable, NULL) != 0;
    unsetenv("RONDO_ALGO");
    for (int check = 0; check < 2; check++) {
        setenv("RONDO_CHECK", check ? "1" : "0", 1);
        bad |= test_run(TEST_PROCESSES, 2, 40, differ, NULL) != 0;
        bad |= test_run(TEST_PROCESSES, 3, 40, body, &(int){1}) != 0;
    }
    bad |= test_run(TEST_PROCESSES, 1, 40, many, NULL) != 0;
    close(fd);
    unlink(log_file);
    return bad;
}
