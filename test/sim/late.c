/* A kernel that waits for long names the rank that it waits for, and why that does not come, again and again in the log
 * of the process whose kernel it is, though nobody of that process calls rondo meanwhile; when the rank comes, all is
 * well. So does the error, where the time limit is over. Words that name no rank do not stand in the way of that. */
#include <stdbool.h>
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

#define TRIES 8

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

static rondo_comm_t comms[2];
static cudaStream_t streams[2];
static int *buffers[2];

static bool begin(void)
{
    int devices[2] = {0, 1};

    if (rondo_comm_create_all(comms, 2, devices, NULL) != RONDO_SUCCESS)
        return false;
    for (int i = 0; i < 2; i++) {
        CHECK(cudaSetDevice(i) == cudaSuccess && cudaMalloc((void **)&buffers[i], 4096) == cudaSuccess);
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking) == cudaSuccess);
        CHECK(cudaMemsetAsync(buffers[i], 0, 4096, streams[i]) == cudaSuccess);
        CHECK(cudaStreamSynchronize(streams[i]) == cudaSuccess);
    }
    return true;
}

static void end(void)
{
    for (int i = 0; i < 2; i++) {
        CHECK(rondo_comm_abort(comms[i]) == RONDO_SUCCESS);
        CHECK(cudaStreamDestroy(streams[i]) == cudaSuccess && cudaFree(buffers[i]) == cudaSuccess);
    }
}

static rondo_result_t allreduce(int rank)
{
    return rondo_allreduce(buffers[rank], buffers[rank], 1000, RONDO_INT32, RONDO_SUM, comms[rank], streams[rank]);
}

/* What a wait for this process's own proxy has left in the words, or two waits that wrote at once. */
static void words_are_cleared(void)
{
    const struct timespec pause = {0, 20000000};
    volatile rd_khost_t *host = comms[0]->cuda->host;
    const uint32_t call = host->wait[RD_KWAIT_CALL], left[2] = {RD_KWAIT(RD_KPROXY, call), RD_KWAIT(1, call + 1)};

    for (int i = 0; i < 2; i++) {
        host->wait[RD_KWAIT_PEER] = left[i];
        for (int tries = 0; tries < 500 && host->wait[RD_KWAIT_PEER]; tries++)
            nanosleep(&pause, NULL);
        CHECK(host->wait[RD_KWAIT_PEER] == 0, "word %d stays, and no later wait would be seen", i);
    }
}

static void in_the_log(void)
{
    const struct timespec pause = {0, 20000000};

    CHECK(allreduce(0) == RONDO_SUCCESS);
    while (named() < 2) /* or until the alarm */
        nanosleep(&pause, NULL);
    CHECK(allreduce(1) == RONDO_SUCCESS);
    for (int i = 0; i < 2; i++)
        CHECK(cudaStreamSynchronize(streams[i]) == cudaSuccess);
}

/* Returns whether the error says why rank 1 does not come. */
static bool in_the_error(void)
{
    CHECK(rondo_timeout_set(comms[0], 2000) == RONDO_SUCCESS);
    CHECK(allreduce(0) == RONDO_SUCCESS);
    CHECK(cudaStreamSynchronize(streams[0]) == cudaSuccess);
    CHECK(allreduce(0) == RONDO_ERR_TIMEOUT);
    const char *error = rondo_last_error(comms[0]);
    printf("%s\n", error);
    CHECK(strstr(error, "a kernel waited longer than 2000 ms"));
    return strstr(error, ": rank 1 (") && strstr(error, " is late, by 1 call: ");
}

/* A kernel that lacks a core, as only one made of threads may, does not show its wait, which then seems to be a new
 * one: so the error may come too early for a verdict, and it is tried again. */
int main(void)
{
    int fd = mkstemp(log_name);

    alarm(100);
    CHECK(fd >= 0);
    close(fd);
    setenv("RONDO_DEBUG", "warn", 1);
    setenv("RONDO_DEBUG_FILE", log_name, 1);
    setenv("RONDO_STALL_MS", "900", 1);
    if (!begin())
        return 1;
    words_are_cleared();
    if (failures)
        return 1;
    in_the_log();
    bool said = in_the_error();
    for (int i = 1; i < TRIES && !said; i++) {
        end();
        if (!begin())
            return 1;
        said = in_the_error();
    }
    CHECK(said, "no error says why rank 1 does not come");
    end();
    unlink(log_name);
    return failures != 0;
}
