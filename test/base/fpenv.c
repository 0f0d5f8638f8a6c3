/* What is calculated for another library, between begin and end, neither traps nor leaves a flag, whatever the
 * program traps, rounds and has raised. */
#define _GNU_SOURCE
#include <fenv.h>

#include "base/fpenv.h"
#include "util/check.h"

#define ROUNDINGS 2

static volatile double zero = 0, one = 1, three = 3;

static void calculate(void)
{
    volatile double infinite = one / zero, none = zero / zero, third = one / three;

    CHECK(third == 1. / 3, "not rounded to the nearest");
    (void)infinite;
    (void)none;
}

static void guarded(int raised, int trapped, int rounding)
{
    rd_fpenv_t program;

    feclearexcept(FE_ALL_EXCEPT);
    fedisableexcept(FE_ALL_EXCEPT);
    feraiseexcept(raised);
    feenableexcept(trapped);
    fesetround(rounding);
    rd_fpenv_foreign_begin(&program);
    calculate();
    rd_fpenv_foreign_end(&program);
    const int flags = fetestexcept(FE_ALL_EXCEPT), traps = fegetexcept(), round = fegetround();
    fedisableexcept(FE_ALL_EXCEPT);
    fesetround(FE_TONEAREST);
    CHECK(flags == raised, "flags %x, not %x", (unsigned)flags, (unsigned)raised);
    CHECK(traps == trapped, "traps %x, not %x", (unsigned)traps, (unsigned)trapped);
    CHECK(round == rounding, "rounding %x, not %x", (unsigned)round, (unsigned)rounding);
}

int main(void)
{
    const int roundings[ROUNDINGS] = {FE_TONEAREST, FE_UPWARD};

    for (int i = 0; i < ROUNDINGS; i++) {
        guarded(0, 0, roundings[i]);
        guarded(FE_INEXACT, 0, roundings[i]);
        guarded(0, FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW, roundings[i]);
        guarded(FE_INEXACT, FE_INVALID | FE_DIVBYZERO, roundings[i]);
    }
    return failures != 0;
}
