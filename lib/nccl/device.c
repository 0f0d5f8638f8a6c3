/* Queries to CUDA's driver: the device of the calling thread, the number of devices, and memory for ncclMemAlloc. The
 * driver's library is loaded when it is first needed, so that this library loads on machines without it. The program's
 * own CUDA runtime shares the driver's current context.
 *
 * On the host, ncclMemAlloc returns whole pages. A list remembers their length, because ncclMemFree has no communicator
 * that could know it.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "nccl/shim.h"

#define CUDA_NOT_READY 600
#define CUDA_LOST 700     /* to 799: errors of kernels, after which every call of the context fails */
#define CUDA_LOST_END 800 /* from here on: of permission, of captures */
#define CAPTURE_RELAXED 2
#define SETTLE_MS 100
#define CUDA_INVALID_CONTEXT 201 /* no context is current: the runtime would use device 0 */

typedef int (*init_fn)(unsigned flags);
typedef int (*get_int_fn)(int *value);
typedef int (*context_retain_fn)(void **context, int device);
typedef int (*context_get_fn)(void **context);
typedef int (*context_set_fn)(void *context);
typedef int (*alloc_fn)(uint64_t *address, size_t bytes);
typedef int (*free_fn)(uint64_t address);
typedef int (*stream_query_fn)(void *stream);
typedef int (*stream_capturing_fn)(void *stream, int *status);
typedef int (*capture_mode_fn)(int *mode);
typedef int (*error_fn)(int code, const char **text);

static struct {
    init_fn init;
    get_int_fn device_get, device_count;
    context_retain_fn context_retain;
    context_get_fn context_get;
    context_set_fn context_set;
    alloc_fn alloc;
    free_fn free;
    error_fn error;
    stream_query_fn stream_query;
    stream_capturing_fn stream_capturing;
    capture_mode_fn capture_mode; /* exchanges the calling thread's */
    int code;                     /* the result of cuInit; -1: there is no library */
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
    cuda.context_get = (context_get_fn)dlsym(library, "cuCtxGetCurrent");
    cuda.context_set = (context_set_fn)dlsym(library, "cuCtxSetCurrent");
    cuda.alloc = (alloc_fn)dlsym(library, "cuMemAlloc_v2");
    cuda.free = (free_fn)dlsym(library, "cuMemFree_v2");
    cuda.error = (error_fn)dlsym(library, "cuGetErrorString");
    cuda.stream_query = (stream_query_fn)dlsym(library, "cuStreamQuery");
    cuda.stream_capturing = (stream_capturing_fn)dlsym(library, "cuStreamIsCapturing");
    cuda.capture_mode = (capture_mode_fn)dlsym(library, "cuThreadExchangeStreamCaptureMode");
    if (cuda.init && cuda.device_get && cuda.device_count && cuda.context_retain && cuda.context_get &&
        cuda.context_set && cuda.alloc && cuda.free && cuda.error && cuda.stream_query && cuda.stream_capturing &&
        cuda.capture_mode)
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

/* Returns false if CUDA need not be asked, or cannot be; *result is then the result of the call. */
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

/* Makes the primary context of the device current, which is never released, as in the CUDA runtime. Returns CUDA's
 * error, or 0. */
static int enter(int device)
{
    void *context = NULL;
    int code = cuda.context_retain(&context, device);

    return code == 0 ? cuda.context_set(context) : code;
}

/* Without it, rondo's functions would return to the thread's first device, which is device 0, and CUDA would create a
 * context there: hundreds of megabytes on a GPU that the process may not use at all. */
void nc_device_enter(int device)
{
    if (device != RONDO_DEVICE_HOST && cuda.code == 0)
        (void)enter(device); /* rondo reports errors */
}

/* Asks for the state of a stream that is not captured. Another capture, of this thread or of any in global mode, would
 * forbid the question, and would be spoiled by it, unless this thread's mode is relaxed. */
static int query(rondo_stream_t stream)
{
    int mode = CAPTURE_RELAXED, code;

    (void)cuda.capture_mode(&mode);
    code = cuda.stream_query(stream);
    (void)cuda.capture_mode(&mode);
    return code;
}

static bool is_lost(int code)
{
    return code >= CUDA_LOST && code < CUDA_LOST_END;
}

bool nc_device_settle(rondo_stream_t stream, int *lost)
{
    const struct timespec nap = {0, 50000};
    int capturing = 1, code = CUDA_NOT_READY;

    *lost = 0;
    if (cuda.code != 0 || cuda.stream_capturing(stream, &capturing) != 0 || capturing)
        return false;
    for (int i = 0; i < SETTLE_MS * 20 && (code = query(stream)) == CUDA_NOT_READY; i++)
        nanosleep(&nap, NULL);
    *lost = is_lost(code) ? code : 0;
    return true;
}

bool nc_device_is_lost(int device)
{
    void *callers = NULL;

    if (device == RONDO_DEVICE_HOST || cuda.code != 0 || cuda.context_get(&callers) != 0)
        return false;
    int code = enter(device); /* where the context is lost, this may fail already */
    if (code == 0)
        code = query(NULL);
    (void)cuda.context_set(callers);
    return is_lost(code);
}

ncclResult_t nc_device_lost(ncclComm_t comm, int code)
{
    const char *text = NULL;

    (void)cuda.error(code, &text);
    return nc_error(comm, ncclUnhandledCudaError,
                    "a kernel that came before this communicator's first operation in its stream has failed: %s (%d)",
                    text ? text : "?", code);
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

/* Allocates memory that peers can map, as cudaMalloc does: in the device's primary context. As in NCCL, it is whole
 * pages of the device, because shorter memory would share a page with other allocations and might begin where no window
 * may. */
static ncclResult_t cuda_alloc(void **buffer, size_t bytes)
{
    const size_t page = (size_t)2 << 20;
    uint64_t address = 0;
    int code;

    if (bytes <= SIZE_MAX - page)
        bytes = bytes ? (bytes + page - 1) / page * page : page;
    code = cuda.alloc(&address, bytes);
    if (code == CUDA_INVALID_CONTEXT && (code = enter(0)) == 0)
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
