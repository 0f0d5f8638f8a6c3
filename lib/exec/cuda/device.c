/* Devices: the choice of a communicator's device, and calls on a device that is not the current one. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "exec/cuda/cuda_int.h"
#include "topo/locality.h"

static _Atomic pid_t user; /* the process that has called CUDA: a child of it cannot */

bool rd_cuda_built(void)
{
    return true;
}

rondo_result_t rd_cuda_error(rd_log_ctx_t *ctx, cudaError_t error, const char *what)
{
    (void)cudaGetLastError(); /* cleared: the user's next check must find only the user's own errors */
    if (error == cudaErrorMemoryAllocation)
        return rd_error(ctx, RONDO_ERR_NO_MEMORY, "%s: %s", what, cudaGetErrorString(error));
    return rd_error(ctx, RONDO_ERR_CUDA, "%s: %s", what, cudaGetErrorString(error));
}

uint32_t rd_cuda_pci(int device)
{
    char bus[32] = "";

    if (device < 0 || cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess)
        return 0;
    return rd_pci_number(bus);
}

/* That there is no device at all is no error: the machine has none, or no driver. */
static bool absent(cudaError_t error)
{
    return error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver || error == cudaErrorStubLibrary;
}

static bool active(int device)
{
    unsigned flags;
    int is = 0;

    return rd_driver.active(device, &flags, &is) == 0 && is;
}

/* Returns true if the program uses this thread's device; programs that keep to host memory run on machines with
 * GPUs, too. *elsewhere: a device that the program uses, but not this thread; -1: none. */
static bool in_use(int count, int *elsewhere)
{
    void *context = NULL;
    int device = 0;

    *elsewhere = -1;
    if (!rd_driver.context || !rd_driver.active)
        return true; /* cannot be determined */
    if (rd_driver.context(&context) == 0 && context)
        return true;
    if (cudaGetDevice(&device) == cudaSuccess && active(device))
        return true;
    for (int d = 0; d < count && *elsewhere < 0; d++)
        *elsewhere = active(d) ? d : -1;
    return false;
}

static rondo_result_t not_here(int elsewhere)
{
    return rd_error(NULL, RONDO_ERR_INVALID_USAGE,
                    "the program uses CUDA device %d, but this thread has selected none: call cudaSetDevice in it, or "
                    "set config->device (RONDO_DEVICE_HOST: host memory)",
                    elsewhere);
}

rondo_result_t rd_cuda_device(int wanted, int *device)
{
    pid_t self = getpid(), nobody = 0;
    int count = 0, elsewhere = -1;

    if (wanted == RONDO_DEVICE_HOST) {
        *device = wanted;
        return RONDO_SUCCESS;
    }
    if (wanted == RONDO_DEVICE_AUTO && !rd_driver_loaded()) {
        *device = RONDO_DEVICE_HOST;
        return RONDO_SUCCESS;
    }
    cudaError_t error = cudaGetDeviceCount(&count);
    rd_driver_find();
    if (wanted == RONDO_DEVICE_AUTO &&
        (absent(error) || (error == cudaSuccess && (count == 0 || !in_use(count, &elsewhere))))) {
        (void)cudaGetLastError();
        *device = RONDO_DEVICE_HOST;
        return elsewhere < 0 ? RONDO_SUCCESS : not_here(elsewhere);
    }
    if (!atomic_compare_exchange_strong(&user, &nobody, self) && nobody != self)
        return rd_error(NULL, RONDO_ERR_CUDA,
                        "this process was forked from one that uses CUDA, which does not survive that: start it by "
                        "exec, or use RONDO_DEVICE_HOST");
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
        return rd_error(NULL, absent(error) ? RONDO_ERR_UNSUPPORTED : RONDO_ERR_CUDA,
                        "CUDA cannot be used here: %s; RONDO_DEVICE_HOST does without", cudaGetErrorString(error));
    }
    if (wanted == RONDO_DEVICE_AUTO)
        return (error = cudaGetDevice(device)) == cudaSuccess ? RONDO_SUCCESS
                                                              : rd_cuda_error(NULL, error, "cudaGetDevice");
    if (wanted >= count)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "config->device is %d, but there are %d CUDA devices, from 0",
                        wanted, count);
    *device = wanted;
    return RONDO_SUCCESS;
}

/* ---- what CUDA's driver can tell, and its runtime cannot */

rd_driver_t rd_driver;

/* Asking CUDA itself would load and start it, which takes tenths of a second, threads and descriptors, in every rank of
 * a program that keeps to host memory. The function is weak, because the simulated machine has another answer. */
__attribute__((weak)) bool rd_driver_loaded(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    return driver != NULL && dlclose(driver) == 0;
}

/* Each in the version that its pointer's type is of. */
static void find(void)
{
    static const struct {
        const char *name;
        unsigned version;
        void *pointer;
    } all[] = {
        {"cuCtxGetCurrent", 12000, &rd_driver.context},
        {"cuCtxGetId", 12000, &rd_driver.context_id},
        {"cuCtxSetCurrent", 12000, &rd_driver.set_context},
        {"cuDevicePrimaryCtxRetain", 12000, &rd_driver.retain},
        {"cuDevicePrimaryCtxGetState", 12000, &rd_driver.active},
        {"cuMemGetAddressRange", 12000, &rd_driver.range},
        {"cuPointerGetAttribute", 12000, &rd_driver.attribute},
        {"cuStreamGetId", 12000, &rd_driver.stream_id},
        {"cuStreamGetCaptureInfo", 12030, &rd_driver.capture_info},
        {"cuEventRecord", 12000, &rd_driver.event_record},
    };
    int version = 0;

    if (cudaDriverGetVersion(&version) != cudaSuccess)
        (void)cudaGetLastError();
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        enum cudaDriverEntryPointQueryResult found;
        void *function = NULL;
        if ((unsigned)version < all[i].version) /* it would give an older form, with fewer arguments */
            continue;
        if (cudaGetDriverEntryPointByVersion(all[i].name, &function, all[i].version, cudaEnableDefault, &found) !=
            cudaSuccess)
            (void)cudaGetLastError();
        memcpy(all[i].pointer, &function, sizeof function);
    }
}

void rd_driver_find(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, find);
}

uint64_t rd_driver_buffer(const void *pointer)
{
    unsigned long long number = 0;

    rd_driver_find();
    if (!rd_driver.attribute ||
        rd_driver.attribute(&number, RD_DRIVER_BUFFER_ID, (unsigned long long)(uintptr_t)pointer) != 0)
        return 0;
    return number;
}

bool rd_driver_buffer_gone(const void *pointer, uint64_t number)
{
    unsigned long long now = 0;

    if (!number)
        return false;
    int error = rd_driver.attribute(&now, RD_DRIVER_BUFFER_ID, (unsigned long long)(uintptr_t)pointer);
    return error != 0 || now != number;
}

/* ---- another device than the current one */

/* A thread that has not used CUDA has device 0 by name, and no context. Giving it back its device by cudaSetDevice
 * would create a context there, of hundreds of MB. So it gets the other device's context for the call, and has none
 * again afterwards. A thread may also have a context of the program's own, in whose place cudaSetDevice would put the
 * device's primary one: so every thread gets back the context that it had. */

static _Atomic(void *) contexts[64]; /* the primary one of each device; NULL: not known */

/* Returns a device's primary context. It is kept as long as the process lives, because the communicators' memory lies
 * there, or until the program resets the device: then it is another one. */
static void *context_of(int device)
{
    void *context = NULL;

    if (device >= (int)(sizeof contexts / sizeof *contexts))
        return NULL;
    if ((context = atomic_load(&contexts[device])) || !rd_driver.retain)
        return context;
    if (rd_driver.retain(&context, device) == 0)
        atomic_store(&contexts[device], context);
    return context;
}

void rd_driver_contexts_check(void)
{
    rd_driver_find();
    for (int d = 0; rd_driver.active && d < (int)(sizeof contexts / sizeof *contexts); d++) {
        if (atomic_load(&contexts[d]) && !active(d))
            atomic_store(&contexts[d], NULL);
    }
}

uint64_t rd_driver_context(int device)
{
    unsigned long long id = 0;
    void *context = NULL;

    rd_driver_find();
    if (!rd_driver.context_id || !rd_driver.context || rd_driver.context(&context) != 0)
        return 0;
    if (!context) /* CUDA's next call puts the device's own in its place */
        context = context_of(device);
    return context && rd_driver.context_id(context, &id) == 0 ? id : 0;
}

rd_device_before_t rd_device_go(int device, int current)
{
    rd_device_before_t before = {.device = current};
    void *context = NULL;

    rd_driver_find();
    before.known = rd_driver.context && rd_driver.set_context && rd_driver.context(&before.context) == 0;
    if (before.known && !before.context)
        context = context_of(device);
    if (context && rd_driver.set_context(context) == 0)
        return before;
    (void)cudaSetDevice(device);
    return before;
}

void rd_device_return(rd_device_before_t before)
{
    if (!before.known || rd_driver.set_context(before.context) != 0)
        (void)cudaSetDevice(before.device);
}

rd_device_guard_t rd_device_enter(int device)
{
    rd_device_guard_t guard = {device, rd_device_switch(device), cudaStreamCaptureModeRelaxed};

    (void)cudaThreadExchangeStreamCaptureMode(&guard.mode);
    return guard;
}

void rd_device_leave(rd_device_guard_t guard)
{
    (void)cudaThreadExchangeStreamCaptureMode(&guard.mode);
    rd_device_back(guard.before, guard.device);
}

cudaError_t rd_device_reach(int device, int other)
{
    rd_device_guard_t guard;
    int can = 1;

    if (other == device)
        return cudaSuccess;
    cudaError_t error = cudaDeviceCanAccessPeer(&can, device, other);
    if (error != cudaSuccess || !can)
        return error == cudaSuccess ? cudaErrorPeerAccessUnsupported : error;
    guard = rd_device_enter(device);
    error = cudaDeviceEnablePeerAccess(other, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
        (void)cudaGetLastError();
        error = cudaSuccess;
    }
    rd_device_leave(guard);
    return error;
}
