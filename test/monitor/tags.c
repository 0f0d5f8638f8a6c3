/* rondo_tag: tags that are alike harm nobody, whatever is called; a rank that leaves out one of many equal calls is
 * named at its next one, with both tags; and what is said of a call has its tag. Each on one node and on two, with
 * RONDO_CHECK and without. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

#define RANKS 3
#define ODD 1
#define CALLS 20
#define SKIPPED 12 /* a tag, and a number: calls are numbered from 1 on in each communicator */

typedef struct {
    int nodes, check;
} how_t;

static rondo_result_t add_up(test_rank_t *t, rondo_comm_t comm)
{
    int one = 1, sum = 0;
    rondo_result_t result = rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);

    TEST_TRUE(t, result != RONDO_SUCCESS || sum == t->nranks);
    return result;
}

static void exchange(test_rank_t *t, rondo_comm_t comm)
{
    int out = t->rank, in = -1, from = (t->rank + t->nranks - 1) % t->nranks;
    size_t counts[RANKS] = {1, 1, 1};
    int all[RANKS];

    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_send(&out, 1, RONDO_INT32, (t->rank + 1) % t->nranks, comm, NULL));
    TEST_OK(t, comm, rondo_tag((uint64_t)t->rank)); /* of messages, each rank's own */
    TEST_OK(t, comm, rondo_recv(&in, 1, RONDO_INT32, from, comm, NULL));
    TEST_OK(t, comm, rondo_tag(UINT64_MAX));
    TEST_OK(t, comm, rondo_allgatherv(&out, 1, all, counts, NULL, RONDO_INT32, comm, NULL));
    TEST_OK(t, comm, rondo_tag(0));
    TEST_OK(t, comm, rondo_group_end());
    TEST_TRUE(t, in == from && all[1] == 1);
}

static void alike(test_rank_t *t, void *arg)
{
    const how_t *how = arg;
    rondo_comm_t comm = test_comm_on(t, how->nodes), part;
    rondo_status_t status = {.size = sizeof status};

    if (!comm)
        return;
    for (int i = 0; i < CALLS; i++) {
        test_note(t, "call %d", i);
        TEST_OK(t, comm, rondo_tag((uint64_t)(i / 3 % 2))); /* runs of three, with and without */
        TEST_OK(t, comm, add_up(t, comm));
    }
    TEST_OK(t, comm, rondo_tag(7));
    TEST_OK(t, comm, add_up(t, comm));
    TEST_OK(t, comm, rondo_comm_status(comm, &status));
    TEST_TRUE(t, strstr(status.call, "(1 int32, sum), tag 7") != NULL);
    exchange(t, comm);
    TEST_OK(t, comm, rondo_tag((uint64_t)t->rank));
    TEST_OK(t, comm, rondo_comm_split(comm, 0, t->rank, &part, NULL));
    TEST_OK(t, comm, rondo_tag(0));
    TEST_OK(t, comm, add_up(t, part));
    rondo_comm_destroy(part);
    rondo_comm_destroy(comm);
}

/* Says which call is left out by its tag alone; the others repeat each other. */
static void skipped(test_rank_t *t, void *arg)
{
    const how_t *how = arg;
    rondo_comm_t comm = test_comm_on(t, how->nodes);
    rondo_result_t result = RONDO_SUCCESS;
    const char *said;
    char one[64];

    if (!comm)
        return;
    for (int tag = 1; tag <= CALLS && result == RONDO_SUCCESS; tag++) {
        test_note(t, "tag %d", tag);
        if (tag == SKIPPED && t->rank == ODD)
            continue;
        TEST_OK(t, comm, rondo_tag((uint64_t)tag));
        result = add_up(t, comm);
    }
    TEST_OK(t, comm, rondo_tag(0));
    said = rondo_last_error(comm);
    snprintf(one, sizeof one, "rank %d (", ODD);
    const char *odd = strstr(said, one);
    if (result != RONDO_ERR_MISMATCH || !strstr(said, "they differ in tag (tag ") || !odd ||
        !strstr(said, "op sum, tag 12") || !strstr(odd, "op sum, tag 13"))
        test_fail(t, "%s: %s", rondo_result_string(result), said);
    test_barrier(t); /* nobody ends before all have said it */
    rondo_comm_destroy(comm);
}

/* One rank has a tag and the others have none, at a call that all repeat. */
static void forgotten(test_rank_t *t, void *arg)
{
    const how_t *how = arg;
    rondo_comm_t comm = test_comm_on(t, how->nodes);

    if (!comm)
        return;
    for (int i = 0; i < CALLS; i++)
        TEST_OK(t, comm, add_up(t, comm));
    TEST_OK(t, comm, rondo_tag(t->rank == ODD ? 5 : 0));
    (void)add_up(t, comm);
    if (TEST_GIVES(t, comm, RONDO_ERR_MISMATCH, add_up(t, comm)) && !strstr(rondo_last_error(comm), "differ in tag"))
        test_fail(t, "%s", rondo_last_error(comm));
    test_barrier(t);
    rondo_comm_destroy(comm);
}

int main(void)
{
    int bad = 0;

    test_begin("tags", 90);
    for (int check = 0; check < 2; check++)
        for (int nodes = 1; nodes <= 2; nodes++) {
            how_t how = {nodes, check};
            setenv("RONDO_CHECK", check ? "1" : "0", 1);
            bad |= test_run(nodes == 1 && !check ? TEST_THREADS : TEST_PROCESSES, RANKS, 30, alike, &how) != 0;
            bad |= test_run(TEST_PROCESSES, RANKS, 30, skipped, &how) != 0;
            bad |= test_run(TEST_PROCESSES, RANKS, 30, forgotten, &how) != 0;
        }
    return bad;
}
