/* The floating-point environment belongs to the program: it may round upwards, trap what is invalid, and read the flags
 * that its own arithmetic has raised. Prices are compared in the default environment, so that all ranks choose the
 * same, and leave no flag behind. Reductions are the program's arithmetic and are not enclosed. */
#ifndef RD_BASE_FPENV_H
#define RD_BASE_FPENV_H

#include <fenv.h>

static inline void rd_fpenv_begin(fenv_t *program)
{
    fegetenv(program);
    fesetenv(FE_DFL_ENV);
}

static inline void rd_fpenv_end(const fenv_t *program)
{
    fesetenv(program);
}

#endif
