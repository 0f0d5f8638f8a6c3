/* Every reduction of lib/host against a reference written another way: integers in 64 bits, the narrow floating types
 * decoded by their definition and encoded by searching the nearest number, one element at a time. Every type, operator,
 * number of sources, length around a vector, misalignment and place of the result; and every instruction set that this
 * CPU has must give the same bits as plain C. A number as argument is the seed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/host/reduce.h"
#include "util/harness.h"
#include "util/integer_op.h"
#include "util/narrow.h"

enum { MAX_SRC = 8, MAX_COUNT = 2300, MAX_SIZE = 16, GUARD = 64, ROOM = MAX_COUNT * MAX_SIZE + 2 * GUARD };

static uint64_t state;
static int failures;

static uint64_t rnd(void)
{
    return test_random(&state);
}

/* ---- the reference, one element ---- */

static double fold_real(int op, double a, double b, int narrow)
{
    volatile float x = (float)a, y = (float)b, s = x + y, p = x * y;
    volatile double sum = a + b, product = a * b;

    if ((op == RONDO_MIN || op == RONDO_MAX) && (isnan(a) || isnan(b)))
        return NAN;
    if (op == RONDO_MIN)
        return a < b ? a : b;
    if (op == RONDO_MAX)
        return a > b ? a : b;
    if (op == RONDO_PROD)
        return narrow ? (double)p : product;
    return narrow ? (double)s : sum;
}

static int is_signed(rondo_type_t type)
{
    return type == RONDO_INT8 || type == RONDO_INT16 || type == RONDO_INT32 || type == RONDO_INT64;
}

/* Sign- or zero-extended. */
static uint64_t get_integer(rondo_type_t type, const void *p)
{
    int bits = 8 * (int)rondo_type_size(type);
    uint64_t x = 0;

    memcpy(&x, p, rondo_type_size(type));
    if (is_signed(type) && bits < 64 && (x >> (bits - 1) & 1))
        x |= ~0ull << bits;
    return x;
}

static double get_real(rondo_type_t type, const void *p)
{
    uint32_t bits = 0;
    float f;
    double d;

    if (type == RONDO_FLOAT64) {
        memcpy(&d, p, sizeof d);
        return d;
    }
    if (type == RONDO_FLOAT32) {
        memcpy(&f, p, sizeof f);
        return f;
    }
    memcpy(&bits, p, rondo_type_size(type));
    return narrow_decode(narrow_of(type), bits);
}

static void put_real(rondo_type_t type, void *p, double d)
{
    float f = (float)d;
    uint32_t bits;

    if (type == RONDO_FLOAT64) {
        memcpy(p, &d, sizeof d);
    } else if (type == RONDO_FLOAT32) {
        memcpy(p, &f, sizeof f);
    } else {
        bits = narrow_encode(narrow_of(type), f);
        memcpy(p, &bits, rondo_type_size(type));
    }
}

static void reference_complex(rondo_type_t part, int op, void *to, const unsigned char *const *src, int n)
{
    size_t half = rondo_type_size(part);
    int narrow = part == RONDO_FLOAT32;
    double re = get_real(part, src[0]), im = get_real(part, src[0] + half);

    for (int k = 1; k < n; k++) {
        double c = get_real(part, src[k]), d = get_real(part, src[k] + half);
        if (op == RONDO_PROD) {
            double ac = fold_real(RONDO_PROD, re, c, narrow), bd = fold_real(RONDO_PROD, im, d, narrow);
            double ad = fold_real(RONDO_PROD, re, d, narrow), bc = fold_real(RONDO_PROD, im, c, narrow);
            re = fold_real(RONDO_SUM, ac, -bd, narrow);
            im = fold_real(RONDO_SUM, ad, bc, narrow);
        } else {
            re = fold_real(RONDO_SUM, re, c, narrow);
            im = fold_real(RONDO_SUM, im, d, narrow);
        }
    }
    put_real(part, to, re);
    put_real(part, (char *)to + half, im);
}

typedef struct {
    rondo_type_t type, value, index;
    size_t at;
} pair_t;

static const pair_t pairs[] = {
    {RONDO_FLOAT32_INT32, RONDO_FLOAT32, RONDO_INT32, 4},     {RONDO_FLOAT64_INT32, RONDO_FLOAT64, RONDO_INT32, 8},
    {RONDO_INT32_INT32, RONDO_INT32, RONDO_INT32, 4},         {RONDO_INT64_INT32, RONDO_INT64, RONDO_INT32, 8},
    {RONDO_FLOAT32_FLOAT32, RONDO_FLOAT32, RONDO_FLOAT32, 4}, {RONDO_FLOAT64_FLOAT64, RONDO_FLOAT64, RONDO_FLOAT64, 8},
};

static long double get_number(rondo_type_t type, const void *p)
{
    return is_signed(type) ? (long double)(int64_t)get_integer(type, p) : (long double)get_real(type, p);
}

/* What MINLOC looks for: NaN first, then the least value, then the least index. */
static int before(const pair_t *pair, int op, const unsigned char *a, const unsigned char *b)
{
    long double x = get_number(pair->value, a), y = get_number(pair->value, b);

    if (isnan(x) != isnan(y))
        return isnan(x);
    if (!isnan(x) && x != y)
        return op == RONDO_MINLOC ? x < y : x > y;
    return get_number(pair->index, a + pair->at) < get_number(pair->index, b + pair->at);
}

static void reference_pair(const pair_t *pair, int op, unsigned char *to, const unsigned char *const *src, int n)
{
    const unsigned char *best = src[0];

    for (int k = 1; k < n; k++)
        best = before(pair, op, src[k], best) ? src[k] : best;
    memset(to, 0, rondo_type_size(pair->type));
    memcpy(to, best, rondo_type_size(pair->value));
    memcpy(to + pair->at, best + pair->at, rondo_type_size(pair->index));
    if (isnan(get_number(pair->value, best)))
        put_real(pair->value, to, NAN);
}

static void reference(rondo_type_t type, int op, void *to, const unsigned char *const *src, int n)
{
    int narrow = type != RONDO_FLOAT64;
    uint64_t sum;
    double d;

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (pairs[i].type == type) {
            reference_pair(&pairs[i], op, to, src, n);
            return;
        }
    }
    if (n == 1) {
        memcpy(to, src[0], rondo_type_size(type));
    } else if (type == RONDO_COMPLEX64 || type == RONDO_COMPLEX128) {
        reference_complex(type == RONDO_COMPLEX64 ? RONDO_FLOAT32 : RONDO_FLOAT64, op, to, src, n);
    } else if (type == RONDO_FLOAT64 || type == RONDO_FLOAT32 || narrow_of(type)) {
        d = get_real(type, src[0]);
        for (int k = 1; k < n; k++)
            d = fold_real(op, d, get_real(type, src[k]), narrow);
        put_real(type, to, d);
    } else {
        sum = get_integer(type, src[0]);
        for (int k = 1; k < n; k++)
            sum = integer_op(type, op, sum, get_integer(type, src[k]));
        memcpy(to, &sum, rondo_type_size(type)); /* little-endian: the low bytes */
    }
}

/* ---- data ---- */

static int is_float(rondo_type_t type)
{
    return rd_op_valid(RONDO_SUM, type) && !rd_op_valid(RONDO_LAND, type);
}

static double any_real(int wild)
{
    static const double special[] = {0.0, -0.0, 1.0, -1.0, 65504, 448, 57344, 3e38, 6e-8, 1e-40, INFINITY};
    uint64_t r = rnd();

    if (wild && r % 16 == 0)
        return r & 64 ? NAN : r & 128 ? INFINITY : -INFINITY;
    if (r % 16 < 3)
        return special[(r >> 8) % (sizeof special / sizeof *special)];
    return ldexp((double)(int64_t)rnd() / 9.3e18, (int)(r >> 40 & 31) - 16);
}

static void fill(rondo_type_t type, unsigned char *p, int wild)
{
    size_t size = rondo_type_size(type);

    for (size_t i = 0; i < size; i++)
        p[i] = (unsigned char)rnd();
    if (type == RONDO_BOOL || (!is_float(type) && rnd() % 4 == 0))
        memset(p, 0, size), p[0] = rnd() & 1;
    if (type == RONDO_COMPLEX64 || type == RONDO_COMPLEX128) {
        put_real(type == RONDO_COMPLEX64 ? RONDO_FLOAT32 : RONDO_FLOAT64, p, any_real(wild));
        put_real(type == RONDO_COMPLEX64 ? RONDO_FLOAT32 : RONDO_FLOAT64, p + size / 2, any_real(wild));
    } else if (is_float(type)) {
        put_real(type, p, any_real(wild));
    }
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (pairs[i].type != type)
            continue;
        if (is_signed(pairs[i].value))
            memset(p, 0, rondo_type_size(pairs[i].value)), p[0] = rnd() & 3;
        else
            put_real(pairs[i].value, p, rnd() & 1 ? (double)(rnd() & 1) : any_real(wild));
        if (pairs[i].index != RONDO_INT32)
            put_real(pairs[i].index, p + pairs[i].at, (double)(int)(rnd() & 7));
    }
}

/* Which NaN a sum yields is not said; that it is the same one everywhere is: check_nans. */
static int same_real(rondo_type_t type, const unsigned char *a, const unsigned char *b)
{
    return memcmp(a, b, rondo_type_size(type)) == 0 || (isnan(get_real(type, a)) && isnan(get_real(type, b)));
}

static int same(rondo_type_t type, int op, const unsigned char *a, const unsigned char *b)
{
    size_t size = rondo_type_size(type);

    if (type == RONDO_COMPLEX64 || type == RONDO_COMPLEX128) {
        rondo_type_t part = type == RONDO_COMPLEX64 ? RONDO_FLOAT32 : RONDO_FLOAT64;
        return same_real(part, a, b) && same_real(part, a + size / 2, b + size / 2);
    }
    if (is_float(type) && op != RONDO_MIN && op != RONDO_MAX)
        return same_real(type, a, b);
    return memcmp(a, b, size) == 0;
}

/* ---- trials ---- */

static unsigned char source[MAX_SRC][ROOM], result[ROOM], expected[MAX_COUNT * MAX_SIZE];

static void complain(const char *what, rondo_type_t type, int op, int n, size_t count, int alias, int simd, size_t i,
                     const unsigned char *got)
{
    if (failures++ > 20)
        return;
    printf("%s: %s %s n %d count %zu alias %d simd %d element %zu: got", what, rd_type_name(type), rd_op_name(op), n,
           count, alias, simd, i);
    for (size_t j = 0; j < rondo_type_size(type); j++)
        printf(" %02x", got[j]);
    printf(" expected");
    for (size_t j = 0; j < rondo_type_size(type); j++)
        printf(" %02x", expected[i * rondo_type_size(type) + j]);
    printf("\n");
}

/* `alias`: the source that the result overwrites, or -1. */
static void trial(rondo_type_t type, int op, int n, size_t count, int alias, int simd)
{
    size_t size = rondo_type_size(type), bytes = count * size;
    static unsigned char saved[ROOM];
    unsigned char *dst = alias < 0 ? result + GUARD + n : source[alias] + GUARD + alias;
    const void *src[MAX_SRC];
    rd_reducer_t r;

    for (int k = 0; k < n; k++)
        src[k] = source[k] + GUARD + k;
    if (alias < 0)
        memset(result, 0x5a, sizeof result);
    memcpy(saved, dst - GUARD, bytes + 2 * GUARD - MAX_SRC);
    rd_reducer_init(&r, type, op, n, simd);
    if (r.type_size != size)
        complain("size", type, op, n, count, alias, simd, 0, dst);
    r.reduce(dst, src, n, count, r.arg);
    for (size_t i = 0; i < count; i++) {
        if (!same(type, op, dst + i * size, expected + i * size)) {
            complain("wrong", type, op, n, count, alias, simd, i, dst + i * size);
            break;
        }
    }
    if (memcmp(saved, dst - GUARD, GUARD) || memcmp(saved + GUARD + bytes, dst + bytes, GUARD - MAX_SRC))
        complain("outside", type, op, n, count, alias, simd, 0, dst);
    memcpy(dst - GUARD, saved, bytes + 2 * GUARD - MAX_SRC);
}

static void prepare(rondo_type_t type, int op, int n, size_t count, int wild)
{
    size_t size = rondo_type_size(type);

    for (int k = 0; k < n; k++)
        for (size_t i = 0; i < count; i++)
            fill(type, source[k] + GUARD + k + i * size, wild);
    for (size_t i = 0; i < count; i++) {
        const unsigned char *element[MAX_SRC];
        for (int k = 0; k < n; k++)
            element[k] = source[k] + GUARD + k + i * size;
        reference(type, op, expected + i * size, element, n);
    }
}

static void check_reduce(rondo_type_t type, int op)
{
    if (op == RONDO_AVG && narrow_of(type)) /* sums float32, as is_served has seen */
        return;
    for (int n = 1; n <= MAX_SRC; n++) {
        for (int round = 0; round < 8; round++) {
            size_t count = round < 4 ? (size_t)round : round < 7 ? rnd() % (round < 6 ? 40 : 300) : 2048 + rnd() % 250;
            prepare(type, op, n, count, round & 1);
            for (int simd = RD_SIMD_BEST; simd <= RD_SIMD_AVX512; simd++) {
                trial(type, op, n, count, -1, simd);
                trial(type, op, n, count, (int)(rnd() % (unsigned)n), simd);
            }
        }
    }
}

/* Every number of the 8- and 16-bit types through the load, which scales in float32 by fractions that round, and the
 * store, which rounds to the type; from an odd address, and to a length that ends inside a vector. */
static void check_scale(rondo_type_t type, int simd)
{
    static unsigned char room[65536 * 2 + 1], out[65536 * 2 + 1], want[2];
    static float wide[65536 + 1];
    unsigned char *in = room + 1;
    const narrow_t *f = narrow_of(type);
    size_t size = rondo_type_size(type), codes = size == 1 ? 256 : 65536;
    rd_reducer_t r;

    for (uint32_t i = 0; i < codes; i++)
        memcpy(in + i * size, &i, size);
    for (int ranks = 1; ranks < 8; ranks++) {
        volatile float fraction = 1.0f / (float)ranks;
        rd_reducer_init(&r, type, RONDO_AVG, ranks, simd);
        codes -= (size_t)ranks;
        wide[codes] = 7;
        memset(out, 7, sizeof out);
        r.load(wide, in, codes, r.arg);
        r.store(out, wide, codes);
        failures += wide[codes] != 7 || out[codes * size] != 7;
        for (uint32_t i = 0; i < codes; i++) {
            volatile float scaled = narrow_decode(f, i) * fraction;
            unsigned bits = narrow_encode(f, scaled);
            memcpy(want, &bits, size);
            if (wide[i] != scaled && !(isnan(wide[i]) && isnan(scaled)) && failures++ < 20)
                printf("load %s by 1/%d simd %d: code %x\n", rd_type_name(type), ranks, simd, i);
            if (!same_real(type, out + i * size, want) && failures++ < 20)
                printf("scale %s by 1/%d simd %d: code %x\n", rd_type_name(type), ranks, simd, i);
        }
        codes += (size_t)ranks;
    }
}

/* What is between two numbers of the type, and beyond the largest, is rounded once. */
static void check_store(rondo_type_t type, int simd)
{
    enum { N = 20011 };
    static unsigned char out[N * 2], want[2];
    static float wide[N];
    const narrow_t *f = narrow_of(type);
    size_t size = rondo_type_size(type);
    rd_reducer_t r;

    for (size_t i = 0; i < N; i++)
        wide[i] = (float)any_real(1);
    rd_reducer_init(&r, type, RONDO_AVG, 3, simd);
    r.store(out, wide, N);
    for (size_t i = 0; i < N; i++) {
        unsigned bits = narrow_encode(f, wide[i]);
        memcpy(want, &bits, size);
        if (!same_real(type, out + i * size, want) && failures++ < 20)
            printf("store %s simd %d: %a\n", rd_type_name(type), simd, (double)wide[i]);
    }
}

/* AVG and PREMULSUM of the wider types, in place, one length that ends inside a vector. */
static void check_avg_wide(int simd)
{
    rd_reducer_t r;
    float f[77];
    double d[77];
    int32_t i32[77];
    int8_t i8[77];
    uint64_t u64[77], by = 0x123456789abcdef1;

    for (int i = 0; i < 77; i++) {
        f[i] = (float)(i * 1.7), d[i] = i * 1.7, i32[i] = (i - 38) * 12345677, i8[i] = (int8_t)(i - 38);
        u64[i] = rnd();
    }
    rd_reducer_init(&r, RONDO_FLOAT32, RONDO_AVG, 3, simd);
    r.load(f, f, 77, r.arg);
    failures += r.finish != NULL;
    rd_reducer_init(&r, RONDO_FLOAT64, RONDO_AVG, 3, simd);
    r.load(d, d, 77, r.arg);
    rd_reducer_init(&r, RONDO_INT32, RONDO_AVG, 7, simd);
    failures += r.load != NULL;
    r.finish(i32, 77, r.arg);
    rd_reducer_init(&r, RONDO_INT8, RONDO_AVG, 1000, simd); /* more ranks than the type can count */
    r.finish(i8, 77, r.arg);
    rd_reducer_init_premulsum(&r, RONDO_UINT64, &by, simd);
    uint64_t first = u64[5], last = u64[76];
    r.load(u64, u64, 77, r.arg);
    failures += u64[5] != first * by || u64[76] != last * by;
    for (int i = 0; i < 77; i++) {
        volatile float x = (float)(i * 1.7), third = 1.0f / 3;
        volatile double y = i * 1.7;
        failures += f[i] != x * third || d[i] != y * (1.0 / 3) || i32[i] != (i - 38) * 12345677 / 7 || i8[i] != 0;
    }
}

/* NaNs of all signs and payloads: ranks whose buffers lie otherwise, or that have another CPU, get the same bits. */
static void check_nans(rondo_type_t type, rondo_op_t op)
{
    enum { COUNT = 700, ALIKE = 3, OFFSETS = 64 };
    size_t size = rondo_type_size(type), bytes = COUNT * size;
    static _Alignas(64) unsigned char room[COUNT * MAX_SIZE + OFFSETS];
    const void *src[ALIKE];
    rd_reducer_t r;

    if (!is_float(type) && type != RONDO_COMPLEX64 && type != RONDO_COMPLEX128)
        return;
    for (int k = 0; k < ALIKE; k++) {
        src[k] = source[k];
        for (size_t i = 0; i < bytes; i++)
            source[k][i] = (unsigned char)(rnd() | 0x7f); /* about half of the numbers are NaNs */
    }
    for (int n = 2; n <= ALIKE; n++) {
        rd_reducer_init(&r, type, op, n, RD_SIMD_PLAIN);
        r.reduce(expected, src, n, COUNT, r.arg);
        for (int simd = RD_SIMD_PLAIN; simd <= RD_SIMD_AVX512; simd++)
            for (size_t at = 0; at < OFFSETS; at += size) {
                rd_reducer_init(&r, type, op, n, simd);
                r.reduce(room + at, src, n, COUNT, r.arg);
                for (size_t i = 0; i < bytes; i += size)
                    if (memcmp(room + at + i, expected + i, size) != 0) {
                        complain("another NaN", type, (int)op, n, COUNT, -1, simd, i / size, room + at + i);
                        break;
                    }
            }
    }
}

static void check_premul(int simd)
{
    rd_reducer_t r;
    uint16_t half = 0x3800, h[3] = {0x3c00, 0xc000, 0x0001}; /* 0.5; 1, -2, the smallest subnormal */
    float f[3] = {1, -2, 5}, factor = -3, w[3];
    float c[4] = {1, 2, 3, -4}, by[2] = {0, 1};
    unsigned char b[3] = {0, 1, 7}, yes = 1;

    rd_reducer_init_premulsum(&r, RONDO_FLOAT16, &half, simd);
    r.load(w, h, 3, r.arg);
    failures += w[0] != 0.5f || w[1] != -1 || w[2] != 0x1p-25f;
    r.store(h, w, 3);
    failures += h[0] != 0x3800 || h[1] != 0xbc00 || h[2] != 0; /* half of it is a tie: to even */
    rd_reducer_init_premulsum(&r, RONDO_FLOAT32, &factor, simd);
    r.load(f, f, 3, r.arg);
    failures += f[0] != -3 || f[1] != 6 || f[2] != -15;
    rd_reducer_init_premulsum(&r, RONDO_COMPLEX64, by, simd);
    r.load(c, c, 2, r.arg);
    failures += c[0] != -2 || c[1] != 1 || c[2] != 4 || c[3] != 3;
    rd_reducer_init_premulsum(&r, RONDO_BOOL, &yes, simd);
    r.load(b, b, 3, r.arg);
    failures += b[0] != 0 || b[1] != 1 || b[2] != 1;
    for (int t = 0; t < RONDO_NUM_TYPES; t++) {
        unsigned char scalar[16] = {1};
        if (!rd_op_valid(RONDO_SUM, (rondo_type_t)t))
            continue;
        rd_reducer_init_premulsum(&r, (rondo_type_t)t, scalar, simd);
        failures += r.load == NULL || r.finish != NULL || r.type_size != rondo_type_size((rondo_type_t)t);
    }
}

/* Returns true if every instruction set has all that this type and operator need. */
static bool is_served(rondo_type_t type, rondo_op_t op)
{
    for (int simd = RD_SIMD_PLAIN; simd <= RD_SIMD_AVX512; simd++) {
        rd_reducer_t r, sum;

        rd_reducer_init(&r, type, op, 2, simd);
        if (!r.reduce || (op == RONDO_AVG && !r.load && !r.finish)) {
            printf("FAILED: lib/exec/host has no %s of %s, though base/types.c allows it\n", rd_op_name(op),
                   rd_type_name(type));
            failures++;
            return false;
        }
        if ((r.store != NULL) != (op == RONDO_AVG && narrow_of(type)))
            complain("store", type, (int)op, 2, 0, -1, simd, 0, expected);
        rd_reducer_init(&sum, RONDO_FLOAT32, RONDO_SUM, 2, simd);
        if (r.store && r.reduce != sum.reduce)
            complain("no sum of float32", type, (int)op, 2, 0, -1, simd, 0, expected);
    }
    return true;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20240917;

    alarm(100);
    state = seed * 2 + 1;
    printf("seed %llu, best here: %s\n", (unsigned long long)seed, rd_reduce_simd_name());
    for (int t = 0; t < RONDO_NUM_TYPES; t++)
        for (int op = 0; op < RONDO_NUM_OPS; op++)
            if (rd_op_valid(op, (rondo_type_t)t) && is_served((rondo_type_t)t, op))
                check_reduce((rondo_type_t)t, op);
    for (int t = 0; t < RONDO_NUM_TYPES; t++)
        for (rondo_op_t op = RONDO_SUM; op <= RONDO_MAX; op++)
            if (rd_op_valid(op, (rondo_type_t)t))
                check_nans((rondo_type_t)t, op);
    for (int simd = RD_SIMD_PLAIN; simd <= RD_SIMD_AVX512; simd++) {
        check_scale(RONDO_FLOAT16, simd);
        check_store(RONDO_FLOAT16, simd);
        check_scale(RONDO_BFLOAT16, simd);
        check_store(RONDO_BFLOAT16, simd);
        check_scale(RONDO_FLOAT8_E4M3, simd);
        check_store(RONDO_FLOAT8_E4M3, simd);
        check_scale(RONDO_FLOAT8_E5M2, simd);
        check_store(RONDO_FLOAT8_E5M2, simd);
        check_avg_wide(simd);
        check_premul(simd);
    }
    if (failures)
        printf("%d failures\n", failures);
    return failures != 0;
}
