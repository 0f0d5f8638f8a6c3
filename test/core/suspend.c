/* rondo_comm_suspend and rondo_comm_resume on host memory: nothing is given back, what is under way is done before, and
 * calls in between are refused on every rank. A rank that dies, aborts or does not come is seen. On one node and on two
 * that are played. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

static void sum(test_rank_t *t, rondo_comm_t comm)
{
    int one = 1, all = 0;

    TEST_OK(t, comm, rondo_allreduce(&one, &all, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, all == t->nranks);
}

static void refused(test_rank_t *t, rondo_comm_t comm)
{
    rondo_comm_t part = NULL;
    rondo_window_t window;
    int one = 1, all = 0, rank = -1;
    rondo_result_t error = RONDO_ERR_INTERNAL;

    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE,
               rondo_allreduce(&one, &all, 1, RONDO_INT32, RONDO_SUM, comm, NULL)); /* the last call, repeated */
    test_sentence(t, "rondo_comm_resume, which all ranks call, comes first");
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_recv(&one, 1, RONDO_INT32, 0, comm, NULL));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_comm_split(comm, 0, 0, &part, NULL));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_window_create(comm, NULL, 8, &window, 0));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_comm_suspend(comm));
    TEST_OK(t, NULL, rondo_group_start());
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_comm_resume(comm));
    TEST_OK(t, NULL, rondo_group_end());
    TEST_OK(t, comm, rondo_comm_rank(comm, &rank));
    TEST_OK(t, comm, rondo_comm_get_error(comm, &error));
    TEST_TRUE(t, rank == t->rank && error == RONDO_SUCCESS);
}

static void rests(test_rank_t *t, void *arg)
{
    rondo_memory_t had = {.size = sizeof had}, now = {.size = sizeof now};
    rondo_comm_t comm = test_comm_on(t, *(const int *)arg), part = NULL;
    rondo_request_t request;
    int in = t->rank, out = -1, done = 0;

    if (!comm)
        return;
    TEST_OK(t, comm, rondo_comm_memory_now(comm, &had));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_comm_resume(comm));
    for (int i = 0; i < 3; i++) {
        sum(t, comm);
        TEST_OK(t, NULL, rondo_group_start());
        TEST_OK(t, comm, rondo_send(&in, 1, RONDO_INT32, (t->rank + 1) % t->nranks, comm, NULL));
        TEST_OK(t, comm, rondo_recv(&out, 1, RONDO_INT32, (t->rank + t->nranks - 1) % t->nranks, comm, NULL));
        TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_comm_suspend(comm));
        TEST_OK(t, NULL, rondo_group_submit(&request));
        TEST_OK(t, comm, rondo_comm_suspend(comm));
        TEST_TRUE(t, out == (t->rank + t->nranks - 1) % t->nranks);
        refused(t, comm);
        TEST_OK(t, comm, rondo_comm_memory_now(comm, &now));
        TEST_TRUE(t, memcmp(&now, &had, sizeof now) == 0 && now.suspend == 0 && now.suspended == 0);
        TEST_OK(t, NULL, rondo_request_test(&request, &done));
        TEST_TRUE(t, done);
        TEST_OK(t, comm, rondo_comm_resume(comm));
    }
    sum(t, comm);
    TEST_OK(t, comm, rondo_comm_split(comm, 0, t->rank, &part, NULL));
    TEST_OK(t, comm, rondo_comm_suspend(comm));
    sum(t, part); /* it is not concerned */
    TEST_OK(t, NULL, rondo_comm_destroy(part));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

static void aborted(test_rank_t *t, void *arg)
{
    for (int resumes = 0; resumes < 2; resumes++) {
        rondo_comm_t comm = test_comm_on(t, *(const int *)arg);
        if (!comm)
            return;
        if (resumes)
            TEST_OK(t, comm, rondo_comm_suspend(comm));
        test_barrier(t);
        if (t->rank == 0) {
            TEST_OK(t, NULL, rondo_comm_abort(comm));
        } else {
            TEST_GIVES(t, comm, RONDO_ERR_REMOTE, resumes ? rondo_comm_resume(comm) : rondo_comm_suspend(comm));
            test_sentence(t, "rank 0");
            TEST_OK(t, NULL, rondo_comm_destroy(comm));
        }
        test_barrier(t);
    }
}

static void late(test_rank_t *t, void *arg)
{
    (void)arg;
    setenv("RONDO_CREATE_TIMEOUT_MS", "4000", 1);
    rondo_comm_t comm = test_comm_on(t, 1);
    if (t->rank == 0)
        TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT, rondo_comm_suspend(comm));
    test_barrier(t);
    TEST_OK(t, NULL, rondo_comm_abort(comm));
}

static void killed(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm_on(t, 1), less = NULL;
    rondo_config_t config = test_host_config();
    const int resumes = *(const int *)arg, gone = t->nranks - 1;

    if (resumes)
        TEST_OK(t, comm, rondo_comm_suspend(comm));
    test_barrier(t);
    if (t->rank == gone)
        raise(SIGKILL);
    TEST_GIVES(t, comm, RONDO_ERR_REMOTE, resumes ? rondo_comm_resume(comm) : rondo_comm_suspend(comm));
    if (TEST_OK(t, comm, rondo_comm_shrink(comm, &gone, 1, &less, &config)))
        TEST_OK(t, NULL, rondo_comm_destroy(less));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

int main(void)
{
    int nodes[] = {1, 2}, bad = 0;

    test_begin("core/suspend", 120);
    for (int i = 0; i < 2; i++) {
        bad += test_run(TEST_PROCESSES, 3, 60, rests, &nodes[i]);
        bad += test_run(TEST_PROCESSES, 3, 60, aborted, &nodes[i]);
    }
    bad += test_run(TEST_THREADS, 3, 60, rests, &nodes[0]);
    bad += test_run(TEST_PROCESSES, 2, 60, late, NULL);
    for (int resumes = 0; resumes < 2; resumes++) {
        test_director_t director = {.victims = 1u << 2};
        bad += test_run_directed(&director, 3, 60, killed, &resumes);
    }
    return bad != 0;
}
