/* rondo_timeout_set: what a communicator that waits for ever does from then on ends when its limit has passed, and what
 * had a limit waits for a rank that comes later than that. On one node and on two, blocking and by a request. A limit
 * may be as long as a number can say. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"

#define SHORT_MS 150

typedef struct {
    int nodes, by_request;
} how_t;

static rondo_result_t add_up(rondo_comm_t comm, int by_request, int *sum)
{
    int one = 1;
    rondo_request_t request = NULL;

    if (!by_request)
        return rondo_allreduce(&one, sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
    (void)rondo_group_start();
    rondo_result_t result = rondo_allreduce(&one, sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
    result = result ? result : rondo_group_submit(&request);
    return result ? result : rondo_request_wait(&request);
}

/* The last rank comes three limits late, when there is none; and not at all, when there is one again. */
static void body(test_rank_t *t, void *arg)
{
    const how_t *how = arg;
    rondo_comm_t comm = test_comm_on(t, how->nodes);
    int sum = 0, last = t->rank == t->nranks - 1;

    if (!comm)
        return;
    TEST_OK(t, comm, rondo_timeout_set(comm, SHORT_MS));
    TEST_OK(t, comm, rondo_timeout_set(comm, 0));
    test_note(t, "without a limit, %d nodes, request %d", how->nodes, how->by_request);
    test_barrier(t);
    if (last)
        usleep(3 * SHORT_MS * 1000);
    TEST_OK(t, comm, add_up(comm, how->by_request, &sum));
    TEST_TRUE(t, sum == t->nranks);
    TEST_OK(t, comm, rondo_timeout_set(comm, SHORT_MS));
    test_note(t, "with one, %d nodes, request %d", how->nodes, how->by_request);
    test_barrier(t);
    if (!last && TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT, add_up(comm, how->by_request, &sum)))
        TEST_TRUE(t, strstr(rondo_last_error(comm), "longer than 150 ms") != NULL);
    test_barrier(t);
    rondo_comm_abort(comm);
}

/* The longest limits that there are, of a config and as set later: whoever comes first to an exchange waits. */
static void longest(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm, part;
    rondo_window_t window;
    rondo_unique_id_t id;

    (void)arg;
    config.timeout_ms = config.first_timeout_ms = config.stall_ms = INT64_MAX;
    test_id(t, &id);
    if (!TEST_OK(t, NULL, rondo_comm_create(&comm, t->nranks, &id, t->rank, &config)))
        return;
    for (int i = 0; i < 2; i++) {
        test_note(t, i ? "as long as there is, set" : "as long as there is, by the config");
        if (TEST_OK(t, comm, rondo_window_create(comm, NULL, 64, &window, 0)))
            TEST_OK(t, comm, rondo_window_destroy(comm, window));
        if (TEST_OK(t, comm, rondo_comm_split(comm, 0, 0, &part, NULL)))
            TEST_OK(t, part, rondo_comm_destroy(part));
        TEST_OK(t, comm, rondo_barrier(comm, NULL));
        TEST_OK(t, comm, rondo_timeout_set(comm, INT64_MAX));
    }
    rondo_comm_destroy(comm);
}

int main(void)
{
    int bad = 0;

    test_begin("timeout_set", 60);
    for (int nodes = 1; nodes <= 2; nodes++)
        for (int by_request = 0; by_request < 2; by_request++) {
            how_t how = {nodes, by_request};
            bad |= test_run(TEST_PROCESSES, 2, 20, body, &how) != 0;
        }
    how_t threads = {1, 0};
    bad |= test_run(TEST_THREADS, 2, 20, body, &threads) != 0;
    bad |= test_run(TEST_PROCESSES, 2, 20, longest, NULL) != 0;
    return bad;
}
