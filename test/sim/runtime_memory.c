/* The runtime's devices and memory: see runtime.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.h"

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t sim_moved = PTHREAD_COND_INITIALIZER;

static _Thread_local int current = -1; /* -1: this thread has no context */
static unsigned contexts;
static _Thread_local cudaError_t last_error;
static int live[SIM_KINDS];

typedef struct block {
    struct block *next;
    char *base;
    size_t bytes;
    int device, fd, users; /* users: of an import; REGISTERED: the memory is somebody else's */
    enum cudaMemoryType type;
    dev_t exporter; /* import: of which file, by its number */
    ino_t file;
    unsigned long long id; /* another for each */
} block_t;
static block_t *blocks;
static unsigned long long last_id;
#define REGISTERED (-1)

/* What an IPC handle holds. */
typedef struct {
    pid_t pid;
    int fd, device;
    size_t bytes;
} handle_t;

void sim_count(int kind, int by)
{
    __atomic_fetch_add(&live[kind], by, __ATOMIC_RELAXED);
}

int sim_live(char *text, size_t size)
{
    static const char *const name[] = {"allocations", "streams", "events", "graphs", "execs", "user objects", "imports"};
    int sum = 0;

    text[0] = 0;
    for (int k = 0; k < SIM_KINDS; k++) {
        size_t used = strlen(text);
        if (live[k])
            snprintf(text + used, size - used, "%d %s ", live[k], name[k]);
        sum += live[k];
    }
    return sum;
}

cudaError_t sim_error(cudaError_t code)
{
    if (code != cudaSuccess)
        last_error = code;
    return code;
}

int sim_current(void)
{
    return current < 0 ? 0 : current;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t code = last_error;
    last_error = cudaSuccess;
    return code;
}

const char *cudaGetErrorString(cudaError_t error)
{
    static _Thread_local char text[40];
    snprintf(text, sizeof text, "simulated CUDA error %d", (int)error);
    return text;
}

static int devices(void)
{
    const char *text = getenv("SIM_DEVICES");
    return text ? atoi(text) : 4;
}

static int multiprocessors(void)
{
    const char *text = getenv("SIM_SMS");
    return text ? atoi(text) : 4;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = devices();
    return *count ? cudaSuccess : sim_error(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *device)
{
    *device = sim_current();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= devices())
        return sim_error(cudaErrorInvalidDevice);
    current = device;
    __atomic_fetch_or(&contexts, 1u << device, __ATOMIC_RELAXED);
    return cudaSuccess;
}

/* The library's question, of another kind of driver. */
int rd_driver_loaded(void);
int rd_driver_loaded(void)
{
    return 1;
}

unsigned sim_contexts(void)
{
    return __atomic_load_n(&contexts, __ATOMIC_RELAXED);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    (void)device;
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
        *value = multiprocessors();
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *value = 9;
        break;
    case cudaDevAttrClockRate:
        *value = 1000000;
        break;
    default:
        *value = 0;
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    memset(prop, 0, sizeof *prop);
    snprintf(prop->name, sizeof prop->name, "simulated GPU");
    prop->major = 9;
    prop->multiProcessorCount = multiprocessors();
    prop->pciBusID = device + 1;
    prop->totalGlobalMem = (size_t)1 << 32;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device)
{
    snprintf(text, (size_t)size, "0000:%02x:00.0", device + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    unsigned bus;

    if (sscanf(text, "0000:%x:00.0", &bus) != 1 || bus < 1 || (int)bus > devices())
        return sim_error(cudaErrorInvalidValue);
    *device = (int)bus - 1;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* SIM_NO_PEERS=1: a machine whose GPUs do not reach each other; SIM_NO_PEERS=0-2: those two do not. */
static int reaches(int device, int peer)
{
    const char *text = getenv("SIM_NO_PEERS");
    int a, b;

    if (!text || device == peer)
        return 1;
    return sscanf(text, "%d-%d", &a, &b) == 2 && !((device == a && peer == b) || (device == b && peer == a));
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = device != peer && reaches(device, peer);
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    (void)flags;
    if (peer == sim_current())
        return sim_error(cudaErrorInvalidDevice);
    return reaches(sim_current(), peer) ? cudaSuccess : sim_error(cudaErrorPeerAccessUnsupported);
}

/* ---- allocations ---- */

static block_t *find(const void *pointer)
{
    for (block_t *b = blocks; b; b = b->next) {
        if ((const char *)pointer >= b->base && (const char *)pointer < b->base + b->bytes)
            return b;
    }
    return NULL;
}

static int device_of(const void *pointer)
{
    pthread_mutex_lock(&sim_lock);
    const block_t *b = find(pointer);
    int device = b && b->type == cudaMemoryTypeDevice ? b->device : -1;
    pthread_mutex_unlock(&sim_lock);
    return device;
}

/* SIM_BROKEN="1>2 corrupt,3>0 hang": copies from device 1 to 2 arrive with a wrong byte, those from 3 to 0 never.
 * SIM_LATE_COPIES=500: copies from device memory to device memory begin so many microseconds late, some ten times
 * that. */
void sim_copy(const sim_op_t *op)
{
    const char *broken = getenv("SIM_BROKEN"), *late = getenv("SIM_LATE_COPIES"), *at;
    int from = broken ? device_of(op->from) : -1, to = broken ? device_of(op->to) : -1;
    char pair[16];

    snprintf(pair, sizeof pair, "%d>%d ", from, to);
    at = from >= 0 && to >= 0 ? strstr(broken, pair) : NULL;
    while (at && strncmp(at + strlen(pair), "hang", 4) == 0)
        pause();
    if (late && device_of(op->from) >= 0 && device_of(op->to) >= 0)
        usleep((useconds_t)atoi(late) * (rand() % 3 ? 1 : 10));
    memmove(op->to, op->from, op->bytes);
    if (at)
        ((unsigned char *)op->to)[op->bytes / 3] ^= 0x10;
}

static void add(block_t what)
{
    block_t *b = malloc(sizeof *b);

    *b = what;
    pthread_mutex_lock(&sim_lock);
    b->id = ++last_id;
    b->next = blocks;
    blocks = b;
    pthread_mutex_unlock(&sim_lock);
}

static cudaError_t allocate(void **pointer, size_t bytes, enum cudaMemoryType type)
{
    size_t whole = (bytes + 4095) / 4096 * 4096 + (bytes ? 0 : 4096);
    int fd = memfd_create("sim", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (off_t)whole) != 0)
        return sim_error(cudaErrorMemoryAllocation);
    char *base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        close(fd);
        return sim_error(cudaErrorMemoryAllocation);
    }
    if (type == cudaMemoryTypeDevice) { /* zeroes would hide a forgotten clear: the first page is enough to show it */
        memset(base, 0xdb, whole < 65536 ? whole : 65536);
    } else {
        close(fd);
        fd = -1;
    }
    if (current < 0)
        (void)cudaSetDevice(0);
    add((block_t){NULL, base, whole, current, fd, 0, type, 0, 0, 0});
    sim_count(SIM_ALLOCATION, 1);
    *pointer = base;
    return cudaSuccess;
}

static cudaError_t release(void *pointer, int drain)
{
    if (!pointer)
        return cudaSuccess;
    pthread_mutex_lock(&sim_lock);
    block_t **at = &blocks;
    while (*at && (*at)->base != pointer)
        at = &(*at)->next;
    block_t *b = *at;
    if (!b || b->users) {
        pthread_mutex_unlock(&sim_lock);
        return sim_error(cudaErrorInvalidValue);
    }
    if (drain && sim_forbidden()) {
        pthread_mutex_unlock(&sim_lock);
        return sim_error(cudaErrorStreamCaptureUnsupported);
    }
    *at = b->next;
    if (drain)
        sim_drain(b->device);
    pthread_mutex_unlock(&sim_lock);
    munmap(b->base, b->bytes);
    if (b->fd >= 0)
        close(b->fd);
    free(b);
    sim_count(SIM_ALLOCATION, -1);
    return cudaSuccess;
}

/* Of this process alone: 4 GB less what it has there. */
cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    *left = *all = (size_t)1 << 32;
    pthread_mutex_lock(&sim_lock);
    for (const block_t *b = blocks; b; b = b->next)
        if (b->device == sim_current() && b->type == cudaMemoryTypeDevice && b->fd >= 0)
            *left -= b->bytes < *left ? b->bytes : *left;
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    pthread_mutex_lock(&sim_lock);
    int forbidden = sim_forbidden();
    pthread_mutex_unlock(&sim_lock);
    return forbidden ? sim_error(cudaErrorStreamCaptureUnsupported) : allocate(pointer, bytes, cudaMemoryTypeDevice);
}

cudaError_t cudaFree(void *pointer)
{
    return release(pointer, 1);
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocate(pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    return allocate(pointer, bytes, cudaMemoryTypeHost);
}

cudaError_t cudaFreeHost(void *pointer)
{
    return release(pointer, 1);
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocate(pointer, bytes, cudaMemoryTypeManaged);
}

/* What is not pinned has none. */
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&sim_lock);
    const block_t *b = find(host);
    pthread_mutex_unlock(&sim_lock);
    *device = host;
    return b && b->type == cudaMemoryTypeHost ? cudaSuccess : sim_error(cudaErrorInvalidValue);
}

/* Memory that is there already. No byte of it may be pinned by this process at the same address. */
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    int taken = 0;

    (void)flags;
    pthread_mutex_lock(&sim_lock);
    for (const block_t *b = blocks; b; b = b->next)
        taken |= (char *)pointer < b->base + b->bytes && b->base < (char *)pointer + bytes;
    int forbidden = sim_forbidden();
    pthread_mutex_unlock(&sim_lock);
    if (taken || forbidden)
        return sim_error(taken ? cudaErrorHostMemoryAlreadyRegistered : cudaErrorStreamCaptureUnsupported);
    add((block_t){NULL, pointer, bytes, sim_current(), -1, REGISTERED, cudaMemoryTypeHost, 0, 0, 0});
    sim_count(SIM_ALLOCATION, 1);
    return cudaSuccess;
}

/* Waits for whatever runs, as cudaFreeHost does. */
cudaError_t cudaHostUnregister(void *pointer)
{
    pthread_mutex_lock(&sim_lock);
    block_t **at = &blocks;
    while (*at && (*at)->base != pointer)
        at = &(*at)->next;
    block_t *b = *at;
    if (!b || b->users != REGISTERED || sim_forbidden()) {
        pthread_mutex_unlock(&sim_lock);
        return sim_error(cudaErrorHostMemoryNotRegistered);
    }
    *at = b->next;
    for (int d = 0; d < devices(); d++)
        sim_drain(d);
    pthread_mutex_unlock(&sim_lock);
    free(b);
    sim_count(SIM_ALLOCATION, -1);
    return cudaSuccess;
}

/* Ordered by the stream: allocated at once, which nobody can tell from later. */
cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    return allocate(pointer, bytes, cudaMemoryTypeDevice);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
    sim_op_t *op = sim_op_new(SIM_RELEASE);

    op->to = pointer;
    pthread_mutex_lock(&sim_lock);
    cudaError_t error = sim_enqueue(stream, op);
    pthread_mutex_unlock(&sim_lock);
    return sim_error(error);
}

void sim_release(void *pointer)
{
    release(pointer, 0);
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(enum cudaFlushGPUDirectRDMAWritesTarget target,
                                               enum cudaFlushGPUDirectRDMAWritesScope scope)
{
    (void)target;
    (void)scope;
    return cudaSuccess;
}

/* SIM_FAR=1: as on most machines, the host does not reach device memory. */
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *pointer)
{
    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&sim_lock);
    const block_t *b = find(pointer);
    out->type = b ? b->type : cudaMemoryTypeUnregistered;
    out->device = b ? b->device : -2;
    out->devicePointer = out->hostPointer = b ? (void *)(uintptr_t)pointer : NULL;
    if (b && b->type == cudaMemoryTypeDevice && getenv("SIM_FAR"))
        out->hostPointer = NULL;
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

/* ---- between processes ---- */

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
    handle_t h = {.pid = getpid()};
    cudaError_t error = cudaErrorInvalidValue;

    pthread_mutex_lock(&sim_lock);
    const block_t *b = find(pointer);
    if (b && b->fd >= 0) {
        h.fd = b->fd;
        h.device = b->device;
        h.bytes = b->bytes;
        error = cudaSuccess;
    }
    pthread_mutex_unlock(&sim_lock);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &h, sizeof h);
    return sim_error(error);
}

/* As CUDA does: not in the process that exported it, and the base of the allocation comes back. */
cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned flags)
{
    char path[64];
    handle_t h;

    (void)flags;
    memcpy(&h, &handle, sizeof h);
    if (h.pid == getpid())
        return sim_error(cudaErrorDeviceUninitialized);
    if (!reaches(sim_current(), h.device))
        return sim_error(cudaErrorPeerAccessUnsupported);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)h.pid, h.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return sim_error(cudaErrorMapBufferObjectFailed);
    char *base = mmap(NULL, h.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (base == MAP_FAILED)
        return sim_error(cudaErrorMapBufferObjectFailed);
    add((block_t){NULL, base, h.bytes, h.device, -1, 1, cudaMemoryTypeDevice, 0, 0, 0});
    sim_count(SIM_IMPORT, 1);
    *pointer = base;
    return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void *pointer)
{
    pthread_mutex_lock(&sim_lock);
    block_t **at = &blocks;
    while (*at && (*at)->base != pointer)
        at = &(*at)->next;
    block_t *b = *at;
    if (b && b->users > 0)
        *at = b->next;
    pthread_mutex_unlock(&sim_lock);
    if (!b || b->users <= 0)
        return sim_error(cudaErrorInvalidValue);
    munmap(b->base, b->bytes);
    free(b);
    sim_count(SIM_IMPORT, -1);
    return cudaSuccess;
}

/* The driver's function that says where an allocation begins. */
static int address_range(unsigned long long *base, size_t *bytes, unsigned long long pointer)
{
    pthread_mutex_lock(&sim_lock);
    const block_t *b = find((void *)(uintptr_t)pointer);
    if (b && base)
        *base = (unsigned long long)(uintptr_t)b->base;
    if (b && bytes)
        *bytes = b->bytes;
    pthread_mutex_unlock(&sim_lock);
    return b ? 0 : 1;
}

static int attribute(void *value, int which, unsigned long long pointer)
{
    pthread_mutex_lock(&sim_lock);
    const block_t *b = which == 7 || which == 10 ? find((void *)(uintptr_t)pointer) : NULL;
    if (b && which == 7)
        *(unsigned long long *)value = b->id;
    else if (b)
        *(char *)value = 1; /* nobody says how long it is */
    pthread_mutex_unlock(&sim_lock);
    return b ? 0 : 1;
}

/* And those by which a thread that has no context is lent one: a device's is its number, plus one. */
static int context_get(void **context)
{
    *context = (void *)(intptr_t)(current + 1);
    return 0;
}

static int context_set(void *context)
{
    current = (int)(intptr_t)context - 1;
    return 0;
}

static int context_retain(void **context, int device)
{
    *context = (void *)(intptr_t)(device + 1);
    __atomic_fetch_or(&contexts, 1u << device, __ATOMIC_RELAXED);
    return 0;
}

static int context_active(int device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = (__atomic_load_n(&contexts, __ATOMIC_RELAXED) >> device & 1) != 0;
    return 0;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } all[] = {
        {"cuMemGetAddressRange", (void (*)(void))address_range},
        {"cuPointerGetAttribute", (void (*)(void))attribute},
        {"cuCtxGetCurrent", (void (*)(void))context_get},
        {"cuCtxSetCurrent", (void (*)(void))context_set},
        {"cuDevicePrimaryCtxRetain", (void (*)(void))context_retain},
        {"cuDevicePrimaryCtxGetState", (void (*)(void))context_active},
    };
    size_t i = 0, n = sizeof all / sizeof all[0];

    (void)version;
    (void)flags;
    while (i < n && strcmp(symbol, all[i].name) != 0)
        i++;
    *function = i < n ? (void *)(uintptr_t)all[i].function : NULL;
    if (status)
        *status = i < n ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
