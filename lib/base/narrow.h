/* The narrow floating types, one element at a time: they are widened to float32 exactly, and narrowed to the nearest
 * value with ties to even. The code uses integer arithmetic on the bits, so the result does not depend on rounding
 * mode, flush-to-zero or instruction set; the vector forms in exec/host/reduce_isa.h give the same bits. The CUDA
 * kernels include this header with an RD_NARROW_FN of their own. */
#ifndef RD_BASE_NARROW_H
#define RD_BASE_NARROW_H

#ifndef RD_NARROW_FN
#define RD_NARROW_FN static inline
#endif

#include <stdint.h>
#include <string.h>

RD_NARROW_FN float rd_float_from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

RD_NARROW_FN uint32_t rd_float_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

RD_NARROW_FN float rd_bf16_widen(uint16_t b)
{
    return rd_float_from_bits((uint32_t)b << 16);
}

RD_NARROW_FN uint16_t rd_bf16_narrow(float f)
{
    uint32_t x = rd_float_bits(f);

    if ((x & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(x >> 16 | 0x40);
    return (uint16_t)((x + 0x7fff + (x >> 16 & 1)) >> 16);
}

/* Widens from a format with `e` exponent and `m` mantissa bits in IEEE's layout, in which the topmost exponent also
 * denotes numbers: the caller handles infinity and NaN. */
RD_NARROW_FN float rd_small_widen(uint32_t magnitude, int e, int m)
{
    int bias = (1 << (e - 1)) - 1;

    if (magnitude >> m == 0)
        return (float)magnitude * rd_float_from_bits((uint32_t)(127 + 1 - bias - m) << 23);
    return rd_float_from_bits((magnitude << (23 - m)) + ((uint32_t)(127 - bias) << 23));
}

/* Returns the magnitude's bits, unbounded above: the caller compares them with its largest. `a`: bits of a finite |f|.
 */
RD_NARROW_FN uint32_t rd_small_narrow(uint32_t a, int e, int m)
{
    int bias = (1 << (e - 1)) - 1, drop = 23 - m;
    uint32_t smallest = (uint32_t)(127 + 1 - bias) << 23; /* the smallest normal number */

    if (a < smallest) { /* adding a number whose last place is the smallest subnormal rounds to a multiple of it */
        uint32_t ulp = (uint32_t)(127 + 1 - bias - m + 23) << 23;
        return rd_float_bits(rd_float_from_bits(a) + rd_float_from_bits(ulp)) - ulp;
    }
    return (a - ((uint32_t)(127 - bias) << 23) + (1u << (drop - 1)) - 1 + (a >> drop & 1)) >> drop;
}

RD_NARROW_FN float rd_f16_widen(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, magnitude = h & 0x7fff;

    if (magnitude > 0x7c00)
        return rd_float_from_bits(sign | 0x7fc00000 | magnitude << 13);
    if (magnitude == 0x7c00)
        return rd_float_from_bits(sign | 0x7f800000);
    return rd_float_from_bits(sign | rd_float_bits(rd_small_widen(magnitude, 5, 10)));
}

RD_NARROW_FN uint16_t rd_f16_narrow(float f)
{
    uint32_t x = rd_float_bits(f), sign = x >> 16 & 0x8000, a = x & 0x7fffffff, r;

    if (a > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x3ff));
    r = rd_small_narrow(a, 5, 10);
    return (uint16_t)(sign | (r > 0x7c00 ? 0x7c00 : r));
}

RD_NARROW_FN float rd_e4m3_widen(uint8_t b)
{
    uint32_t sign = (uint32_t)(b & 0x80) << 24, magnitude = b & 0x7f;

    if (magnitude == 0x7f)
        return rd_float_from_bits(sign | 0x7fc00000);
    return rd_float_from_bits(sign | rd_float_bits(rd_small_widen(magnitude, 4, 3)));
}

RD_NARROW_FN uint8_t rd_e4m3_narrow(float f)
{
    uint32_t x = rd_float_bits(f), sign = x >> 24 & 0x80, a = x & 0x7fffffff, r;

    if (a > 0x7f800000)
        return 0x7f;
    r = a > 0x47800000 ? 0x7e : rd_small_narrow(a, 4, 3);
    return (uint8_t)(sign | (r > 0x7e ? 0x7e : r));
}

RD_NARROW_FN float rd_e5m2_widen(uint8_t b)
{
    return rd_f16_widen((uint16_t)(b << 8)); /* it is float16 with eight mantissa bits less */
}

RD_NARROW_FN uint8_t rd_e5m2_narrow(float f)
{
    uint32_t x = rd_float_bits(f), sign = x >> 24 & 0x80, a = x & 0x7fffffff, r;

    if (a > 0x7f800000)
        return 0x7e;
    if (a == 0x7f800000)
        return (uint8_t)(sign | 0x7c);
    r = rd_small_narrow(a, 5, 2);
    return (uint8_t)(sign | (r > 0x7b ? 0x7b : r));
}

#endif
