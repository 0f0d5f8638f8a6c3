/* Random programs on devices: operations on two communicators and three streams, plain, in groups and from graphs that
 * are replayed, in flight together; every result is compared. All ranks draw the same program from a seed.
 *
 *   programs [--seed S] [--ranks N] [--kind processes|threads] [--steps N] [--seconds S]
 *           [--nodes 2+1]
 */
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device.h"
#include "util/runs.h"

#define COMMS 2
#define STREAMS 3
#define FLYING 12 /* operations that have not been waited for */
#define SPENT 32  /* graphs that have been replayed and not been destroyed */
#define STUCK_US 60000000

typedef struct {
    test_runs_t runs;
    int steps, seconds;
} options_t;

typedef struct {
    test_rank_t *t;
    const options_t *options;
    uint64_t random; /* the same on every rank */
    rondo_comm_t comm[COMMS];
    cudaStream_t stream[STREAMS];
    cudaEvent_t fork;
    device_call_t flying[FLYING];
    cudaStream_t where[FLYING];
    cudaEvent_t filled[FLYING], over[FLYING]; /* its input is there; it and what was before it in its stream is over */
    int nflying;
    cudaGraphExec_t spent[SPENT];
    int nspent;
    unsigned operations, groups, graphs, replays;
} program_t;

static void draw(program_t *p, do_case_t *c, int may_be_in_place)
{
    static const rondo_type_t types[] = {RONDO_FLOAT32, RONDO_INT32, RONDO_BFLOAT16, RONDO_FLOAT64, RONDO_UINT8};
    static const size_t counts[] = {1, 5, 64, 333, 2048, 9001};
    uint64_t *r = &p->random;

    memset(c, 0, sizeof *c);
    c->what = (do_what_t)test_below(r, DO_NUM);
    c->type = types[test_below(r, 5)];
    c->op = test_below(r, 4) ? RONDO_SUM : RONDO_MAX;
    c->data = do_reduces(c->what) ? REF_EXACT : REF_BYTES;
    c->count = counts[test_below(r, 6)];
    c->root = (int)test_below(r, (unsigned)p->t->nranks);
    c->seed = test_random(r) >> 32;
    c->skew = do_has_counts(c->what) ? (int)test_below(r, 100) : 0;
    c->in_place = may_be_in_place && test_below(r, 4) == 0 && do_has_in_place(c->what);
}

/* Notes which operations are not over, each with its stream and whether it has its input. The harness prints that when
 * the test is out of time. */
static void note_stuck(program_t *p, int n)
{
    char text[250];
    size_t used = 0;

    text[0] = 0;
    for (int i = 0; i < n && used < sizeof text; i++) {
        int stream = 0;
        while (stream < STREAMS - 1 && p->stream[stream] != p->where[i])
            stream++;
        if (cudaEventQuery(p->over[i]) != cudaSuccess)
            used += (size_t)snprintf(text + used, sizeof text - used, ", %s in %d%s", do_name(p->flying[i].call.c.what),
                                     stream, cudaEventQuery(p->filled[i]) != cudaSuccess ? " without input" : "");
    }
    test_note(p->t, "not over%s", text);
}

/* Waits for the last of n operations. */
static void await(program_t *p, int n)
{
    int64_t until = test_clock_us() + STUCK_US;

    while (cudaEventQuery(p->over[n - 1]) == cudaErrorNotReady) {
        if (test_clock_us() > until) {
            note_stuck(p, n);
            TEST_CUDA(p->t, cudaEventSynchronize(p->over[n - 1]));
        }
        sched_yield();
    }
}

/* Waits for everything, the last first, and compares. */
static void settle(program_t *p)
{
    char text[200];

    while (p->nflying) {
        device_call_t *d = &p->flying[p->nflying - 1];
        do_text(&d->call.c, text, sizeof text);
        test_note(p->t, "verify %s", text);
        await(p, p->nflying--);
        device_verify(p->t, d, 1, p->where[p->nflying]);
        device_release(d);
    }
    if (test_failures(p->t) > 10)
        test_stop(p->t, "too many failures");
}

static device_call_t *next_call(program_t *p, cudaStream_t stream, int may_be_in_place)
{
    do_case_t c;
    char text[200];

    draw(p, &c, may_be_in_place);
    do_text(&c, text, sizeof text);
    test_note(p->t, "%s", text);
    device_call_t *d = &p->flying[p->nflying];
    p->where[p->nflying++] = stream;
    device_prepare(p->t, d, &c, 0);
    device_fill(p->t, d, stream);
    TEST_CUDA(p->t, cudaEventRecord(p->filled[p->nflying - 1], stream));
    p->operations++;
    return d;
}

/* The last n operations have been started. */
static void started(program_t *p, int n)
{
    for (int i = p->nflying - n; i < p->nflying; i++)
        TEST_CUDA(p->t, cudaEventRecord(p->over[i], p->where[i]));
}

static void post(program_t *p, device_call_t *d, int comm, cudaStream_t stream)
{
    if (!TEST_OK(p->t, p->comm[comm], device_post(d, p->comm[comm], stream)))
        test_stop(p->t, "cannot go on");
}

static void plain(program_t *p)
{
    int comm = (int)test_below(&p->random, COMMS);
    cudaStream_t stream = p->stream[test_below(&p->random, STREAMS)];

    if (p->nflying == FLYING)
        settle(p);
    post(p, next_call(p, stream, 1), comm, stream);
    started(p, 1);
}

static void group(program_t *p)
{
    unsigned n = 1 + test_below(&p->random, 5);
    rondo_request_t request = NULL;
    int later = (int)test_below(&p->random, 2);

    if (p->nflying + (int)n > FLYING)
        settle(p);
    TEST_OK(p->t, NULL, rondo_group_start());
    for (unsigned i = 0; i < n; i++) {
        int comm = (int)test_below(&p->random, COMMS);
        cudaStream_t stream = p->stream[test_below(&p->random, STREAMS)];
        post(p, next_call(p, stream, 1), comm, stream);
    }
    if (later) {
        TEST_OK(p->t, NULL, rondo_group_submit(&request));
        TEST_OK(p->t, NULL, rondo_request_wait(&request));
    } else {
        TEST_OK(p->t, NULL, rondo_group_end());
    }
    started(p, (int)n);
    p->groups++;
}

/* All ranks are here at the same step. */
static void destroy_spent(program_t *p)
{
    settle(p);
    device_graphs_destroy(p->t, p->spent, p->nspent);
    p->nspent = 0;
}

/* Do ranks of this process share a GPU? CUDA runs branches of their graphs in queues of its own, few enough that a
 * branch of one rank's graph comes to stand behind a branch of another's, which waits for it. */
static int shares(const test_rank_t *t)
{
    int count;

    if (sim_live || t->kind != TEST_THREADS)
        return 0;
    return cudaGetDeviceCount(&count) == cudaSuccess && count < t->nranks;
}

/* Operations of one or two streams, captured, and replayed with plain calls in between. */
static void graph(program_t *p)
{
    test_rank_t *t = p->t;
    unsigned n = 1 + test_below(&p->random, 4), times = 1 + test_below(&p->random, 3);
    cudaStream_t origin = p->stream[0], other = p->stream[1], into = p->stream[test_below(&p->random, STREAMS)];
    enum cudaStreamCaptureMode mode =
        test_below(&p->random, 2) ? cudaStreamCaptureModeRelaxed : cudaStreamCaptureModeThreadLocal;
    int two = (int)test_below(&p->random, 2) && !shares(t), grouped = (int)test_below(&p->random, 3) == 0;
    cudaGraphExec_t exec;
    cudaGraph_t made;

    settle(p);
    for (unsigned i = 0; i < n; i++)
        next_call(p, origin, 0);
    TEST_CUDA(t, cudaStreamSynchronize(origin));
    TEST_CUDA(t, cudaStreamBeginCapture(origin, mode));
    if (two) {
        TEST_CUDA(t, cudaEventRecord(p->fork, origin));
        TEST_CUDA(t, cudaStreamWaitEvent(other, p->fork, 0));
    }
    if (grouped)
        TEST_OK(t, NULL, rondo_group_start());
    for (unsigned i = 0; i < n; i++) {
        cudaStream_t stream = two && test_below(&p->random, 2) ? other : origin;
        post(p, &p->flying[i], (int)test_below(&p->random, COMMS), stream);
    }
    if (grouped)
        TEST_OK(t, NULL, rondo_group_end());
    if (two) {
        TEST_CUDA(t, cudaEventRecord(p->fork, other));
        TEST_CUDA(t, cudaStreamWaitEvent(origin, p->fork, 0));
    }
    TEST_CUDA(t, cudaStreamEndCapture(origin, &made));
    TEST_CUDA(t, cudaGraphInstantiate(&exec, made, 0));
    TEST_CUDA(t, cudaGraphDestroy(made));
    test_barrier(t); /* as long as others instantiate theirs, which may wait for what runs on the device */
    for (unsigned k = 0; k < times; k++) {
        for (unsigned i = 0; i < n; i++)
            device_fill(t, &p->flying[i], into);
        TEST_CUDA(t, cudaGraphLaunch(exec, into));
        if (p->nflying < FLYING)
            plain(p);
        p->replays++;
    }
    for (unsigned i = 0; i < n; i++) {
        p->where[i] = into;
        TEST_CUDA(t, cudaEventRecord(p->over[i], into));
    }
    settle(p);
    p->spent[p->nspent++] = exec;
    if (p->nspent == SPENT)
        destroy_spent(p);
    p->graphs++;
}

static void body(test_rank_t *t, void *arg)
{
    program_t p = {.t = t, .options = arg};
    int64_t until = test_clock_us() + (int64_t)p.options->seconds * 1000000;

    p.random = p.options->runs.seed * 1000 + (uint64_t)t->nranks * 2 + t->kind;
    for (int i = 0; i < COMMS; i++)
        p.comm[i] = device_comm(t);
    for (int i = 0; i < STREAMS; i++)
        TEST_CUDA(t, cudaStreamCreateWithFlags(&p.stream[i], cudaStreamNonBlocking));
    TEST_CUDA(t, cudaEventCreateWithFlags(&p.fork, cudaEventDisableTiming));
    for (int i = 0; i < FLYING; i++) {
        TEST_CUDA(t, cudaEventCreateWithFlags(&p.filled[i], cudaEventDisableTiming));
        TEST_CUDA(t, cudaEventCreateWithFlags(&p.over[i], cudaEventDisableTiming));
    }
    test_barrier(t);
    for (int step = 0; step < p.options->steps; step++) {
        unsigned dice = test_below(&p.random, 10);
        if (p.options->seconds && step % 50 == 49) { /* one clock for all */
            rondo_result_t result;
            float *over = device_memory(t, sizeof *over, 2);
            *over = test_clock_us() > until;
            result = rondo_allreduce(over, over, 1, RONDO_FLOAT32, RONDO_MAX, p.comm[0], p.stream[0]);
            TEST_CUDA(t, cudaStreamSynchronize(p.stream[0]));
            float end = *over;
            device_memory_back(over);
            if (!TEST_OK(t, p.comm[0], result) || end != 0)
                break;
        }
        if (dice < 6)
            plain(&p);
        else if (dice < 8)
            group(&p);
        else
            graph(&p);
    }
    destroy_spent(&p);
    test_note(t, "destroy");
    for (int i = 0; i < COMMS; i++)
        TEST_OK(t, NULL, rondo_comm_destroy(p.comm[i]));
    device_finish(t);
    for (int i = 0; i < STREAMS; i++)
        TEST_CUDA(t, cudaStreamDestroy(p.stream[i]));
    TEST_CUDA(t, cudaEventDestroy(p.fork));
    for (int i = 0; i < FLYING; i++) {
        TEST_CUDA(t, cudaEventDestroy(p.filled[i]));
        TEST_CUDA(t, cudaEventDestroy(p.over[i]));
    }
    if (t->rank == 0)
        printf("programs: %u operations, %u groups, %u graphs, %u replays\n", p.operations, p.groups, p.graphs,
               p.replays);
}

static bool read_options(options_t *o, int argc, char **argv)
{
    static const struct option table[] = {TEST_RUNS_OPTIONS, {"steps", 1, NULL, 'p'}, {"seconds", 1, NULL, 't'}, {0}};
    int option;

    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1)
        if (option == 'p') {
            o->steps = atoi(optarg);
        } else if (option == 't') {
            o->seconds = atoi(optarg);
            o->steps = 1 << 30;
        } else if (!test_runs_option(&o->runs, option)) {
            return false;
        }
    return true;
}

int main(int argc, char **argv)
{
    options_t o = {.runs = {.name = "programs", .seed = 31, .kinds = TEST_ALL_KINDS, .nodes = device_nodes},
                   .steps = 24};
    int bad = 0;

    if (!read_options(&o, argc, argv))
        return 2;
    test_begin("programs", 400 + 4 * o.seconds);
    if (device_none())
        return TEST_SKIPPED;
    for (int nranks = 2; nranks <= (o.runs.ranks > 4 ? o.runs.ranks : 4) && bad == 0; nranks++)
        for (int kind = TEST_PROCESSES; kind <= TEST_THREADS && bad == 0; kind++)
            if (test_runs_has(&o.runs, nranks, (test_kind_t)kind))
                bad += test_runs_run(&o.runs, nranks, (test_kind_t)kind, 300 + o.seconds, body, &o);
    return bad != 0;
}
