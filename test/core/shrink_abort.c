/* A rank aborts while another one waits for it in a shrink with a list. Who waits must hear at once that it has left,
 * and not that it has died.
 *
 *   far    who waits is no neighbour of the bootstrap, so that others must pass the leave on
 *   slow   the modules of the one that aborts take longer to end than those of a rank that dies; who waits is a
 *          neighbour on another node, where its lifeline has ended long before the other connections do
 *   alone  another thread of the rank that is in the shrink aborts; nobody else comes to the shrink, so that nobody
 * tells the rank: it must not wait until the deadline of creations, which is later than this test's
 *
 * On one node and on two. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "boot/boot.h"
#include "util/harness.h"

#define RANKS 6
#define VICTIM 5
#define FAR 2 /* no power of two away from the victim, either way */
#define NEAR 4
#define SLOW_S 3 /* longer than a lifeline may end before a farewell comes */

typedef struct job {
    int nnodes, slow, alone;
    _Atomic int begun, over;
} job_t;

static int slow_here;

void __real_rd_boot_destroy(rd_boot_t *boot);
void __wrap_rd_boot_destroy(rd_boot_t *boot);

void __wrap_rd_boot_destroy(rd_boot_t *boot)
{
    if (slow_here)
        sleep(SLOW_S);
    __real_rd_boot_destroy(boot);
}

static void wait_in_vain(test_rank_t *t, job_t *j, rondo_comm_t comm)
{
    const int out[] = {0};
    rondo_comm_t small = NULL;

    atomic_store(&j->begun, 1);
    rondo_result_t result = rondo_comm_shrink(comm, out, 1, &small, NULL);
    if (result != RONDO_ERR_REMOTE || !strstr(rondo_last_error(NULL), "rank 5 ") ||
        !strstr(rondo_last_error(NULL), "has left it, by an abort"))
        test_fail(t, "%s, %s", rondo_result_string(result), rondo_last_error(NULL));
    atomic_store(&j->over, 1);
}

static void *abort_soon(void *comm)
{
    usleep(100000); /* the shrink waits by then, as a rule; it is as right if it has not begun */
    (void)rondo_comm_abort(comm);
    return NULL;
}

static void abort_own(test_rank_t *t, rondo_comm_t comm)
{
    const int out[] = {0};
    rondo_comm_t small = NULL;
    pthread_t thread;

    if (pthread_create(&thread, NULL, abort_soon, comm) != 0)
        test_stop(t, "cannot start a thread");
    test_result(t, NULL, rondo_comm_shrink(comm, out, 1, &small, NULL), RONDO_ERR_ABORTED, "rondo_comm_shrink");
    pthread_join(thread, NULL);
}

static void body(test_rank_t *t, void *arg)
{
    job_t *j = arg;
    rondo_config_t config = RONDO_CONFIG_INIT;
    char host[32];

    snprintf(host, sizeof host, "node%d", t->rank % j->nnodes);
    if (j->nnodes > 1)
        setenv("RONDO_HOSTID", host, 1);
    setenv("RONDO_CREATE_TIMEOUT_MS", j->alone ? "600000" : "20000", 1);
    config.device = RONDO_DEVICE_HOST;
    rondo_comm_t comm = test_comm(t, &config);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t); /* a rank that is still in that one would hear of the end there */
    if (j->alone && t->rank == VICTIM) {
        abort_own(t, comm);
        atomic_store(&j->over, 1);
        return;
    }
    if (!j->alone && t->rank == (j->slow ? NEAR : FAR))
        wait_in_vain(t, j, comm);
    if (t->rank == VICTIM) {
        while (!atomic_load(&j->begun))
            usleep(1000);
        usleep(100000); /* the other one waits by then, as a rule; it is as right if it comes later */
        slow_here = j->slow;
        TEST_OK(t, comm, rondo_comm_abort(comm));
        return;
    }
    while (!atomic_load(&j->over))
        usleep(1000);
    TEST_OK(t, comm, rondo_comm_abort(comm));
}

int main(void)
{
    job_t *j = mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = 0;

    test_begin("shrink_abort", 120);
    if (j == MAP_FAILED)
        return 1;
    for (int i = 0; i < 6; i++) {
        memset(j, 0, sizeof *j);
        j->nnodes = 1 + i % 2;
        j->slow = i / 2 == 1;
        j->alone = i / 2 == 2;
        bad |= test_run(TEST_PROCESSES, RANKS, 40, body, j) != 0;
    }
    return bad;
}
