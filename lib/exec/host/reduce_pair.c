/* MINLOC and MAXLOC over pairs {value, index}, laid out like MPI's pair types. The code finds which source holds the
 * winner, then writes that source's pair, so one routine serves every layout: values are compared as doubles or as
 * 64-bit integers, indices as doubles, all of which hold the narrower types exactly. */
#include <stdint.h>
#include <string.h>

#include "exec/host/reduce_kernels.h"

typedef enum { I32, I64, F32, F64 } number_t;

typedef struct {
    number_t value, index;
    size_t index_at, size, index_size;
} layout_t;

RD_INLINE int64_t integer_at(const char *p, number_t kind)
{
    int32_t i32;
    int64_t i64;

    if (kind == I32) {
        memcpy(&i32, p, sizeof i32);
        return i32;
    }
    memcpy(&i64, p, sizeof i64);
    return i64;
}

RD_INLINE double real_at(const char *p, number_t kind)
{
    float f32;
    double f64;

    if (kind == I32)
        return (double)integer_at(p, kind);
    if (kind == F32) {
        memcpy(&f32, p, sizeof f32);
        return f32;
    }
    memcpy(&f64, p, sizeof f64);
    return f64;
}

/* Returns more than 0 if value `b` beats `a`, 0 for a tie, less if it loses. NaN beats every number and ties with NaN.
 */
RD_INLINE int compare(const char *a, const char *b, number_t kind, int op)
{
    int less, more;

    if (kind == I32 || kind == I64) {
        int64_t x = integer_at(a, kind), y = integer_at(b, kind);
        less = y < x;
        more = y > x;
    } else {
        double x = real_at(a, kind), y = real_at(b, kind);
        if (x != x || y != y)
            return (y != y) - (x != x);
        less = y < x;
        more = y > x;
    }
    return op == RONDO_MINLOC ? less - more : more - less;
}

/* Padding is written as zero and NaN as one pattern, so that equal results are equal bits. */
RD_INLINE void write_pair(char *to, const char *from, const layout_t l)
{
    const uint32_t nan32 = 0x7fc00000;
    const uint64_t nan64 = 0x7ff8000000000000;
    char pair[16] = {0};

    memcpy(pair, from, l.value == F32 || l.value == I32 ? 4 : 8);
    if (l.value == F32 && real_at(pair, F32) != real_at(pair, F32))
        memcpy(pair, &nan32, sizeof nan32);
    if (l.value == F64 && real_at(pair, F64) != real_at(pair, F64))
        memcpy(pair, &nan64, sizeof nan64);
    memcpy(pair + l.index_at, from + l.index_at, l.index_size);
    memcpy(to, pair, l.size);
}

RD_INLINE void locate(char *dst, const void *const *src, int n, size_t count, const layout_t l, int op)
{
    for (size_t at = 0; at < count * l.size; at += l.size) {
        const char *best = (const char *)src[0] + at;
        for (int k = 1; k < n; k++) {
            const char *p = (const char *)src[k] + at;
            int order = compare(best, p, l.value, op);
            if (order > 0 || (order == 0 && real_at(p + l.index_at, l.index) < real_at(best + l.index_at, l.index)))
                best = p;
        }
        write_pair(dst + at, best, l);
    }
}

#define PAIR(name, ...)                                                                                                \
    static void name##_minloc(void *dst, const void *const *src, int n, size_t count, const void *arg)                 \
    {                                                                                                                  \
        (void)arg;                                                                                                     \
        locate(dst, src, n, count, (layout_t){__VA_ARGS__}, RONDO_MINLOC);                                             \
    }                                                                                                                  \
    static void name##_maxloc(void *dst, const void *const *src, int n, size_t count, const void *arg)                 \
    {                                                                                                                  \
        (void)arg;                                                                                                     \
        locate(dst, src, n, count, (layout_t){__VA_ARGS__}, RONDO_MAXLOC);                                             \
    }
#define PAIR_ROW(name)                                                                                                 \
    {                                                                                                                  \
        name##_minloc, name##_maxloc                                                                                   \
    }

PAIR(float32_int32, F32, I32, 4, 8, 4)
PAIR(float64_int32, F64, I32, 8, 16, 4)
PAIR(int32_int32, I32, I32, 4, 8, 4)
PAIR(int64_int32, I64, I32, 8, 16, 4)
PAIR(float32_float32, F32, F32, 4, 8, 4)
PAIR(float64_float64, F64, F64, 8, 16, 8)

const rd_reduce_fn rd_reduce_pair[RONDO_NUM_TYPES][2] = {
    [RONDO_FLOAT32_INT32] = PAIR_ROW(float32_int32),     [RONDO_FLOAT64_INT32] = PAIR_ROW(float64_int32),
    [RONDO_INT32_INT32] = PAIR_ROW(int32_int32),         [RONDO_INT64_INT32] = PAIR_ROW(int64_int32),
    [RONDO_FLOAT32_FLOAT32] = PAIR_ROW(float32_float32), [RONDO_FLOAT64_FLOAT64] = PAIR_ROW(float64_float64),
};
