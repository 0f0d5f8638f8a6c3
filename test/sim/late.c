/* A kernel that waits for long names the rank that it waits for, and why that does not come, again and again in the log
 * of the process whose kernel it is, though nobody of that process calls rondo meanwhile; when the rank comes, all is
 * well. So does the error, where the time limit is over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rondo.h>

#include "exec/cuda/cuda_int.h"
#include "core/comm.h"
#include "sim/runtime.h"
#include "util/check.h"

static char log_name[] = "/tmp/rondo-late-XXXXXX";

/* How often the log names rank 1. */
static int named(void)
{
    FILE *f = fopen(log_name, "r");
    char line[1024];
    int times = 0;

    while (f && fgets(line, sizeof line, f))
        times +=
            strstr(line, "a kernel waits for ") && strstr(line, ": rank 1 (") && strstr(line, " is late, by 1 call: ");
    if (f)
        fclose(f);
    return times;
}

int main(void)
{
    const struct timespec pause = {0, 20000000};
    int devices[2] = {0, 1}, *buffers[2], fd = mkstemp(log_name);
    rondo_comm_t comms[2];
    cudaStream_t streams[2];

    alarm(100);
    CHECK(fd >= 0);
    close(fd);
    setenv("RONDO_DEBUG", "warn", 1);
    setenv("RONDO_DEBUG_FILE", log_name, 1);
    setenv("RONDO_STALL_MS", "900", 1);
    if (rondo_comm_create_all(comms, 2, devices, NULL) != RONDO_SUCCESS)
        return 1;
    for (int i = 0; i < 2; i++) {
        CHECK(cudaSetDevice(i) == cudaSuccess && cudaMalloc((void **)&buffers[i], 4096) == cudaSuccess);
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking) == cudaSuccess);
        CHECK(cudaMemsetAsync(buffers[i], 0, 4096, streams[i]) == cudaSuccess);
        CHECK(cudaStreamSynchronize(streams[i]) == cudaSuccess);
    }
    CHECK(rondo_allreduce(buffers[0], buffers[0], 1000, RONDO_INT32, RONDO_SUM, comms[0], streams[0]) == RONDO_SUCCESS);
    while (named() < 2) /* or until the alarm */
        nanosleep(&pause, NULL);
    CHECK(rondo_allreduce(buffers[1], buffers[1], 1000, RONDO_INT32, RONDO_SUM, comms[1], streams[1]) == RONDO_SUCCESS);
    for (int i = 0; i < 2; i++) {
        CHECK(cudaStreamSynchronize(streams[i]) == cudaSuccess);
    }
    CHECK(rondo_timeout_set(comms[0], 2000) == RONDO_SUCCESS);
    CHECK(rondo_allreduce(buffers[0], buffers[0], 1000, RONDO_INT32, RONDO_SUM, comms[0], streams[0]) == RONDO_SUCCESS);
    CHECK(cudaStreamSynchronize(streams[0]) == cudaSuccess);
    CHECK(rondo_allreduce(buffers[0], buffers[0], 1000, RONDO_INT32, RONDO_SUM, comms[0], streams[0]) ==
          RONDO_ERR_TIMEOUT);
    const char *error = rondo_last_error(comms[0]);
    printf("%s\n", error);
    CHECK(strstr(error, "waited longer than 2000 ms: rank 1 (") && strstr(error, " is late, by 1 call: "));
    for (int i = 0; i < 2; i++) {
        CHECK(rondo_comm_abort(comms[i]) == RONDO_SUCCESS);
        CHECK(cudaStreamDestroy(streams[i]) == cudaSuccess && cudaFree(buffers[i]) == cudaSuccess);
    }
    unlink(log_name);
    return failures != 0;
}
