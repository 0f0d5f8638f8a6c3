/* An abort beside a call of another thread that waits for the device: rondo_mem_free does, like cudaFree, and the
 * device runs what has the stream stall behind another rank's end (core/binding.h). The abort ends that, and then waits
 * for the call; it does not wait for RONDO_NCCL_STALL_MS. */
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

int main(void)
{
    int devices[2] = {0, 1};
    rondo_result_t error = RONDO_SUCCESS;
    cudaStream_t stream;
    pthread_t thread;

    alarm(100);
    setenv("RONDO_DEBUG", "none", 1);
    setenv("RONDO_NCCL_STALL_MS", "3600000", 1);
    if (rondo_comm_create_all(comms, 2, devices, NULL) != RONDO_SUCCESS)
        return 1;
    CHECK(cudaSetDevice(0) == cudaSuccess && cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(rondo_mem_alloc(&buffer, 4096, comms[0]) == RONDO_SUCCESS);
    CHECK(rondo_comm_abort(comms[1]) == RONDO_SUCCESS);
    while (error == RONDO_SUCCESS) /* or until the alarm */
        CHECK(rondo_comm_get_error(comms[0], &error) == RONDO_SUCCESS);
    CHECK(error == RONDO_ERR_REMOTE);
    CHECK(rondo_comm_stall(comms[0], stream) == RONDO_SUCCESS);
    CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
    if (pthread_create(&thread, NULL, free_buffer, NULL) != 0)
        return 1;
    while (!atomic_load(&comms[0]->queries))
        sched_yield();
    CHECK(rondo_comm_abort(comms[0]) == RONDO_SUCCESS);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess && cudaStreamDestroy(stream) == cudaSuccess);
    return failures != 0;
}
