/* Two communicators side by side: one ends while a kernel of the other waits, and GPUs begin their kernels in different
 * orders. Parts of the test life. */
#include "gpu/life.h"

#include <stdlib.h>
#include <unistd.h>

/* Rank 0 ends a communicator, in order or after an error, while its kernel of another one waits for rank 1, which calls
 * only when rank 0 has done so. What a communicator leaves behind meanwhile, later ones take: it does not grow. */
void life_beside(test_rank_t *t, void *arg)
{
    enum { ENDS = 5 };
    int *device = device_memory(t, 4096, 0), live[ENDS];
    void *registered;
    cudaStream_t stream;
    char text[200];

    (void)arg;
    rondo_comm_t comm = device_comm(t);
    TEST_CUDA(t, cudaMalloc(&registered, 1 << 20));
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < ENDS; i++) {
        rondo_comm_t other = device_comm(t);
        rondo_registration_t reg;
        int aborts = i == ENDS - 1;

        test_note(t, "%s beside a kernel, %d", aborts ? "abort" : "destroy", i);
        if (aborts)
            TEST_OK(t, other, rondo_comm_register(other, registered, 1 << 20, &reg));
        life_sum_checked(t, other, t->nranks, stream, 100);
        test_barrier(t);
        if (t->rank == 0)
            life_sum(t, comm, stream, device, 100);
        if (t->rank == 0)
            TEST_OK(t, NULL, aborts ? rondo_comm_abort(other) : rondo_comm_destroy(other));
        test_barrier(t);
        if (t->rank != 0)
            life_sum(t, comm, stream, device, 100);
        if (t->rank != 0)
            (void)rondo_comm_destroy(other); /* it may have heard of the other one's abort */
        TEST_CUDA(t, cudaStreamSynchronize(stream));
        test_barrier(t);
        live[i] = sim_live ? sim_live(text, sizeof text) : 0;
    }
    /* Windows in host memory are unpinned by the last communicator alone. */
    if (t->kind == TEST_PROCESSES && !getenv("RONDO_P2P") && live[ENDS - 2] > live[1])
        test_fail(t, "%d things of CUDA are there, and were %d: %s", live[ENDS - 2], live[1], text);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    test_barrier(t);
    TEST_CUDA(t, cudaFree(registered));
    device_end(t, NULL, &stream, 1);
}

static void hold(void *milliseconds)
{
    usleep(1000u * *(unsigned *)milliseconds);
}

/* As many floats as let the ring fill a GPU with blocks: two passes of 16 tiles of 1 KB of each rank's chunk for each
 * multiprocessor. */
static size_t filling(test_rank_t *t)
{
    int sms = 0, device;

    TEST_CUDA(t, cudaGetDevice(&device));
    TEST_CUDA(t, cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    return sim_live ? 3000 : (size_t)sms * 16 * 1024 * 2 * (size_t)t->nranks / sizeof(float);
}

/* Two communicators in two streams, one of which is held back: on this GPU the first begins first, on the next one the
 * second. Each would fill the GPU if it were alone. */
void life_crossing(test_rank_t *t, void *arg)
{
    static unsigned pause = 3; /* milliseconds */
    size_t count = filling(t), bytes = count * sizeof(float);
    float *data[2], *host[2];
    rondo_comm_t comm[2];
    cudaStream_t stream[2];

    (void)arg;
    for (int i = 0; i < 2; i++) {
        comm[i] = device_comm(t);
        data[i] = device_memory(t, bytes, 0);
        host[i] = device_memory(t, bytes, 1);
        TEST_CUDA(t, cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
    }
    for (int round = 0; round < 20; round++) {
        test_note(t, "round %d", round);
        for (int i = 0; i < 2; i++) {
            for (size_t k = 0; k < count; k++)
                host[i][k] = (float)(k % 1000 + (size_t)(i + round));
            TEST_CUDA(t, cudaMemcpyAsync(data[i], host[i], bytes, cudaMemcpyDefault, stream[i]));
            TEST_CUDA(t, cudaStreamSynchronize(stream[i]));
        }
        test_barrier(t);
        TEST_CUDA(t, cudaLaunchHostFunc(stream[(t->rank + round) % 2], hold, &pause));
        for (int i = 0; i < 2; i++)
            TEST_OK(t, comm[i], rondo_allreduce(data[i], data[i], count, RONDO_FLOAT32, RONDO_SUM, comm[i], stream[i]));
        for (int i = 0; i < 2; i++) {
            TEST_CUDA(t, cudaMemcpyAsync(host[i], data[i], bytes, cudaMemcpyDefault, stream[i]));
            TEST_CUDA(t, cudaStreamSynchronize(stream[i]));
            for (size_t k = 0; k < count; k++)
                if (host[i][k] != (float)((size_t)t->nranks * (k % 1000 + (size_t)(i + round))))
                    test_stop(t, "round %d: element %zu of communicator %d is %g", round, k, i, (double)host[i][k]);
        }
    }
    for (int i = 0; i < 2; i++) {
        TEST_OK(t, NULL, rondo_comm_destroy(comm[i]));
        TEST_CUDA(t, cudaStreamDestroy(stream[i]));
    }
    device_finish(t);
}
