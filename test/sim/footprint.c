/* rondo_comm_memory on GPUs: what a CUDA communicator takes is known before it is made. What was foreseen is compared
 * with what rondo_comm_memory_now says, and with what the CUDA runtime is asked for while it is made. One node, whose
 * GPUs reach each other or do not, more ranks than map each other's windows, and played nodes, with settings that
 * change sizes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/comm.h"
#include "exec/cuda/cuda.h"
#include "exec/cuda/proxy/proxy.h"
#include "gpu/device.h"
#include "topo/topo.h"

typedef struct {
    const char *nodes; /* as device_nodes takes them */
    int nranks, nnodes, most;
    int p2p;              /* of the shape */
    const char *settings; /* "NAME=VALUE NAME=VALUE" */
    int channels;         /* of the config, before RONDO_PROXY_THREADS of the settings; 0: they count */
} case_t;

static const case_t cases[] = {
    {NULL, 1, 1, 1, -1, "", 0},
    {NULL, 2, 1, 2, -1, "", 0},
    {NULL, 4, 1, 4, -1, "", 0},
    {NULL, 4, 1, 4, -1, "RONDO_CUDA_BANK=1M RONDO_CUDA_FIFOS=2 RONDO_CUDA_CHANNELS=5", 0},
    {NULL, 2, 1, 2, -1, "RONDO_CHECK=1", 0},
    {NULL, 3, 1, 3, -1, "RONDO_P2P=0", 0},
    {NULL, 3, 1, 3, 0, "SIM_NO_PEERS=0-1", 0},
    {NULL, 17, 1, 17, -1, "RONDO_PROXY_THREADS=1", 0},
    {"1+1", 2, 2, 1, -1, "", 0},
    {"2+2", 4, 2, 2, -1, "RONDO_PROXY_THREADS=2", 0},
    {"1+1", 2, 2, 1, -1, "RONDO_GDR=1 RONDO_GDR_SCRATCH=1M", 0},
    {"2+1", 3, 2, 2, -1, "RONDO_PROXY_THREADS=1 RONDO_PROXY_BYTES=64K RONDO_GDR=0", 0},
    {"2+2", 4, 2, 2, -1, "RONDO_PROXY_THREADS=3 RONDO_P2P=0 RONDO_SLOTS=2", 0},
    {"2+2", 4, 2, 2, -1, "RONDO_PROXY_THREADS=1 RONDO_CHECK=1", 0},
    {"1+1", 2, 2, 1, -1, "RONDO_PROXY_THREADS=1", 3},
};

/* ---- what CUDA is asked for */

static size_t device, pinned, registered;
static int counts; /* a communicator is being made */

cudaError_t __real_cudaMalloc(void **pointer, size_t bytes);
cudaError_t __wrap_cudaMalloc(void **pointer, size_t bytes);
cudaError_t __wrap_cudaMalloc(void **pointer, size_t bytes)
{
    device += counts ? bytes : 0;
    return __real_cudaMalloc(pointer, bytes);
}

/* The page of 64 communicators' words counts as those of one. */
cudaError_t __real_cudaHostAlloc(void **pointer, size_t bytes, unsigned flags);
cudaError_t __wrap_cudaHostAlloc(void **pointer, size_t bytes, unsigned flags);
cudaError_t __wrap_cudaHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    pinned += !counts ? 0 : bytes == 4096 ? 64 : bytes;
    return __real_cudaHostAlloc(pointer, bytes, flags);
}

cudaError_t __real_cudaHostRegister(void *pointer, size_t bytes, unsigned flags);
cudaError_t __wrap_cudaHostRegister(void *pointer, size_t bytes, unsigned flags);
cudaError_t __wrap_cudaHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    registered += counts ? bytes : 0;
    return __real_cudaHostRegister(pointer, bytes, flags);
}

rondo_result_t __real_rd_cuda_create(rd_cuda_t **cuda, const rd_team_t *team, const rd_net_comm_ops_t *net_comms);
rondo_result_t __wrap_rd_cuda_create(rd_cuda_t **cuda, const rd_team_t *team, const rd_net_comm_ops_t *net_comms);
rondo_result_t __wrap_rd_cuda_create(rd_cuda_t **cuda, const rd_team_t *team, const rd_net_comm_ops_t *net_comms)
{
    counts = 1;
    rondo_result_t result = __real_rd_cuda_create(cuda, team, net_comms);
    counts = 0;
    return result;
}

/* ---- */

static void print(const char *what, const rondo_memory_t *m)
{
    printf("%s: device %llu, pinned %llu, shared %llu, network %llu\n", what, (unsigned long long)m->device,
           (unsigned long long)m->pinned, (unsigned long long)m->shared, (unsigned long long)m->network);
}

static int local_of(const case_t *c, int rank)
{
    return c->nnodes == 1 || rank < c->most ? c->most : c->nranks - c->most;
}

/* The emptier of two nodes has no rank of its place: it takes less than is foreseen. */
static bool has_no_rail(const case_t *c, int rank)
{
    return c->nnodes == 2 && rank < c->most && rank >= c->nranks - c->most;
}

static void body(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_shape_t shape = RONDO_SHAPE_INIT;
    rondo_memory_t want = {.size = sizeof want}, now = {.size = sizeof now};
    int local = local_of(c, t->rank);
    rd_topo_t topo;

    shape.nranks = c->nranks;
    shape.nnodes = c->nnodes;
    shape.local = local;
    shape.p2p = c->p2p;
    rd_topo_basic(&topo);
    shape.cores = topo.usable / c->nnodes; /* of this machine, which the played nodes share */
    config.device = 0;
    config.net_channels = c->channels ? c->channels : -1;
    TEST_OK(t, NULL, rondo_comm_memory(&config, &shape, &want));
    rondo_comm_t comm = device_comm_config(t, config);
    if (c->channels)
        TEST_TRUE(t, comm->cuda->path->nchannels == c->channels);
    test_note(t, "%d ranks, %s, %s", c->nranks, c->nodes ? c->nodes : "one node", c->settings);
    TEST_OK(t, comm, rondo_comm_memory_now(comm, &now));
    if (has_no_rail(c, t->rank)) {
        TEST_TRUE(t, now.network < want.network && now.shared == want.shared);
        want.network = now.network;
    }
    if (memcmp(&want, &now, sizeof now) != 0) {
        print("foreseen", &want);
        print("taken", &now);
        test_fail(t, "what was foreseen is not what was taken");
    }
    /* Windows in device memory that could not be mapped are left to other communicators. */
    if ((c->p2p != 0 && device != want.device) || pinned + registered / (size_t)local != want.pinned)
        test_fail(t, "CUDA was asked for %zu bytes, %zu pinned and %zu to be pinned", device, pinned, registered);
    TEST_TRUE(t, want.pinned > 0 && (want.device > 0) == (c->nranks > 1));
    device_end(t, comm, NULL, 0);
}

/* Sets the variables of the case, or takes them back. */
static void settle(const case_t *c, int set)
{
    char text[200], *next = text, *setting;

    snprintf(text, sizeof text, "%s", c->settings);
    while ((setting = strsep(&next, " ")) != NULL) {
        const char *name = strsep(&setting, "=");
        if (setting && set)
            setenv(name, setting, 1);
        else if (setting)
            unsetenv(name);
    }
}

/* Is there a network between played nodes? */
static void probe(test_rank_t *t, void *there)
{
    rondo_comm_t comm = test_comm_on(t, 2);

    if (!comm)
        return;
    *(int *)there = 1;
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

int main(void)
{
    int *there = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), bad = 0;

    if (there == MAP_FAILED)
        return 1;
    test_begin("footprint", 200);
    (void)device_nodes("1+1");
    bad |= test_run(TEST_PROCESSES, 2, 30, probe, there) != 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const case_t *c = &cases[i];
        if (c->nodes && !*there)
            continue;
        settle(c, 1);
        (void)device_nodes(c->nodes);
        bad |= test_run(TEST_PROCESSES, c->nranks, 60, body, (void *)(uintptr_t)c) != 0;
        settle(c, 0);
    }
    return bad;
}
