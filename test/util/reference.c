/* See reference.h. Elements are taken apart into one of two wide forms, a 64-bit integer or a pair of long doubles,
 * combined there, and compared in the element's own type. */
#include "util/reference.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/harness.h"
#include "util/integer_op.h"

#define BLOCK 128

typedef enum { INTEGER, REAL, COMPLEX, PAIR } family_t;

/* `exponent` and `mantissa` bits of a floating member; `bits` of an integer one. `second` is where the second member
 * (imaginary part, index) begins. */
typedef struct {
    const char *name;
    family_t family;
    int size, bits, is_signed, exponent, mantissa, second;
} type_info_t;

static const type_info_t types[] = {
    [RONDO_INT8] = {"int8", INTEGER, 1, 8, 1, 0, 0, 0},
    [RONDO_UINT8] = {"uint8", INTEGER, 1, 8, 0, 0, 0, 0},
    [RONDO_INT16] = {"int16", INTEGER, 2, 16, 1, 0, 0, 0},
    [RONDO_UINT16] = {"uint16", INTEGER, 2, 16, 0, 0, 0, 0},
    [RONDO_INT32] = {"int32", INTEGER, 4, 32, 1, 0, 0, 0},
    [RONDO_UINT32] = {"uint32", INTEGER, 4, 32, 0, 0, 0, 0},
    [RONDO_INT64] = {"int64", INTEGER, 8, 64, 1, 0, 0, 0},
    [RONDO_UINT64] = {"uint64", INTEGER, 8, 64, 0, 0, 0, 0},
    [RONDO_FLOAT16] = {"float16", REAL, 2, 16, 1, 5, 10, 0},
    [RONDO_BFLOAT16] = {"bfloat16", REAL, 2, 16, 1, 8, 7, 0},
    [RONDO_FLOAT32] = {"float32", REAL, 4, 32, 1, 8, 23, 0},
    [RONDO_FLOAT64] = {"float64", REAL, 8, 64, 1, 11, 52, 0},
    [RONDO_FLOAT8_E4M3] = {"float8_e4m3", REAL, 1, 8, 1, 4, 3, 0},
    [RONDO_FLOAT8_E5M2] = {"float8_e5m2", REAL, 1, 8, 1, 5, 2, 0},
    [RONDO_COMPLEX64] = {"complex64", COMPLEX, 8, 32, 1, 8, 23, 4},
    [RONDO_COMPLEX128] = {"complex128", COMPLEX, 16, 64, 1, 11, 52, 8},
    [RONDO_BOOL] = {"bool", INTEGER, 1, 8, 0, 0, 0, 0},
    [RONDO_FLOAT32_INT32] = {"float32_int32", PAIR, 8, 32, 1, 8, 23, 4},
    [RONDO_FLOAT64_INT32] = {"float64_int32", PAIR, 16, 64, 1, 11, 52, 8},
    [RONDO_INT32_INT32] = {"int32_int32", PAIR, 8, 32, 1, 0, 0, 4},
    [RONDO_INT64_INT32] = {"int64_int32", PAIR, 16, 64, 1, 0, 0, 8},
    [RONDO_FLOAT32_FLOAT32] = {"float32_float32", PAIR, 8, 32, 1, 8, 23, 4},
    [RONDO_FLOAT64_FLOAT64] = {"float64_float64", PAIR, 16, 64, 1, 11, 52, 8},
};
_Static_assert(sizeof types / sizeof types[0] == RONDO_NUM_TYPES, "a row for each type");

static const char *const op_names[RONDO_NUM_OPS] = {"sum",  "prod", "min", "max",  "avg",    "band",  "bor",
                                                    "bxor", "land", "lor", "lxor", "minloc", "maxloc"};

size_t ref_size(rondo_type_t type)
{
    return (size_t)types[type].size;
}

const char *ref_type_name(rondo_type_t type)
{
    return types[type].name;
}

const char *ref_op_name(rondo_op_t op)
{
    return op >= 0 && op < RONDO_NUM_OPS ? op_names[op] : "made";
}

int ref_is_float(rondo_type_t type)
{
    return types[type].family == REAL || types[type].family == COMPLEX;
}

int ref_valid(rondo_type_t type, rondo_op_t op)
{
    int arithmetic = op == RONDO_SUM || op == RONDO_PROD, loc = op == RONDO_MINLOC || op == RONDO_MAXLOC;
    int logical = op == RONDO_LAND || op == RONDO_LOR || op == RONDO_LXOR;

    if (types[type].family == PAIR)
        return loc;
    if (types[type].family == COMPLEX)
        return arithmetic || op == RONDO_AVG;
    if (types[type].family == REAL)
        return arithmetic || op == RONDO_AVG || op == RONDO_MIN || op == RONDO_MAX;
    if (type == RONDO_BOOL)
        return arithmetic || logical || op == RONDO_BAND || op == RONDO_BOR || op == RONDO_BXOR;
    return !loc;
}

/* ---- floating members, by exponent and mantissa bits ---- */

static uint64_t load_bits(const void *src, int bytes)
{
    uint64_t bits = 0;

    memcpy(&bits, src, (size_t)bytes); /* little-endian, as everything that rondo runs on */
    return bits;
}

/* value * 2^power. Both the factor and what it makes are far from a double's subnormal numbers, so this is exact. */
static double scaled_by(double value, int power)
{
    uint64_t bits = (uint64_t)(power + 1023) << 52;
    double factor;

    memcpy(&factor, &bits, sizeof factor);
    return value * factor;
}

static double decode_real(const type_info_t *y, uint64_t bits)
{
    int bias = (1 << (y->exponent - 1)) - 1;
    uint64_t mantissa = bits & ((1ull << y->mantissa) - 1);
    int exponent = (int)(bits >> y->mantissa & ((1ull << y->exponent) - 1)), top = (1 << y->exponent) - 1;
    double sign = bits >> (y->bits - 1) & 1 ? -1.0 : 1.0, value;

    /* E4M3 has no infinity: all ones is NaN, the rest of the top exponent are numbers. */
    if (exponent == top && y->exponent == 4 && y->mantissa == 3) {
        if (mantissa == 7)
            return NAN;
    } else if (exponent == top) {
        return mantissa ? NAN : sign * INFINITY;
    }
    if (y->bits == 64) {
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (exponent == 0)
        return sign * scaled_by((double)mantissa, 1 - bias - y->mantissa);
    return sign * scaled_by((double)(mantissa | 1ull << y->mantissa), exponent - bias - y->mantissa);
}

/* To nearest, ties to even; only for finite values within the type's range. */
static uint64_t encode_real(const type_info_t *y, double value)
{
    int bias = (1 << (y->exponent - 1)) - 1, exponent;
    uint64_t sign = signbit(value) ? 1ull << (y->bits - 1) : 0, whole, bits;
    volatile double shifted; /* in memory, for an x87's registers have a longer fraction */

    memcpy(&bits, &value, sizeof bits);
    if (y->bits == 64)
        return bits;
    bits &= ~(1ull << 63);
    if (bits == 0)
        return sign;
    exponent = (int)(bits >> 52) - 1023;
    if (exponent < 1 - bias)
        exponent = 1 - bias;
    /* What comes of it is below 2^25; beside 2^52 it has no fraction any more. */
    shifted = scaled_by(fabs(value), y->mantissa - exponent) + 0x1p52;
    whole = (uint64_t)(shifted - 0x1p52);
    if (whole == 2ull << y->mantissa) {
        whole >>= 1;
        exponent++;
    }
    if (whole < 1ull << y->mantissa)
        return sign | whole; /* subnormal */
    return sign | (uint64_t)(exponent + bias) << y->mantissa | (whole & ((1ull << y->mantissa) - 1));
}

static uint64_t nan_bits(const type_info_t *y)
{
    return (1ull << (y->exponent + y->mantissa)) - 1;
}

static void store_real(const type_info_t *y, double value, void *dst)
{
    uint64_t bits = encode_real(y, value);

    memcpy(dst, &bits, (size_t)y->bits / 8);
}

/* ---- input ---- */

static uint64_t element_random(const ref_input_t *in, int rank, size_t element)
{
    return test_mix(in->seed * 0x100000001b3u + element * 31 + (uint64_t)rank * 0x9e3779b1u);
}

/* How large whole numbers may be so that the sum of all ranks', and every part of it, is exact; 0: the type cannot
 * even hold the number of ranks. */
static int whole_limit(const ref_input_t *in, const type_info_t *y)
{
    int limit = 1 << (y->mantissa + 1 < 20 ? y->mantissa + 1 : 20);

    return limit / (in->nranks > 8 ? in->nranks : 8);
}

static double whole(const ref_input_t *in, const type_info_t *y, int rank, uint64_t random, uint64_t common)
{
    unsigned limit = (unsigned)whole_limit(in, y), n = (unsigned)in->nranks;

    if (limit == 0 && ((unsigned)rank + common % n) % n >= 1u << (y->mantissa + 1))
        return 0;
    limit = limit ? limit : 1;
    return (double)((int)(random % (2 * limit + 1)) - (int)limit);
}

static double exact_real(const ref_input_t *in, const type_info_t *y, int rank, size_t element, uint64_t random)
{
    static const double factor[4] = {2, 0.5, -3, -2};
    uint64_t common = test_mix(in->seed ^ element);

    switch (in->op) {
    case RONDO_PROD: /* one rank brings a factor, the others only signs */
        if ((uint64_t)rank == common % (uint64_t)in->nranks)
            return factor[random & 3];
        return random & 1 ? 1 : -1;
    case RONDO_AVG: /* whole multiples of n: exact where n is a power of two */
        return whole(in, y, rank, random, common) * in->nranks;
    default:
        return whole(in, y, rank, random, common);
    }
}

static double rounding_real(const ref_input_t *in, uint64_t random)
{
    double unit = (double)(random >> 11) * 0x1p-53, size;

    size = in->op == RONDO_PROD ? 0.6 + unit : ldexp(1 + unit, (int)(random & 3) - 2);
    return random & 4 ? -size : size;
}

static uint64_t special_bits(const type_info_t *y, uint64_t random)
{
    uint64_t sign = random & 1 ? 1ull << (y->bits - 1) : 0;
    int has_infinity = !(y->exponent == 4 && y->mantissa == 3);

    switch (random >> 8 & 63) {
    case 0:
        return sign | nan_bits(y);
    case 1:
        return has_infinity ? sign | ((1ull << y->exponent) - 1) << y->mantissa : sign;
    case 2:
    case 3:
        return sign;
    case 4:
        return sign | 1; /* the smallest subnormal */
    default:
        return encode_real(y, (double)((int)(random >> 16 & 15) - 8));
    }
}

static uint64_t real_input(const ref_input_t *in, const type_info_t *y, int rank, size_t element, uint64_t random)
{
    if (in->data == REF_SPECIAL)
        return special_bits(y, random);
    if (in->data == REF_ROUNDING)
        return encode_real(y, rounding_real(in, random));
    return encode_real(y, exact_real(in, y, rank, element, random));
}

static int index_is_real(rondo_type_t type)
{
    return type == RONDO_FLOAT32_FLOAT32 || type == RONDO_FLOAT64_FLOAT64;
}

static void fill_pair(const ref_input_t *in, const type_info_t *y, int rank, uint64_t random, char *dst)
{
    int value = (int)(random % 7) - 3; /* few values, so that ties are common */
    int32_t index = (int32_t)((unsigned)(random >> 20) % 100 + (unsigned)rank);
    int64_t wide = value;

    memset(dst, 0, (size_t)y->size);
    if (y->exponent)
        store_real(y, value * 0.5, dst);
    else
        memcpy(dst, &wide, (size_t)y->bits / 8);
    if (index_is_real(in->type))
        store_real(y, index, dst + y->second);
    else
        memcpy(dst + y->second, &index, sizeof index);
}

static void fill_bytes(const ref_input_t *in, int rank, size_t first, size_t bytes, char *dst)
{
    size_t i = 0;

    while (i < bytes) {
        size_t at = first + i, word = at / 8, skip = at % 8, take = 8 - skip < bytes - i ? 8 - skip : bytes - i;
        uint64_t random = element_random(in, rank, word);

        if (in->type == RONDO_BOOL)
            random &= 0x0101010101010101u;
        memcpy(dst + i, (char *)&random + skip, take);
        i += take;
    }
}

void ref_fill(const ref_input_t *in, int rank, size_t first, size_t count, void *dst)
{
    const type_info_t *y = &types[in->type];
    char *at = dst;
    size_t i;

    if (in->data == REF_BYTES) {
        fill_bytes(in, rank, first * (size_t)y->size, count * (size_t)y->size, dst);
        return;
    }
    for (i = 0; i < count; i++, at += y->size) {
        uint64_t random = element_random(in, rank, first + i), bits;

        switch (y->family) {
        case INTEGER:
            bits = in->type == RONDO_BOOL ? random & 1 : random;
            if (in->op == RONDO_LAND || in->op == RONDO_LOR || in->op == RONDO_LXOR) /* zeros must be common */
                bits = random >> 60 & 1 ? bits : 0;
            memcpy(at, &bits, (size_t)y->size);
            break;
        case REAL:
            bits = real_input(in, y, rank, first + i, random);
            memcpy(at, &bits, (size_t)y->size);
            break;
        case COMPLEX:
            bits = real_input(in, y, rank, first + i, random);
            memcpy(at, &bits, (size_t)y->bits / 8);
            /* A product stays exact when one part of each factor is zero. */
            bits = in->op == RONDO_PROD && in->data == REF_EXACT ? 0
                                                                 : real_input(in, y, rank, first + i, test_mix(random));
            memcpy(at + y->second, &bits, (size_t)y->bits / 8);
            break;
        case PAIR:
            fill_pair(in, y, rank, random, at);
            break;
        }
    }
}

/* ---- integers ---- */

static uint64_t wrap(const type_info_t *y, uint64_t value)
{
    int shift = 64 - y->bits;

    return y->is_signed ? (uint64_t)((int64_t)(value << shift) >> shift) : value << shift >> shift;
}

static long long check_integers(const ref_input_t *in, size_t first, size_t count, const char *got, char *text,
                                size_t size)
{
    const type_info_t *y = &types[in->type];
    int logical = in->op == RONDO_LAND || in->op == RONDO_LOR || in->op == RONDO_LXOR, r;
    uint64_t sum[BLOCK], is;
    char data[BLOCK * 8];
    size_t i;

    for (r = 0; r < in->nranks; r++) {
        ref_fill(in, r, first, count, data);
        for (i = 0; i < count; i++) {
            uint64_t value = wrap(y, load_bits(data + i * (size_t)y->size, y->size));

            if (r == 0)
                sum[i] = logical && in->nranks > 1 ? value != 0 : value;
            else
                sum[i] = wrap(y, integer_op(in->type, in->op, sum[i], value));
        }
    }
    for (i = 0; i < count; i++) {
        if (in->op == RONDO_AVG)
            sum[i] = y->is_signed ? (uint64_t)((int64_t)sum[i] / in->nranks) : sum[i] / (unsigned)in->nranks;
        is = wrap(y, load_bits(got + i * (size_t)y->size, y->size));
        /* One rank alone: whether its own nonzero value is made 1 is not laid down. */
        if (is == sum[i] || (logical && in->nranks == 1 && is == (sum[i] != 0)))
            continue;
        snprintf(text, size, "is %lld, should be %lld", (long long)is, (long long)sum[i]);
        return (long long)i;
    }
    return -1;
}

/* ---- floating point ---- */

typedef struct {
    long double re, im, size; /* size: what the bound is relative to */
} wide_t;

static void combine_wide(rondo_op_t op, wide_t *a, const wide_t *b)
{
    long double re;

    switch (op) {
    case RONDO_SUM:
    case RONDO_AVG:
        a->re += b->re;
        a->im += b->im;
        a->size += b->size;
        break;
    case RONDO_PROD:
        re = a->re * b->re - a->im * b->im;
        a->im = a->re * b->im + a->im * b->re;
        a->re = re;
        a->size *= b->size;
        break;
    case RONDO_MIN:
        a->re = isnan(a->re) || isnan(b->re) ? (long double)NAN : b->re < a->re ? b->re : a->re;
        break;
    default:
        a->re = isnan(a->re) || isnan(b->re) ? (long double)NAN : b->re > a->re ? b->re : a->re;
        break;
    }
}

static wide_t load_wide(const type_info_t *y, const char *src)
{
    wide_t w = {decode_real(y, load_bits(src, y->bits / 8)), 0, 0};

    if (y->family == COMPLEX)
        w.im = decode_real(y, load_bits(src + y->second, y->bits / 8));
    w.size = fabsl(w.re) + fabsl(w.im);
    return w;
}

static int near(long double is, long double should, long double bound)
{
    if (isnan(should))
        return isnan(is);
    return is == should || fabsl(is - should) <= bound;
}

/* Every step rounds at most once more than the number of its operands; half a unit each. */
static long double error_bound(const ref_input_t *in, const type_info_t *y, const wide_t *should)
{
    long double unit = ldexpl(1, -y->mantissa), least = ldexpl(1, 2 - (1 << (y->exponent - 1)) - y->mantissa);
    int power_of_two = (in->nranks & (in->nranks - 1)) == 0;

    if (in->op == RONDO_MIN || in->op == RONDO_MAX || (in->data == REF_EXACT && in->op != RONDO_AVG))
        return 0;
    if (in->data == REF_EXACT && power_of_two)
        return 0;
    return (in->nranks + 1) * (unit * should->size + least) * (y->family == COMPLEX ? 2 : 1);
}

static long long check_reals(const ref_input_t *in, size_t first, size_t count, const char *got, char *text,
                             size_t size)
{
    const type_info_t *y = &types[in->type];
    char data[BLOCK * 16];
    wide_t sum[BLOCK], value, is;
    size_t i;
    int r;

    for (r = 0; r < in->nranks; r++) {
        ref_fill(in, r, first, count, data);
        for (i = 0; i < count; i++) {
            value = load_wide(y, data + i * (size_t)y->size);
            if (r == 0)
                sum[i] = value;
            else
                combine_wide(in->op, &sum[i], &value);
        }
    }
    for (i = 0; i < count; i++) {
        long double bound;

        if (in->op == RONDO_AVG)
            sum[i] = (wide_t){sum[i].re / in->nranks, sum[i].im / in->nranks, sum[i].size / in->nranks};
        bound = error_bound(in, y, &sum[i]);
        is = load_wide(y, got + i * (size_t)y->size);
        if (near(is.re, sum[i].re, bound) && near(is.im, sum[i].im, bound))
            continue;
        snprintf(text, size, "is %.17Lg %+.17Lgi, should be %.17Lg %+.17Lgi within %.3Lg", is.re, is.im, sum[i].re,
                 sum[i].im, bound);
        return (long long)i;
    }
    return -1;
}

/* ---- pairs ---- */

static void load_pair(const ref_input_t *in, const char *src, double *value, double *index)
{
    const type_info_t *y = &types[in->type];
    uint64_t first = load_bits(src, y->bits / 8);

    *value = y->exponent ? decode_real(y, first) : (double)(int64_t)wrap(y, first);
    *index = index_is_real(in->type) ? decode_real(y, load_bits(src + y->second, y->bits / 8))
                                     : (double)(int32_t)load_bits(src + y->second, 4);
}

static long long check_pairs(const ref_input_t *in, size_t first, size_t count, const char *got, char *text,
                             size_t size)
{
    size_t each = ref_size(in->type), i;
    double best[BLOCK], where[BLOCK], value, index;
    char data[BLOCK * 16];
    int r;

    for (r = 0; r < in->nranks; r++) {
        ref_fill(in, r, first, count, data);
        for (i = 0; i < count; i++) {
            load_pair(in, data + i * each, &value, &index);
            if (r == 0 || (in->op == RONDO_MINLOC ? value < best[i] : value > best[i])) {
                best[i] = value;
                where[i] = index;
            } else if (value == best[i] && index < where[i]) {
                where[i] = index;
            }
        }
    }
    for (i = 0; i < count; i++) {
        load_pair(in, got + i * each, &value, &index);
        if (value == best[i] && index == where[i])
            continue;
        snprintf(text, size, "is {%g, %g}, should be {%g, %g}", value, index, best[i], where[i]);
        return (long long)i;
    }
    return -1;
}

long long ref_check(const ref_input_t *in, size_t first, size_t count, const void *got, char *text, size_t size)
{
    size_t done, each = ref_size(in->type);

    for (done = 0; done < count; done += BLOCK) {
        size_t part = count - done < BLOCK ? count - done : BLOCK;
        const char *at = (const char *)got + done * each;
        long long wrong;

        switch (types[in->type].family) {
        case INTEGER:
            wrong = check_integers(in, first + done, part, at, text, size);
            break;
        case PAIR:
            wrong = check_pairs(in, first + done, part, at, text, size);
            break;
        default:
            wrong = check_reals(in, first + done, part, at, text, size);
            break;
        }
        if (wrong >= 0)
            return (long long)done + wrong;
    }
    return -1;
}

static uint64_t hash_bytes(uint64_t hash, const char *data, size_t bytes)
{
    uint64_t word;

    for (; bytes >= 8; bytes -= 8, data += 8) {
        memcpy(&word, data, 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 29;
    }
    word = bytes;
    memcpy(&word, data, bytes);
    return test_mix(hash ^ word ^ (uint64_t)bytes << 56);
}

uint64_t ref_hash(rondo_type_t type, const void *data, size_t count)
{
    const type_info_t *y = &types[type];
    int used = y->second + (index_is_real(type) ? y->bits / 8 : 4);
    uint64_t hash = count;
    size_t i;

    if (y->family != PAIR || used == y->size)
        return hash_bytes(hash, data, count * (size_t)y->size);
    for (i = 0; i < count; i++)
        hash = hash_bytes(hash, (const char *)data + i * (size_t)y->size, (size_t)used);
    return hash;
}
