/* A part of shim.c: memory and windows of libnccl.so.2, what is counted of them, and communicators that are suspended.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/shim.h"
#include "nccl/later.h"

/* In place in a window, of which blocks may be copied, and in memory that is in none. */
static void gathers(test_rank_t *t, ncclComm_t comm, cudaStream_t stream, int32_t *window, size_t count)
{
    const size_t block = count / (size_t)t->nranks;
    int32_t *plain = device_memory(t, count * sizeof *plain, 0), *host = device_memory(t, count * sizeof *host, 1);

    for (int i = 0; i < 4; i++) {
        int32_t *at = i % 2 ? plain : window, *own = at + (size_t)t->rank * block;
        for (size_t k = 0; k < block; k++)
            host[k] = (int32_t)k + 1000 * t->rank + i;
        TEST_CUDA(t, cudaMemcpyAsync(own, host, block * sizeof *host, cudaMemcpyDefault, stream));
        NCCL_OK(t, ncclAllGather(own, at, block, ncclInt, comm, stream));
        TEST_CUDA(t, cudaMemcpyAsync(host, at, count * sizeof *host, cudaMemcpyDefault, stream));
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        for (size_t k = 0; k < block * (size_t)t->nranks; k++)
            TEST_TRUE(t, host[k] == (int32_t)(k % block) + 1000 * (int32_t)(k / block) + i);
    }
    device_memory_back(host);
    device_memory_back(plain);
}

static uint64_t statistic(test_rank_t *t, ncclComm_t comm, ncclCommMemStat_t which)
{
    uint64_t value = 17;

    NCCL_OK(t, pncclCommMemStats(comm, which, &value));
    return value;
}

/* On the simulated machine it is known whether GPUs reach each other, and so how much there must be. */
static void statistics(test_rank_t *t, ncclComm_t comm)
{
    uint64_t total = statistic(t, comm, ncclStatGpuMemTotal);
    rondo_memory_t memory = {.size = sizeof memory};
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_shape_t shape = RONDO_SHAPE_INIT;

    const uint64_t rests = statistic(t, comm, ncclStatGpuMemSuspend);

    TEST_TRUE(t, (total > 0) == (t->nranks > 1) && total == rests + statistic(t, comm, ncclStatGpuMemPersist));
    TEST_TRUE(t, statistic(t, comm, ncclStatGpuMemSuspended) == 0);
    NCCL_GIVES(t, ncclInvalidArgument, pncclCommSuspend(comm, 2));
    NCCL_OK(t, pncclCommSuspend(comm, NCCL_SUSPEND_MEM));
    TEST_TRUE(t, statistic(t, comm, ncclStatGpuMemSuspended) == 1 && statistic(t, comm, ncclStatGpuMemSuspend) == 0);
    TEST_TRUE(t, statistic(t, comm, ncclStatGpuMemTotal) == total - rests);
    NCCL_GIVES(t, ncclInvalidUsage, pncclCommSuspend(comm, NCCL_SUSPEND_MEM));
    NCCL_OK(t, pncclCommResume(comm));
    TEST_TRUE(t, statistic(t, comm, ncclStatGpuMemSuspended) == 0);
    TEST_TRUE(t, statistic(t, comm, ncclStatGpuMemTotal) == total);
    config.device = shim_device(t);
    shape.nranks = t->nranks;
    TEST_OK(t, NULL, rondo_comm_memory(&config, &shape, &memory));
    TEST_TRUE(t, !sim_contexts || total == memory.device);
}

void shim_memory(test_rank_t *t, void *arg)
{
    const size_t count = 50000, bytes = count * sizeof(int32_t);
    setenv("RONDO_CUDA_COPY", "4K", 1);
    ncclComm_t comm = shim_comm_by(t, t->nranks % 2, t->nranks % 2 ? NCCL_CONFIG_UNDEF_INT : NCCL_CTA_POLICY_ZERO);
    cudaStream_t stream = shim_stream(t);
    int32_t *host = device_memory(t, bytes, 1);
    void *buffer = NULL, *handle = NULL;
    ncclWindow_t win = NULL;

    (void)arg;
    test_note(t, "memory and windows");
    statistics(t, comm);
    if (!NCCL_OK(t, ncclMemAlloc(&buffer, bytes)))
        return;
    TEST_TRUE(t, (uintptr_t)buffer % NCCL_WIN_REQUIRED_ALIGNMENT == 0);
    test_barrier(t); /* all have their memory before there is a kernel */
    NCCL_OK(t, ncclCommRegister(comm, buffer, bytes, &handle));
    NCCL_OK(t, ncclCommDeregister(comm, handle));
    for (int round = 0; round < 2; round++) {
        NCCL_OK(t, ncclCommWindowRegister(comm, buffer, bytes, &win, NCCL_WIN_COLL_SYMMETRIC)); /* at once */
        for (size_t i = 0; i < count; i++)
            host[i] = (int32_t)i + t->rank;
        TEST_CUDA(t, cudaMemcpyAsync(buffer, host, bytes, cudaMemcpyDefault, stream));
        NCCL_OK(t, ncclAllReduce(buffer, buffer, count, ncclInt, ncclMax, comm, stream));
        TEST_CUDA(t, cudaMemcpyAsync(host, buffer, bytes, cudaMemcpyDefault, stream));
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        TEST_TRUE(t, host[0] == t->nranks - 1 && host[count - 1] == (int32_t)count + t->nranks - 2);
        gathers(t, comm, stream, buffer, count);
        NCCL_OK(t, pncclCommSuspend(comm, NCCL_SUSPEND_MEM));
        NCCL_GIVES(t, ncclInvalidUsage, ncclCommWindowDeregister(comm, win)); /* and can do it later */
        NCCL_OK(t, pncclCommResume(comm));
        if (round) /* as PyTorch does before it aborts */
            NCCL_OK(t, ncclCommDeregister(comm, win));
        else
            NCCL_OK(t, ncclCommWindowDeregister(comm, win));
        NCCL_GIVES(t, ncclInvalidArgument, ncclCommWindowDeregister(comm, win));
    }
    NCCL_OK(t, ncclCommWindowRegister(comm, buffer, bytes, &win, 0)); /* left to the communicator */
    NCCL_OK(t, ncclCommDestroy(comm));
    NCCL_OK(t, ncclMemFree(buffer));
    NCCL_GIVES(t, ncclUnhandledCudaError, ncclMemAlloc(&buffer, (size_t)1 << 62));
    device_end(t, NULL, &stream, 1);
}

/* With NCCL_CHECK_POINTERS a call in a group is refused itself, as in NCCL, and so is memory of another GPU, which
 * rondo would take. */
void shim_pointers(test_rank_t *t, void *arg)
{
    static int32_t pageable;
    int count = 0, device = -1;

    (void)arg;
    setenv("NCCL_CHECK_POINTERS", "1", 1);
    ncclComm_t comm = shim_comm(t, 1);
    cudaStream_t stream = shim_stream(t);
    int32_t *n = shim_number(t, 5), *own = device_memory(t, sizeof *own, 0), *other = NULL;

    test_note(t, "pointers that are checked");
    NCCL_OK(t, ncclGroupStart());
    NCCL_OK(t, ncclAllReduce(n, own, 1, ncclInt, ncclSum, comm, stream));
    NCCL_GIVES(t, ncclInvalidArgument, ncclAllReduce(n, &pageable, 1, ncclInt, ncclSum, comm, stream));
    NCCL_GIVES(t, ncclInvalidArgument, ncclSend(&pageable, 1, ncclInt, 0, comm, stream));
    NCCL_GIVES(t, ncclInvalidArgument, ncclGroupEnd());
    NCCL_OK(t, ncclReduce(n, t->rank ? &pageable : own, 1, ncclInt, ncclSum, 0, comm, stream)); /* the root's alone */
    TEST_CUDA(t, cudaGetDeviceCount(&count));
    if (count > 1) {
        TEST_CUDA(t, cudaGetDevice(&device));
        TEST_CUDA(t, cudaSetDevice((device + 1) % count));
        TEST_CUDA(t, cudaMalloc((void **)&other, sizeof *other));
        TEST_CUDA(t, cudaSetDevice(device));
        NCCL_GIVES(t, ncclInvalidArgument, ncclAllReduce(n, other, 1, ncclInt, ncclSum, comm, stream));
        TEST_TRUE(t, strstr(ncclGetLastError(comm), "lies on device") != NULL);
    }
    shim_sum_is(t, comm, stream, t->nranks); /* unharmed */
    NCCL_OK(t, ncclCommDestroy(comm));
    device_end(t, NULL, &stream, 1);
}
