/* Kernels of the program's own, by rondo_device.cuh (device_kernels.h): barriers, reads, signals and puts between the
 * ranks, by blocks, warps and threads, launched one by one and from graphs, beside rondo's own operations; windows that
 * rondo allocates and those of the program. What is wrong is refused in a sentence, by the host or by the kernel, and a
 * kernel that waits leaves when a rank is late, aborts or dies.
 *
 *   user_kernels [--seed S] [--ranks N] [--rounds N] [--words N]   ranks: 1 to N; words: of the longest message
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/device.h"
#include "gpu/device_kernels.h"
#include "gpu/litmus_options.h"

#define BLOCKS_MOST (LITMUS_UNITS_MOST / (LITMUS_THREADS / 32))
#define REPLAYS 3

static litmus_options_t options = {1, 4, 20, 40000};

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    cudaStream_t stream;
    rondo_window_t window;
    void *memory; /* of the window; NULL: rondo's own */
    rondo_device_t device;
    litmus_work_t work;
    uint32_t *words; /* rounds, wrong, left: device memory */
    uint32_t *host;  /* pinned */
    unsigned blocks, launched;
    uint32_t before; /* rounds of each group in all tests so far: values that are set grow with them */
} world_t;

#define WORDS (LITMUS_UNITS_MOST + 2)

static litmus_t *litmus_of(world_t *w)
{
    return &w->work.is.litmus;
}

static void open_window(world_t *w, int own)
{
    litmus_t *l = litmus_of(w);
    size_t bytes = litmus_window_bytes((uint32_t)w->t->nranks, options.words);

    w->memory = NULL;
    if (own) /* not from its beginning */
        TEST_CUDA(w->t, cudaMalloc(&w->memory, bytes + 4096));
    test_barrier(w->t);
    if (!TEST_OK(w->t, w->comm,
                 rondo_window_create(w->comm, own ? (char *)w->memory + 4096 : NULL, bytes, &w->window, 0)))
        test_stop(w->t, "there is no window");
    l->window.size = sizeof l->window;
    TEST_OK(w->t, w->comm, rondo_device_window(w->comm, w->window, &l->window));
}

static void close_window(world_t *w)
{
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    TEST_OK(w->t, w->comm, rondo_window_destroy(w->comm, w->window));
    test_barrier(w->t);
    if (w->memory)
        TEST_CUDA(w->t, cudaFree(w->memory));
    test_barrier(w->t);
}

static void begin(world_t *w, test_rank_t *t, rondo_config_t config)
{
    rondo_device_config_t wish = RONDO_DEVICE_CONFIG_INIT;
    litmus_t *l = litmus_of(w);

    memset(w, 0, sizeof *w);
    w->t = t;
    w->comm = device_comm_config(t, config);
    wish.barriers = LITMUS_UNITS_MOST;
    wish.signals = (int)litmus_signals();
    w->device.size = sizeof w->device;
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking));
    if (!TEST_OK(t, w->comm, rondo_device_create(w->comm, &wish, &w->device)))
        test_stop(t, "there are no barriers");
    w->words = device_memory(t, WORDS * sizeof(uint32_t), 0);
    w->host = device_memory(t, WORDS * sizeof(uint32_t), 1);
    l->source = device_memory(t, litmus_source_bytes(options.words), 0);
    l->device = w->device;
    l->round = w->words;
    l->wrong = w->words + LITMUS_UNITS_MOST;
    l->left = l->wrong + 1;
    TEST_CUDA(t, cudaMemsetAsync(w->words, 0, WORDS * sizeof(uint32_t), w->stream));
}

/* What a communicator leaves behind for its peers goes with the next one that ends when they have left. */
static void left_behind(test_rank_t *t)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id;
    rondo_comm_t comm;
    char text[200];

    test_barrier(t);
    TEST_CUDA(t, cudaGetDevice(&config.device));
    if (TEST_OK(t, NULL, rondo_unique_id_create(&id)) && TEST_OK(t, NULL, rondo_comm_create(&comm, 1, &id, 0, &config)))
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    if (t->kind == TEST_PROCESSES && sim_live && sim_live(text, sizeof text))
        test_fail(t, "left behind: %s", text);
}

static void launch(world_t *w)
{
    void *args[] = {&w->work};
    cudaLaunchConfig_t config;

    memset(&config, 0, sizeof config);
    config.gridDim = (struct dim3){w->blocks, 1, 1};
    config.blockDim = (struct dim3){LITMUS_THREADS, 1, 1};
    config.stream = w->stream;
    TEST_CUDA(w->t, cudaLaunchKernelExC(&config, litmus_kernel(), args));
    w->launched++;
}

/* What the kernels have counted, when all are over. */
static void look(world_t *w)
{
    TEST_CUDA(w->t, cudaMemcpyAsync(w->host, w->words, WORDS * sizeof(uint32_t), cudaMemcpyDefault, w->stream));
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
}

static void set(world_t *w, litmus_kind_t kind, litmus_group_t group, unsigned blocks, unsigned rounds, unsigned words)
{
    litmus_t *l = litmus_of(w);

    l->kind = (uint32_t)kind;
    l->group = (uint32_t)group;
    l->rounds = rounds;
    l->words = words;
    l->shift = words % 4 * 4;
    w->blocks = blocks;
    w->launched = 0;
    look(w);
    for (unsigned u = 0; u < LITMUS_UNITS_MOST; u++)
        w->before = w->host[u] > w->before ? w->host[u] : w->before;
    for (unsigned u = 0; u < LITMUS_UNITS_MOST; u++)
        w->host[u] = w->before;
    TEST_CUDA(w->t, cudaMemcpyAsync(w->words, w->host, WORDS * sizeof(uint32_t), cudaMemcpyDefault, w->stream));
}

static void replay(world_t *w)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    launch(w);
    launch(w);
    TEST_CUDA(w->t, cudaStreamEndCapture(w->stream, &graph));
    TEST_CUDA(w->t, cudaGraphInstantiate(&exec, graph, 0));
    TEST_CUDA(w->t, cudaGraphDestroy(graph));
    for (int i = 0; i < REPLAYS; i++)
        TEST_CUDA(w->t, cudaGraphLaunch(exec, w->stream));
    w->launched += 2 * (REPLAYS - 1);
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    device_graphs_destroy(w->t, &exec, 1);
}

static void try_kind(world_t *w, litmus_kind_t kind, litmus_group_t group, unsigned blocks, unsigned rounds,
                     unsigned words)
{
    static const char *const names[] = {"barrier", "read", "signal", "set", "add"};
    const uint32_t units = litmus_units(kind == LITMUS_ADD ? LITMUS_BY_WARP : (uint32_t)group, blocks);

    test_note(w->t, "%s by %s, %u blocks, %u rounds of %u words", names[kind],
              group == LITMUS_BY_BLOCK  ? "blocks"
              : group == LITMUS_BY_WARP ? "warps"
                                        : "threads",
              blocks, rounds, words);
    set(w, kind, group, blocks, rounds, words);
    TEST_OK(w->t, w->comm, rondo_barrier(w->comm, w->stream)); /* all have read what the last test has put */
    launch(w);
    TEST_OK(w->t, w->comm, rondo_barrier(w->comm, w->stream));
    launch(w);
    replay(w);
    look(w);
    const uint32_t wrong = w->host[LITMUS_UNITS_MOST], left = w->host[LITMUS_UNITS_MOST + 1];
    if (wrong || left)
        test_stop(w->t, "%s: %u words are wrong, %u groups have left", test_noted(w->t), wrong, left);
    for (uint32_t u = 0; u < units; u++) {
        if (w->host[u] - w->before != w->launched * rounds)
            test_stop(w->t, "group %u has done %u rounds, should be %u", u, w->host[u] - w->before,
                      w->launched * rounds);
    }
}

static void litmus_tests(test_rank_t *t, void *arg)
{
    uint64_t random = options.seed * 1000 + (uint64_t)t->nranks;
    rondo_config_t config = RONDO_CONFIG_INIT;
    world_t w;

    (void)arg;
    begin(&w, t, config);
    for (int own = 0; own < 2; own++) {
        open_window(&w, own);
        for (int kind = 0; kind < LITMUS_KINDS; kind++)
            for (int group = 0; group < (kind == LITMUS_ADD ? 1 : LITMUS_GROUPS); group++) {
                const unsigned most = group == LITMUS_BY_THREAD && options.words > 500 ? 500 : options.words;
                try_kind(&w, (litmus_kind_t)kind, (litmus_group_t)group, 1 + test_below(&random, BLOCKS_MOST),
                         options.rounds, 1 + test_below(&random, own && most > 64 ? 64 : most));
            }
        close_window(&w);
    }
    TEST_OK(t, w.comm, rondo_device_destroy(w.comm, &w.device));
    device_end(t, w.comm, &w.stream, 1);
    left_behind(t);
}

/* ---- what is refused by the host ---- */

#define REFUSED(t, comm, want, word, call)                                                                             \
    do {                                                                                                               \
        TEST_GIVES(t, comm, want, call);                                                                               \
        test_sentence(t, word);                                                                                        \
    } while (0)

static void refusals(test_rank_t *t, void *arg)
{
    const rondo_result_t bad = RONDO_ERR_INVALID_ARGUMENT;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_device_config_t wish = RONDO_DEVICE_CONFIG_INIT;
    rondo_device_t device = {.size = sizeof device};
    rondo_device_window_t view = {.size = sizeof view};
    rondo_window_t none = NULL;
    void *buffer = NULL, *where = NULL;
    world_t w;

    (void)arg;
    begin(&w, t, config);
    open_window(&w, 0);
    TEST_OK(t, w.comm, rondo_window_buffer(w.comm, w.window, &where));
    TEST_TRUE(t, where == litmus_of(&w)->window.base[t->rank]);
    device.size--;
    REFUSED(t, w.comm, bad, "size", rondo_device_create(w.comm, NULL, &device));
    device.size++;
    REFUSED(t, w.comm, bad, "NULL", rondo_device_create(w.comm, NULL, NULL));
    view.size = 0;
    REFUSED(t, w.comm, bad, "size", rondo_device_window(w.comm, w.window, &view));
    view.size = sizeof view;
    REFUSED(t, w.comm, bad, "NULL", rondo_device_window(w.comm, NULL, &view));
    REFUSED(t, w.comm, bad, "not one", rondo_device_window(w.comm, (rondo_window_t)w.device.made, &view));
    REFUSED(t, w.comm, bad, "not one", rondo_device_destroy(w.comm, &device));
    TEST_OK(t, NULL, rondo_group_start());
    TEST_GIVES(t, w.comm, RONDO_ERR_INVALID_USAGE, rondo_device_create(w.comm, NULL, &device));
    TEST_OK(t, NULL, rondo_group_end());
    /* Alike on all ranks, whoever is wrong. */
    wish.barriers = t->rank == 0 ? 0 : -1;
    REFUSED(t, w.comm, bad, "barriers", rondo_device_create(w.comm, &wish, &device));
    wish.barriers = t->rank == 0 ? 8 : 9;
    REFUSED(t, w.comm, bad, "alike", rondo_device_create(w.comm, &wish, &device));
    wish.barriers = -1;
    wish.signals = t->rank == 1 ? 4097 : 0;
    REFUSED(t, w.comm, bad, "signals", rondo_device_create(w.comm, &wish, &device));
    buffer = device_memory(t, 256, 1);
    REFUSED(t, w.comm, bad, "cudaMalloc", rondo_window_create(w.comm, t->rank ? NULL : buffer, 256, &none, 0));
    REFUSED(t, w.comm, bad, "ends after",
            rondo_window_create(w.comm, device_memory(t, 256, 0), (size_t)1 << 40, &none, 0));
    TEST_OK(t, w.comm, rondo_device_create(w.comm, NULL, &device));
    TEST_TRUE(t, device.barriers == 1024 && device.signals == 16 && device.nranks == t->nranks);
    TEST_OK(t, w.comm, rondo_device_destroy(w.comm, &device));
    REFUSED(t, w.comm, bad, "not one", rondo_device_destroy(w.comm, &device));
    close_window(&w);
    device_end(t, w.comm, &w.stream, 1); /* with the barriers that are left */
}

/* Where kernels do not reach each other's memory: `arg` is a word of the sentence. */
static void unsupported(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = device_comm(t);
    rondo_device_t device = {.size = sizeof device};
    rondo_window_t none = NULL;

    REFUSED(t, comm, RONDO_ERR_UNSUPPORTED, arg, rondo_device_create(comm, NULL, &device));
    REFUSED(t, comm, RONDO_ERR_UNSUPPORTED, arg, rondo_window_create(comm, NULL, 64, &none, 0));
    device_end(t, comm, NULL, 0);
}

static void on_host(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_device_t device = {.size = sizeof device};

    (void)arg;
    config.device = RONDO_DEVICE_HOST;
    rondo_comm_t comm = test_comm(t, &config);
    REFUSED(t, comm, RONDO_ERR_UNSUPPORTED, "host memory", rondo_device_create(comm, NULL, &device));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* ---- kernels that have to leave ---- */

enum { LATE, ABORTED, DESTROYED, NOWHERE, BEYOND, DIED, WAYS };

/* Rank 0's kernels leave, and the communicator says why. */
static void leaves(test_rank_t *t, void *arg)
{
    static const struct {
        rondo_result_t why;
        const char *word;
        litmus_kind_t kind;
    } want[WAYS] = {
        [LATE] = {RONDO_ERR_TIMEOUT, "rank 1", LITMUS_NOTHING},
        [ABORTED] = {RONDO_ERR_REMOTE, "rank 1", LITMUS_NOTHING},
        [DESTROYED] = {RONDO_ERR_REMOTE, "rank 1", LITMUS_NOTHING},
        [NOWHERE] = {RONDO_ERR_INVALID_ARGUMENT, "a barrier that does not exist", LITMUS_NOWHERE},
        [BEYOND] = {RONDO_ERR_INVALID_ARGUMENT, "a part of a window", LITMUS_BEYOND},
        [DIED] = {RONDO_ERR_REMOTE, "rank 1", LITMUS_NOTHING},
    };
    const int way = *(const int *)arg;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_result_t error;
    world_t w;

    config.timeout_ms = way == LATE && t->rank == 0 ? 700 : 0;
    begin(&w, t, config);
    open_window(&w, 0);
    if (t->rank == 0) {
        set(&w, want[way].kind, LITMUS_BY_BLOCK, 2, 1, 8);
        launch(&w);
        launch(&w);
    }
    test_barrier(t);
    if (t->rank != 0 && way == DIED)
        raise(SIGKILL);
    if (t->rank != 0 && (way == ABORTED || way == DESTROYED)) {
        usleep(300000);
        TEST_OK(t, NULL, way == ABORTED ? rondo_comm_abort(w.comm) : rondo_comm_destroy(w.comm));
        w.comm = NULL;
    }
    if (t->rank == 0) {
        look(&w);
        TEST_OK(t, NULL, rondo_comm_get_error(w.comm, &error));
        if (error != want[way].why || !strstr(rondo_last_error(w.comm), want[way].word))
            test_fail(t, "the error is %s, should be %s with '%s': %s", rondo_result_string(error),
                      rondo_result_string(want[way].why), want[way].word, rondo_last_error(w.comm));
        if (w.host[LITMUS_UNITS_MOST + 1] != 2 * 2)
            test_fail(t, "%u groups have left, should be 4", w.host[LITMUS_UNITS_MOST + 1]);
    }
    if (way == DIED) { /* alone */
        TEST_OK(t, NULL, rondo_comm_destroy(w.comm));
        return;
    }
    test_barrier(t);
    if (w.comm) /* Rank 1 is told of rank 0's failure while it ends its own communicator, or before. */
        device_failed(t, w.comm);
    device_end(t, w.comm, &w.stream, 1);
    left_behind(t);
}

static int died(void)
{
    static int way = DIED;
    test_director_t director = {.victims = 2};
    int bad = test_run_directed(&director, 2, 60, leaves, &way);

    printf("user kernels: a rank dies: %s\n", bad ? "WRONG" : "right");
    return bad;
}

static int all_kinds(const char *what, int ranks, test_body_fn body, void *arg, int threads)
{
    return litmus_kinds("user kernels", what, options.seed, ranks, body, arg, threads);
}

int main(int argc, char **argv)
{
    static const char *const ways[DIED] = {"a rank is late", "a rank aborts", "a rank leaves", "no such barrier",
                                           "beyond a window"};
    int bad = 0;

    test_begin("user_kernels", 600);
    if (sim_live) {
        options.rounds = 2;
        options.words = 60;
    }
    if (litmus_options(&options, argc, argv, 1, RONDO_DEVICE_RANKS) != 0) {
        fprintf(stderr, "user_kernels [--seed S] [--ranks N] [--rounds N] [--words N]\n");
        return 2;
    }
    if (device_none())
        return TEST_SKIPPED;
    for (int n = 1; n <= options.ranks; n++)
        bad += all_kinds("litmus tests", n, litmus_tests, NULL, n > 1);
    bad += all_kinds("refusals", 2, refusals, NULL, 1);
    bad += died();
    for (int way = 0; way < DIED; way++)
        bad += all_kinds(ways[way], 2, leaves, &way, 1);
    bad += all_kinds("on host memory", 2, on_host, NULL, 0);
    setenv("RONDO_P2P", "0", 1);
    bad += all_kinds("without peer access", 2, unsupported, (void *)(uintptr_t) "do not reach", 0);
    unsetenv("RONDO_P2P");
    if (device_nodes("1+1"))
        bad += all_kinds("on two nodes", 2, unsupported, (void *)(uintptr_t) "2 nodes", 0);
    return bad != 0;
}
