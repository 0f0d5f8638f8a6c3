/* v-operations whose tables change from call to call: other contents behind the same pointers, a few that come again
 * and more than the planner keeps, blocks of nothing, gaps between blocks, in place, every root. Plans are kept for
 * tables, so a plan that served once must never serve for others.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

#define MANY 34  /* ranks, in one thread: more than have their tables on the stack */
#define KINDS 6  /* of tables */
#define TURNS 90 /* of each operation */
#define LONG 700 /* elements of the longest block */
#define GAP 3
#define ROOM (MANY * (LONG + GAP))
#define EMPTY (-1)

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    int rank, n, turn, kind, layout, root;
    size_t counts[MANY], displs[MANY], to[MANY], at[MANY]; /* `to`, `at`: the other side of an alltoallv */
    int32_t *in, *out;
} state_t;

/* Elements from `from` for `to`; kinds 0 and 3 differ in one block alone. */
static size_t count_of(int kind, int from, int to)
{
    static const size_t counts[] = {1, 0, 7, 40, 0, 300, LONG};
    int k = kind == 3 ? 0 : kind;

    if (kind == 3 && from == 0 && to == 0)
        return 2;
    return kind == 5 ? 0 : counts[(k * 5 + from * 3 + to * 2) % (k == 4 ? 7 : 4)];
}

/* From `from` for `to`, the same for all where one of them is -1. */
static int32_t value(const state_t *s, int from, int to, size_t i)
{
    return (int32_t)(s->turn * 100003 + (from + 1) * 9176 + (to + 1) * 313 + (int)i);
}

/* One after another, or the last one first with gaps between; NULL: the library is to add up itself. */
static const size_t *lay(const state_t *s, const size_t *counts, size_t *displs)
{
    size_t at = 0;
    int r, apart = s->layout == 2;

    for (r = 0; r < s->n; r++) {
        int rank = apart ? s->n - 1 - r : r;

        displs[rank] = at;
        at += counts[rank] + (apart ? GAP : 0);
    }
    return s->layout == 0 ? NULL : displs;
}

static void clear(state_t *s)
{
    size_t i;

    for (i = 0; i < ROOM; i++)
        s->in[i] = s->out[i] = EMPTY;
}

static void fill(const state_t *s, int32_t *block, size_t count, int from, int to)
{
    size_t i;

    for (i = 0; i < count; i++)
        block[i] = value(s, from, to, i);
}

static int same(const state_t *s, const int32_t *block, size_t count, int from, int to)
{
    size_t i;

    for (i = 0; i < count; i++)
        if (block[i] != value(s, from, to, i))
            return 0;
    return 1;
}

/* Nothing but `sum` elements has been written. */
static void untouched(const state_t *s, size_t sum)
{
    size_t i, written = 0;

    for (i = 0; i < ROOM; i++)
        written += s->out[i] != EMPTY;
    if (written != sum)
        test_fail(s->t, "%s: %zu elements were written", test_noted(s->t), written);
}

static void right(const state_t *s, int is, int block)
{
    if (!is)
        test_fail(s->t, "%s: block %d is wrong", test_noted(s->t), block);
}

/* gatherv and allgatherv: the blocks lie at their places in `out`. */
static void gathered(const state_t *s)
{
    size_t sum = 0;
    int r;

    for (r = 0; r < s->n; r++) {
        right(s, same(s, s->out + s->displs[r], s->counts[r], r, -1), r);
        sum += s->counts[r];
    }
    untouched(s, sum);
}

static rondo_result_t gatherv(state_t *s)
{
    const size_t *displs = lay(s, s->counts, s->displs);
    int rooting = s->rank == s->root, in_place = rooting && s->turn % 2;
    size_t own = s->counts[s->rank];
    int32_t *send = in_place ? s->out + s->displs[s->rank] : s->in;

    fill(s, send, own, s->rank, -1);
    return rondo_gatherv(send, own, s->out, rooting ? s->counts : NULL, rooting ? displs : NULL, RONDO_INT32, s->root,
                         s->comm, NULL);
}

static void gatherv_right(const state_t *s)
{
    if (s->rank == s->root)
        gathered(s);
    else
        untouched(s, 0);
}

static rondo_result_t scatterv(state_t *s)
{
    const size_t *displs = lay(s, s->counts, s->displs);
    int r, rooting = s->rank == s->root, in_place = rooting && s->turn % 2;

    for (r = 0; rooting && r < s->n; r++)
        fill(s, s->in + s->displs[r], s->counts[r], s->root, r);
    return rondo_scatterv(s->in, rooting ? s->counts : NULL, rooting ? displs : NULL,
                          in_place ? s->in + s->displs[s->rank] : s->out, s->counts[s->rank], RONDO_INT32, s->root,
                          s->comm, NULL);
}

static void scatterv_right(const state_t *s)
{
    int in_place = s->rank == s->root && s->turn % 2;
    size_t own = s->counts[s->rank];

    right(s, same(s, in_place ? s->in + s->displs[s->rank] : s->out, own, s->root, s->rank), s->rank);
    untouched(s, in_place ? 0 : own);
}

static rondo_result_t allgatherv(state_t *s)
{
    const size_t *displs = lay(s, s->counts, s->displs);
    int32_t *send = s->turn % 2 ? s->out + s->displs[s->rank] : s->in;

    fill(s, send, s->counts[s->rank], s->rank, -1);
    return rondo_allgatherv(send, s->counts[s->rank], s->out, s->counts, displs, RONDO_INT32, s->comm, NULL);
}

/* Of equal contributions the greatest is each of them. */
static rondo_result_t reduce_scatterv(state_t *s)
{
    size_t at = 0;
    int r;

    for (r = 0; r < s->n; at += s->counts[r++])
        fill(s, s->in + at, s->counts[r], -1, r);
    return rondo_reduce_scatterv(s->in, s->out, s->counts, RONDO_INT32, RONDO_MAX, s->comm, NULL);
}

static void reduce_scatterv_right(const state_t *s)
{
    right(s, same(s, s->out, s->counts[s->rank], -1, s->rank), s->rank);
    untouched(s, s->counts[s->rank]);
}

static rondo_result_t alltoallv(state_t *s)
{
    const size_t *displs, *at;
    int r;

    for (r = 0; r < s->n; r++) {
        s->to[r] = count_of(s->kind, s->rank, r);
        s->counts[r] = count_of(s->kind, r, s->rank);
    }
    at = lay(s, s->to, s->at);
    displs = lay(s, s->counts, s->displs);
    for (r = 0; r < s->n; r++)
        fill(s, s->in + s->at[r], s->to[r], s->rank, r);
    return rondo_alltoallv(s->in, s->to, at, s->out, s->counts, displs, RONDO_INT32, s->comm, NULL);
}

static void alltoallv_right(const state_t *s)
{
    size_t sum = 0;
    int r;

    for (r = 0; r < s->n; r++) {
        right(s, same(s, s->out + s->displs[r], s->counts[r], r, s->rank), r);
        sum += s->counts[r];
    }
    untouched(s, sum);
}

static const struct {
    const char *name;
    rondo_result_t (*call)(state_t *s);
    void (*check)(const state_t *s);
} operations[] = {{"gatherv", gatherv, gatherv_right},
                  {"scatterv", scatterv, scatterv_right},
                  {"allgatherv", allgatherv, gathered},
                  {"reduce_scatterv", reduce_scatterv, reduce_scatterv_right},
                  {"alltoallv", alltoallv, alltoallv_right}};
#define OPERATIONS (int)(sizeof operations / sizeof operations[0])

static void prepare(state_t *s, test_rank_t *t, rondo_comm_t comm, int rank, int n)
{
    *s = (state_t){.t = t, .comm = comm, .rank = rank, .n = n};
    s->in = malloc(ROOM * sizeof *s->in);
    s->out = malloc(ROOM * sizeof *s->out);
    if (!s->in || !s->out)
        test_stop(t, "no memory");
}

/* Runs of a few kinds, as codes have them, then others. */
static void begin(state_t *s, int turn)
{
    int r;

    s->turn = turn;
    s->kind = turn < TURNS / 2 ? turn % 3 * 3 % KINDS : (int)(test_mix((uint64_t)turn) % KINDS);
    s->layout = turn % 3;
    s->root = turn / 4 % s->n;
    clear(s);
    for (r = 0; r < s->n; r++)
        s->counts[r] = count_of(s->kind, r, 0);
}

/* One operation again and again, where something changes now and then: what is remembered of a call serves for equal
 * ones alone. */
static void begin_again(state_t *s, int turn)
{
    int r;

    s->turn = turn;
    s->kind = turn / 3 % 2 * 3;
    s->layout = turn / 8 % 3;
    s->root = turn / 12 % s->n;
    clear(s);
    for (r = 0; r < s->n; r++)
        s->counts[r] = count_of(s->kind, r, 0);
}

/* Behind a call that succeeded: the same with a number that no memory can hold, though its bytes, counted in 64 bits,
 * are those of that call; and the same without memory. */
static void refused_again(state_t *s)
{
    size_t counts[MANY], other[MANY], huge = (size_t)1 << 62;

    for (int r = 0; r < s->n; r++)
        counts[r] = other[r] = 2;
    other[0] += huge;
    for (int turn = 0; turn < 2; turn++) {
        TEST_OK(s->t, s->comm, rondo_allgatherv(s->in, 2, s->out, counts, NULL, RONDO_INT32, s->comm, NULL));
        TEST_GIVES(s->t, s->comm, RONDO_ERR_INVALID_ARGUMENT,
                   rondo_allgatherv(s->in, other[s->rank], s->out, other, NULL, RONDO_INT32, s->comm, NULL));
        TEST_GIVES(s->t, s->comm, RONDO_ERR_INVALID_ARGUMENT,
                   rondo_allgatherv(s->in, 2, NULL, counts, NULL, RONDO_INT32, s->comm, NULL));
        TEST_OK(s->t, s->comm, rondo_reduce_scatterv(s->in, s->out, counts, RONDO_INT32, RONDO_MAX, s->comm, NULL));
        TEST_GIVES(s->t, s->comm, RONDO_ERR_INVALID_ARGUMENT,
                   rondo_reduce_scatterv(s->in, s->out, other, RONDO_INT32, RONDO_MAX, s->comm, NULL));
        TEST_OK(s->t, s->comm, rondo_alltoallv(s->in, counts, NULL, s->out, counts, NULL, RONDO_INT32, s->comm, NULL));
        TEST_GIVES(s->t, s->comm, RONDO_ERR_INVALID_ARGUMENT,
                   rondo_alltoallv(s->in, other, NULL, s->out, other, NULL, RONDO_INT32, s->comm, NULL));
        TEST_GIVES(s->t, s->comm, RONDO_ERR_INVALID_ARGUMENT,
                   rondo_alltoallv(s->in, counts, NULL, s->in, counts, NULL, RONDO_INT32, s->comm, NULL));
    }
}

static void run(state_t *s, int op)
{
    test_note(s->t, "%s, turn %d, tables %d, layout %d, root %d", operations[op].name, s->turn, s->kind, s->layout,
              s->root);
    if (!TEST_OK(s->t, s->comm, operations[op].call(s)))
        test_stop(s->t, "cannot go on");
    operations[op].check(s);
}

static void apart(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL);
    int turn, op;
    state_t s;

    (void)arg;
    prepare(&s, t, comm, t->rank, t->nranks);
    for (turn = 0; turn < TURNS; turn++) {
        for (op = 0; op < OPERATIONS; op++) {
            begin(&s, turn);
            run(&s, op);
        }
    }
    for (op = 0; op < OPERATIONS; op++) {
        for (turn = 0; turn < TURNS; turn++) {
            begin_again(&s, turn);
            run(&s, op);
        }
    }
    refused_again(&s);
    free(s.in);
    free(s.out);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* All ranks in one thread, where each call is recorded before any of them runs. */
static void together(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    static rondo_comm_t comms[MANY];
    static state_t states[MANY];
    int turn, op, r;

    (void)arg;
    config.device = RONDO_DEVICE_HOST;
    if (!TEST_OK(t, NULL, rondo_comm_create_all(comms, MANY, NULL, &config)))
        return;
    for (r = 0; r < MANY; r++)
        prepare(&states[r], t, comms[r], r, MANY);
    for (turn = 0; turn < 6; turn++) {
        for (op = 0; op < OPERATIONS; op++) {
            TEST_OK(t, NULL, rondo_group_start());
            for (r = 0; r < MANY; r++) {
                begin(&states[r], turn);
                test_note(t, "%s of rank %d, turn %d", operations[op].name, r, turn);
                TEST_OK(t, comms[r], operations[op].call(&states[r]));
                memset(states[r].at, 0xff, sizeof states[r].at); /* tables are read before a call returns */
            }
            if (!TEST_OK(t, comms[0], rondo_group_end()))
                test_stop(t, "cannot go on");
            for (r = 0; r < MANY; r++)
                operations[op].check(&states[r]);
        }
    }
    for (r = 0; r < MANY; r++) {
        free(states[r].in);
        free(states[r].out);
        TEST_OK(t, NULL, rondo_comm_destroy(comms[r]));
    }
}

int main(void)
{
    int bad = 0, n;

    test_begin("v_tables", 100);
    for (n = 1; n <= 5 && !bad; n++)
        bad += test_run(n % 2 ? TEST_THREADS : TEST_PROCESSES, n, 30, apart, NULL);
    setenv("RONDO_SLOT_BYTES", "4096", 1);
    if (!bad)
        bad += test_run(TEST_PROCESSES, 1, 60, together, NULL);
    return bad != 0;
}
