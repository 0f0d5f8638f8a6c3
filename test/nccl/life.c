/* A communicator's life by libnccl.so.2: split, shrink, finalize, abort, revoke, a rank that dies, and all of it with
 * blocking = 0, where calls return ncclInProgress and a thread does the work.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nccl/later.h"
#include "nccl/nccl_harness.h"

static int sum_is(test_rank_t *t, ncclComm_t comm, int expected)
{
    int32_t one = 1, sum = -1;

    if (!nccl_result(t, nccl_settled(comm, ncclAllReduce(&one, &sum, 1, ncclInt, ncclSum, comm, NULL)), ncclSuccess,
                     "ncclAllReduce"))
        return 0;
    if (sum != expected)
        test_fail(t, "the sum is %d, not %d", sum, expected);
    return sum == expected;
}

static ncclComm_t comm_of(test_rank_t *t, int blocking)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL;
    ncclResult_t result;

    config.blocking = blocking;
    test_note(t, "creation, blocking = %d", blocking);
    result = ncclCommInitRankConfig(&comm, t->nranks, nccl_id(t), t->rank, &config);
    if (!blocking && !(result == ncclInProgress || result == ncclSuccess))
        test_fail(t, "creation returned %d", result);
    if (!nccl_result(t, nccl_settled(comm, result), ncclSuccess, "ncclCommInitRankConfig"))
        test_stop(t, "no communicator");
    return comm;
}

/* The parent first: PyTorch waits for it, and takes the child to be ready then. */
static ncclResult_t both_settled(ncclComm_t parent, ncclComm_t child, ncclResult_t result)
{
    if (result != ncclInProgress)
        return result;
    result = nccl_settled(parent, ncclInProgress);
    return result == ncclSuccess && child ? nccl_settled(child, ncclInProgress) : result;
}

static void derived(test_rank_t *t, void *arg)
{
    int blocking = *(int *)arg, n = t->nranks, last = n - 1, rank = -1;
    ncclComm_t comm = comm_of(t, blocking), half = NULL, rest = NULL;
    ncclResult_t result;

    test_note(t, "split, blocking = %d", blocking);
    result = ncclCommSplit(comm, t->rank % 2, 0, &half, NULL);
    nccl_result(t, both_settled(comm, half, result), ncclSuccess, "ncclCommSplit");
    sum_is(t, half, (n + 1 - t->rank % 2) / 2);
    sum_is(t, comm, n);
    NCCL_OK(t, ncclCommDestroy(half));

    test_note(t, "split into no color");
    result = ncclCommSplit(comm, t->rank == 0 ? NCCL_SPLIT_NOCOLOR : 3, 0, &half, NULL);
    nccl_result(t, both_settled(comm, half, result), ncclSuccess, "ncclCommSplit");
    if (t->rank == 0)
        TEST_TRUE(t, half == NULL);
    else if (sum_is(t, half, n - 1))
        NCCL_OK(t, ncclCommDestroy(half));

    test_note(t, "shrink");
    if (t->rank != last) {
        result = ncclCommShrink(comm, &last, 1, &rest, NULL, NCCL_SHRINK_DEFAULT);
        nccl_result(t, both_settled(comm, rest, result), ncclSuccess, "ncclCommShrink");
        NCCL_OK(t, ncclCommUserRank(rest, &rank));
        TEST_TRUE(t, rank == t->rank);
        sum_is(t, rest, n - 1);
        NCCL_OK(t, ncclCommDestroy(rest));
    }
    sum_is(t, comm, n);

    test_note(t, "finalize");
    nccl_result(t, nccl_settled(comm, ncclCommFinalize(comm)), ncclSuccess, "ncclCommFinalize");
    NCCL_GIVES(t, ncclInvalidUsage, ncclAllReduce(&rank, &last, 1, ncclInt, ncclSum, comm, NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclCommFinalize(comm)); /* once more */
    NCCL_OK(t, ncclCommDestroy(comm));
    NCCL_GIVES(t, ncclInvalidArgument, ncclCommDestroy(comm)); /* once more */
}

/* Whether it is suspended is a flag in NCCL, and no length. */
static void suspended(test_rank_t *t, ncclComm_t comm)
{
    uint64_t value = 17;

    test_note(t, "suspension");
    NCCL_OK(t, pncclCommSuspend(comm, NCCL_SUSPEND_MEM));
    NCCL_OK(t, pncclCommMemStats(comm, ncclStatGpuMemSuspended, &value));
    TEST_TRUE(t, value == 1);
    NCCL_OK(t, pncclCommResume(comm));
    NCCL_OK(t, pncclCommMemStats(comm, ncclStatGpuMemSuspended, &value));
    TEST_TRUE(t, value == 0);
}

static void memory(test_rank_t *t, void *arg)
{
    int blocking = *(int *)arg;
    ncclComm_t comm = comm_of(t, blocking);
    ncclWindow_t win = NULL;
    void *buffer = NULL, *handle = NULL;
    int32_t *data;

    suspended(t, comm);
    test_note(t, "memory, registration, windows");
    if (!NCCL_OK(t, ncclMemAlloc(&buffer, 100000 * sizeof *data)))
        return;
    TEST_TRUE(t, (uintptr_t)buffer % NCCL_WIN_REQUIRED_ALIGNMENT == 0);
    data = buffer;
    for (int i = 0; i < 100000; i++)
        data[i] = i;
    if (t->rank == 0) { /* local: the others do not call it */
        NCCL_OK(t, ncclCommRegister(comm, buffer, 400000, &handle));
        TEST_TRUE(t, handle != NULL);
        NCCL_OK(t, ncclCommDeregister(comm, handle));
        NCCL_GIVES(t, ncclInvalidUsage, ncclCommDeregister(comm, handle));
    }
    for (int flags = 0; flags < 2; flags++) {
        nccl_result(t, nccl_settled(comm, ncclCommWindowRegister(comm, buffer, 400000, &win, flags)), ncclSuccess,
                    "ncclCommWindowRegister");
        TEST_TRUE(t, win != NULL);
        nccl_result(t, nccl_settled(comm, ncclAllReduce(data, data, 100000, ncclInt, ncclMax, comm, NULL)), ncclSuccess,
                    "ncclAllReduce");
        TEST_TRUE(t, data[99999] == 99999);
        nccl_result(t, nccl_settled(comm, ncclCommWindowDeregister(comm, win)), ncclSuccess,
                    "ncclCommWindowDeregister");
    }
    NCCL_OK(t, nccl_settled(comm, ncclCommWindowRegister(comm, buffer, 400000, &win, NCCL_WIN_COLL_SYMMETRIC)));
    NCCL_OK(t, ncclCommRegister(comm, buffer, 400000, &handle)); /* both are left to the communicator */
    NCCL_OK(t, ncclCommDestroy(comm));
    NCCL_OK(t, ncclMemFree(buffer));
    NCCL_GIVES(t, ncclInvalidArgument, ncclMemFree(buffer));
}

typedef struct waiter {
    ncclComm_t comm;
    ncclResult_t result;
    volatile int32_t first; /* of two messages: has come, so the thread is inside */
    int32_t second;         /* never comes */
} waiter_t;

static void *receive(void *arg)
{
    waiter_t *w = arg;

    ncclGroupStart();
    ncclRecv((void *)&w->first, 1, ncclInt, 1, w->comm, NULL);
    ncclRecv(&w->second, 1, ncclInt, 1, w->comm, NULL);
    w->result = ncclGroupEnd();
    return NULL;
}

/* Looks into a buffer that belongs to the library until the call ends, which a user must not: unseen by sanitizers. */
__attribute__((no_sanitize_thread)) static int has_come(const waiter_t *w)
{
    return w->first != 0;
}

/* Rank 0 ends what cannot end, by abort or by revoke, while its other thread waits in it. */
static void ended(test_rank_t *t, void *arg)
{
    int revoke = *(int *)arg, last = t->nranks - 1;
    ncclComm_t comm = comm_of(t, 1), rest = NULL;
    waiter_t waiter = {comm, ncclSuccess, 0, 0};
    ncclResult_t error = ncclSuccess;
    int32_t one = 1, sum;
    pthread_t thread;

    test_barrier(t); /* all of them have seen that it is made: from here on rank 0 may end it */
    if (t->rank == 0) {
        test_note(t, "%s while another thread waits", revoke ? "revoke" : "abort");
        if (pthread_create(&thread, NULL, receive, &waiter) != 0)
            test_stop(t, "no thread");
        while (!has_come(&waiter))
            usleep(100);
        NCCL_OK(t, revoke ? ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT) : ncclCommAbort(comm));
        pthread_join(thread, NULL);
        TEST_TRUE(t, waiter.result == ncclInvalidUsage);
        if (revoke) {
            NCCL_OK(t, ncclCommGetAsyncError(comm, &error));
            NCCL_GIVES(t, ncclSuccess, error);
            NCCL_GIVES(t, ncclInvalidUsage, ncclAllReduce(&one, &sum, 1, ncclInt, ncclSum, comm, NULL));
            NCCL_GIVES(t, ncclInvalidArgument, ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
            NCCL_GIVES(t, ncclInvalidArgument, ncclCommFinalize(comm)); /* as in NCCL */
        }
    } else {
        if (t->rank == 1)
            (void)ncclSend(&one, 1, ncclInt, 0, comm, NULL); /* rank 0 has it, but may be quicker to end than this */
        test_note(t, "an operation that rank 0 leaves");
        NCCL_GIVES(t, ncclRemoteError, ncclAllReduce(&one, &sum, 1, ncclInt, ncclSum, comm, NULL));
        NCCL_OK(t, ncclCommGetAsyncError(comm, &error));
        NCCL_GIVES(t, ncclRemoteError, error);
        TEST_TRUE(t, strstr(ncclGetLastError(comm), "rank 0") != NULL);
    }
    test_barrier(t);
    if (revoke && t->rank != last) {
        test_note(t, "shrink what is left");
        if (NCCL_OK(t, ncclCommShrink(comm, &last, 1, &rest, NULL, NCCL_SHRINK_ABORT)) && sum_is(t, rest, last))
            NCCL_OK(t, ncclCommDestroy(rest));
    }
    if (revoke)
        NCCL_OK(t, ncclCommDestroy(comm));
    else if (t->rank != 0)
        NCCL_OK(t, ncclCommAbort(comm));
}

/* As in NCCL, what has been revoked may be split, several times. */
static void split_revoked(test_rank_t *t, void *arg)
{
    const int n = t->nranks, blocking = *(int *)arg;
    ncclComm_t comm = comm_of(t, blocking), part = NULL;
    int32_t one = 1, sum = 0, rank = -1;
    ncclResult_t state = ncclInternalError;

    sum_is(t, comm, n);
    test_barrier(t); /* nobody revokes before all have the sum */
    test_note(t, "split what has been revoked");
    if (!blocking && t->rank == 0) /* what is cut short in the background is no error behind that */
        NCCL_GIVES(t, ncclInProgress, ncclRecv(&sum, 1, ncclInt, 1, comm, NULL));
    NCCL_OK(t, nccl_settled(comm, ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT)));
    NCCL_OK(t, ncclCommGetAsyncError(comm, &state));
    NCCL_GIVES(t, ncclSuccess, state);
    for (int round = 0; round < 2; round++) {
        ncclResult_t result = ncclCommSplit(comm, t->rank % 2, -t->rank, &part, NULL);
        nccl_result(t, both_settled(comm, part, result), ncclSuccess, "ncclCommSplit");
        NCCL_OK(t, ncclCommUserRank(part, &rank));
        TEST_TRUE(t, rank == (n - 1 - t->rank) / 2); /* the keys turn the order round */
        sum_is(t, part, (n + 1 - t->rank % 2) / 2);
        NCCL_OK(t, ncclCommDestroy(part));
        result = ncclCommSplit(comm, t->rank ? NCCL_SPLIT_NOCOLOR : 0, 0, &part, NULL);
        nccl_result(t, both_settled(comm, part, result), ncclSuccess, "ncclCommSplit");
        TEST_TRUE(t, (part == NULL) == (t->rank != 0));
        if (part)
            NCCL_OK(t, ncclCommDestroy(part));
    }
    NCCL_GIVES(t, ncclInvalidUsage, ncclAllReduce(&one, &sum, 1, ncclInt, ncclSum, comm, NULL));
    NCCL_OK(t, ncclCommDestroy(comm));
}

static void *shrink(void *arg)
{
    waiter_t *w = arg;
    ncclComm_t rest = NULL;
    int out = 2;

    w->result = ncclCommShrink(w->comm, &out, 1, &rest, NULL, NCCL_SHRINK_DEFAULT);
    w->second = rest != NULL;
    return NULL;
}

static void *split(void *arg)
{
    waiter_t *w = arg;
    ncclComm_t part = NULL;

    w->result = ncclCommSplit(w->comm, 0, 0, &part, NULL);
    w->second = part != NULL;
    return NULL;
}

/* Rank 0 ends the communicator while its other thread waits in a shrink, or in a split behind a revocation, that rank 1
 * does not come to. */
static void unmet(test_rank_t *t, int revoke, void *(*wait)(void *arg), const char *call)
{
    ncclComm_t comm = comm_of(t, 1);
    waiter_t waiter = {comm, ncclSuccess, 0, 0};
    ncclResult_t state = ncclSuccess;
    pthread_t thread;

    test_barrier(t);
    if (t->rank == 0) {
        test_note(t, "%s while another thread is in %s", revoke ? "revoke and abort" : "abort", call);
        if (wait == split)
            NCCL_OK(t, ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
        if (pthread_create(&thread, NULL, wait, &waiter) != 0)
            test_stop(t, "no thread");
        while (state != ncclInProgress) {
            NCCL_OK(t, ncclCommGetAsyncError(comm, &state));
            usleep(100);
        }
        if (revoke)
            NCCL_OK(t, ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
        NCCL_OK(t, ncclCommAbort(comm));
        pthread_join(thread, NULL);
        nccl_result(t, waiter.result, ncclInvalidUsage, call);
        TEST_TRUE(t, !waiter.second);
    }
    test_barrier(t);
    if (t->rank != 0)
        NCCL_OK(t, ncclCommAbort(comm));
}

static void unshrunk(test_rank_t *t, void *arg)
{
    unmet(t, *(int *)arg, shrink, "ncclCommShrink");
}

static void unsplit(test_rank_t *t, void *arg)
{
    (void)arg;
    unmet(t, 0, split, "ncclCommSplit");
}

static void *abort_it(void *arg)
{
    waiter_t *w = arg;

    w->result = ncclCommAbort(w->comm);
    return NULL;
}

/* Another thread ends a communicator of which this thread's group holds calls, by operators that have been destroyed.
 * They are more than malloc keeps aside for a thread, so their memory shows whether it was given back too early. */
static void recorded(test_rank_t *t, void *arg)
{
    enum { OPS = 40 };
    ncclComm_t comm = comm_of(t, 1);
    waiter_t other = {comm, ncclSuccess, 0, 0};
    float in = 1, out[OPS], two = 2;
    pthread_t thread;

    (void)arg;
    test_note(t, "abort while a group holds calls by operators");
    NCCL_OK(t, ncclGroupStart());
    for (int i = 0; i < OPS; i++) {
        ncclRedOp_t op;

        NCCL_OK(t, ncclRedOpCreatePreMulSum(&op, &two, ncclFloat, ncclScalarHostImmediate, comm));
        NCCL_OK(t, ncclAllReduce(&in, &out[i], 1, ncclFloat, op, comm, NULL));
        NCCL_OK(t, ncclRedOpDestroy(op, comm));
    }
    if (pthread_create(&thread, NULL, abort_it, &other) != 0)
        test_stop(t, "no thread");
    pthread_join(thread, NULL);
    NCCL_OK(t, other.result);
    NCCL_GIVES(t, ncclInvalidUsage, ncclGroupEnd());
}

/* As clients do that end: rank 0 aborts when it has all its results. That is no failure for those who have theirs. */
static void at_rest(test_rank_t *t, void *arg)
{
    ncclComm_t comm = comm_of(t, 1);
    ncclResult_t error = ncclSuccess;
    int32_t one = 1, sum;

    (void)arg;
    test_note(t, "abort when all is done");
    sum_is(t, comm, t->nranks);
    test_barrier(t);
    if (t->rank == 0)
        NCCL_OK(t, ncclCommAbort(comm));
    test_barrier(t);
    if (t->rank != 0) {
        NCCL_OK(t, ncclCommGetAsyncError(comm, &error));
        NCCL_GIVES(t, ncclSuccess, error);
    }
    test_barrier(t); /* who waits for rank 0 fails, and tells the others */
    if (t->rank == 0)
        return;
    NCCL_GIVES(t, ncclRemoteError, ncclAllReduce(&one, &sum, 1, ncclInt, ncclSum, comm, NULL));
    NCCL_OK(t, ncclCommAbort(comm));
}

typedef struct creator {
    ncclUniqueId id;
    ncclComm_t comm;
    ncclResult_t result;
} creator_t;

static void *create(void *arg)
{
    creator_t *c = arg;

    c->result = ncclCommInitRank(&c->comm, 2, c->id, 0);
    return NULL;
}

/* Looks into a variable that belongs to the library until the call ends: unseen by sanitizers. */
__attribute__((no_sanitize_thread)) static ncclComm_t being_made(const creator_t *c)
{
    return *(volatile const ncclComm_t *)&c->comm;
}

/* Another thread waits in a creation that nobody joins, and returns when this one aborts it. */
static void created_in_vain(test_rank_t *t)
{
    creator_t creator = {.result = ncclSuccess};
    pthread_t thread;

    for (int round = 0; round < 10; round++) {
        test_note(t, "a creation that nobody joins, and its thread, round %d", round);
        creator.comm = NULL;
        NCCL_OK(t, ncclGetUniqueId(&creator.id));
        if (pthread_create(&thread, NULL, create, &creator) != 0)
            test_stop(t, "no thread");
        while (!being_made(&creator))
            usleep(100);
        if (round % 2) /* else it has hardly begun */
            usleep(2000);
        NCCL_OK(t, ncclCommAbort(being_made(&creator)));
        pthread_join(thread, NULL);
        nccl_result(t, creator.result, ncclInvalidUsage, "ncclCommInitRank");
        TEST_TRUE(t, creator.comm == NULL);
    }
}

/* Creations and operations that nobody joins, aborted; with blocking = 0 and by another thread. */
static void aborted(test_rank_t *t, void *arg)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = comm_of(t, 0), alone = NULL;
    ncclResult_t result;
    int32_t out = 0;

    (void)arg;
    test_barrier(t); /* all of them have seen that it is made */
    if (t->rank == 0) {
        test_note(t, "a receive behind the caller's back");
        NCCL_GIVES(t, ncclInProgress, ncclRecv(&out, 1, ncclInt, 1, comm, NULL));
        NCCL_OK(t, ncclCommGetAsyncError(comm, &result));
        NCCL_GIVES(t, ncclInProgress, result);
        NCCL_GIVES(t, ncclInvalidArgument, ncclRecv(&out, 1, ncclInt, 1, comm, NULL));
        NCCL_OK(t, ncclCommAbort(comm));
    }
    test_barrier(t);
    if (t->rank != 0)
        NCCL_OK(t, ncclCommAbort(comm));
    if (t->rank == 0) {
        ncclUniqueId id;

        test_note(t, "a creation that nobody joins");
        NCCL_OK(t, ncclGetUniqueId(&id));
        config.blocking = 0;
        NCCL_GIVES(t, ncclInProgress, ncclCommInitRankConfig(&alone, 2, id, 0, &config));
        TEST_TRUE(t, alone != NULL);
        NCCL_OK(t, ncclCommGetAsyncError(alone, &result));
        NCCL_GIVES(t, ncclInProgress, result);
        NCCL_OK(t, ncclCommAbort(alone));
        created_in_vain(t);
    }
}

/* The last rank dies in the middle; the others see it, shrink and go on. */
static void survivors(test_rank_t *t, void *arg)
{
    int blocking = *(int *)arg, last = t->nranks - 1;
    ncclComm_t comm = comm_of(t, blocking), rest = NULL;
    int32_t one = 1, sum = 0;
    ncclResult_t result;

    sum_is(t, comm, t->nranks);
    test_barrier(t);
    if (t->rank == last)
        kill(getpid(), SIGKILL);
    test_note(t, "an operation with a dead rank");
    result = nccl_settled(comm, ncclAllReduce(&one, &sum, 1, ncclInt, ncclSum, comm, NULL));
    nccl_result(t, result, ncclRemoteError, "ncclAllReduce");
    test_note(t, "shrink");
    result = ncclCommShrink(comm, &last, 1, &rest, NULL, NCCL_SHRINK_ABORT);
    if (nccl_result(t, result == ncclInProgress ? nccl_settled(rest, result) : result, ncclSuccess, "ncclCommShrink")) {
        sum_is(t, rest, last);
        NCCL_OK(t, ncclCommDestroy(rest));
    }
    NCCL_OK(t, ncclCommAbort(comm));
}

/* As NCCL's users do: one member makes the id, the members pass none, a new rank passes it. Twice, by two members. */
static void grown(test_rank_t *t, void *arg)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int blocking = *(int *)arg, last = t->nranks - 1, rank = -1;
    ncclComm_t comm = comm_of(t, blocking), members = NULL, made;
    ncclUniqueId id;
    ncclResult_t result;

    config.blocking = blocking;
    test_note(t, "split");
    result = ncclCommSplit(comm, t->rank == last ? NCCL_SPLIT_NOCOLOR : 0, 0, &members, NULL);
    nccl_result(t, nccl_settled(members ? members : comm, result), ncclSuccess, "ncclCommSplit");
    for (int maker = 0; maker < 2; maker++) {
        test_note(t, "grow, the id of %d", maker);
        if (t->rank == maker)
            NCCL_OK(t, pncclCommGetUniqueId(members, &id));
        else
            memset(&id, 0, sizeof id);
        /* the others' bytes are 0, and this sum is the maker's id */
        nccl_result(t, nccl_settled(comm, ncclAllReduce(&id, &id, sizeof id, ncclUint8, ncclSum, comm, NULL)),
                    ncclSuccess, "ncclAllReduce");
        result = pncclCommGrow(members, t->nranks, members ? NULL : &id, members ? -1 : last, &made, &config);
        if (!nccl_result(t, nccl_settled(made, result), ncclSuccess, "ncclCommGrow"))
            break;
        sum_is(t, made, t->nranks);
        NCCL_OK(t, ncclCommUserRank(made, &rank));
        TEST_TRUE(t, rank == t->rank);
        NCCL_OK(t, ncclCommDestroy(made));
    }
    if (members) {
        NCCL_GIVES(t, ncclInvalidArgument, pncclCommGrow(members, last, NULL, -1, &made, NULL));
        NCCL_GIVES(t, ncclInvalidArgument, pncclCommGrow(members, t->nranks, NULL, 0, &made, NULL));
        NCCL_OK(t, ncclCommDestroy(members));
    }
    NCCL_OK(t, ncclCommDestroy(comm));
}

int main(void)
{
    int bad = 0, yes = 1, no = 0;

    test_begin("nccl/life", 200);
    setenv("RONDO_DEBUG", "none", 0);
    nccl_begin();
    for (int *flag = &no; flag && !bad; flag = flag == &no ? &yes : NULL) {
        test_director_t d = {.victims = 1u << 2};

        bad += test_run(*flag ? TEST_PROCESSES : TEST_THREADS, 3, 40, derived, flag) +
               test_run(TEST_PROCESSES, 4, 40, grown, flag);
        bad += test_run(TEST_PROCESSES, 2, 40, memory, flag);
        bad += test_run(TEST_PROCESSES, 3, 40, ended, flag);
        bad += test_run(TEST_PROCESSES, 3, 40, unshrunk, flag);
        bad += test_run(*flag ? TEST_THREADS : TEST_PROCESSES, 4, 40, split_revoked, flag);
        bad += test_run_directed(&d, 3, 40, survivors, flag);
    }
    if (!bad)
        bad += test_run(TEST_PROCESSES, 2, 40, unsplit, NULL) + test_run(TEST_PROCESSES, 1, 40, recorded, NULL) +
               test_run(TEST_PROCESSES, 2, 40, aborted, NULL) + test_run(TEST_PROCESSES, 3, 40, at_rest, NULL) +
               test_run(TEST_THREADS, 3, 40, at_rest, NULL);
    return bad != 0;
}
