/* A rank that ends while a child of it, made by a bare clone, holds copies of all its descriptors: no fork handler of
 * the library runs for such a child. Ranks on other nodes must hear of the death within five seconds, though none of
 * the victim's sockets ends; and a rank that leaves in order, or is stopped for a while, must not be called dead.
 *
 *   killed   the victim's child lives on; the others get RONDO_ERR_REMOTE and the victim's name
 *   left     the victim destroys its communicator and ends, and its child lives on; another rank, which is not in that
 *            communicator, is killed then, as above: when that is known, the others still have this one
 *   stopped  the victim is stopped for longer than those five seconds, and goes on
 *
 * On two nodes and on as many as there are ranks. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/bare_child.h"
#include "util/harness.h"

#define STOPPED_S 6 /* longer than a death may take to be known */

typedef enum { KILLED, LEFT, STOPPED } end_t;
static const char *const names[] = {"killed", "left", "stopped"};

typedef struct job {
    end_t end;
    int nnodes, victim;
    _Atomic int met, gone; /* ranks that have their communicator, and have met in it; the victim has left */
    pid_t children[TEST_MAX_RANKS];
    volatile int64_t died_us, heard_us; /* heard: by the last one */
} job_t;

static int alive[2]; /* the bare children hold the first end, this test's main process the second */

static rondo_comm_t make(test_rank_t *t, const job_t *j)
{
    char host[32];
    rondo_config_t config = RONDO_CONFIG_INIT;
    snprintf(host, sizeof host, "bare%d", t->rank % j->nnodes);
    setenv("RONDO_HOSTID", host, 1);
    config.device = RONDO_DEVICE_HOST;
    return test_comm(t, &config);
}

static void have_child(test_rank_t *t, job_t *j)
{
    if ((j->children[t->rank] = bare_child(alive[0])) < 0)
        test_stop(t, "cannot clone");
}

static void end(test_rank_t *t, job_t *j)
{
    while (atomic_load(&j->met) < t->nranks)
        usleep(1000); /* what it has sent last would be lost with it */
    if (j->end != STOPPED)
        have_child(t, j);
    j->died_us = test_clock_us();
    kill(getpid(), j->end == STOPPED ? SIGSTOP : SIGKILL);
}

/* Waits until it is known that a rank has died. */
static void hear(test_rank_t *t, job_t *j, rondo_comm_t comm, int rank)
{
    rondo_result_t result = RONDO_SUCCESS;
    char named[32];

    while (result == RONDO_SUCCESS)
        result = rondo_barrier(comm, NULL);
    j->heard_us = test_clock_us();
    snprintf(named, sizeof named, "rank %d ", rank);
    if (result != RONDO_ERR_REMOTE || !strstr(rondo_last_error(comm), named))
        test_fail(t, "%s, %s", rondo_result_string(result), rondo_last_error(comm));
}

/* Who is killed after the victim has left is known to be dead later than that one could be taken for it. */
static void leave(test_rank_t *t, job_t *j, rondo_comm_t comm)
{
    const int killed = j->victim - 1;
    rondo_comm_t ours = NULL, lost = NULL; /* without the one that is killed, and without the one that leaves */
    char out = (char)t->rank, in = 0;

    TEST_OK(t, comm, rondo_comm_split(comm, t->rank == killed ? -1 : 0, t->rank, &ours, NULL));
    TEST_OK(t, comm, rondo_comm_split(comm, t->rank == j->victim ? -1 : 0, t->rank, &lost, NULL));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    if (ours)
        TEST_OK(t, ours, rondo_barrier(ours, NULL));
    if (lost)
        TEST_OK(t, lost, rondo_barrier(lost, NULL));
    atomic_fetch_add(&j->met, 1);
    if (t->rank == j->victim) {
        have_child(t, j);
        TEST_OK(t, NULL, rondo_comm_destroy(ours));
        atomic_store(&j->gone, 1);
        _exit(test_failures(t) != 0);
    }
    while (t->rank == killed && !atomic_load(&j->gone))
        usleep(1000);
    if (t->rank == killed)
        end(t, j);
    hear(t, j, lost, killed);
    TEST_OK(t, NULL, rondo_comm_abort(lost));
    TEST_OK(t, NULL, rondo_group_start());
    TEST_OK(t, ours, rondo_send(&out, 1, RONDO_INT8, 1 - t->rank, ours, NULL));
    TEST_OK(t, ours, rondo_recv(&in, 1, RONDO_INT8, 1 - t->rank, ours, NULL));
    TEST_OK(t, ours, rondo_group_end());
    TEST_TRUE(t, in == 1 - t->rank);
    TEST_OK(t, NULL, rondo_comm_destroy(ours));
}

static void body(test_rank_t *t, void *arg)
{
    job_t *j = arg;
    rondo_comm_t comm = make(t, j);

    close(alive[1]);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_note(t, "rank %d is %s", j->victim, names[j->end]);
    if (j->end == LEFT) {
        leave(t, j, comm);
        return;
    }
    atomic_fetch_add(&j->met, 1);
    if (t->rank == j->victim)
        end(t, j);
    if (j->end == KILLED)
        hear(t, j, comm, j->victim);
    for (int i = 0; i < 3 && j->end == STOPPED; i++)
        TEST_OK(t, comm, rondo_barrier(comm, NULL));
    TEST_OK(t, comm, j->end == STOPPED ? rondo_comm_destroy(comm) : rondo_comm_abort(comm));
}

/* Wakes the rank that is stopped, after a time. */
static void wake(test_director_t *d, const pid_t *pid)
{
    job_t *j = d->arg;
    if (j->end == STOPPED && j->died_us && test_clock_us() - j->died_us > STOPPED_S * 1000000LL && pid[j->victim])
        kill(pid[j->victim], SIGCONT);
}

static int run(job_t *j, end_t end, int nranks, int nnodes)
{
    memset(j, 0, sizeof *j);
    j->end = end;
    j->nnodes = nnodes;
    j->victim = nranks - 1;
    printf("lifetime_bare_clone: %s, %d ranks on %d nodes\n", names[end], nranks, nnodes);
    test_director_t d = {.step = wake, .arg = j, .victims = end == STOPPED ? 0 : 1u << (j->victim - (end == LEFT))};
    int bad = test_run_directed(&d, nranks, 30, body, j);
    for (int r = 0; r < nranks; r++)
        if (j->children[r] > 0)
            kill(j->children[r], SIGKILL);
    if (end != STOPPED && j->heard_us)
        printf("lifetime_bare_clone: the last rank heard of it after %lld ms\n",
               (long long)(j->heard_us - j->died_us) / 1000);
    return bad;
}

int main(void)
{
    job_t *j = mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = 0;

    test_begin("lifetime_bare_clone", 240);
    if (j == MAP_FAILED || pipe(alive) != 0)
        return 1;
    for (end_t end = KILLED; end <= STOPPED; end++) {
        bad += end == LEFT ? 0 : run(j, end, 2, 2);
        bad += run(j, end, 4, end == KILLED ? 2 : 4);
    }
    return bad != 0;
}
