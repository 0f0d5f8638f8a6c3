/* rondo_comm_grow: members 0 to m-1 have a communicator, the other ranks come new.
 *
 *   sums     every m and number of new ranks, on one node and two, as processes and threads, waiting or in the
 *            background; one drawn member has the id, and any others may. The numbers and sums are right, and the
 *            members' communicator is as it was
 *   steps    from one rank to n, one at a time, each from the one before
 *   again    a shrink takes a rank out, and a grow takes it in again, with the last number
 *   wrong    what is wrong is said to all ranks that are there: by the member that is wrong before anything is
 *            exchanged, or on all; a right call after that works
 *   late     a new rank that never comes is named by TIMEOUT on all others
 *   check    RONDO_CHECK=1: a member that calls something else
 *
 * By --seed S others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"

#define LIMIT_S 60

typedef struct {
    int members, nodes;
    uint64_t seed;
} plan_t;

/* A communicator of ranks 0 to m-1; NULL on the others. */
static rondo_comm_t members_comm(test_rank_t *t, int m)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;
    test_id(t, &id);
    if (t->rank < m && !TEST_OK(t, NULL, rondo_comm_create(&comm, m, &id, t->rank, &config)))
        test_stop(t, "the members have no communicator");
    return comm;
}

/* Waits for what a call with blocking = 0 has begun; what could not be made is NULL, as after one that waits. */
static rondo_result_t settled(rondo_comm_t *made, rondo_result_t begun)
{
    rondo_result_t result = test_settled(*made, begun);

    if (begun == RONDO_IN_PROGRESS && result != RONDO_SUCCESS) {
        rondo_comm_abort(*made);
        *made = NULL;
    }
    return result;
}

static rondo_result_t grow(const test_rank_t *t, rondo_comm_t comm, int nranks, const rondo_unique_id_t *id,
                           rondo_comm_t *made, int blocking)
{
    rondo_config_t config = test_host_config();
    config.blocking = blocking;
    return settled(made, rondo_comm_grow(comm, nranks, id, comm ? -1 : t->rank, made, &config));
}

/* All ranks below n are in it, with their numbers, and their sum is right. */
static void must_be_whole(test_rank_t *t, rondo_comm_t comm, int n, uint64_t seed)
{
    int64_t in[257], sum[257];
    int size = 0, rank = -1, count = 1 + (int)(seed % 257);
    TEST_OK(t, comm, rondo_comm_size(comm, &size));
    TEST_OK(t, comm, rondo_comm_rank(comm, &rank));
    TEST_TRUE(t, size == n && rank == t->rank);
    for (int i = 0; i < count; i++)
        in[i] = (int64_t)(t->rank + 1) * (i + (int)(seed % 97));
    if (!TEST_OK(t, comm, rondo_allreduce(in, sum, (size_t)count, RONDO_INT64, RONDO_SUM, comm, NULL)))
        return;
    for (int i = 0; i < count; i++)
        if (sum[i] != (int64_t)n * (n + 1) / 2 * (i + (int)(seed % 97))) {
            test_fail(t, "element %d of the sum over %d ranks is %lld", i, n, (long long)sum[i]);
            return;
        }
    TEST_TRUE(t, test_group(comm, t->rank) == (1u << n) - 1);
}

/* ---- sums ---- */

static void sums_body(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    uint64_t random = test_mix(p->seed);
    int holder = (int)test_below(&random, (unsigned)p->members), m = p->members;
    rondo_comm_t made = NULL;
    rondo_unique_id_t id;
    if (t->kind == TEST_PROCESSES)
        test_play_node(t, p->nodes);
    rondo_comm_t comm = members_comm(t, m);
    for (int round = 0; round < 2; round++) {
        unsigned has = test_below(&random, 1u << m) | 1u << holder;
        int blocking = (int)test_below(&random, 2), late = (int)test_below(&random, (unsigned)t->nranks);
        test_note(t, "grow of %d by %d, id with %x, blocking %d", m, t->nranks - m, has, blocking);
        test_id(t, &id);
        if (t->rank == late)
            usleep(3000);
        if (!TEST_OK(t, comm,
                     grow(t, comm, t->nranks, t->rank >= m || has >> t->rank & 1 ? &id : NULL, &made, blocking)))
            test_stop(t, "no communicator");
        if (round == 1 && comm) /* what has been made does without it */
            TEST_OK(t, comm, rondo_comm_destroy(comm));
        must_be_whole(t, made, t->nranks, p->seed + (uint64_t)round);
        if (round == 0 && comm) {
            test_note(t, "the members' communicator");
            must_be_whole(t, comm, m, p->seed);
        }
        TEST_OK(t, made, rondo_comm_destroy(made));
    }
}

/* ---- steps, again ---- */

static void steps_body(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    rondo_comm_t comm;
    rondo_unique_id_t id;
    if (t->kind == TEST_PROCESSES)
        test_play_node(t, p->nodes);
    comm = members_comm(t, 1);
    for (int n = 2; n <= t->nranks; n++) {
        rondo_comm_t made = NULL;
        test_note(t, "grow to %d", n);
        test_id(t, &id);
        if (t->rank >= n)
            continue;
        if (!TEST_OK(t, comm, grow(t, comm, n, t->rank == 0 || !comm ? &id : NULL, &made, 1)))
            test_stop(t, "no communicator");
        if (comm)
            TEST_OK(t, comm, rondo_comm_destroy(comm));
        comm = made;
        must_be_whole(t, comm, n, p->seed);
    }
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

static void again_body(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    uint64_t random = test_mix(p->seed);
    int out = (int)test_below(&random, (unsigned)t->nranks), rank, sum = 0;
    rondo_config_t config = test_host_config();
    rondo_comm_t small = NULL, made = NULL;
    rondo_unique_id_t id;
    if (t->kind == TEST_PROCESSES)
        test_play_node(t, p->nodes);
    rondo_comm_t comm = test_comm(t, &config);
    test_note(t, "shrink without rank %d", out);
    if (t->rank != out && !TEST_OK(t, comm, rondo_comm_shrink(comm, &out, 1, &small, &config)))
        test_stop(t, "no smaller communicator");
    TEST_OK(t, comm, rondo_comm_destroy(comm));
    test_note(t, "grow by rank %d", out);
    test_id(t, &id);
    if (!TEST_OK(t, small,
                 rondo_comm_grow(small, t->nranks, &id, small ? -1 : t->nranks - 1, &made, small ? NULL : &config)))
        test_stop(t, "no communicator");
    TEST_OK(t, made, rondo_comm_rank(made, &rank));
    TEST_TRUE(t, rank == (t->rank == out ? t->nranks - 1 : t->rank - (t->rank > out)));
    TEST_OK(t, made, rondo_allreduce(&(int32_t){t->rank + 1}, &sum, 1, RONDO_INT32, RONDO_SUM, made, NULL));
    TEST_TRUE(t, sum == t->nranks * (t->nranks + 1) / 2);
    if (small)
        TEST_OK(t, small, rondo_comm_destroy(small));
    TEST_OK(t, made, rondo_comm_destroy(made));
}

/* ---- wrong ---- */

enum { TWICE, A_MEMBERS, BEYOND, NEGATIVE, NEW_NRANKS, MEMBER_NRANKS, TWO_IDS, NO_ID, NUM_WRONG };

static const struct {
    const char *name, *word;
} wrongs[NUM_WRONG] = {
    [TWICE] = {"two new ranks with one number", "claimed by"},
    [A_MEMBERS] = {"a new rank with a member's number", "claimed by"},
    [BEYOND] = {"a number that is too great", "claims rank"},
    [NEGATIVE] = {"a new rank with -1", "claims rank -1"},
    [NEW_NRANKS] = {"a new rank with another nranks", "nranks must be equal"},
    [MEMBER_NRANKS] = {"a member with another nranks", "nranks must be equal"},
    [TWO_IDS] = {"members with two ids", "different ids"},
    [NO_ID] = {"members without an id", "has the id"},
};

/* Three members and two new ranks; one of the last of either is wrong. In NO_ID nobody could tell the new ranks. */
static void wrong_once(test_rank_t *t, rondo_comm_t comm, int wrong)
{
    const rondo_config_t config = test_host_config();
    int n = t->nranks, rank = comm ? -1 : t->rank, nranks = n;
    rondo_comm_t made = NULL;
    rondo_unique_id_t id, other;
    test_note(t, "%s", wrongs[wrong].name);
    test_id(t, &id);
    test_id(t, &other);
    if (t->rank == n - 1) {
        rank = wrong == TWICE ? n - 2 : wrong == A_MEMBERS ? 1 : wrong == BEYOND ? n : wrong == NEGATIVE ? -1 : rank;
        nranks += wrong == NEW_NRANKS;
    }
    if (t->rank == 2) {
        nranks += wrong == MEMBER_NRANKS;
        id = wrong == TWO_IDS ? other : id;
    }
    if (wrong == TWO_IDS && t->rank == n - 1) /* each group of new ranks is told */
        id = other;
    test_barrier(
        t); /* or the first to hear of it gives up 400 ms later, when the last has not come: as it may even so */
    if (wrong == NO_ID && !comm)
        return;
    const rondo_result_t result = rondo_comm_grow(comm, nranks, wrong == NO_ID ? NULL : &id, rank, &made, &config);
    if ((comm || !test_came_late(result, rondo_last_error(NULL))) &&
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, result))
        test_sentence(t, wrongs[wrong].word);
    TEST_TRUE(t, made == NULL);
}

/* What one member is told before the others hear anything. */
static void refused(test_rank_t *t, rondo_comm_t comm)
{
    rondo_config_t config = test_host_config(), bad = test_host_config();
    int n = t->nranks;
    rondo_comm_t made = NULL;
    rondo_unique_id_t id;
    test_note(t, "calls that are refused at once");
    test_id(t, &id);
    bad.timeout_ms = -5;
    if (t->rank == 1) {
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_grow(comm, n, &id, 1, &made, &config));
        test_sentence(t, "give -1");
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_grow(comm, 3, &id, -1, &made, &config));
        test_sentence(t, "nranks is 3");
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_grow(comm, n, &id, -1, &made, &bad));
        test_sentence(t, "-5");
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_grow(comm, n, &id, -1, NULL, &config));
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_grow(NULL, n, NULL, 3, &made, &config));
        test_sentence(t, "id is NULL");
    }
    if (TEST_OK(t, comm, grow(t, comm, n, &id, &made, 1))) {
        must_be_whole(t, made, n, 5);
        TEST_OK(t, made, rondo_comm_destroy(made));
    }
}

static void wrong_body(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = members_comm(t, 3);
    (void)arg;
    for (int wrong = 0; wrong < NUM_WRONG; wrong++)
        wrong_once(t, comm, wrong);
    refused(t, comm);
    if (!comm)
        return;
    must_be_whole(t, comm, 3, 7);
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

/* ---- late ---- */

static void late_body(test_rank_t *t, void *arg)
{
    const rondo_config_t config = test_host_config();
    const plan_t *p = arg;
    char missing[32];
    rondo_comm_t made = NULL;
    rondo_unique_id_t id;
    if (t->kind == TEST_PROCESSES)
        test_play_node(t, p->nodes);
    rondo_comm_t comm = members_comm(t, p->members);
    test_note(t, "a new rank does not come");
    test_id(t, &id);
    snprintf(missing, sizeof missing, "missing: %d ", t->nranks - 1);
    if (t->rank < t->nranks - 1 &&
        TEST_GIVES(t, NULL, RONDO_ERR_TIMEOUT,
                   rondo_comm_grow(comm, t->nranks, &id, comm ? -1 : t->rank, &made, &config)))
        test_sentence(t, missing);
    test_id(t, &id);
    test_note(t, "and comes");
    if (!TEST_OK(t, comm, grow(t, comm, t->nranks, &id, &made, 1)))
        test_stop(t, "no communicator");
    must_be_whole(t, made, t->nranks, 3);
    TEST_OK(t, made, rondo_comm_destroy(made));
    if (comm)
        TEST_OK(t, comm, rondo_comm_destroy(comm));
}

/* ---- check ---- */

static void check_body(test_rank_t *t, void *arg)
{
    const rondo_config_t config = test_host_config();
    rondo_comm_t comm = members_comm(t, 2), made = NULL;
    rondo_unique_id_t id;
    (void)arg;
    test_note(t, "a member that calls something else");
    test_id(t, &id);
    if (t->rank == 1)
        TEST_GIVES(t, comm, RONDO_ERR_MISMATCH, rondo_barrier(comm, NULL));
    else if (TEST_GIVES(t, NULL, RONDO_ERR_MISMATCH,
                        rondo_comm_grow(comm, t->nranks, &id, comm ? -1 : t->rank, &made, &config)))
        test_sentence(t, "comm_grow");
    if (comm)
        TEST_OK(t, comm, rondo_comm_destroy(comm));
}

static int run(test_kind_t kind, const char *name, int nranks, int members, int nodes, uint64_t seed, test_body_fn body)
{
    plan_t p = {members, nodes, seed};
    printf("grow: %s: %s, %d of %d ranks on %d nodes, seed %#llx\n", name, test_kind_name(kind), members, nranks, nodes,
           (unsigned long long)seed);
    return test_run(kind, nranks, LIMIT_S, body, &p);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 2 && strcmp(argv[1], "--seed") == 0 ? strtoull(argv[2], NULL, 0) : 1;
    int bad = 0;
    test_begin("grow", 300);
    setenv("RONDO_CREATE_TIMEOUT_MS", "30000", 1);
    for (test_kind_t kind = TEST_PROCESSES; kind <= TEST_THREADS; kind++)
        for (int nodes = 1; nodes <= (kind == TEST_PROCESSES ? 2 : 1); nodes++) {
            for (int n = 2; n <= 5; n++)
                for (int m = 1; m < n; m++)
                    bad += run(kind, "sums", n, m, nodes, test_mix(seed++), sums_body);
            bad += run(kind, "steps", 5, 1, nodes, test_mix(seed++), steps_body);
            bad += run(kind, "again", 4, 4, nodes, test_mix(seed++), again_body);
            bad += run(kind, "wrong", 5, 3, nodes, test_mix(seed++), wrong_body);
        }
    setenv("RONDO_CHECK", "1", 1);
    for (test_kind_t kind = TEST_PROCESSES; kind <= TEST_THREADS; kind++)
        bad += run(kind, "check", 4, 2, 1, test_mix(seed++), check_body);
    unsetenv("RONDO_CHECK");
    setenv("RONDO_CREATE_TIMEOUT_MS", "1500", 1);
    for (int nodes = 1; nodes <= 2; nodes++)
        bad += run(TEST_PROCESSES, "late", 4, 2, nodes, test_mix(seed++), late_body);
    return bad != 0;
}
