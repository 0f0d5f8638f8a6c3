/* Progress across communicators (issue: a wait in one communicator while another one has something outstanding).
 *
 * Rank 0 waits for its part of a group on communicator A and calls nothing else until it is over. The other ranks have
 * submitted their parts, which are not over either, and wait elsewhere for rank 0, in one of the ways of `ways`. MPI
 * allows that, so it must end: whoever waits makes progress for A as well. With several ranks each of them waits in
 * another communicator. An error of A stays with A, and one of B with B. Threads that use a communicator each at the
 * same time do not disturb each other.
 *
 *   progress_across [--nodes N [--short]]   on one node and on two, or on N; --short: three ranks and one length
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

#define MOST (1 << 20) /* elements */

typedef enum { ALLREDUCE, GROUP, REQUEST, MESSAGE, TEST, SPLIT_B, SPLIT_A, CREATE, FINALIZE, NUM_WAYS } way_t;

static const char *const ways[NUM_WAYS] = {"allreduce", "group",      "request", "message", "test",
                                           "split",     "split of A", "create",  "finalize"};

typedef struct {
    int nodes;
    way_t way;
    size_t count;
    int messages; /* the group on A: messages in a ring, not an allreduce */
} plan_t;

static void submit(test_rank_t *t, rondo_comm_t a, const plan_t *p, int32_t *in, int32_t *out, rondo_request_t *request)
{
    int to = (t->rank + 1) % t->nranks, from = (t->rank + t->nranks - 1) % t->nranks;

    for (size_t i = 0; i < p->count; i++)
        in[i] = t->rank + (int32_t)(i % 1000);
    memset(out, 0, p->count * sizeof *out);
    TEST_OK(t, a, rondo_group_start());
    if (p->messages) {
        TEST_OK(t, a, rondo_send(in, p->count, RONDO_INT32, to, a, NULL));
        TEST_OK(t, a, rondo_recv(out, p->count, RONDO_INT32, from, a, NULL));
    } else {
        TEST_OK(t, a, rondo_allreduce(in, out, p->count, RONDO_INT32, RONDO_SUM, a, NULL));
    }
    TEST_OK(t, a, rondo_group_submit(request));
}

static void check_data(test_rank_t *t, const plan_t *p, const int32_t *out)
{
    int32_t base = p->messages ? (t->rank + t->nranks - 1) % t->nranks : t->nranks * (t->nranks - 1) / 2;
    int32_t times = p->messages ? 1 : t->nranks;

    for (size_t i = 0; i < p->count; i++)
        if (out[i] != base + times * (int32_t)(i % 1000)) {
            test_fail(t, "element %zu is %d, not %d", i, out[i], base + times * (int32_t)(i % 1000));
            return;
        }
}

/* A group on B, which is over when rank 0 has called the same. */
static void ask_until_done(test_rank_t *t, rondo_comm_t b)
{
    rondo_request_t request;
    int done = 0, value = 1, sum = 0;

    TEST_OK(t, b, rondo_group_start());
    TEST_OK(t, b, rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, b, NULL));
    TEST_OK(t, b, rondo_group_submit(&request));
    while (!done)
        if (!TEST_OK(t, b, rondo_request_test(&request, &done)))
            return;
    TEST_TRUE(t, sum == t->nranks);
}

static void wait_for_request(test_rank_t *t, rondo_comm_t b)
{
    rondo_request_t request;
    int value = 1, sum = 0;

    TEST_OK(t, b, rondo_group_start());
    TEST_OK(t, b, rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, b, NULL));
    TEST_OK(t, b, rondo_group_submit(&request));
    TEST_OK(t, b, rondo_request_wait(&request));
    TEST_TRUE(t, sum == t->nranks);
}

static void split(test_rank_t *t, rondo_comm_t comm)
{
    rondo_comm_t made;

    if (TEST_OK(t, comm, rondo_comm_split(comm, 0, t->rank, &made, NULL)))
        TEST_OK(t, made, rondo_comm_destroy(made));
}

/* What cannot be over before rank 0 has come. */
static void elsewhere(test_rank_t *t, const plan_t *p, rondo_comm_t a, rondo_comm_t b, const rondo_unique_id_t *id)
{
    rondo_comm_t made;
    int value = 1, sum = 0;

    switch (p->way) {
    case GROUP:
        TEST_OK(t, b, rondo_group_start());
        TEST_OK(t, b, rondo_barrier(b, NULL));
        TEST_OK(t, b, rondo_group_end());
        break;
    case REQUEST:
        wait_for_request(t, b);
        break;
    case MESSAGE: /* from rank 0 to all */
        if (t->rank != 0)
            TEST_OK(t, b, rondo_recv(&sum, 1, RONDO_INT32, 0, b, NULL));
        for (int r = 1; r < t->nranks && t->rank == 0; r++)
            TEST_OK(t, b, rondo_send(&value, 1, RONDO_INT32, r, b, NULL));
        break;
    case TEST:
        ask_until_done(t, b);
        break;
    case SPLIT_B:
    case SPLIT_A:
        split(t, p->way == SPLIT_A ? a : b);
        break;
    case CREATE:
        if (TEST_OK(t, NULL, rondo_comm_create(&made, t->nranks, id, t->rank, NULL)))
            TEST_OK(t, made, rondo_comm_destroy(made));
        break;
    case FINALIZE:
        TEST_OK(t, b, rondo_comm_finalize(b));
        break;
    default:
        TEST_OK(t, b, rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, b, NULL));
        TEST_TRUE(t, sum == t->nranks);
    }
}

/* FINALIZE: B has a request outstanding, which is over when rank 0 has submitted its own. */
static void submit_on(test_rank_t *t, rondo_comm_t b, rondo_request_t *request)
{
    TEST_OK(t, b, rondo_group_start());
    TEST_OK(t, b, rondo_barrier(b, NULL));
    TEST_OK(t, b, rondo_group_submit(request));
}

static void one_way(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    rondo_comm_t a = test_comm_on(t, p->nodes), b = a ? test_comm_on(t, p->nodes) : NULL;
    int32_t *in = malloc(MOST * sizeof *in), *out = malloc(MOST * sizeof *out);
    rondo_request_t request, other = NULL;
    rondo_unique_id_t id;

    if (!a)
        return; /* no network is built in */
    if (!in || !out)
        test_stop(t, "no memory");
    test_id(t, &id);
    for (int round = 0; round < 3; round++) {
        test_note(t, "%s, %zu elements, round %d", ways[p->way], p->count, round);
        submit(t, a, p, in, out, &request);
        if (p->way == FINALIZE && t->rank != 0)
            submit_on(t, b, &other);
        if (t->rank != 0) {
            elsewhere(t, p, a, b, &id);
            TEST_OK(t, a, rondo_request_wait(&request));
        } else {
            TEST_OK(t, a, rondo_request_wait(&request));
            if (p->way == FINALIZE)
                submit_on(t, b, &other);
            elsewhere(t, p, a, b, &id);
        }
        TEST_OK(t, b, rondo_request_wait(&other));
        check_data(t, p, out);
        if (p->way == CREATE) /* an id serves one communicator */
            break;
    }
    TEST_OK(t, b, rondo_comm_destroy(b));
    TEST_OK(t, a, rondo_comm_destroy(a));
    free(in);
    free(out);
}

/* Rank r waits in communicator r for a value of rank r - 1, who gives it when its own wait is over, while a large
 * operation on A is outstanding everywhere: rank 0 alone waits for that, and everything else hangs on rank 0. */
static void chain(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    rondo_comm_t a = test_comm_on(t, p->nodes), links[4];
    int32_t *in = malloc(MOST * sizeof *in), *out = malloc(MOST * sizeof *out), value = 1;
    rondo_request_t request;

    if (!a)
        return;
    for (int r = 1; r < t->nranks; r++)
        links[r] = test_comm_on(t, p->nodes);
    submit(t, a, p, in, out, &request);
    test_note(t, "a chain of communicators");
    if (t->rank == 0)
        TEST_OK(t, a, rondo_request_wait(&request));
    else
        TEST_OK(t, links[t->rank], rondo_recv(&value, 1, RONDO_INT32, t->rank - 1, links[t->rank], NULL));
    if (t->rank + 1 < t->nranks)
        TEST_OK(t, links[t->rank + 1], rondo_send(&value, 1, RONDO_INT32, t->rank + 1, links[t->rank + 1], NULL));
    TEST_OK(t, a, rondo_request_wait(&request));
    check_data(t, p, out);
    for (int r = 1; r < t->nranks; r++)
        TEST_OK(t, links[r], rondo_comm_destroy(links[r]));
    TEST_OK(t, a, rondo_comm_destroy(a));
    free(in);
    free(out);
}

/* Rank 0 revokes A, of which rank 1 has a part outstanding while it waits in B: B's call succeeds, and leaves no error
 * behind; A's request has A's. */
static void errors_stay(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    rondo_comm_t a = test_comm_on(t, p->nodes), b = a ? test_comm_on(t, p->nodes) : NULL;
    int32_t *in = malloc(MOST * sizeof *in), *out = malloc(MOST * sizeof *out);
    rondo_request_t request;
    int value = 1, sum = 0;

    if (!a)
        return;
    test_note(t, "A is revoked");
    if (t->rank != 0)
        submit(t, a, p, in, out, &request);
    test_barrier(t);
    if (t->rank == 0)
        TEST_OK(t, a, rondo_comm_revoke(a));
    TEST_OK(t, b, rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, b, NULL));
    TEST_TRUE(t, sum == t->nranks && !strcmp(rondo_last_error(b), ""));
    if (t->rank != 0) {
        TEST_GIVES(t, a, RONDO_ERR_REMOTE, rondo_request_wait(&request));
        TEST_TRUE(t, strstr(rondo_last_error(a), "rank 0"));
    }
    TEST_OK(t, b, rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, b, NULL));
    rondo_comm_destroy(a);
    TEST_OK(t, b, rondo_comm_destroy(b));
    free(in);
    free(out);
}

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    const plan_t *p;
    int32_t *in, *out;
    int rounds;
} user_t;

/* Requests and blocking calls in turns. */
static void *use(void *arg)
{
    user_t *u = arg;

    for (int i = 0; i < u->rounds; i++) {
        rondo_request_t request;
        int value = 1, sum = 0, done = 0;
        submit(u->t, u->comm, u->p, u->in, u->out, &request);
        if (i % 3 == 0)
            TEST_OK(u->t, u->comm, rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, u->comm, NULL));
        while (i % 3 == 1 && !done)
            TEST_OK(u->t, u->comm, rondo_request_test(&request, &done));
        TEST_OK(u->t, u->comm, rondo_request_wait(&request));
        check_data(u->t, u->p, u->out);
    }
    return NULL;
}

/* Two threads in two communicators, and a third one whose request nobody asks for meanwhile. */
static void threads(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    int32_t *memory = malloc(6 * MOST * sizeof *memory);
    pthread_t thread[2];
    rondo_request_t request;
    rondo_comm_t comm[3];
    user_t user[2];

    for (int i = 0; i < 3; i++)
        if (!(comm[i] = test_comm_on(t, p->nodes)))
            return;
    test_note(t, "threads");
    submit(t, comm[2], p, memory + 4 * MOST, memory + 5 * MOST, &request);
    for (int i = 0; i < 2; i++) {
        user[i] = (user_t){t, comm[i], p, memory + 2 * i * MOST, memory + (2 * i + 1) * MOST, 60};
        if (pthread_create(&thread[i], NULL, use, &user[i]) != 0)
            test_stop(t, "no thread");
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    TEST_OK(t, comm[2], rondo_request_wait(&request));
    check_data(t, p, memory + 5 * MOST);
    for (int i = 0; i < 3; i++)
        TEST_OK(t, comm[i], rondo_comm_destroy(comm[i]));
    free(memory);
}

static int run(const char *name, test_body_fn body, test_kind_t kind, int nranks, plan_t *p)
{
    int bad = test_run(kind, nranks, 60, body, p);

    if (bad)
        fprintf(stderr, "%s, %d ranks on %d nodes, %zu elements, %s\n", name, nranks, p->nodes, p->count,
                p->messages ? "messages" : "allreduce");
    return bad;
}

/* progress_across [--nodes N]: on so many nodes only. */
int main(int argc, char **argv)
{
    static const size_t counts[] = {2, 100000, MOST};
    int only = argc >= 3 && !strcmp(argv[1], "--nodes") ? atoi(argv[2]) : 0, bad = 0;
    const bool brief = argc == 4 && !strcmp(argv[3], "--short");

    test_begin("progress_across", 600);
    for (int nodes = only ? only : 1; nodes <= (only ? only : 2); nodes++)
        for (int nranks = brief ? 3 : 2; nranks <= 3 && !bad; nranks++)
            for (int c = brief; c < (brief ? 2 : 3); c++) {
                plan_t p = {.nodes = nodes, .count = counts[c]};
                test_kind_t kind = nodes == 1 && (nranks + c) % 2 ? TEST_THREADS : TEST_PROCESSES;
                for (p.way = 0; p.way < NUM_WAYS; p.way++) {
                    p.messages = ((int)p.way + c) % 2;
                    bad += run(ways[p.way], one_way, kind, nranks, &p);
                }
                bad += run("chain", chain, kind, nranks, &p);
                bad += run("errors", errors_stay, kind, nranks, &p);
                p.count = counts[c] / 4 + 1;
                bad += run("threads", threads, kind, nranks, &p);
            }
    return bad != 0;
}
