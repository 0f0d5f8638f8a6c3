/* Nodes of unequal size, by algorithms that let blocks go together as one message: some ranks there have neighbours of
 * their own node alone, and must make and take the same messages as those who reach over to the other node.
 */
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"
#include "util/operation.h"

typedef struct {
    int nranks, alone; /* the rank that is a node by itself */
    const char *algo;
    do_what_t what[4]; /* which it serves; DO_NUM: no more */
} case_t;

static void run_one(test_rank_t *t, const case_t *k, rondo_comm_t comm, const do_case_t *c)
{
    char text[200], wrong[256];
    do_call_t call;

    do_text(c, text, sizeof text);
    test_note(t, "%s, rank %d of %d on a node of its own: %s", k->algo, k->alone, k->nranks, text);
    if (do_prepare(&call, c, t->rank, t->nranks) != 0)
        test_stop(t, "no memory");
    TEST_OK(t, comm, do_post(&call, comm));
    if (do_verify(&call, 1, wrong, sizeof wrong) != 0)
        test_fail(t, "%s", wrong);
    do_release(&call);
}

static void body(test_rank_t *t, void *arg)
{
    static const size_t counts[] = {2, 1, 16, 128, 129};
    const rondo_config_t config = test_host_config();
    const case_t *k = arg;

    setenv("RONDO_HOSTID", t->rank == k->alone ? "one" : "others", 1);
    rondo_comm_t comm = test_comm(t, &config);
    for (int i = 0; i < 4 && k->what[i] != DO_NUM; i++)
        for (size_t n = 0; n < sizeof counts / sizeof counts[0]; n++) {
            const do_case_t c = {.what = k->what[i],
                                 .type = RONDO_FLOAT32,
                                 .op = RONDO_SUM,
                                 .data = do_reduces(k->what[i]) ? REF_EXACT : REF_BYTES,
                                 .count = counts[n],
                                 .seed = 10 * n + (uint64_t)i};
            run_one(t, k, comm, &c);
        }
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

int main(void)
{
    static const case_t cases[] = {
        {6, 5, "pat", {DO_ALLGATHER, DO_REDUCE_SCATTER, DO_ALLREDUCE, DO_NUM}}, {6, 5, "bruck", {DO_ALLTOALL, DO_NUM}},
        {6, 3, "pat", {DO_ALLGATHER, DO_REDUCE_SCATTER, DO_ALLREDUCE, DO_NUM}}, {6, 3, "bruck", {DO_ALLTOALL, DO_NUM}},
        {8, 7, "pat", {DO_ALLGATHER, DO_REDUCE_SCATTER, DO_ALLREDUCE, DO_NUM}}, {8, 7, "bruck", {DO_ALLTOALL, DO_NUM}}};
    int bad = 0;

    test_begin("uneven", 120);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv("RONDO_ALGO", cases[i].algo, 1);
        bad += test_run(TEST_PROCESSES, cases[i].nranks, 30, body, (void *)(uintptr_t)&cases[i]);
    }
    return bad != 0;
}
