/* A rank executes another program while another one waits for it in a shrink with a list. Its process goes on, so its
 * neighbours of the bootstrap alone see its end, and who waits is none of them: it must hear of the death all the same,
 * and give up with its name long before the time for making a communicator is over. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/harness.h"

#define RANKS 6
#define VICTIM 5
#define WAITS 2 /* no power of two away from the victim, either way */

typedef struct job {
    _Atomic int begun, over;
} job_t;

static void wait_in_vain(test_rank_t *t, job_t *j, rondo_comm_t comm)
{
    const int out[] = {0};
    rondo_comm_t small = NULL;

    atomic_store(&j->begun, 1);
    rondo_result_t result = rondo_comm_shrink(comm, out, 1, &small, NULL);
    if (result != RONDO_ERR_REMOTE || !strstr(rondo_last_error(NULL), "rank 5 "))
        test_fail(t, "%s, %s", rondo_result_string(result), rondo_last_error(NULL));
    atomic_store(&j->over, 1);
}

static void body(test_rank_t *t, void *arg)
{
    job_t *j = arg;
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.device = RONDO_DEVICE_HOST;
    rondo_comm_t comm = test_comm(t, &config);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t); /* a rank that is still in that one would hear of the end there */
    if (t->rank == WAITS)
        wait_in_vain(t, j, comm);
    if (t->rank == VICTIM) {
        while (!atomic_load(&j->begun))
            usleep(1000);
        usleep(100000); /* the other one waits by then, as a rule; it is as right if it comes later */
        execl("/bin/sleep", "sleep", "1000", (char *)NULL);
    }
    while (!atomic_load(&j->over))
        usleep(1000);
    TEST_OK(t, comm, rondo_comm_abort(comm));
}

/* The other program has no end of its own. */
static void end_victim(test_director_t *d, const pid_t *pid)
{
    job_t *j = d->arg;

    if (atomic_load(&j->over) && pid[VICTIM])
        kill(pid[VICTIM], SIGKILL);
}

int main(void)
{
    job_t *j = mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    test_director_t d = {.step = end_victim, .arg = j, .victims = 1u << VICTIM};

    test_begin("shrink_exec", 60);
    if (j == MAP_FAILED)
        return 1;
    return test_run_directed(&d, RANKS, 40, body, j) != 0;
}
