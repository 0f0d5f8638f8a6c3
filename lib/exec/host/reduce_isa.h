/* The kernels of one instruction set: every lane, and the table. Included once by each of reduce_plain.c, reduce_avx2.c
 * and reduce_avx512.c, which define how wide a vector is, how a part of one is loaded, how floats are compared and how
 * float16 is converted; everything else is the same text, so the instruction sets differ in speed and not in results.
 *
 * Sums are never reassociated nor contracted: vectors run across elements, and an element is summed from the first
 * source to the last. Nor are they commuted: of two NaNs the CPU keeps the first, and the compiler would take them in
 * one order in one loop and in the other in the next, so that two ranks whose buffers are aligned otherwise would get
 * other bits. So sums and products of floats are in assembly. */
#ifdef __FAST_MATH__
#error "-ffast-math would let the compiler drop NaN and reorder sums: build rondo without it"
#endif

#define SAME(x) (x)
#define ADDED(a, b) ((a) + (b))
#define MULTIPLIED(a, b) ((a) * (b))

#if !RD_PART /* a part goes element by element, and these are not called */
RD_INLINE void load_part(void *vector, size_t size, const char *from, size_t bytes)
{
    (void)vector, (void)size, (void)from, (void)bytes;
}

RD_INLINE void store_part(char *to, const void *vector, size_t size, size_t bytes)
{
    (void)to, (void)vector, (void)size, (void)bytes;
}
#endif

#define VEC(name) u8_##name
#define TYPE uint8_t
#define PLUS ADDED
#define PRODUCT MULTIPLIED
#define LEAST(a, b) u8_pick((a) < (b), a, b)
#define GREATEST(a, b) u8_pick((a) > (b), a, b)
#define SETTLE SAME
#include "exec/host/reduce_vec.h"
#define LANE(name) u8_##name
#define ELEM uint8_t
#define ACC uint8_t
#include "exec/host/reduce_loop.h"

#define VEC(name) u16_##name
#define TYPE uint16_t
#define PLUS ADDED
#define PRODUCT MULTIPLIED
#define LEAST(a, b) u16_pick((a) < (b), a, b)
#define GREATEST(a, b) u16_pick((a) > (b), a, b)
#define SETTLE SAME
#include "exec/host/reduce_vec.h"
#define LANE(name) u16_##name
#define ELEM uint16_t
#define ACC uint16_t
#include "exec/host/reduce_loop.h"

#define VEC(name) u32_##name
#define TYPE uint32_t
#define PLUS ADDED
#define PRODUCT MULTIPLIED
#define LEAST(a, b) u32_pick((a) < (b), a, b)
#define GREATEST(a, b) u32_pick((a) > (b), a, b)
#define SETTLE SAME
#include "exec/host/reduce_vec.h"
#define LANE(name) u32_##name
#define ELEM uint32_t
#define ACC uint32_t
#include "exec/host/reduce_loop.h"

#define VEC(name) u64_##name
#define TYPE uint64_t
#define PLUS ADDED
#define PRODUCT MULTIPLIED
#define LEAST(a, b) u64_pick((a) < (b), a, b)
#define GREATEST(a, b) u64_pick((a) > (b), a, b)
#define SETTLE SAME
#include "exec/host/reduce_vec.h"
#define LANE(name) u64_##name
#define ELEM uint64_t
#define ACC uint64_t
#include "exec/host/reduce_loop.h"

#define VEC(name) s8_##name
#define TYPE int8_t
#define PLUS ADDED
#define PRODUCT MULTIPLIED
#define LEAST(a, b) s8_pick((a) < (b), a, b)
#define GREATEST(a, b) s8_pick((a) > (b), a, b)
#define SETTLE SAME
#include "exec/host/reduce_vec.h"
#define LANE(name) s8_##name
#define ELEM int8_t
#define ACC int8_t
#include "exec/host/reduce_loop.h"

#define VEC(name) s16_##name
#define TYPE int16_t
#define PLUS ADDED
#define PRODUCT MULTIPLIED
#define LEAST(a, b) s16_pick((a) < (b), a, b)
#define GREATEST(a, b) s16_pick((a) > (b), a, b)
#define SETTLE SAME
#include "exec/host/reduce_vec.h"
#define LANE(name) s16_##name
#define ELEM int16_t
#define ACC int16_t
#include "exec/host/reduce_loop.h"

#define VEC(name) s32_##name
#define TYPE int32_t
#define PLUS ADDED
#define PRODUCT MULTIPLIED
#define LEAST(a, b) s32_pick((a) < (b), a, b)
#define GREATEST(a, b) s32_pick((a) > (b), a, b)
#define SETTLE SAME
#include "exec/host/reduce_vec.h"
#define LANE(name) s32_##name
#define ELEM int32_t
#define ACC int32_t
#include "exec/host/reduce_loop.h"

#define VEC(name) s64_##name
#define TYPE int64_t
#define PLUS ADDED
#define PRODUCT MULTIPLIED
#define LEAST(a, b) s64_pick((a) < (b), a, b)
#define GREATEST(a, b) s64_pick((a) > (b), a, b)
#define SETTLE SAME
#include "exec/host/reduce_vec.h"
#define LANE(name) s64_##name
#define ELEM int64_t
#define ACC int64_t
#include "exec/host/reduce_loop.h"

#define VEC(name) f32_##name
#define TYPE float
#define PLUS f32_plus
#define PRODUCT f32_product
#define LEAST(a, b) f32_least(a, b)
#define GREATEST(a, b) f32_greatest(a, b)
#define SETTLE(a) f32_settled(a)
#include "exec/host/reduce_vec.h"
#define LANE(name) f32_##name
#define ELEM float
#define ACC float
#include "exec/host/reduce_loop.h"

#define VEC(name) f64_##name
#define TYPE double
#define PLUS f64_plus
#define PRODUCT f64_product
#define LEAST(a, b) f64_least(a, b)
#define GREATEST(a, b) f64_greatest(a, b)
#define SETTLE(a) f64_settled(a)
#include "exec/host/reduce_vec.h"
#define LANE(name) f64_##name
#define ELEM double
#define ACC double
#include "exec/host/reduce_loop.h"

/* The narrow floating types are computed in two vectors of float32. */
typedef struct {
    f32_v a, b;
} pair_t;

RD_INLINE pair_t pair_apply(int op, pair_t x, pair_t y)
{
    return (pair_t){f32_apply(op, x.a, y.a), f32_apply(op, x.b, y.b)};
}

RD_INLINE pair_t pair_settle(int op, pair_t x)
{
    return (pair_t){f32_settle(op, x.a), f32_settle(op, x.b)};
}

/* bfloat16 is the upper half of a float32: of each word one element is shifted up, the other left where it is, and no
 * element changes its place. */
RD_INLINE pair_t bf16_widen(u16_v h)
{
    u32_v x = (u32_v)h;
    return (pair_t){(f32_v)(x << 16), (f32_v)(x & 0xffff0000)};
}

/* Rounded to nearest, ties to even, in the upper half; the lower is rubbish. A NaN needs no care: what is computed from
 * bfloat16 has either a payload that came from one, so that its lower half is zero, or the CPU's own; nothing is
 * carried into the exponent. */
RD_INLINE u32_v bf16_round(f32_v f)
{
    u32_v x = (u32_v)f;
    return x + 0x7fff + (x >> 16 & 1);
}

RD_INLINE u16_v bf16_narrow(pair_t v)
{
    return (u16_v)(bf16_round(v.a) >> 16 | (bf16_round(v.b) & 0xffff0000));
}

RD_INLINE pair_t bf16_load(const char *p)
{
    return bf16_widen(u16_load(p));
}

RD_INLINE void bf16_store(char *p, pair_t v)
{
    u16_store(p, bf16_narrow(v));
}

#define LANE(name) bf16_##name
#define ELEM uint16_t
#define ACC float
#define bf16_v pair_t
#define bf16_h u16_v
#define bf16_apply pair_apply
#define bf16_settle pair_settle
#include "exec/host/reduce_loop.h"

/* float16 is converted by the instruction set, half a vector at a time; the rest of an array goes through the stack. */
RD_INLINE pair_t f16_load(const char *p)
{
    return (pair_t){(f32_v)f16_load_half(p), (f32_v)f16_load_half(p + RD_W / 2)};
}

RD_INLINE void f16_store(char *p, pair_t v)
{
    f16_store_half(p, (floats_t)v.a);
    f16_store_half(p + RD_W / 2, (floats_t)v.b);
}

RD_INLINE pair_t f16_widen(u16_v h)
{
    return f16_load((const char *)&h);
}

RD_INLINE u16_v f16_narrow(pair_t v)
{
    u16_v h;
    f16_store((char *)&h, v);
    return h;
}

#define LANE(name) f16_##name
#define ELEM uint16_t
#define ACC float
#define f16_v pair_t
#define f16_h u16_v
#define f16_apply pair_apply
#define f16_settle pair_settle
#include "exec/host/reduce_loop.h"

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

#include "exec/host/reduce_scale.h"

/* AVG uses the kernel of SUM: what makes it an average is done at the load or at the finish. */
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
    .store =
        {
            [RONDO_FLOAT16] = f16_rounded,
            [RONDO_BFLOAT16] = bf16_rounded,
        },
};
