/* A call that waits for sockets, such as a split, against another one, without RONDO_CHECK: every rank gets
 * RONDO_ERR_MISMATCH and a sentence that names both calls.
 *
 *   waits    the other call waits for memory or the network. On one node a rank that waits in it finds that; between
 *            nodes it has to ask, and the rank in the split to answer, also where it has a window to serve
 *   sockets  the other call waits for sockets, too: what they bring says what it is for */
#include <stdio.h>
#include <string.h>
#include <stdlib.h>

#include "util/harness.h"

typedef enum { SPLIT, SUSPEND, WINDOW, WINDOW_END, GROW, NUM_CALLS } call_t;

#define NUM_WAITS (WINDOW + 1)

static const char *const names[NUM_CALLS] = {"comm_split", "comm_suspend", "window", "window", "comm_grow"};

typedef struct plan {
    int nodes, odd; /* odd: the rank that calls this: */
    call_t call;
    bool broadcast; /* the others: else an allreduce */
    bool serves;    /* all have a window */
    call_t others;  /* in `sockets`, what they call */
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

static rondo_result_t by_sockets(call_t call, const rondo_unique_id_t *id, rondo_window_t window, rondo_comm_t comm)
{
    rondo_window_t other;
    rondo_comm_t made;
    int nranks = 0;

    switch (call) {
    case SPLIT:
        return rondo_comm_split(comm, 0, 0, &made, NULL);
    case SUSPEND:
        return rondo_comm_suspend(comm);
    case WINDOW:
        return rondo_window_create(comm, NULL, 4096, &other, 0);
    case WINDOW_END:
        return rondo_window_destroy(comm, window);
    default:
        rondo_comm_size(comm, &nranks);
        return rondo_comm_grow(comm, nranks + 1, id, -1, &made, NULL);
    }
}

static void sockets(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    const call_t calls[] = {p->call, p->others};
    rondo_comm_t comm = test_comm_on(t, p->nodes);
    rondo_window_t window;
    rondo_unique_id_t id;

    if (!comm || !TEST_OK(t, comm, rondo_window_create(comm, NULL, 4096, &window, 0)))
        return;
    test_id(t, &id);
    test_barrier(t); /* the failure may overtake the end of a call on a rank that is late */
    test_note(t, "rank %d of %d on %d nodes: %s, the others: %s", p->odd, t->nranks, p->nodes, names[p->call],
              names[p->others]);
    test_result(t, comm, by_sockets(calls[t->rank != p->odd], &id, window, comm), RONDO_ERR_MISMATCH, test_noted(t));
    for (int i = 0; i < 2; i++)
        if (!strstr(rondo_last_error(comm), names[calls[i]]))
            test_fail(t, "the sentence must have \"%s\": \"%s\"", names[calls[i]], rondo_last_error(comm));
    test_barrier(t);
    rondo_comm_destroy(comm);
}

/* Each call against each other one. */
static int all_by_sockets(int nodes)
{
    int bad = 0;

    for (int k = 0; k < NUM_CALLS * NUM_CALLS; k++) {
        plan_t p = {.nodes = nodes, .odd = k % 3, .call = (call_t)(k / NUM_CALLS), .others = (call_t)(k % NUM_CALLS)};
        if (p.call != p.others)
            bad += test_run(TEST_PROCESSES, 3, 60, sockets, &p);
    }
    return bad;
}

int main(void)
{
    int bad = 0;

    test_begin("differ_split", 300);
    setenv("RONDO_CREATE_TIMEOUT_MS", "120000", 1);
    for (int nodes = 1; nodes <= (test_has_network() ? 2 : 1); nodes++) {
        for (int n = 2; n <= 4; n++)
            for (int k = 0; k < 2 * NUM_WAITS; k++) {
                plan_t p = {nodes, k % n, (call_t)(k / 2), k % 2, n == 3, SPLIT};
                bad += test_run(TEST_PROCESSES, n, 60, body, &p);
            }
        bad += all_by_sockets(nodes);
    }
    return bad != 0;
}
