/* The kernels in plain C with 16-byte vectors: what every CPU of the architecture has (SSE2, NEON), and what the other
 * instruction sets are tested against. */
#include <stdint.h>

#include "exec/host/reduce_kernels.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define RD_TABLE rd_kernels_plain
#define RD_W 16
#define RD_PART 0

typedef uint32_t words_t __attribute__((vector_size(16)));
typedef int32_t masks_t __attribute__((vector_size(16)));
typedef uint16_t quarters_t __attribute__((vector_size(8)));
typedef float floats_t __attribute__((vector_size(16)));

#if defined(__SSE2__)
#ifdef __AVX__
#define IN_ORDER(type, name, instruction) RD_IN_ORDER(type, name, "v" instruction, "x")
#else
#define IN_ORDER(type, name, instruction)                                                                              \
    RD_INLINE type name(type a, type b)                                                                                \
    {                                                                                                                  \
        __asm__(instruction " %1, %0" : "+x"(a) : "x"(b));                                                             \
        return a;                                                                                                      \
    }
#endif

IN_ORDER(__m128, f32_plus, "addps")
IN_ORDER(__m128, f32_product, "mulps")
IN_ORDER(__m128d, f64_plus, "addpd")
IN_ORDER(__m128d, f64_product, "mulpd")

/* The CPU's minimum and maximum report a NaN as an invalid operation, or trap, and only this comparison does not. So
 * where either operand is a NaN both become 0; then all bits are set, and `settle` replaces them. */
RD_INLINE __m128 f32_least(__m128 a, __m128 b)
{
    __m128 nan = _mm_cmpunord_ps(a, b);
    return _mm_or_ps(_mm_min_ps(_mm_andnot_ps(nan, a), _mm_andnot_ps(nan, b)), nan);
}

RD_INLINE __m128 f32_greatest(__m128 a, __m128 b)
{
    __m128 nan = _mm_cmpunord_ps(a, b);
    return _mm_or_ps(_mm_max_ps(_mm_andnot_ps(nan, a), _mm_andnot_ps(nan, b)), nan);
}

RD_INLINE __m128 f32_settled(__m128 a)
{
    __m128 m = _mm_cmpunord_ps(a, a);
    return _mm_or_ps(_mm_andnot_ps(m, a), _mm_and_ps(m, _mm_castsi128_ps(_mm_set1_epi32(0x7fc00000))));
}

RD_INLINE __m128d f64_least(__m128d a, __m128d b)
{
    __m128d nan = _mm_cmpunord_pd(a, b);
    return _mm_or_pd(_mm_min_pd(_mm_andnot_pd(nan, a), _mm_andnot_pd(nan, b)), nan);
}

RD_INLINE __m128d f64_greatest(__m128d a, __m128d b)
{
    __m128d nan = _mm_cmpunord_pd(a, b);
    return _mm_or_pd(_mm_max_pd(_mm_andnot_pd(nan, a), _mm_andnot_pd(nan, b)), nan);
}

RD_INLINE __m128d f64_settled(__m128d a)
{
    __m128d m = _mm_cmpunord_pd(a, a);
    return _mm_or_pd(_mm_andnot_pd(m, a), _mm_and_pd(m, _mm_castsi128_pd(_mm_set1_epi64x(0x7ff8000000000000))));
}

#else
typedef double doubles_t __attribute__((vector_size(16)));
typedef int64_t longs_t __attribute__((vector_size(16)));

#if defined(__aarch64__)
#define IN_ORDER(type, name, operator, instruction, lanes)                                                             \
    RD_INLINE type name(type a, type b)                                                                                \
    {                                                                                                                  \
        __asm__(instruction " %0." lanes ", %0." lanes ", %1." lanes : "+w"(a) : "w"(b));                              \
        return a;                                                                                                      \
    }
#else
#define IN_ORDER(type, name, operator, instruction, lanes)                                                             \
    RD_INLINE type name(type a, type b)                                                                                \
    {                                                                                                                  \
        return a operator b;                                                                                           \
    }
#endif

IN_ORDER(floats_t, f32_plus, +, "fadd", "4s")
IN_ORDER(floats_t, f32_product, *, "fmul", "4s")
IN_ORDER(doubles_t, f64_plus, +, "fadd", "2d")
IN_ORDER(doubles_t, f64_product, *, "fmul", "2d")

/* To compare for less or more reports a NaN as an invalid operation, or traps; to compare for equality does not. So
 * where either operand is a NaN both become 0; then all bits are set, and `settle` replaces them. */
RD_INLINE floats_t f32_least(floats_t a, floats_t b)
{
    masks_t numbers = (a == a) & (b == b), x = (masks_t)a & numbers, y = (masks_t)b & numbers;
    masks_t first = (floats_t)x < (floats_t)y;
    return (floats_t)((x & first) | (y & ~first) | ~numbers);
}

RD_INLINE floats_t f32_greatest(floats_t a, floats_t b)
{
    masks_t numbers = (a == a) & (b == b), x = (masks_t)a & numbers, y = (masks_t)b & numbers;
    masks_t first = (floats_t)x > (floats_t)y;
    return (floats_t)((x & first) | (y & ~first) | ~numbers);
}

RD_INLINE doubles_t f64_least(doubles_t a, doubles_t b)
{
    longs_t numbers = (a == a) & (b == b), x = (longs_t)a & numbers, y = (longs_t)b & numbers;
    longs_t first = (doubles_t)x < (doubles_t)y;
    return (doubles_t)((x & first) | (y & ~first) | ~numbers);
}

RD_INLINE doubles_t f64_greatest(doubles_t a, doubles_t b)
{
    longs_t numbers = (a == a) & (b == b), x = (longs_t)a & numbers, y = (longs_t)b & numbers;
    longs_t first = (doubles_t)x > (doubles_t)y;
    return (doubles_t)((x & first) | (y & ~first) | ~numbers);
}

RD_INLINE floats_t f32_settled(floats_t a)
{
    masks_t number = a == a;
    return (floats_t)(((masks_t)a & number) | (0x7fc00000 & ~number));
}

RD_INLINE doubles_t f64_settled(doubles_t a)
{
    longs_t number = a == a;
    return (doubles_t)(((longs_t)a & number) | (0x7ff8000000000000 & ~number));
}
#endif

#if defined(__aarch64__)
RD_INLINE floats_t f16_load_half(const char *p)
{
    float16x4_t h;
    __builtin_memcpy(&h, p, sizeof h);
    return (floats_t)vcvt_f32_f16(h);
}

RD_INLINE void f16_store_half(char *p, floats_t f)
{
    float16x4_t h = vcvt_f16_f32((float32x4_t)f);
    __builtin_memcpy(p, &h, sizeof h);
}
#else
RD_INLINE words_t select_words(masks_t mask, words_t a, words_t b)
{
    return (a & (words_t)mask) | (b & ~(words_t)mask);
}

/* Like rd_f16_widen in base/narrow.h, without branches; the float16 is the lower half of each word. It is long, and so
 * not inlined. */
static __attribute__((noinline)) floats_t half_widen(words_t h)
{
    const words_t rebias = (words_t){112, 112, 112, 112} << 23, least = (words_t){113, 113, 113, 113} << 23;
    words_t sign = (h & 0x8000) << 16, a = h & 0x7fff;
    words_t normal = (a << 13) + rebias;
    masks_t small = (masks_t)a < 0x400; /* what is not must raise no flag where it is not used */
    words_t subnormal = (words_t)((floats_t)(((a & (words_t)small) << 13) + least) - (floats_t)least);
    words_t quiet = (words_t)((masks_t)a > 0x7c00) & 0x400000;
    words_t special = ((a << 13) + (rebias << 1)) | quiet;

    a = select_words(small, subnormal, select_words((masks_t)a > 0x7bff, special, normal));
    return (floats_t)(a | sign);
}

static __attribute__((noinline)) words_t half_narrow(floats_t f)
{
    const words_t rebias = (words_t){112, 112, 112, 112} << 23, half = (words_t){126, 126, 126, 126} << 23;
    const words_t infinity = {0x7c00, 0x7c00, 0x7c00, 0x7c00};
    words_t x = (words_t)f, sign = x >> 16 & 0x8000, a = x & 0x7fffffff;
    words_t normal = (a - rebias + 0xfff + (a >> 13 & 1)) >> 13;
    masks_t small = (masks_t)a < 113 << 23;
    words_t subnormal = (words_t)((floats_t)(a & (words_t)small) + (floats_t)half) - half;
    words_t nan = 0x7e00 | (a >> 13 & 0x3ff);

    x = select_words(small, subnormal, select_words((masks_t)a > 0x477fffff, infinity, normal));
    return select_words((masks_t)a > 0x7f800000, nan, x) | sign;
}

RD_INLINE floats_t f16_load_half(const char *p)
{
    quarters_t h;
    __builtin_memcpy(&h, p, sizeof h);
    return half_widen(__builtin_convertvector(h, words_t));
}

RD_INLINE void f16_store_half(char *p, floats_t f)
{
    quarters_t h = __builtin_convertvector(half_narrow(f), quarters_t);
    __builtin_memcpy(p, &h, sizeof h);
}
#endif

#include "exec/host/reduce_isa.h"
