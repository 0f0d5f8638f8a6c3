/* The kernels with 64-byte vectors, for CPUs with AVX-512 F, BW, VL and DQ. A part of a vector is one masked access. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "exec/host/reduce_kernels.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")
#endif

#define RD_TABLE rd_kernels_avx512
#define RD_W 64
#define RD_PART 1

/* `bytes`: 1 to 63. */
RD_INLINE void load_part(void *vector, size_t size, const char *from, size_t bytes)
{
    __m512i x = _mm512_maskz_loadu_epi8(~(__mmask64)0 >> (64 - bytes), from);
    __builtin_memcpy(vector, &x, size);
}

RD_INLINE void store_part(char *to, const void *vector, size_t size, size_t bytes)
{
    __m512i x = _mm512_setzero_si512();
    __builtin_memcpy(&x, vector, size);
    _mm512_mask_storeu_epi8(to, ~(__mmask64)0 >> (64 - bytes), x);
}

RD_IN_ORDER(__m512, f32_plus, "vaddps", "v")
RD_IN_ORDER(__m512, f32_product, "vmulps", "v")
RD_IN_ORDER(__m512d, f64_plus, "vaddpd", "v")
RD_IN_ORDER(__m512d, f64_product, "vmulpd", "v")

/* What is masked out is not compared: the CPU's minimum and maximum report a NaN as an invalid operation, or trap. It
 * is in assembly because clang makes a minimum and a blend of the masked intrinsic. */
#define ORDERED(instruction, result, numbers, a, b)                                                                    \
    __asm__(instruction " %3, %2, %0%{%1%}" : "+v"(result) : "Yk"(numbers), "v"(a), "v"(b))

RD_INLINE __m512 f32_least(__m512 a, __m512 b)
{
    __m512 result = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    ORDERED("vminps", result, _mm512_cmp_ps_mask(a, b, _CMP_ORD_Q), a, b);
    return result;
}

RD_INLINE __m512 f32_greatest(__m512 a, __m512 b)
{
    __m512 result = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    ORDERED("vmaxps", result, _mm512_cmp_ps_mask(a, b, _CMP_ORD_Q), a, b);
    return result;
}

#define f32_settled(a) (a)

RD_INLINE __m512d f64_least(__m512d a, __m512d b)
{
    __m512d result = _mm512_castsi512_pd(_mm512_set1_epi64(0x7ff8000000000000));
    ORDERED("vminpd", result, _mm512_cmp_pd_mask(a, b, _CMP_ORD_Q), a, b);
    return result;
}

RD_INLINE __m512d f64_greatest(__m512d a, __m512d b)
{
    __m512d result = _mm512_castsi512_pd(_mm512_set1_epi64(0x7ff8000000000000));
    ORDERED("vmaxpd", result, _mm512_cmp_pd_mask(a, b, _CMP_ORD_Q), a, b);
    return result;
}

#define f64_settled(a) (a)

#define F16_WIDEN(h) _mm512_cvtph_ps(h)
#define F16_NARROW(f) _mm512_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT)
#include "exec/host/reduce_f16c.h"
#include "exec/host/reduce_isa.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
typedef int rd_no_avx512; /* a translation unit must hold something */
#endif
