/* Operations on a single buffer: contributions are multiplied by a factor as they are loaded (AVG, PREMULSUM), and
 * those of the narrow floating types are widened to float32 on the way. When all are summed, `store` makes elements of
 * the type again. Included by reduce_isa.h, whose vectors and conversions these use. */

#define TIMES(lane, real)                                                                                              \
    static void lane##_times(void *dst, const void *src, size_t count, const void *arg)                                \
    {                                                                                                                  \
        size_t bytes = count * sizeof(real), at = 0;                                                                   \
        char *d = dst;                                                                                                 \
        const char *s = src;                                                                                           \
        real factor;                                                                                                   \
        __builtin_memcpy(&factor, arg, sizeof factor);                                                                 \
        for (; bytes - at >= RD_W; at += RD_W)                                                                         \
            lane##_store(d + at, lane##_load(s + at) * factor);                                                        \
        for (; at < bytes; at += sizeof(real))                                                                         \
            lane##_store_one(d + at, lane##_load_one(s + at) * factor);                                                \
    }

TIMES(f32, float)
TIMES(f64, double)

static void complex64_times(void *dst, const void *src, size_t count, const void *arg)
{
    f32_times(dst, src, 2 * count, arg);
}

static void complex128_times(void *dst, const void *src, size_t count, const void *arg)
{
    f64_times(dst, src, 2 * count, arg);
}

/* Unlike bf16_load, this leaves the elements in their order. */
RD_INLINE f32_v bf16_load_half(const char *p)
{
    typedef uint16_t half_t __attribute__((vector_size(RD_W / 2)));
    half_t h;

    __builtin_memcpy(&h, p, sizeof h);
    return (f32_v)(__builtin_convertvector(h, u32_v) << 16);
}

RD_INLINE void bf16_store_half(char *p, f32_v f)
{
    typedef uint16_t half_t __attribute__((vector_size(RD_W / 2)));
    half_t h = __builtin_convertvector(bf16_round(f) >> 16, half_t);

    __builtin_memcpy(p, &h, sizeof h);
}

/* The rest of an array goes through the stack, where its first element fills up the vector: what is not there must
 * raise no flag. */
#define WIDENED(lane)                                                                                                  \
    static void lane##_times(void *dst, const void *src, size_t count, const void *arg)                                \
    {                                                                                                                  \
        const size_t half = RD_W / 2, lanes = RD_W / sizeof(float);                                                    \
        uint16_t rest[RD_W / sizeof(float)];                                                                           \
        const char *s = src;                                                                                           \
        char *d = dst;                                                                                                 \
        float factor;                                                                                                  \
        f32_v v;                                                                                                       \
        __builtin_memcpy(&factor, arg, sizeof factor);                                                                 \
        for (; count >= lanes; count -= lanes, s += half, d += RD_W)                                                   \
            f32_store(d, (f32_v)lane##_load_half(s) * factor);                                                         \
        if (count == 0)                                                                                                \
            return;                                                                                                    \
        for (size_t i = 0; i < lanes; i++)                                                                             \
            __builtin_memcpy(&rest[i], s + (i < count ? i : 0) * sizeof *rest, sizeof *rest);                          \
        v = (f32_v)lane##_load_half((const char *)rest) * factor;                                                      \
        __builtin_memcpy(d, &v, count * sizeof(float));                                                                \
    }                                                                                                                  \
    static void lane##_rounded(void *dst, const void *src, size_t count)                                               \
    {                                                                                                                  \
        const size_t half = RD_W / 2, lanes = RD_W / sizeof(float);                                                    \
        uint16_t rest[RD_W / sizeof(float)];                                                                           \
        const char *s = src;                                                                                           \
        char *d = dst;                                                                                                 \
        f32_v v;                                                                                                       \
        for (; count >= lanes; count -= lanes, s += RD_W, d += half)                                                   \
            lane##_store_half(d, f32_load(s));                                                                         \
        if (count == 0)                                                                                                \
            return;                                                                                                    \
        for (size_t i = 0; i < lanes; i++)                                                                             \
            __builtin_memcpy((char *)&v + i * sizeof(float), s + (i < count ? i : 0) * sizeof(float), sizeof(float));  \
        lane##_store_half((char *)rest, v);                                                                            \
        __builtin_memcpy(d, rest, count * sizeof *rest);                                                               \
    }

WIDENED(f16)
WIDENED(bf16)

#undef TIMES
#undef WIDENED
