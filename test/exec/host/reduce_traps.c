/* MIN, MAX, MINLOC and MAXLOC with quiet NaN: a NaN comes out, no flag of the floating-point environment is
 * raised and nothing traps, for every floating type, instruction set, number of sources and length around a vector.
 * What the caller's flags, traps and rounding were, they stay. A number as argument is the seed. */
#define _GNU_SOURCE
#include <fenv.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/host/reduce.h"
#include "util/harness.h"

enum { SOURCES = 4, COUNT = 70, BYTES = COUNT * 16 };

static const struct {
    rondo_type_t type;
    const char *name;
    size_t value;   /* bytes of the number, which comes first */
    uint64_t nan;   /* the least quiet one, without the sign */
    uint64_t every; /* all patterns without the sign */
    int pairs;
} types[] = {
    {RONDO_FLOAT16, "float16", 2, 0x7e00, 0x7fff, 0},
    {RONDO_BFLOAT16, "bfloat16", 2, 0x7fc0, 0x7fff, 0},
    {RONDO_FLOAT32, "float32", 4, 0x7fc00000, 0x7fffffff, 0},
    {RONDO_FLOAT64, "float64", 8, 0x7ff8000000000000, 0x7fffffffffffffff, 0},
    {RONDO_FLOAT8_E4M3, "float8 e4m3", 1, 0x7f, 0x7f, 0},
    {RONDO_FLOAT8_E5M2, "float8 e5m2", 1, 0x7e, 0x7f, 0},
    {RONDO_FLOAT32_INT32, "float32 and int32", 4, 0x7fc00000, 0x7fffffff, 1},
    {RONDO_FLOAT64_INT32, "float64 and int32", 8, 0x7ff8000000000000, 0x7fffffffffffffff, 1},
    {RONDO_FLOAT32_FLOAT32, "float32 pairs", 4, 0x7fc00000, 0x7fffffff, 1},
    {RONDO_FLOAT64_FLOAT64, "float64 pairs", 8, 0x7ff8000000000000, 0x7fffffffffffffff, 1},
};

static uint64_t state = 1;
static int failures;

static uint64_t rnd(void)
{
    return test_random(&state);
}

/* Half of the numbers are NaN, of either sign and any payload. A signalling NaN, which every arithmetic reports, is not
 * drawn; infinity and subnormal numbers are. */
static uint64_t draw(size_t t)
{
    uint64_t bits = rnd() & types[t].every;

    /* above infinity, whose pattern is that of the least quiet NaN without its last bit */
    if (rnd() & 1 || bits > (types[t].nan & (types[t].nan - 1)))
        bits = types[t].nan | bits;
    return bits | (rnd() & (types[t].every + 1));
}

static int is_nan(size_t t, const unsigned char *at)
{
    uint64_t bits = 0;

    memcpy(&bits, at, types[t].value);
    return (bits & types[t].every) >= types[t].nan;
}

static void check(size_t t, rondo_op_t op, int simd, int n, size_t count)
{
    static unsigned char in[SOURCES][BYTES], out[BYTES];
    const void *src[SOURCES];
    const size_t size = rondo_type_size(types[t].type);
    rd_reducer_t r;

    memset(in, 0, sizeof in);
    for (int k = 0; k < n; k++) {
        for (size_t i = 0; i < count; i++) {
            uint64_t bits = draw(t);
            memcpy(in[k] + i * size, &bits, types[t].value);
        }
        src[k] = in[k];
    }
    rd_reducer_init(&r, types[t].type, op, n, simd);
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_DIVBYZERO);
    feenableexcept(FE_INVALID | FE_OVERFLOW);
    r.reduce(out, src, n, count, r.arg);
    int traps = fegetexcept(), flags = fetestexcept(FE_ALL_EXCEPT);
    fedisableexcept(FE_ALL_EXCEPT);
    if ((flags != FE_DIVBYZERO || traps != (FE_INVALID | FE_OVERFLOW)) && failures++ < 20)
        printf("%s, op %d, simd %d, %d sources of %zu: flags %#x, traps %#x\n", types[t].name, op, simd, n, count,
               flags, traps);
    for (size_t i = 0; i < count; i++) {
        int nan = 0;
        for (int k = 0; k < n; k++)
            nan |= is_nan(t, in[k] + i * size);
        if (nan != is_nan(t, out + i * size) && failures++ < 20)
            printf("%s, op %d, simd %d: NaN of %d sources: %d\n", types[t].name, op, simd, n, !nan);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        state = strtoull(argv[1], NULL, 0) | 1;
    printf("reduce_traps: seed %llu\n", (unsigned long long)state);
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int simd = RD_SIMD_PLAIN; simd <= RD_SIMD_AVX512; simd++)
            for (int n = 2; n <= SOURCES; n++)
                for (size_t count = 1; count <= COUNT; count += count < 20 ? 1 : 7) {
                    check(t, types[t].pairs ? RONDO_MINLOC : RONDO_MIN, simd, n, count);
                    check(t, types[t].pairs ? RONDO_MAXLOC : RONDO_MAX, simd, n, count);
                }
    return failures != 0;
}
