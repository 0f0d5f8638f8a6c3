/* The arithmetic of arith.cuh for every type and operator, decided at run time: small rather than fast.
 * lib/base/types.h defines the operators. Results have the same bits as those of lib/exec/host, except for the payload
 * of a NaN, which no standard fixes. */
#ifndef RD_KERNELS_ARITH_ANY_CUH
#define RD_KERNELS_ARITH_ANY_CUH

#include "kernels/access.cuh"
#include "kernels/arith.cuh"

/* The types: T is the element as it lies in memory, A is the type that computes. */

template <class T>
struct rd_any_integer {
    typedef T mem_t;
    typedef T acc_t;

    static RD_MEMBER T open(T x)
    {
        return x;
    }

    static RD_MEMBER T close(T x)
    {
        return x;
    }

    static RD_MEMBER T apply(uint32_t op, T a, T b)
    {
        switch (op) {
        case RONDO_PROD:
            return (T)((uint64_t)a * (uint64_t)b);
        case RONDO_MIN:
            return a < b ? a : b;
        case RONDO_MAX:
            return a > b ? a : b;
        case RONDO_BAND:
            return a & b;
        case RONDO_BOR:
            return a | b;
        case RONDO_BXOR:
            return a ^ b;
        case RONDO_LAND:
            return a != 0 && b != 0;
        case RONDO_LOR:
            return a != 0 || b != 0;
        case RONDO_LXOR:
            return (a != 0) != (b != 0);
        default: /* RONDO_SUM, RONDO_AVG */
            return (T)((uint64_t)a + (uint64_t)b);
        }
    }

    static RD_MEMBER T times(T a, T by)
    {
        return (T)((uint64_t)a * (uint64_t)by);
    }
};

struct rd_any_bool {
    typedef uint8_t mem_t;
    typedef uint8_t acc_t;

    static RD_MEMBER uint8_t open(uint8_t x)
    {
        return x;
    }

    static RD_MEMBER uint8_t close(uint8_t x)
    {
        return x;
    }

    static RD_MEMBER uint8_t apply(uint32_t op, uint8_t a, uint8_t b)
    {
        switch (op) {
        case RONDO_BAND:
            return a & b;
        case RONDO_BOR:
            return a | b;
        case RONDO_BXOR:
            return a ^ b;
        case RONDO_PROD:
        case RONDO_LAND:
            return a != 0 && b != 0;
        case RONDO_LXOR:
            return (a != 0) != (b != 0);
        default: /* RONDO_SUM, RONDO_LOR */
            return a != 0 || b != 0;
        }
    }

    static RD_MEMBER uint8_t times(uint8_t a, uint8_t by)
    {
        return a != 0 && by != 0;
    }
};

/* NAN_BITS of the accumulator's type: a quiet NaN that is positive and has no payload. */
template <class A>
RD_DEVICE A rd_any_float_apply(uint32_t op, A a, A b, A nan)
{
    switch (op) {
    case RONDO_PROD:
        return a * b;
    case RONDO_MIN:
        return a != a || b != b ? nan : a < b ? a : b;
    case RONDO_MAX:
        return a != a || b != b ? nan : a > b ? a : b;
    default: /* RONDO_SUM, RONDO_AVG */
        return a + b;
    }
}

#define RD_ANY_NARROW(name, mem, widen_fn, narrow_fn)                                                                  \
    struct name {                                                                                                      \
        typedef mem mem_t;                                                                                             \
        typedef float acc_t;                                                                                           \
        static RD_MEMBER float open(mem x)                                                                             \
        {                                                                                                              \
            return widen_fn(x);                                                                                        \
        }                                                                                                              \
        static RD_MEMBER mem close(float x)                                                                            \
        {                                                                                                              \
            return narrow_fn(x);                                                                                       \
        }                                                                                                              \
        static RD_MEMBER float apply(uint32_t op, float a, float b)                                                    \
        {                                                                                                              \
            return rd_any_float_apply(op, a, b, bits_float(0x7fc00000));                                               \
        }                                                                                                              \
    };

RD_DEVICE float rd_any_same(float x)
{
    return x;
}

RD_ANY_NARROW(rd_any_f32, float, rd_any_same, rd_any_same)
RD_ANY_NARROW(rd_any_f16, uint16_t, f16_widen, f16_narrow)
RD_ANY_NARROW(rd_any_bf16, uint16_t, bf16_widen, bf16_narrow)
RD_ANY_NARROW(rd_any_e4m3, uint8_t, rd_e4m3_widen, rd_e4m3_narrow)
RD_ANY_NARROW(rd_any_e5m2, uint8_t, rd_e5m2_widen, rd_e5m2_narrow)

struct rd_any_f64 {
    typedef double mem_t;
    typedef double acc_t;

    static RD_MEMBER double open(double x)
    {
        return x;
    }

    static RD_MEMBER double close(double x)
    {
        return x;
    }

    static RD_MEMBER double apply(uint32_t op, double a, double b)
    {
        return rd_any_float_apply(op, a, b, bits_double(0x7ff8000000000000));
    }
};

template <class R>
struct rd_complex_t {
    R re, im;
};

template <class R>
struct rd_any_complex {
    typedef rd_complex_t<R> mem_t;
    typedef rd_complex_t<R> acc_t;

    static RD_MEMBER acc_t open(const mem_t &x)
    {
        return x;
    }

    static RD_MEMBER mem_t close(const acc_t &x)
    {
        return x;
    }

    static RD_MEMBER acc_t apply(uint32_t op, const acc_t &a, const acc_t &b)
    {
        acc_t r;

        if (op == RONDO_PROD)
            return times(a, b);
        r.re = a.re + b.re;
        r.im = a.im + b.im;
        return r;
    }

    static RD_MEMBER acc_t times(const acc_t &a, const acc_t &b)
    {
        acc_t r;

        r.re = a.re * b.re - a.im * b.im;
        r.im = a.re * b.im + a.im * b.re;
        return r;
    }
};

/* Pairs of a value V and an index I. Padding is always written as zero, and every NaN as the same bits. */
template <class V, class I>
struct rd_any_pair {
    struct mem_t {
        V value;
        I index;
    };
    typedef mem_t acc_t;

    static RD_MEMBER acc_t open(const mem_t &x)
    {
        return x;
    }

    static RD_MEMBER mem_t close(const acc_t &x)
    {
        return x;
    }

    static RD_MEMBER acc_t apply(uint32_t op, const acc_t &a, const acc_t &b)
    {
        bool a_nan = a.value != a.value, b_nan = b.value != b.value;
        bool better = op == RONDO_MINLOC ? b.value < a.value : b.value > a.value;
        bool worse = op == RONDO_MINLOC ? b.value > a.value : b.value < a.value;

        if (a_nan || b_nan) {
            better = b_nan && !a_nan;
            worse = a_nan && !b_nan;
        }
        return better || (!worse && b.index < a.index) ? b : a;
    }
};

RD_DEVICE float rd_any_one_nan(float x)
{
    return x != x ? bits_float(0x7fc00000) : x;
}

RD_DEVICE double rd_any_one_nan(double x)
{
    return x != x ? bits_double(0x7ff8000000000000) : x;
}

RD_DEVICE int32_t rd_any_one_nan(int32_t x)
{
    return x;
}

RD_DEVICE int64_t rd_any_one_nan(int64_t x)
{
    return x;
}

/* ---- the elements in sixteen bytes */

struct alignas(16) rd_any_bytes_t {
    unsigned char at[16];
};

/* The bytes may have been written as any type: memcpy keeps the rules of strict aliasing, which a cast of the pointer
 * would break. */
template <class M>
RD_DEVICE M rd_any_get(const void *p)
{
    M x;

    memcpy(&x, __builtin_assume_aligned(p, alignof(M)), sizeof x);
    return x;
}

template <class M>
RD_DEVICE void rd_any_put(void *p, const M &x)
{
    memcpy(__builtin_assume_aligned(p, alignof(M)), &x, sizeof x);
}

/* The operands lie `stride` bytes apart from `first` on, and so do the elements in each of them. */
template <class T>
RD_DEVICE void rd_any_reduce_as(rd_any_bytes_t &to, uint32_t op, const char *first, uint32_t stride, uint32_t n)
{
    for (uint32_t at = 0; at < 16; at += sizeof(typename T::mem_t)) {
        typename T::acc_t a = T::open(rd_any_get<typename T::mem_t>(first + at));
        for (uint32_t k = 1; k < n; k++)
            a = T::apply(op, a, T::open(rd_any_get<typename T::mem_t>(first + k * stride + at)));
        rd_any_put<typename T::mem_t>(to.at + at, T::close(a));
    }
}

template <class V, class I>
RD_DEVICE void rd_any_reduce_pairs(rd_any_bytes_t &to, uint32_t op, const char *first, uint32_t stride, uint32_t n)
{
    typedef rd_any_pair<V, I> pair_t;
    typedef typename pair_t::mem_t mem_t;

    for (uint32_t at = 0; at < 16; at += sizeof(mem_t)) {
        mem_t a = rd_any_get<mem_t>(first + at);
        for (uint32_t k = 1; k < n; k++)
            a = pair_t::apply(op, a, rd_any_get<mem_t>(first + k * stride + at));
        for (uint32_t i = 0; i < sizeof(mem_t); i++)
            to.at[at + i] = 0;
        rd_any_put<V>(to.at + at, rd_any_one_nan(a.value));
        rd_any_put<I>(to.at + at + ((const char *)&a.index - (const char *)&a), a.index);
    }
}

RD_DEVICE_FAR uint4 rd_any_reduce(uint32_t type, uint32_t op, const char *first, uint32_t stride, uint32_t n)
{
    rd_any_bytes_t to;

    switch (type) {
    case RONDO_INT8:
        rd_any_reduce_as<rd_any_integer<int8_t>>(to, op, first, stride, n);
        break;
    case RONDO_UINT8:
        rd_any_reduce_as<rd_any_integer<uint8_t>>(to, op, first, stride, n);
        break;
    case RONDO_INT16:
        rd_any_reduce_as<rd_any_integer<int16_t>>(to, op, first, stride, n);
        break;
    case RONDO_UINT16:
        rd_any_reduce_as<rd_any_integer<uint16_t>>(to, op, first, stride, n);
        break;
    case RONDO_INT32:
        rd_any_reduce_as<rd_any_integer<int32_t>>(to, op, first, stride, n);
        break;
    case RONDO_UINT32:
        rd_any_reduce_as<rd_any_integer<uint32_t>>(to, op, first, stride, n);
        break;
    case RONDO_INT64:
        rd_any_reduce_as<rd_any_integer<int64_t>>(to, op, first, stride, n);
        break;
    case RONDO_UINT64:
        rd_any_reduce_as<rd_any_integer<uint64_t>>(to, op, first, stride, n);
        break;
    case RONDO_FLOAT16:
        rd_any_reduce_as<rd_any_f16>(to, op, first, stride, n);
        break;
    case RONDO_BFLOAT16:
        rd_any_reduce_as<rd_any_bf16>(to, op, first, stride, n);
        break;
    case RONDO_FLOAT32:
        rd_any_reduce_as<rd_any_f32>(to, op, first, stride, n);
        break;
    case RONDO_FLOAT64:
        rd_any_reduce_as<rd_any_f64>(to, op, first, stride, n);
        break;
    case RONDO_FLOAT8_E4M3:
        rd_any_reduce_as<rd_any_e4m3>(to, op, first, stride, n);
        break;
    case RONDO_FLOAT8_E5M2:
        rd_any_reduce_as<rd_any_e5m2>(to, op, first, stride, n);
        break;
    case RONDO_COMPLEX64:
        rd_any_reduce_as<rd_any_complex<float>>(to, op, first, stride, n);
        break;
    case RONDO_COMPLEX128:
        rd_any_reduce_as<rd_any_complex<double>>(to, op, first, stride, n);
        break;
    case RONDO_BOOL:
        rd_any_reduce_as<rd_any_bool>(to, op, first, stride, n);
        break;
    case RONDO_FLOAT32_INT32:
        rd_any_reduce_pairs<float, int32_t>(to, op, first, stride, n);
        break;
    case RONDO_FLOAT64_INT32:
        rd_any_reduce_pairs<double, int32_t>(to, op, first, stride, n);
        break;
    case RONDO_INT32_INT32:
        rd_any_reduce_pairs<int32_t, int32_t>(to, op, first, stride, n);
        break;
    case RONDO_INT64_INT32:
        rd_any_reduce_pairs<int64_t, int32_t>(to, op, first, stride, n);
        break;
    case RONDO_FLOAT32_FLOAT32:
        rd_any_reduce_pairs<float, float>(to, op, first, stride, n);
        break;
    default: /* RONDO_FLOAT64_FLOAT64 */
        rd_any_reduce_pairs<double, double>(to, op, first, stride, n);
        break;
    }
    return rd_any_get<uint4>(&to);
}

/* ---- scaling and averaging, in place */

template <class T>
RD_DEVICE void rd_any_times_real(rd_any_bytes_t &v, typename T::acc_t factor)
{
    for (uint32_t at = 0; at < 16; at += sizeof(typename T::mem_t)) {
        char *p = (char *)v.at + at;
        rd_any_put<typename T::mem_t>(p, T::close(T::open(rd_any_get<typename T::mem_t>(p)) * factor));
    }
}

template <class T>
RD_DEVICE void rd_any_times_element(rd_any_bytes_t &v, const uint4 &scalar)
{
    const typename T::mem_t by = rd_any_get<typename T::mem_t>(&scalar);

    for (uint32_t at = 0; at < 16; at += sizeof(typename T::mem_t)) {
        char *p = (char *)v.at + at;
        rd_any_put<typename T::mem_t>(p, T::times(rd_any_get<typename T::mem_t>(p), by));
    }
}

RD_DEVICE_FAR uint4 rd_any_scale_real(uint32_t type, uint4 x, double factor)
{
    rd_any_bytes_t v = rd_any_get<rd_any_bytes_t>(&x);

    switch (type) {
    case RONDO_FLOAT16:
        rd_any_times_real<rd_any_f16>(v, (float)factor);
        break;
    case RONDO_BFLOAT16:
        rd_any_times_real<rd_any_bf16>(v, (float)factor);
        break;
    case RONDO_FLOAT8_E4M3:
        rd_any_times_real<rd_any_e4m3>(v, (float)factor);
        break;
    case RONDO_FLOAT8_E5M2:
        rd_any_times_real<rd_any_e5m2>(v, (float)factor);
        break;
    case RONDO_FLOAT64:
    case RONDO_COMPLEX128:
        rd_any_times_real<rd_any_f64>(v, factor);
        break;
    default: /* RONDO_FLOAT32, RONDO_COMPLEX64 */
        rd_any_times_real<rd_any_f32>(v, (float)factor);
        break;
    }
    return rd_any_get<uint4>(&v);
}

RD_DEVICE_FAR uint4 rd_any_scale_element(uint32_t type, uint4 x, uint4 scalar)
{
    rd_any_bytes_t v = rd_any_get<rd_any_bytes_t>(&x);

    switch (type) {
    case RONDO_INT8:
    case RONDO_UINT8:
        rd_any_times_element<rd_any_integer<uint8_t>>(v, scalar);
        break;
    case RONDO_INT16:
    case RONDO_UINT16:
        rd_any_times_element<rd_any_integer<uint16_t>>(v, scalar);
        break;
    case RONDO_INT32:
    case RONDO_UINT32:
        rd_any_times_element<rd_any_integer<uint32_t>>(v, scalar);
        break;
    case RONDO_INT64:
    case RONDO_UINT64:
        rd_any_times_element<rd_any_integer<uint64_t>>(v, scalar);
        break;
    case RONDO_COMPLEX64:
        rd_any_times_element<rd_any_complex<float>>(v, scalar);
        break;
    case RONDO_COMPLEX128:
        rd_any_times_element<rd_any_complex<double>>(v, scalar);
        break;
    default: /* RONDO_BOOL */
        rd_any_times_element<rd_any_bool>(v, scalar);
        break;
    }
    return rd_any_get<uint4>(&v);
}

/* Divides and rounds toward zero. W has room for n, which 8 bits need not have; it is T or what T is promoted to. */
template <class T, class W>
RD_DEVICE void rd_any_divide_as(rd_any_bytes_t &v, W n)
{
    for (uint32_t at = 0; at < 16; at += sizeof(T))
        rd_any_put<T>(v.at + at, (T)(rd_any_get<T>(v.at + at) / n));
}

RD_DEVICE_FAR uint4 rd_any_divide(uint32_t type, uint4 x, uint32_t n)
{
    rd_any_bytes_t v = rd_any_get<rd_any_bytes_t>(&x);

    switch (type) {
    case RONDO_INT8:
        rd_any_divide_as<int8_t>(v, (int32_t)n);
        break;
    case RONDO_UINT8:
        rd_any_divide_as<uint8_t>(v, n);
        break;
    case RONDO_INT16:
        rd_any_divide_as<int16_t>(v, (int32_t)n);
        break;
    case RONDO_UINT16:
        rd_any_divide_as<uint16_t>(v, n);
        break;
    case RONDO_INT32:
        rd_any_divide_as<int32_t>(v, (int32_t)n);
        break;
    case RONDO_UINT32:
        rd_any_divide_as<uint32_t>(v, n);
        break;
    case RONDO_INT64:
        rd_any_divide_as<int64_t>(v, n);
        break;
    case RONDO_UINT64:
        rd_any_divide_as<uint64_t>(v, n);
        break;
    default: /* everything but integers has been scaled already */
        return x;
    }
    return rd_any_get<uint4>(&v);
}

/* ---- the struct with the members that arith.cuh names */

struct rd_arith_any : rd_arith_same_t {
    uint32_t type, op, how, n;
    double factor;
    uint4 scalar;

    RD_MEMBER rd_arith_any(const rd_kreduce_t &r, uint32_t nranks)
    {
        type = r.type;
        op = r.op;
        how = r.scaled;
        n = nranks;
        factor = 1;
        scalar = make_uint4((uint32_t)r.scale[0], (uint32_t)(r.scale[0] >> 32), (uint32_t)r.scale[1],
                            (uint32_t)(r.scale[1] >> 32));
        if (how == RD_KSCALE_REAL)
            factor = rd_scalar_real(r);
        if (how == RD_KSCALE_ELEMENT && r.device_scale)
            scalar = rd_part_load(rd_part(r.device_scale, 0, rd_arith_size(type)), 0);
    }

    RD_MEMBER uint4 all(const uint4 *first, uint32_t stride, uint32_t count) const
    {
        return rd_any_reduce(type, op, (const char *)first, stride * 16, count);
    }

    RD_MEMBER uint4 two(const uint4 &a, const uint4 &b) const
    {
        const uint4 both[2] = {a, b};

        return rd_any_reduce(type, op, (const char *)both, 16, 2);
    }

    RD_MEMBER uint4 scaled(const uint4 &v) const
    {
        if (how == RD_KSCALE_NONE)
            return v;
        return how == RD_KSCALE_REAL ? rd_any_scale_real(type, v, factor) : rd_any_scale_element(type, v, scalar);
    }

    RD_MEMBER uint4 finished(const uint4 &v) const
    {
        return op == RONDO_AVG ? rd_any_divide(type, v, n) : v;
    }
};

#endif
