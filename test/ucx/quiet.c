/* A rank dies between nodes. With RONDO_DEBUG=none the others print nothing, UCX included, which calls a lost
 * connection an error, and warns of a device that is not there; where the user has asked for UCX's lines, by
 * UCX_LOG_LEVEL or RONDO_DEBUG=trace, they come. That half also shows that there is something to silence. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/harness.h"

#define RANKS 2

typedef struct trial {
    const char *debug, *level; /* RONDO_DEBUG; UCX_LOG_LEVEL, or NULL: not set */
    bool lines;
} trial_t;

static rondo_result_t lose(test_rank_t *t, rondo_comm_t comm)
{
    float data[4096] = {0}, sum[4096];
    rondo_result_t result = RONDO_SUCCESS;

    for (int i = 0; i < 1000000 && result == RONDO_SUCCESS; i++) {
        if (i == 100 && t->rank == 1)
            raise(SIGKILL);
        result = rondo_allreduce(data, sum, 4096, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    }
    rondo_comm_destroy(comm);
    return result;
}

static void body(test_rank_t *t, void *arg)
{
    const trial_t *trial = arg;
    rondo_config_t config = RONDO_CONFIG_INIT;
    char host[16], text[65536] = "";
    int file = memfd_create("printed", MFD_CLOEXEC), out = dup(1), error = dup(2);

    snprintf(host, sizeof host, "host%d", t->rank);
    setenv("RONDO_HOSTID", host, 1);
    setenv("RONDO_DEBUG", trial->debug, 1);
    unsetenv("UCX_LOG_LEVEL");
    if (trial->level)
        setenv("UCX_LOG_LEVEL", trial->level, 1);
    config.device = RONDO_DEVICE_HOST;
    dup2(file, 1); /* what this rank and its libraries print goes into the file */
    dup2(file, 2);
    rondo_result_t result = lose(t, test_comm(t, &config));
    fflush(NULL);
    dup2(out, 1);
    dup2(error, 2);
    TEST_GIVES(t, NULL, RONDO_ERR_REMOTE, result);
    ssize_t bytes = pread(file, text, sizeof text - 1, 0);
    text[bytes > 0 ? bytes : 0] = 0;
    bool ucx = strstr(text, "UCX  ") != NULL; /* "[time] [host:pid:0] tcp_ep.c:1 UCX  ERROR ..." */
    if (ucx != trial->lines || (strcmp(trial->debug, "none") == 0 && !ucx && *text))
        test_fail(t, "RONDO_DEBUG=%s, UCX_LOG_LEVEL=%s: printed: %s", trial->debug,
                  trial->level ? trial->level : "not set", text);
}

int main(void)
{
    static const trial_t trials[] = {
        {"none", NULL, false}, {"warn", NULL, false}, {"none", "warn", true}, {"trace", NULL, true}};
    int bad = 0;

    test_begin("ucx_quiet", 60);
    setenv("RONDO_IFACE", "lo", 1);
    setenv("RONDO_UCX_NET_DEVICES", "lo,nodevice", 1);
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        test_director_t director = {.victims = 2};
        bad += test_run_directed(&director, RANKS, 20, body, (void *)&trials[i]);
    }
    return bad != 0;
}
