/* A rank destroys a communicator of played nodes while the others have yet to use another one with it, and come to
 * their own ends of the first one later: to leave waits for nobody who has to wait for this rank. With short messages
 * and with long ones, of which the credits are still on their way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device.h"
#include "core/transports.h"

static void body(test_rank_t *t, void *arg)
{
    size_t count = *(size_t *)arg;
    float *buffer = device_memory(t, count * sizeof *buffer, 0);
    rondo_comm_t first = device_comm(t), other = device_comm(t);
    cudaStream_t stream;

    TEST_CUDA(t, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    TEST_CUDA(t, cudaMemsetAsync(buffer, 0, count * sizeof *buffer, stream));
    for (int i = 0; i < 3; i++)
        TEST_OK(t, first, rondo_allreduce(buffer, buffer, count, RONDO_FLOAT32, RONDO_SUM, first, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    test_barrier(t);
    test_note(t, "destroys the first");
    if (t->rank == 0)
        TEST_OK(t, NULL, rondo_comm_destroy(first));
    test_note(t, "uses the other");
    TEST_OK(t, other, rondo_allreduce(buffer, buffer, count, RONDO_FLOAT32, RONDO_SUM, other, stream));
    TEST_CUDA(t, cudaStreamSynchronize(stream));
    if (t->rank)
        TEST_OK(t, NULL, rondo_comm_destroy(first));
    device_end(t, other, &stream, 1);
}

int main(void)
{
    const char *const nodes[] = {"1+1", "2+1"};
    int bad = 0;

    test_begin("leave", 100);
    setenv("RONDO_PROXY_THREADS", "2", 0);
    if (device_none() || !rd_transport_named("ucx"))
        return TEST_SKIPPED;
    for (int i = 0; i < 4; i++) {
        size_t count = i % 2 ? 300000 : 100;
        int worse = test_run(TEST_PROCESSES, device_nodes(nodes[i / 2]), 40, body, &count);
        printf("leave: %s, %zu elements: %s\n", nodes[i / 2], count, worse ? "WRONG" : "right");
        bad += worse;
    }
    return bad != 0;
}
