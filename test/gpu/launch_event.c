/* rondo_launch_event_next on GPUs. The event of a collective is there while the collective still waits for a rank, and
 * not before what stands before it in the stream; alone, in a group, whose other operations are launched together as
 * ever, and in a graph, where another stream goes on from it. Where no kernel moves the data the event is recorded in
 * the stream. It is one collective's: not a message's before it, nor the next one's, nor that of one that was refused.
 * All results are right.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/device.h"

#define COUNT 700

static char log_file[] = "/tmp/rondo-gpu-launch_event-XXXXXX";

typedef struct world {
    test_rank_t *t;
    rondo_comm_t comm;
    cudaStream_t stream, beside;
    cudaEvent_t event;
    _Atomic int held;
} world_t;

/* Lines of the log with this text. */
static int lines(const char *text)
{
    char line[1024];
    int found = 0;
    FILE *f = fopen(log_file, "r");

    while (f && fgets(line, sizeof line, f))
        found += strstr(line, text) != NULL;
    if (f)
        fclose(f);
    return found;
}

static void hold(void *held)
{
    while (atomic_load((_Atomic int *)held))
        usleep(100);
}

/* Until `let_go` nothing passes in the stream. */
static void take_hold(world_t *w)
{
    atomic_store(&w->held, 1);
    TEST_CUDA(w->t, cudaLaunchHostFunc(w->stream, hold, &w->held));
}

static void let_go(world_t *w)
{
    atomic_store(&w->held, 0);
}

static do_case_t case_of(do_what_t what, size_t count)
{
    return (do_case_t){.what = what, .type = RONDO_INT32, .op = RONDO_SUM, .count = count};
}

static void recorded(world_t *w, bool is)
{
    const cudaError_t got = cudaEventQuery(w->event), want = is ? cudaErrorNotReady : cudaSuccess;

    if (got != want)
        test_fail(w->t, "%s: the event says '%s', not '%s'", test_noted(w->t), cudaGetErrorString(got),
                  cudaGetErrorString(want));
}

/* Rank 0 calls, and sees its event; only then do the others call, for whom it waits. */
static void while_it_waits(world_t *w, const do_case_t *c, bool grouped)
{
    device_call_t d;

    device_prepare(w->t, &d, c, 0);
    test_barrier(w->t);
    for (int turn = 0; turn < 2; turn++) {
        if ((w->t->rank != 0) == turn) {
            device_fill(w->t, &d, w->stream);
            take_hold(w);
            if (grouped)
                TEST_OK(w->t, w->comm, rondo_group_start());
            TEST_OK(w->t, w->comm, rondo_launch_event_next(w->event));
            TEST_OK(w->t, w->comm, device_post(&d, w->comm, w->stream));
            if (grouped)
                TEST_OK(w->t, w->comm, rondo_group_end());
            recorded(w, true);
            let_go(w);
            TEST_CUDA(w->t, cudaEventSynchronize(w->event)); /* for ever, if it stands behind the collective */
        }
        if (turn == 0 && w->t->rank == 0)
            TEST_TRUE(w->t, cudaStreamQuery(w->stream) == cudaErrorNotReady);
        test_barrier(w->t);
    }
    device_verify(w->t, &d, 1, w->stream);
    device_release(&d);
}

/* Operations of a group: the third has the event, and those before and behind it are launched in pairs. */
static void beside_others(world_t *w)
{
    const do_case_t c = case_of(DO_ALLREDUCE, 300);
    device_call_t d[5];
    int before;

    test_note(w->t, "one of a group");
    for (int i = 0; i < 5; i++)
        device_prepare(w->t, &d[i], &c, 0);
    test_barrier(w->t);
    before = lines("2 operations of a group in one launch");
    test_barrier(w->t);
    for (int i = 0; i < 5; i++)
        device_fill(w->t, &d[i], w->stream);
    take_hold(w);
    TEST_OK(w->t, w->comm, rondo_group_start());
    for (int i = 0; i < 5; i++) {
        if (i == 2)
            TEST_OK(w->t, w->comm, rondo_launch_event_next(w->event));
        TEST_OK(w->t, w->comm, device_post(&d[i], w->comm, w->stream));
    }
    TEST_OK(w->t, w->comm, rondo_group_end());
    recorded(w, true);
    let_go(w);
    for (int i = 0; i < 5; i++) {
        device_verify(w->t, &d[i], 1, w->stream);
        device_release(&d[i]);
    }
    test_barrier(w->t);
    TEST_TRUE(w->t, lines("2 operations of a group in one launch") == before + 2 * w->t->nranks);
}

/* In a graph a branch goes on from the event, while the collective waits. CUDA may let it wait for the collective; the
 * simulated runtime does not. */
static void in_a_graph(world_t *w)
{
    const do_case_t c = case_of(DO_ALLREDUCE, COUNT);
    volatile unsigned char *word = device_memory(w->t, 64, 1);
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    cudaEvent_t join;
    device_call_t d;

    test_note(w->t, "in a graph");
    TEST_CUDA(w->t, cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    device_prepare(w->t, &d, &c, 0);
    TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    device_fill(w->t, &d, w->stream);
    TEST_OK(w->t, w->comm, rondo_launch_event_next(w->event));
    TEST_OK(w->t, w->comm, device_post(&d, w->comm, w->stream));
    TEST_CUDA(w->t, cudaStreamWaitEvent(w->beside, w->event, 0));
    TEST_CUDA(w->t, cudaMemsetAsync((void *)(uintptr_t)word, 1, 1, w->beside));
    TEST_CUDA(w->t, cudaEventRecord(join, w->beside));
    TEST_CUDA(w->t, cudaStreamWaitEvent(w->stream, join, 0));
    TEST_CUDA(w->t, cudaStreamEndCapture(w->stream, &graph));
    TEST_CUDA(w->t, cudaGraphInstantiate(&exec, graph, 0));
    TEST_CUDA(w->t, cudaGraphDestroy(graph));
    for (int replay = 0; replay < 3; replay++) {
        *word = 0;
        device_refill(&d);
        test_barrier(w->t);
        for (int turn = 0; turn < 2; turn++) {
            if ((w->t->rank != 0) == turn)
                TEST_CUDA(w->t, cudaGraphLaunch(exec, w->stream));
            while (sim_live && w->t->rank == 0 && turn == 0 && !*word)
                usleep(100);
            test_barrier(w->t);
        }
        device_verify(w->t, &d, 1, w->stream);
        TEST_TRUE(w->t, *word == 1);
    }
    device_graphs_destroy(w->t, &exec, 1);
    TEST_CUDA(w->t, cudaEventDestroy(join));
    device_release(&d);
    device_memory_back((void *)(uintptr_t)word);
    TEST_CUDA(w->t, cudaEventDestroy(w->event)); /* what a capture has recorded is no event outside of it */
    TEST_CUDA(w->t, cudaEventCreateWithFlags(&w->event, cudaEventDisableTiming));
}

static void without_kernel(world_t *w, const do_case_t *c, const char *text)
{
    device_call_t d;

    test_note(w->t, "%s", text);
    device_prepare(w->t, &d, c, 0);
    test_barrier(w->t);
    device_fill(w->t, &d, w->stream);
    take_hold(w);
    if (c->count)
        TEST_OK(w->t, w->comm, rondo_resources_next(-1, RONDO_CTA_POLICY_ZERO));
    TEST_OK(w->t, w->comm, rondo_launch_event_next(w->event));
    TEST_OK(w->t, w->comm, device_post(&d, w->comm, w->stream));
    recorded(w, true);
    let_go(w);
    TEST_CUDA(w->t, cudaEventSynchronize(w->event));
    device_verify(w->t, &d, 1, w->stream);
    device_release(&d);
}

/* Nobody but the next collective takes it. */
static void of_one_call(world_t *w)
{
    const do_case_t c = case_of(DO_ALLREDUCE, COUNT),
                    shift = {.what = DO_SHIFT, .type = RONDO_INT32, .count = COUNT, .root = 1};
    device_call_t d, m;

    test_note(w->t, "of the next collective alone");
    device_prepare(w->t, &d, &c, 0);
    device_prepare(w->t, &m, &shift, 0);
    test_barrier(w->t);
    device_fill(w->t, &d, w->stream);
    device_fill(w->t, &m, w->stream);
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    TEST_OK(w->t, w->comm, rondo_launch_event_next(w->event));
    TEST_GIVES(w->t, w->comm, RONDO_ERR_INVALID_ARGUMENT,
               rondo_allreduce(NULL, NULL, 1, RONDO_INT32, RONDO_SUM, w->comm, w->stream));
    take_hold(w);
    TEST_OK(w->t, w->comm, device_post(&d, w->comm, w->stream));
    recorded(w, false);
    TEST_OK(w->t, w->comm, rondo_launch_event_next(w->event));
    TEST_OK(w->t, w->comm, device_post(&m, w->comm, w->stream));
    recorded(w, false);
    TEST_OK(w->t, w->comm, device_post(&d, w->comm, w->stream));
    recorded(w, true);
    let_go(w);
    TEST_CUDA(w->t, cudaEventSynchronize(w->event));
    TEST_OK(w->t, w->comm, rondo_launch_event_next(w->event));
    TEST_OK(w->t, w->comm, rondo_launch_event_next(NULL));
    take_hold(w);
    TEST_OK(w->t, w->comm, device_post(&d, w->comm, w->stream));
    recorded(w, false);
    let_go(w);
    device_verify(w->t, &d, 1, w->stream);
    device_verify(w->t, &m, 1, w->stream);
    device_release(&m);
    device_release(&d);
}

static void body(test_rank_t *t, void *arg)
{
    static const do_what_t waiting[] = {DO_ALLREDUCE, DO_REDUCE_SCATTER, DO_ALLGATHER, DO_ALLTOALL, DO_BARRIER};
    const do_case_t empty = case_of(DO_ALLREDUCE, 0), gather = case_of(DO_ALLGATHER, COUNT);
    world_t w = {.t = t, .comm = device_comm(t)};

    (void)arg;
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking));
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w.beside, cudaStreamNonBlocking));
    TEST_CUDA(t, cudaEventCreateWithFlags(&w.event, cudaEventDisableTiming));
    of_one_call(&w);
    for (int i = 0; t->nranks > 1 && i < 10; i++) {
        const do_case_t c = case_of(waiting[i / 2], i / 2 == 0 ? 300000 : COUNT);

        test_note(t, "%s%s", do_name(waiting[i / 2]), i % 2 ? " in a group" : "");
        while_it_waits(&w, &c, i % 2);
    }
    if (t->nranks > 1) {
        beside_others(&w);
        in_a_graph(&w);
    }
    without_kernel(&w, &empty, "no elements");
    without_kernel(&w, &gather, "copy engines, or a single rank");
    TEST_CUDA(t, cudaEventDestroy(w.event));
    device_end(t, w.comm, (cudaStream_t[]){w.stream, w.beside}, 2);
}

int main(void)
{
    int bad = 0, fd = mkstemp(log_file);

    test_begin("launch_event", 240);
    if (device_none())
        return TEST_SKIPPED;
    if (sim_live) /* its few multiprocessors make short banks */
        setenv("RONDO_CUDA_BANK", "4M", 1);
    setenv("RONDO_DEBUG", "trace", 1);
    setenv("RONDO_DEBUG_FILE", log_file, 1);
    for (int ranks = 1; ranks <= 3; ranks++)
        bad |= test_run(TEST_PROCESSES, ranks, 80, body, NULL) != 0;
    bad |= test_run(TEST_THREADS, 2, 80, body, NULL) != 0;
    printf("launch_event: %s\n", bad ? "WRONG" : "right");
    close(fd);
    unlink(log_file);
    return bad;
}
