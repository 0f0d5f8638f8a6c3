/* See device.h. */
#include "device.h"

#include <stdio.h>
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

static void *allocate(test_rank_t *t, size_t bytes, int kind)
{
    void *memory = NULL;

    if (kind == 1)
        TEST_CUDA(t, cudaHostAlloc(&memory, bytes, cudaHostAllocPortable));
    else if (kind == 2)
        TEST_CUDA(t, cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal));
    else
        TEST_CUDA(t, cudaMalloc(&memory, bytes));
    return memory;
}

void device_prepare(test_rank_t *t, device_call_t *d, const do_case_t *c, int kind)
{
    do_call_t *call = &d->call;

    if (do_prepare(call, c, t->rank, t->nranks) != 0)
        test_stop(t, "no memory");
    size_t longer = call->send_bytes > call->recv_bytes ? call->send_bytes : call->recv_bytes;
    int one = call->send_block == call->recv_block;
    d->recv_bytes = do_block_bytes(one ? longer : call->recv_bytes);
    d->send_bytes = do_block_bytes(call->send_bytes);
    d->recv_block = allocate(t, d->recv_bytes, kind);
    d->send_block = one ? d->recv_block : allocate(t, d->send_bytes, kind);
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

void device_release(test_rank_t *t, device_call_t *d)
{
    struct cudaPointerAttributes a;
    char *blocks[2] = {d->recv_block, d->send_block == d->recv_block ? NULL : d->send_block};

    for (int i = 0; i < 2; i++) {
        if (!blocks[i])
            continue;
        TEST_CUDA(t, cudaPointerGetAttributes(&a, blocks[i]));
        TEST_CUDA(t, a.type == cudaMemoryTypeHost ? cudaFreeHost(blocks[i]) : cudaFree(blocks[i]));
    }
    do_release(&d->call);
}
