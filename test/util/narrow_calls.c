/* See narrow_calls.h. */
#include "util/narrow_calls.h"

#include <stdlib.h>
#include <string.h>

#include "util/narrow.h"

typedef enum { ALLREDUCE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTERV, COLLS } coll_t;

static const rondo_type_t types[] = {RONDO_FLOAT16, RONDO_BFLOAT16, RONDO_FLOAT8_E4M3, RONDO_FLOAT8_E5M2};

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    rondo_type_t type;
    hard_op_t op;
    coll_t coll;
    size_t count; /* of the whole, or of a block; rank r's block of a reduce_scatterv has r more */
    int in_place, may_refuse;
    const narrow_memory_t *memory;
} case_t;

/* Returns where a block of the input begins. */
static size_t block_begin(const case_t *c, int block)
{
    size_t b = (size_t)block;

    return c->coll == REDUCE_SCATTERV ? b * c->count + b * (b - 1) / 2 : c->coll == REDUCE_SCATTER ? b * c->count : 0;
}

static rondo_op_t op_make(const case_t *c)
{
    static const rondo_op_t builtin[] = {RONDO_SUM, RONDO_PROD, RONDO_MIN, RONDO_MAX, RONDO_AVG};
    unsigned scalar = hard_scalar(narrow_of(c->type), c->op, c->t->rank, c->t->nranks);
    rondo_op_t op;

    if (c->op < HARD_PREMUL_MEAN)
        return builtin[c->op];
    TEST_OK(c->t, c->comm, rondo_op_create_premulsum(&op, &scalar, c->type, 0, c->comm));
    return op;
}

static rondo_result_t post(const case_t *c, const void *in, void *out, rondo_op_t op)
{
    size_t counts[TEST_MAX_RANKS];

    for (int r = 0; r < c->t->nranks; r++)
        counts[r] = c->count + (size_t)r;
    switch (c->coll) {
    case ALLREDUCE:
        return rondo_allreduce(in, out, c->count, c->type, op, c->comm, c->memory->stream);
    case REDUCE:
        return rondo_reduce(in, out, c->count, c->type, op, c->t->nranks - 1, c->comm, c->memory->stream);
    case REDUCE_SCATTER:
        return rondo_reduce_scatter(in, out, c->count, c->type, op, c->comm, c->memory->stream);
    default:
        return rondo_reduce_scatterv(in, out, counts, c->type, op, c->comm, c->memory->stream);
    }
}

/* Element i of the input is of column i % HARD_COLUMNS. */
static void check(const case_t *c, const unsigned char *out, size_t first, size_t count)
{
    const narrow_t *f = narrow_of(c->type);
    size_t size = rondo_type_size(c->type);
    char text[600];

    for (size_t i = 0; i < count; i++) {
        int column = (int)((first + i) % HARD_COLUMNS);
        unsigned got = 0;
        memcpy(&got, out + i * size, size);
        if (hard_right(f, c->op, column, c->t->nranks, got))
            continue;
        hard_text(text, sizeof text, f, c->op, column, c->t->nranks, got);
        test_fail(c->t, "element %zu: %s", i, text);
        return;
    }
    for (size_t i = 0; i < 8; i++)
        if (out[count * size + i] != 0x5a)
            test_fail(c->t, "written beyond the output");
}

/* Every rank's elements, and 8 bytes behind them that nobody writes. */
static unsigned char *input_make(const case_t *c, size_t count)
{
    const narrow_t *f = narrow_of(c->type);
    size_t size = rondo_type_size(c->type);
    unsigned char *in = malloc(count * size + 8);

    if (!in)
        test_stop(c->t, "no memory");
    for (size_t i = 0; i < count; i++) {
        unsigned bits = hard_value(f, (int)(i % HARD_COLUMNS), c->t->rank, c->t->nranks);
        memcpy(in + i * size, &bits, size);
    }
    memset(in + count * size, 0x5a, 8);
    return in;
}

/* Returns 1 if the operation was served. */
static int run_case(const case_t *c)
{
    static const char *const name[] = {"allreduce", "reduce", "reduce_scatter", "reduce_scatterv"};
    const narrow_memory_t *m = c->memory;
    int rank = c->t->rank, n = c->t->nranks;
    size_t size = rondo_type_size(c->type);
    size_t all = c->coll >= REDUCE_SCATTER ? block_begin(c, n) : c->count, first = block_begin(c, rank);
    size_t mine = c->coll == REDUCE_SCATTERV ? c->count + (size_t)rank : c->count;
    unsigned char *in = input_make(c, all), *out = malloc(mine * size + 8);
    char *from = m->get(c->t, all * size + 8), *to = m->get(c->t, mine * size + 8);
    char *result_at = c->in_place ? from + first * size : to;
    rondo_op_t op = op_make(c);
    rondo_result_t result;

    test_note(c->t, "%s: %s, type %d, %zu elements, in place %d", name[c->coll], hard_name(c->op), (int)c->type,
              c->count, c->in_place);
    if (!out || !from || !to)
        test_stop(c->t, "no memory");
    memset(out, 0x5a, mine * size + 8);
    m->copy(c->t, from, in, all * size + 8, m->stream);
    m->copy(c->t, to, out, mine * size + 8, m->stream);
    result = post(c, from, result_at, op);
    test_agree(c->t, (uint64_t)result, test_noted(c->t));
    if (result != RONDO_SUCCESS && !c->may_refuse)
        test_fail(c->t, "%s", rondo_last_error(c->comm));
    if (result == RONDO_SUCCESS && (c->coll != REDUCE || rank == n - 1)) {
        m->copy(c->t, out, result_at, mine * size, m->stream);
        m->copy(c->t, out + mine * size, (c->in_place ? from + all * size : to + mine * size), 8, m->stream);
        check(c, out, first, mine);
    }
    if (c->op >= HARD_PREMUL_MEAN)
        TEST_OK(c->t, c->comm, rondo_op_destroy(op, c->comm));
    m->back(from);
    m->back(to);
    free(in);
    free(out);
    return result == RONDO_SUCCESS;
}

int narrow_calls(test_rank_t *t, rondo_comm_t comm, const narrow_memory_t *memory, const size_t *counts, int ncounts,
                 int turn, int may_refuse)
{
    int served = 0;

    for (int k = 0; k < 4; k++)
        for (int op = 0; op < HARD_OPS; op++)
            for (int coll = 0; coll < COLLS; coll++)
                for (int i = 0; i < ncounts; i++) {
                    case_t c = {t, comm, types[k], (hard_op_t)op, (coll_t)coll, counts[i], 0, may_refuse, memory};
                    if (turn != NARROW_ALL && (k + op + coll + turn) % ncounts != i)
                        continue;
                    c.in_place = (k + op + coll + i) % 2;
                    served += run_case(&c);
                }
    return served;
}

static void *host_get(test_rank_t *t, size_t bytes)
{
    (void)t;
    return malloc(bytes);
}

static void host_copy(test_rank_t *t, void *to, const void *from, size_t bytes, void *stream)
{
    (void)t, (void)stream;
    memcpy(to, from, bytes);
}

const narrow_memory_t narrow_host = {NULL, host_get, free, host_copy};
