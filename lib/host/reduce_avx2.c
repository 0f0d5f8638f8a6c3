/* The kernels with 32-byte vectors, for CPUs with AVX2 and F16C. FMA is left out on purpose: nothing may be contracted.
 */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

#include "reduce_kernels.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#endif

#define RD_TABLE rd_kernels_avx2
#define RD_W 32
#define RD_PART 0
#define RD_INLINE static inline __attribute__((always_inline, unused))

RD_INLINE void load_part(void *vector, size_t size, const char *from, size_t bytes)
{
    (void)vector, (void)size, (void)from, (void)bytes;
}

RD_INLINE void store_part(char *to, const void *vector, size_t size, size_t bytes)
{
    (void)to, (void)vector, (void)size, (void)bytes;
}

typedef float f32x8 __attribute__((vector_size(32)));
typedef uint16_t u16x8 __attribute__((vector_size(16)));

RD_INLINE f32x8 f16_widen(u16x8 h)
{
    return (f32x8)_mm256_cvtph_ps((__m128i)h);
}

RD_INLINE u16x8 f16_narrow(f32x8 f)
{
    return (u16x8)_mm256_cvtps_ph((__m256)f, _MM_FROUND_TO_NEAREST_INT);
}

#include "reduce_isa.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
typedef int rd_no_avx2; /* a translation unit must hold something */
#endif
