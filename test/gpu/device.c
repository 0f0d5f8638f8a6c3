/* See device.h. */
#include "device.h"

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

    if (sim_live) { /* what threads simulate is small: so that a few kilobytes take several passes */
        setenv("RONDO_CUDA_BANK", "64K", 0);
        setenv("RONDO_CUDA_FIFOS", "4", 0);
        rd_sim_patience(100); /* the cores may be busy with other tests */
    }
    pid_t pid = fork();

    if (pid == 0)
        _exit(cudaGetDeviceCount(&count) != cudaSuccess || count == 0);
    return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

rondo_comm_t device_comm_config(test_rank_t *t, rondo_config_t config)
{
    int count;

    TEST_CUDA(t, cudaGetDeviceCount(&count));
    config.device = t->rank % count;
    TEST_CUDA(t, cudaSetDevice(config.device));
    return test_comm(t, &config);
}

rondo_comm_t device_comm(test_rank_t *t)
{
    return device_comm_config(t, (rondo_config_t)RONDO_CONFIG_INIT);
}

/* This rank's: every rank is a thread. */
typedef struct block {
    struct block *next;
    char *base;
    size_t bytes;
    int kind, taken;
} block_t;
static _Thread_local block_t *blocks;

void *device_memory(test_rank_t *t, size_t bytes, int kind)
{
    block_t *b = blocks;
    void *base = NULL;

    while (b && (b->taken || b->kind != kind || b->bytes < bytes))
        b = b->next;
    if (!b) {
        b = malloc(sizeof *b);
        bytes += bytes / 2 + 8192;
        if (!b)
            test_stop(t, "no memory");
        if (kind == 1)
            TEST_CUDA(t, cudaHostAlloc(&base, bytes, cudaHostAllocPortable));
        else if (kind == 2)
            TEST_CUDA(t, cudaMallocManaged(&base, bytes, cudaMemAttachGlobal));
        else
            TEST_CUDA(t, cudaMalloc(&base, bytes));
        *b = (block_t){blocks, base, bytes, kind, 0};
        blocks = b;
    }
    b->taken = 1;
    return b->base;
}

void device_memory_back(void *memory)
{
    for (block_t *b = blocks; b; b = b->next) {
        if (b->base == memory)
            b->taken = 0;
    }
}

void device_finish(test_rank_t *t)
{
    test_barrier(t);
    while (blocks) {
        block_t *b = blocks;
        blocks = b->next;
        TEST_CUDA(t, b->kind == 1 ? cudaFreeHost(b->base) : cudaFree(b->base));
        free(b);
    }
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
}

void device_prepare(test_rank_t *t, device_call_t *d, const do_case_t *c, int kind)
{
    device_prepare_as(t, d, c, kind, t->rank, t->nranks);
}

void device_fill(test_rank_t *t, device_call_t *d, cudaStream_t stream)
{
    TEST_CUDA(t, cudaMemcpyAsync(d->recv_block, d->call.recv_block, d->recv_bytes, cudaMemcpyDefault, stream));
    if (d->send_block != d->recv_block)
        TEST_CUDA(t, cudaMemcpyAsync(d->send_block, d->call.send_block, d->send_bytes, cudaMemcpyDefault, stream));
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

    TEST_CUDA(t, cudaMemcpyAsync(c->recv_block, d->recv_block, d->recv_bytes, cudaMemcpyDefault, stream));
    if (d->send_block != d->recv_block)
        TEST_CUDA(t, cudaMemcpyAsync(c->send_block, d->send_block, d->send_bytes, cudaMemcpyDefault, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    if (do_verify(c, values, wrong, sizeof wrong) != 0)
        test_fail(t, "%s", wrong);
}

void device_release(device_call_t *d)
{
    device_memory_back(d->send_block);
    device_memory_back(d->recv_block);
    do_release(&d->call);
}
