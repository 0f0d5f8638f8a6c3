/* Reductions on host memory: dst = op(src[0], ..., src[n-1]), elementwise, summed from the first source to the last. */
#ifndef RD_EXEC_HOST_REDUCE_H
#define RD_EXEC_HOST_REDUCE_H

#include "base/reducer.h"

/* Built-in op for a valid (type, op) pair; nranks for AVG. */
void rd_reducer_init(rd_reducer_t *r, rondo_type_t type, rondo_op_t op, int nranks, int simd);
/* For every type that SUM is valid for; `scalar` is one element, copied. */
void rd_reducer_init_premulsum(rd_reducer_t *r, rondo_type_t type, const void *scalar, int simd);
/* One element of float32 or of a narrower floating type, any alignment, in the form that scaling wants. */
float rd_scalar_widen(rondo_type_t type, const void *scalar);
const char *rd_reduce_simd_name(void); /* "avx512", "avx2", "neon" or "plain": what -1 picks here */

#endif
