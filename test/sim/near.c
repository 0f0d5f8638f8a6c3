/* Messages between ranks of one node, on a communicator of several nodes, equally full or not, go past the host: no
 * proxy is asked for anything, and beside messages to other nodes it is asked for those alone. Where GPUs do not reach
 * each other it is asked for all. Single calls, groups and graphs; as many in a group as a launch's arguments do not
 * hold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/proxy/proxy.h"
#include "core/comm.h"
#include "core/transports.h"
#include "gpu/device.h"

#define INTS 3000
#define MOST 60

typedef struct {
    const char *nodes;
    int first; /* ranks on the first of two */
    int past;  /* GPUs of a node reach each other */
} layout_t;

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
    cudaStream_t stream;
    int *buffer;
} world_t;

/* Triggers of all proxy channels. */
static uint64_t asked(const world_t *w)
{
    const rd_proxy_path_t *s = w->comm->cuda->path;
    uint64_t all = 0;

    for (int c = 0; c < s->nchannels; c++)
        all += atomic_load(&s->channels[c].announced);
    return all;
}

/* `n` each way with each of the two. What comes lies over what goes: nobody looks at it. */
static void exchange(world_t *w, int n, const int peers[2])
{
    TEST_OK(w->t, NULL, rondo_group_start());
    for (int i = 0; i < 2 * n; i++) {
        int peer = peers[i % 2], *at = w->buffer + (size_t)(i / 2) * INTS;
        if (peer < 0)
            continue;
        TEST_OK(w->t, w->comm, rondo_send(at, INTS, RONDO_INT32, peer, w->comm, w->stream));
        TEST_OK(w->t, w->comm, rondo_recv(at + MOST * INTS, INTS, RONDO_INT32, peer, w->comm, w->stream));
    }
    TEST_OK(w->t, NULL, rondo_group_end());
}

static uint64_t counted(world_t *w, int n, int a, int b)
{
    uint64_t before = asked(w);

    exchange(w, n, (const int[2]){a, b});
    TEST_CUDA(w->t, cudaStreamSynchronize(w->stream));
    return asked(w) - before;
}

static void single(world_t *w, int mate)
{
    test_rank_t *t = w->t;

    if (t->rank < mate)
        TEST_OK(t, w->comm, rondo_send(w->buffer, INTS, RONDO_INT32, mate, w->comm, w->stream));
    else
        TEST_OK(t, w->comm, rondo_recv(w->buffer, INTS, RONDO_INT32, mate, w->comm, w->stream));
    TEST_CUDA(t, cudaStreamSynchronize(w->stream));
}

/* A graph's triggers come unannounced; that it holds some is counted. */
static int held(world_t *w, int mate)
{
    const rd_proxy_path_tasks_t *tasks = w->comm->cuda->path->tasks;
    int before = atomic_load(&tasks->captured);
    cudaGraph_t graph;

    TEST_CUDA(w->t, cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal));
    exchange(w, 1, (const int[2]){mate, -1});
    TEST_CUDA(w->t, cudaStreamEndCapture(w->stream, &graph));
    int holds = atomic_load(&tasks->captured) - before;
    TEST_CUDA(w->t, cudaGraphDestroy(graph));
    return holds;
}

static void body(test_rank_t *t, void *arg)
{
    const layout_t *l = arg;
    int one = t->rank ^ 1, other = t->rank ^ 2, here = t->rank < l->first;
    int near_one = l->past && here == (one < l->first), near_other = l->past && here == (other < l->first);
    world_t w = {.t = t};

    w.comm = device_comm(t);
    w.buffer = device_memory(t, 2 * MOST * INTS * sizeof(int), 0);
    TEST_CUDA(t, cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking));
    uint64_t before = asked(&w);
    single(&w, one);
    TEST_TRUE(t, (asked(&w) == before) == near_one);
    for (int n = 1; n <= MOST; n += MOST - 1) { /* so many are more than one launch */
        uint64_t alone = counted(&w, n, other, -1);
        TEST_TRUE(t, (alone == 0) == near_other);
        TEST_TRUE(t, (counted(&w, n, one, -1) == 0) == near_one);
        TEST_TRUE(t, (counted(&w, n, one, other) == alone) == near_one);
    }
    TEST_TRUE(t, (held(&w, one) == 0) == near_one);
    device_end(t, w.comm, &w.stream, 1);
}

int main(void)
{
    layout_t layouts[] = {{"2+2", 2, 1}, {"3+1", 3, 1}, {"1+3", 1, 1}, {"2+2", 2, 0}, {"3+1", 3, 0}};
    int bad = 0;

    test_begin("near", 100);
    if (device_none() || !rd_transport_named("ucx"))
        return TEST_SKIPPED;
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        setenv("RONDO_P2P", layouts[i].past ? "1" : "0", 1);
        int worse = test_run(TEST_PROCESSES, device_nodes(layouts[i].nodes), 60, body, &layouts[i]);
        printf("near: %s, %s: %s\n", layouts[i].nodes,
               layouts[i].past ? "past the host" : "GPUs do not reach each other", worse ? "WRONG" : "right");
        bad += worse;
    }
    return bad != 0;
}
