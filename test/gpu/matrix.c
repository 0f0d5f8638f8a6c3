/* Every operation, type and operator on device buffers, in and out of place, at odd sizes and offsets, against the
 * plain reference; ranks are threads or processes, on as many devices as there are. Each case runs on one of two
 * streams.
 *
 *   matrix [--seed S] [--ranks N] [--kind processes|threads] [--operation NAME] [--share K/OF]
 *          [--forced ALGO/PROTO,...] [--nodes 2+1] [--verbose]
 *
 * With --nodes, ranks are processes on nodes that are played: so many on the first, so many on the second.
 * With --forced, cases that the algorithm or the protocol cannot serve must be refused, and the others be right.
 * Several go one after the other, each on a communicator of its own: most of a short walk's time is the start of its
 * ranks.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device.h"
#include "util/runs.h"

typedef struct {
    test_runs_t runs;
    int operation; /* -1: all */
    bool verbose;
    const char *forced; /* "ring/ll128,tree/ll"; NULL: as rondo chooses */
    unsigned share, of; /* every of-th case, from `share` on; 0: few, others for each number of ranks */
} options_t;

typedef struct {
    test_rank_t *t;
    const options_t *options;
    rondo_comm_t comm;
    cudaStream_t stream[2];
    uint64_t random; /* the same on every rank */
    unsigned cases, ran, refused;
} walk_t;

static const size_t sizes[] = {1, 3, 17, 0, 1000, 4097};
#define NUM_SIZES (int)(sizeof sizes / sizeof sizes[0])

static void run_case(walk_t *w, do_case_t *c, int variant)
{
    static const char *const kinds[] = {"device", "pinned", "managed"};
    int kind = variant >> 4 & 1 ? (variant & 3) % 3 : 0;
    test_rank_t *t = w->t;
    cudaStream_t stream = w->stream[variant >> 3 & 1];
    char text[200];
    device_call_t d;
    uint64_t hash;

    c->seed = test_random(&w->random) >> 32;
    c->root = (int)test_below(&w->random, (unsigned)t->nranks);
    c->in_place = variant & 1 && do_has_in_place(c->what);
    c->send_shift = variant & 2 ? 1 : variant & 4 ? (int)ref_size(c->type) : 0;
    c->recv_shift = variant & 4 ? 1 : variant & 2 ? (int)ref_size(c->type) : 0;
    c->skew = do_has_counts(c->what) && variant & 3 ? (int)test_below(&w->random, 1000) : 0;
    if (w->cases++ % w->options->of != w->options->share ||
        (w->options->operation >= 0 && w->options->operation != (int)c->what))
        return;
    w->ran++;
    do_text(c, text, sizeof text);
    if (w->options->verbose && t->rank == 0)
        printf("%s, %s memory, stream %d\n", text, kinds[kind], variant >> 3 & 1);
    test_note(t, "%s, %s memory: prepare", text, kinds[kind]);
    device_prepare(t, &d, c, kind);
    device_fill(t, &d, stream);
    test_note(t, "%s, %s memory", text, kinds[kind]);
    rondo_result_t result = device_post(&d, w->comm, stream);
    if (result == RONDO_ERR_UNSUPPORTED && w->options->forced) {
        w->refused++;
        TEST_CUDA(t, cudaStreamSynchronize(stream)); /* the input is on its way */
        device_release(&d);
        return;
    }
    if (!TEST_OK(t, w->comm, result))
        test_stop(t, "cannot go on");
    device_verify(t, &d, c->what != DO_ALLREDUCE || (int)(w->ran % (unsigned)t->nranks) == t->rank, stream);
    hash = do_hash(&d.call);
    if (hash)
        test_agree(t, hash, text);
    device_release(&d);
    if (test_failures(t) > 20)
        test_stop(t, "too many failures");
}

static void walk_reductions(walk_t *w, do_what_t what)
{
    do_case_t c = {.what = what};

    for (int type = 0; type < RONDO_NUM_TYPES; type++)
        for (int op = 0; op < RONDO_NUM_OPS; op++) {
            if (!ref_valid((rondo_type_t)type, op))
                continue;
            c.type = (rondo_type_t)type;
            c.op = op;
            for (int k = 0; k < NUM_SIZES; k++) {
                int special = op == RONDO_MIN || op == RONDO_MAX;
                c.count = sizes[k];
                c.data = REF_EXACT;
                run_case(w, &c, (int)test_below(&w->random, 32));
                if (!ref_is_float(c.type) || k % 3 != 1)
                    continue;
                c.data = special ? REF_SPECIAL : REF_ROUNDING;
                run_case(w, &c, (int)test_below(&w->random, 32));
            }
        }
}

static void walk_moves(walk_t *w, do_what_t what)
{
    do_case_t c = {.what = what, .data = REF_BYTES};

    for (int type = 0; type < RONDO_NUM_TYPES; type++)
        for (int k = 0; k < NUM_SIZES; k++) {
            c.type = (rondo_type_t)type;
            c.count = sizes[k];
            run_case(w, &c, (int)test_below(&w->random, 32));
        }
}

/* Longer than a bank, so that there are several passes, and not a multiple of anything. */
static void walk_long(walk_t *w)
{
    static const rondo_type_t few[] = {RONDO_INT8, RONDO_BFLOAT16, RONDO_FLOAT32, RONDO_COMPLEX128};
    do_case_t c = {.op = RONDO_SUM};

    for (int what = 0; what < DO_BARRIER; what++)
        for (int k = 0; k < 4; k++) {
            c.what = (do_what_t)what;
            c.type = few[k];
            c.data = do_reduces(c.what) ? REF_EXACT : REF_BYTES;
            c.count = 30001;
            run_case(w, &c, (int)test_below(&w->random, 32));
        }
}

static void walk(test_rank_t *t, const options_t *options, const char *forced)
{
    walk_t w = {.t = t, .options = options};

    w.random = options->runs.seed * 1000 + (uint64_t)t->nranks * 2 + t->kind;
    w.comm = device_comm(t);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w.stream[0], cudaStreamNonBlocking));
    TEST_CUDA(t, cudaStreamCreate(&w.stream[1]));
    for (int what = 0; what < DO_NUM; what++)
        if (do_reduces((do_what_t)what))
            walk_reductions(&w, (do_what_t)what);
        else
            walk_moves(&w, (do_what_t)what);
    walk_long(&w);
    test_note(t, "destroy");
    device_end(t, w.comm, w.stream, 2);
    if (t->rank == 0)
        printf("matrix: %u of %u cases, %u of them refused%s%s\n", w.ran, w.cases, w.refused, *forced ? ", " : "",
               forced);
}

/* "ring/ll128": for every operation that has it. Threads share the environment, so all wait while one of them sets it.
 */
static void force(test_rank_t *t, char *forced)
{
    char *slash = strchr(forced, '/');

    test_barrier(t);
    if (t->rank == 0 || t->kind == TEST_PROCESSES) {
        *slash = '\0';
        if (setenv("RONDO_ALGO", forced, 1) != 0 || setenv("RONDO_PROTO", slash + 1, 1) != 0)
            test_stop(t, "setenv failed");
        *slash = '/';
    }
    test_barrier(t);
}

static void body(test_rank_t *t, void *arg)
{
    const options_t *o = arg;
    char list[1000], *rest = list, *forced;

    if (!o->forced) {
        walk(t, o, "");
        return;
    }
    snprintf(list, sizeof list, "%s", o->forced);
    while ((forced = strsep(&rest, ",")) && test_failures(t) == 0) {
        force(t, forced);
        walk(t, o, forced);
    }
}

/* Is that "ALGO/PROTO,...", and does body() have room for it? */
static bool forced_valid(const char *list)
{
    char copy[1000], *rest = copy, *one;

    if (snprintf(copy, sizeof copy, "%s", list) >= (int)sizeof copy)
        return false;
    while ((one = strsep(&rest, ",")))
        if (!strchr(one, '/'))
            return false;
    return true;
}

static bool read_share(options_t *o, const char *text)
{
    return sscanf(text, "%u/%u", &o->share, &o->of) == 2 && o->of > 0 && o->share < o->of;
}

static bool read_options(options_t *o, int argc, char **argv)
{
    static const struct option table[] = {TEST_RUNS_OPTIONS,        {"operation", 1, NULL, 'o'},
                                          {"share", 1, NULL, 'p'},  {"verbose", 0, NULL, 'v'},
                                          {"forced", 1, NULL, 'f'}, {0}};
    int option;

    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1)
        if (option == 'v')
            o->verbose = true;
        else if (option == 'f' && forced_valid(optarg))
            o->forced = optarg;
        else if (option == 'p' && read_share(o, optarg))
            continue;
        else if (option == 'o' && do_named(optarg) < DO_NUM)
            o->operation = do_named(optarg);
        else if (!test_runs_option(&o->runs, option))
            return false;
    return true;
}

/* Blocks without elements, of a single rank: nothing is launched, and the communicator is what it was. */
static void nothing_alone(test_rank_t *t, void *arg)
{
    const size_t none[] = {0};
    const float factor = 2;
    rondo_op_t op;
    cudaStream_t stream;
    rondo_comm_t comm = device_comm(t);
    float *x;

    (void)arg;
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TEST_CUDA(t, cudaMalloc((void **)&x, 2 * sizeof *x));
    TEST_OK(t, comm, rondo_op_create_premulsum(&op, &factor, RONDO_FLOAT32, 0, comm));
    TEST_OK(t, comm, rondo_reduce_scatterv(x, x + 1, none, RONDO_FLOAT32, op, comm, stream));
    TEST_OK(t, comm, rondo_allreduce(x, x + 1, 0, RONDO_FLOAT32, op, comm, stream));
    TEST_OK(t, comm, rondo_allreduce(x, x + 1, 1, RONDO_FLOAT32, op, comm, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    TEST_OK(t, comm, rondo_op_destroy(op, comm));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    TEST_CUDA(t, cudaFree(x));
    TEST_CUDA(t, cudaStreamDestroy(stream));
    device_finish(t);
}

/* Without --ranks some are left out: they take long, and show little that others do not. */
static bool runs(const options_t *o, int nranks, test_kind_t kind)
{
    if (o->runs.ranks == 0 && (nranks == 6 || nranks == 7 || (kind == TEST_PROCESSES && nranks % 2)))
        return false;
    return test_runs_has(&o->runs, nranks, kind);
}

int main(int argc, char **argv)
{
    options_t o = {.runs = {.name = "matrix", .seed = 20, .kinds = TEST_ALL_KINDS, .nodes = device_nodes},
                   .operation = -1};
    int bad = 0;

    if (!read_options(&o, argc, argv))
        return 2;
    test_begin("matrix", 500);
    if (device_none())
        return TEST_SKIPPED;
    if (!o.runs.ranks)
        bad += test_run(TEST_PROCESSES, 1, 60, nothing_alone, NULL);
    for (int nranks = 1; nranks <= (o.runs.ranks > 8 ? o.runs.ranks : 8) && bad == 0; nranks++)
        for (int kind = TEST_PROCESSES; kind <= TEST_THREADS && bad == 0; kind++) {
            options_t few = o;
            if (!runs(&o, nranks, (test_kind_t)kind))
                continue;
            if (!o.of) {
                few.of = nranks < 4 ? 40 : 100;
                few.share = (unsigned)(nranks * 2 + kind) % few.of;
            }
            bad += test_runs_run(&o.runs, nranks, (test_kind_t)kind, 400, body, &few);
        }
    return bad != 0;
}
