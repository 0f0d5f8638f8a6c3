/* The kernels with 64-byte vectors, for CPUs with AVX-512 F, BW, VL and DQ. A part of a vector is one masked access. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stdint.h>

#include "reduce_kernels.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")
#endif

#define RD_TABLE rd_kernels_avx512
#define RD_W 64
#define RD_PART 1
#define RD_INLINE static inline __attribute__((always_inline, unused))

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

typedef float f32x16 __attribute__((vector_size(64)));
typedef uint16_t u16x16 __attribute__((vector_size(32)));

RD_INLINE f32x16 f16_widen(u16x16 h)
{
    return (f32x16)_mm512_cvtph_ps((__m256i)h);
}

RD_INLINE u16x16 f16_narrow(f32x16 f)
{
    return (u16x16)_mm512_cvtps_ph((__m512)f, _MM_FROUND_TO_NEAREST_INT);
}

#include "reduce_isa.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
typedef int rd_no_avx512; /* a translation unit must hold something */
#endif
