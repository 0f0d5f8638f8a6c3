/* Between played nodes a rank that gets nothing back goes on while its proxies have yet to send: from a stream and from
 * a graph. Nothing is lost when the graph ends then, or the communicator, and neither waits for what it need not. A
 * barrier holds its stream until all have come. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/comm.h"
#include "exec/cuda/proxy/proxy.h"
#include "gpu/device.h"
#include "core/transports.h"

#define CHANNELS 2

typedef enum { GRAPH_FIRST, COMM_FIRST, ABORT } end_t;

typedef struct {
    size_t count;
    int reduce; /* or broadcast */
    end_t end;
} case_t;

/* ---- proxies that are held */

static _Atomic int64_t until_us; /* this rank's proxies do nothing for the communicator before */

static rd_proxy_state_t carry_later(void *channel)
{
    return test_clock_us() < atomic_load(&until_us) ? RD_PROXY_WAITS : rd_proxy_progress(channel);
}

static int held(void)
{
    return test_clock_us() < atomic_load(&until_us);
}

static void hold(test_rank_t *t, rondo_comm_t comm, int ms)
{
    rd_proxy_path_t *s = comm->cuda->path;

    atomic_store(&until_us, test_clock_us() + 1000 * (int64_t)ms);
    TEST_TRUE(t, s->nchannels == CHANNELS);
    for (int c = 0; c < s->nchannels; c++) {
        rd_proxy_remove(&s->channels[c].client);
        s->channels[c].client.turn = carry_later;
        TEST_TRUE(t, rd_proxy_add(&s->channels[c].client) == 0);
    }
}

static void go_on(rondo_comm_t comm)
{
    rd_proxy_path_t *s = comm->cuda->path;

    atomic_store(&until_us, 0);
    for (int c = 0; c < s->nchannels; c++)
        rd_proxy_wake(&s->channels[c].client);
}

/* ---- what gets nothing back */

static rondo_result_t post(const case_t *c, int *data, rondo_comm_t comm, cudaStream_t stream)
{
    return c->reduce ? rondo_reduce(data, data, c->count, RONDO_INT32, RONDO_SUM, 1, comm, stream)
                     : rondo_broadcast(data, data, c->count, RONDO_INT32, 0, comm, stream);
}

static cudaGraphExec_t captured(test_rank_t *t, const case_t *c, int *data, rondo_comm_t comm, cudaStream_t stream)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    TEST_CUDA(t, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    TEST_OK(t, comm, post(c, data, comm, stream));
    TEST_CUDA(t, cudaStreamEndCapture(stream, &graph));
    TEST_CUDA(t, cudaGraphInstantiate(&exec, graph, 0));
    TEST_CUDA(t, cudaGraphDestroy(graph));
    return exec;
}

static void give(test_rank_t *t, const case_t *c, rondo_comm_t comm, cudaGraphExec_t exec, cudaStream_t stream)
{
    hold(t, comm, c->end == GRAPH_FIRST ? 20000 : 1000);
    TEST_CUDA(t, cudaGraphLaunch(exec, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    TEST_TRUE(t, held()); /* it has not waited for them */
    if (c->end == GRAPH_FIRST) {
        TEST_CUDA(t, cudaGraphExecDestroy(exec));
        go_on(comm);
        for (int i = 0; i < 5000 && atomic_load(&comm->cuda->path->tasks->captured); i++)
            usleep(1000);
        TEST_TRUE(t, atomic_load(&comm->cuda->path->tasks->captured) == 0); /* what it held has been freed */
        test_barrier(t);
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
        return;
    }
    test_barrier(t);
    if (c->end == ABORT)
        TEST_OK(t, NULL, rondo_comm_abort(comm));
    else
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    TEST_CUDA(t, cudaGraphExecDestroy(exec));
}

static void get(test_rank_t *t, const case_t *c, int *data, rondo_comm_t comm, cudaGraphExec_t exec,
                cudaStream_t stream)
{
    test_barrier(t); /* the other one is over */
    TEST_CUDA(t, cudaGraphLaunch(exec, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    for (size_t i = 0; i < c->count && c->end != ABORT; i++)
        if (data[i] != (int)i + (c->reduce ? 5 : 0))
            test_stop(t, "element %zu is %d", i, data[i]);
    if (c->end == ABORT)
        TEST_TRUE(t, rondo_barrier(comm, stream) != RONDO_SUCCESS);
    (void)rondo_comm_destroy(comm);
    TEST_CUDA(t, cudaGraphExecDestroy(exec));
}

static void one_way(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    int *data = device_memory(t, c->count * sizeof *data, 1);
    rondo_comm_t comm = device_comm(t);
    cudaStream_t stream;

    for (size_t i = 0; i < c->count; i++)
        data[i] = t->rank ? 5 : (int)i;
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaGraphExec_t exec = captured(t, c, data, comm, stream);
    if (t->rank == 0)
        give(t, c, comm, exec, stream);
    else
        get(t, c, data, comm, exec, stream);
    device_end(t, NULL, &stream, 1);
}

/* ---- a barrier */

static void barrier(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = device_comm(t);
    cudaStream_t stream;

    (void)arg;
    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (t->rank == 0) {
        TEST_OK(t, comm, rondo_barrier(comm, stream));
        usleep(100000);
        TEST_TRUE(t, cudaStreamQuery(stream) == cudaErrorNotReady);
    }
    test_barrier(t);
    if (t->rank)
        TEST_OK(t, comm, rondo_barrier(comm, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    device_end(t, comm, &stream, 1);
}

int main(void)
{
    static const char *const ends[] = {"graph first", "communicator first", "abort"};
    static const size_t counts[] = {25, 800, 3500}; /* by lines; two rounds a proxy channel, which all find slots */
    int bad = 0;

    test_begin("early", 200);
    setenv("RONDO_PROXY_THREADS", "2", 1);
    if (device_none() || !rd_transport_named("ucx"))
        return TEST_SKIPPED;
    bad += test_run(TEST_PROCESSES, device_nodes("1+1"), 40, barrier, NULL) != 0;
    printf("early: barrier: %s\n", bad ? "WRONG" : "right");
    for (int i = 0; i < 18; i++) {
        case_t c = {counts[i % 3], i / 3 % 2, (end_t)(i / 6)};
        int worse = test_run(TEST_PROCESSES, device_nodes("1+1"), 40, one_way, &c);
        printf("early: %s of %zu, %s: %s\n", c.reduce ? "reduce" : "broadcast", c.count, ends[c.end],
               worse ? "WRONG" : "right");
        bad += worse != 0;
    }
    return bad != 0;
}
