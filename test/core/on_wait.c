/* rondo_comm_on_wait: a rank that waits calls the caller's function, or the two ranks would wait for each other. The
 * last rank enters the collective when every other rank's function has been called; on one node and on two, blocking,
 * by a group and by a request, and not any more when it was taken back. */
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/harness.h"

static _Atomic int *called; /* of each rank */

static void count(void *data)
{
    atomic_fetch_add((_Atomic int *)data, 1);
}

/* Returns when the ranks before this one have each called, or have been called once more. */
static void others_called(const test_rank_t *t, const int *before)
{
    for (int r = 0; r < t->nranks - 1; r++) {
        while (atomic_load(&called[r]) == before[r])
            usleep(100);
    }
}

static void wait_in(test_rank_t *t, rondo_comm_t comm, int how)
{
    int before[TEST_MAX_RANKS], one = 1, sum = 0;
    rondo_request_t request = NULL;

    test_note(t, "way %d", how);
    for (int r = 0; r < t->nranks; r++)
        before[r] = atomic_load(&called[r]);
    test_barrier(t);
    if (t->rank == t->nranks - 1)
        others_called(t, before);
    if (how)
        TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    if (how == 1)
        TEST_OK(t, comm, rondo_group_end());
    if (how == 2) {
        TEST_OK(t, comm, rondo_group_submit(&request));
        TEST_OK(t, comm, rondo_request_wait(&request));
    }
    TEST_TRUE(t, sum == t->nranks);
    test_barrier(t);
}

static void body(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm_on(t, *(int *)arg);
    int now;

    if (!comm)
        return;
    TEST_OK(t, comm, rondo_comm_on_wait(comm, count, &called[t->rank]));
    for (int how = 0; how < 3; how++)
        wait_in(t, comm, how);
    TEST_OK(t, comm, rondo_comm_on_wait(comm, NULL, NULL));
    now = atomic_load(&called[t->rank]);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    TEST_TRUE(t, atomic_load(&called[t->rank]) == now);
    rondo_comm_destroy(comm);
}

int main(void)
{
    int bad = 0;

    test_begin("on_wait", 120);
    called = mmap(NULL, sizeof(int) * TEST_MAX_RANKS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (called == MAP_FAILED)
        return 1;
    for (int nodes = 1; nodes <= 2; nodes++)
        bad += test_run(TEST_PROCESSES, 3, 50, body, &nodes);
    return bad != 0;
}
