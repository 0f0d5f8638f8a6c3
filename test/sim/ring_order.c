/* A communicator whose GPUs have unlike links: rings, chains and trees visit the ranks in the order that
 * RONDO_GRAPH_FILE says, or that the links of RONDO_TOPO_FILE ask for, on all ranks the same though only rank 0 has the
 * file; a kernel that waits for a neighbour in that order names the rank, not the place, in the log and in the error of
 * its time limit; a file that cannot be read is an error of every rank, in rank 0's words; a communicator that is
 * resumed keeps its order, whatever the file says by then. What is computed is test/sim/ordered.sh's affair. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rondo.h>

#include "core/comm.h"
#include "exec/cuda/cuda_int.h"
#include "util/check.h"

#define N 4
#define COUNT (1 << 16)

static char graph_name[] = "/tmp/rondo-graph-XXXXXX", log_name[] = "/tmp/rondo-order-XXXXXX";
static int devices[N] = {0, 1, 2, 3}, *buffers[N];
static rondo_comm_t comms[N];
static cudaStream_t streams[N];

static void file_write(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");

    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        exit(1);
}

static bool begin(void)
{
    CHECK(rondo_comm_create_all(comms, N, devices, NULL) == RONDO_SUCCESS, "%s", rondo_last_error(NULL));
    return failures == 0;
}

static void finish(bool aborts)
{
    for (int i = 0; i < N; i++)
        CHECK((aborts ? rondo_comm_abort(comms[i]) : rondo_comm_destroy(comms[i])) == RONDO_SUCCESS);
}

static void order_is(const int want[N])
{
    for (int i = 0; i < N; i++) {
        const rd_ring_visits_t *p = &comms[i]->cuda->visits;
        for (int at = 0; at < N; at++)
            CHECK((p->is ? p->rank[at] : at) == want[at], "rank %d, place %d: %d", i, at, p->rank[at]);
    }
}

static int allreduce(int i)
{
    return rondo_allreduce(buffers[i], buffers[i], COUNT, RONDO_INT32, RONDO_SUM, comms[i], streams[i]);
}

static bool logged(const char *a, const char *b)
{
    FILE *f = fopen(log_name, "r");
    char line[1024];
    bool found = false;

    while (f && fgets(line, sizeof line, f))
        found = found || (strstr(line, a) && strstr(line, b));
    if (f)
        fclose(f);
    return found;
}

/* Place 1 is rank 2's, and rank 1, behind it, waits for what comes from there. */
static void late(void)
{
    const struct timespec pause = {0, 20000000};

    for (int i = 0; i < N; i++)
        CHECK(i == 2 || allreduce(i) == RONDO_SUCCESS);
    while (!logged("a kernel waits for ", ": rank 2 (")) /* or until the alarm */
        nanosleep(&pause, NULL);
    CHECK(!logged("a kernel waits for ", ": rank 3 ("));
    CHECK(allreduce(2) == RONDO_SUCCESS);
    for (int i = 0; i < N; i++)
        CHECK(cudaStreamSynchronize(streams[i]) == cudaSuccess);
    CHECK(rondo_timeout_set(comms[1], 1000) == RONDO_SUCCESS);
    CHECK(allreduce(0) == RONDO_SUCCESS && allreduce(1) == RONDO_SUCCESS && allreduce(3) == RONDO_SUCCESS);
    CHECK(cudaStreamSynchronize(streams[1]) == cudaSuccess);
    CHECK(allreduce(1) == RONDO_ERR_TIMEOUT);
    CHECK(strstr(rondo_last_error(comms[1]), "rank 2 ("), "%s", rondo_last_error(comms[1]));
}

#define GPU(r) "<gpu dev=\"" #r "\" rank=\"" #r "\"/>"
#define GRAPH(a, b, c, d)                                                                                              \
    "<graphs version=\"1\"><graph id=\"0\" pattern=\"4\" nchannels=\"1\"><channel>" GPU(a) GPU(b) GPU(c)               \
        GPU(d) "</channel></graph></graphs>"

static void given(void)
{
    file_write(graph_name, GRAPH(0, 2, 1, 3));
    setenv("RONDO_GRAPH_FILE", graph_name, 1);
    if (!begin())
        return;
    order_is((const int[N]){0, 2, 1, 3});
    late();
    finish(true);
    file_write(graph_name, "<graphs version=\"1\">\n<graph id=\"0\"/></graphs>");
    CHECK(rondo_comm_create_all(comms, N, devices, NULL) != RONDO_SUCCESS);
    CHECK(strstr(rondo_last_error(NULL), "RONDO_GRAPH_FILE=") && strstr(rondo_last_error(NULL), "line 2"), "%s",
          rondo_last_error(NULL));
    unsetenv("RONDO_GRAPH_FILE");
}

static void *rest(void *comm)
{
    CHECK(rondo_comm_suspend(comm) == RONDO_SUCCESS, "%s", rondo_last_error(comm));
    CHECK(rondo_comm_resume(comm) == RONDO_SUCCESS, "%s", rondo_last_error(comm));
    return NULL;
}

/* Channels go on counting over a suspension, so their neighbours must stay. */
static void resumed(void)
{
    pthread_t threads[N];

    file_write(graph_name, GRAPH(0, 2, 1, 3));
    setenv("RONDO_GRAPH_FILE", graph_name, 1);
    if (!begin())
        return;
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < N; i++)
            CHECK(allreduce(i) == RONDO_SUCCESS);
        for (int i = 0; i < N; i++)
            CHECK(cudaStreamSynchronize(streams[i]) == cudaSuccess);
        order_is((const int[N]){0, 2, 1, 3});
        if (turn)
            break;
        file_write(graph_name, GRAPH(0, 3, 2, 1));
        for (int i = 0; i < N; i++)
            CHECK(pthread_create(&threads[i], NULL, rest, comms[i]) == 0);
        for (int i = 0; i < N; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
    }
    finish(false);
    unsetenv("RONDO_GRAPH_FILE");
}

int main(void)
{
    alarm(100);
    close(mkstemp(log_name));
    close(mkstemp(graph_name));
    setenv("RONDO_DEBUG", "warn", 1);
    setenv("RONDO_DEBUG_FILE", log_name, 1);
    setenv("RONDO_STALL_MS", "900", 1);
    setenv("RONDO_PROTO", "simple", 1);
    setenv("RONDO_ALGO", "ring", 1);
    /* GPUs 0 and 2, and 1 and 3, are behind a switch of each of two sockets. */
    file_write(graph_name,
               "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:10:00.0\" class=\"0x060400\">"
               "<pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu dev=\"0\"/></pci>"
               "<pci busid=\"0000:03:00.0\" class=\"0x030200\"><gpu dev=\"2\"/></pci></pci></cpu>"
               "<cpu numaid=\"1\"><pci busid=\"0000:11:00.0\" class=\"0x060400\">"
               "<pci busid=\"0000:02:00.0\" class=\"0x030200\"><gpu dev=\"1\"/></pci>"
               "<pci busid=\"0000:04:00.0\" class=\"0x030200\"><gpu dev=\"3\"/></pci></pci></cpu></system>");
    for (int i = 0; i < N; i++) {
        CHECK(cudaSetDevice(i) == cudaSuccess && cudaMalloc((void **)&buffers[i], COUNT * sizeof(int)) == cudaSuccess);
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking) == cudaSuccess);
        CHECK(cudaMemset(buffers[i], 0, COUNT * sizeof(int)) == cudaSuccess);
    }
    if (begin())
        order_is((const int[N]){0, 1, 2, 3}); /* nothing is known of the links */
    finish(false);
    setenv("RONDO_TOPO_FILE", graph_name, 1);
    if (begin()) {
        const int *r = comms[0]->cuda->visits.rank;
        CHECK(comms[0]->cuda->visits.is && (r[1] == 2 || r[3] == 2));
        order_is((const int[N]){r[0], r[1], r[2], r[3]});
    }
    finish(false);
    setenv("RONDO_ORDER", "rank", 1);
    if (begin())
        order_is((const int[N]){0, 1, 2, 3});
    finish(false);
    unsetenv("RONDO_ORDER");
    unsetenv("RONDO_TOPO_FILE");
    given();
    resumed();
    for (int i = 0; i < N; i++)
        CHECK(cudaStreamDestroy(streams[i]) == cudaSuccess && cudaFree(buffers[i]) == cudaSuccess);
    unlink(log_name);
    unlink(graph_name);
    return failures != 0;
}
