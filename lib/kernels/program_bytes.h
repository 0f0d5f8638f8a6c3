/* A rank's program for the kernel, where the ranks stand in an order of the machine's. */
#ifndef RD_KERNELS_PROGRAM_BYTES_H
#define RD_KERNELS_PROGRAM_BYTES_H

#include "kernels/launch.h"
#include "sched/visits.h"

/* As rd_kernel_program, which has every rank at the place of its number. */
const char *rd_kernel_program_in(const rd_algo_t *algo, uint32_t coll, int n, int rank, int root,
                                 const rd_visits_t *order, rd_kprogram_t *k);

#endif
