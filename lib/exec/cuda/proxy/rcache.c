/* The registration cache: what has been announced of this process's memory for GDR messages, and what to do with memory
 * that was freed and allocated anew: see gdr.c.
 *
 * A peer's UCX that fetches (ucx/ucx_config.c: gets_put) keeps its mappings of this process's memory. When other memory
 * is announced to it at the same address, it closes the old mapping first. If that is a mapping of CUDA IPC, closing it
 * waits for everything that runs on the peer's GPU, including the very kernel that waits for the message. So the
 * process remembers everything that it has announced, by the number that CUDA gives every allocation. Memory where
 * another announced allocation has been before is not announced: before the kernel, in the stream, the message is
 * copied to memory that is.
 *
 * Nothing is forgotten when memory is freed, because the peer keeps its mapping. But no two announced allocations
 * overlap: so there is one entry for each place that the process has ever sent from, however often memory is allocated
 * anew there, and entries are sorted by address.
 *
 * The copies of all launches of a communicator share one buffer, because launches follow one another. When it grows,
 * the old one is kept until the communicator ends: graphs may know it, and freeing it would wait as closing does. So
 * they are left to later communicators then. */
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/proxy/proxy.h"

#define LEAST ((size_t)2 << 20) /* bytes of such a buffer */
#define TRIES 8

typedef struct allocation {
    uintptr_t base;
    size_t bytes;
    unsigned long long id;
    int plain; /* any process can map it: not from a pool, nor put together by the driver's calls */
} allocation_t;

typedef struct rd_bounce {
    struct rd_bounce *next;
    char *memory;
    size_t allocated, bytes; /* bytes 0: it must not be announced, so no copies go there */
} rd_bounce_t;

/* One for the whole process, because a peer's mappings of this process's memory belong to the peer's process. */
static struct {
    pthread_mutex_t lock;
    allocation_t *all;
    size_t count, room;
} announced = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0};

/* ---- what has been announced */

/* Finds the allocation that holds the pointer. Returns false if CUDA does not know it. */
static bool allocation_of(const void *pointer, allocation_t *t)
{
    unsigned long long base = 0, plain = 0; /* wide enough for an integer of any length */

    rd_driver_find();
    if (!rd_driver.range || !rd_driver.attribute ||
        rd_driver.range(&base, &t->bytes, (unsigned long long)(uintptr_t)pointer) != 0 ||
        rd_driver.attribute(&t->id, RD_DRIVER_BUFFER_ID, (unsigned long long)(uintptr_t)pointer) != 0)
        return false;
    t->base = (uintptr_t)base;
    t->plain = rd_driver.attribute(&plain, RD_DRIVER_IPC, base) == 0 && plain;
    return true;
}

/* Returns the index of the first entry that ends behind the address, or where it would be. */
static size_t index_of(uintptr_t at)
{
    size_t low = 0, high = announced.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (announced.all[middle].base + announced.all[middle].bytes <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds an entry; with the lock held. Returns -1 if there is no memory. */
static int announce(const allocation_t *t, size_t at)
{
    if (announced.count == announced.room) {
        size_t room = announced.room ? 2 * announced.room : 64;
        allocation_t *all = realloc(announced.all, room * sizeof *all);
        if (!all)
            return -1;
        announced.all = all;
        announced.room = room;
    }
    memmove(announced.all + at + 1, announced.all + at, (announced.count++ - at) * sizeof *announced.all);
    announced.all[at] = *t;
    return 0;
}

/* Returns true if another allocation that lay there has been announced. Otherwise this one counts as announced from
 * now on. */
static bool reused(const void *pointer, rondo_result_t *result)
{
    allocation_t t;
    bool other = false;

    if (!allocation_of(pointer, &t))
        return false;
    pthread_mutex_lock(&announced.lock);
    size_t at = index_of(t.base);
    if (at < announced.count && announced.all[at].base < t.base + t.bytes)
        other = announced.all[at].id != t.id || announced.all[at].base != t.base || announced.all[at].bytes != t.bytes;
    else if (announce(&t, at))
        *result = RONDO_ERR_NO_MEMORY;
    pthread_mutex_unlock(&announced.lock);
    return other;
}

bool rd_rcache_announce(const void *memory)
{
    rondo_result_t result = RONDO_SUCCESS;

    return reused(memory, &result) || result != RONDO_SUCCESS;
}

/* Returns true if the memory lies where another allocation has been announced. */
static bool lies_over(const void *memory)
{
    allocation_t t;

    if (!allocation_of(memory, &t))
        return false;
    pthread_mutex_lock(&announced.lock);
    size_t at = index_of(t.base);
    bool over = at < announced.count && announced.all[at].base < t.base + t.bytes && announced.all[at].id != t.id;
    pthread_mutex_unlock(&announced.lock);
    return over;
}

/* What lies where it must not be announced is held until other memory is found, or there is none. A program may have
 * given back much more than is asked for here: so what is free there is taken meanwhile, more each time, but no more
 * than leaves others enough. What was held is left to later communicators, within the bounds of what may be left, and a
 * suspension frees it: freeing it here would wait for whatever runs on the device, and a kernel of another communicator
 * may wait for a rank that makes this one first. */
cudaError_t rd_rcache_allocate(rd_cuda_t *cuda, size_t bytes, char **memory, bool *fresh)
{
    void *more = NULL;
    size_t free_bytes = 0, all = 0;
    cudaError_t error = cudaMalloc((void **)memory, bytes), refused = cudaSuccess;

    *fresh = error == cudaSuccess && !lies_over(*memory);
    if (error != cudaSuccess || *fresh || cudaMemGetInfo(&free_bytes, &all) != cudaSuccess)
        return error;
    const size_t may = rd_window_left_room();
    size_t room = free_bytes / 4 < may ? free_bytes / 4 : may;
    for (int i = 1; !*fresh && i < TRIES && refused == cudaSuccess && bytes <= room; i++) {
        room -= bytes; /* for what is held already */
        if (bytes << i <= room && (refused = cudaMalloc(&more, bytes << i)) == cudaSuccess) {
            room -= bytes << i;
            rd_window_leave(cuda, more, bytes << i, RD_LEFT_UNUSED);
        }
        if (refused != cudaSuccess || (refused = cudaMalloc(&more, bytes)) != cudaSuccess)
            break;
        rd_window_leave(cuda, *memory, bytes, RD_LEFT_UNUSED);
        *memory = more;
        *fresh = !lies_over(more);
    }
    if (refused != cudaSuccess)
        (void)cudaGetLastError();
    return error;
}

rd_net_memory_t rd_rcache_whole(const rd_proxy_path_t *s, const rd_kmessage_t *m)
{
    size_t bytes = (size_t)(m->bytes & ~(RD_KGDR | RD_KGDR_HOST));
    uintptr_t from = (uintptr_t)m->buffer;
    rd_net_memory_t whole = {NULL, 0, 0};

    if (s->cuda->hosted)
        return (rd_net_memory_t){m->buffer, bytes, 0};
    if (m->bytes & RD_KGDR_HOST)
        return whole;
    pthread_mutex_lock(&announced.lock);
    size_t at = index_of(from);
    const allocation_t *t = at < announced.count ? &announced.all[at] : NULL;
    if (t && t->plain && t->base <= from && bytes <= t->base + t->bytes - from)
        whole = (rd_net_memory_t){(void *)t->base, t->bytes, t->id};
    pthread_mutex_unlock(&announced.lock);
    return whole;
}

/* ---- copies that are announced instead */

static rondo_result_t no_memory(const rd_proxy_path_t *s, size_t bytes)
{
    return rd_error(s->cuda->team->ctx, RONDO_ERR_NO_MEMORY,
                    "no %zu bytes of device memory to copy a message from memory that was given back and taken anew "
                    "(RONDO_GDR=0 does without)",
                    bytes);
}

/* Allocates memory. It may itself lie where announced memory has been: then other memory is allocated. */
static rondo_result_t grow(rd_proxy_path_t *s, size_t bytes)
{
    rondo_result_t result = RONDO_SUCCESS;

    for (int i = 0; i < TRIES; i++) {
        rd_bounce_t *a = calloc(1, sizeof *a);
        if (a && i == 0) /* more of what is left there may be what must not be announced */
            a->memory = rd_window_left_take(s->cuda->device, bytes);
        if (!a || (!a->memory && cudaMalloc((void **)&a->memory, bytes) != cudaSuccess)) {
            (void)cudaGetLastError();
            free(a);
            return no_memory(s, bytes);
        }
        a->next = s->bounce;
        a->allocated = bytes;
        s->bounce = a;
        if (!reused(a->memory, &result)) {
            a->bytes = bytes;
            return result == RONDO_SUCCESS ? result : no_memory(s, bytes);
        }
    }
    return no_memory(s, bytes);
}

/* A power of two, so that a later communicator finds what this one leaves. */
static size_t rounded(size_t bytes)
{
    size_t room = LEAST;

    while (room < bytes && room <= SIZE_MAX / 2)
        room *= 2;
    return room < bytes ? bytes : room;
}

static rondo_result_t reserve(rd_proxy_path_t *s, size_t bytes, char **at)
{
    size_t padded = (bytes + 255) / 256 * 256, room = s->bounce ? s->bounce->bytes : 0;

    if (s->bounce_used + padded > room) {
        rondo_result_t result = grow(s, rounded(2 * room > padded ? 2 * room : padded));
        if (result != RONDO_SUCCESS)
            return result;
        s->bounce_used = 0;
    }
    *at = s->bounce->memory + s->bounce_used;
    s->bounce_used += padded;
    return RONDO_SUCCESS;
}

/* Copies the message if necessary; called on the communicator's device, with captures allowed. */
static rondo_result_t copy(rd_proxy_path_t *s, rd_kmessage_t *m, size_t bytes, cudaStream_t stream)
{
    rondo_result_t result = RONDO_SUCCESS;
    char *at = NULL;

    if (!reused(m->buffer, &result))
        return result == RONDO_SUCCESS ? result : no_memory(s, bytes);
    result = reserve(s, bytes, &at);
    if (result == RONDO_SUCCESS)
        result = rd_cuda_copy(s->cuda, at, m->buffer, bytes, stream);
    m->buffer = at;
    return result;
}

rondo_result_t rd_rcache_copy(rd_proxy_path_t *s, rd_kmessage_t *m, cudaStream_t stream)
{
    size_t bytes = (size_t)(m->bytes & ~(RD_KGDR | RD_KGDR_HOST));

    if (!(m->bytes & RD_KGDR) || ((m->bytes & RD_KGDR_HOST) && !s->cuda->hosted))
        return RONDO_SUCCESS;
    rd_device_guard_t guard = rd_device_enter(s->cuda->device);
    rondo_result_t result = copy(s, m, bytes, stream);
    rd_device_leave(guard);
    return result;
}

size_t rd_rcache_bytes(const rd_proxy_path_t *s)
{
    size_t all = 0;

    for (const rd_bounce_t *a = s->bounce; a; a = a->next)
        all += a->allocated;
    return all;
}

void rd_rcache_free(rd_proxy_path_t *s)
{
    while (s->bounce) {
        rd_bounce_t *a = s->bounce;
        s->bounce = a->next;
        rd_window_leave(s->cuda, a->memory, a->allocated, RD_LEFT_ENQUEUED);
        free(a);
    }
}
