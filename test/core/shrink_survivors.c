/* rondo_comm_shrink with RONDO_SURVIVORS: nobody is told who has died.
 *
 *   dead     some ranks, the first ones among them, end by SIGKILL before the others shrink
 *   during   further ones die at random moments while the others shrink
 *   left     a rank that has aborted, and one that has destroyed, count as gone
 *   waits    a rank that lives and does not come is named at RONDO_CREATE_TIMEOUT_MS
 *   aborted  another thread aborts the communicator while this one waits for it
 *   whole    nobody has died, of one rank and of four; afterwards the old communicator cannot be shrunk again
 *
 * All who are left must have the same group, and its next result must be right. A group that lost a rank while it was
 * kept fails, and is shrunk in its turn. By --seed S and --count N other and more moments. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/harness.h"

#define MOST_DEPTH 16 /* of communicators that came of each other */

typedef struct plan {
    uint64_t seed;
    int nnodes;
    unsigned before, during; /* bit sets of ranks that die */
    unsigned delay_us[TEST_MAX_RANKS];
    unsigned *groups; /* [MOST_DEPTH][TEST_MAX_RANKS] + 1: who was in each group, as each rank saw it; 0: none */
} plan_t;

static void *die_later(void *arg)
{
    usleep(*(unsigned *)arg);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* Shrinks until the group holds. */
static void survive(test_rank_t *t, rondo_comm_t comm, plan_t *p)
{
    rondo_config_t config = test_host_config();
    unsigned group = 0;
    for (int depth = 0; depth < MOST_DEPTH && !group; depth++) {
        rondo_comm_t next = NULL;
        test_note(t, "shrink number %d", depth + 1);
        if (!TEST_OK(t, comm, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &next, &config)))
            break;
        TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &comm, &config));
        rondo_comm_destroy(comm);
        comm = next;
        test_note(t, "who is left after %d", depth + 1);
        group = test_group(comm, t->rank);
        p->groups[depth * TEST_MAX_RANKS + t->rank] = group;
    }
    p->groups[MOST_DEPTH * TEST_MAX_RANKS + t->rank] = group;
    TEST_TRUE(t, group);
    rondo_comm_destroy(comm);
}

static void body(test_rank_t *t, void *arg)
{
    plan_t *p = arg;
    rondo_config_t config = test_host_config();
    pthread_t thread;
    char host[32];
    float one = 1, sum;
    snprintf(host, sizeof host, "node%d", t->rank % p->nnodes);
    if (p->nnodes > 1)
        setenv("RONDO_HOSTID", host, 1);
    rondo_comm_t comm = test_comm(t, &config);
    test_barrier(t);
    if (p->before >> t->rank & 1)
        kill(getpid(), SIGKILL);
    test_note(t, "operations until the failure");
    while (rondo_allreduce(&one, &sum, 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL) == RONDO_SUCCESS)
        TEST_TRUE(t, sum == (float)t->nranks);
    if (p->during >> t->rank & 1 && pthread_create(&thread, NULL, die_later, &p->delay_us[t->rank]) != 0)
        test_stop(t, "cannot start a thread");
    survive(t, comm, p);
    if (p->during >> t->rank & 1)
        pthread_join(thread, NULL); /* that was too late to matter */
}

static void step(test_director_t *d, const pid_t *pid)
{
    (void)d;
    (void)pid;
}

/* A rank that was to die during the shrink may have come through it first. */
static int judge(const plan_t *p, int nranks)
{
    unsigned must = ((1u << nranks) - 1) & ~p->before & ~p->during, last = 0;
    for (int r = 0; r < nranks; r++) {
        unsigned group = p->groups[MOST_DEPTH * TEST_MAX_RANKS + r];
        if (!(must >> r & 1))
            continue;
        last = last ? last : group;
        if ((group & must) != must || group != last || group & p->before) {
            printf("survive: rank %d ended in the group %x, of which %x had to be\n", r, group, must);
            return 1;
        }
    }
    for (int depth = 0; depth < MOST_DEPTH; depth++) {
        const unsigned *seen = p->groups + depth * TEST_MAX_RANKS;
        unsigned group = 0;
        for (int r = 0; r < nranks; r++) {
            if (seen[r] && group && seen[r] != group) {
                printf("survive: groups %x and %x at once\n", seen[r], group);
                return 1;
            }
            group = seen[r] ? seen[r] : group;
        }
    }
    return 0;
}

static int trial(uint64_t seed, int nnodes)
{
    static plan_t plan;
    uint64_t s = seed;
    size_t bytes = (MOST_DEPTH + 1) * TEST_MAX_RANKS * sizeof(unsigned);
    int n = 2 + (int)test_below(&s, 6), ndead = 1 + (int)test_below(&s, (unsigned)n - 1), bad;
    plan = (plan_t){.seed = seed, .nnodes = nnodes};
    plan.groups = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (plan.groups == MAP_FAILED)
        return 1;
    for (int i = 0; i < ndead; i++) {
        unsigned r = test_below(&s, (unsigned)n);
        if (i == 0)
            plan.before |= 1u << r;
        else if (!(plan.before >> r & 1))
            plan.during |= 1u << r;
        plan.delay_us[r] = test_below(&s, test_below(&s, 2) ? 40000 : 4000);
    }
    if ((plan.before | plan.during) == (1u << n) - 1)
        plan.during = 0;
    printf("survive: seed %llu: %d ranks on %d nodes, %x die before, %x during the shrink\n", (unsigned long long)seed,
           n, nnodes, plan.before, plan.during);
    test_director_t d = {.step = step, .victims = plan.before | plan.during};
    bad = test_run_directed(&d, n, 60, body, &plan);
    bad += judge(&plan, n);
    munmap(plan.groups, bytes);
    return bad;
}

/* ---- without a death ---- */

static void left_body(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = test_comm(t, &config), next = NULL;
    (void)arg;
    test_barrier(t);
    if (t->rank == 0) {
        TEST_OK(t, NULL, rondo_comm_abort(comm));
        return;
    }
    while (rondo_barrier(comm, NULL) == RONDO_SUCCESS)
        ;
    if (t->rank == 2) {
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
        return;
    }
    if (TEST_OK(t, comm, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &next, &config))) {
        TEST_TRUE(t, test_group(next, t->rank) == 0xa);
        rondo_comm_destroy(next);
    }
    rondo_comm_destroy(comm);
}

static void waits_body(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm, next = NULL;
    char name[16];
    int absent = *(int *)arg;
    setenv("RONDO_CREATE_TIMEOUT_MS", "4000", 1); /* more than the creation takes, on a busy machine, too */
    comm = test_comm(t, &config);
    snprintf(name, sizeof name, "rank %d", absent);
    if (t->rank != absent &&
        TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &next, &config)))
        TEST_TRUE(t, strstr(rondo_last_error(NULL), name) != NULL);
    test_barrier(t);
    rondo_comm_destroy(comm);
}

static void *abort_now(void *arg)
{
    usleep(20000); /* whether the call has begun by then or not: it must end */
    rondo_comm_abort(arg);
    return NULL;
}

static void aborted_body(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = test_comm(t, &config), next = NULL;
    pthread_t thread;
    (void)arg;
    test_barrier(t);    /* nobody is in the creation when another one aborts */
    if (t->rank == 0) { /* the one that all wait for */
        test_barrier(t);
        rondo_comm_destroy(comm);
        return;
    }
    if (pthread_create(&thread, NULL, abort_now, comm) != 0)
        test_stop(t, "cannot start a thread");
    TEST_GIVES(t, NULL, RONDO_ERR_ABORTED, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &next, &config));
    pthread_join(thread, NULL);
    test_barrier(t);
}

static void whole_body(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = test_comm(t, &config), next = NULL;
    const int last = t->nranks - 1;
    (void)arg;
    if (TEST_OK(t, comm, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &next, &config))) {
        TEST_TRUE(t, test_group(next, t->rank) == (1u << t->nranks) - 1);
        TEST_TRUE(t, test_group(comm, t->rank) == (1u << t->nranks) - 1); /* it had not failed */
        TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &next, &config));
        TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_comm_shrink(comm, &last, 1, &next, &config));
        rondo_comm_destroy(next);
    }
    rondo_comm_destroy(comm);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    int count = 24, bad = 0, absent;
    if (!test_trials(argc, argv, &seed, &count))
        return 2;
    test_begin("survive", 240 + count * 10);
    for (test_kind_t kind = TEST_PROCESSES; kind <= TEST_THREADS; kind++) {
        bad += test_run(kind, 4, 60, left_body, NULL);
        for (absent = 0; absent < 3 && kind == TEST_PROCESSES; absent++)
            bad += test_run(kind, 3, 60, waits_body, &absent);
        bad += test_run(kind, 2, 60, aborted_body, NULL);
        bad += test_run(kind, 1, 60, whole_body, NULL);
        bad += test_run(kind, 4, 60, whole_body, NULL);
    }
    for (int i = 0; i < count && bad == 0; i++)
        bad += trial(test_mix(seed + (uint64_t)i), i % 4 == 3 ? 2 : 1);
    return bad != 0;
}
