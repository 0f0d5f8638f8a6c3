/* A program that resets its device between communicators: kernels are loaded into the new context before one of them
 * may wait, and memory that the reset has ended is neither taken again nor freed. And who asks whether memory is still
 * there keeps no other thread from making or ending a communicator. */
#include <pthread.h>

#include "exec/cuda/graveyard.h"
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

static int looks;
static int (*driver_active)(int device, unsigned *flags, int *active);

static int active(int device, unsigned *flags, int *is)
{
    looks++;
    return driver_active(device, flags, is);
}

/* By a thread that has no context: on another device than it has by name, after which it has none still; and on that
 * one, also when that was reset. No call but a creation asks whether there was a reset. */
static void *no_context_here(void *arg)
{
    static const struct {
        int device, loads;
    } all[] = {{1, 1}, {1, 0}, {0, 1}, {0, 0}, {0, 1}};
    test_rank_t *t = arg;

    for (int i = 0; i < 5; i++) {
        rondo_config_t config = RONDO_CONFIG_INIT;
        const int before = launches;
        rondo_unique_id_t id;
        rondo_comm_t comm;
        void *buffer;
        config.device = all[i].device;
        if (i == 4)
            TEST_CUDA(t, cudaDeviceReset());
        TEST_OK(t, NULL, rondo_unique_id_create(&id));
        TEST_OK(t, NULL, rondo_comm_create(&comm, 1, &id, 0, &config));
        TEST_TRUE(t, launches - before == all[i].loads);
        looks = 0;
        TEST_OK(t, comm, rondo_mem_alloc(&buffer, 64, comm));
        TEST_OK(t, comm, rondo_mem_free(buffer, comm));
        TEST_TRUE(t, looks == 0);
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    }
    return NULL;
}

static void fresh_threads(test_rank_t *t, void *arg)
{
    pthread_t thread;

    (void)arg;
    rd_driver_find();
    driver_active = rd_driver.active;
    rd_driver.active = active;
    TEST_TRUE(t, pthread_create(&thread, NULL, no_context_here, t) == 0 && pthread_join(thread, NULL) == 0);
}

/* ---- what CUDA is asked, it answers when another thread has asked the graveyard */

static int asked; /* 0: it answers at once */

static void *ask_graveyard(void *arg)
{
    static rd_khost_t none;

    (void)rd_window_left_take(0, 12345);
    rd_words_give(&none);
    return arg;
}

static void others_go_on(void)
{
    pthread_t thread;

    if (asked && pthread_create(&thread, NULL, ask_graveyard, NULL) == 0) {
        asked++;
        (void)pthread_join(thread, NULL);
    }
}

cudaError_t __real_cudaHostAlloc(void **pointer, size_t bytes, unsigned flags);
cudaError_t __wrap_cudaHostAlloc(void **pointer, size_t bytes, unsigned flags);
cudaError_t __wrap_cudaHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    others_go_on();
    return __real_cudaHostAlloc(pointer, bytes, flags);
}

static int (*driver_attribute)(void *value, int attribute, unsigned long long pointer);

static int attribute(void *value, int which, unsigned long long pointer)
{
    others_go_on();
    return driver_attribute(value, which, pointer);
}

/* One communicator stays, because the end of the last one does ask with the lock held. */
static void asking(test_rank_t *t, void *arg)
{
    rd_cuda_t some = {.device = t->rank};
    void *memory = NULL;

    (void)arg;
    rd_driver_find();
    driver_attribute = rd_driver.attribute;
    rd_driver.attribute = attribute;
    asked = 1;
    test_note(t, "the words of a communicator");
    rondo_comm_t stays = device_comm(t);
    TEST_TRUE(t, asked > 1);
    for (int i = 0; i < 3; i++) {
        test_note(t, "a window that is left, and found again, %d", i);
        const int before = asked;
        rondo_comm_t comm = device_comm(t);
        TEST_TRUE(t, i == 0 || asked > before);
        test_barrier(t);
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
        test_barrier(t);
    }
    test_note(t, "memory beside it");
    TEST_CUDA(t, cudaMalloc(&memory, 4096));
    rd_window_leave(&some, memory, 4096, RD_LEFT_UNUSED);
    TEST_TRUE(t, rd_window_left_take(t->rank, 4096) == memory);
    rd_window_leave(&some, memory, 4096, RD_LEFT_UNUSED);
    TEST_CUDA(t, cudaFree(memory));
    TEST_TRUE(t, rd_window_left_take(t->rank, 4096) == NULL);
    asked = 0;
    TEST_OK(t, NULL, rondo_comm_destroy(stays));
}

int main(void)
{
    test_begin("reset", 120);
    if (test_run(TEST_PROCESSES, 1, 60, gone, NULL) != 0 || test_run(TEST_PROCESSES, 1, 60, fresh_threads, NULL) != 0)
        return 1;
    return test_run(TEST_PROCESSES, 3, 60, body, NULL) != 0 || test_run(TEST_PROCESSES, 2, 60, asking, NULL) != 0;
}
