/* The runtime's memory: see runtime.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/poor.h"
#include "sim/runtime.h"

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

void *sim_memory(void *old, size_t bytes)
{
    long poor = sim_poor_end ? sim_poor_pause() : 0;
    void *memory = old ? realloc(old, bytes) : calloc(1, bytes);

    if (poor)
        sim_poor_go_on(poor);
    return memory;
}

static void add(block_t what)
{
    block_t *b = sim_memory(NULL, sizeof *b);

    *b = what;
    pthread_mutex_lock(&sim_lock);
    b->id = ++last_id;
    b->next = blocks;
    blocks = b;
    pthread_mutex_unlock(&sim_lock);
}

/* SIM_FULL=N: devices have no memory left for allocations of N bytes and more. */
static int is_full(size_t bytes)
{
    const char *full = getenv("SIM_FULL");

    return full && bytes >= strtoull(full, NULL, 0);
}

static cudaError_t allocate(void **pointer, size_t bytes, enum cudaMemoryType type)
{
    size_t whole = (bytes + 4095) / 4096 * 4096 + (bytes ? 0 : 4096);
    int fd = type == cudaMemoryTypeDevice && is_full(whole) ? -1 : memfd_create("sim", MFD_CLOEXEC);

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
    (void)cudaSetDevice(sim_current()); /* a thread that had no context has one now */
    add((block_t){NULL, base, whole, sim_current(), fd, 0, type, 0, 0, 0});
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

/* Ends the device's memory; it must have nothing else left to do, or that anybody uses. */
cudaError_t cudaDeviceReset(void)
{
    pthread_mutex_lock(&sim_lock);
    for (block_t **at = &blocks, *b; (b = *at);) {
        if (b->device != sim_current() || b->type != cudaMemoryTypeDevice || b->fd < 0) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        munmap(b->base, b->bytes);
        close(b->fd);
        free(b);
        sim_count(SIM_ALLOCATION, -1);
    }
    pthread_mutex_unlock(&sim_lock);
    sim_context_reset(sim_current());
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
    for (int d = 0; d < sim_devices(); d++)
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
    if (!sim_reaches(sim_current(), h.device))
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

/* Waits for whatever runs on the device, as cudaFree does. */
cudaError_t cudaIpcCloseMemHandle(void *pointer)
{
    pthread_mutex_lock(&sim_lock);
    block_t **at = &blocks;
    while (*at && (*at)->base != pointer)
        at = &(*at)->next;
    block_t *b = *at;
    if (b && b->users > 0) {
        *at = b->next;
        sim_drain(sim_current());
    }
    pthread_mutex_unlock(&sim_lock);
    if (!b || b->users <= 0)
        return sim_error(cudaErrorInvalidValue);
    munmap(b->base, b->bytes);
    free(b);
    sim_count(SIM_IMPORT, -1);
    return cudaSuccess;
}

/* ---- the driver's functions ---- */

int sim_address_range(unsigned long long *base, size_t *bytes, unsigned long long pointer)
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

int sim_attribute(void *value, int which, unsigned long long pointer)
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
