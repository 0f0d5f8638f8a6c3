/* Every operation, type and operator, in and out of place, at odd sizes and offsets, against the plain reference, on 1
 * to 8 ranks that are processes or threads. Exact data for the values, rounding data for equality of all ranks' bits
 * and for repeating, NaN and signed zeros for MIN and MAX. Guards round every buffer show a write too many.
 *
 *   op_matrix [--seed S] [--ranks N] [--kind processes|threads] [--operation NAME] [--all] [--verbose]
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>

#include "util/harness.h"
#include "util/operation.h"
#include "util/runs.h"

typedef struct {
    test_runs_t runs;
    int operation; /* -1: all */
    bool verbose, all;
} options_t;

typedef struct {
    test_rank_t *t;
    const options_t *options;
    rondo_comm_t comm;
    uint64_t random; /* the same on every rank */
    unsigned cases;
} walk_t;

static const size_t sizes[] = {1, 2, 3, 7, 17, 0, 1000, 4097};
#define NUM_SIZES (sizeof sizes / sizeof sizes[0])

/* Runs the case twice: the second run must give the first one's bits. */
static void run_case(walk_t *w, const do_case_t *c)
{
    test_rank_t *t = w->t;
    char text[200], wrong[256];
    do_call_t call;
    uint64_t hash;
    int values;

    if (w->options->operation >= 0 && w->options->operation != (int)c->what)
        return;
    do_text(c, text, sizeof text);
    test_note(t, "%s", text);
    if (w->options->verbose && t->rank == 0)
        printf("%s\n", text);
    if (do_prepare(&call, c, t->rank, t->nranks) != 0)
        test_stop(t, "no memory for %s", text);
    if (!TEST_OK(t, w->comm, do_post(&call, w->comm)))
        test_stop(t, "cannot go on");
    /* All ranks' bits are equal, so one of them compares the values. */
    values = c->what != DO_ALLREDUCE || (int)(w->cases++ % (unsigned)t->nranks) == t->rank;
    if (do_verify(&call, values, wrong, sizeof wrong) != 0)
        test_fail(t, "%s", wrong);
    hash = do_hash(&call);
    if (hash)
        test_agree(t, hash, text);
    if (c->data == REF_ROUNDING && c->what == DO_ALLREDUCE) {
        do_refill(&call);
        if (!TEST_OK(t, w->comm, do_post(&call, w->comm)) || do_hash(&call) != hash)
            test_fail(t, "the second run of the same call gave other bits");
    }
    do_release(&call);
    if (test_failures(t) > 50)
        test_stop(t, "too many failures");
}

static void draw(walk_t *w, do_case_t *c, int variant)
{
    int nranks = w->t->nranks;

    c->seed = test_random(&w->random) >> 32;
    c->root = (int)test_below(&w->random, (unsigned)nranks);
    c->in_place = variant & 1 && do_has_in_place(c->what);
    /* By one byte, by one element, or not at all. */
    c->send_shift = variant & 2 ? 1 : variant & 4 ? (int)ref_size(c->type) : 0;
    c->recv_shift = variant & 4 ? 1 : variant & 2 ? (int)ref_size(c->type) : 0;
    c->skew = do_has_counts(c->what) && variant & 3 ? (int)test_below(&w->random, 1000) : 0;
}

/* Many ranks take their time on few cores: each number of them, as processes and as threads, has another half or sixth
 * of the cases. Every case is somebody's among 3 and 4 ranks, and somebody's among 5 to 8. */
static int left_out(const walk_t *w, int number)
{
    int parts = w->options->all || w->t->nranks < 3 ? 1 : w->t->nranks < 5 ? 2 : 6;

    return (number + w->t->nranks * 2 + (int)w->t->kind) % parts != 0;
}

static void walk_reductions(walk_t *w, do_what_t what)
{
    do_case_t c = {.what = what};
    int type, op, k;

    for (type = 0; type < RONDO_NUM_TYPES; type++)
        for (op = 0; op < RONDO_NUM_OPS; op++) {
            if (!ref_valid((rondo_type_t)type, op))
                continue;
            c.type = (rondo_type_t)type;
            c.op = op;
            for (k = 0; k < (int)NUM_SIZES; k++) {
                if (left_out(w, type + op + k))
                    continue;
                c.count = sizes[k];
                c.data = REF_EXACT;
                draw(w, &c, k + op + (int)test_below(&w->random, 8));
                run_case(w, &c);
                if (!ref_is_float(c.type) || k % 3 != 1)
                    continue;
                c.data = op == RONDO_MIN || op == RONDO_MAX ? REF_SPECIAL : REF_ROUNDING;
                draw(w, &c, k + op);
                run_case(w, &c);
            }
        }
}

static void walk_moves(walk_t *w, do_what_t what)
{
    do_case_t c = {.what = what, .data = REF_BYTES};
    int type, k, variant;

    for (type = 0; type < RONDO_NUM_TYPES; type++)
        for (k = 0; k < (int)NUM_SIZES; k++)
            for (variant = 0; variant < (type == RONDO_FLOAT32 ? 8 : 2); variant++) {
                if (left_out(w, type + k + variant))
                    continue;
                c.type = (rondo_type_t)type;
                c.count = sizes[k];
                draw(w, &c, type == RONDO_FLOAT32 ? variant : variant + k + type);
                run_case(w, &c);
            }
}

/* Longer than all slots of a connection together, and not a multiple of anything. */
static void walk_long(walk_t *w)
{
    static const rondo_type_t few[] = {RONDO_INT8, RONDO_BFLOAT16, RONDO_FLOAT32, RONDO_COMPLEX128};
    do_case_t c = {.op = RONDO_SUM};
    int what, k;

    for (what = 0; what < DO_BARRIER; what++)
        for (k = 0; k < 2; k++) {
            c.what = (do_what_t)what;
            c.type = few[(what + k + w->t->nranks) % 4];
            c.data = do_reduces(c.what) ? (k ? REF_ROUNDING : REF_EXACT) : REF_BYTES;
            c.count = w->t->nranks <= 4 || c.what == DO_ALLREDUCE || c.what == DO_BROADCAST ? 300001 : 70001;
            draw(w, &c, k ? 3 : 4);
            if (c.data == REF_ROUNDING && !ref_is_float(c.type))
                c.data = REF_EXACT;
            run_case(w, &c);
        }
}

/* Zero and tiny counts one after another on one connection, from all roots: credits and counters must not slip. */
static void walk_roots(walk_t *w)
{
    do_case_t c = {.type = RONDO_INT32, .op = RONDO_SUM};
    int what, root;

    for (what = 0; what < DO_NUM; what++)
        for (root = 0; root < w->t->nranks; root++) {
            c.what = (do_what_t)what;
            c.data = do_reduces(c.what) ? REF_EXACT : REF_BYTES;
            c.count = (size_t)(root * 5 % 4);
            draw(w, &c, root);
            c.root = root;
            run_case(w, &c);
        }
}

static void body(test_rank_t *t, void *arg)
{
    walk_t w = {t, arg, NULL, 0, 0};
    int what;

    w.options = arg;
    w.random = w.options->runs.seed * 1000 + (uint64_t)t->nranks * 2 + t->kind;
    w.comm = test_comm(t, NULL);
    walk_roots(&w);
    for (what = 0; what < DO_BARRIER; what++)
        if (do_reduces((do_what_t)what))
            walk_reductions(&w, (do_what_t)what);
        else
            walk_moves(&w, (do_what_t)what);
    walk_long(&w);
    test_note(t, "destroy");
    TEST_OK(t, NULL, rondo_comm_destroy(w.comm));
}

static bool read_options(options_t *o, int argc, char **argv)
{
    static const struct option table[] = {
        TEST_RUNS_OPTIONS, {"operation", 1, NULL, 'o'}, {"verbose", 0, NULL, 'v'}, {"all", 0, NULL, 'a'}, {0}};
    int option;

    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1)
        if (option == 'a')
            o->all = true;
        else if (option == 'v')
            o->verbose = true;
        else if (option == 'o' && do_named(optarg) < DO_NUM)
            o->operation = do_named(optarg);
        else if (!test_runs_option(&o->runs, option))
            return false;
    return true;
}

int main(int argc, char **argv)
{
    options_t o = {.runs = {.name = "op_matrix", .seed = 20, .kinds = TEST_ALL_KINDS}, .operation = -1};
    int bad = 0;

    if (!read_options(&o, argc, argv))
        return 2;
    test_begin("op_matrix", 280);
    for (int nranks = 1; nranks <= 8 && bad == 0; nranks++)
        for (int kind = TEST_PROCESSES; kind <= TEST_THREADS && bad == 0; kind++)
            if (test_runs_has(&o.runs, nranks, (test_kind_t)kind))
                bad += test_runs_run(&o.runs, nranks, (test_kind_t)kind, 120, body, &o);
    return bad != 0;
}
