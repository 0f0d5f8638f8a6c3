/* Checks that a kernel can reach a buffer. It can reach device memory, and pinned and managed host memory; ordinary
 * host memory is refused with an error message instead of a fault on the device. Asking CUDA takes longer than a launch
 * may, so pages that were found to be this device's memory are remembered: an address that has been device memory never
 * becomes ordinary memory. */
#include "exec/cuda/cuda_int.h"

#define PAGE_BITS 21

static bool remembered(const rd_cuda_t *cuda, uintptr_t page)
{
    return cuda->known[page % (sizeof cuda->known / sizeof cuda->known[0])] == page;
}

/* Asks CUDA what the buffer is. Pageable memory is refused. */
static rondo_result_t ask(rd_log_ctx_t *ctx, const char *call, const char *what, const void *buffer,
                          struct cudaPointerAttributes *a)
{
    cudaError_t error = cudaPointerGetAttributes(a, buffer);

    if (error != cudaSuccess)
        return rd_cuda_error(ctx, error, "cudaPointerGetAttributes");
    if (a->type == cudaMemoryTypeUnregistered)
        return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "%s: %s (%p) is pageable host memory, which a CUDA communicator cannot reach: pass device, "
                        "managed or pinned memory, or make the communicator with RONDO_DEVICE_HOST",
                        call, what, buffer);
    return RONDO_SUCCESS;
}

rondo_result_t rd_buffer_check(rd_cuda_t *cuda, const char *call, const char *what, const void *buffer, size_t bytes)
{
    uintptr_t page = (uintptr_t)buffer >> PAGE_BITS;
    rd_log_ctx_t *ctx = cuda->team->ctx;
    struct cudaPointerAttributes a;
    cudaError_t error;

    if (!bytes || !buffer || remembered(cuda, page))
        return RONDO_SUCCESS;
    rondo_result_t result = ask(ctx, call, what, buffer, &a);
    if (result != RONDO_SUCCESS)
        return result;
    if (a.type == cudaMemoryTypeDevice && a.device == cuda->device)
        cuda->known[page % (sizeof cuda->known / sizeof cuda->known[0])] = page;
    if (a.type == cudaMemoryTypeDevice && (error = rd_device_reach(cuda->device, a.device)) != cudaSuccess) {
        (void)cudaGetLastError();
        return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "%s: %s (%p) lies on device %d, which the communicator's device %d does not reach: %s", call,
                        what, buffer, a.device, cuda->device, cudaGetErrorString(error));
    }
    return RONDO_SUCCESS;
}

rondo_result_t rd_cuda_buffer_own(rd_cuda_t *cuda, const char *call, const char *what, const void *buffer)
{
    struct cudaPointerAttributes a;
    rondo_result_t result = ask(cuda->team->ctx, call, what, buffer, &a);

    if (result == RONDO_SUCCESS && a.type == cudaMemoryTypeDevice && a.device != cuda->device)
        result = rd_error(cuda->team->ctx, RONDO_ERR_INVALID_ARGUMENT,
                          "%s: %s (%p) lies on device %d, and the communicator is on device %d", call, what, buffer,
                          a.device, cuda->device);
    return result;
}

bool rd_buffer_hosts(const rd_cuda_t *cuda, const void *buffer)
{
    struct cudaPointerAttributes a;

    if (remembered(cuda, (uintptr_t)buffer >> PAGE_BITS))
        return cuda->hosted;
    if (cudaPointerGetAttributes(&a, buffer) == cudaSuccess)
        return a.hostPointer == buffer;
    (void)cudaGetLastError();
    return false;
}
