/* Operations on a single buffer that need not be fast: PREMULSUM's multiplication by the user's scalar as a
 * contribution is loaded, and the division that turns a sum of integers into an average. The floating types' scaling is
 * in reduce_vec.h. */
#include <stdint.h>
#include <string.h>

#include "exec/host/reduce_kernels.h"

/* As in reduce_rare.c. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

/* Wide enough for every type, and unsigned: the low bits of a product are the same for signed numbers. */
#define MULTIPLY(bits)                                                                                                 \
    static void multiply##bits(void *dst, const void *src, size_t count, const void *arg)                              \
    {                                                                                                                  \
        uint##bits##_t x, by;                                                                                          \
        memcpy(&by, arg, sizeof by);                                                                                   \
        for (size_t at = 0; at < count * sizeof x; at += sizeof x) {                                                   \
            memcpy(&x, (const char *)src + at, sizeof x);                                                              \
            x = (uint##bits##_t)((uint64_t)x * by);                                                                    \
            memcpy((char *)dst + at, &x, sizeof x);                                                                    \
        }                                                                                                              \
    }

MULTIPLY(8)
MULTIPLY(16)
MULTIPLY(32)
MULTIPLY(64)

#define MULTIPLY_COMPLEX(name, real)                                                                                   \
    static void name(void *dst, const void *src, size_t count, const void *arg)                                        \
    {                                                                                                                  \
        real a[2], b[2], c[2];                                                                                         \
        memcpy(b, arg, sizeof b);                                                                                      \
        for (size_t at = 0; at < count * sizeof a; at += sizeof a) {                                                   \
            memcpy(a, (const char *)src + at, sizeof a);                                                               \
            c[0] = a[0] * b[0] - a[1] * b[1];                                                                          \
            c[1] = a[0] * b[1] + a[1] * b[0];                                                                          \
            memcpy((char *)dst + at, c, sizeof c);                                                                     \
        }                                                                                                              \
    }

MULTIPLY_COMPLEX(multiply_complex64, float)
MULTIPLY_COMPLEX(multiply_complex128, double)

static void multiply_bool(void *dst, const void *src, size_t count, const void *arg)
{
    const unsigned char *s = src, *by = arg;
    unsigned char *d = dst;

    for (size_t i = 0; i < count; i++)
        d[i] = s[i] != 0 && *by != 0;
}

const rd_load_fn rd_premul[RONDO_NUM_TYPES] = {
    [RONDO_INT8] = multiply8,
    [RONDO_UINT8] = multiply8,
    [RONDO_INT16] = multiply16,
    [RONDO_UINT16] = multiply16,
    [RONDO_INT32] = multiply32,
    [RONDO_UINT32] = multiply32,
    [RONDO_INT64] = multiply64,
    [RONDO_UINT64] = multiply64,
    [RONDO_COMPLEX64] = multiply_complex64,
    [RONDO_COMPLEX128] = multiply_complex128,
    [RONDO_BOOL] = multiply_bool,
};

/* The number of ranks is positive and below 2^31: it fits in the 32 bits in which the narrow types are divided. */
#define DIVIDE(name, type_t, work_t)                                                                                   \
    static void name(void *dst, size_t count, const void *arg)                                                         \
    {                                                                                                                  \
        int64_t ranks;                                                                                                 \
        memcpy(&ranks, arg, sizeof ranks);                                                                             \
        work_t by = (work_t)ranks;                                                                                     \
        for (size_t at = 0; at < count * sizeof(type_t); at += sizeof(type_t)) {                                       \
            type_t x;                                                                                                  \
            memcpy(&x, (char *)dst + at, sizeof x);                                                                    \
            x = (type_t)(x / by);                                                                                      \
            memcpy((char *)dst + at, &x, sizeof x);                                                                    \
        }                                                                                                              \
    }

DIVIDE(divide_int8, int8_t, int32_t)
DIVIDE(divide_uint8, uint8_t, uint32_t)
DIVIDE(divide_int16, int16_t, int32_t)
DIVIDE(divide_uint16, uint16_t, uint32_t)
DIVIDE(divide_int32, int32_t, int32_t)
DIVIDE(divide_uint32, uint32_t, uint32_t)
DIVIDE(divide_int64, int64_t, int64_t)
DIVIDE(divide_uint64, uint64_t, uint64_t)

const rd_finish_fn rd_divide[RONDO_NUM_TYPES] = {
    [RONDO_INT8] = divide_int8,     [RONDO_UINT8] = divide_uint8,   [RONDO_INT16] = divide_int16,
    [RONDO_UINT16] = divide_uint16, [RONDO_INT32] = divide_int32,   [RONDO_UINT32] = divide_uint32,
    [RONDO_INT64] = divide_int64,   [RONDO_UINT64] = divide_uint64,
};
