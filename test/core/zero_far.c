/* One rank gives no elements, which needs no message, and is in no call from then on; a rank of another node waits for
 * its message. Without a time limit, and with one that leaves the time to ask, and without RONDO_CHECK, that ends on
 * all ranks with RONDO_ERR_MISMATCH and both counts, as it does on one node: the process of the rank says what it has
 * called, whatever it does. */
#include <stdio.h>
#include <stdlib.h>

#include "util/harness.h"

#define MOST 300000

typedef struct {
    int nranks, zero;
    size_t count;
    bool sends;           /* it is the root of a broadcast; else it is in an allreduce */
    const char *limit_ms; /* NULL: there is no time limit */
} case_t;

static const case_t cases[] = {{2, 0, 10, false, NULL},  {2, 1, MOST, false, NULL}, {2, 0, 10, true, NULL},
                               {2, 1, MOST, true, NULL}, {3, 1, 100, false, NULL},  {4, 1, 5000, false, NULL},
                               {2, 1, 10, true, "1500"}};

static rondo_result_t call(const case_t *c, size_t count, rondo_comm_t comm)
{
    static int32_t in[MOST], out[MOST];

    return c->sends ? rondo_broadcast(in, out, count, RONDO_INT32, c->zero, comm, NULL)
                    : rondo_allreduce(in, out, count, RONDO_INT32, RONDO_SUM, comm, NULL);
}

static void body(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    rondo_comm_t comm = test_comm_on(t, 2);
    char counts[32];

    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_note(t, "rank %d of %d gives 0 elements, the others %zu", c->zero, c->nranks, c->count);
    if (t->rank == c->zero)
        TEST_OK(t, comm, call(c, 0, comm));
    else
        TEST_GIVES(t, comm, RONDO_ERR_MISMATCH, call(c, c->count, comm));
    test_barrier(t);
    if (t->rank == c->zero)
        TEST_GIVES(t, comm, RONDO_ERR_MISMATCH, rondo_barrier(comm, NULL));
    snprintf(counts, sizeof counts, "count %zu,", c->count);
    test_sentence(t, "differ in count");
    test_sentence(t, "count 0,");
    test_sentence(t, counts);
    test_barrier(t);
    rondo_comm_destroy(comm);
}

static int part(int i)
{
    case_t c = cases[i];

    if (c.limit_ms)
        setenv("RONDO_TIMEOUT_MS", c.limit_ms, 1);
    int bad = test_run(TEST_PROCESSES, c.nranks, 40, body, &c);

    printf("zero_far: rank %d of %d, %zu elements: %s\n", c.zero, c.nranks, c.count, bad ? "WRONG" : "right");
    return bad;
}

int main(void)
{
    test_begin("zero_far", 60);
    if (!test_has_network())
        return TEST_SKIPPED;
    return test_at_once(sizeof cases / sizeof cases[0], part) != 0;
}
