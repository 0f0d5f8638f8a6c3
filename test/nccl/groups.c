/* Groups of libnccl.so.2: one thread that holds all ranks, creation inside groups, groups within groups and over
 * several communicators, errors inside, messages to oneself, and operators that are destroyed before the group ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/later.h"
#include "nccl/nccl_harness.h"

#define MOST 4

/* The calls of all ranks in one group, one thread. */
static void all_ranks(test_rank_t *t, ncclComm_t *comms, int n, const do_case_t *c)
{
    do_call_t call[MOST];
    char text[200], wrong[256];

    do_text(c, text, sizeof text);
    test_note(t, "%d ranks in one thread: %s", n, text);
    for (int r = 0; r < n; r++)
        if (do_prepare(&call[r], c, r, n) != 0)
            test_stop(t, "no memory");
    NCCL_OK(t, ncclGroupStart());
    for (int r = n - 1; r >= 0; r--)
        NCCL_OK(t, nccl_post(&call[r], comms[r], NULL));
    if (!NCCL_OK(t, ncclGroupEnd()))
        test_stop(t, "cannot go on");
    for (int r = 0; r < n; r++) {
        if (do_verify(&call[r], 1, wrong, sizeof wrong) != 0)
            test_fail(t, "rank %d: %s", r, wrong);
        do_release(&call[r]);
    }
}

static void every_operation(test_rank_t *t, ncclComm_t *comms, int n)
{
    uint64_t random = 5;

    for (int what = 0; what < DO_NUM; what++)
        for (int k = 0; k < 2 && nccl_posts((do_what_t)what); k++) {
            do_case_t c = {.what = (do_what_t)what, .type = RONDO_FLOAT32, .op = RONDO_SUM, .count = k ? 9001 : 3};

            c.data = do_reduces(c.what) ? REF_ROUNDING : REF_BYTES;
            c.root = (int)test_below(&random, (unsigned)n);
            c.in_place = do_has_in_place(c.what) && k;
            c.seed = test_random(&random) >> 32;
            all_ranks(t, comms, n, &c);
        }
}

/* Two communicators over the same ranks, in one group within another. */
static void nested(test_rank_t *t, ncclComm_t *a, ncclComm_t *b, int n)
{
    int32_t in[MOST], out[MOST][2];

    test_note(t, "two communicators in nested groups");
    NCCL_OK(t, ncclGroupStart());
    for (int r = 0; r < n; r++) {
        in[r] = r + 1;
        NCCL_OK(t, ncclGroupStart());
        NCCL_OK(t, ncclAllReduce(&in[r], &out[r][0], 1, ncclInt, ncclSum, a[r], NULL));
        NCCL_OK(t, ncclGroupEnd());
    }
    for (int r = n - 1; r >= 0; r--)
        NCCL_OK(t, ncclAllReduce(&in[r], &out[r][1], 1, ncclInt, ncclMax, b[r], NULL));
    NCCL_OK(t, ncclGroupEnd());
    for (int r = 0; r < n; r++)
        TEST_TRUE(t, out[r][0] == n * (n + 1) / 2 && out[r][1] == n);
    NCCL_OK(t, ncclGroupStart()); /* nothing in it */
    NCCL_OK(t, ncclGroupEnd());
}

static void errors(test_rank_t *t, ncclComm_t *comms, int n)
{
    float in = 1, out[MOST] = {0};

    test_note(t, "an error in a group");
    NCCL_OK(t, ncclGroupStart());
    for (int r = 0; r < n; r++)
        NCCL_OK(t, ncclAllReduce(&in, &out[r], 1, ncclFloat, ncclSum, comms[r], NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclAllReduce(&in, out, 1, ncclFloat, (ncclRedOp_t)99, comms[0], NULL));
    NCCL_GIVES(t, ncclInvalidUsage, ncclCommDestroy(comms[0]));
    NCCL_GIVES(t, ncclInvalidUsage, ncclCommAbort(comms[0]));
    NCCL_GIVES(t, ncclInvalidArgument, ncclGroupEnd());
    TEST_TRUE(t, out[0] == 0); /* nothing of it was done */
}

/* What no group defers may fail in one, and that is all. */
static void local_errors(test_rank_t *t, ncclComm_t *comms, int n)
{
    float in = 1, out[MOST] = {0};
    ncclRedOp_t op;
    void *handle;

    test_note(t, "local calls that fail in a group");
    NCCL_OK(t, ncclGroupStart());
    NCCL_GIVES(t, ncclInvalidArgument, ncclMemFree(&in));
    NCCL_GIVES(t, ncclInvalidArgument, ncclMemAlloc(NULL, 8));
    NCCL_GIVES(t, ncclInvalidArgument, ncclCommCount(comms[0], NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclCommGetAsyncError(comms[0], NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclCommRegister(comms[0], NULL, 8, &handle));
    NCCL_GIVES(t, ncclInvalidUsage, ncclCommDeregister(comms[0], &in));
    NCCL_GIVES(t, ncclInvalidArgument, ncclRedOpDestroy((ncclRedOp_t)77, comms[0]));
    NCCL_GIVES(t, ncclInvalidArgument,
               ncclRedOpCreatePreMulSum(&op, NULL, ncclFloat, ncclScalarHostImmediate, comms[0]));
    for (int r = 0; r < n; r++)
        NCCL_OK(t, ncclAllReduce(&in, &out[r], 1, ncclFloat, ncclSum, comms[r], NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclMemFree(&in));
    NCCL_OK(t, ncclGroupEnd());
    for (int r = 0; r < n; r++)
        TEST_TRUE(t, out[r] == (float)n);
}

/* What a group defers fails it. */
static void deferred_errors(test_rank_t *t, ncclComm_t *comms, int n)
{
    float in = 1, out[MOST] = {0};
    ncclComm_t made = NULL;
    ncclWindow_t win;

    for (int way = 0; way < 5; way++) {
        test_note(t, "a call that fails and would have been deferred, %d", way);
        NCCL_OK(t, ncclGroupStart());
        for (int r = 0; r < n; r++)
            NCCL_OK(t, ncclAllReduce(&in, &out[r], 1, ncclFloat, ncclSum, comms[r], NULL));
        NCCL_GIVES(t, ncclInvalidArgument,
                   way == 0   ? ncclSend(NULL, 1, ncclFloat, 0, comms[0], NULL)
                   : way == 1 ? ncclCommSplit(comms[0], -5, 0, &made, NULL)
                   : way == 2 ? ncclCommShrink(comms[0], NULL, 0, &made, NULL, 0)
                   : way == 3 ? pncclCommGrow(comms[0], n, NULL, -1, &made, NULL)
                              : ncclCommWindowRegister(comms[0], NULL, 8, &win, 0));
        NCCL_GIVES(t, ncclInvalidArgument, ncclGroupEnd());
        TEST_TRUE(t, out[0] == 0);
    }
}

/* Longer messages take longer; nothing moves, and the communicators go on as before. */
static void simulated(test_rank_t *t, ncclComm_t *comms, int n)
{
    static float in[1 << 20], out[1 << 20];
    float before = -1;

    in[0] = 1;
    for (size_t count = 1; count <= 1 << 20; count <<= 10) {
        ncclSimInfo_t sim = NCCL_SIM_INFO_INITIALIZER;

        test_note(t, "a group of %zu elements that is only simulated", count);
        NCCL_OK(t, ncclGroupStart());
        for (int r = 0; r < n; r++)
            NCCL_OK(t, ncclAllReduce(in, out, count, ncclFloat, ncclSum, comms[r], NULL));
        NCCL_OK(t, ncclGroupSimulateEnd(&sim));
        TEST_TRUE(t, sim.estimatedTime > before && out[0] == 0);
        before = sim.estimatedTime;
    }
    NCCL_OK(t, ncclGroupStart());
    NCCL_OK(t, ncclGroupSimulateEnd(NULL));
    test_note(t, "an all-to-all in place has a price");
    for (int here = 0; here < 2; here++) {
        ncclSimInfo_t sim = NCCL_SIM_INFO_INITIALIZER;

        in[3] = 3;
        NCCL_OK(t, ncclGroupStart());
        NCCL_OK(t, ncclAlltoAll(in, here ? in : out, 1000, ncclFloat, comms[0], NULL));
        NCCL_OK(t, ncclGroupSimulateEnd(&sim));
        TEST_TRUE(t, (sim.estimatedTime > 0 || t->nranks == 1) && in[3] == 3);
    }
    test_note(t, "messages have no price");
    for (int self = 0; self < 2; self++) {
        ncclSimInfo_t sim = NCCL_SIM_INFO_INITIALIZER;

        sim.estimatedTime = 77;
        NCCL_OK(t, ncclGroupStart());
        NCCL_OK(t, ncclAllReduce(in, out, 10, ncclFloat, ncclSum, comms[0], NULL));
        NCCL_OK(t, ncclSend(in, 10, ncclFloat, (t->rank + !self) % t->nranks, comms[0], NULL));
        NCCL_OK(t, ncclRecv(out, 10, ncclFloat, (t->rank + t->nranks - !self) % t->nranks, comms[0], NULL));
        NCCL_GIVES(t, ncclInvalidUsage, ncclGroupSimulateEnd(&sim));
        TEST_TRUE(t, sim.estimatedTime == 77 && out[0] == 0);
    }
}

/* Nothing is made that a later call would miss. */
static void simulated_jobs(test_rank_t *t, ncclComm_t *comms, int n)
{
    ncclSimInfo_t sim = NCCL_SIM_INFO_INITIALIZER;
    ncclComm_t made[MOST];
    float in = 1, out = 0;

    test_note(t, "a split has no price");
    sim.estimatedTime = 77;
    NCCL_OK(t, ncclGroupStart());
    NCCL_OK(t, ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, comms[0], NULL));
    for (int r = 0; r < n; r++)
        NCCL_OK(t, ncclCommSplit(comms[r], 0, 0, &made[r], NULL));
    NCCL_GIVES(t, ncclInvalidUsage, ncclGroupSimulateEnd(&sim));
    TEST_TRUE(t, strstr(ncclGetLastError(NULL), "ncclCommSplit") != NULL);
    TEST_TRUE(t, sim.estimatedTime == 77 && out == 0 && made[0] == NULL);
    NCCL_GIVES(t, ncclInvalidUsage, ncclGroupEnd()); /* the group is over */
}

/* What is not done of a group leaves its windows as they were. */
static void kept_windows(test_rank_t *t, ncclComm_t *comms, int n)
{
    static int32_t memory[MOST][2000];
    ncclWindow_t win[MOST];
    void *user = NULL;
    float in = 1;

    for (int way = 0; way < 3; way++) {
        test_note(t, "a window's end in a group, way %d", way);
        NCCL_OK(t, ncclGroupStart());
        for (int r = 0; r < n; r++)
            NCCL_OK(t, ncclCommWindowRegister(comms[r], memory[r], sizeof memory[r], &win[r], NCCL_WIN_COLL_SYMMETRIC));
        if (!NCCL_OK(t, ncclGroupEnd()))
            test_stop(t, "cannot go on");
        NCCL_OK(t, ncclGroupStart());
        for (int r = 0; r < n; r++)
            NCCL_OK(t, ncclCommWindowDeregister(comms[r], win[r]));
        if (way == 0) /* the same once more */
            NCCL_OK(t, ncclCommWindowDeregister(comms[0], win[0]));
        if (way == 1)
            NCCL_GIVES(t, ncclInvalidArgument, ncclSend(&in, 1, ncclFloat, n, comms[0], NULL));
        if (way == 2)
            NCCL_GIVES(t, ncclInvalidUsage, ncclGroupSimulateEnd(NULL));
        else
            NCCL_GIVES(t, ncclInvalidArgument, ncclGroupEnd());
        for (int r = 0; r < n && way; r++) {
            NCCL_OK(t, pncclWinGetUserPtr(comms[r], win[r], &user));
            TEST_TRUE(t, user == memory[r]);
            NCCL_OK(t, ncclCommWindowDeregister(comms[r], win[r]));
        }
        for (int r = 0; r < n; r++)
            NCCL_GIVES(t, ncclInvalidArgument, ncclCommWindowDeregister(comms[r], win[r]));
    }
}

static void to_oneself(test_rank_t *t, ncclComm_t comm, int self)
{
    int32_t in[5] = {1, 2, 3, 4, 5}, out[5] = {0};

    test_note(t, "a message to oneself");
    NCCL_OK(t, ncclGroupStart());
    NCCL_OK(t, ncclSend(in, 5, ncclInt, self, comm, NULL));
    NCCL_OK(t, ncclRecv(out, 5, ncclInt, self, comm, NULL));
    NCCL_OK(t, ncclGroupEnd());
    TEST_TRUE(t, memcmp(in, out, sizeof in) == 0);
}

/* Rank r contributes (r + 1) * scalar: destroyed ops, device scalars that change until the group ends. */
static void operators(test_rank_t *t, ncclComm_t *comms, int n)
{
    float in[MOST], out[MOST], scalar[MOST], sum = 0;
    ncclRedOp_t op[MOST], other;

    for (int residence = 0; residence < 2; residence++) {
        test_note(t, "an operator with a %s scalar", residence ? "host" : "device");
        sum = 0;
        NCCL_OK(t, ncclGroupStart());
        for (int r = 0; r < n; r++) {
            in[r] = (float)(r + 1);
            scalar[r] = (float)(10 * r + 2);
            NCCL_OK(
                t, ncclRedOpCreatePreMulSum(&op[r], &scalar[r], ncclFloat, (ncclScalarResidence_t)residence, comms[r]));
            TEST_TRUE(t, (int)op[r] >= ncclNumOps);
            NCCL_OK(t, ncclAllReduce(&in[r], &out[r], 1, ncclFloat, op[r], comms[r], NULL));
            NCCL_OK(t, ncclRedOpDestroy(op[r], comms[r]));
            if (residence == ncclScalarDevice)
                scalar[r] += 1; /* read when the operation runs */
            else
                scalar[r] = -1000; /* read already */
            sum += in[r] * (float)(10 * r + 2 + (residence == ncclScalarDevice));
        }
        NCCL_OK(t, ncclGroupEnd());
        for (int r = 0; r < n; r++)
            TEST_TRUE(t, out[r] == sum);
        NCCL_GIVES(t, ncclInvalidArgument, ncclAllReduce(in, out, 1, ncclFloat, op[0], comms[0], NULL));
    }
    test_note(t, "operators are their communicator's own");
    NCCL_OK(t, ncclRedOpCreatePreMulSum(&op[0], scalar, ncclFloat, ncclScalarHostImmediate, comms[0]));
    NCCL_OK(t, ncclRedOpCreatePreMulSum(&other, scalar, ncclFloat, ncclScalarHostImmediate, comms[0]));
    TEST_TRUE(t, op[0] != other);
    if (n > 1)
        NCCL_GIVES(t, ncclInvalidArgument, ncclRedOpDestroy(op[0], comms[1]));
    NCCL_GIVES(t, ncclInvalidArgument, ncclAllReduce(in, out, 1, ncclDouble, op[0], comms[0], NULL)); /* another type */
    NCCL_OK(t, ncclRedOpDestroy(op[0], comms[0])); /* `other` is left to the communicator */
}

/* The thread makes all ranks itself: by InitAll, and by CommInitRank in a group with and without an own config. */
static void make_all(test_rank_t *t, ncclComm_t *comms, int n, int way)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id, ids[MOST];

    test_note(t, "%d ranks made in one thread, way %d", n, way);
    if (way == 0) {
        NCCL_OK(t, ncclCommInitAll(comms, n, NULL));
        return;
    }
    if (way < 3)
        NCCL_OK(t, ncclGetUniqueId(&id));
    for (int i = 0; i < n && way == 3; i++)
        NCCL_OK(t, ncclGetUniqueId(&ids[i]));
    NCCL_OK(t, ncclGroupStart());
    for (int r = 0; r < n; r++) {
        if (way == 1)
            NCCL_OK(t, ncclCommInitRank(&comms[r], n, id, r));
        else if (way == 2)
            NCCL_OK(t, ncclCommInitRankConfig(&comms[r], n, id, r, &config));
        else
            NCCL_OK(t, ncclCommInitRankScalable(&comms[r], n, r, n, ids, &config));
    }
    NCCL_OK(t, ncclGroupEnd());
}

static void failed_creation(test_rank_t *t)
{
    ncclComm_t comms[2] = {(ncclComm_t)1, (ncclComm_t)1};
    ncclUniqueId id;

    test_note(t, "a group of creations with an error");
    NCCL_OK(t, ncclGetUniqueId(&id));
    NCCL_OK(t, ncclGroupStart());
    NCCL_OK(t, ncclCommInitRank(&comms[0], 2, id, 0));
    NCCL_GIVES(t, ncclInvalidArgument, ncclCommInitRank(&comms[1], 2, id, 2));
    NCCL_GIVES(t, ncclInvalidArgument, ncclGroupEnd());
    TEST_TRUE(t, comms[0] == NULL);
}

static void split_all(test_rank_t *t, ncclComm_t *comms, int n)
{
    ncclComm_t halves[MOST];
    int32_t in = 1, out[MOST] = {0};
    int expected = n / 2;

    test_note(t, "split in a group");
    NCCL_OK(t, ncclGroupStart());
    for (int r = 0; r < n; r++)
        NCCL_OK(t, ncclCommSplit(comms[r], r % 2 ? 7 : NCCL_SPLIT_NOCOLOR, -r, &halves[r], NULL));
    NCCL_OK(t, ncclGroupEnd());
    NCCL_OK(t, ncclGroupStart());
    for (int r = 1; r < n; r += 2)
        NCCL_OK(t, ncclAllReduce(&in, &out[r], 1, ncclInt, ncclSum, halves[r], NULL));
    NCCL_OK(t, ncclGroupEnd());
    for (int r = 0; r < n; r++) {
        int rank = -1;

        if (r % 2 == 0) {
            TEST_TRUE(t, halves[r] == NULL);
            continue;
        }
        NCCL_OK(t, ncclCommUserRank(halves[r], &rank));
        TEST_TRUE(t, rank == expected - 1 - r / 2 && out[r] == expected); /* the keys turn the order round */
        NCCL_OK(t, ncclCommDestroy(halves[r]));
    }
}

/* A sum over each of the communicators. */
static void every_sum(test_rank_t *t, ncclComm_t *comms, int n)
{
    int32_t one = 1, out[MOST] = {0};

    NCCL_OK(t, ncclGroupStart());
    for (int r = 0; r < n; r++)
        NCCL_OK(t, ncclAllReduce(&one, &out[r], 1, ncclInt, ncclSum, comms[r], NULL));
    NCCL_OK(t, ncclGroupEnd());
    for (int r = 0; r < n; r++)
        TEST_TRUE(t, out[r] == n);
}

static void rank_is(test_rank_t *t, ncclComm_t comm, int expected)
{
    int rank = -1;

    NCCL_OK(t, ncclCommUserRank(comm, &rank));
    if (rank != expected)
        test_fail(t, "the rank is %d, not %d", rank, expected);
}

/* Calls of a group that use one communicator: at once they would mix up their exchanges. */
static void parent_of_several(test_rank_t *t, ncclComm_t *comms, int n)
{
    static int32_t memory[MOST][2000];
    ncclComm_t up[MOST], down[MOST], none[MOST], rest[MOST];
    ncclWindow_t win[MOST];
    int last = n - 1;

    for (int round = 0; round < 4 && !test_failures(t); round++) {
        test_note(t, "several calls of a group with one parent, round %d", round);
        NCCL_OK(t, ncclGroupStart());
        for (int r = 0; r < n; r++) {
            NCCL_OK(t, ncclCommSplit(comms[r], 0, r, &up[r], NULL));
            NCCL_OK(t, ncclCommSplit(comms[r], r == last ? NCCL_SPLIT_NOCOLOR : 1, 0, &none[r], NULL));
            NCCL_OK(t, ncclCommWindowRegister(comms[r], memory[r], sizeof memory[r], &win[r], NCCL_WIN_COLL_SYMMETRIC));
            NCCL_OK(t, ncclCommSplit(comms[r], 0, -r, &down[r], NULL));
            if (r != last)
                NCCL_OK(t, ncclCommShrink(comms[r], &last, 1, &rest[r], NULL, NCCL_SHRINK_DEFAULT));
        }
        if (!NCCL_OK(t, ncclGroupEnd()))
            test_stop(t, "cannot go on");
        for (int r = 0; r < n; r++) {
            rank_is(t, up[r], r);
            rank_is(t, down[r], last - r);
            if (r != last) {
                rank_is(t, rest[r], r);
                rank_is(t, none[r], r);
            }
            TEST_TRUE(t, (none[r] == NULL) == (r == last));
        }
        every_sum(t, up, n);
        every_sum(t, down, n);
        every_sum(t, rest, last);
        for (int r = 0; r < n; r++) {
            NCCL_OK(t, ncclCommWindowDeregister(comms[r], win[r]));
            NCCL_OK(t, ncclCommDestroy(up[r]));
            NCCL_OK(t, ncclCommDestroy(down[r]));
            if (r != last)
                NCCL_OK(t, ncclCommDestroy(rest[r]));
            NCCL_OK(t, ncclCommDestroy(none[r]));
        }
    }
}

/* Members and a new rank in one group. */
static void grow_all(test_rank_t *t, ncclComm_t *comms, int n)
{
    int32_t in = 1, out[MOST + 1] = {0};
    ncclComm_t grown[MOST + 1];
    ncclUniqueId id, late;

    test_note(t, "grow in a group");
    NCCL_OK(t, pncclCommGetUniqueId(comms[n - 1], &id));
    NCCL_OK(t, ncclGroupStart()); /* an id behind the call that should have had it */
    NCCL_OK(t, pncclCommGrow(comms[n - 1], n + 1, NULL, -1, &grown[0], NULL));
    NCCL_GIVES(t, ncclInvalidUsage, pncclCommGetUniqueId(comms[n - 1], &late));
    TEST_TRUE(t, strstr(ncclGetLastError(comms[n - 1]), "before that") != NULL);
    NCCL_GIVES(t, ncclInvalidUsage, ncclGroupEnd());
    NCCL_OK(t, ncclGroupStart());
    for (int r = 0; r < n; r++)
        NCCL_OK(t, pncclCommGrow(comms[r], n + 1, NULL, -1, &grown[r], NULL));
    NCCL_OK(t, pncclCommGrow(NULL, n + 1, &id, n, &grown[n], NULL));
    NCCL_OK(t, ncclGroupEnd());
    NCCL_OK(t, ncclGroupStart());
    for (int r = 0; r <= n; r++)
        NCCL_OK(t, ncclAllReduce(&in, &out[r], 1, ncclInt, ncclSum, grown[r], NULL));
    NCCL_OK(t, ncclGroupEnd());
    for (int r = 0; r <= n; r++) {
        int rank = -1;

        NCCL_OK(t, ncclCommUserRank(grown[r], &rank));
        TEST_TRUE(t, rank == r && out[r] == n + 1);
        NCCL_OK(t, ncclCommDestroy(grown[r]));
    }
}

static void one_thread(test_rank_t *t, void *arg)
{
    ncclComm_t a[MOST], b[MOST];
    int n = *(int *)arg;

    make_all(t, a, n, n % 4);
    make_all(t, b, n, (n + 1) % 4);
    if (test_failures(t))
        return;
    every_operation(t, a, n);
    nested(t, a, b, n);
    errors(t, a, n);
    local_errors(t, a, n);
    deferred_errors(t, a, n);
    simulated(t, b, n);
    simulated_jobs(t, b, n);
    kept_windows(t, b, n);
    every_operation(t, b, n);
    to_oneself(t, a[n - 1], n - 1);
    operators(t, a, n);
    split_all(t, a, n);
    parent_of_several(t, a, n);
    grow_all(t, a, n);
    failed_creation(t);
    test_note(t, "destroy");
    NCCL_OK(t, ncclGroupStart());
    for (int r = 0; r < n; r++) {
        NCCL_OK(t, ncclCommDestroy(a[r]));
        NCCL_OK(t, ncclCommAbort(b[r]));
    }
    NCCL_OK(t, ncclGroupEnd());
}

/* A process a rank: an exchange that without the group would wait for itself. */
static void exchange(test_rank_t *t, void *arg)
{
    ncclComm_t comm = nccl_comm(t);
    int32_t in[1000], out[TEST_MAX_RANKS][1000];

    (void)arg;
    test_note(t, "all sends before all receives");
    for (int i = 0; i < 1000; i++)
        in[i] = 1000 * t->rank + i;
    for (int round = 0; round < 5; round++) {
        NCCL_OK(t, ncclGroupStart());
        for (int r = 0; r < t->nranks; r++)
            NCCL_OK(t, ncclSend(in, 1000, ncclInt, r, comm, NULL));
        for (int r = 0; r < t->nranks; r++)
            NCCL_OK(t, ncclRecv(out[r], 1000, ncclInt, r, comm, NULL));
        NCCL_OK(t, ncclGroupEnd());
        for (int r = 0; r < t->nranks; r++)
            TEST_TRUE(t, out[r][0] == 1000 * r && out[r][999] == 1000 * r + 999);
        memset(out, 0, sizeof out);
    }
    NCCL_OK(t, ncclCommDestroy(comm));
}

int main(void)
{
    int bad = 0;

    test_begin("nccl/groups", 120);
    setenv("RONDO_DEBUG", "none", 0);
    nccl_begin();
    for (int n = 1; n <= MOST && !bad; n++)
        bad += test_run(TEST_PROCESSES, 1, 40, one_thread, &n);
    bad += test_run(TEST_PROCESSES, 3, 40, exchange, NULL);
    return bad != 0;
}
