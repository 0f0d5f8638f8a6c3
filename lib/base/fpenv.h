/* The floating-point environment belongs to the program: it may round upwards, trap what is invalid, and read the flags
 * that its own arithmetic has raised. Prices are compared in the default environment, so that all ranks choose the
 * same, and leave no flag behind. Reductions are the program's arithmetic, with the program's flags and traps; but how
 * they round, and whether subnormal numbers count as zero, must not depend on the thread that happens to add: all ranks
 * get the same bits. What a thread of the program looks up in the record, of times and who is late, is calculated in
 * the default environment, too. */
#ifndef RD_BASE_FPENV_H
#define RD_BASE_FPENV_H

#include <fenv.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static inline void rd_fpenv_begin(fenv_t *program)
{
    fegetenv(program);
    fesetenv(FE_DFL_ENV);
}

static inline void rd_fpenv_end(const fenv_t *program)
{
    fesetenv(program);
}

/* Around calls into another library, which may calculate on its own account: UCX chooses protocols by estimates, even
 * in its sends and its progress. From begin to end nothing is trapped and results are rounded to the nearest;
 * afterwards flags, traps and rounding are the program's. A store, a load and a comparison each where nothing has to be
 * changed. */
#if defined(__x86_64__)
typedef unsigned rd_fpenv_t;
static inline void rd_fpenv_foreign_begin(rd_fpenv_t *program)
{
    *program = _mm_getcsr();
    if (__builtin_expect((*program & ~(unsigned)_MM_EXCEPT_MASK) != _MM_MASK_MASK, 0))
        _mm_setcsr(_MM_MASK_MASK | (*program & _MM_EXCEPT_MASK));
}

static inline void rd_fpenv_foreign_end(const rd_fpenv_t *program)
{
    if (__builtin_expect(_mm_getcsr() != *program, 0))
        _mm_setcsr(*program);
}
#else
typedef fenv_t rd_fpenv_t;
static inline void rd_fpenv_foreign_begin(rd_fpenv_t *program)
{
    rd_fpenv_begin(program);
}

static inline void rd_fpenv_foreign_end(const rd_fpenv_t *program)
{
    rd_fpenv_end(program);
}
#endif

/* From begin to end results are rounded to the nearest, subnormal numbers are numbers, and all else is the program's.
 * What begin returns is the program's own choice; where there is none, as nearly always, this costs a store and a load.
 */
#if defined(__x86_64__)
#define RD_ROUNDING (_MM_ROUND_MASK | _MM_FLUSH_ZERO_MASK | 0x40u) /* 0x40: subnormal sources count as zero */
static inline uint64_t rd_rounding_begin(void)
{
    unsigned all = _mm_getcsr();
    if (__builtin_expect((all & RD_ROUNDING) != 0, 0))
        _mm_setcsr(all & ~RD_ROUNDING);
    return all & RD_ROUNDING;
}

static inline void rd_rounding_end(uint64_t program)
{
    if (__builtin_expect(program != 0, 0))
        _mm_setcsr(_mm_getcsr() | (unsigned)program);
}
#elif defined(__aarch64__)
#define RD_ROUNDING (UINT64_C(3) << 22 | UINT64_C(1) << 24 | UINT64_C(1) << 19) /* RMode, FZ and FZ16 */
static inline uint64_t rd_rounding_begin(void)
{
    uint64_t all;
    __asm__ volatile("mrs %0, fpcr" : "=r"(all));
    if (__builtin_expect((all & RD_ROUNDING) != 0, 0))
        __asm__ volatile("msr fpcr, %0" ::"r"(all & ~RD_ROUNDING));
    return all & RD_ROUNDING;
}

static inline void rd_rounding_end(uint64_t program)
{
    uint64_t all;
    if (__builtin_expect(program == 0, 1))
        return;
    __asm__ volatile("mrs %0, fpcr" : "=r"(all));
    __asm__ volatile("msr fpcr, %0" ::"r"(all | program));
}
#else
static inline uint64_t rd_rounding_begin(void)
{
    int program = fegetround();
    if (program != FE_TONEAREST)
        fesetround(FE_TONEAREST);
    return (uint64_t)program;
}

static inline void rd_rounding_end(uint64_t program)
{
    if ((int)program != FE_TONEAREST)
        fesetround((int)program);
}
#endif

#endif
