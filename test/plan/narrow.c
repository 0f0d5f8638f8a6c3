/* Hard values of the narrow floating types (util/narrow.h): every type, operation and operator, by every algorithm and
 * protocol that can be forced, and by those that are chosen; in one pass and in several, in place and not.
 *
 *   narrow [--ranks N]
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sched/algo.h"
#include "util/harness.h"
#include "util/narrow.h"

static const char *const protos[] = {"ll", "simple"};

typedef struct {
    const char *algo, *proto; /* "": not forced */
    int nodes;
    _Atomic int *served; /* operations that went through on rank 0, in shared memory */
} plan_t;

typedef enum { ALLREDUCE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTERV, COLLS } coll_t;

static const rondo_type_t types[] = {RONDO_FLOAT16, RONDO_BFLOAT16, RONDO_FLOAT8_E4M3, RONDO_FLOAT8_E5M2};

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    rondo_type_t type;
    hard_op_t op;
    coll_t coll;
    size_t count; /* of the whole, or of a block; rank r's block of a reduce_scatterv has r more */
    int in_place;
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
        return rondo_allreduce(in, out, c->count, c->type, op, c->comm, NULL);
    case REDUCE:
        return rondo_reduce(in, out, c->count, c->type, op, c->t->nranks - 1, c->comm, NULL);
    case REDUCE_SCATTER:
        return rondo_reduce_scatter(in, out, c->count, c->type, op, c->comm, NULL);
    default:
        return rondo_reduce_scatterv(in, out, counts, c->type, op, c->comm, NULL);
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

static void run_case(const case_t *c, plan_t *p)
{
    static const char *const name[] = {"allreduce", "reduce", "reduce_scatter", "reduce_scatterv"};
    const narrow_t *f = narrow_of(c->type);
    int rank = c->t->rank, n = c->t->nranks;
    size_t size = rondo_type_size(c->type);
    size_t all = c->coll >= REDUCE_SCATTER ? block_begin(c, n) : c->count, first = block_begin(c, rank);
    size_t mine = c->coll == REDUCE_SCATTERV ? c->count + (size_t)rank : c->count;
    unsigned char *in = malloc(all * size + 8), *out = malloc(mine * size + 8);
    rondo_op_t op = op_make(c);
    rondo_result_t result;

    test_note(c->t, "%s by '%s' '%s': %s, type %d, %zu elements, in place %d", name[c->coll], p->algo, p->proto,
              hard_name(c->op), (int)c->type, c->count, c->in_place);
    if (!in || !out)
        test_stop(c->t, "no memory");
    for (size_t i = 0; i < all; i++) {
        unsigned bits = hard_value(f, (int)(i % HARD_COLUMNS), rank, n);
        memcpy(in + i * size, &bits, size);
    }
    memset(in + all * size, 0x5a, 8);
    memset(out, 0x5a, mine * size + 8);
    result = post(c, in, c->in_place ? in + first * size : out, op);
    test_agree(c->t, (uint64_t)result, test_noted(c->t));
    if (result == RONDO_SUCCESS) {
        if (c->coll != REDUCE || rank == n - 1) {
            if (c->in_place)
                memcpy(out, in + first * size, mine * size);
            check(c, out, first, mine);
        }
        if (rank == 0)
            atomic_fetch_add(p->served, 1);
    } else if (!*p->algo && !*p->proto) {
        test_fail(c->t, "%s", rondo_last_error(c->comm));
    }
    if (c->op >= HARD_PREMUL_MEAN)
        TEST_OK(c->t, c->comm, rondo_op_destroy(op, c->comm));
    free(in);
    free(out);
}

/* Returns false if the algorithm and the protocol cannot go together. */
static bool create(case_t *c, const plan_t *p)
{
    test_rank_t *t = c->t;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id;
    rondo_result_t result;

    test_note(t, "create, '%s' by '%s', %d nodes", p->algo, p->proto, p->nodes);
    if (p->nodes > 1) {
        c->comm = test_comm_on(t, p->nodes);
        return c->comm != NULL;
    }
    config.device = RONDO_DEVICE_HOST;
    test_id(t, &id);
    result = rondo_comm_create(&c->comm, t->nranks, &id, t->rank, &config);
    test_agree(t, (uint64_t)result, "creation");
    if (*p->algo && result != RONDO_SUCCESS && strstr(rondo_last_error(NULL), "RONDO_"))
        return false;
    return TEST_OK(t, NULL, result);
}

static void body(test_rank_t *t, void *arg)
{
    static const size_t counts[] = {1, 48, 1021};
    plan_t *p = arg;
    case_t c = {.t = t};

    if (!create(&c, p))
        return;
    for (int k = 0; k < 4; k++)
        for (int op = 0; op < HARD_OPS; op++)
            for (int coll = 0; coll < COLLS; coll++)
                for (int i = 0; i < 3; i++) {
                    c.type = types[k];
                    c.op = (hard_op_t)op;
                    c.coll = (coll_t)coll;
                    c.count = counts[i];
                    c.in_place = (k + op + coll + i) % 2;
                    run_case(&c, p);
                }
    test_note(t, "destroy");
    TEST_OK(t, NULL, rondo_comm_destroy(c.comm));
}

static int run(plan_t *p, int nranks, int slices)
{
    int kind = nranks % 2 ? TEST_THREADS : TEST_PROCESSES, bad;

    setenv("RONDO_ALGO", p->algo, 1);
    setenv("RONDO_PROTO", p->proto, 1);
    if (slices)
        setenv("RONDO_SLICE_BYTES", "192", 1);
    else
        unsetenv("RONDO_SLICE_BYTES");
    bad = test_run((test_kind_t)kind, nranks, 60, body, p);
    if (bad)
        printf("narrow: WRONG: RONDO_ALGO='%s' RONDO_PROTO='%s'%s, %d %s\n", p->algo, p->proto,
               slices ? " RONDO_SLICE_BYTES=192" : "", nranks, test_kind_name((test_kind_t)kind));
    return bad;
}

static bool reduces(const rd_algo_t *algo)
{
    return (algo->colls & (1u << RD_ALLREDUCE | 1u << RD_REDUCE | 1u << RD_REDUCE_SCATTER)) != 0;
}

/* Three ranks for the fractions that no type holds, four for what doubles. */
int main(int argc, char **argv)
{
    static const int ranks[] = {3, 1, 2, 4, 7};
    int only = argc > 2 && strcmp(argv[1], "--ranks") == 0 ? atoi(argv[2]) : 0, bad = 0;
    plan_t p = {"", "", 1, NULL};

    test_begin("narrow", 250);
    p.served = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p.served == MAP_FAILED)
        return 1;
    for (int i = 0; i < 5 && !bad; i++) {
        if (only && ranks[i] != only)
            continue;
        bad += run(&p, ranks[i], 0) + run(&p, ranks[i], 1);
        plan_t nodes = {"", "", 2, p.served};
        if (ranks[i] > 1 && !bad)
            bad += run(&nodes, ranks[i], i % 2);
        for (const rd_algo_t *const *algo = rd_algos; *algo && i != 1 && i < 4 && !bad; algo++) {
            for (int k = 0; k < 2 && reduces(*algo) && !bad; k++) {
                plan_t forced = {(*algo)->name, protos[k], 1, p.served};
                bad += run(&forced, ranks[i], (i + k) % 2);
            }
        }
    }
    printf("narrow: %d operations: %s\n", atomic_load(p.served), bad ? "WRONG" : "right");
    return bad != 0;
}
