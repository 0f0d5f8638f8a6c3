/* What must be asked of CUDA itself: which device the calling thread is on, how many there are, and memory for
 * ncclMemAlloc. The driver's library is looked up when it is first needed, so that this one loads where there is none;
 * the program's own CUDA runtime shares the driver's current context with it.
 *
 * On the host, memory of ncclMemAlloc is whole pages, whose length a list remembers: ncclMemFree has no communicator
 * that could know it.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "nccl/shim.h"

#define CUDA_INVALID_CONTEXT 201 /* no context is current: the runtime's device 0 */

typedef int (*init_fn)(unsigned flags);
typedef int (*get_int_fn)(int *value);
typedef int (*context_retain_fn)(void **context, int device);
typedef int (*context_set_fn)(void *context);
typedef int (*alloc_fn)(uint64_t *address, size_t bytes);
typedef int (*free_fn)(uint64_t address);
typedef int (*error_fn)(int code, const char **text);

static struct {
    init_fn init;
    get_int_fn device_get, device_count;
    context_retain_fn context_retain;
    context_set_fn context_set;
    alloc_fn alloc;
    free_fn free;
    error_fn error;
    int code; /* of cuInit; -1: no library */
} cuda;
static pthread_once_t cuda_once = PTHREAD_ONCE_INIT;

static void cuda_open(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

    cuda.code = -1;
    if (!library)
        return;
    cuda.init = (init_fn)dlsym(library, "cuInit");
    cuda.device_get = (get_int_fn)dlsym(library, "cuCtxGetDevice");
    cuda.device_count = (get_int_fn)dlsym(library, "cuDeviceGetCount");
    cuda.context_retain = (context_retain_fn)dlsym(library, "cuDevicePrimaryCtxRetain");
    cuda.context_set = (context_set_fn)dlsym(library, "cuCtxSetCurrent");
    cuda.alloc = (alloc_fn)dlsym(library, "cuMemAlloc_v2");
    cuda.free = (free_fn)dlsym(library, "cuMemFree_v2");
    cuda.error = (error_fn)dlsym(library, "cuGetErrorString");
    if (cuda.init && cuda.device_get && cuda.device_count && cuda.context_retain && cuda.context_set && cuda.alloc &&
        cuda.free && cuda.error)
        cuda.code = cuda.init(0);
}

static ncclResult_t failed(const char *call, const char *what, int code)
{
    const char *text = NULL;

    if (cuda.error)
        (void)cuda.error(code, &text);
    return nc_error(NULL, ncclUnhandledCudaError, "%s: %s failed: %s (%d)", call, what, text ? text : "?", code);
}

static ncclResult_t need(const char *call)
{
    pthread_once(&cuda_once, cuda_open);
    if (cuda.code == 0)
        return ncclSuccess;
    if (cuda.code > 0)
        return failed(call, "cuInit", cuda.code);
    return nc_error(NULL, ncclUnhandledCudaError,
                    "%s: there is no CUDA driver here (libcuda.so.1); RONDO_NCCL_HOST=1 makes communicators of host "
                    "memory",
                    call);
}

/* False: the answer is known without CUDA, or there is none; *result is the call's. */
static bool asks_cuda(const char *call, ncclResult_t *result)
{
    *result = nc_settings_host() ? ncclSuccess : need(call);
    return !nc_settings_host() && *result == ncclSuccess;
}

ncclResult_t nc_device_current(int *device, const char *call)
{
    ncclResult_t result;
    int code;

    *device = RONDO_DEVICE_HOST;
    if (!asks_cuda(call, &result))
        return result;
    code = cuda.device_get(device);
    if (code == CUDA_INVALID_CONTEXT)
        *device = 0;
    return code == 0 || code == CUDA_INVALID_CONTEXT ? ncclSuccess : failed(call, "cuCtxGetDevice", code);
}

/* Else what rondo does on the device would end by going back to the thread's first one, device 0, and CUDA makes a
 * context there for whoever goes there: hundreds of megabytes on a GPU that the process may have nothing to do with. */
void nc_device_enter(int device)
{
    void *context;

    if (device != RONDO_DEVICE_HOST && cuda.code == 0 && cuda.context_retain(&context, device) == 0)
        (void)cuda.context_set(context); /* kept, as the CUDA runtime keeps it; rondo says what is wrong */
}

ncclResult_t nc_device_count(int *count, const char *call)
{
    ncclResult_t result;
    int code;

    *count = INT_MAX;
    if (!asks_cuda(call, &result))
        return result;
    code = cuda.device_count(count);
    return code == 0 ? ncclSuccess : failed(call, "cuDeviceGetCount", code);
}

typedef struct pages {
    struct pages *next;
    void *address;
    size_t bytes;
} pages_t;

static pages_t *all_pages;
static pthread_mutex_t pages_lock = PTHREAD_MUTEX_INITIALIZER;

static ncclResult_t pages_alloc(void **buffer, size_t bytes)
{
    pages_t *made = malloc(sizeof *made);
    const size_t page = NCCL_WIN_REQUIRED_ALIGNMENT;

    if (made && bytes <= SIZE_MAX / 2) {
        made->bytes = bytes ? (bytes + page - 1) / page * page : page;
        made->address = mmap(NULL, made->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (!made || bytes > SIZE_MAX / 2 || made->address == MAP_FAILED) {
        free(made);
        return nc_error(NULL, ncclSystemError, "ncclMemAlloc: no memory for %zu bytes", bytes);
    }
    pthread_mutex_lock(&pages_lock);
    made->next = all_pages;
    all_pages = made;
    pthread_mutex_unlock(&pages_lock);
    *buffer = made->address;
    return ncclSuccess;
}

static ncclResult_t pages_free(void *buffer)
{
    pages_t *gone = NULL;

    pthread_mutex_lock(&pages_lock);
    for (pages_t **p = &all_pages; *p && !gone; p = &(*p)->next) {
        if ((*p)->address == buffer) {
            gone = *p;
            *p = gone->next;
            break;
        }
    }
    pthread_mutex_unlock(&pages_lock);
    if (!gone)
        return nc_error(NULL, ncclInvalidArgument, "ncclMemFree: %p is not from ncclMemAlloc", buffer);
    munmap(gone->address, gone->bytes);
    free(gone);
    return ncclSuccess;
}

/* Memory that peers can map, as cudaMalloc's is: its context is the device's primary one. Whole pages of the device, as
 * NCCL has it: less would share a page with others, and begin where no window may. */
static ncclResult_t cuda_alloc(void **buffer, size_t bytes)
{
    const size_t page = (size_t)2 << 20;
    uint64_t address = 0;
    void *context;
    int code;

    if (bytes <= SIZE_MAX - page)
        bytes = bytes ? (bytes + page - 1) / page * page : page;
    code = cuda.alloc(&address, bytes);
    if (code == CUDA_INVALID_CONTEXT && (code = cuda.context_retain(&context, 0)) == 0 &&
        (code = cuda.context_set(context)) == 0)
        code = cuda.alloc(&address, bytes);
    if (code != 0)
        return failed("ncclMemAlloc", "cuMemAlloc", code);
    *buffer = (void *)(uintptr_t)address;
    return ncclSuccess;
}

ncclResult_t nc_device_alloc(void **buffer, size_t bytes)
{
    ncclResult_t result;

    if (nc_settings_host())
        return pages_alloc(buffer, bytes);
    result = need("ncclMemAlloc");
    return result == ncclSuccess ? cuda_alloc(buffer, bytes) : result;
}

ncclResult_t nc_device_free(void *buffer)
{
    ncclResult_t result;
    int code;

    if (nc_settings_host())
        return pages_free(buffer);
    if ((result = need("ncclMemFree")))
        return result;
    code = cuda.free((uint64_t)(uintptr_t)buffer);
    return code == 0 ? ncclSuccess : failed("ncclMemFree", "cuMemFree", code);
}
