/* The search for NaN: every pattern of the 8- and 16-bit types, random words of the others, in every type, at lengths
 * and places around the blocks that are looked at together, aligned or not, against the formats' own definition: all
 * bits of the exponent and one of the fraction (float8_e4m3: all bits). It must raise no floating-point flag,
 * signalling NaN or not. */
#include <fenv.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/host/nan_scan.h"
#include "util/harness.h"

static int failures;

/* `exponent` and `fraction`: bits. */
static bool is_nan(uint64_t bits, int exponent, int fraction)
{
    uint64_t ones = (UINT64_C(1) << exponent) - 1;

    return (bits >> fraction & ones) == ones && (bits & ((UINT64_C(1) << fraction) - 1)) != 0;
}

static bool word_is_nan(rondo_type_t type, uint64_t bits)
{
    switch (type) {
    case RONDO_FLOAT8_E4M3:
        return (bits & 0x7f) == 0x7f;
    case RONDO_FLOAT8_E5M2:
        return is_nan(bits, 5, 2);
    case RONDO_FLOAT16:
        return is_nan(bits, 5, 10);
    case RONDO_BFLOAT16:
        return is_nan(bits, 8, 7);
    case RONDO_FLOAT32:
    case RONDO_COMPLEX64:
    case RONDO_FLOAT32_INT32:
    case RONDO_FLOAT32_FLOAT32:
        return is_nan(bits, 8, 23);
    case RONDO_FLOAT64:
    case RONDO_COMPLEX128:
    case RONDO_FLOAT64_INT32:
    case RONDO_FLOAT64_FLOAT64:
        return is_nan(bits, 11, 52);
    default:
        return false;
    }
}

static size_t width(rondo_type_t type)
{
    size_t size = rondo_type_size(type);
    bool two = type == RONDO_COMPLEX64 || type == RONDO_COMPLEX128 ||
               (type >= RONDO_FLOAT32_INT32 && type <= RONDO_FLOAT64_FLOAT64);

    return two ? size / 2 : size;
}

static bool element_is_nan(rondo_type_t type, const char *at)
{
    size_t w = width(type), words = rondo_type_size(type) / w;
    bool nan = false;

    if (type == RONDO_FLOAT32_INT32 || type == RONDO_FLOAT64_INT32)
        words = 1;
    for (size_t k = 0; k < words; k++) {
        uint64_t bits = 0;
        memcpy(&bits, at + k * w, w);
        nan |= word_is_nan(type, bits);
    }
    return nan;
}

static void compare(rondo_type_t type, const char *data, size_t n)
{
    size_t want = 0, want_first = SIZE_MAX, first = SIZE_MAX;

    for (size_t i = 0; i < n; i++)
        if (element_is_nan(type, data + i * rondo_type_size(type)) && !want++)
            want_first = i;
    size_t got = rd_nan_count(data, n, type, &first);
    if (got == want && first == want_first)
        return;
    printf("type %d, %zu elements: %zu NaN, the first at %zu, but there are %zu and %zu\n", (int)type, n, got, first,
           want, want_first);
    failures++;
}

/* Every pattern stands once, between ones. */
static void patterns(rondo_type_t type)
{
    const size_t size = rondo_type_size(type), all = (size_t)1 << 8 * size;
    char element[2] = {0};

    for (size_t bits = 0; bits < all; bits++) {
        memcpy(element, &bits, size);
        compare(type, element, 1);
    }
    char *data = calloc(all, size);
    for (size_t bits = 0; bits < all; bits++)
        memcpy(data + bits * size, &bits, size);
    compare(type, data, all);
    free(data);
}

/* Zeros with a few random words, of which many have all bits of an exponent. */
static void random_words(rondo_type_t type, uint64_t *state)
{
    const size_t size = rondo_type_size(type), w = width(type), most = 6000;
    char *data = malloc(most * size + 64);

    for (int turn = 0; turn < 200; turn++) {
        size_t n = test_below(state, most), at = test_below(state, 64); /* no alignment */
        memset(data, 0, most * size + 64);
        for (unsigned k = test_below(state, 6); k && n; k--) {
            uint64_t bits = test_random(state);
            if (test_below(state, 2))
                bits |= w == 8 ? UINT64_C(0x7ff0000000000000) : w == 4 ? 0x7f800000 : 0x7c00;
            if (test_below(state, 4) == 0)
                bits &= w == 8 ? UINT64_C(0xfff0000000000000) : UINT64_C(0xff800000ff800000);
            size_t word = (n - 1 - test_below(state, test_below(state, 2) ? 2 : (unsigned)n) % n) * (size / w);
            memcpy(data + at + (word + test_below(state, (unsigned)(size / w))) * w, &bits, w);
        }
        if (at + n * size <= most * size)
            compare(type, data + at, n);
    }
    free(data);
}

int main(void)
{
    uint64_t seed = getenv("RONDO_TEST_SEED") ? strtoull(getenv("RONDO_TEST_SEED"), NULL, 0) : 20261127, state = seed;

    test_begin("nan_scan", 60);
    printf("seed %llu\n", (unsigned long long)seed);
    feclearexcept(FE_ALL_EXCEPT);
    for (int type = 0; type < RONDO_NUM_TYPES; type++) {
        if (rondo_type_size((rondo_type_t)type) <= 2)
            patterns((rondo_type_t)type);
        random_words((rondo_type_t)type, &state);
    }
    if (fetestexcept(FE_ALL_EXCEPT)) {
        printf("a flag was raised\n");
        failures++;
    }
    return failures != 0;
}
