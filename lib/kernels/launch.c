/* Launches kernels into a stream. Two attributes matter: the remote memory domain, so that rondo's fences do not wait
 * for the user's own traffic, and programmatic order, so that a kernel may begin beside the one before, as far as
 * gpu_begin(): from that one's beginning on if it lets it in (gpu_let_in), else when its blocks end. A launch with an
 * event goes without the latter, because the event would come before that end. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <rondo.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sched/program.h"
#include "kernels/table.h"

int rd_kernel_launch(const rd_klaunch_t *launch, const rd_kwork_t *work, void *stream, void *event, bool beside)
{
    const void *function = rd_kernel_find(
        launch,
        rd_launch_kernel(launch) == RD_KERNEL_TWOSHOT && !RD_KCELL(work->reduce.slice) ? work->reduce.passes : 1);
    cudaLaunchAttribute attributes[2];
    cudaLaunchConfig_t config;
    void *arguments[1];

    if (!function)
        return cudaErrorInvalidDeviceFunction;
    memset(attributes, 0, sizeof attributes);
    attributes[0].id = cudaLaunchAttributeMemSyncDomain;
    attributes[0].val.memSyncDomain = cudaLaunchMemSyncDomainRemote;
    if (event) {
        attributes[1].id = cudaLaunchAttributeLaunchCompletionEvent;
        attributes[1].val.launchCompletionEvent.event = (cudaEvent_t)event;
    } else {
        attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[1].val.programmaticStreamSerializationAllowed = beside;
    }
    memset(&config, 0, sizeof config);
    config.gridDim.x = launch->blocks;
    config.gridDim.y = config.gridDim.z = 1;
    config.blockDim.x = launch->threads;
    config.blockDim.y = config.blockDim.z = 1;
    config.dynamicSmemBytes = rd_kernel_shared(launch);
    config.stream = (cudaStream_t)stream;
    config.attrs = attributes;
    config.numAttrs = 2;
    memcpy(arguments, &work, sizeof work); /* CUDA's interface has no const */
    return (int)cudaLaunchKernelExC(&config, function, arguments);
}

static cudaError_t load(const void *const *functions, size_t count)
{
    struct cudaFuncAttributes attributes;
    cudaError_t error = cudaSuccess;

    for (size_t i = 0; i < count && error == cudaSuccess; i++)
        if (functions[i])
            error = cudaFuncGetAttributes(&attributes, functions[i]);
    return error;
}

/* The launch of a kernel that needs more local memory per thread than any before it on the device waits for all kernels
 * that run there, and these may be waiting for it. So the kernel that needs most (test/kernels/no_spills.sh) is
 * launched here, with nothing to do. */
static cudaError_t settle_local_memory(void)
{
    static const rd_klaunch_t launch = {.kernel = RD_KERNEL_PROXIED, .blocks = 1, .threads = 32};
    rd_kwork_t work;
    cudaStream_t stream;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

    if (error != cudaSuccess)
        return error;
    memset(&work, 0, sizeof work);
    error = (cudaError_t)rd_kernel_launch(&launch, &work, stream, NULL, true);
    cudaError_t waited = cudaStreamSynchronize(stream);
    (void)cudaStreamDestroy(stream);
    return error != cudaSuccess ? error : waited;
}

static cudaError_t load_all(void)
{
    const size_t all = (size_t)RD_GPU_PROTOS * RD_KN_NUMBERS;
    cudaError_t error = load(rd_kernels_oneshot[0], all);

    if (error == cudaSuccess)
        error = load(rd_kernels_oneshot_move, RD_GPU_PROTOS);
    if (error == cudaSuccess)
        error = load(&rd_kernels_fused, 1);
    if (error == cudaSuccess)
        error = load(rd_kernels_gdr, RD_KN_NUMBERS);
    if (error == cudaSuccess)
        error = load(rd_kernels_twoshot[0], all);
    if (error == cudaSuccess)
        error = load(rd_kernels_twoshot_ahead[0], all);
    if (error == cudaSuccess)
        error = load(rd_kernels_rooted_reduce[0], all);
    if (error == cudaSuccess)
        error = load(rd_kernels_rooted_broadcast, RD_GPU_PROTOS);
    if (error == cudaSuccess)
        error = load(rd_kernels_ring[0], all);
    if (error == cudaSuccess)
        error = load(rd_kernels_ring_banks[0], all);
    if (error == cudaSuccess)
        error = load(rd_kernels_chain[0], all);
    if (error == cudaSuccess)
        error = load(rd_kernels_program[0], all);
    if (error == cudaSuccess)
        error = load(rd_kernels_simple, RD_KN_NUMBERS);
    if (error == cudaSuccess)
        error = load(&rd_kernels_simple_move, 1);
    if (error == cudaSuccess)
        error = load(rd_kernels_messages, RD_GPU_PROTOS);
    if (error == cudaSuccess)
        error = load(rd_kernels_streams, RD_GPU_PROTOS);
    if (error == cudaSuccess)
        error = load(rd_kernels_mixed, RD_GPU_PROTOS);
    if (error == cudaSuccess)
        error = load(rd_kernels_single, RD_KT_SINGLES);
    return error;
}

typedef struct loaded {
    int device;
    uint64_t context;
} loaded_t;

#define LOADED 64

/* Once for each context of the process, of which a device has another one when the program has reset it: the kernel
 * that settles its memory would wait beside one that fills the GPU, which may be an earlier communicator's that waits
 * for a rank that makes this one first. Of more contexts the oldest is forgotten. */
int rd_kernel_load(uint64_t context)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static loaded_t loaded[LOADED];
    static size_t count;
    loaded_t now = {0, context};
    bool is = false;
    cudaError_t error = cudaGetDevice(&now.device);

    if (error != cudaSuccess)
        return (int)error;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count && i < LOADED; i++)
        is |= loaded[i].device == now.device && loaded[i].context == now.context;
    pthread_mutex_unlock(&lock);
    if (is)
        return cudaSuccess;
    error = load_all();
    if (error == cudaSuccess)
        error = settle_local_memory();
    pthread_mutex_lock(&lock);
    if (error == cudaSuccess)
        loaded[count++ % LOADED] = now;
    pthread_mutex_unlock(&lock);
    return (int)error;
}
