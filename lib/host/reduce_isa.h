/* The kernels of one instruction set: every lane, and the table. Included once by each of reduce_plain.c,
 * reduce_avx2.c and reduce_avx512.c, which say how wide a vector is, how a part of one is loaded, and how float16 is
 * converted; everything else is the same text, so the instruction sets differ in speed and not in results.
 *
 * Sums are never reassociated nor contracted: vectors run across elements, an element is summed from the first source
 * to the last. */
#ifdef __FAST_MATH__
#error "-ffast-math would let the compiler drop NaN and reorder sums: build rondo without it"
#endif

typedef uint32_t words_t __attribute__((vector_size(RD_W)));
typedef int32_t masks_t __attribute__((vector_size(RD_W)));
typedef float floats_t __attribute__((vector_size(RD_W)));
typedef uint16_t halves_t __attribute__((vector_size(RD_W / 2)));

RD_INLINE floats_t bf16_widen(halves_t h)
{
    return (floats_t)(__builtin_convertvector(h, words_t) << 16);
}

RD_INLINE halves_t bf16_narrow(floats_t f)
{
    words_t x = (words_t)f, nan = (words_t)((masks_t)(x & 0x7fffffff) > 0x7f800000);
    words_t rounded = (x + 0x7fff + (x >> 16 & 1)) >> 16, quiet = x >> 16 | 0x40;
    return __builtin_convertvector((quiet & nan) | (rounded & ~nan), halves_t);
}

#define SAME(x) (x)

#define LANE(name) u8_##name
#define ACC uint8_t
#define ELEM uint8_t
#define WIDEN SAME
#define NARROW SAME
#define LANE_NAN 0
#include "reduce_lane.h"

#define LANE(name) u16_##name
#define ACC uint16_t
#define ELEM uint16_t
#define WIDEN SAME
#define NARROW SAME
#define LANE_NAN 0
#include "reduce_lane.h"

#define LANE(name) u32_##name
#define ACC uint32_t
#define ELEM uint32_t
#define WIDEN SAME
#define NARROW SAME
#define LANE_NAN 0
#include "reduce_lane.h"

#define LANE(name) u64_##name
#define ACC uint64_t
#define ELEM uint64_t
#define WIDEN SAME
#define NARROW SAME
#define LANE_NAN 0
#include "reduce_lane.h"

#define LANE(name) s8_##name
#define ACC int8_t
#define ELEM int8_t
#define WIDEN SAME
#define NARROW SAME
#define LANE_NAN 0
#include "reduce_lane.h"

#define LANE(name) s16_##name
#define ACC int16_t
#define ELEM int16_t
#define WIDEN SAME
#define NARROW SAME
#define LANE_NAN 0
#include "reduce_lane.h"

#define LANE(name) s32_##name
#define ACC int32_t
#define ELEM int32_t
#define WIDEN SAME
#define NARROW SAME
#define LANE_NAN 0
#include "reduce_lane.h"

#define LANE(name) s64_##name
#define ACC int64_t
#define ELEM int64_t
#define WIDEN SAME
#define NARROW SAME
#define LANE_NAN 0
#include "reduce_lane.h"

#define LANE(name) f32_##name
#define ACC float
#define ELEM float
#define WIDEN SAME
#define NARROW SAME
#define LANE_NAN 0x7fc00000
#include "reduce_lane.h"

#define LANE(name) f64_##name
#define ACC double
#define ELEM double
#define WIDEN SAME
#define NARROW SAME
#define LANE_NAN 0x7ff8000000000000
#include "reduce_lane.h"

#define LANE(name) f16_##name
#define ACC float
#define ELEM uint16_t
#define WIDEN f16_widen
#define NARROW f16_narrow
#define LANE_NAN 0x7fc00000
#include "reduce_lane.h"

#define LANE(name) bf16_##name
#define ACC float
#define ELEM uint16_t
#define WIDEN bf16_widen
#define NARROW bf16_narrow
#define LANE_NAN 0x7fc00000
#include "reduce_lane.h"

/* How: `fast` has a loop for each common number of sources, `any` one for all. */
#define KERNEL(lane, how, name, op)                                                                                    \
    static void lane##_##name(void *dst, const void *const *src, int n, size_t count, const void *arg)                 \
    {                                                                                                                  \
        (void)arg;                                                                                                     \
        lane##_##how(dst, src, n, count, op);                                                                          \
    }
#define ARITHMETIC(lane, how)                                                                                          \
    KERNEL(lane, how, sum, RONDO_SUM)                                                                                  \
    KERNEL(lane, how, prod, RONDO_PROD)                                                                                \
    KERNEL(lane, how, min, RONDO_MIN)                                                                                  \
    KERNEL(lane, how, max, RONDO_MAX)
#define BITWISE(lane)                                                                                                  \
    KERNEL(lane, any, band, RONDO_BAND)                                                                                \
    KERNEL(lane, any, bor, RONDO_BOR)                                                                                  \
    KERNEL(lane, any, bxor, RONDO_BXOR)                                                                                \
    KERNEL(lane, any, land, RONDO_LAND)                                                                                \
    KERNEL(lane, any, lor, RONDO_LOR)                                                                                  \
    KERNEL(lane, any, lxor, RONDO_LXOR)
#define SIGNED(lane, how)                                                                                              \
    KERNEL(lane, how, min, RONDO_MIN)                                                                                  \
    KERNEL(lane, how, max, RONDO_MAX)

ARITHMETIC(u8, any)
ARITHMETIC(u16, any)
ARITHMETIC(u32, fast)
ARITHMETIC(u64, fast)
ARITHMETIC(f32, fast)
ARITHMETIC(f64, fast)
ARITHMETIC(f16, fast)
ARITHMETIC(bf16, fast)
BITWISE(u8)
BITWISE(u16)
BITWISE(u32)
BITWISE(u64)
SIGNED(s8, any)
SIGNED(s16, any)
SIGNED(s32, fast)
SIGNED(s64, fast)

static void complex64_sum(void *dst, const void *const *src, int n, size_t count, const void *arg)
{
    f32_sum(dst, src, n, 2 * count, arg);
}

static void complex128_sum(void *dst, const void *const *src, int n, size_t count, const void *arg)
{
    f64_sum(dst, src, n, 2 * count, arg);
}

static void complex64_times(void *dst, const void *src, size_t count, const void *arg)
{
    f32_times(dst, src, 2 * count, arg);
}

static void complex128_times(void *dst, const void *src, size_t count, const void *arg)
{
    f64_times(dst, src, 2 * count, arg);
}

/* AVG is SUM: what makes it an average is done at the load or at the finish. */
#define ARITHMETIC_ROW(lane, order)                                                                                    \
    [RONDO_SUM] = lane##_sum, [RONDO_AVG] = lane##_sum, [RONDO_PROD] = lane##_prod, [RONDO_MIN] = order##_min,         \
    [RONDO_MAX] = order##_max
#define BITWISE_ROW(lane)                                                                                              \
    [RONDO_BAND] = lane##_band, [RONDO_BOR] = lane##_bor, [RONDO_BXOR] = lane##_bxor, [RONDO_LAND] = lane##_land,      \
    [RONDO_LOR] = lane##_lor, [RONDO_LXOR] = lane##_lxor

const rd_kernels_t RD_TABLE = {
    .reduce =
        {
            [RONDO_INT8] = {ARITHMETIC_ROW(u8, s8), BITWISE_ROW(u8)},
            [RONDO_UINT8] = {ARITHMETIC_ROW(u8, u8), BITWISE_ROW(u8)},
            [RONDO_INT16] = {ARITHMETIC_ROW(u16, s16), BITWISE_ROW(u16)},
            [RONDO_UINT16] = {ARITHMETIC_ROW(u16, u16), BITWISE_ROW(u16)},
            [RONDO_INT32] = {ARITHMETIC_ROW(u32, s32), BITWISE_ROW(u32)},
            [RONDO_UINT32] = {ARITHMETIC_ROW(u32, u32), BITWISE_ROW(u32)},
            [RONDO_INT64] = {ARITHMETIC_ROW(u64, s64), BITWISE_ROW(u64)},
            [RONDO_UINT64] = {ARITHMETIC_ROW(u64, u64), BITWISE_ROW(u64)},
            [RONDO_FLOAT16] = {ARITHMETIC_ROW(f16, f16)},
            [RONDO_BFLOAT16] = {ARITHMETIC_ROW(bf16, bf16)},
            [RONDO_FLOAT32] = {ARITHMETIC_ROW(f32, f32)},
            [RONDO_FLOAT64] = {ARITHMETIC_ROW(f64, f64)},
            [RONDO_COMPLEX64] = {[RONDO_SUM] = complex64_sum, [RONDO_AVG] = complex64_sum},
            [RONDO_COMPLEX128] = {[RONDO_SUM] = complex128_sum, [RONDO_AVG] = complex128_sum},
            [RONDO_BOOL] = {BITWISE_ROW(u8), [RONDO_SUM] = u8_lor, [RONDO_PROD] = u8_land},
        },
    .scale =
        {
            [RONDO_FLOAT16] = f16_times,
            [RONDO_BFLOAT16] = bf16_times,
            [RONDO_FLOAT32] = f32_times,
            [RONDO_FLOAT64] = f64_times,
            [RONDO_COMPLEX64] = complex64_times,
            [RONDO_COMPLEX128] = complex128_times,
        },
};
