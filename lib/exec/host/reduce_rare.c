/* Reductions that need not be fast, one element at a time in plain C: float8 and the complex product. The pairs are in
 * reduce_pair.c. Each kernel is a loop that is inlined with one operator and one pair of conversions. */
#include <stdint.h>
#include <string.h>

#include "base/narrow.h"
#include "exec/host/reduce_kernels.h"

/* A product followed by a sum must round twice, or the result would depend on the CPU: no contraction here. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#pragma STDC FENV_ACCESS ON /* else it compares NaN before it has looked whether it is one, and a flag is raised */
#else
#pragma GCC optimize("fp-contract=off")
#endif

typedef float (*widen_fn)(uint8_t b);
typedef uint8_t (*narrow_fn)(float f);

RD_INLINE float apply(int op, float a, float b)
{
    switch (op) {
    case RONDO_SUM:
        return a + b;
    case RONDO_PROD:
        return a * b;
    case RONDO_MIN:
        return a != a || b != b ? rd_float_from_bits(0x7fc00000) : a < b ? a : b;
    default: /* RONDO_MAX */
        return a != a || b != b ? rd_float_from_bits(0x7fc00000) : a > b ? a : b;
    }
}

RD_INLINE void float8(uint8_t *dst, const void *const *src, int n, size_t count, int op, widen_fn widen,
                      narrow_fn narrow)
{
    for (size_t i = 0; i < count; i++) {
        float a = widen(((const uint8_t *)src[0])[i]);
        for (int k = 1; k < n; k++)
            a = apply(op, a, widen(((const uint8_t *)src[k])[i]));
        dst[i] = narrow(a);
    }
}

RD_INLINE void float8_scale(char *dst, const uint8_t *src, size_t count, const void *arg, widen_fn widen)
{
    float factor, scaled;

    memcpy(&factor, arg, sizeof factor);
    for (size_t i = 0; i < count; i++) {
        scaled = widen(src[i]) * factor;
        memcpy(dst + i * sizeof scaled, &scaled, sizeof scaled);
    }
}

RD_INLINE void float8_store(uint8_t *dst, const char *src, size_t count, narrow_fn narrow)
{
    float sum;

    for (size_t i = 0; i < count; i++) {
        memcpy(&sum, src + i * sizeof sum, sizeof sum);
        dst[i] = narrow(sum);
    }
}

#define FLOAT8(format, name, op)                                                                                       \
    static void format##_##name(void *dst, const void *const *src, int n, size_t count, const void *arg)               \
    {                                                                                                                  \
        (void)arg;                                                                                                     \
        float8(dst, src, n, count, op, rd_##format##_widen, rd_##format##_narrow);                                     \
    }
#define FLOAT8_ALL(format)                                                                                             \
    FLOAT8(format, sum, RONDO_SUM)                                                                                     \
    FLOAT8(format, prod, RONDO_PROD)                                                                                   \
    FLOAT8(format, min, RONDO_MIN)                                                                                     \
    FLOAT8(format, max, RONDO_MAX)                                                                                     \
    static void format##_scale(void *dst, const void *src, size_t count, const void *arg)                              \
    {                                                                                                                  \
        float8_scale(dst, src, count, arg, rd_##format##_widen);                                                       \
    }                                                                                                                  \
    static void format##_store(void *dst, const void *src, size_t count)                                               \
    {                                                                                                                  \
        float8_store(dst, src, count, rd_##format##_narrow);                                                           \
    }
#define FLOAT8_ROW(format)                                                                                             \
    [RONDO_SUM] = format##_sum, [RONDO_AVG] = format##_sum, [RONDO_PROD] = format##_prod, [RONDO_MIN] = format##_min,  \
    [RONDO_MAX] = format##_max

FLOAT8_ALL(e4m3)
FLOAT8_ALL(e5m2)

#define COMPLEX_PRODUCT(name, real)                                                                                    \
    static void name(void *dst, const void *const *src, int n, size_t count, const void *arg)                          \
    {                                                                                                                  \
        (void)arg;                                                                                                     \
        for (size_t at = 0; at < count * sizeof(real[2]); at += sizeof(real[2])) {                                     \
            real a[2], b[2], re;                                                                                       \
            memcpy(a, (const char *)src[0] + at, sizeof a);                                                            \
            for (int k = 1; k < n; k++) {                                                                              \
                memcpy(b, (const char *)src[k] + at, sizeof b);                                                        \
                re = a[0] * b[0] - a[1] * b[1];                                                                        \
                a[1] = a[0] * b[1] + a[1] * b[0];                                                                      \
                a[0] = re;                                                                                             \
            }                                                                                                          \
            memcpy((char *)dst + at, a, sizeof a);                                                                     \
        }                                                                                                              \
    }

COMPLEX_PRODUCT(complex64_prod, float)
COMPLEX_PRODUCT(complex128_prod, double)

const rd_kernels_t rd_kernels_rare = {
    .reduce =
        {
            [RONDO_FLOAT8_E4M3] = {FLOAT8_ROW(e4m3)},
            [RONDO_FLOAT8_E5M2] = {FLOAT8_ROW(e5m2)},
            [RONDO_COMPLEX64] = {[RONDO_PROD] = complex64_prod},
            [RONDO_COMPLEX128] = {[RONDO_PROD] = complex128_prod},
        },
    .scale =
        {
            [RONDO_FLOAT8_E4M3] = e4m3_scale,
            [RONDO_FLOAT8_E5M2] = e5m2_scale,
        },
    .store =
        {
            [RONDO_FLOAT8_E4M3] = e4m3_store,
            [RONDO_FLOAT8_E5M2] = e5m2_store,
        },
};
