/* The little that libnccl.so.2 asks of CUDA's driver, on the runtime of this folder. It looks the driver up by dlopen
 * and dlsym, and a program linked with --wrap for both comes here. A context is the number of its device, plus one.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "sim/runtime.h"

static int driver; /* its address is the library's handle */

void *__real_dlopen(const char *name, int flags);
void *__real_dlsym(void *handle, const char *name);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlsym(void *handle, const char *name);

static int init(unsigned flags)
{
    return (int)flags;
}

static int device_get(int *device)
{
    return cudaGetDevice(device);
}

static int device_count(int *count)
{
    return cudaGetDeviceCount(count);
}

static int context_retain(void **context, int device)
{
    *context = (void *)(uintptr_t)(device + 1);
    return 0;
}

static int context_get(void **context)
{
    int device = 0;
    int error = (int)cudaGetDevice(&device);

    *context = (void *)(uintptr_t)(device + 1);
    return error;
}

static int context_set(void *context)
{
    return cudaSetDevice((int)(uintptr_t)context - 1);
}

static int alloc(uint64_t *address, size_t bytes)
{
    void *made;
    cudaError_t error = bytes >> 40 ? cudaErrorMemoryAllocation : cudaMalloc(&made, bytes);

    if (error == cudaSuccess)
        *address = (uintptr_t)made;
    return (int)error;
}

static int release(uint64_t address)
{
    return cudaFree((void *)(uintptr_t)address);
}

int sim_trapped; /* a kernel in the streams will trap: after so many queries it has */

static int stream_query(void *stream)
{
    if (sim_trapped)
        return --sim_trapped ? 600 : 719;
    return (int)cudaStreamQuery((cudaStream_t)stream);
}

static int stream_capturing(void *stream, int *status)
{
    enum cudaStreamCaptureStatus is;
    cudaError_t error = cudaStreamIsCapturing((cudaStream_t)stream, &is);

    *status = (int)is;
    return (int)error;
}

static int capture_mode(int *mode)
{
    enum cudaStreamCaptureMode exchanged = (enum cudaStreamCaptureMode) * mode;
    cudaError_t error = cudaThreadExchangeStreamCaptureMode(&exchanged);

    *mode = (int)exchanged;
    return (int)error;
}

static int error_string(int code, const char **text)
{
    *text = cudaGetErrorString((cudaError_t)code);
    return 0;
}

void *__wrap_dlopen(const char *name, int flags)
{
    return name && strcmp(name, "libcuda.so.1") == 0 ? &driver : __real_dlopen(name, flags);
}

void *__wrap_dlsym(void *handle, const char *name)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } all[] = {
        {"cuInit", (void (*)(void))init},
        {"cuCtxGetDevice", (void (*)(void))device_get},
        {"cuDeviceGetCount", (void (*)(void))device_count},
        {"cuDevicePrimaryCtxRetain", (void (*)(void))context_retain},
        {"cuCtxGetCurrent", (void (*)(void))context_get},
        {"cuCtxSetCurrent", (void (*)(void))context_set},
        {"cuMemAlloc_v2", (void (*)(void))alloc},
        {"cuMemFree_v2", (void (*)(void))release},
        {"cuGetErrorString", (void (*)(void))error_string},
        {"cuStreamQuery", (void (*)(void))stream_query},
        {"cuStreamIsCapturing", (void (*)(void))stream_capturing},
        {"cuThreadExchangeStreamCaptureMode", (void (*)(void))capture_mode},
    };

    if (handle != &driver)
        return __real_dlsym(handle, name);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].name, name) == 0)
            return (void *)(uintptr_t)all[i].function;
    return NULL;
}
