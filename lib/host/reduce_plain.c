/* The kernels in plain C with 16-byte vectors: what every CPU of the architecture has (SSE2, NEON), and what the other
 * instruction sets are tested against. */
#include <stdint.h>

#include "reduce_kernels.h"

#define RD_TABLE rd_kernels_plain
#define RD_W 16
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

typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef int32_t s32x4 __attribute__((vector_size(16)));
typedef float f32x4 __attribute__((vector_size(16)));
typedef uint16_t u16x4 __attribute__((vector_size(8)));

RD_INLINE u32x4 select_words(s32x4 mask, u32x4 a, u32x4 b)
{
    return (a & (u32x4)mask) | (b & ~(u32x4)mask);
}

/* As rd_f16_widen in narrow.h, without branches. */
RD_INLINE f32x4 f16_widen(u16x4 h)
{
    const u32x4 rebias = (u32x4){112, 112, 112, 112} << 23, least = (u32x4){113, 113, 113, 113} << 23;
    u32x4 x = __builtin_convertvector(h, u32x4), sign = (x & 0x8000) << 16, a = x & 0x7fff;
    u32x4 normal = (a << 13) + rebias;
    u32x4 subnormal = (u32x4)((f32x4)((a << 13) + least) - (f32x4)least);
    u32x4 special = (a << 13) + (rebias << 1) + (((u32x4)((s32x4)a > 0x7c00) & ~a << 13) & 0x400000);

    a = select_words((s32x4)a < 0x400, subnormal, select_words((s32x4)a > 0x7bff, special, normal));
    return (f32x4)(a | sign);
}

RD_INLINE u16x4 f16_narrow(f32x4 f)
{
    const u32x4 rebias = (u32x4){112, 112, 112, 112} << 23, half = (u32x4){126, 126, 126, 126} << 23;
    const u32x4 infinity = {0x7c00, 0x7c00, 0x7c00, 0x7c00};
    u32x4 x = (u32x4)f, sign = x >> 16 & 0x8000, a = x & 0x7fffffff;
    u32x4 normal = (a - rebias + 0xfff + (a >> 13 & 1)) >> 13;
    u32x4 subnormal = (u32x4)((f32x4)a + (f32x4)half) - half;
    u32x4 nan = 0x7e00 | (a >> 13 & 0x3ff);

    x = select_words((s32x4)a < 113 << 23, subnormal, select_words((s32x4)a > 0x477fffff, infinity, normal));
    x = select_words((s32x4)a > 0x7f800000, nan, x);
    return __builtin_convertvector(x | sign, u16x4);
}

#include "reduce_isa.h"
