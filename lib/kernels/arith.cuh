/* Fast arithmetic on sixteen bytes at a time, for sums of the usual types. Each struct offers
 *
 *   all(first, stride, n)  the sum of the n operands at first, first + stride, ..., taken in that order, rounded once
 *   two(a, b)              the sum of a, which has been received, and b, which this rank adds
 *   scaled(v)              the contribution v, multiplied by the scalar if the operation scales
 *   finished(v)            the result for v, the value after the last sum
 *   part(r, base, at, end) a part of a user's buffer, of a type part_t that loads and stores (access.cuh)
 *
 * arith_any.cuh has the struct that decides type and operator at run time, arith_wide.cuh the one whose buffers are
 * narrower than what it computes with. */
#ifndef RD_KERNELS_ARITH_CUH
#define RD_KERNELS_ARITH_CUH

#include <rondo.h>

#include <gpu.cuh>

#include "kernels/access.cuh"
#include "kernels/work.h"

/* For arithmetic that computes with the elements as they lie in memory. */
struct rd_arith_same_t {
    typedef rd_part_t part_t;

    static RD_MEMBER part_t part(const rd_kreduce_t &, const void *base, uint64_t at, uint64_t end)
    {
        return rd_part(base, at, end);
    }
};

/* Returns the bytes of an element. */
RD_DEVICE uint32_t rd_arith_size(uint32_t type)
{
    switch (type) {
    case RONDO_INT8:
    case RONDO_UINT8:
    case RONDO_BOOL:
    case RONDO_FLOAT8_E4M3:
    case RONDO_FLOAT8_E5M2:
        return 1;
    case RONDO_INT16:
    case RONDO_UINT16:
    case RONDO_FLOAT16:
    case RONDO_BFLOAT16:
        return 2;
    case RONDO_INT32:
    case RONDO_UINT32:
    case RONDO_FLOAT32:
        return 4;
    case RONDO_COMPLEX128:
    case RONDO_FLOAT64_INT32:
    case RONDO_INT64_INT32:
    case RONDO_FLOAT64_FLOAT64:
        return 16;
    default:
        return 8;
    }
}

/* ---- the scalar of a scaled sum */

RD_DEVICE double rd_scalar_element(const void *p, uint32_t type)
{
    switch (type) {
    case RONDO_FLOAT16:
        return f16_widen(*(const uint16_t *)p);
    case RONDO_BFLOAT16:
        return bf16_widen(*(const uint16_t *)p);
    case RONDO_FLOAT8_E4M3:
        return rd_e4m3_widen(*(const uint8_t *)p);
    case RONDO_FLOAT8_E5M2:
        return rd_e5m2_widen(*(const uint8_t *)p);
    case RONDO_FLOAT64:
        return *(const double *)p;
    default:
        return *(const float *)p;
    }
}

/* `type`: of the scalar in device memory; `wide`: else it is a double. */
RD_DEVICE_FAR double rd_scalar_value(const void *device, uint32_t type, uint64_t here, bool wide)
{
    if (device)
        return rd_scalar_element(device, type);
    return wide ? bits_double(here) : bits_float((uint32_t)here);
}

RD_DEVICE double rd_scalar_real(const rd_kreduce_t &r)
{
    return rd_scalar_value(r.device_scale, r.narrow ? r.narrow : r.type, r.scale[0],
                           r.type == RONDO_FLOAT64 || r.type == RONDO_COMPLEX128);
}

/* ---- the layout of floating-point elements in a 32-bit word */

struct rd_lanes_f32 {
    static constexpr uint32_t IN_WORD = 1;

    static RD_MEMBER void widen(float (&f)[1], uint32_t w)
    {
        f[0] = bits_float(w);
    }

    static RD_MEMBER uint32_t narrow(const float (&f)[1])
    {
        return float_bits(f[0]);
    }
};

struct rd_lanes_f16 {
    static constexpr uint32_t IN_WORD = 2;

    static RD_MEMBER void widen(float (&f)[2], uint32_t w)
    {
        f[0] = f16_widen((uint16_t)w);
        f[1] = f16_widen((uint16_t)(w >> 16));
    }

    static RD_MEMBER uint32_t narrow(const float (&f)[2])
    {
        return f16_narrow(f[0]) | (uint32_t)f16_narrow(f[1]) << 16;
    }
};

struct rd_lanes_bf16 {
    static constexpr uint32_t IN_WORD = 2;

    static RD_MEMBER void widen(float (&f)[2], uint32_t w)
    {
        f[0] = bf16_widen((uint16_t)w);
        f[1] = bf16_widen((uint16_t)(w >> 16));
    }

    static RD_MEMBER uint32_t narrow(const float (&f)[2])
    {
        return bf16_narrow(f[0]) | (uint32_t)bf16_narrow(f[1]) << 16;
    }
};

/* ---- float32, float16 and bfloat16, all computed in float32 */

template <class LANES>
struct rd_arith_floats : rd_arith_same_t {
    static constexpr uint32_t PER = LANES::IN_WORD;
    typedef float word_t[PER];

    bool scale;
    float factor;

    RD_MEMBER rd_arith_floats(const rd_kreduce_t &r, uint32_t)
    {
        scale = r.scaled != RD_KSCALE_NONE;
        factor = scale ? (float)rd_scalar_real(r) : 1;
    }

    static RD_MEMBER void add(word_t (&sum)[4], const uint4 &v)
    {
        const uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            word_t x;
            LANES::widen(x, w[i]);
#pragma unroll
            for (uint32_t j = 0; j < PER; j++)
                sum[i][j] += x[j];
        }
    }

    static RD_MEMBER void open(word_t (&f)[4], const uint4 &v)
    {
        LANES::widen(f[0], v.x);
        LANES::widen(f[1], v.y);
        LANES::widen(f[2], v.z);
        LANES::widen(f[3], v.w);
    }

    static RD_MEMBER uint4 close(const word_t (&f)[4])
    {
        return make_uint4(LANES::narrow(f[0]), LANES::narrow(f[1]), LANES::narrow(f[2]), LANES::narrow(f[3]));
    }

    RD_MEMBER uint4 all(const uint4 *first, uint32_t stride, uint32_t n) const
    {
        word_t sum[4];

        open(sum, first[0]);
        for (uint32_t k = 1; k < n; k++)
            add(sum, first[k * stride]);
        return close(sum);
    }

    RD_MEMBER uint4 two(const uint4 &a, const uint4 &b) const
    {
        word_t sum[4];

        open(sum, a);
        add(sum, b);
        return close(sum);
    }

    RD_MEMBER uint4 scaled(const uint4 &v) const
    {
        word_t f[4];

        if (!scale)
            return v;
        open(f, v);
#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
#pragma unroll
            for (uint32_t j = 0; j < PER; j++)
                f[i][j] *= factor;
        return close(f);
    }

    RD_MEMBER uint4 finished(const uint4 &v) const
    {
        return v;
    }
};

typedef rd_arith_floats<rd_lanes_f32> rd_arith_f32;
typedef rd_arith_floats<rd_lanes_f16> rd_arith_f16;
typedef rd_arith_floats<rd_lanes_bf16> rd_arith_bf16;

/* ---- float64 and integers: one addition and one multiplication serve signed and unsigned integers alike */

struct rd_pair_f64 {
    static RD_MEMBER void add(uint4 &a, const uint4 &b)
    {
        put(a, get(a.x, a.y) + get(b.x, b.y), get(a.z, a.w) + get(b.z, b.w));
    }

    static RD_MEMBER void multiply(uint4 &a, uint64_t by)
    {
        put(a, get(a.x, a.y) * bits_double(by), get(a.z, a.w) * bits_double(by));
    }

    static RD_MEMBER uint64_t scalar(const rd_kreduce_t &r)
    {
        return double_bits(rd_scalar_real(r));
    }

    static RD_MEMBER double get(uint32_t low, uint32_t high)
    {
        return bits_double((uint64_t)high << 32 | low);
    }

    static RD_MEMBER void put(uint4 &v, double x, double y)
    {
        uint64_t a = double_bits(x), b = double_bits(y);
        v = make_uint4((uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32));
    }
};

struct rd_pair_i64 {
    static RD_MEMBER void add(uint4 &a, const uint4 &b)
    {
        put(a, get(a.x, a.y) + get(b.x, b.y), get(a.z, a.w) + get(b.z, b.w));
    }

    static RD_MEMBER void multiply(uint4 &a, uint64_t by)
    {
        put(a, get(a.x, a.y) * by, get(a.z, a.w) * by);
    }

    static RD_MEMBER uint64_t scalar(const rd_kreduce_t &r)
    {
        return r.device_scale ? *(const uint64_t *)r.device_scale : r.scale[0];
    }

    static RD_MEMBER uint64_t get(uint32_t low, uint32_t high)
    {
        return (uint64_t)high << 32 | low;
    }

    static RD_MEMBER void put(uint4 &v, uint64_t a, uint64_t b)
    {
        v = make_uint4((uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32));
    }
};

struct rd_quad_i32 {
    static RD_MEMBER void add(uint4 &a, const uint4 &b)
    {
        a = make_uint4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    }

    static RD_MEMBER void multiply(uint4 &a, uint64_t by)
    {
        uint32_t f = (uint32_t)by;
        a = make_uint4(a.x * f, a.y * f, a.z * f, a.w * f);
    }

    static RD_MEMBER uint64_t scalar(const rd_kreduce_t &r)
    {
        return r.device_scale ? *(const uint32_t *)r.device_scale : r.scale[0];
    }
};

template <class LANES>
struct rd_arith_plain : rd_arith_same_t {
    bool scale;
    uint64_t factor;

    RD_MEMBER rd_arith_plain(const rd_kreduce_t &r, uint32_t)
    {
        scale = r.scaled != RD_KSCALE_NONE;
        factor = scale ? LANES::scalar(r) : 0;
    }

    RD_MEMBER uint4 all(const uint4 *first, uint32_t stride, uint32_t n) const
    {
        uint4 sum = first[0];

        for (uint32_t k = 1; k < n; k++)
            LANES::add(sum, first[k * stride]);
        return sum;
    }

    RD_MEMBER uint4 two(const uint4 &a, const uint4 &b) const
    {
        uint4 sum = a;

        LANES::add(sum, b);
        return sum;
    }

    RD_MEMBER uint4 scaled(const uint4 &v) const
    {
        uint4 product = v;

        if (scale)
            LANES::multiply(product, factor);
        return product;
    }

    RD_MEMBER uint4 finished(const uint4 &v) const
    {
        return v;
    }
};

typedef rd_arith_plain<rd_pair_f64> rd_arith_f64;
typedef rd_arith_plain<rd_pair_i64> rd_arith_i64;
typedef rd_arith_plain<rd_quad_i32> rd_arith_i32;

#endif
