/* A split that waits for ranks which wait for this one in another communicator, in a split or a collective. Without
 * RONDO_CHECK every rank gets RONDO_ERR_MISMATCH, on both communicators, with a sentence that names the two, long
 * before RONDO_CREATE_TIMEOUT_MS is over. Where several threads of a rank call, one of them might still come: then the
 * limit ends it, and its sentence has the order. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

typedef struct plan {
    bool split;   /* the others are in a split of the first communicator, too: else in an allreduce */
    bool threads; /* rank 0 has called from two threads */
    int odd;      /* this rank splits the second communicator meanwhile */
} plan_t;

static rondo_comm_t named(test_rank_t *t, const char *name)
{
    rondo_config_t config = test_host_config();

    config.name = name;
    return test_comm(t, &config);
}

static void *other_thread(void *comm)
{
    return (void *)(intptr_t)rondo_barrier(comm, NULL);
}

/* Both communicators are used by the thread that splits; of rank 0, perhaps, by another one before. */
static void use(test_rank_t *t, const plan_t *p, rondo_comm_t comm)
{
    pthread_t thread;
    void *result = NULL;

    if (p->threads && t->rank == 0) {
        TEST_TRUE(t, pthread_create(&thread, NULL, other_thread, comm) == 0);
        pthread_join(thread, &result);
        TEST_TRUE(t, result == NULL);
    } else {
        TEST_OK(t, comm, rondo_barrier(comm, NULL));
    }
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
}

static rondo_result_t call(rondo_comm_t comm, bool split)
{
    int32_t value = 1, sum = 0;
    rondo_comm_t made;

    return split ? rondo_comm_split(comm, 0, 0, &made, NULL)
                 : rondo_allreduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
}

static void says_both(test_rank_t *t, rondo_comm_t comm)
{
    const char *said = rondo_last_error(comm);

    if (!strstr(said, "in different communicators") || !strstr(said, "'first'") || !strstr(said, "'second'"))
        test_fail(t, "the sentence must name both communicators: \"%s\"", said);
}

static void body(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    rondo_comm_t comms[2] = {named(t, "first"), named(t, "second")};
    const bool odd = t->rank == p->odd;
    rondo_result_t result;

    for (int i = 0; i < 2; i++)
        use(t, p, comms[i]);
    test_barrier(t);
    test_note(t, "rank %d of %d splits the second, the others %s the first", p->odd, t->nranks,
              p->split ? "split" : "reduce in");
    if (TEST_GIVES(t, comms[odd], RONDO_ERR_MISMATCH, call(comms[odd], odd || p->split)))
        says_both(t, comms[odd]);
    test_barrier(t); /* nobody ends before all have said it */
    TEST_OK(t, comms[!odd], rondo_comm_get_error(comms[!odd], &result));
    if (test_result(t, comms[!odd], result, RONDO_ERR_MISMATCH, "the other communicator"))
        says_both(t, comms[!odd]);
    test_barrier(t);
    for (int i = 0; i < 2; i++)
        rondo_comm_abort(comms[i]);
}

/* Rank 0 loses patience first. */
static void several_threads(test_rank_t *t, void *arg)
{
    const plan_t p = {.split = true, .threads = true, .odd = 1};

    (void)arg;
    setenv("RONDO_CREATE_TIMEOUT_MS", t->rank == 0 ? "2500" : "60000", 1);
    rondo_comm_t comms[2] = {named(t, "first"), named(t, "second")};
    for (int i = 0; i < 2; i++)
        use(t, &p, comms[i]);
    test_barrier(t);
    test_note(t, "several threads have called");
    if (t->rank == 0 && TEST_GIVES(t, comms[0], RONDO_ERR_TIMEOUT, call(comms[0], true)))
        says_both(t, comms[0]);
    if (t->rank == 0)
        rondo_comm_abort(comms[1]);
    else
        TEST_GIVES(t, comms[1], RONDO_ERR_REMOTE, call(comms[1], true));
    test_barrier(t);
    rondo_comm_abort(comms[t->rank]);
}

int main(void)
{
    int bad = 0;

    test_begin("split_order", 120);
    setenv("RONDO_STALL_MS", "600", 1);
    for (int nranks = 2; nranks <= 4; nranks++)
        for (int split = 0; split < 2; split++) {
            plan_t p = {.split = split, .odd = (nranks + split) % nranks ? 1 : nranks - 1};
            bad += test_run(TEST_PROCESSES, nranks, 60, body, &p);
        }
    bad += test_run(TEST_PROCESSES, 2, 60, several_threads, NULL);
    return bad != 0;
}
