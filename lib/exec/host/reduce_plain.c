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
/* A minimum or maximum with a NaN is the second operand: where either is a NaN, all bits are set, and `settle` replaces
 * them. */
RD_INLINE __m128 f32_least(__m128 a, __m128 b)
{
    return _mm_or_ps(_mm_min_ps(a, b), _mm_cmpunord_ps(a, b));
}

RD_INLINE __m128 f32_greatest(__m128 a, __m128 b)
{
    return _mm_or_ps(_mm_max_ps(a, b), _mm_cmpunord_ps(a, b));
}

RD_INLINE __m128 f32_settled(__m128 a)
{
    __m128 m = _mm_cmpunord_ps(a, a);
    return _mm_or_ps(_mm_andnot_ps(m, a), _mm_and_ps(m, _mm_castsi128_ps(_mm_set1_epi32(0x7fc00000))));
}

RD_INLINE __m128d f64_least(__m128d a, __m128d b)
{
    return _mm_or_pd(_mm_min_pd(a, b), _mm_cmpunord_pd(a, b));
}

RD_INLINE __m128d f64_greatest(__m128d a, __m128d b)
{
    return _mm_or_pd(_mm_max_pd(a, b), _mm_cmpunord_pd(a, b));
}

RD_INLINE __m128d f64_settled(__m128d a)
{
    __m128d m = _mm_cmpunord_pd(a, a);
    return _mm_or_pd(_mm_andnot_pd(m, a), _mm_and_pd(m, _mm_castsi128_pd(_mm_set1_epi64x(0x7ff8000000000000))));
}

#else
typedef double doubles_t __attribute__((vector_size(16)));
typedef int64_t longs_t __attribute__((vector_size(16)));

/* `first` chooses a, else b; where either is a NaN, all bits are set, and `settle` replaces them. */
RD_INLINE floats_t f32_choose(floats_t a, floats_t b, masks_t first)
{
    return (floats_t)(((masks_t)a & first) | ((masks_t)b & ~first) | ~((a <= b) | (a > b)));
}

RD_INLINE doubles_t f64_choose(doubles_t a, doubles_t b, longs_t first)
{
    return (doubles_t)(((longs_t)a & first) | ((longs_t)b & ~first) | ~((a <= b) | (a > b)));
}

#define f32_least(a, b) f32_choose(a, b, (a) < (b))
#define f32_greatest(a, b) f32_choose(a, b, (a) > (b))
#define f64_least(a, b) f64_choose(a, b, (a) < (b))
#define f64_greatest(a, b) f64_choose(a, b, (a) > (b))

RD_INLINE floats_t f32_settled(floats_t a)
{
    masks_t number = (a <= 0) | (a > 0);
    return (floats_t)(((masks_t)a & number) | (0x7fc00000 & ~number));
}

RD_INLINE doubles_t f64_settled(doubles_t a)
{
    longs_t number = (a <= 0) | (a > 0);
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
    words_t subnormal = (words_t)((floats_t)((a << 13) + least) - (floats_t)least);
    words_t quiet = (words_t)((masks_t)a > 0x7c00) & 0x400000;
    words_t special = ((a << 13) + (rebias << 1)) | quiet;

    a = select_words((masks_t)a < 0x400, subnormal, select_words((masks_t)a > 0x7bff, special, normal));
    return (floats_t)(a | sign);
}

static __attribute__((noinline)) words_t half_narrow(floats_t f)
{
    const words_t rebias = (words_t){112, 112, 112, 112} << 23, half = (words_t){126, 126, 126, 126} << 23;
    const words_t infinity = {0x7c00, 0x7c00, 0x7c00, 0x7c00};
    words_t x = (words_t)f, sign = x >> 16 & 0x8000, a = x & 0x7fffffff;
    words_t normal = (a - rebias + 0xfff + (a >> 13 & 1)) >> 13;
    words_t subnormal = (words_t)((floats_t)a + (floats_t)half) - half;
    words_t nan = 0x7e00 | (a >> 13 & 0x3ff);

    x = select_words((masks_t)a < 113 << 23, subnormal, select_words((masks_t)a > 0x477fffff, infinity, normal));
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
