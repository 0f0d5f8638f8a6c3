/* rondo_comm_memory: what a host communicator takes is known before it is made. What was foreseen is compared with what
 * rondo_comm_memory_now says, and with what the process has mapped: the node's memory as the kernel lists it, and the
 * address space for the network as mmap was asked for it. Ranks of one node and of several, also unequally full, and
 * settings that change sizes. Wrong arguments, and an older caller's structs. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/harness.h"

typedef struct {
    const char *name, *value; /* of a variable; NULL: none is set */
    int nranks, nodes;
} case_t;

static size_t reserved; /* bytes for which mmap reserves no pages */

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    reserved += flags & MAP_NORESERVE && flags & MAP_PRIVATE ? bytes : 0;
    return __real_mmap(at, bytes, protection, flags, fd, offset);
}

/* Bytes of nodes' memory that this process has mapped. */
static size_t mapped(test_rank_t *t)
{
    FILE *f = fopen("/proc/self/maps", "r");
    unsigned long from, to;
    char line[512];
    size_t all = 0;

    if (!f)
        test_stop(t, "no /proc/self/maps");
    while (fgets(line, sizeof line, f))
        if (strstr(line, "/memfd:rondo (deleted)") && sscanf(line, "%lx-%lx", &from, &to) == 2)
            all += to - from;
    fclose(f);
    return all;
}

static rondo_memory_t foreseen(test_rank_t *t, const rondo_shape_t *shape)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_memory_t memory = {.size = sizeof memory};

    config.device = RONDO_DEVICE_HOST;
    TEST_OK(t, NULL, rondo_comm_memory(&config, shape, &memory));
    return memory;
}

static void compare(test_rank_t *t, const rondo_memory_t *want, rondo_comm_t comm, int local)
{
    rondo_memory_t now = {.size = sizeof now};
    size_t node = mapped(t);

    TEST_OK(t, comm, rondo_comm_memory_now(comm, &now));
    TEST_TRUE(t, now.size == want->size && now.device == 0 && now.pinned == 0);
    TEST_TRUE(t, want->device == 0 && want->pinned == 0);
    if (now.shared != want->shared || now.network != want->network)
        test_fail(t, "%llu and %llu bytes were foreseen, %llu and %llu taken", (unsigned long long)want->shared,
                  (unsigned long long)want->network, (unsigned long long)now.shared, (unsigned long long)now.network);
    if (t->kind == TEST_PROCESSES && (node != want->shared * (size_t)local || reserved != want->network))
        test_fail(t, "%zu bytes are mapped for %d ranks, and %zu reserved", node, local, reserved);
}

static void body(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    int local = (t->nranks - 1 - t->rank % c->nodes) / c->nodes + 1;
    rondo_shape_t shape = RONDO_SHAPE_INIT;

    test_note(t, "%d ranks on %d nodes, %s=%s", c->nranks, c->nodes, c->name ? c->name : "", c->name ? c->value : "");
    shape.nranks = t->nranks;
    shape.nnodes = c->nodes;
    shape.local = local;
    const rondo_memory_t want = foreseen(t, &shape);
    TEST_TRUE(t, (want.shared > 0) == (local > 1) && (want.network > 0) == (c->nodes > 1));
    reserved = 0;
    rondo_comm_t comm = test_comm_on(t, c->nodes);
    if (!comm) /* there is no network */
        return;
    compare(t, &want, comm, local);
    test_barrier(t);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

static int run(test_kind_t kind, case_t c)
{
    if (c.name)
        setenv(c.name, c.value, 1);
    int bad = test_run(kind, c.nranks, 30, body, &c) != 0;
    if (c.name)
        unsetenv(c.name);
    return bad;
}

static void refused(test_rank_t *t, rondo_shape_t shape, const char *word)
{
    rondo_memory_t memory = {.size = sizeof memory, .shared = 17};

    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_memory(NULL, &shape, &memory));
    TEST_TRUE(t, memory.shared == 17);
    test_sentence(t, word);
}

static void arguments(test_rank_t *t, void *arg)
{
    const rondo_shape_t shape = {.size = sizeof shape, .nranks = 6, .nnodes = 2, .p2p = -1};
    rondo_shape_t s = shape, older = shape;
    rondo_memory_t memory = {.size = sizeof memory}, less;

    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_memory(NULL, NULL, &memory));
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_memory(NULL, &shape, NULL));
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_memory_now(NULL, &memory));
    refused(t, (s.size = 8, s), "RONDO_SHAPE_INIT");
    refused(t, (s = shape, s.nranks = 0, s), "shape->nranks is 0");
    refused(t, (s = shape, s.nnodes = 7, s), "shape->nnodes is 7: it must be 1 to 6");
    refused(t, (s = shape, s.most = 2, s), "shape->most is 2: it must be 3 to 5");
    refused(t, (s = shape, s.most = 6, s), "shape->most is 6");
    refused(t, (s = shape, s.local = 4, s), "shape->local is 4");
    refused(t, (s = shape, s.cores = -1, s), "shape->cores is -1");
    refused(t, (s = shape, s.p2p = 2, s), "shape->p2p is 2");
    memset(&less, 0x55, sizeof less);
    less.size = offsetof(rondo_memory_t, network);
    older.size = offsetof(rondo_shape_t, most); /* what lies behind is not looked at */
    older.most = 77;
    memory = foreseen(t, &shape);
    TEST_OK(t, NULL, rondo_comm_memory(NULL, &older, &less));
    TEST_TRUE(t, less.shared == memory.shared && less.size == offsetof(rondo_memory_t, network));
    TEST_TRUE(t, memory.network > 0 && less.network == UINT64_C(0x5555555555555555));
    (void)arg;
}

int main(void)
{
    static const case_t settings[] = {
        {NULL, NULL, 0, 0}, {"RONDO_SLOTS", "2", 0, 0}, {"RONDO_SLOTS", "64", 0, 0}, {"RONDO_SLOT_BYTES", "20K", 0, 0}};
    static const int ranks[] = {1, 2, 3, 4};
    int bad = 0;

    test_begin("footprint", 100);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (size_t n = 0; n < 4; n++)
            for (int nodes = 1; nodes <= ranks[n]; nodes += nodes)
                bad |= run(TEST_PROCESSES, (case_t){settings[i].name, settings[i].value, ranks[n], nodes});
    bad |= run(TEST_THREADS, (case_t){NULL, NULL, 3, 1});
    bad |= test_run(TEST_PROCESSES, 1, 10, arguments, NULL) != 0;
    return bad;
}
