/* What a reduction does with elements: functions of the host (exec/host/reduce.h) and the scalar that they need. A plan
 * carries one; the planner need not know how it works. */
#ifndef RD_BASE_REDUCER_H
#define RD_BASE_REDUCER_H

#include "base/types.h"

/* Reduces `n` (1 to 8) sources of `count` elements, with any alignment. `dst` may be exactly one of the sources; no
 * other overlap is allowed. fp16, bf16 and fp8 accumulate in fp32 within one call. With n == 1 it copies. */
typedef void (*rd_reduce_fn)(void *dst, const void *const *src, int n, size_t count, const void *arg);

typedef struct rd_reducer {
    rd_reduce_fn reduce; /* applies the op to sources that all hold partial results */
    /* Applied when a user's input is first read: AVG of floating types scales each contribution by 1/n, PREMULSUM by
     * its scalar. dst = scale(src), count elements. NULL: not needed. */
    void (*load)(void *dst, const void *src, size_t count, const void *arg);
    /* Scaled sums of the narrow floating types are float32 from the load on, in scratch and in messages, because a
     * partial result in the type would lose what is below its smallest number, or overflow: `reduce` adds float32,
     * `load` widens as it scales, and this writes `count` results as elements of the type. NULL: partial results are of
     * the type. */
    void (*store)(void *dst, const void *src, size_t count);
    /* Applied after the last sum, before any result is handed out: integer AVG divides, truncating toward zero. NULL:
     * not needed. */
    void (*finish)(void *dst, size_t count, const void *arg);
    size_t type_size;
    unsigned char arg[32]; /* the scalar, in the form that the functions above need */
} rd_reducer_t;

/* `simd` below selects the best instruction set that the CPU has and that is not above this one. Results are bitwise
 * the same at every level. */
enum { RD_SIMD_BEST = -1, RD_SIMD_PLAIN = 0, RD_SIMD_AVX2 = 1, RD_SIMD_AVX512 = 2 };

/* Initialises a reducer for a valid pair of type and built-in op; nranks is for AVG. */
typedef void (*rd_reducer_init_fn)(rd_reducer_t *r, rondo_type_t type, rondo_op_t op, int nranks, int simd);

#endif
