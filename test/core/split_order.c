/* A split that waits for ranks which wait for this one in another communicator, in a split or a collective. What looks
 * like a circle may yet end, so nothing fails before RONDO_CREATE_TIMEOUT_MS of one rank is over; then its sentence
 * names the two communicators. */
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

static rondo_comm_t named(test_rank_t *t, const char *name)
{
    rondo_config_t config = test_host_config();

    config.name = name;
    return test_comm(t, &config);
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

/* The last rank splits the second communicator, the others split the first, or reduce in it. One that splits loses
 * patience, and the ranks that it does not wait with are ended by its abort. */
static void two_orders(test_rank_t *t, void *arg)
{
    const bool split = *(const bool *)arg, odd = t->rank == t->nranks - 1;
    const int impatient = split ? 0 : t->nranks - 1;

    setenv("RONDO_CREATE_TIMEOUT_MS", t->rank == impatient ? "3000" : "60000", 1);
    rondo_comm_t comms[2] = {named(t, "first"), named(t, "second")};
    for (int i = 0; i < 2; i++)
        TEST_OK(t, comms[i], rondo_barrier(comms[i], NULL));
    test_barrier(t);
    test_note(t, "the last of %d ranks splits the second, the others %s the first", t->nranks,
              split ? "split" : "reduce in");
    if (odd == split)
        TEST_GIVES(t, comms[odd], RONDO_ERR_REMOTE, call(comms[odd], split));
    else if (TEST_GIVES(t, comms[odd], RONDO_ERR_TIMEOUT, call(comms[odd], true)) && t->rank == impatient)
        says_both(t, comms[odd]);
    for (int i = 0; i < 2; i++)
        rondo_comm_abort(comms[i]);
}

int main(void)
{
    int bad = 0;

    test_begin("split_order", 120);
    for (int nranks = 2; nranks <= 3; nranks++)
        for (int split = 0; split < 2; split++)
            bad += test_run(TEST_PROCESSES, nranks, 60, two_orders, &(bool){split});
    return bad != 0;
}
