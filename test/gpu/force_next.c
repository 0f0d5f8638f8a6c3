/* rondo_force_next on GPUs: each call goes by the kernel that was forced for it, as the log says, alone and in groups,
 * and is right; what comes after it goes by what rondo chooses. What no kernel serves is refused, or done by another if
 * it was only preferred. The same for rondo_resources_next: no more blocks than it says, or copy engines; and for what
 * a communicator's config says of blocks.
 *
 *   force_next [--nodes]   with it, the ranks are on played nodes, where the host's algorithms serve */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/device.h"

#define COUNT 5000
#define RANKS 3

static int played;
static char log_file[] = "/tmp/rondo-gpu-force_next-XXXXXX";

/* Lines with all of these texts. */
static int lines(const char *one, const char *two)
{
    char line[1024];
    int found = 0;
    FILE *f = fopen(log_file, "r");

    while (f && fgets(line, sizeof line, f))
        found += strstr(line, one) != NULL && strstr(line, two) != NULL;
    if (f)
        fclose(f);
    return found;
}

/* The case, which must be right if it gives RONDO_SUCCESS. `grouped`: it ends the group in which it is. */
static rondo_result_t call_of(test_rank_t *t, rondo_comm_t comm, do_case_t c, cudaStream_t stream, bool grouped)
{
    device_call_t call;
    rondo_result_t result;
    char text[200];

    do_text(&c, text, sizeof text);
    device_prepare(t, &call, &c, 0);
    device_fill(t, &call, stream);
    result = device_post(&call, comm, stream);
    if (grouped)
        result = rondo_group_end();
    if (result == RONDO_SUCCESS)
        device_verify(t, &call, 1, stream);
    device_release(&call);
    if (result != RONDO_SUCCESS && !strstr(rondo_last_error(comm), "RONDO_"))
        test_fail(t, "%s: the sentence must name what forces it: \"%s\"", text, rondo_last_error(comm));
    return result;
}

static rondo_result_t sum(test_rank_t *t, rondo_comm_t comm, cudaStream_t stream, bool grouped)
{
    const do_case_t c = {
        .what = DO_ALLREDUCE, .type = RONDO_FLOAT32, .op = RONDO_SUM, .count = COUNT, .data = REF_EXACT};

    return call_of(t, comm, c, stream, grouped);
}

/* An average of a narrow type is summed in a wider one, so between nodes no kernel has a part of it. Where a rank is
 * alone on its node no kernel counts, or the ranks would not refuse alike. `between`: the nodes, or "": there is one. */
static void kernels_alone(test_rank_t *t, rondo_comm_t comm, cudaStream_t stream, const char *between)
{
    const do_case_t c = {
        .what = DO_ALLREDUCE, .type = RONDO_BFLOAT16, .op = RONDO_AVG, .count = COUNT, .data = REF_EXACT};
    bool single = strstr(between, "1") != NULL, one_node = !*between;

    TEST_OK(t, NULL, rondo_force_next("oneshot", "ll128"));
    TEST_GIVES(t, comm, single ? RONDO_ERR_UNSUPPORTED : RONDO_SUCCESS, sum(t, comm, stream, false));
    TEST_OK(t, NULL, rondo_force_next("oneshot", "ll128"));
    TEST_GIVES(t, comm, one_node ? RONDO_SUCCESS : RONDO_ERR_UNSUPPORTED, call_of(t, comm, c, stream, false));
}

/* The most blocks that a line of the log with this text has; 0: there is none. */
static int blocks(const char *text)
{
    char line[1024];
    int most = 0, got;
    FILE *f = fopen(log_file, "r");

    while (f && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, text), *tiles = at ? strstr(at, "tiles, ") : NULL;
        if (tiles && sscanf(tiles, "tiles, %d blocks", &got) == 1 && got > most)
            most = got;
    }
    if (f)
        fclose(f);
    return most;
}

/* Each call with budgets of its own keeps to them, and none behind it does. Copy engines serve processes alone. */
static void budgets(test_rank_t *t, rondo_comm_t comm, cudaStream_t stream)
{
    const do_case_t long_sum = {.what = DO_ALLREDUCE, .type = RONDO_FLOAT32, .op = RONDO_SUM, .data = REF_EXACT};
    char text[64];

    for (int i = 0; i < 8; i++) {
        do_case_t c = long_sum;
        const int most = i < 6 ? 1 + i / 2 : -1; /* twice: made, then found */
        device_call_t call;

        test_note(t, "at most %d blocks", most);
        c.count = 200000 + (size_t)(i / 2);
        device_prepare(t, &call, &c, 0);
        test_barrier(t);
        device_fill(t, &call, stream);
        TEST_OK(t, NULL, rondo_resources_next(most, -1));
        TEST_OK(t, comm, device_post(&call, comm, stream));
        device_verify(t, &call, 1, stream);
        device_release(&call);
        test_barrier(t);
        snprintf(text, sizeof text, "allreduce float32, %zu elements", c.count);
        if (!played)
            TEST_TRUE(t, most < 0 ? blocks(text) > 1 : blocks(text) > 0 && blocks(text) <= most);
        test_barrier(t);
    }
    for (int i = 0; i < 3 && t->kind == TEST_PROCESSES; i++) {
        do_case_t c = {.what = DO_ALLGATHER, .type = RONDO_INT32, .count = 3000 + (size_t)i};
        device_call_t call;

        test_note(t, "policy %d", i);
        device_prepare(t, &call, &c, 0);
        test_barrier(t);
        device_fill(t, &call, stream);
        TEST_OK(t, NULL, rondo_resources_next(-1, i == 1 ? RONDO_CTA_POLICY_ZERO : -1));
        TEST_OK(t, comm, device_post(&call, comm, stream));
        device_verify(t, &call, 1, stream);
        device_release(&call);
        test_barrier(t);
        snprintf(text, sizeof text, "allgather int32, %zu elements", c.count);
        if (!played)
            TEST_TRUE(t, (lines(text, "copy by") > 0) == (i == 1));
        test_barrier(t);
    }
}

/* A communicator's own: the same sum, of a tile for each of four warps, takes one block, or as many as the config wants
 * at least, but never more than it allows, or than the call does. */
static void configs(test_rank_t *t, void *arg)
{
    static const struct {
        int least, most, call, want;
    } all[] = {{-1, -1, -1, 1}, {0, -1, -1, 1}, {2, -1, -1, 2}, {4, -1, -1, 4}, {4, -1, 2, 2}, {3, 3, -1, 2}};
    cudaStream_t stream = NULL;
    char text[64];

    (void)arg;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        do_case_t c = {.what = DO_ALLREDUCE, .type = RONDO_FLOAT32, .op = RONDO_SUM, .data = REF_EXACT};
        rondo_config_t config = RONDO_CONFIG_INIT;
        device_call_t call;

        config.blocks_least = all[i].least;
        config.blocks = all[i].most;
        rondo_comm_t comm = device_comm_config(t, config);
        if (!comm)
            return;
        if (!stream)
            TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        test_note(t, "at least %d blocks and at most %d, of the call %d", all[i].least, all[i].most, all[i].call);
        c.count = 2700 - i - 10 * (t->kind == TEST_THREADS);
        device_prepare(t, &call, &c, 0);
        test_barrier(t);
        device_fill(t, &call, stream);
        TEST_OK(t, NULL, rondo_force_next("ring", "ll128"));
        if (all[i].call > 0)
            TEST_OK(t, NULL, rondo_resources_next(all[i].call, -1));
        TEST_OK(t, comm, device_post(&call, comm, stream));
        device_verify(t, &call, 1, stream);
        device_release(&call);
        test_barrier(t);
        snprintf(text, sizeof text, "allreduce float32, %zu elements", c.count);
        if (blocks(text) != all[i].want)
            test_fail(t, "%d blocks, not %d", blocks(text), all[i].want);
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    }
    TEST_CUDA(t, cudaStreamDestroy(stream));
}

static void body(test_rank_t *t, void *arg)
{
    static const char *const algos[] = {"ring", "tree", "twoshot"};
    rondo_comm_t comm = device_comm(t);
    cudaStream_t stream;
    char by[64];

    if (!comm)
        return;
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < 9; i++) {
        const char *algo = algos[i % (played ? 2 : 3)], *proto = played ? "simple" : "ll128";

        test_note(t, "%s by %s, %d", algo, proto, i);
        if (i % 2)
            TEST_OK(t, NULL, rondo_group_start());
        TEST_OK(t, NULL, rondo_force_next(algo, proto));
        TEST_OK(t, comm, sum(t, comm, stream, i % 2));
        TEST_OK(t, comm, sum(t, comm, stream, false));
        snprintf(by, sizeof by, "%s by %s", algo, proto);
        test_barrier(t);
        if (!played)
            TEST_TRUE(t, lines("allreduce float32, 5000 elements", by) > 0);
        test_barrier(t);
    }
    test_note(t, "what is refused");
    TEST_OK(t, NULL, rondo_force_next("pigeon", NULL));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, sum(t, comm, stream, false));
    TEST_OK(t, NULL, rondo_force_next("binomial", NULL)); /* has no allreduce; its parts on several nodes it has */
    if (!played)
        TEST_GIVES(t, comm, RONDO_ERR_UNSUPPORTED, sum(t, comm, stream, false));
    TEST_OK(t, NULL, rondo_prefer_next("binomial", NULL));
    TEST_OK(t, comm, sum(t, comm, stream, false));
    TEST_OK(t, NULL, rondo_prefer_next("central", "board")); /* host memory alone has these */
    TEST_OK(t, comm, sum(t, comm, stream, false));
    kernels_alone(t, comm, stream, arg);
    budgets(t, comm, stream);
    TEST_CUDA(t, cudaStreamDestroy(stream));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

int main(int argc, char **argv)
{
    int bad = 0, fd = mkstemp(log_file);

    played = argc > 1 && strcmp(argv[1], "--nodes") == 0;
    test_begin("force_next", 120);
    if (device_none())
        return TEST_SKIPPED;
    setenv("RONDO_DEBUG", "info", 1);
    setenv("RONDO_DEBUG_FILE", log_file, 1);
    setenv("RONDO_PROXY_ROUND", "2K", 0); /* so that between nodes what is called here has parts inside them */
    for (int i = 0; i < 2; i++) {
        static const char *const maps[] = {"2+1", "2+2"};
        int ranks = played ? device_nodes(maps[i]) : RANKS;
        bad |= test_run(i && !played ? TEST_THREADS : TEST_PROCESSES, ranks, 60, body, played ? (void *)maps[i] : "");
    }
    for (int kind = 0; kind < 2 && !played; kind++)
        bad |= test_run(kind ? TEST_THREADS : TEST_PROCESSES, RANKS, 60, configs, NULL) != 0;
    printf("force_next: %s\n", bad ? "WRONG" : "right");
    close(fd);
    unlink(log_file);
    return bad;
}
