/* A pass over a buffer for values that are not a number. It looks at them as integers, because to compare them as
 * floats would raise flags, and trap where the program wants that: without its sign a NaN is larger than the largest
 * number that is none, so `largest - bits` has its highest bit set for a NaN alone. A block's differences are or-ed
 * together, which the compiler makes vectors of for every width, and only a block that has one is looked at again. */
#include "exec/host/nan_scan.h"

#include <stdbool.h>
#include <stdint.h>

#define BLOCK 2048 /* bytes that are looked at together */

/* An element is `stride` words, of which the first `parts` are values. Returns how many of `n` elements have a NaN. */
#define SCAN(BITS)                                                                                                     \
    typedef uint##BITS##_t word##BITS##_t __attribute__((aligned(1), may_alias)); /* buffers need no alignment */      \
                                                                                                                       \
    static inline bool is_nan##BITS(uint##BITS##_t word, uint##BITS##_t largest)                                       \
    {                                                                                                                  \
        const uint##BITS##_t mask = (uint##BITS##_t) - 1 >> 1;                                                         \
                                                                                                                       \
        return ((uint##BITS##_t)(largest - (word & mask)) & (uint##BITS##_t) ~mask) != 0;                              \
    }                                                                                                                  \
                                                                                                                       \
    static bool block##BITS(const word##BITS##_t *w, uint##BITS##_t largest)                                           \
    {                                                                                                                  \
        const uint##BITS##_t mask = (uint##BITS##_t) - 1 >> 1;                                                         \
        uint##BITS##_t any = 0;                                                                                        \
                                                                                                                       \
        for (size_t k = 0; k < BLOCK / sizeof *w; k++)                                                                 \
            any |= (uint##BITS##_t)(largest - (w[k] & mask));                                                          \
        return (any & (uint##BITS##_t) ~mask) != 0;                                                                    \
    }                                                                                                                  \
                                                                                                                       \
    static size_t scan##BITS(const void *data, size_t n, size_t stride, size_t parts, uint##BITS##_t largest,          \
                             size_t *first)                                                                            \
    {                                                                                                                  \
        const size_t block = BLOCK / sizeof(uint##BITS##_t) / stride;                                                  \
        const word##BITS##_t *w = data;                                                                                \
        size_t found = 0;                                                                                              \
                                                                                                                       \
        for (size_t i = 0, end; i < n; i = end) {                                                                      \
            end = n - i < block ? n : i + block;                                                                       \
            if (stride == parts && end == i + block && !block##BITS(w + i * stride, largest))                          \
                continue;                                                                                              \
            for (size_t k = i; k < end; k++) {                                                                         \
                bool nan = is_nan##BITS(w[k * stride], largest);                                                       \
                if (parts == 2)                                                                                        \
                    nan |= is_nan##BITS(w[k * stride + 1], largest);                                                   \
                if (nan && !found++)                                                                                   \
                    *first = k;                                                                                        \
            }                                                                                                          \
        }                                                                                                              \
        return found;                                                                                                  \
    }

SCAN(8)
SCAN(16)
SCAN(32)
SCAN(64)

/* Infinity, or where there is none the largest number. */
#define E4M3 0x7e
#define E5M2 0x7c
#define HALF 0x7c00
#define BRAIN 0x7f80
#define SINGLE 0x7f800000
#define DOUBLE UINT64_C(0x7ff0000000000000)

size_t rd_nan_count(const void *data, size_t count, rondo_type_t type, size_t *first)
{
    switch (type) {
    case RONDO_FLOAT8_E4M3:
        return scan8(data, count, 1, 1, E4M3, first);
    case RONDO_FLOAT8_E5M2:
        return scan8(data, count, 1, 1, E5M2, first);
    case RONDO_FLOAT16:
        return scan16(data, count, 1, 1, HALF, first);
    case RONDO_BFLOAT16:
        return scan16(data, count, 1, 1, BRAIN, first);
    case RONDO_FLOAT32:
        return scan32(data, count, 1, 1, SINGLE, first);
    case RONDO_FLOAT64:
        return scan64(data, count, 1, 1, DOUBLE, first);
    case RONDO_FLOAT32_INT32:
        return scan32(data, count, 2, 1, SINGLE, first);
    case RONDO_FLOAT64_INT32:
        return scan64(data, count, 2, 1, DOUBLE, first);
    case RONDO_COMPLEX64:
    case RONDO_FLOAT32_FLOAT32:
        return scan32(data, count, 2, 2, SINGLE, first);
    case RONDO_COMPLEX128:
    case RONDO_FLOAT64_FLOAT64:
        return scan64(data, count, 2, 2, DOUBLE, first);
    case RONDO_INT8:
    case RONDO_UINT8:
    case RONDO_INT16:
    case RONDO_UINT16:
    case RONDO_INT32:
    case RONDO_UINT32:
    case RONDO_INT64:
    case RONDO_UINT64:
    case RONDO_BOOL:
    case RONDO_INT32_INT32:
    case RONDO_INT64_INT32:
    case RONDO_NUM_TYPES: /* no default: the compiler finds a type that has no row */
        break;
    }
    return 0;
}
