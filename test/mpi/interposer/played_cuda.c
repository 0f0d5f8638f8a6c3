/* A libcuda.so.1 of a device whose memory the host cannot touch: pages without access, behind which the same memory lies
 * elsewhere. What touches them but a copy dies by SIGSEGV. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (1 << 22)
static char *device, *behind;
static size_t taken;
int played_copies;

void *played_alloc(size_t bytes)
{
    if (!device) {
        int fd = memfd_create("device", 0);
        if (fd < 0 || ftruncate(fd, BYTES) != 0)
            return NULL;
        device = mmap(NULL, BYTES, PROT_NONE, MAP_SHARED, fd, 0);
        behind = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    taken += bytes;
    return device + taken - bytes;
}

static int is_device(uintptr_t at)
{
    return device && at >= (uintptr_t)device && at < (uintptr_t)device + BYTES;
}

int cuPointerGetAttribute(void *value, int attribute, uintptr_t at)
{
    if (!is_device(at))
        return 1;
    if (attribute == 1)
        *(void **)value = NULL; /* as for memory of a pool: no context, but a device */
    else
        *(int *)value = attribute == 2 ? 2 : 0;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device_number)
{
    *context = &taken;
    return device_number;
}

int cuCtxPushCurrent_v2(void *context)
{
    return context != &taken;
}

int cuCtxPopCurrent_v2(void **context)
{
    *context = &taken;
    return 0;
}

int cuStreamCreate(void **stream, unsigned flags)
{
    *stream = &behind;
    return flags != 1; /* one that does not wait for the legacy stream */
}

int cuMemcpyAsync(uintptr_t to, uintptr_t from, size_t bytes, void *stream)
{
    played_copies++;
    to = is_device(to) ? to - (uintptr_t)device + (uintptr_t)behind : to;
    from = is_device(from) ? from - (uintptr_t)device + (uintptr_t)behind : from;
    memmove((void *)to, (void *)from, bytes);
    return stream != &behind;
}

int cuStreamSynchronize(void *stream)
{
    return stream != &behind;
}
