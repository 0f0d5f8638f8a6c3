/* What the files of the test life share. */
#ifndef TEST_GPU_LIFE_H
#define TEST_GPU_LIFE_H

#include "gpu/device.h"

void life_sum(test_rank_t *t, rondo_comm_t comm, cudaStream_t stream, int *buffer, size_t count);
/* Sums ones, in memory of its own, and expects `nranks`. */
void life_sum_checked(test_rank_t *t, rondo_comm_t comm, int nranks, cudaStream_t stream, size_t count);

void life_beside(test_rank_t *t, void *arg);
void life_crossing(test_rank_t *t, void *arg);

#endif
