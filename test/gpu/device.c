/* See device.h. */
#include "gpu/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void test_cuda(test_rank_t *t, cudaError_t error, const char *text)
{
    if (error != cudaSuccess)
        test_stop(t, "%s: %s", text, cudaGetErrorString(error));
}

int device_none(void)
{
    int count = 0, status = 1;

    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32",
           0);      /* ranks of one process may share a GPU, each with several streams */
    if (sim_live) { /* what threads simulate is small: so that a few kilobytes take several passes */
        setenv("RONDO_CUDA_BANK", "64K", 0);
        setenv("RONDO_CUDA_FIFOS", "4", 0);
        setenv("RONDO_PROXY_BYTES", "8K", 0);
        setenv("RONDO_PROXY_ROUND", "1K", 0);
        setenv("RONDO_PROXY_THREADS", "3", 0);
        rd_sim_patience(100); /* the cores may be busy with other tests */
    }
    pid_t pid = fork();

    if (pid == 0)
        _exit(cudaGetDeviceCount(&count) != cudaSuccess || count == 0);
    return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

/* Memory of each kind, taken once: where several ranks share a GPU and a process, CUDA's allocations, and its copies
 * from ordinary host memory, would wait for another rank's kernel, which waits for this rank. This rank's: every rank
 * is a thread. What is given back is had again when all of it has been given back. */
typedef struct pool {
    char *base;
    size_t used;
    int taken;
} pool_t;
#define PINNED 0
#define MANAGED 1
#define DEVICE 2 /* and so on: one for each device */
#define POOLS 18
#define POOL_BYTES ((size_t)48 << 20)
static _Thread_local pool_t pools[POOLS];

static pool_t *pool_of(test_rank_t *t, int kind)
{
    int device;

    TEST_CUDA(t, cudaGetDevice(&device));
    return &pools[kind == 1 ? PINNED : kind == 2 ? MANAGED : DEVICE + device % (POOLS - DEVICE)];
}

static int holds(const pool_t *p, const void *memory)
{
    return p->base && (const char *)memory >= p->base && (const char *)memory < p->base + POOL_BYTES;
}

void device_pools(test_rank_t *t)
{
    void *base;

    for (int kind = 0; kind < 3; kind++) {
        pool_t *p = pool_of(t, kind);
        if (p->base)
            continue;
        TEST_CUDA(t, kind == 1   ? cudaHostAlloc(&base, POOL_BYTES, cudaHostAllocPortable)
                     : kind == 2 ? cudaMallocManaged(&base, POOL_BYTES, cudaMemAttachGlobal)
                                 : cudaMalloc(&base, POOL_BYTES));
        *p = (pool_t){base, 0, 0};
    }
}

static char nodes[64]; /* of each rank; empty: nothing is played */

int device_nodes(const char *text)
{
    size_t ranks = 0;
    char node = '0';

    memset(nodes, 0, sizeof nodes);
    if (text && *text >= 'a') { /* a letter for each rank */
        size_t letters = strspn(text, "abcdefgh");
        if (text[letters] || letters > sizeof nodes || letters > TEST_MAX_RANKS)
            return 0;
        memcpy(nodes, text, letters);
        ranks = letters;
    }
    for (const char *c = ranks ? NULL : text; c && *c; c += *c == '+') {
        char *end;
        unsigned long here = strtoul(c, &end, 10);
        if (end == c || here == 0 || ranks + here > TEST_MAX_RANKS || (*end != '+' && *end))
            return 0;
        memset(nodes + ranks, node++, here);
        ranks += here;
        c = end;
    }
    if (text)
        setenv("RONDO_IFACE", "lo", 0);
    return (int)ranks;
}

/* Before a communicator is made. */
static void play(const test_rank_t *t)
{
    char host[16];

    if (!nodes[0] || t->kind != TEST_PROCESSES)
        return;
    snprintf(host, sizeof host, "played%c", nodes[t->rank]);
    setenv("RONDO_HOSTID", host, 1);
}

int device_begin(test_rank_t *t)
{
    int count;

    TEST_CUDA(t, cudaGetDeviceCount(&count));
    TEST_CUDA(t, cudaSetDevice(t->rank % count));
    device_pools(t);
    play(t);
    return t->rank % count;
}

rondo_comm_t device_comm_config(test_rank_t *t, rondo_config_t config)
{
    config.device = device_begin(t);
    return test_comm(t, &config);
}

rondo_comm_t device_comm(test_rank_t *t)
{
    return device_comm_config(t, (rondo_config_t)RONDO_CONFIG_INIT);
}

void *device_memory(test_rank_t *t, size_t bytes, int kind)
{
    pool_t *p = pool_of(t, kind);
    char *block;

    if (!p->base)
        device_pools(t);
    if (p->used + bytes > POOL_BYTES)
        test_stop(t, "%zu bytes more than the pool holds", p->used + bytes - POOL_BYTES);
    block = p->base + p->used;
    p->used += (bytes + 511) / 256 * 256;
    p->taken++;
    return block;
}

void device_memory_back(void *memory)
{
    for (pool_t *p = pools; p < pools + POOLS; p++) {
        if (holds(p, memory) && --p->taken == 0)
            p->used = 0;
    }
}

void device_graphs_destroy(test_rank_t *t, cudaGraphExec_t *exec, int n)
{
    test_barrier(t);
    for (int i = 0; i < n; i++)
        TEST_CUDA(t, cudaGraphExecDestroy(exec[i]));
    test_barrier(t);
}

void device_finish(test_rank_t *t)
{
    test_barrier(t);
    for (int i = 0; i < POOLS; i++) {
        if (pools[i].base)
            TEST_CUDA(t, i == PINNED ? cudaFreeHost(pools[i].base) : cudaFree(pools[i].base));
        pools[i] = (pool_t){NULL, 0, 0};
    }
}

size_t device_nodes_of(test_rank_t *t, cudaGraph_t graph, enum cudaGraphNodeType kind)
{
    cudaGraphNode_t node[256];
    size_t n = sizeof node / sizeof node[0], found = 0;

    TEST_CUDA(t, cudaGraphGetNodes(graph, node, &n));
    for (size_t i = 0; i < n; i++) {
        enum cudaGraphNodeType type;
        TEST_CUDA(t, cudaGraphNodeGetType(node[i], &type));
        found += type == kind;
    }
    return found;
}

void device_failed(test_rank_t *t, rondo_comm_t comm)
{
    rondo_result_t error = RONDO_SUCCESS;

    while (error == RONDO_SUCCESS && TEST_OK(t, NULL, rondo_comm_get_error(comm, &error)))
        usleep(100);
}

void device_end(test_rank_t *t, rondo_comm_t comm, const cudaStream_t *streams, int n)
{
    if (comm)
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    test_barrier(t);
    for (int i = 0; i < n; i++)
        TEST_CUDA(t, cudaStreamDestroy(streams[i]));
    device_finish(t);
}

static void to_host(device_call_t *d)
{
    memcpy(d->recv_host, d->call.recv_block, d->recv_bytes);
    if (d->send_block != d->recv_block)
        memcpy(d->send_host, d->call.send_block, d->send_bytes);
}

void device_prepare_as(test_rank_t *t, device_call_t *d, const do_case_t *c, int kind, int rank, int nranks)
{
    do_call_t *call = &d->call;

    if (do_prepare(call, c, rank, nranks) != 0)
        test_stop(t, "no memory");
    size_t longer = call->send_bytes > call->recv_bytes ? call->send_bytes : call->recv_bytes;
    int one = call->send_block == call->recv_block;
    d->recv_bytes = do_block_bytes(one ? longer : call->recv_bytes);
    d->send_bytes = do_block_bytes(call->send_bytes);
    d->recv_block = device_memory(t, d->recv_bytes, kind);
    d->send_block = one ? d->recv_block : device_memory(t, d->send_bytes, kind);
    d->recv_host = device_memory(t, d->recv_bytes, 1);
    d->send_host = one ? d->recv_host : device_memory(t, d->send_bytes, 1);
    to_host(d);
}

void device_refill(device_call_t *d)
{
    do_refill(&d->call);
    to_host(d);
}

void device_prepare(test_rank_t *t, device_call_t *d, const do_case_t *c, int kind)
{
    device_prepare_as(t, d, c, kind, t->rank, t->nranks);
}

/* In stream order. But what is pinned at both ends is copied here, when the stream has come so far: CUDA has one thread
 * for such copies of all streams, and while it waits for one rank's kernel, another rank's copy that the kernel waits
 * for would not begin. */
static void copy(test_rank_t *t, char *to, const char *from, size_t bytes, cudaStream_t stream)
{
    const pool_t *p = pool_of(t, 1);

    if (!holds(p, to) || !holds(p, from)) {
        TEST_CUDA(t, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
        return;
    }
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    memcpy(to, from, bytes);
}

void device_fill(test_rank_t *t, device_call_t *d, cudaStream_t stream)
{
    copy(t, d->recv_block, d->recv_host, d->recv_bytes, stream);
    if (d->send_block != d->recv_block)
        copy(t, d->send_block, d->send_host, d->send_bytes, stream);
}

rondo_result_t device_post(device_call_t *d, rondo_comm_t comm, cudaStream_t stream)
{
    const do_call_t *c = &d->call;

    return do_post_at(c, d->send_block + (c->send - c->send_block), d->recv_block + (c->recv - c->recv_block), comm,
                      stream);
}

void device_verify(test_rank_t *t, device_call_t *d, int values, cudaStream_t stream)
{
    do_call_t *c = &d->call;
    char wrong[256];

    copy(t, d->recv_host, d->recv_block, d->recv_bytes, stream);
    if (d->send_block != d->recv_block)
        copy(t, d->send_host, d->send_block, d->send_bytes, stream);
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    memcpy(c->recv_block, d->recv_host, d->recv_bytes);
    if (d->send_block != d->recv_block)
        memcpy(c->send_block, d->send_host, d->send_bytes);
    if (do_verify(c, values, wrong, sizeof wrong) != 0)
        test_fail(t, "%s", wrong);
}

void device_release(device_call_t *d)
{
    if (d->send_block != d->recv_block) {
        device_memory_back(d->send_block);
        device_memory_back(d->send_host);
    }
    device_memory_back(d->recv_block);
    device_memory_back(d->recv_host);
    do_release(&d->call);
}
