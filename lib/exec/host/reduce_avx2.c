/* The kernels with 32-byte vectors, for CPUs with AVX2 and F16C. FMA is left out on purpose: nothing may be contracted.
 */
#if defined(__x86_64__)
#include <immintrin.h>

#include "exec/host/reduce_kernels.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#endif

#define RD_TABLE rd_kernels_avx2
#define RD_W 32
#define RD_PART 0

RD_IN_ORDER(__m256, f32_plus, "vaddps", "x")
RD_IN_ORDER(__m256, f32_product, "vmulps", "x")
RD_IN_ORDER(__m256d, f64_plus, "vaddpd", "x")
RD_IN_ORDER(__m256d, f64_product, "vmulpd", "x")

/* The CPU's minimum and maximum report a NaN as an invalid operation, or trap, and only this comparison does not. So
 * where either operand is a NaN both become 0; then all bits are set, and `settle` replaces them. */
RD_INLINE __m256 f32_least(__m256 a, __m256 b)
{
    __m256 nan = _mm256_cmp_ps(a, b, _CMP_UNORD_Q);
    return _mm256_or_ps(_mm256_min_ps(_mm256_andnot_ps(nan, a), _mm256_andnot_ps(nan, b)), nan);
}

RD_INLINE __m256 f32_greatest(__m256 a, __m256 b)
{
    __m256 nan = _mm256_cmp_ps(a, b, _CMP_UNORD_Q);
    return _mm256_or_ps(_mm256_max_ps(_mm256_andnot_ps(nan, a), _mm256_andnot_ps(nan, b)), nan);
}

RD_INLINE __m256 f32_settled(__m256 a)
{
    return _mm256_blendv_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)), _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}

RD_INLINE __m256d f64_least(__m256d a, __m256d b)
{
    __m256d nan = _mm256_cmp_pd(a, b, _CMP_UNORD_Q);
    return _mm256_or_pd(_mm256_min_pd(_mm256_andnot_pd(nan, a), _mm256_andnot_pd(nan, b)), nan);
}

RD_INLINE __m256d f64_greatest(__m256d a, __m256d b)
{
    __m256d nan = _mm256_cmp_pd(a, b, _CMP_UNORD_Q);
    return _mm256_or_pd(_mm256_max_pd(_mm256_andnot_pd(nan, a), _mm256_andnot_pd(nan, b)), nan);
}

RD_INLINE __m256d f64_settled(__m256d a)
{
    return _mm256_blendv_pd(a, _mm256_castsi256_pd(_mm256_set1_epi64x(0x7ff8000000000000)),
                            _mm256_cmp_pd(a, a, _CMP_UNORD_Q));
}

#define F16_WIDEN(h) _mm256_cvtph_ps(h)
#define F16_NARROW(f) _mm256_cvtps_ph(f, _MM_FROUND_TO_NEAREST_INT)
#include "exec/host/reduce_f16c.h"
#include "exec/host/reduce_isa.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
typedef int rd_no_avx2; /* a translation unit must hold something */
#endif
