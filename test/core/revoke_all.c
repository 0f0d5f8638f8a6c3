/* RONDO_ON_ERROR_REVOKE_ALL: when a call finds that its communicator has failed, every other one of the process fails,
 * too, with a sentence that says why, on all ranks: for a call that another thread is in, for one that is made later,
 * and in a group that uses both. What is made afterwards is not concerned, and by default only what failed has failed.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

#define RANKS 3

typedef enum { CONFIG, ENVIRONMENT, CALL, NOT, NUM_HOWS } how_t;

typedef struct {
    rondo_comm_t comm;
    rondo_result_t result;
} waiter_t;

static rondo_result_t add_up(rondo_comm_t comm)
{
    int one = 1, sum;

    return rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
}

static void *wait_there(void *arg)
{
    waiter_t *w = arg;

    w->result = add_up(w->comm);
    return NULL;
}

static rondo_comm_t named(test_rank_t *t, const char *name, int on_error)
{
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.name = name;
    config.on_error = on_error;
    return test_comm(t, &config);
}

/* All survive, so the revoked one serves for another. */
static void recover(test_rank_t *t, rondo_comm_t failed, rondo_comm_t idle)
{
    rondo_comm_t again = NULL;

    TEST_OK(t, idle, rondo_comm_shrink(idle, NULL, RONDO_SURVIVORS, &again, NULL));
    if (t->rank != RANKS - 1)
        TEST_GIVES(t, failed, RONDO_ERR_REMOTE, add_up(failed)); /* this says it again */
    TEST_OK(t, again, add_up(again));
    test_barrier(t);
    rondo_comm_destroy(again);
}

/* The last rank revokes the first one alone. In the second one others wait for it, and the third one nobody uses. */
static void body(test_rank_t *t, void *arg)
{
    how_t how = *(how_t *)arg;
    int last = t->rank == RANKS - 1;
    rondo_comm_t failed = named(t, "failed", how == CONFIG ? RONDO_ON_ERROR_REVOKE_ALL : -1);
    rondo_comm_t used = named(t, "used", RONDO_ON_ERROR_RETURN), idle = named(t, "idle", RONDO_ON_ERROR_RETURN);
    waiter_t waiter = {.comm = used};
    pthread_t thread;

    test_note(t, "how %d", (int)how);
    if (how == CALL)
        TEST_OK(t, failed, rondo_on_error(failed, RONDO_ON_ERROR_REVOKE_ALL));
    if (!last)
        pthread_create(&thread, NULL, wait_there, &waiter);
    test_barrier(t);
    if (last)
        TEST_OK(t, failed, rondo_comm_revoke(failed));
    test_barrier(t);
    if (!last) {
        TEST_GIVES(t, failed, RONDO_ERR_REMOTE, add_up(failed));
        if (how == NOT) {
            test_barrier(t);
            TEST_OK(t, idle, add_up(idle));
        }
        pthread_join(thread, NULL);
    } else if (how == NOT) {
        test_barrier(t);
        TEST_OK(t, idle, add_up(idle));
        TEST_OK(t, used, add_up(used));
    }
    test_barrier(t);
    if (how == NOT) {
        TEST_TRUE(t, last || waiter.result == RONDO_SUCCESS);
    } else {
        rondo_result_t result = add_up(idle);
        const char *said = rondo_last_error(idle);
        TEST_TRUE(t, last || waiter.result == RONDO_ERR_ABORTED || waiter.result == RONDO_ERR_REMOTE);
        const char *why = "has revoked all its communicators, because failed has failed: rank 2 (";
        if (result == RONDO_ERR_ABORTED ? last || !strstr(said, why) : result != RONDO_ERR_REMOTE)
            test_fail(t, "%s: %s", rondo_result_string(result), said);
        test_barrier(t);
        recover(t, failed, idle);
    }
    test_barrier(t);
    rondo_comm_destroy(failed);
    rondo_comm_destroy(used);
    rondo_comm_destroy(idle);
}

/* A group that uses two: the failure of one ends both, and the thread does not wait for itself. What the others gave to
 * the group's call before they heard of the failure may serve the last rank's first one; its second one nobody joins.
 */
static void grouped(test_rank_t *t, void *arg)
{
    rondo_comm_t failed = named(t, "failed", RONDO_ON_ERROR_REVOKE_ALL), other = named(t, "other", -1);

    (void)arg;
    test_note(t, "in a group");
    test_barrier(t);
    if (t->rank == RANKS - 1) {
        TEST_OK(t, failed, rondo_comm_revoke(failed));
    } else {
        int one = 1, sum[2];
        TEST_OK(t, failed, rondo_group_start());
        rondo_result_t result = rondo_allreduce(&one, &sum[0], 1, RONDO_INT32, RONDO_SUM, other, NULL);
        if (result == RONDO_SUCCESS)
            (void)rondo_allreduce(&one, &sum[1], 1, RONDO_INT32, RONDO_SUM, failed, NULL);
        TEST_TRUE(t, rondo_group_end() != RONDO_SUCCESS);
    }
    test_barrier(t);
    if (t->rank == RANKS - 1)
        (void)add_up(other);
    TEST_TRUE(t, add_up(other) != RONDO_SUCCESS);
    test_barrier(t);
    rondo_comm_destroy(failed);
    rondo_comm_destroy(other);
}

int main(void)
{
    int bad = 0;

    test_begin("revoke_all", 90);
    for (how_t how = CONFIG; how < NUM_HOWS; how++) {
        setenv("RONDO_ON_ERROR", how == ENVIRONMENT ? "revoke" : "return", 1);
        bad |= test_run(TEST_PROCESSES, RANKS, 30, body, &how) != 0;
    }
    bad |= test_run(TEST_PROCESSES, RANKS, 30, grouped, NULL) != 0;
    return bad;
}
