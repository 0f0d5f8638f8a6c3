/* config.blocking = 0: creation, split, shrink and finalize return while other ranks have not even called, and go on
 * behind the caller. rondo_comm_get_error says when they are over; until then other calls are refused, abort ends what
 * is under way, and destroy waits for it. What could not be made has an error and a sentence, and is freed by the user.
 *
 * That a call does not wait is seen by the harness's barrier: rank 0 comes to it only after its call has returned, and
 * the other ranks call only after it.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"

static rondo_config_t behind(const char *name)
{
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.device = RONDO_DEVICE_HOST;
    config.blocking = 0;
    config.name = name;
    return config;
}

/* Asks until it is over. */
static rondo_result_t outcome(test_rank_t *t, rondo_comm_t comm)
{
    rondo_result_t error = RONDO_IN_PROGRESS;

    while (error == RONDO_IN_PROGRESS) {
        if (!TEST_OK(t, NULL, rondo_comm_get_error(comm, &error)))
            test_stop(t, "cannot go on");
        usleep(200);
    }
    return error;
}

static void use(test_rank_t *t, rondo_comm_t comm, int n)
{
    int value = 1, sum = 0;

    TEST_OK(t, comm, rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, sum == n);
}

/* Rank 0 finds the communicator under way. */
static void refused(test_rank_t *t, rondo_comm_t comm)
{
    rondo_result_t error = RONDO_SUCCESS;
    rondo_comm_t other;
    int value = 1, sum = 0;

    TEST_OK(t, NULL, rondo_comm_get_error(comm, &error));
    TEST_TRUE(t, error == RONDO_IN_PROGRESS);
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_USAGE, rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, strstr(rondo_last_error(NULL), "rondo_comm_get_error"));
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_USAGE, rondo_comm_rank(comm, &value));
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_USAGE, rondo_comm_split(comm, 0, 0, &other, NULL));
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_USAGE, rondo_comm_finalize(comm));
}

static rondo_comm_t create(test_rank_t *t)
{
    char name[16] = "behind";
    rondo_config_t config = behind(name);
    rondo_unique_id_t id;
    rondo_comm_t comm;

    test_note(t, "creation");
    test_id(t, &id);
    if (t->rank != 0)
        test_barrier(t);
    TEST_GIVES(t, NULL, RONDO_IN_PROGRESS, rondo_comm_create(&comm, t->nranks, &id, t->rank, &config));
    memset(name, 'x', sizeof name - 1); /* the caller's again */
    memset(&id, 0, sizeof id);
    if (t->rank == 0) {
        refused(t, comm);
        test_barrier(t);
    }
    if (outcome(t, comm) != RONDO_SUCCESS)
        test_stop(t, "not made: %s", rondo_last_error(comm));
    use(t, comm, t->nranks);
    return comm;
}

static void split(test_rank_t *t, rondo_comm_t comm, int color)
{
    rondo_config_t config = behind(NULL);
    rondo_comm_t part;

    test_note(t, "split, color %d", color);
    if (t->rank != 0)
        test_barrier(t);
    /* Without a config it is as blocking as `comm`. */
    TEST_GIVES(t, comm, RONDO_IN_PROGRESS, rondo_comm_split(comm, color, t->rank, &part, t->rank % 2 ? &config : NULL));
    TEST_TRUE(t, (part != NULL) == (color >= 0));
    if (t->rank == 0) {
        refused(t, comm);
        if (part)
            refused(t, part);
        test_barrier(t);
    }
    TEST_TRUE(t, outcome(t, comm) == RONDO_SUCCESS);
    use(t, comm, t->nranks);
    if (!part)
        return;
    TEST_TRUE(t, outcome(t, part) == RONDO_SUCCESS);
    use(t, part, t->nranks - (color == 1));
    TEST_OK(t, part, rondo_comm_destroy(part));
}

/* Rank 0 waits for a message that is sent when its finalize has returned. */
static void finalize(test_rank_t *t, rondo_comm_t comm)
{
    rondo_request_t request;
    int value = 7, got = 0, done;

    test_note(t, "finalize");
    if (t->rank == 0) {
        TEST_OK(t, comm, rondo_group_start());
        TEST_OK(t, comm, rondo_recv(&got, 1, RONDO_INT32, 1, comm, NULL));
        TEST_OK(t, comm, rondo_group_submit(&request));
        TEST_GIVES(t, comm, RONDO_IN_PROGRESS, rondo_comm_finalize(comm));
        refused(t, comm);
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_USAGE, rondo_request_test(&request, &done));
        TEST_GIVES(t, NULL, RONDO_ERR_INVALID_USAGE, rondo_request_wait(&request));
        TEST_TRUE(t, request != NULL);
    }
    test_barrier(t);
    if (t->rank == 1)
        TEST_OK(t, comm, rondo_send(&value, 1, RONDO_INT32, 0, comm, NULL));
    if (t->rank != 0)
        TEST_GIVES(t, comm, RONDO_IN_PROGRESS, rondo_comm_finalize(comm));
    TEST_TRUE(t, outcome(t, comm) == RONDO_SUCCESS);
    if (t->rank == 0) {
        TEST_OK(t, comm, rondo_request_wait(&request));
        TEST_TRUE(t, got == 7);
    }
}

/* The last rank leaves; the others shrink, with a list or without. */
static void shrink(test_rank_t *t, int listed)
{
    rondo_comm_t comm = create(t), smaller;
    int last = t->nranks - 1;

    test_note(t, "shrink %s a list", listed ? "with" : "without");
    test_barrier(t);
    if (t->rank == last) {
        TEST_OK(t, comm, rondo_comm_abort(comm));
        test_barrier(t);
        if (t->nranks > 2)
            test_barrier(t);
        return;
    }
    test_barrier(t);
    while (outcome(t, comm) == RONDO_SUCCESS) /* the news is on its way */
        usleep(200);
    if (t->rank != 0)
        test_barrier(t);
    TEST_GIVES(t, NULL, RONDO_IN_PROGRESS,
               rondo_comm_shrink(comm, &last, listed ? 1 : RONDO_SURVIVORS, &smaller, NULL));
    if (t->rank == 0 && t->nranks > 2) {
        refused(t, smaller);
        test_barrier(t);
    }
    TEST_TRUE(t, outcome(t, smaller) == RONDO_SUCCESS);
    use(t, smaller, t->nranks - 1);
    TEST_TRUE(t, outcome(t, comm) != RONDO_SUCCESS);
    rondo_comm_destroy(comm);
    TEST_OK(t, smaller, rondo_comm_destroy(smaller));
}

/* Others never come: abort ends it, and so does destroy after an error. */
static void abandon(test_rank_t *t, rondo_comm_t comm)
{
    rondo_config_t config = behind(NULL);
    rondo_unique_id_t id;
    rondo_comm_t never = NULL, part;

    test_note(t, "abort while it is being made");
    test_id(t, &id);
    if (t->rank == 0) {
        TEST_GIVES(t, NULL, RONDO_IN_PROGRESS, rondo_comm_create(&never, t->nranks, &id, 0, &config));
        TEST_OK(t, NULL, rondo_comm_abort(never));
    }
    test_barrier(t);
    test_note(t, "an id of two sizes");
    test_id(t, &id);
    TEST_GIVES(t, NULL, RONDO_IN_PROGRESS,
               rondo_comm_create(&never, t->nranks + (t->rank == 1), &id, t->rank, &config));
    const rondo_result_t result = outcome(t, never);
    TEST_TRUE(t,
              result == RONDO_ERR_INVALID_ARGUMENT || (t->rank > 1 && test_came_late(result, rondo_last_error(never))));
    TEST_TRUE(t, strlen(rondo_last_error(never)) > 0);
    TEST_TRUE(t, rondo_barrier(never, NULL) != RONDO_SUCCESS);
    if (t->rank == 0)
        TEST_OK(t, NULL, rondo_comm_destroy(never));
    else
        TEST_OK(t, NULL, rondo_comm_abort(never));
    test_note(t, "a config that is refused");
    config.timeout_ms = -5;
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_create(&never, t->nranks, &id, t->rank, &config));
    test_note(t, "abort while it is split");
    test_barrier(t);
    if (t->rank == 0) {
        TEST_GIVES(t, comm, RONDO_IN_PROGRESS, rondo_comm_split(comm, 0, 0, &part, NULL));
        TEST_OK(t, NULL, rondo_comm_abort(comm));
        TEST_TRUE(t, outcome(t, part) != RONDO_SUCCESS);
        TEST_OK(t, NULL, rondo_comm_destroy(part));
    }
    test_barrier(t);
    if (t->rank != 0) {
        TEST_TRUE(t, outcome(t, comm) == RONDO_ERR_REMOTE);
        rondo_comm_destroy(comm);
    }
}

static void all(test_rank_t *t, void *arg)
{
    if (*(int *)arg == 2)
        setenv("RONDO_HOSTID", t->rank % 2 ? "odd" : "even", 1);
    rondo_comm_t comm = create(t);
    split(t, comm, 0);
    split(t, comm, t->rank == t->nranks - 1 ? -1 : 1);
    finalize(t, comm);
    abandon(t, comm);
    test_barrier(t);
    shrink(t, 1);
    test_barrier(t);
    shrink(t, 0);
}

static int one_process(void)
{
    rondo_config_t config = behind(NULL);
    rondo_comm_t comms[3];
    int bad = rondo_comm_create_all(comms, 3, NULL, &config) != RONDO_IN_PROGRESS, values[3] = {1, 1, 1}, sums[3];

    for (int r = 0; r < 3 && !bad; r++) {
        rondo_result_t error = RONDO_IN_PROGRESS;
        while (error == RONDO_IN_PROGRESS && !bad)
            bad = rondo_comm_get_error(comms[r], &error) != RONDO_SUCCESS;
        bad |= error != RONDO_SUCCESS;
    }
    rondo_group_start();
    for (int r = 0; r < 3 && !bad; r++)
        bad = rondo_allreduce(&values[r], &sums[r], 1, RONDO_INT32, RONDO_SUM, comms[r], NULL) != RONDO_SUCCESS;
    bad |= rondo_group_end() != RONDO_SUCCESS;
    for (int r = 0; r < 3 && !bad; r++)
        bad = sums[r] != 3 || rondo_comm_destroy(comms[r]) != RONDO_SUCCESS;
    if (bad)
        fprintf(stderr, "all ranks in one process: %s\n", rondo_last_error(NULL));
    return bad;
}

int main(void)
{
    int bad = 0;

    test_begin("nonblocking", 240);
    for (int nranks = 2; nranks <= 4; nranks++)
        for (int nodes = 1; nodes <= 2; nodes++)
            bad += test_run(nranks == 3 && nodes == 1 ? TEST_THREADS : TEST_PROCESSES, nranks, 60, all, &nodes);
    bad += one_process();
    return bad != 0;
}
