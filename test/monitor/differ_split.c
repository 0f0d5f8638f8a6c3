/* A call that waits for sockets, such as a split, against another one, without RONDO_CHECK: every rank gets
 * RONDO_ERR_MISMATCH and one sentence, which names both calls. On one node a rank that waits in the other call finds
 * that; between nodes it has to ask, and the rank in the split to answer, also where it has a window to serve. */
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

#include "util/harness.h"

typedef enum { SPLIT, SUSPEND, WINDOW, NUM_CALLS } call_t;

static const char *const names[NUM_CALLS] = {"comm_split", "comm_suspend", "window"};

typedef struct plan {
    int nodes, odd; /* odd: the rank that calls this: */
    call_t call;
    bool broadcast; /* the others: else an allreduce */
    bool serves;    /* all have a window */
} plan_t;

static rondo_result_t call(const plan_t *p, bool odd, int root, rondo_comm_t comm)
{
    int32_t value = 1, sum = 0;
    rondo_window_t window;
    rondo_comm_t made;

    if (!odd && p->broadcast)
        return rondo_broadcast(&value, &sum, 1, RONDO_INT32, root, comm, NULL);
    if (!odd)
        return rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
    if (p->call == SPLIT)
        return rondo_comm_split(comm, 0, 0, &made, NULL);
    if (p->call == SUSPEND)
        return rondo_comm_suspend(comm);
    return rondo_window_create(comm, NULL, 4096, &window, 0);
}

static void body(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    rondo_comm_t comm = test_comm_on(t, p->nodes);
    char both[2][64];

    rondo_window_t window;

    if (!comm)
        return;
    if (p->serves)
        TEST_OK(t, comm, rondo_window_create(comm, NULL, 4096, &window, 0));
    for (int i = 0; i < 3; i++) {
        test_note(t, "equal call %d", i + 1);
        TEST_OK(t, comm, call(p, false, 0, comm));
    }
    test_barrier(t);
    test_note(t, "rank %d of %d on %d nodes: %s", p->odd, t->nranks, p->nodes, names[p->call]);
    /* The odd rank is the root of the broadcast, for which all others wait. */
    test_result(t, comm, call(p, t->rank == p->odd, p->odd, comm), RONDO_ERR_MISMATCH, test_noted(t));
    snprintf(both[0], sizeof both[0], "calls %s number %d", p->broadcast ? "broadcast" : "allreduce", 4 + p->serves);
    snprintf(both[1], sizeof both[1], "calls %s number %d", names[p->call], 4 + p->serves);
    if (!strstr(rondo_last_error(comm), both[0]) || !strstr(rondo_last_error(comm), both[1]))
        test_fail(t, "the sentence must have \"%s\" and \"%s\": \"%s\"", both[0], both[1], rondo_last_error(comm));
    test_barrier(t); /* nobody ends before all have said it */
    rondo_comm_destroy(comm);
}

int main(void)
{
    int bad = 0;

    test_begin("differ_split", 300);
    setenv("RONDO_CREATE_TIMEOUT_MS", "120000", 1);
    for (int nodes = 1; nodes <= (test_has_network() ? 2 : 1); nodes++)
        for (int n = 2; n <= 4; n++)
            for (int k = 0; k < 2 * NUM_CALLS; k++) {
                plan_t p = {nodes, k % n, (call_t)(k / 2), k % 2, n == 3};
                bad += test_run(TEST_PROCESSES, n, 60, body, &p);
            }
    return bad != 0;
}
