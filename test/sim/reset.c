/* A program that resets its device between communicators: kernels are loaded into the new context before one of them
 * may wait, and memory that the reset has ended is neither taken again nor freed. */
#include "exec/cuda/cuda_int.h"
#include "gpu/device.h"

static int launches;

cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments)
{
    launches++;
    return __real_cudaLaunchKernelExC(config, function, arguments);
}

static void sum(test_rank_t *t, rondo_comm_t comm)
{
    float *buffer = NULL, got = 0;
    const float one = 1;

    TEST_CUDA(t, cudaMalloc((void **)&buffer, 4096));
    TEST_CUDA(t, cudaMemcpy(buffer, &one, sizeof one, cudaMemcpyDefault));
    TEST_OK(t, comm, rondo_allreduce(buffer, buffer, 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    TEST_CUDA(t, cudaMemcpy(&got, buffer, sizeof got, cudaMemcpyDefault));
    TEST_TRUE(t, got == (float)t->nranks);
    TEST_CUDA(t, cudaFree(buffer));
}

/* Rank 0 leaves first, so its window waits in its process for the others to leave, too. */
static void body(test_rank_t *t, void *arg)
{
    int loads[3];

    (void)arg;
    for (int i = 0; i < 3; i++) {
        const int before = launches;
        rondo_comm_t comm = device_comm(t);
        loads[i] = launches - before;
        sum(t, comm);
        test_barrier(t);
        if (t->rank != 0)
            test_barrier(t);
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
        if (t->rank == 0 && i == 0)
            TEST_CUDA(t, cudaDeviceReset());
        if (t->rank == 0)
            test_barrier(t);
        test_barrier(t);
    }
    TEST_TRUE(t, loads[0] == 1 && loads[1] == (t->rank == 0) && loads[2] == 0);
}

static int no_context(void *value, int attribute, unsigned long long pointer)
{
    (void)value;
    (void)attribute;
    (void)pointer;
    return 201;
}

/* Memory of which the driver does not know the number any more is gone, whatever its error. */
static void gone(test_rank_t *t, void *arg)
{
    int here = 0;
    const uint64_t number = 1;

    (void)arg;
    rd_driver_find();
    rd_driver.attribute = no_context;
    TEST_TRUE(t, rd_driver_buffer_gone(&here, number));
}

int main(void)
{
    test_begin("reset", 120);
    if (test_run(TEST_PROCESSES, 1, 60, gone, NULL) != 0)
        return 1;
    return test_run(TEST_PROCESSES, 3, 60, body, NULL) != 0;
}
