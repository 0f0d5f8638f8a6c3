/* A rank is killed while members and new ranks grow a communicator, at a random moment or at the k-th of the calls that
 * the bootstrap makes at every step. The id is made by rank 0, a member, and one drawn member hands it on.
 *
 *   member   every other rank's grow, or what it has made, ends with RONDO_ERR_REMOTE and names the process that died;
 *            the members' communicator has failed, too, and shrinks
 *   new      likewise, but where it died before it came it is missed by the deadline; the members' communicator is
 *            unharmed
 *
 * A new rank that comes after the maker of the id has died is told that nobody serves it. A trial that takes 20 seconds
 * has hung. By --seed S and --count N other and more moments. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/die_at.h"
#include "util/harness.h"

#define HANG_S 20
#define CREATE_MS "4000" /* of a new rank that died before it came */

typedef struct board {
    _Atomic int pids[TEST_MAX_RANKS]; /* the process of each rank */
    _Atomic int64_t died_us, last_us; /* last_us: when the last rank had its error */
    _Atomic int missed;               /* ranks that had to miss the victim */
} board_t;

typedef struct plan {
    uint64_t seed;
    int nranks, members, nnodes, victim, holder;
    unsigned delay_us;
    int calls; /* the call at which the victim dies; -1: at a moment */
    board_t *board;
} plan_t;

static void start_to_die(test_rank_t *t, plan_t *p)
{
    if (t->rank == p->victim)
        die_at(t, p->calls, p->delay_us, &p->board->died_us);
}

/* ---- what the others must be told ---- */

/* The numbers of members and new ranks are the same in all that is made, so the rank serves as well as the process. */
static void must_name_victim(test_rank_t *t, const plan_t *p, const char *what)
{
    char rank[32], process[32];
    snprintf(process, sizeof process, ":%d", atomic_load(&p->board->pids[p->victim]));
    snprintf(rank, sizeof rank, "rank %d ", p->victim);
    if (!strstr(rondo_last_error(NULL), process) && !strstr(rondo_last_error(NULL), rank))
        test_fail(t, "%s must name rank %d, process %d: \"%s\"", what, p->victim,
                  atomic_load(&p->board->pids[p->victim]), rondo_last_error(NULL));
}

static void judge(test_rank_t *t, const plan_t *p, rondo_result_t result)
{
    int64_t now = test_clock_us(), last = atomic_load(&p->board->last_us);
    char missing[32];
    snprintf(missing, sizeof missing, "missing: %d ", p->victim);
    if (result == RONDO_ERR_TIMEOUT && p->victim >= p->members && strstr(rondo_last_error(NULL), missing)) {
        atomic_fetch_add(&p->board->missed, 1);
        return;
    }
    while (last < now && !atomic_compare_exchange_weak(&p->board->last_us, &last, now))
        ;
    if (result == RONDO_ERR_INVALID_USAGE && p->victim == 0 && t->rank >= p->members &&
        strstr(rondo_last_error(NULL), "nobody serves this unique id"))
        return;
    if (test_result(t, NULL, result, RONDO_ERR_REMOTE, "the grow or what it made"))
        must_name_victim(t, p, "the error");
}

/* ---- what goes on ---- */

/* The members: as they were, or without the one that died. */
static void go_on(test_rank_t *t, const plan_t *p, rondo_comm_t comm)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t left = NULL;
    unsigned all = (1u << p->members) - 1;
    if (p->victim >= p->members) {
        test_note(t, "the members' communicator");
        TEST_TRUE(t, test_group(comm, t->rank) == all);
    } else {
        test_note(t, "barriers until the death is known");
        while (rondo_barrier(comm, NULL) == RONDO_SUCCESS)
            ;
        test_note(t, "shrink to the survivors");
        if (TEST_OK(t, comm, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &left, &config))) {
            TEST_TRUE(t, test_group(left, t->rank) == (all & ~(1u << p->victim)));
            rondo_comm_destroy(left);
        }
    }
    rondo_comm_destroy(comm);
}

static void body(test_rank_t *t, void *arg)
{
    plan_t *p = arg;
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = NULL, made = NULL;
    rondo_unique_id_t id;
    char host[32];
    snprintf(host, sizeof host, "node%d", t->rank % p->nnodes);
    if (p->nnodes > 1)
        setenv("RONDO_HOSTID", host, 1);
    atomic_store(&p->board->pids[t->rank], getpid());
    test_id(t, &id);
    if (t->rank < p->members && !TEST_OK(t, NULL, rondo_comm_create(&comm, p->members, &id, t->rank, &config)))
        test_stop(t, "the members have no communicator");
    test_id(t, &id);
    test_barrier(t);
    start_to_die(t, p);
    test_note(t, "grow");
    rondo_result_t result = rondo_comm_grow(comm, p->nranks, !comm || t->rank == p->holder ? &id : NULL,
                                            comm ? -1 : t->rank, &made, &config);
    if (result == RONDO_SUCCESS && t->rank == p->victim && p->calls >= 0)
        die_now(); /* it has made fewer calls */
    test_note(t, "barriers until the death");
    while (result == RONDO_SUCCESS)
        result = rondo_barrier(made, NULL);
    judge(t, p, result);
    if (made)
        rondo_comm_destroy(made);
    if (comm)
        go_on(t, p, comm);
}

static void step(test_director_t *d, const pid_t *pid)
{
    (void)d;
    (void)pid;
}

static int trial(uint64_t seed, int nnodes)
{
    uint64_t s = seed;
    plan_t p = {.seed = seed, .nnodes = nnodes};
    p.nranks = 3 + (int)test_below(&s, 3);
    p.members = 2 + (int)test_below(&s, (unsigned)p.nranks - 2);
    p.victim = (int)test_below(&s, (unsigned)p.nranks);
    p.holder = (int)test_below(&s, (unsigned)p.members);
    if (p.holder == p.victim) /* nobody else could tell the new ranks, unless it has made the id: then its end does */
        p.holder = p.victim == 0 ? 0 : p.victim - 1;
    p.delay_us = test_below(&s, test_below(&s, 2) ? 40000 : 4000);
    p.calls = test_below(&s, 3) ? (int)test_below(&s, 80) : -1;
    p.board = mmap(NULL, sizeof *p.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p.board == MAP_FAILED)
        return 1;
    printf(
        "grow_kill: seed %#llx: %d members and %d new ranks on %d nodes, id with %d, rank %d is killed after %d %s\n",
        (unsigned long long)seed, p.members, p.nranks - p.members, nnodes, p.holder, p.victim,
        p.calls >= 0 ? p.calls : (int)p.delay_us, p.calls >= 0 ? "calls" : "us");
    test_director_t d = {.step = step, .victims = 1u << p.victim};
    int bad = test_run_directed(&d, p.nranks, HANG_S, body, &p);
    if (atomic_load(&p.board->missed))
        printf("grow_kill: it was missed by %d\n", atomic_load(&p.board->missed));
    else
        printf("grow_kill: the last rank had its error after %lld ms\n",
               (long long)(atomic_load(&p.board->last_us) - atomic_load(&p.board->died_us)) / 1000);
    munmap(p.board, sizeof *p.board);
    return bad;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    int count = 24, bad = 0;
    if (!test_trials(argc, argv, &seed, &count))
        return 2;
    test_begin("grow_kill", 60 + count * HANG_S);
    setenv("RONDO_CREATE_TIMEOUT_MS", CREATE_MS, 1);
    for (int i = 0; i < count && bad == 0; i++)
        bad += trial(test_mix(seed + (uint64_t)i), i % 4 == 3 ? 2 : 1);
    return bad != 0;
}
