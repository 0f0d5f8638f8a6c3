/* RONDO_CHECK=1: ranks that call different things get RONDO_ERR_MISMATCH on every rank, with a sentence that names the
 * field and both ranks, before any data moves; ranks that call the same notice nothing.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

/* From V_OPERATION on: operations that run as one and the same all-to-all. */
typedef enum {
    NOTHING,
    OPERATION,
    COUNT,
    TYPE,
    OP,
    ROOT,
    V_OPERATION,
    V_TO_ALL,
    V_ROOT,
    V_COUNTS,
    V_GATHERED,
    SPLIT,
    NUM_FIELDS
} field_t;

static const char *const field_names[NUM_FIELDS] = {"nothing",   "operation", "count", "type",   "op",     "root",
                                                    "operation", "operation", "root",  "counts", "counts", "operation"};

typedef struct {
    field_t field;
    int odd, group; /* which rank differs; in a group of several operations? */
} plan_t;

/* gatherv, scatterv, alltoallv of a few elements each. */
static rondo_result_t call_v(const plan_t *p, int differs, rondo_comm_t comm, char *in, char *out)
{
    size_t counts[TEST_MAX_RANKS];
    int i, rank = 0, root = differs && p->field == V_ROOT ? 0 : 1;

    for (i = 0; i < TEST_MAX_RANKS; i++)
        counts[i] = 10;
    if (p->field == V_COUNTS || p->field == V_GATHERED) { /* {4, 8} against {8, 4}: alike in all */
        counts[0] = differs ? 4 : 8;
        counts[1] = differs ? 8 : 4;
        rondo_comm_rank(comm, &rank);
    }
    if (p->field == V_COUNTS)
        return rondo_reduce_scatterv(in, out, counts, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    if (p->field == V_GATHERED)
        return rondo_allgatherv(in, counts[rank], out, counts, NULL, RONDO_FLOAT32, comm, NULL);
    if (differs && p->field == V_OPERATION)
        return rondo_scatterv(in, counts, NULL, out, 10, RONDO_FLOAT32, root, comm, NULL);
    if (differs && p->field == V_TO_ALL)
        return rondo_alltoallv(in, counts, NULL, out, counts, NULL, RONDO_FLOAT32, comm, NULL);
    return rondo_gatherv(in, 10, out, counts, NULL, RONDO_FLOAT32, root, comm, NULL);
}

static rondo_result_t call(const plan_t *p, int differs, rondo_comm_t comm, char *in, char *out)
{
    size_t count = differs && p->field == COUNT ? 101 : 100;
    rondo_type_t type = differs && p->field == TYPE ? RONDO_INT32 : RONDO_FLOAT32;
    rondo_op_t op = differs && p->field == OP ? RONDO_MAX : RONDO_SUM;
    int root = differs && p->field == ROOT ? 0 : 1;
    rondo_comm_t other;

    if (p->field == SPLIT && differs)
        return rondo_comm_split(comm, 0, 0, &other, NULL);
    if (p->field >= V_OPERATION && p->field != SPLIT)
        return call_v(p, differs, comm, in, out);
    if (p->field == ROOT || (p->field == OPERATION && differs))
        return rondo_reduce(in, out, count, type, op, root, comm, NULL);
    return rondo_allreduce(in, out, count, type, op, comm, NULL);
}

static rondo_result_t run(test_rank_t *t, const plan_t *p, rondo_comm_t comm, char *in, char *out)
{
    int differs = t->rank == p->odd && p->field != NOTHING;
    rondo_result_t result, end;

    if (!p->group)
        return call(p, differs, comm, in, out);
    result = rondo_group_start();
    if (result == RONDO_SUCCESS)
        result = rondo_allreduce(in, out + 2048, 64, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    if (result == RONDO_SUCCESS)
        result = call(p, differs, comm, in, out);
    end = rondo_group_end();
    return result != RONDO_SUCCESS ? result : end;
}

static void check_sentence(test_rank_t *t, const plan_t *p, const char *said)
{
    char odd[32];

    snprintf(odd, sizeof odd, "rank %d", p->odd);
    if (!strstr(said, field_names[p->field]) || !strstr(said, "rank 0") || !strstr(said, odd))
        test_fail(t, "the sentence must name %s, rank 0 and %s: \"%s\"", field_names[p->field], odd, said);
}

static void body(test_rank_t *t, void *arg)
{
    const plan_t *p = arg;
    rondo_comm_t comm = test_comm(t, NULL);
    rondo_result_t result, want = p->field == NOTHING ? RONDO_SUCCESS : RONDO_ERR_MISMATCH, error;
    char in[4096] = {0}, out[4096];
    int i;

    for (i = 0; i < 5; i++) {
        test_note(t, "equal calls, number %d", i);
        TEST_OK(t, comm, rondo_allreduce(in, out, (size_t)i * 10, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
        TEST_OK(t, comm, rondo_barrier(comm, NULL));
    }
    test_barrier(t); /* a rank that is still in the last one would hear of the mismatch there */
    if (t->rank == p->odd) {
        test_note(t, "a group that is refused");
        TEST_OK(t, comm, rondo_group_start());
        TEST_OK(t, comm, rondo_allreduce(in, out, 10, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
        TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_broadcast(in, out, 10, RONDO_FLOAT32, -1, comm, NULL));
        TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_group_end());
    }
    test_note(t, "rank %d differs in %s%s", p->odd, field_names[p->field], p->group ? ", in a group" : "");
    memset(out, 0x77, sizeof out);
    result = run(t, p, comm, in, out);
    if (!test_result(t, comm, result, want, test_noted(t)))
        test_stop(t, "cannot go on");
    if (want == RONDO_ERR_MISMATCH) {
        check_sentence(t, p, rondo_last_error(comm));
        for (i = 0; i < 404 && !p->group; i++)
            if (out[i] != 0x77) {
                test_fail(t, "byte %d of the output was written", i);
                break;
            }
        TEST_OK(t, comm, rondo_comm_get_error(comm, &error));
        TEST_TRUE(t, error == RONDO_ERR_MISMATCH);
        TEST_GIVES(t, comm, RONDO_ERR_MISMATCH, rondo_barrier(comm, NULL));
    }
    test_note(t, "destroy");
    rondo_comm_destroy(comm);
}

int main(void)
{
    plan_t p;
    int bad = 0, nranks;

    test_begin("check_mismatch", 240);
    setenv("RONDO_CHECK", "1", 1);
    for (nranks = 2; nranks <= 4; nranks++)
        for (p.field = NOTHING; p.field < NUM_FIELDS; p.field++)
            for (p.group = 0; p.group < 2; p.group++) {
                if (p.field == SPLIT && p.group) /* which may not be in one */
                    continue;
                p.odd = 1 + (int)p.field % (nranks - 1);
                bad += test_run((p.field + p.group) % 2 ? TEST_THREADS : TEST_PROCESSES, nranks, 60, body, &p);
                if (bad)
                    return 1;
            }
    return 0;
}
