/* Copying between user buffers, slots and scratch. Short copies are inlined: a call of memcpy, its choice by length and
 * its return cost more than moving a line. */
#ifndef RD_EXEC_HOST_HOST_COPY_H
#define RD_EXEC_HOST_HOST_COPY_H

#include <stddef.h>
#include <string.h>

#define RD_COPY_INLINE 64

/* Copies anything longer than RD_COPY_INLINE. */
void rd_copy_block(void *dst, const void *src, size_t bytes);

/* Copies past the caches: whole lines go to memory, and out of every cache that had them. `dst` begins a line. On
 * return the stores are done for every thread that sees a later release. */
void rd_copy_past(void *dst, const void *src, size_t bytes);

/* Copies `size` to 2 * `size` bytes, where `size` is constant: the first and last `size` bytes, which may overlap, with
 * all loads before the stores. */
#define RD_COPY_ENDS(size)                                                                                             \
    do {                                                                                                               \
        unsigned char rd_head[size], rd_rear[size];                                                                    \
        __builtin_memcpy(rd_head, src, size);                                                                          \
        __builtin_memcpy(rd_rear, (const char *)src + bytes - (size), size);                                           \
        __builtin_memcpy(dst, rd_head, size);                                                                          \
        __builtin_memcpy((char *)dst + bytes - (size), rd_rear, size);                                                 \
    } while (0)

/* Copies `bytes`. The buffers may be equal, but must not overlap otherwise. */
static inline void rd_copy(void *dst, const void *src, size_t bytes)
{
    if (bytes > RD_COPY_INLINE)
        rd_copy_block(dst, src, bytes);
    else if (bytes >= 32)
        RD_COPY_ENDS(32);
    else if (bytes >= 16)
        RD_COPY_ENDS(16);
    else if (bytes >= 8)
        RD_COPY_ENDS(8);
    else if (bytes >= 4)
        RD_COPY_ENDS(4);
    else if (bytes >= 2)
        RD_COPY_ENDS(2);
    else if (bytes)
        *(char *)dst = *(const char *)src;
}

#endif
