/* Selects the table of kernels that this CPU can run. */
#ifndef RD_EXEC_HOST_REDUCE_CPU_H
#define RD_EXEC_HOST_REDUCE_CPU_H

#include "exec/host/reduce_kernels.h"

/* Returns the table of the best level not above `simd` that the CPU has (RD_SIMD_BEST: the best of all), and its name.
 */
const rd_kernels_t *rd_kernels_for(int simd, const char **name);

#endif
