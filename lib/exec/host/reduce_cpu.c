/* Selects the table of kernels that this CPU can run: the CPU and the system (which must save the wide registers) are
 * queried each time a reducer is made, which is rare. */
#include "exec/host/reduce_cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdbool.h>

/* The builtin does not know F16C in every compiler. */
static bool have_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}

static bool have_avx2(void)
{
    return __builtin_cpu_supports("avx2") && have_f16c();
}

static bool have_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

const rd_kernels_t *rd_kernels_for(int simd, const char **name)
{
    int level = simd < 0 ? RD_SIMD_AVX512 : simd;

    __builtin_cpu_init();
    if (level >= RD_SIMD_AVX512 && have_avx512()) {
        *name = "avx512";
        return &rd_kernels_avx512;
    }
    if (level >= RD_SIMD_AVX2 && have_avx2()) {
        *name = "avx2";
        return &rd_kernels_avx2;
    }
    *name = "plain";
    return &rd_kernels_plain;
}

#else

#if defined(__ARM_NEON)
#define PLAIN_NAME "neon"
#else
#define PLAIN_NAME "plain"
#endif

const rd_kernels_t *rd_kernels_for(int simd, const char **name)
{
    (void)simd;
    *name = PLAIN_NAME;
    return &rd_kernels_plain;
}

#endif
