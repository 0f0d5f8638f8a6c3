/* Windows of GPUs of one node that do not reach each other: the windows of all ranks lie in host memory that they
 * share, pinned for the GPU of each. This memory is found and mapped as that of host communicators is (node/node.h), so
 * it works across containers and has no name. What only a rank's own kernels exchange stays in device memory.
 *
 * Pinning and unpinning may wait for everything that runs on the device, so memory is unpinned when the process has no
 * communicator left: see graveyard.c. Ranks that are threads share one mapping, which is pinned once. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/cuda_int.h"

typedef struct pin {
    struct pin *next;
    const char *base;
    int users;
} pin_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pin_t *pins;

static pin_t **pin_at(const char *base)
{
    pin_t **at = &pins;

    while (*at && (*at)->base != base)
        at = &(*at)->next;
    return at;
}

static cudaError_t pin(char *base, size_t bytes)
{
    cudaError_t error = cudaSuccess;

    pthread_mutex_lock(&lock);
    pin_t *p = *pin_at(base), *made = p ? NULL : calloc(1, sizeof *made);
    if (p) {
        p->users++;
    } else if (!made) {
        error = cudaErrorMemoryAllocation;
    } else if ((error = cudaHostRegister(base, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped)) !=
               cudaSuccess) {
        free(made);
    } else {
        *made = (pin_t){pins, base, 1};
        pins = made;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

bool rd_window_host_unpin(const char *base)
{
    int last;

    pthread_mutex_lock(&lock);
    pin_t **at = pin_at(base), *p = *at;
    if ((last = --p->users == 0)) {
        *at = p->next;
        free(p);
    }
    pthread_mutex_unlock(&lock);
    return last;
}

/* Clears this rank's window, and sets the addresses of all windows as its device sees them. */
static rondo_result_t open_windows(rd_cuda_t *cuda)
{
    const rd_node_t *node = &cuda->shared;
    size_t control = (size_t)cuda->k.fifo_offset * RD_KALIGN;
    rondo_result_t result = rd_window_create(cuda);
    void *device;

    if (result != RONDO_SUCCESS)
        return result;
    memset(node->base + (size_t)node->self * node->segment_bytes + control, 0xff, node->segment_bytes - control);
    cudaError_t error = pin(node->base, node->segment_bytes * (size_t)node->nlocal);
    cuda->pinned = error == cudaSuccess;
    if (error == cudaSuccess)
        error = cudaHostGetDevicePointer(&device, node->base, 0);
    if (error != cudaSuccess)
        return rd_cuda_error(cuda->team->ctx, error, "pinning the memory that GPUs share");
    for (int m = 0; m < node->nlocal; m++)
        cuda->k.window[node->local[m]] = (char *)device + (size_t)m * node->segment_bytes;
    return RONDO_SUCCESS;
}

rondo_result_t rd_window_host_map(rd_cuda_t *cuda)
{
    const rd_team_t *team = cuda->team;
    rondo_result_t result;

    if ((result = rd_node_find(&cuda->shared, team->boot, team->rank, team->nranks, team->env, -1, team->ctx,
                               &team->health->stop)) ||
        (result = rd_node_map(&cuda->shared, team->boot, cuda->shared_bytes,
                              "a smaller RONDO_CUDA_BANK or RONDO_CUDA_CHANNELS", team->env, team->ctx,
                              &team->health->stop)))
        return result;
    result = open_windows(cuda);
    return rd_boot_meet(team->boot, result, rd_thread_error());
}
