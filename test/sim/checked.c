/* With RONDO_CHECK between nodes a kernel that compares the call is launched before the operation's own: none for a
 * call that is refused, and what the call's event tells is the launch of the operation. */
#include <stdlib.h>

#include "gpu/device.h"

static int launches, events, event_last; /* of kernels; those with an event; and whether the last one has it */

cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments)
{
    event_last = 0;
    for (unsigned i = 0; i < config->numAttrs; i++)
        event_last |= config->attrs[i].id == cudaLaunchAttributeLaunchCompletionEvent;
    launches++;
    events += event_last;
    return __real_cudaLaunchKernelExC(config, function, arguments);
}

static void body(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = device_comm(t);
    float *buffer = NULL, got = 0;
    const float one = 1;
    cudaEvent_t event;

    (void)arg;
    TEST_CUDA(t, cudaMalloc((void **)&buffer, 4096));
    TEST_CUDA(t, cudaMemcpy(buffer, &one, sizeof one, cudaMemcpyDefault));
    TEST_CUDA(t, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    launches = events = 0;
    TEST_OK(t, NULL, rondo_force_next("oneshot", "ll128"));
    TEST_GIVES(t, comm, RONDO_ERR_UNSUPPORTED,
               rondo_allreduce(buffer, buffer, 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, launches == 0);
    TEST_OK(t, NULL, rondo_launch_event_next(event));
    TEST_OK(t, comm, rondo_allreduce(buffer, buffer, 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, launches == 2 && events == 1 && event_last);
    TEST_CUDA(t, cudaMemcpy(&got, buffer, sizeof got, cudaMemcpyDefault));
    TEST_TRUE(t, got == (float)t->nranks);
    TEST_CUDA(t, cudaEventDestroy(event));
    TEST_CUDA(t, cudaFree(buffer));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

int main(void)
{
    const int nranks = device_nodes("1+1");

    test_begin("checked", 120);
    if (!test_has_network())
        return TEST_SKIPPED;
    setenv("RONDO_CHECK", "1", 1);
    return test_run(TEST_PROCESSES, nranks, 60, body, NULL) != 0;
}
