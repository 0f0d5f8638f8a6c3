/* The narrow floating types and their hard values: see narrow.h. */
#include "util/narrow.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

/* ---- the types ---- */

const narrow_t *narrow_of(rondo_type_t type)
{
    static const narrow_t f16 = {5, 10, 0x7bff, 0x7c00, 0x7e00, 0};
    static const narrow_t bf16 = {8, 7, 0x7f7f, 0x7f80, 0x7fc0, 0};
    static const narrow_t e4m3 = {4, 3, 0x7e, 0x7e, 0x7f, 1};
    static const narrow_t e5m2 = {5, 2, 0x7b, 0x7c, 0x7e, 1};

    switch (type) {
    case RONDO_FLOAT16:
        return &f16;
    case RONDO_BFLOAT16:
        return &bf16;
    case RONDO_FLOAT8_E4M3:
        return &e4m3;
    case RONDO_FLOAT8_E5M2:
        return &e5m2;
    default:
        return NULL;
    }
}

static double decode_magnitude(const narrow_t *f, unsigned bits)
{
    int bias = (1 << (f->exponent - 1)) - 1, e = (int)(bits >> f->mantissa);
    unsigned m = bits & ((1u << f->mantissa) - 1);

    if (e == 0)
        return ldexp(m, 1 - bias - f->mantissa);
    return ldexp(m + (1u << f->mantissa), e - bias - f->mantissa);
}

double narrow_decode(const narrow_t *f, unsigned bits)
{
    unsigned sign = bits >> (f->exponent + f->mantissa), magnitude = bits & ((1u << (f->exponent + f->mantissa)) - 1);
    double d = decode_magnitude(f, magnitude);

    if (magnitude > f->largest)
        d = magnitude == f->infinity ? (double)INFINITY : (double)NAN;
    return sign ? -d : d;
}

/* By bisection over the magnitudes, which are in the order of their bits. */
unsigned narrow_encode(const narrow_t *f, double x)
{
    unsigned sign = signbit(x) ? 1u << (f->exponent + f->mantissa) : 0, low = 0, high = f->largest + 1;
    double a = fabs(x), below, above;

    if (isnan(x))
        return f->nan;
    if (isinf(x))
        return sign | f->infinity;
    while (high - low > 1) { /* number(low) <= a < number(high), the latter one step beyond the largest */
        unsigned mid = (low + high) / 2;
        if (decode_magnitude(f, mid) <= a)
            low = mid;
        else
            high = mid;
    }
    below = a - decode_magnitude(f, low);
    above = decode_magnitude(f, low + 1) - a;
    if (above < below || (above == below && (low & 1)))
        low++;
    if (low > f->largest)
        low = f->saturates ? f->largest : f->infinity;
    return sign | low;
}

/* ---- hard values ---- */

const char *hard_name(hard_op_t op)
{
    static const char *const name[] = {"sum", "prod", "min", "max", "avg", "premulsum by 1/n", "premulsum by its own"};

    return name[op];
}

static unsigned negative(const narrow_t *f, unsigned bits)
{
    return bits | 1u << (f->exponent + f->mantissa);
}

/* Any finite number, of any size. */
static unsigned drawn(const narrow_t *f, int column, int rank)
{
    uint64_t r = ((uint64_t)column * 1000 + (uint64_t)rank + 1) * 0x9e3779b97f4a7c15;

    r = (r ^ r >> 31) * 0xbf58476d1ce4e5b9;
    r ^= r >> 29;
    unsigned bits = (unsigned)(r >> 8) % (f->largest + 1);
    return r & 1 ? negative(f, bits) : bits;
}

unsigned hard_value(const narrow_t *f, int column, int rank, int nranks)
{
    unsigned largest = f->largest, least = 1, normal = 1u << f->mantissa, one = narrow_encode(f, 1);
    int last = rank == nranks - 1;

    switch (column) {
    case 0:
        return largest;
    case 1:
        return negative(f, largest);
    case 2:
        return least;
    case 3:
        return negative(f, least);
    case 4: /* they cancel */
        return rank % 2 ? negative(f, largest) : largest;
    case 5:
        return rank == 0 ? largest : least;
    case 6:
        return rank == 0 ? least : 0;
    case 7:
        return negative(f, 0);
    case 8:
        return one + (unsigned)rank % 4;
    case 9:
        return last ? f->nan : one;
    case 10: /* float8_e4m3 has no infinity: its largest number */
        return rank == 0 ? f->infinity : largest;
    case 11:
        return rank == 0 ? f->infinity : last ? negative(f, f->infinity) : one;
    case 12:
        return normal;
    case 13:
        return last ? negative(f, largest) : largest;
    case 14:
        return least + 2 * (unsigned)rank;
    case 15:
        return normal - 1;
    case 16:
        return largest - (unsigned)rank % 3;
    case 17:
        return rank % 2 ? negative(f, 0) : 0;
    default:
        return drawn(f, column, rank);
    }
}

unsigned hard_scalar(const narrow_t *f, hard_op_t op, int rank, int nranks)
{
    if (op == HARD_PREMUL_MEAN)
        return narrow_encode(f, 1.0 / nranks);
    return narrow_encode(f, rank % 3 == 0 ? 0.375 : rank % 3 == 1 ? -0.25 : 0.4375);
}

static double scaled(const narrow_t *f, hard_op_t op, int column, int rank, int nranks)
{
    double x = narrow_decode(f, hard_value(f, column, rank, nranks));

    if (op == HARD_AVG)
        return x / nranks;
    return op >= HARD_PREMUL_MEAN ? x * narrow_decode(f, hard_scalar(f, op, rank, nranks)) : x;
}

/* Which NaN it is is not said. */
static int is_between(const narrow_t *f, unsigned got, double low, double high)
{
    double is = narrow_decode(f, got);

    if (isnan(low) || isnan(high))
        return isnan(is);
    return is >= narrow_decode(f, narrow_encode(f, low)) && is <= narrow_decode(f, narrow_encode(f, high));
}

/* The error of float32: a rounding at each scaling and each sum. */
static int right_scaled(const narrow_t *f, hard_op_t op, int column, int nranks, unsigned got)
{
    double sum = 0, size = 0, error;

    for (int r = 0; r < nranks; r++) {
        sum += scaled(f, op, column, r, nranks);
        size += fabs(scaled(f, op, column, r, nranks));
    }
    if (isfinite(size) && size > FLT_MAX) /* of bfloat16, by scalars whose sum is above 1 */
        return 1;
    error = isfinite(size) ? (nranks + 2) * (ldexp(size, -24) + ldexp(1, -150)) : 0;
    return is_between(f, got, sum - error, sum + error);
}

/* The error of the type: half a unit of the last place of the largest partial sum, for each sum. */
static int right_sum(const narrow_t *f, int column, int nranks, unsigned got)
{
    double sum = 0, size = 0, error, largest = narrow_decode(f, f->largest);

    for (int r = 0; r < nranks; r++) {
        sum += scaled(f, HARD_SUM, column, r, nranks);
        size += fabs(scaled(f, HARD_SUM, column, r, nranks));
    }
    if (!isfinite(size))
        return is_between(f, got, sum, sum);
    if (size > largest && size != fabs(sum))
        return 1;
    error = (nranks - 1) * (ldexp(size, -1 - f->mantissa) + narrow_decode(f, 1) / 2);
    return is_between(f, got, sum - error, sum + error);
}

static int right_prod(const narrow_t *f, int column, int nranks, unsigned got)
{
    double prod = 1, above = 1, below = 1, error, x;

    for (int r = 0; r < nranks; r++) {
        x = fabs(narrow_decode(f, hard_value(f, column, r, nranks)));
        prod *= narrow_decode(f, hard_value(f, column, r, nranks));
        above *= x > 1 ? x : 1;
        below *= x < 1 ? x : 1;
    }
    if (isnan(prod))
        return is_between(f, got, prod, prod);
    if (above > narrow_decode(f, f->largest) || below < narrow_decode(f, 1u << f->mantissa))
        return 1;
    error = (nranks - 1) * fabs(ldexp(prod, -f->mantissa));
    return is_between(f, got, prod - error, prod + error);
}

/* Of two equal zeros either may be the result. */
static int right_extreme(const narrow_t *f, hard_op_t op, int column, int nranks, unsigned got)
{
    double best = narrow_decode(f, hard_value(f, column, 0, nranks)), x;

    for (int r = 1; r < nranks; r++) {
        x = narrow_decode(f, hard_value(f, column, r, nranks));
        if (isnan(best) || isnan(x))
            best = NAN;
        else if (op == HARD_MIN ? x < best : x > best)
            best = x;
    }
    return isnan(best) ? isnan(narrow_decode(f, got)) : narrow_decode(f, got) == best;
}

int hard_right(const narrow_t *f, hard_op_t op, int column, int nranks, unsigned got)
{
    switch (op) {
    case HARD_SUM:
        return right_sum(f, column, nranks, got);
    case HARD_PROD:
        return right_prod(f, column, nranks, got);
    case HARD_MIN:
    case HARD_MAX:
        return right_extreme(f, op, column, nranks, got);
    default:
        return right_scaled(f, op, column, nranks, got);
    }
}

void hard_text(char *text, size_t size, const narrow_t *f, hard_op_t op, int column, int nranks, unsigned got)
{
    int n = snprintf(text, size, "%s of", hard_name(op));

    for (int r = 0; r < nranks && n > 0 && (size_t)n < size; r++) {
        n += snprintf(text + n, size - (size_t)n, " %g", narrow_decode(f, hard_value(f, column, r, nranks)));
        if (op >= HARD_PREMUL_MEAN && (size_t)n < size)
            n += snprintf(text + n, size - (size_t)n, " (by %g)", narrow_decode(f, hard_scalar(f, op, r, nranks)));
    }
    if (n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ": is %g", narrow_decode(f, got));
}
