/* A rank is killed while all are in rondo_comm_split, or while others shrink without an earlier victim.
 *
 *   split   all ranks split by random colors until one of them ends by SIGKILL, at a random moment. Every other rank's
 *           split ends well or with RONDO_ERR_REMOTE and names the process that died, which need not be of its color;
 *           what a split has made without the victim serves; rondo_comm_shrink with RONDO_SURVIVORS works after that
 *   shrink  one rank is dead, and another one dies while the others shrink by a list without the first
 *   config  a config that is refused on one rank is refused before anything is exchanged: that rank may try again
 *
 * RONDO_CREATE_TIMEOUT_MS is a minute, and a trial that takes 20 seconds has hung. By --seed S and --count N other and
 * more moments. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/die_at.h"
#include "util/harness.h"

#define HANG_S 20

typedef struct plan {
    uint64_t seed;
    int nnodes, victim, first; /* first: a rank that is dead before, when a shrink is tried; -1: a split is */
    unsigned delay_us, splits; /* splits: those that are done before the clock starts */
    int calls;                 /* the call at which the victim dies; -1: at a moment */
    struct board *board;
} plan_t;

typedef struct board {                /* shared */
    _Atomic int pids[TEST_MAX_RANKS]; /* the process of each rank */
    _Atomic int64_t died_us;
    _Atomic int64_t last_us; /* when the last rank had its error */
} board_t;

static void start_to_die(test_rank_t *t, plan_t *p)
{
    if (t->rank == p->victim)
        die_at(t, p->calls, p->delay_us, &p->board->died_us);
}

static void note_time(plan_t *p)
{
    int64_t now = test_clock_us(), last = atomic_load(&p->board->last_us);
    while (last < now && !atomic_compare_exchange_weak(&p->board->last_us, &last, now))
        ;
}

/* The sentence names the process, whatever number it has in the communicator that failed. */
static void must_name_victim(test_rank_t *t, const plan_t *p, const char *what)
{
    char rank[32], first[32] = "", process[32];
    snprintf(process, sizeof process, ":%d", atomic_load(&p->board->pids[p->victim]));
    snprintf(rank, sizeof rank, "rank %d ", p->victim);
    if (p->first >= 0)
        snprintf(first, sizeof first, "rank %d ", p->victim - (p->victim > p->first));
    if (!strstr(rondo_last_error(NULL), process) && !strstr(rondo_last_error(NULL), rank) &&
        !(*first && strstr(rondo_last_error(NULL), first)))
        test_fail(t, "%s must name rank %d, process %d: \"%s\"", what, p->victim,
                  atomic_load(&p->board->pids[p->victim]), rondo_last_error(NULL));
}

static void survive(test_rank_t *t, const plan_t *p, rondo_comm_t comm)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t left = NULL;
    unsigned must = ((1u << t->nranks) - 1) & ~(1u << p->victim) & ~(p->first >= 0 ? 1u << p->first : 0);
    test_note(t, "shrink to the survivors");
    if (TEST_OK(t, comm, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &left, &config))) {
        unsigned group = test_group(left, t->rank);
        if (group != must)
            test_fail(t, "the survivors are %x, not %x", group, must);
        rondo_comm_destroy(left);
    }
    rondo_comm_destroy(comm);
}

/* One split. All ranks draw the same colors and keys. */
static rondo_result_t split_once(test_rank_t *t, const plan_t *p, rondo_comm_t comm, uint64_t *random)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t part = NULL;
    int color[TEST_MAX_RANKS] = {0}, key[TEST_MAX_RANKS];
    unsigned must = 0;
    for (int r = 0; r < t->nranks; r++) {
        color[r] = (int)test_below(random, 8) - 1;
        color[r] = color[r] < 0 ? -1 : color[r] % 2;
        key[r] = (int)test_below(random, 3);
    }
    for (int r = 0; r < t->nranks; r++)
        must |= color[r] == color[t->rank] ? 1u << r : 0;
    test_note(t, "split, color %d", color[t->rank]);
    rondo_result_t result = rondo_comm_split(comm, color[t->rank], key[t->rank], &part, &config);
    if (result != RONDO_SUCCESS || !part)
        return result;
    test_note(t, "allgather of a part");
    unsigned group = test_group(part, t->rank);
    if (group == 0 && must >> p->victim & 1)
        must_name_victim(t, p, "a part's error");
    else if (group != must)
        test_fail(t, "the part is %x, not %x: \"%s\"", group, must, rondo_last_error(NULL));
    rondo_comm_destroy(part);
    return RONDO_SUCCESS;
}

static rondo_comm_t begin(test_rank_t *t, plan_t *p)
{
    rondo_config_t config = test_host_config();
    char host[32];
    snprintf(host, sizeof host, "node%d", t->rank % p->nnodes);
    if (p->nnodes > 1)
        setenv("RONDO_HOSTID", host, 1);
    setenv("RONDO_CREATE_TIMEOUT_MS", "60000", 1);
    atomic_store(&p->board->pids[t->rank], getpid());
    rondo_comm_t comm = test_comm(t, &config);
    test_barrier(t);
    return comm;
}

static void split_body(test_rank_t *t, void *arg)
{
    plan_t *p = arg;
    rondo_comm_t comm = begin(t, p);
    uint64_t random = test_mix(p->seed);
    rondo_result_t result = RONDO_SUCCESS;
    for (unsigned i = 0; result == RONDO_SUCCESS; i++) {
        if (i == p->splits)
            start_to_die(t, p);
        result = split_once(t, p, comm, &random);
    }
    note_time(p);
    if (test_result(t, NULL, result, RONDO_ERR_REMOTE, "the split"))
        must_name_victim(t, p, "the split's error");
    survive(t, p, comm);
}

static void shrink_body(test_rank_t *t, void *arg)
{
    plan_t *p = arg;
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = begin(t, p), small = NULL;
    rondo_result_t result;
    if (t->rank == p->first)
        kill(getpid(), SIGKILL);
    test_note(t, "barriers until the first death");
    while (rondo_barrier(comm, NULL) == RONDO_SUCCESS)
        ;
    start_to_die(t, p);
    test_note(t, "shrink by a list");
    result = rondo_comm_shrink(comm, &p->first, 1, &small, &config);
    test_note(t, "barriers until the second death");
    while (result == RONDO_SUCCESS)
        result = rondo_barrier(small, NULL);
    note_time(p);
    if (test_result(t, NULL, result, RONDO_ERR_REMOTE, "the shrink or what it made"))
        must_name_victim(t, p, "the shrink's error");
    if (small)
        rondo_comm_destroy(small);
    survive(t, p, comm);
}

static void step(test_director_t *d, const pid_t *pid)
{
    (void)d;
    (void)pid;
}

static int trial(uint64_t seed, int nnodes, int shrink)
{
    uint64_t s = seed;
    int n = 2 + (int)test_below(&s, 3), bad;
    plan_t plan = {.seed = seed, .nnodes = nnodes, .first = -1};
    n += shrink && n < 4;
    plan.victim = (int)test_below(&s, (unsigned)n);
    if (shrink)
        plan.first = (plan.victim + 1 + (int)test_below(&s, (unsigned)n - 1)) % n;
    plan.splits = test_below(&s, 4);
    plan.delay_us = test_below(&s, test_below(&s, 2) ? 40000 : 4000);
    plan.calls = test_below(&s, 3) ? (int)test_below(&s, 80) : -1;
    plan.board = mmap(NULL, sizeof *plan.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (plan.board == MAP_FAILED)
        return 1;
    printf("split_kill: seed %#llx: %d ranks on %d nodes, rank %d is killed in a %s after %d %s\n",
           (unsigned long long)seed, n, nnodes, plan.victim, shrink ? "shrink" : "split",
           plan.calls >= 0 ? plan.calls : (int)plan.delay_us, plan.calls >= 0 ? "calls" : "us");
    test_director_t d = {.step = step, .victims = 1u << plan.victim | (shrink ? 1u << plan.first : 0)};
    bad = test_run_directed(&d, n, HANG_S, shrink ? shrink_body : split_body, &plan);
    printf("split_kill: the last rank had its error after %lld ms\n",
           (long long)(atomic_load(&plan.board->last_us) - atomic_load(&plan.board->died_us)) / 1000);
    munmap(plan.board, sizeof *plan.board);
    return bad;
}

/* ---- a config that is refused ---- */

static void config_body(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config(), wrong = test_host_config();
    rondo_comm_t comm = test_comm(t, &config), part = NULL;
    unsigned all = (1u << t->nranks) - 1;
    (void)arg;
    wrong.timeout_ms = -5;
    if (t->rank == 1) {
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_split(comm, 0, 0, &part, &wrong));
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_shrink(comm, NULL, 0, &part, &wrong));
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &part, &wrong));
        TEST_TRUE(t, strstr(rondo_last_error(NULL), "-5") != NULL);
    }
    for (int way = 0; way < 3; way++) {
        test_note(t, "a right config, way %d", way);
        if (TEST_OK(t, comm,
                    way == 0 ? rondo_comm_split(comm, 0, 0, &part, &config)
                             : rondo_comm_shrink(comm, NULL, way == 1 ? 0 : RONDO_SURVIVORS, &part, &config))) {
            TEST_TRUE(t, test_group(part, t->rank) == all);
            rondo_comm_destroy(part);
        }
    }
    rondo_comm_destroy(comm);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    int count = 24, bad = 0;
    if (!test_trials(argc, argv, &seed, &count))
        return 2;
    test_begin("split_kill", 120 + count * HANG_S);
    setenv("RONDO_CREATE_TIMEOUT_MS", "60000", 1);
    for (test_kind_t kind = TEST_PROCESSES; kind <= TEST_THREADS; kind++)
        bad += test_run(kind, 3, HANG_S, config_body, NULL);
    for (int i = 0; i < count && bad == 0; i++)
        bad += trial(test_mix(seed + (uint64_t)i), i % 4 == 3 ? 2 : 1, i % 3 == 2);
    return bad != 0;
}
