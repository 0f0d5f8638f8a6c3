/* Values of every type. Inputs are small integers made from (rank, index), few enough bits that any order of summing
 * gives the same exact result in any type: a result is then right or wrong, with no tolerance to argue about (only the
 * average of floating types, which divides, is compared within its type's precision). They repeat with a prime period,
 * so that data which came from the wrong place is seen whatever power of two it was off by. */
#include <math.h>
#include <string.h>

#include "perf.h"

typedef struct {
    double a;
    int32_t b;
} double_int_t;
typedef struct {
    int64_t a;
    int32_t b;
} long_int_t;

/* Sign, exponent, mantissa: the floating types that C11 lacks. */
typedef struct {
    int bytes, mantissa, bias;
} narrow_t;

static const narrow_t *narrow(rondo_type_t type)
{
    static const narrow_t half = {2, 10, 15}, bfloat = {2, 7, 127}, e4m3 = {1, 3, 7}, e5m2 = {1, 2, 15};

    switch (type) {
    case RONDO_FLOAT16:
        return &half;
    case RONDO_BFLOAT16:
        return &bfloat;
    case RONDO_FLOAT8_E4M3:
        return &e4m3;
    case RONDO_FLOAT8_E5M2:
        return &e5m2;
    default:
        return NULL;
    }
}

/* Normal numbers and zero only: that is all that the inputs and their sums are. */
static unsigned narrow_bits(const narrow_t *kind, double value)
{
    int exponent;
    double fraction = frexp(fabs(value), &exponent); /* in [0.5, 1) */
    unsigned sign = value < 0 ? 1u << (8 * kind->bytes - 1) : 0;

    if (value == 0)
        return 0;
    return sign + ((unsigned)(exponent - 2 + kind->bias) << kind->mantissa) +
           (unsigned)nearbyint(ldexp(fraction, kind->mantissa + 1));
}

static double narrow_value(const narrow_t *kind, unsigned bits)
{
    unsigned top = 1u << (8 * kind->bytes - 1), rest = bits & (top - 1);
    unsigned mantissa = rest & ((1u << kind->mantissa) - 1);
    int exponent = (int)(rest >> kind->mantissa);
    double value = exponent ? ldexp(1.0 + ldexp(mantissa, -kind->mantissa), exponent - kind->bias)
                            : ldexp(mantissa, 1 - kind->bias - kind->mantissa);

    return bits & top ? -value : value;
}

/* The largest sum up to which every integer is exact. */
static int exact_limit(rondo_type_t type)
{
    switch (type) {
    case RONDO_BOOL:
        return 1;
    case RONDO_FLOAT8_E5M2:
        return 8;
    case RONDO_FLOAT8_E4M3:
        return 16;
    case RONDO_INT8:
        return 127;
    case RONDO_UINT8:
    case RONDO_BFLOAT16:
        return 255;
    default:
        return 2047;
    }
}

static bool is_pair(rondo_type_t type)
{
    return type >= RONDO_FLOAT32_INT32 && type <= RONDO_FLOAT64_FLOAT64;
}

static bool is_complex(rondo_type_t type)
{
    return type == RONDO_COMPLEX64 || type == RONDO_COMPLEX128;
}

static bool is_floating(rondo_type_t type)
{
    return narrow(type) || type == RONDO_FLOAT32 || type == RONDO_FLOAT64 || is_complex(type);
}

static unsigned scramble(unsigned index, unsigned rank)
{
    unsigned x = index * 2654435761u + rank * 2246822519u + 374761393u;

    x ^= x >> 15;
    x *= 2246822519u;
    return x ^ x >> 13;
}

value_t value_of(const job_t *job, int rank, size_t i)
{
    unsigned x = scramble((unsigned)(i % VALUE_PERIOD), (unsigned)rank);
    unsigned common = scramble((unsigned)(i % VALUE_PERIOD), 0xffffu); /* the same on all ranks */
    int limit = exact_limit(job->type) / (job->op->reduces ? job->nranks : 1);
    value_t value = {.a = x % (unsigned)((limit < 1 ? 1 : limit > 100 ? 100 : limit) + 1)};

    if (is_pair(job->type))
        value.b = rank;
    else if (is_complex(job->type) && job->reduction != RONDO_PROD)
        value.b = (x >> 8) % 16;
    if (!job->op->reduces)
        return value;
    /* Of a narrow type and many ranks: so few of them contribute to a sum that it is exact in any order. */
    if (job->reduction == RONDO_SUM && job->type != RONDO_BOOL && rank >= exact_limit(job->type))
        value.a = value.b = 0;
    /* products stay small, and an AND is not always 0: at most one rank differs from the rest */
    if (job->reduction == RONDO_PROD && job->type != RONDO_BOOL)
        value.a = common % (2 * (unsigned)job->nranks) == (unsigned)rank ? 2 : 1;
    else if (job->reduction == RONDO_PROD || job->reduction == RONDO_LAND || job->reduction == RONDO_BAND)
        value.a = common % (2 * (unsigned)job->nranks) != (unsigned)rank;
    return value;
}

static double combined(const job_t *job, double x, double y)
{
    bool or = job->type == RONDO_BOOL && job->reduction == RONDO_SUM;
    bool and = job->type == RONDO_BOOL && job->reduction == RONDO_PROD;

    switch (or ? RONDO_LOR : and? RONDO_LAND : job->reduction) {
    case RONDO_PROD:
        return x * y;
    case RONDO_MIN:
        return fmin(x, y);
    case RONDO_MAX:
        return fmax(x, y);
    case RONDO_BAND:
        return (double)((int64_t)x & (int64_t)y);
    case RONDO_BOR:
        return (double)((int64_t)x | (int64_t)y);
    case RONDO_BXOR:
        return (double)((int64_t)x ^ (int64_t)y);
    case RONDO_LAND:
        return x != 0 && y != 0;
    case RONDO_LOR:
        return x != 0 || y != 0;
    case RONDO_LXOR:
        return (x != 0) != (y != 0);
    default:
        return x + y;
    }
}

static value_t located(const job_t *job, value_t best, value_t other)
{
    bool better = job->reduction == RONDO_MINLOC ? other.a < best.a : other.a > best.a;

    return better ? other : best; /* ranks come in rising order: a tie keeps the lowest index */
}

value_t value_reduced(const job_t *job, size_t i)
{
    value_t sum = value_of(job, 0, i);

    for (int rank = 1; rank < job->nranks; rank++) {
        value_t next = value_of(job, rank, i);

        if (is_pair(job->type)) {
            sum = located(job, sum, next);
            continue;
        }
        sum.a = combined(job, sum.a, next.a);
        sum.b = job->reduction == RONDO_PROD ? 0 : combined(job, sum.b, next.b);
    }
    /* one rank: logical operations still make 0 or 1 */
    if (job->nranks == 1 && job->reduction >= RONDO_LAND && job->reduction <= RONDO_LXOR)
        sum.a = sum.a != 0;
    if (job->reduction == RONDO_AVG) {
        sum.a = is_floating(job->type) ? sum.a / job->nranks : trunc(sum.a / job->nranks);
        sum.b /= job->nranks;
    }
    return sum;
}

#define STORE(kind, ...)                                                                                               \
    do {                                                                                                               \
        kind x = __VA_ARGS__;                                                                                          \
        memcpy(to, &x, sizeof x);                                                                                      \
    } while (0)

static void pair_store(rondo_type_t type, void *to, value_t value)
{
    memset(to, 0, rondo_type_size(type)); /* the padding too */
    switch (type) {
    case RONDO_FLOAT64_INT32:
        memcpy(to, &value.a, sizeof(double));
        memcpy((char *)to + offsetof(double_int_t, b), &(int32_t){(int32_t)value.b}, sizeof(int32_t));
        break;
    case RONDO_INT64_INT32:
        memcpy(to, &(int64_t){(int64_t)value.a}, sizeof(int64_t));
        memcpy((char *)to + offsetof(long_int_t, b), &(int32_t){(int32_t)value.b}, sizeof(int32_t));
        break;
    case RONDO_FLOAT32_INT32:
        memcpy(to, &(float){(float)value.a}, sizeof(float));
        memcpy((char *)to + sizeof(float), &(int32_t){(int32_t)value.b}, sizeof(int32_t));
        break;
    case RONDO_INT32_INT32:
        memcpy(to, (int32_t[]){(int32_t)value.a, (int32_t)value.b}, 2 * sizeof(int32_t));
        break;
    case RONDO_FLOAT32_FLOAT32:
        memcpy(to, (float[]){(float)value.a, (float)value.b}, 2 * sizeof(float));
        break;
    default:
        memcpy(to, (double[]){value.a, value.b}, 2 * sizeof(double));
    }
}

void value_store(rondo_type_t type, void *to, value_t value)
{
    const narrow_t *kind = narrow(type);

    if (is_pair(type)) {
        pair_store(type, to, value);
    } else if (kind) {
        unsigned bits = narrow_bits(kind, value.a);

        for (int i = 0; i < kind->bytes; i++) /* every machine that rondo knows is little-endian */
            ((unsigned char *)to)[i] = (unsigned char)(bits >> 8 * i);
    } else if (type == RONDO_FLOAT32) {
        STORE(float, (float)value.a);
    } else if (type == RONDO_FLOAT64) {
        STORE(double, value.a);
    } else if (type == RONDO_COMPLEX64) {
        memcpy(to, (float[]){(float)value.a, (float)value.b}, 2 * sizeof(float));
    } else if (type == RONDO_COMPLEX128) {
        memcpy(to, (double[]){value.a, value.b}, 2 * sizeof(double));
    } else { /* an integer or bool: the low bytes of a two's complement number */
        memcpy(to, &(int64_t){(int64_t)value.a}, rondo_type_size(type));
    }
}

static bool near(double got, double expected, int mantissa)
{
    return fabs(got - expected) <= ldexp(fabs(expected) + ldexp(1, -6), 1 - mantissa);
}

/* An average: a rank's share was rounded when it was scaled. */
static bool average_equal(const job_t *job, const void *got, value_t expected)
{
    const narrow_t *kind = narrow(job->type);
    unsigned bits = 0;
    double d[2] = {0};
    float f[2] = {0};

    if (kind) {
        memcpy(&bits, got, (size_t)kind->bytes);
        return near(narrow_value(kind, bits), expected.a, kind->mantissa);
    }
    if (job->type == RONDO_FLOAT64 || job->type == RONDO_COMPLEX128) {
        memcpy(d, got, rondo_type_size(job->type));
        return near(d[0], expected.a, 48) && (!is_complex(job->type) || near(d[1], expected.b, 48));
    }
    memcpy(f, got, rondo_type_size(job->type));
    return near(f[0], expected.a, 20) && (!is_complex(job->type) || near(f[1], expected.b, 20));
}

bool value_equal(const job_t *job, const void *got, value_t expected)
{
    char bytes[16];
    size_t size = rondo_type_size(job->type);

    if (job->op->reduces && job->reduction == RONDO_AVG && is_floating(job->type))
        return average_equal(job, got, expected);
    value_store(job->type, bytes, expected);
    if (job->type == RONDO_FLOAT64_INT32 || job->type == RONDO_INT64_INT32)
        size = offsetof(double_int_t, b) + sizeof(int32_t); /* not the padding behind */
    return memcmp(bytes, got, size) == 0;
}
