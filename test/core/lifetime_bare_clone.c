/* A rank that ends while a child of it, made by a bare clone, holds copies of all its descriptors: no fork handler of
 * the library runs for such a child. Ranks on other nodes must hear of the death within five seconds, though none of
 * the victim's sockets ends; and a rank that leaves in order, or is stopped for a while, must not be called dead.
 *
 *   killed   the victim's child lives on; the others get RONDO_ERR_REMOTE and the victim's name
 *   left     the victim destroys its communicator and ends, and its child lives on; the others do so later
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
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/bare_child.h"
#include "util/harness.h"

#define STOPPED_S 6 /* longer than a death may take to be known */

typedef enum { KILLED, LEFT, STOPPED } end_t;
static const char *const names[] = {"killed", "left", "stopped"};

typedef struct job {
    end_t end;
    int nnodes, victim;
    _Atomic int met; /* ranks that have their communicator, and have met in it */
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

static void end(test_rank_t *t, job_t *j, rondo_comm_t comm)
{
    while (atomic_load(&j->met) < t->nranks)
        usleep(1000); /* what it has sent last would be lost with it */
    if (j->end != STOPPED && (j->children[t->rank] = bare_child(alive[0])) < 0)
        test_stop(t, "cannot clone");
    j->died_us = test_clock_us();
    if (j->end == LEFT) {
        TEST_OK(t, comm, rondo_comm_destroy(comm));
        _exit(test_failures(t) != 0);
    }
    kill(getpid(), j->end == KILLED ? SIGKILL : SIGSTOP);
}

static void body(test_rank_t *t, void *arg)
{
    job_t *j = arg;
    rondo_comm_t comm = make(t, j);
    rondo_result_t result = RONDO_SUCCESS;
    char named[32];

    close(alive[1]);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_note(t, "rank %d is %s", j->victim, names[j->end]);
    atomic_fetch_add(&j->met, 1);
    if (t->rank == j->victim)
        end(t, j, comm);
    if (j->end == LEFT) {
        sleep(3); /* longer than the library doubts a connection that has ended */
        TEST_OK(t, comm, rondo_comm_destroy(comm));
        return;
    }
    for (int i = 0; result == RONDO_SUCCESS && (j->end == KILLED || i < 3); i++)
        result = rondo_barrier(comm, NULL);
    j->heard_us = test_clock_us();
    snprintf(named, sizeof named, "rank %d ", j->victim);
    if (j->end == STOPPED)
        TEST_OK(t, comm, result);
    else if (result != RONDO_ERR_REMOTE || !strstr(rondo_last_error(comm), named))
        test_fail(t, "%s, %s", rondo_result_string(result), rondo_last_error(comm));
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
    test_director_t d = {.step = wake, .arg = j, .victims = end == KILLED ? 1u << j->victim : 0};
    int bad = test_run_directed(&d, nranks, 30, body, j);
    for (int r = 0; r < nranks; r++)
        if (j->children[r] > 0)
            kill(j->children[r], SIGKILL);
    if (end == KILLED && j->heard_us)
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
        bad += run(j, end, 2, 2);
        bad += run(j, end, 4, end == STOPPED ? 4 : 2);
    }
    return bad != 0;
}
