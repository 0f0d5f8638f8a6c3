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
    bool making; /* by the first of them, without the lock */
} pin_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t made = PTHREAD_COND_INITIALIZER; /* or not: it is off the list then */
static pin_t *pins;

static pin_t **pin_at(const char *base)
{
    pin_t **at = &pins;

    while (*at && (*at)->base != base)
        at = &(*at)->next;
    return at;
}

/* Returns true if another rank of this process has pinned it; waits for one that is about to. With the lock held. */
static bool joins(const char *base)
{
    pin_t *p;

    while ((p = *pin_at(base)) && p->making)
        pthread_cond_wait(&made, &lock);
    if (p)
        p->users++;
    return p;
}

/* Whoever ends a communicator meanwhile does not wait for it: what runs on the device may wait for him. */
static cudaError_t pin(char *base, size_t bytes)
{
    pin_t *p = malloc(sizeof *p);

    if (!p)
        return cudaErrorMemoryAllocation;
    pthread_mutex_lock(&lock);
    if (joins(base)) {
        pthread_mutex_unlock(&lock);
        free(p);
        return cudaSuccess;
    }
    *p = (pin_t){pins, base, 1, true};
    pins = p;
    pthread_mutex_unlock(&lock);
    cudaError_t error = cudaHostRegister(base, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
    pthread_mutex_lock(&lock);
    p->making = false;
    if (error != cudaSuccess) {
        *pin_at(base) = p->next;
        free(p);
    }
    pthread_cond_broadcast(&made);
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
