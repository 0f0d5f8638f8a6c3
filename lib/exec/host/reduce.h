/* Reductions on host memory: dst = op(src[0], ..., src[n-1]), element by element, from the first source to the last. */
#ifndef RD_EXEC_HOST_REDUCE_H
#define RD_EXEC_HOST_REDUCE_H

#include "base/reducer.h"

/* Initialises a reducer with the built-in op of a valid (type, op) pair; nranks is for AVG. */
void rd_reducer_init(rd_reducer_t *r, rondo_type_t type, rondo_op_t op, int nranks, int simd);
/* Initialises PREMULSUM for any type that SUM is valid for; `scalar` is one element, which is copied. */
void rd_reducer_init_premulsum(rd_reducer_t *r, rondo_type_t type, const void *scalar, int simd);
/* Converts one element of float32 or of a narrower floating type, with any alignment, to the form that scaling needs.
 */
float rd_scalar_widen(rondo_type_t type, const void *scalar);
const char *rd_reduce_simd_name(void); /* "avx512", "avx2", "neon" or "plain": what RD_SIMD_BEST selects here */

#endif
