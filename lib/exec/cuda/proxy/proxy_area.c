/* The memory of CUDA communicators on the proxy path, kept from one communicator for the next: see proxy.h. */
#include "exec/cuda/proxy/proxy.h"

#include <stdlib.h>
#include <string.h>

#include "topo/locality.h"

static pthread_mutex_t areas_lock = PTHREAD_MUTEX_INITIALIZER;
static rd_proxy_path_area_t *areas; /* those that are not in use */

static void area_free(rd_proxy_path_area_t *a)
{
    if (a->tried)
        (void)cudaFree(a->tried);
    if (a->scratch)
        (void)cudaFree(a->scratch);
    if (a->state)
        (void)cudaFree(a->state);
    if (a->pinned)
        (void)cudaFreeHost(a->pinned);
    free(a);
}

void rd_proxy_path_areas_free(void)
{
    pthread_mutex_lock(&areas_lock);
    while (areas) {
        rd_proxy_path_area_t *a = areas;
        areas = a->next;
        area_free(a);
    }
    pthread_mutex_unlock(&areas_lock);
}

void rd_proxy_path_area_give(rd_proxy_path_area_t *a)
{
    pthread_mutex_lock(&areas_lock);
    a->next = areas;
    areas = a;
    pthread_mutex_unlock(&areas_lock);
}

static rd_proxy_path_area_t *area_reuse(int device, size_t bytes, size_t rows, size_t scratch)
{
    rd_proxy_path_area_t **at = &areas, *a;

    pthread_mutex_lock(&areas_lock);
    while (*at &&
           ((*at)->device != device || (*at)->bytes != bytes || (*at)->rows != rows || (*at)->scratch_bytes != scratch))
        at = &(*at)->next;
    a = *at;
    if (a)
        *at = a->next;
    pthread_mutex_unlock(&areas_lock);
    return a;
}

static size_t states_bytes(void)
{
    return (sizeof(rd_klane_state_t) * RD_KLANES + 255) / 256 * 256;
}

void rd_proxy_path_area_memory(size_t bytes, size_t rows, size_t gdr, rondo_memory_t *memory)
{
    memory->pinned += RD_PROXY_PATH_LANES_BYTES + bytes;
    memory->device += states_bytes() + rows * sizeof(rd_kpart_t) + gdr;
}

int rd_proxy_path_numa(int device)
{
    char bus[32] = "";

    if (cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess)
        return -1;
    return rd_locality_pci(rd_locality_sys(), bus);
}

/* Pinned memory lies on the GPU's NUMA node: otherwise the GPU would read and write it through the other package. */
static cudaError_t pinned_take(rd_proxy_path_area_t *a, size_t bytes)
{
    rd_locality_memory_t before;

    rd_locality_memory_begin(&before, rd_proxy_path_numa(a->device));
    cudaError_t error = cudaHostAlloc((void **)&a->pinned, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
    rd_locality_memory_end(&before);
    return error;
}

cudaError_t rd_proxy_path_area_take(int device, size_t bytes, size_t rows, size_t scratch, rd_proxy_path_area_t **area)
{
    size_t states = states_bytes();
    rd_proxy_path_area_t *a = area_reuse(device, bytes, rows, scratch);
    cudaError_t error = cudaSuccess;
    cudaStream_t stream;

    if (!a) {
        a = calloc(1, sizeof *a);
        if (!a)
            return cudaErrorMemoryAllocation;
        a->device = device;
        a->bytes = bytes;
        a->rows = rows;
        a->scratch_bytes = scratch;
        error = pinned_take(a, RD_PROXY_PATH_LANES_BYTES + bytes);
        if (error == cudaSuccess)
            error = cudaMalloc((void **)&a->state, states + rows * sizeof *a->table);
        if (error == cudaSuccess)
            a->table = (rd_kpart_t *)((char *)a->state + states);
    }
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error == cudaSuccess) {
        error = cudaMemsetAsync(a->state, 0, states, stream);
        if (error == cudaSuccess)
            error = cudaStreamSynchronize(stream);
        (void)cudaStreamDestroy(stream);
    }
    if (error != cudaSuccess) {
        area_free(a);
        return error;
    }
    memset(a->pinned, 0, RD_PROXY_PATH_LANES_BYTES);
    *area = a;
    return cudaSuccess;
}
