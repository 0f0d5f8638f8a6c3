/* An abort beside a call of another thread that waits for the device: rondo_mem_free does, like cudaFree, and the
 * device runs what has the stream stall behind another rank's end (core/binding.h). The abort ends that, and then waits
 * for the call; it does not wait for RONDO_NCCL_STALL_MS. And an abort in front of a stall that begins only later, when
 * another communicator may have the memory of the words that end it. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <rondo.h>

#include "core/binding.h"
#include "core/comm.h"
#include "sim/runtime.h"
#include "util/check.h"

static rondo_comm_t comms[2];
static void *buffer;

static void *free_buffer(void *unused)
{
    CHECK(rondo_mem_free(buffer, comms[0]) == RONDO_SUCCESS);
    return unused;
}

/* Has rank 1 abort, and waits until rank 0 knows. */
static bool fail_first(void)
{
    int devices[2] = {0, 1};
    rondo_result_t error = RONDO_SUCCESS;

    if (rondo_comm_create_all(comms, 2, devices, NULL) != RONDO_SUCCESS)
        return false;
    CHECK(rondo_mem_alloc(&buffer, 4096, comms[0]) == RONDO_SUCCESS);
    CHECK(rondo_comm_abort(comms[1]) == RONDO_SUCCESS);
    while (error == RONDO_SUCCESS) /* or until the alarm */
        CHECK(rondo_comm_get_error(comms[0], &error) == RONDO_SUCCESS);
    CHECK(error == RONDO_ERR_REMOTE);
    return true;
}

static void stall_beside(cudaStream_t stream)
{
    pthread_t thread;

    CHECK(rondo_comm_stall(comms[0], stream) == RONDO_SUCCESS);
    CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
    if (pthread_create(&thread, NULL, free_buffer, NULL) != 0)
        abort();
    while (!atomic_load(&comms[0]->queries))
        sched_yield();
    CHECK(rondo_comm_abort(comms[0]) == RONDO_SUCCESS);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

static void await_gate(void *open)
{
    while (!atomic_load((atomic_int *)open))
        sched_yield();
}

static void stall_later(cudaStream_t stream)
{
    int devices[2] = {0, 1};
    atomic_int open = 0;

    CHECK(rondo_mem_free(buffer, comms[0]) == RONDO_SUCCESS);
    CHECK(cudaLaunchHostFunc(stream, await_gate, &open) == cudaSuccess);
    CHECK(rondo_comm_stall(comms[0], stream) == RONDO_SUCCESS);
    CHECK(rondo_comm_abort(comms[0]) == RONDO_SUCCESS);
    CHECK(rondo_comm_create_all(comms, 2, devices, NULL) == RONDO_SUCCESS);
    atomic_store(&open, 1);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    for (int r = 0; r < 2; r++)
        CHECK(rondo_comm_destroy(comms[r]) == RONDO_SUCCESS);
}

int main(void)
{
    cudaStream_t stream;

    alarm(100);
    setenv("RONDO_DEBUG", "none", 1);
    setenv("RONDO_NCCL_STALL_MS", "3600000", 1);
    CHECK(cudaSetDevice(0) == cudaSuccess && cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    if (!fail_first())
        return 1;
    stall_beside(stream);
    if (!fail_first())
        return 1;
    stall_later(stream);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    return failures != 0;
}
