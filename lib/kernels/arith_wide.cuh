/* Scaled sums (AVG, PREMULSUM) of float16, bfloat16 and float8: float32 from the load to the store, in windows and
 * fifos, too, at the price of twice or four times the bytes. A contribution that is rounded to the type after it was
 * scaled may vanish, and a sum of such may overflow although the average does not. The type is decided at run time. */
#ifndef RD_KERNELS_ARITH_WIDE_CUH
#define RD_KERNELS_ARITH_WIDE_CUH

#include "kernels/arith.cuh"

/* A part of a user's buffer. All offsets and lengths are those of the float32 that its elements become. */
struct rd_wide_part_t {
    char *base;
    uint64_t bytes;
    uint32_t type, halvings; /* halvings: an element is a half or a quarter of a float32 */
};

RD_DEVICE uint32_t rd_wide_element(uint32_t type, uint32_t bits)
{
    switch (type) {
    case RONDO_FLOAT16:
        return float_bits(f16_widen((uint16_t)bits));
    case RONDO_BFLOAT16:
        return float_bits(bf16_widen((uint16_t)bits));
    case RONDO_FLOAT8_E4M3:
        return float_bits(rd_e4m3_widen((uint8_t)bits));
    default:
        return float_bits(rd_e5m2_widen((uint8_t)bits));
    }
}

RD_DEVICE uint32_t rd_narrow_element(uint32_t type, uint32_t wide)
{
    switch (type) {
    case RONDO_FLOAT16:
        return f16_narrow(bits_float(wide));
    case RONDO_BFLOAT16:
        return bf16_narrow(bits_float(wide));
    case RONDO_FLOAT8_E4M3:
        return rd_e4m3_narrow(bits_float(wide));
    default:
        return rd_e5m2_narrow(bits_float(wide));
    }
}

/* Four elements: of 16 bits in x and y, of 8 bits in x. */
RD_DEVICE uint4 rd_widen_four(uint32_t type, uint32_t x, uint32_t y, uint32_t halvings)
{
    if (halvings == 1)
        return make_uint4(rd_wide_element(type, x & 0xffff), rd_wide_element(type, x >> 16),
                          rd_wide_element(type, y & 0xffff), rd_wide_element(type, y >> 16));
    return make_uint4(rd_wide_element(type, x & 0xff), rd_wide_element(type, x >> 8 & 0xff),
                      rd_wide_element(type, x >> 16 & 0xff), rd_wide_element(type, x >> 24));
}

RD_DEVICE uint4 rd_narrow_four(uint32_t type, const uint4 &v, uint32_t halvings)
{
    const uint32_t a = rd_narrow_element(type, v.x), b = rd_narrow_element(type, v.y), c = rd_narrow_element(type, v.z),
                   d = rd_narrow_element(type, v.w);

    if (halvings == 1)
        return make_uint4(a | b << 16, c | d << 16, 0, 0);
    return make_uint4(a | b << 8 | c << 16 | d << 24, 0, 0, 0);
}

RD_DEVICE void rd_part_prefetch(const rd_wide_part_t &part, uint64_t at)
{
    if (at < part.bytes)
        gpu_prefetch(part.base + (at >> part.halvings));
}

RD_DEVICE uint4 rd_part_load(const rd_wide_part_t &part, uint64_t at)
{
    const char *p = part.base + (at >> part.halvings);

    if (at >= part.bytes)
        return make_uint4(0, 0, 0, 0);
    const uint32_t left = (part.bytes - at < 16 ? (uint32_t)(part.bytes - at) : 16u) >> part.halvings;
    if (left == 8 && (uintptr_t)p % 8 == 0) {
        const uint64_t x = *(const uint64_t *)p;
        return rd_widen_four(part.type, (uint32_t)x, (uint32_t)(x >> 32), part.halvings);
    }
    const uint4 x = rd_part_load(rd_part(p, 0, left), 0);
    return rd_widen_four(part.type, x.x, x.y, part.halvings);
}

RD_DEVICE void rd_part_store(const rd_wide_part_t &part, uint64_t at, uint4 v)
{
    char *p = part.base + (at >> part.halvings);

    if (at >= part.bytes)
        return;
    const uint32_t left = (part.bytes - at < 16 ? (uint32_t)(part.bytes - at) : 16u) >> part.halvings;
    const uint4 x = rd_narrow_four(part.type, v, part.halvings);
    if (left == 8 && (uintptr_t)p % 8 == 0)
        *(uint64_t *)p = (uint64_t)x.y << 32 | x.x;
    else
        rd_part_store(rd_part(p, 0, left), 0, x);
}

struct rd_arith_wide : rd_arith_floats<rd_lanes_f32> {
    typedef rd_wide_part_t part_t;

    RD_MEMBER rd_arith_wide(const rd_kreduce_t &r, uint32_t n) : rd_arith_floats<rd_lanes_f32>(r, n)
    {
    }

    static RD_MEMBER part_t part(const rd_kreduce_t &r, const void *base, uint64_t at, uint64_t end)
    {
        part_t p;

        p.type = r.narrow;
        p.halvings = rd_arith_size(r.narrow) == 2 ? 1 : 2;
        p.base = (char *)const_cast<void *>(base) + (at >> p.halvings);
        p.bytes = at < end ? end - at : 0;
        return p;
    }
};

#endif
