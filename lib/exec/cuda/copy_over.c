/* Copies whose source and destination overlap: the result of a reduce_scatterv in place, from the rank's own block to
 * the front of the buffer.
 *
 * The data goes through other memory, which CUDA allocates and frees in the order of the stream. A graph with nodes
 * that allocate, however, can neither be cloned, nor be part of another one, nor be instantiated twice at a time. So
 * what is captured goes through memory that the communicator makes for its first such call and keeps, because graphs
 * have the address: piece by piece, in the order in which none is overwritten before it is read. The communicator's
 * operations follow each other, so all share it. */
#include "exec/cuda/cuda_int.h"

#define PIECE RD_COPY_OVER_BYTES

static rondo_result_t failed(rd_cuda_t *cuda, cudaError_t error)
{
    return rd_cuda_error(cuda->team->ctx, error, "allocating a copy of a buffer that overlaps its result");
}

/* Copies by way of `bounce`, which has room for it. */
static rondo_result_t copy_by(rd_cuda_t *cuda, char *bounce, char *to, const char *from, size_t bytes,
                              cudaStream_t stream)
{
    rondo_result_t result = rd_cuda_copy(cuda, bounce, from, bytes, stream);

    return result == RONDO_SUCCESS ? rd_cuda_copy(cuda, to, bounce, bytes, stream) : result;
}

static rondo_result_t copy_in_stream(rd_cuda_t *cuda, char *to, const char *from, size_t bytes, cudaStream_t stream)
{
    void *bounce;
    rd_device_before_t before = rd_device_switch(cuda->device);
    rondo_result_t result = RONDO_SUCCESS;
    cudaError_t error = cudaMallocAsync(&bounce, bytes, stream);

    if (error == cudaSuccess) {
        result = copy_by(cuda, bounce, to, from, bytes, stream);
        error = cudaFreeAsync(bounce, stream);
    }
    rd_device_back(before, cuda->device);
    return error == cudaSuccess ? result : failed(cuda, error);
}

static rondo_result_t make(rd_cuda_t *cuda)
{
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    cudaError_t error = cudaSuccess;

    if (!cuda->over)
        cuda->over = rd_window_left_take(cuda->device, PIECE);
    if (!cuda->over)
        error = cudaMalloc((void **)&cuda->over, PIECE);
    rd_device_leave(guard);
    return error == cudaSuccess ? RONDO_SUCCESS : failed(cuda, error);
}

static rondo_result_t copy_captured(rd_cuda_t *cuda, char *to, const char *from, size_t bytes, cudaStream_t stream)
{
    rondo_result_t result = make(cuda);

    for (size_t done = 0, n; done < bytes && result == RONDO_SUCCESS; done += n) {
        n = bytes - done < PIECE ? bytes - done : PIECE;
        size_t at = to < from ? done : bytes - done - n;
        result = copy_by(cuda, cuda->over, to + at, from + at, n, stream);
    }
    return result;
}

rondo_result_t rd_cuda_copy_over(rd_cuda_t *cuda, char *to, const char *from, size_t bytes, cudaStream_t stream)
{
    if (to + bytes <= from || from + bytes <= to)
        return rd_cuda_copy(cuda, to, from, bytes, stream);
    return rd_cuda_captured(stream) ? copy_captured(cuda, to, from, bytes, stream)
                                    : copy_in_stream(cuda, to, from, bytes, stream);
}
