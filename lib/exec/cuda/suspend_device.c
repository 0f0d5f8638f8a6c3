/* A communicator without its device memory: rondo_comm_suspend and rondo_comm_resume.
 *
 * What is given back is the window, by cudaFree, when all that was enqueued is over everywhere and every rank has
 * unmapped the windows of the others. Between nodes that is the window which the ranks of each node map; what the
 * network knows (the proxies' lanes, GPUDirect's scratch) stays, as do windows and barriers of the program's own
 * kernels, whose contents are the program's, and memory in which GPUs that do not reach each other meet, which is the
 * host's.
 *
 * Of the window only the control words say something when nothing is under way: they are kept on the host, and put into
 * the new window before any peer sees it. Everything else begins as it does in a new communicator. The new window lies
 * elsewhere. A graph whose nodes have the old addresses would then write into memory of somebody else, and nothing
 * could find that out, so a communicator whose operations have been captured is not suspended. CUDA would tell of a
 * graph's end through an object of the user's in it, which makes each launch of the graph some microseconds longer.
 *
 * Each phase ends with an exchange over the bootstrap, in which a rank says that it has failed, and which ends when a
 * rank dies or is late. cudaFree waits for whatever runs on the device: ranks that share it wait for one another behind
 * it, so that none launches meanwhile what waits for a rank that is still freeing. */
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/cuda_int.h"

/* The communicator that has the windows. */
static rd_cuda_t *windows_of(rd_cuda_t *cuda)
{
    return cuda->node_comm ? cuda->node_comm : cuda;
}

/* Every rank says how its phase went, and returns the first failure of any. This takes no memory. */
static rondo_result_t meet(rd_cuda_t *cuda, rondo_result_t own)
{
    return rd_boot_meet(cuda->team->boot, own, rd_thread_error());
}

/* Beyond the point of return a failure is one of the communicator. */
static rondo_result_t failed(rd_cuda_t *cuda, rondo_result_t result)
{
    if (result == RONDO_SUCCESS || rd_health_check(cuda->team->health) != RONDO_SUCCESS)
        return result;
    return rd_health_fail(cuda->team->health, result, -1, "%s", rd_thread_error());
}

static rondo_result_t no_graphs(rd_cuda_t *cuda)
{
    if (!cuda->was_captured)
        return RONDO_SUCCESS;
    return rd_error(cuda->team->ctx, RONDO_ERR_INVALID_USAGE,
                    "rondo_comm_suspend: operations of this communicator have been captured, and graphs have the "
                    "addresses of its memory, which will lie elsewhere: capture those of a communicator that is not "
                    "suspended");
}

/* The control words of a window that is at rest. */
static rondo_result_t keep_control(rd_cuda_t *cuda)
{
    cudaStream_t stream;
    cudaError_t error;

    if (!cuda->window)
        return RONDO_SUCCESS;
    if (!cuda->kept && !(cuda->kept = malloc(sizeof *cuda->kept)))
        return rd_error(cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory to suspend a communicator");
    error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error == cudaSuccess) {
        error = cudaMemcpyAsync(cuda->kept, cuda->window, sizeof *cuda->kept, cudaMemcpyDeviceToHost, stream);
        if (error == cudaSuccess)
            error = cudaStreamSynchronize(stream);
        (void)cudaStreamDestroy(stream);
    }
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(cuda->team->ctx, error, "suspending a communicator");
}

static rondo_result_t suspend(rd_cuda_t *cuda)
{
    rd_cuda_t *in = windows_of(cuda);
    rondo_result_t result = rd_cuda_drain(cuda);

    if (result == RONDO_SUCCESS)
        result = no_graphs(cuda);
    if ((result = meet(cuda, result)) != RONDO_SUCCESS)
        return result;
    /* Now nothing runs anywhere any more, so no peer writes into this rank's control words. */
    if ((result = meet(cuda, keep_control(in))) != RONDO_SUCCESS)
        return result;
    rd_import_close(in);
    if ((result = meet(cuda, RONDO_SUCCESS)) == RONDO_SUCCESS)
        result = meet(cuda, rd_window_give_back(in));
    return failed(cuda, result);
}

rondo_result_t rd_cuda_suspend(rd_cuda_t *cuda)
{
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    rondo_result_t result = suspend(cuda);

    rd_device_leave(guard);
    return result;
}

/* Device windows are mapped anew. Those in the host's memory have stayed. */
static rondo_result_t windows_again(rd_cuda_t *cuda, rd_cuda_t *in)
{
    bool host_windows = false;
    rondo_result_t result;

    if (in == cuda && (cuda->path || in->k.nranks == 1)) /* there are none */
        return meet(cuda, RONDO_SUCCESS);
    if (in->limits.host_windows)
        return meet(cuda, rd_window_create(in));
    result = rd_import_device_windows(in, true, &host_windows);
    if (result == RONDO_SUCCESS && host_windows)
        return failed(cuda, rd_error(cuda->team->ctx, RONDO_ERR_CUDA,
                                     "rondo_comm_resume: a GPU does not reach the memory of another one any more"));
    return result;
}

/* If a rank has no memory, no peer has mapped anything yet: all give back what they got, and may try again. */
static rondo_result_t resume(rd_cuda_t *cuda)
{
    rd_cuda_t *in = windows_of(cuda);
    rondo_result_t result = windows_again(cuda, in);

    if (result == RONDO_SUCCESS) {
        free(in->kept);
        in->kept = NULL;
        return RONDO_SUCCESS;
    }
    if (rd_health_check(cuda->team->health) == RONDO_SUCCESS)
        (void)rd_window_give_back(in);
    return result;
}

rondo_result_t rd_cuda_resume(rd_cuda_t *cuda)
{
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    rondo_result_t result = resume(cuda);

    rd_device_leave(guard);
    return result;
}
