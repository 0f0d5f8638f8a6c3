/* Whom rondo-ras names when a rank is killed and when a message is lost on its way, which is nobody's fault; and whom
 * the others' errors name when a rank has aborted its communicator. Which rank or link it is, and at which call, is
 * decided here before the ranks begin. Each rank is alone on a node that is played, whose
 * messages test/transport/socketpair_transport.c carries, or all are on one, but for the lost message.
 *
 *     blamed [--seed S] [--count N] */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "monitor/obedient.h"
#include "transport/socketpair.h"
#include "util/check.h"
#include "util/harness.h"

enum { NOBODY = 0, LATE = 3, BLAMED = 4, UNKNOWN = 5, SLOW = 6 }; /* the exit status of `who` */

#define LOOP 2 /* the order: calls until that of the planned number, and whatever is to happen there */

typedef enum { DEAD, LEFT, LOST, NUM_KINDS } trouble_t;

static const char *const names[NUM_KINDS] = {"dead", "left", "lost"};

static struct shared {
    trouble_t kind;
    int nranks, odd, to, calls, way; /* `to`: where the odd one's messages are lost on their way */
    _Atomic int lose;
    char said[OBEDIENT_MOST][512]; /* the error of each rank */
} * shared;

static bool lose(int from, int to, uint64_t number)
{
    (void)number;
    return atomic_load(&shared->lose) && from == shared->odd && to == shared->to;
}

static rondo_result_t one_call(rondo_comm_t comm)
{
    static float in[1 << 14], out[1 << 14];
    const size_t count = shared->way ? sizeof in / sizeof *in : 8;

    return rondo_allreduce(in, out, count, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
}

/* What the odd rank does after that many calls; the others go on to wait for it. */
static rondo_result_t act(rondo_comm_t comm)
{
    if (shared->kind == DEAD)
        raise(SIGKILL);
    if (shared->kind == LEFT)
        return rondo_comm_abort(comm);
    atomic_store(&shared->lose, 1);
    return RONDO_SUCCESS;
}

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    rondo_result_t result = RONDO_SUCCESS;

    if (what != LOOP)
        return rondo_comm_destroy(comm);
    for (int i = 0; result == RONDO_SUCCESS && i < shared->calls; i++)
        result = one_call(comm);
    if (result == RONDO_SUCCESS && shared->kind == LOST)
        result = rondo_barrier(comm, NULL); /* nothing is under way */
    if (result == RONDO_SUCCESS && rank == shared->odd)
        result = act(comm);
    if (result == RONDO_SUCCESS && (rank != shared->odd || shared->kind == LOST))
        result = one_call(comm);
    if (result != RONDO_SUCCESS)
        snprintf(shared->said[rank], sizeof shared->said[rank], "%s", rondo_last_error(comm));
    return result;
}

/* A line for the matrix of blame.sh. */
static void note(const char *said)
{
    printf("blamed: %s: %s\n", names[shared->kind], said);
}

/* The rank that is named in the first place is the odd one, for that reason. */
static bool names_odd(const char *why)
{
    char who[64];

    snprintf(who, sizeof who, "rank %d (", shared->odd);
    const char *at = strstr(obedient_text, who), *any = strstr(obedient_text, "rank ");
    snprintf(who, sizeof who, ":%d)%s", (int)obedient_pids[shared->odd], why);
    return at && at == any && strstr(at, who);
}

/* Every other rank's error begins with it, as aborted: no call goes on to wait, so there is nothing for who to find. */
static bool errors_name_odd(void)
{
    char who[64];

    snprintf(who, sizeof who, "rank %d (", shared->odd);
    for (int r = 0; r < shared->nranks; r++) {
        const char *at = r == shared->odd || !obedient_settled(r) ? NULL : strstr(shared->said[r], who);
        if (r != shared->odd && (!at || at != shared->said[r]))
            return false;
    }
    return true;
}

static bool is_right(int status)
{
    switch (shared->kind) {
    case DEAD:
        return status == BLAMED &&
               (names_odd(" is dead: ") || names_odd(" died: ")); /* as the errors of the others say */
    case LEFT:
        return errors_name_odd();
    default:
        return status == UNKNOWN && !strstr(obedient_text, "makes progress");
    }
}

/* Nobody else is named meanwhile. */
static bool is_wrong(int status)
{
    return (status == LATE && shared->kind == LOST) || status == SLOW || (status == BLAMED && !is_right(status));
}

static void expect(void)
{
    bool right = false;
    int status = 0;

    for (int i = 0; i < 40; i++) {
        status = obedient_ras("who", obedient_pids[(shared->odd + 1) % shared->nranks]); /* the odd one may be gone */
        CHECK(!is_wrong(status), "%s, rank %d: %s", names[shared->kind], shared->odd, obedient_text);
        if (is_wrong(status) || is_right(status))
            break;
    }
    right = is_right(status);
    if (is_wrong(status))
        note("wrong");
    else if (shared->kind != LOST)
        note(right ? names[shared->kind] : "unknown");
    else
        note(strstr(obedient_text, "what it sent has not come") ? "lost" : "unknown");
    CHECK(right, "%s, rank %d: exit %d: %s", names[shared->kind], shared->odd, status, obedient_text);
    for (int r = 0; !right && r < shared->nranks; r++)
        printf("    rank %d: %s\n", r, shared->said[r]);
}

static void trial(uint64_t seed)
{
    uint64_t random = test_mix(seed);

    memset(shared, 0, sizeof *shared);
    shared->kind = (trouble_t)(seed % NUM_KINDS);
    shared->nranks = 2 + (int)test_below(&random, 4);
    shared->odd = (int)test_below(&random, (unsigned)shared->nranks);
    shared->to = (shared->odd + 1) % shared->nranks; /* in a ring all goes over it */
    shared->calls = (int)test_below(&random, 20);
    shared->way = (int)test_below(&random, 2);
    obedient_nodes = shared->kind == LOST || test_below(&random, 2) ? shared->nranks : 1;
    printf("seed %llu: %s, rank %d of %d on %d nodes, after %d calls\n", (unsigned long long)seed, names[shared->kind],
           shared->odd, shared->nranks, obedient_nodes, shared->calls);
    if (shared->kind == LOST)
        setenv("RONDO_ALGO", "allreduce=ring", 1);
    obedient_start(shared->nranks, "world", obey);
    unsetenv("RONDO_ALGO");
    for (int r = 0; r < shared->nranks; r++)
        obedient_order(r, LOOP);
    expect();
    obedient_end();
}

int main(int argc, char **argv)
{
    uint64_t seed = 0;
    int count = 2 * NUM_KINDS;

    test_begin("monitor/blamed", 600);
    if (!test_trials(argc, argv, &seed, &count))
        return 2;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    sp_lose = lose;
    for (int i = 0; i < count; i++)
        trial(seed + (uint64_t)i);
    printf("%d failures\n", failures);
    return failures != 0;
}
