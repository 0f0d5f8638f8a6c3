/* RONDO_CHECK=1: ranks that call communicators in different orders wait for each other for ever. Every rank that waits
 * gets RONDO_ERR_MISMATCH, with a sentence that names the calls of the circle and their communicators; ranks that are
 * only late, and threads that use a communicator each, notice nothing.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"

typedef enum { COLLECTIVES, MESSAGES, GROUPS, REQUESTS, SPLITS, NUM_KINDS } kind_t;

static const char *const kinds[NUM_KINDS] = {"allreduce", "recv", "barrier", "barrier", "comm_split"};

typedef struct {
    kind_t kind;
    int odd; /* this rank calls B first; -1: all call alike, but one comes late */
} plan_t;

static rondo_comm_t named(test_rank_t *t, const char *name)
{
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.device = RONDO_DEVICE_HOST;
    config.name = name;
    return test_comm(t, &config);
}

static rondo_result_t call(test_rank_t *t, const plan_t *p, rondo_comm_t comm)
{
    int value = 1, sum = 0, odd = p->odd < 0 ? 1 : p->odd;
    rondo_request_t request;
    rondo_comm_t made;
    rondo_result_t result;

    if (p->kind == COLLECTIVES)
        return rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
    if (p->kind == MESSAGES) /* the odd rank and rank 0 receive from each other; with all alike they send as well */
        return p->odd < 0       ? rondo_barrier(comm, NULL)
               : t->rank == odd ? rondo_recv(&sum, 1, RONDO_INT32, 0, comm, NULL)
                                : rondo_recv(&sum, 1, RONDO_INT32, odd, comm, NULL);
    if (p->kind == SPLITS) {
        result = rondo_comm_split(comm, 0, 0, &made, NULL);
        return result == RONDO_SUCCESS ? rondo_comm_destroy(made) : result;
    }
    rondo_group_start();
    rondo_barrier(comm, NULL);
    if (p->kind == GROUPS)
        return rondo_group_end();
    result = rondo_group_submit(&request);
    return result == RONDO_SUCCESS ? rondo_request_wait(&request) : result;
}

static void two_orders(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    rondo_comm_t a = named(t, "first"), b = named(t, "second");
    rondo_result_t result, want = p->odd < 0 ? RONDO_SUCCESS : RONDO_ERR_MISMATCH;
    int value = 1, sum = 0;

    for (int i = 0; i < 3; i++) {
        TEST_OK(t, a, rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, a, NULL));
        TEST_OK(t, b, rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, b, NULL));
    }
    test_note(t, "%s, rank %d differs", kinds[p->kind], p->odd);
    if (p->odd < 0 && t->rank == 1)
        usleep(1500000);
    rondo_comm_t one = t->rank == p->odd ? b : a;
    result = call(t, p, one);
    if (test_result(t, one, result, want, "the first call") && want == RONDO_ERR_MISMATCH) {
        const char *said = rondo_last_error(one);
        char odd[32];
        snprintf(odd, sizeof odd, "rank %d of second", p->odd);
        if (!strstr(said, "different orders") || !strstr(said, kinds[p->kind]) || !strstr(said, odd) ||
            !strstr(said, " of first"))
            test_fail(t, "the sentence must name both calls: \"%s\"", said);
    }
    if (want == RONDO_SUCCESS)
        TEST_OK(t, b, call(t, p, b));
    rondo_comm_destroy(a);
    rondo_comm_destroy(b);
}

/* Rank r calls first the communicator that it shares with rank r + 1, then that with rank r - 1. */
static void round_table(test_rank_t *t, void *arg)
{
    rondo_comm_t all = named(t, "all"), pair[2] = {NULL, NULL};
    int n = t->nranks;

    (void)arg;
    for (int r = 0; r < n; r++) { /* the pair of r and r + 1 */
        rondo_config_t config = RONDO_CONFIG_INIT;
        rondo_comm_t made;
        char name[32];
        snprintf(name, sizeof name, "pair%d", r);
        config.name = name;
        TEST_OK(t, all, rondo_comm_split(all, t->rank == r || t->rank == (r + 1) % n ? 0 : -1, 0, &made, &config));
        if (made)
            pair[t->rank != r] = made;
    }
    test_note(t, "a circle of %d communicators", n);
    TEST_GIVES(t, pair[0], RONDO_ERR_MISMATCH, rondo_barrier(pair[0], NULL));
    const char *said = rondo_last_error(pair[0]);
    for (int r = 0; r < n; r++) {
        char name[32];
        snprintf(name, sizeof name, "of pair%d", r);
        if (!strstr(said, name))
            test_fail(t, "the sentence must name pair%d: \"%s\"", r, said);
    }
    rondo_comm_destroy(pair[0]);
    rondo_comm_destroy(pair[1]);
    rondo_comm_destroy(all);
}

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    int late;
} user_t;

static void *use(void *arg)
{
    user_t *u = arg;

    usleep((useconds_t)u->late);
    TEST_OK(u->t, u->comm, rondo_barrier(u->comm, NULL));
    return NULL;
}

/* Rank 0's first thread waits in A and its second one comes late to B, which the first has called before; rank 1 calls
 * B, then A. */
static void by_design(test_rank_t *t, void *arg)
{
    rondo_comm_t a = named(t, "first"), b = named(t, "second");
    user_t warm = {t, b, 0}, second = {t, b, 1000000}; /* one thread would be told in 0.6 s, several are in 3 s */
    pthread_t thread;

    (void)arg;
    test_note(t, "two threads");
    if (t->rank == 0) {
        if (pthread_create(&thread, NULL, use, &warm) != 0)
            test_stop(t, "no thread");
        pthread_join(thread, NULL);
        TEST_OK(t, b, rondo_barrier(b, NULL));
        if (pthread_create(&thread, NULL, use, &second) != 0)
            test_stop(t, "no thread");
        TEST_OK(t, a, rondo_barrier(a, NULL));
        pthread_join(thread, NULL);
    } else {
        for (int i = 0; i < 3; i++)
            TEST_OK(t, b, rondo_barrier(b, NULL));
        TEST_OK(t, a, rondo_barrier(a, NULL));
    }
    TEST_OK(t, a, rondo_comm_destroy(a));
    TEST_OK(t, b, rondo_comm_destroy(b));
}

/* Rank 1 waits in B and has submitted its part of A, for which rank 0 waits: no mistake. */
static void outstanding(test_rank_t *t, void *arg)
{
    static int32_t in[2][300000], out[2][300000];
    rondo_comm_t a = named(t, "first"), b = named(t, "second");
    rondo_request_t request;

    (void)arg;
    test_note(t, "outstanding");
    TEST_OK(t, a, rondo_group_start());
    TEST_OK(t, a, rondo_allreduce(in[t->rank], out[t->rank], 300000, RONDO_INT32, RONDO_SUM, a, NULL));
    if (t->rank == 0)
        usleep(1500000);
    TEST_OK(t, a, rondo_group_submit(&request));
    if (t->rank == 1)
        TEST_OK(t, b, rondo_barrier(b, NULL));
    TEST_OK(t, a, rondo_request_wait(&request));
    if (t->rank == 0)
        TEST_OK(t, b, rondo_barrier(b, NULL));
    TEST_OK(t, a, rondo_comm_destroy(a));
    TEST_OK(t, b, rondo_comm_destroy(b));
}

static int all_of_a_kind(int kind)
{
    plan_t p = {.kind = (kind_t)kind};
    int bad = 0;

    for (int nranks = 2; nranks <= 4 && !bad; nranks++)
        for (p.odd = -1; p.odd < 2 && !bad; p.odd += 2) {
            if (p.odd < 0 && p.kind == SPLITS)
                continue;
            bad += test_run(kind + 2 == nranks ? TEST_THREADS : TEST_PROCESSES, nranks, 30, two_orders, &p);
        }
    return bad;
}

int main(void)
{
    int bad = 0;

    test_begin("opposite_orders", 300);
    setenv("RONDO_CHECK", "1", 1);
    bad += test_at_once(NUM_KINDS, all_of_a_kind);
    for (int nranks = 3; nranks <= 5 && !bad; nranks++)
        bad += test_run(nranks == 4 ? TEST_THREADS : TEST_PROCESSES, nranks, 30, round_table, NULL);
    bad += test_run(TEST_PROCESSES, 2, 30, by_design, NULL);
    bad += test_run(TEST_PROCESSES, 2, 30, outstanding, NULL);
    return bad != 0;
}
