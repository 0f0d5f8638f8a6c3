/* NVTX: a tool that is injected (injection.c) gets a range for each call, with what is called as its payload, in every
 * setting in which it should, and none in the others. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/injection.h"
#include "util/harness.h"

#define REPEATS 20

typedef struct {
    const char *setting;
    int injected, shown;
} case_t;

static char library[512];
static int start, stride; /* of the ranks in a job, as the launcher's variables say; 0: there are none */

static void said(test_rank_t *t, const injection_range_t *r, const char *name, uint64_t number, uint64_t bytes,
                 int root, int op)
{
    if (strcmp(r->name, name) != 0 || r->payload.number != number || r->payload.bytes != bytes ||
        r->payload.root != root || r->payload.op != op || r->payload.ranks_start != start ||
        r->payload.ranks_stride != stride || r->payload.ranks_size != 2)
        test_fail(t, "%s: number %llu, %llu bytes, root %d, operator %d, ranks %d by %d, but it is %s", r->name,
                  (unsigned long long)r->payload.number, (unsigned long long)r->payload.bytes, r->payload.root,
                  r->payload.op, r->payload.ranks_start, r->payload.ranks_stride, name);
    test_agree(t, r->payload.comm, "the communicator's number");
}

static void body(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    const int other = 1 - t->rank;
    float in[3] = {1, 2, 3}, out[3];

    test_note(t, "RONDO_NVTX=%s, %s tool", c->setting, c->injected ? "a" : "no");
    /* Without a tool, auto is off: ranges that nobody sees would cost all the same. */
    TEST_TRUE(t, rd_nvtx_wanted(c->setting) == (strcmp(c->setting, "auto") == 0 ? c->injected : *c->setting == '1'));
    if (stride) {
        char number[16];
        snprintf(number, sizeof number, "%d", start + t->rank * stride);
        setenv("SLURM_PROCID", number, 1);
    }
    rondo_comm_t comm = test_comm(t, NULL);
    for (int i = 0; i < REPEATS; i++)
        TEST_OK(t, comm, rondo_allreduce(in, out, 3, RONDO_FLOAT32, RONDO_MAX, comm, NULL));
    TEST_OK(t, comm, rondo_broadcast(in, in, 2, RONDO_FLOAT32, 1, comm, NULL));
    rondo_group_start();
    TEST_OK(t, comm, rondo_send(in, 1, RONDO_FLOAT32, other, comm, NULL));
    TEST_OK(t, comm, rondo_recv(out, 1, RONDO_FLOAT32, other, comm, NULL));
    TEST_OK(t, comm, rondo_group_end());
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_broadcast(in, in, 2, RONDO_FLOAT32, 7, comm, NULL));
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));

    void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    const injection_t *seen = handle ? dlsym(handle, INJECTION_SYMBOL) : NULL;
    if (!c->shown) {
        TEST_TRUE(t, !seen || seen->pushed == 0);
        return;
    }
    if (!seen)
        test_stop(t, "the tool was not loaded");
    TEST_TRUE(t, seen->domains == 1 && seen->pushed == REPEATS + 4 && seen->popped == seen->pushed);
    for (int i = 0; i < REPEATS; i++)
        said(t, &seen->ranges[i], "allreduce", (uint64_t)i + 1, 12, 0, RONDO_MAX);
    said(t, &seen->ranges[REPEATS], "broadcast", REPEATS + 1, 8, 1, -1);
    said(t, &seen->ranges[REPEATS + 1], "send", 0, 4, other, -1);
    said(t, &seen->ranges[REPEATS + 2], "recv", 0, 4, other, -1);
    said(t, &seen->ranges[REPEATS + 3], "barrier", REPEATS + 2, 0, 0, -1);
}

int main(void)
{
    static const case_t cases[] = {{"auto", 1, 1}, {"1", 1, 1}, {"0", 1, 0}, {"auto", 0, 0}, {"1", 0, 0}};
    const char *build = getenv("top_builddir");
    int bad = 0;

    static const char *const launchers[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"};

    test_begin("ranges", 60);
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++)
        unsetenv(launchers[i]);
    snprintf(library, sizeof library, "%s/.libs/librondo-injection.so", build ? build : ".");
    if (access(library, R_OK) != 0) {
        printf("there is no %s: modules are not built\n", library);
        return TEST_SKIPPED;
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv("RONDO_NVTX", cases[i].setting, 1);
        unsetenv("NVTX_INJECTION64_PATH");
        if (cases[i].injected)
            setenv("NVTX_INJECTION64_PATH", library, 1);
        start = i % 2 ? 0 : 5; /* of a larger job, or of none */
        stride = i % 2 ? 0 : 3;
        bad |= test_run(TEST_PROCESSES, 2, 20, body, (void *)(uintptr_t)&cases[i]) != 0;
    }
    return bad;
}
