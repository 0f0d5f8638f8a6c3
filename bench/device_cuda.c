/* The GPU that a rank measures on: device rank % devices, one stream, and graphs of calls. */
#include <cuda_runtime_api.h>

#include "perf.h"

static int number = RONDO_DEVICE_HOST;
static cudaStream_t stream;

static void must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        die(NULL, "%s: %s", what, cudaGetErrorString(error));
}

bool device_built(void)
{
    return true;
}

const char *device_open(void)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);

    if (error != cudaSuccess || count == 0)
        return cudaGetErrorString(error);
    number = world.rank % count;
    must(cudaSetDevice(number), "cudaSetDevice");
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    return NULL;
}

int device_number(void)
{
    return number;
}

rondo_stream_t device_stream(void)
{
    return stream;
}

void *device_allocate(size_t bytes)
{
    void *memory;

    must(cudaMalloc(&memory, bytes), "cudaMalloc");
    must(cudaMemsetAsync(memory, 0, bytes, stream), "cudaMemset");
    device_wait();
    return memory;
}

void device_free(void *memory)
{
    must(cudaFree(memory), "cudaFree");
}

void device_copy(void *to, const void *from, size_t bytes)
{
    must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
    device_wait();
}

void device_wait(void)
{
    if (number >= 0)
        must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

/* From text, so that this file needs no compiler for kernels: the driver translates it once. */
static cudaKernel_t empty_kernel(void)
{
    static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n";
    cudaLibrary_t library;
    cudaKernel_t kernel;

    must(cudaLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0), "loading an empty kernel");
    must(cudaLibraryGetKernel(&kernel, library, "nothing"), "loading an empty kernel");
    return kernel;
}

void device_launch(void)
{
    static cudaKernel_t kernel;
    cudaLaunchConfig_t config = {.gridDim = {1, 1, 1}, .blockDim = {32, 1, 1}, .stream = stream};

    if (!kernel)
        kernel = empty_kernel();
    must(cudaLaunchKernelExC(&config, (const void *)kernel, NULL), "cudaLaunchKernelExC");
}

double device_held(void)
{
    size_t unused, all;

    must(cudaMemGetInfo(&unused, &all), "cudaMemGetInfo");
    return (double)(all - unused);
}

void *device_record(call_t call, const job_t *job, int calls)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    for (int i = 0; i < calls; i++) {
        int error = call(job);
        if (error)
            die(job->comm, "%s of %zu bytes cannot be captured: result %d", job->op->name, job->bytes, error);
    }
    must(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    must(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    must(cudaGraphDestroy(graph), "cudaGraphDestroy");
    return exec;
}

void device_replay(void *graph)
{
    must(cudaGraphLaunch(graph, stream), "cudaGraphLaunch");
}

void device_forget(void *graph)
{
    device_wait();
    must(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
}
