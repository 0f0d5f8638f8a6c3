/* Collectives by copy engines out of buffers that nobody has registered, which RONDO_CTA_POLICY_ZERO wants: right at
 * any length and offset, in place or not, in turns, between operations by kernels, which use the same memory, in groups
 * and from graphs. Threads of one process go by kernels. The log says what goes by copies, and once of each of the
 * others that it does not. What some ranks have registered goes this way, too, but ranks whose buffers are not alike
 * are told so.
 *
 *   staging [--seed S]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/device.h"

#define ROUNDS 40
#define GRAPHS 5

static const do_what_t by_copies[] = {DO_ALLGATHER, DO_ALLTOALL, DO_BROADCAST, DO_GATHER, DO_SCATTER};
#define COPIES (int)(sizeof by_copies / sizeof by_copies[0])
static const do_what_t by_kernels[] = {DO_ALLREDUCE, DO_REDUCE_SCATTER, DO_ALLTOALLV, DO_SHIFT, DO_BARRIER};
#define KERNELS (int)(sizeof by_kernels / sizeof by_kernels[0])

typedef struct world {
    test_rank_t *t;
    rondo_comm_t comm;
    cudaStream_t stream;
    uint64_t random; /* the same on every rank */
} world_t;

static void world_open(world_t *w, test_rank_t *t, uint64_t seed)
{
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.cta_policy = RONDO_CTA_POLICY_ZERO;
    *w = (world_t){.t = t, .random = seed * 1000 + (uint64_t)t->nranks};
    w->comm = device_comm_config(t, config);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking));
}

static void world_close(world_t *w)
{
    device_end(w->t, w->comm, &w->stream, 1);
}

static do_case_t draw(world_t *w, do_what_t what)
{
    static const size_t counts[] = {1, 17, 1000, 4097, 20011};
    unsigned n = (unsigned)w->t->nranks;
    do_case_t c = {.what = what, .type = RONDO_INT32, .op = RONDO_SUM};

    c.count = counts[test_below(&w->random, sizeof counts / sizeof counts[0])];
    c.root = what == DO_SHIFT ? 1 : (int)test_below(&w->random, n);
    c.in_place = do_has_in_place(what) && test_below(&w->random, 2);
    c.send_shift = test_below(&w->random, 2) ? 4 : 0;
    c.recv_shift = test_below(&w->random, 2) ? 4 : 0;
    c.seed = test_random(&w->random) >> 32;
    return c;
}

static void hold(void *milliseconds)
{
    usleep(1000u * *(unsigned *)milliseconds);
}

/* ---- parts ---- */

/* One of three operations is by kernels. */
static void rounds(test_rank_t *t, void *arg)
{
    static unsigned pause = 2; /* milliseconds */
    char text[200];
    device_call_t d;
    world_t w;

    world_open(&w, t, *(const uint64_t *)arg);
    for (int round = 0; round < ROUNDS; round++) {
        const int copies = test_below(&w.random, 3) != 0, grouped = test_below(&w.random, 4) == 0;
        const int late = (int)test_below(&w.random, 3 * (unsigned)t->nranks);
        const do_case_t c =
            draw(&w, copies ? by_copies[test_below(&w.random, COPIES)] : by_kernels[test_below(&w.random, KERNELS)]);

        do_text(&c, text, sizeof text);
        test_note(t, "round %d: %s", round, text);
        device_prepare(t, &d, &c, 0);
        test_barrier(t); /* what CUDA allocates may wait for kernels, which wait for each other */
        device_fill(t, &d, w.stream);
        if (late == t->rank)
            TEST_CUDA(t, cudaLaunchHostFunc(w.stream, hold, &pause));
        if (grouped)
            TEST_OK(t, NULL, rondo_group_start());
        TEST_OK(t, w.comm, device_post(&d, w.comm, w.stream));
        if (grouped)
            TEST_OK(t, NULL, rondo_group_end());
        device_verify(t, &d, 1, w.stream);
        device_release(&d);
    }
    world_close(&w);
}

/* Each graph holds one operation, with its input's way there before it. */
static void graphs(test_rank_t *t, void *arg)
{
    cudaGraphExec_t exec[COPIES];
    device_call_t d[COPIES];
    cudaGraph_t graph;
    world_t w;

    world_open(&w, t, *(const uint64_t *)arg);
    for (int i = 0; i < COPIES; i++) {
        const do_case_t c = draw(&w, by_copies[i]);

        device_prepare(t, &d[i], &c, 0);
        TEST_CUDA(t, cudaStreamBeginCapture(w.stream, cudaStreamCaptureModeThreadLocal));
        device_fill(t, &d[i], w.stream);
        TEST_OK(t, w.comm, device_post(&d[i], w.comm, w.stream));
        TEST_CUDA(t, cudaStreamEndCapture(w.stream, &graph));
        TEST_CUDA(t, cudaGraphInstantiate(&exec[i], graph, 0));
        TEST_CUDA(t, cudaGraphDestroy(graph));
    }
    test_barrier(t); /* as above */
    for (int i = 0; i < GRAPHS * COPIES; i++) {
        test_note(t, "replay %d of %s", i / COPIES, do_name(by_copies[i % COPIES]));
        device_refill(&d[i % COPIES]);
        if (i % 4 == 1) { /* a plain call in between */
            device_fill(t, &d[i % COPIES], w.stream);
            TEST_OK(t, w.comm, device_post(&d[i % COPIES], w.comm, w.stream));
        } else {
            TEST_CUDA(t, cudaGraphLaunch(exec[i % COPIES], w.stream));
        }
        device_verify(t, &d[i % COPIES], 1, w.stream);
    }
    device_graphs_destroy(t, exec, COPIES);
    for (int i = 0; i < COPIES; i++)
        device_release(&d[i]);
    world_close(&w);
}

/* Rank 0 alone has registered what it reads: nobody's is read where it lies. Then all have, and rank 1 calls with
 * memory that it has not. */
static void registered(test_rank_t *t, void *arg)
{
    const size_t count = 3000, bytes = count * sizeof(int);
    rondo_registration_t reg;
    rondo_result_t error = RONDO_SUCCESS;
    int *buffer, *plain, *out, *host;
    world_t w;

    world_open(&w, t, *(const uint64_t *)arg);
    buffer = device_memory(t, bytes, 0);
    plain = device_memory(t, bytes, 0);
    out = device_memory(t, bytes * (size_t)t->nranks, 0);
    host = device_memory(t, bytes * (size_t)t->nranks, 1);
    for (int turn = 0; turn < 3; turn++) {
        const int mine = turn > 0 || t->rank == 0;

        if (turn < 2)
            TEST_OK(t, w.comm, rondo_comm_register(w.comm, mine ? buffer : NULL, mine ? bytes : 0, &reg));
        for (size_t i = 0; i < count; i++)
            host[i] = t->rank * 100000 + turn * 10000 + (int)i;
        int *in = turn == 2 && t->rank == 1 ? plain : buffer;
        TEST_CUDA(t, cudaMemcpyAsync(in, host, bytes, cudaMemcpyDefault, w.stream));
        test_note(t, "registered, turn %d", turn);
        TEST_OK(t, w.comm, rondo_allgather(in, out, count, RONDO_INT32, w.comm, w.stream));
        TEST_CUDA(t, cudaMemcpyAsync(host, out, bytes * (size_t)t->nranks, cudaMemcpyDefault, w.stream));
        TEST_CUDA(t, cudaStreamSynchronize(w.stream));
        if (turn == 2)
            break;
        for (size_t i = 0; i < count * (size_t)t->nranks; i++)
            if (host[i] != (int)(i / count) * 100000 + turn * 10000 + (int)(i % count))
                test_stop(t, "turn %d: int %zu is %d", turn, i, host[i]);
        if (turn == 0)
            TEST_OK(t, w.comm, rondo_comm_deregister(w.comm, reg));
    }
    TEST_OK(t, w.comm, rondo_comm_get_error(w.comm, &error));
    TEST_TRUE(t, error == RONDO_ERR_MISMATCH && strstr(rondo_last_error(w.comm), "RONDO_CTA_POLICY"));
    test_barrier(t);
    world_close(&w);
}

static int lines_with(const char *text, const char *one, const char *other)
{
    int lines = 0;

    for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        const char *a = strstr(line, one), *b = strstr(line, other);
        lines += a && a < end && b && b < end;
    }
    return lines;
}

/* The rank's own log. */
static void logged(test_rank_t *t, void *arg)
{
    static char text[1 << 18];
    char path[64] = "/tmp/rondo-staging-XXXXXX";
    const int fd = mkstemp(path);
    device_call_t d;
    world_t w;
    FILE *file;

    TEST_TRUE(t, fd >= 0);
    setenv("RONDO_DEBUG", "info", 1);
    setenv("RONDO_DEBUG_FILE", path, 1);
    world_open(&w, t, *(const uint64_t *)arg);
    for (int i = 0; i < 2 * (COPIES + KERNELS - 1); i++) { /* barriers say nothing */
        const int at = i / 2;
        const do_case_t c = draw(&w, at < COPIES ? by_copies[at] : by_kernels[at - COPIES]);

        device_prepare(t, &d, &c, 0);
        device_fill(t, &d, w.stream);
        TEST_OK(t, w.comm, device_post(&d, w.comm, w.stream));
        device_verify(t, &d, 1, w.stream);
        device_release(&d);
    }
    world_close(&w);
    file = fopen(path, "r");
    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
    }
    (void)unlink(path);
    for (int i = 0; i < COPIES; i++) {
        snprintf(path, sizeof path, ": %s takes", do_name(by_copies[i]));
        TEST_TRUE(t, lines_with(text, do_name(by_copies[i]), ": copy by ") > 0 && !strstr(text, path));
    }
    TEST_TRUE(t, lines_with(text, "allreduce", " takes multiprocessors") == 1);
    TEST_TRUE(t, lines_with(text, "allreduce", ": copy by ") == 0);
    TEST_TRUE(t, lines_with(text, "alltoall with counts by rank", " takes multiprocessors") == 1);
    TEST_TRUE(t, lines_with(text, "a send or receive", " takes multiprocessors") == 1);
}

/* Kernels of slices, whose memory is staged in. */
static void slices(int wanted)
{
    setenv("RONDO_PROTO", wanted ? "allreduce=simple,reduce_scatter=simple" : "", 1);
    setenv("RONDO_CUDA_LONG", wanted ? "64" : "0", 1);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        test_body_fn body;
        test_kind_t kind;
        int least, most; /* ranks */
    } parts[] = {{"rounds", rounds, TEST_PROCESSES, 2, 4},
                 {"rounds of threads", rounds, TEST_THREADS, 2, 3},
                 {"graphs", graphs, TEST_PROCESSES, 2, 3},
                 {"registered", registered, TEST_PROCESSES, 2, 3},
                 {"the log", logged, TEST_PROCESSES, 2, 2}};
    uint64_t seed = argc == 3 && strcmp(argv[1], "--seed") == 0 ? strtoull(argv[2], NULL, 0) : 5;
    int bad = 0;

    test_begin("staging", 300);
    setenv("RONDO_CUDA_STAGING", "16K", 0); /* so that what is short takes turns */
    setenv("SIM_LATE_COPIES", "200", 0);
    if (device_none())
        return TEST_SKIPPED;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && bad == 0; i++)
        for (int n = parts[i].least; n <= parts[i].most && bad == 0; n++) {
            slices(n == 3);
            bad += test_run(parts[i].kind, n, 140, parts[i].body, &seed);
            printf("staging: %s, %d ranks, seed %llu: %s\n", parts[i].name, n, (unsigned long long)seed,
                   bad ? "WRONG" : "right");
        }
    return bad != 0;
}
