/* What a reduction does with elements: functions of the host's (exec/host/reduce.h) and the scalar that they want. A
 * plan carries one; who plans need not know how it is done.
 */
#ifndef RD_BASE_REDUCER_H
#define RD_BASE_REDUCER_H

#include "base/types.h"

/* `n` 1..8 sources of `count` elements; any alignment; dst may be exactly one of the sources, no other overlap.
 * fp16, bf16 and fp8 accumulate in fp32 within one call. With n == 1 it copies. */
typedef void (*rd_reduce_fn)(void *dst, const void *const *src, int n, size_t count, const void *arg);

typedef struct rd_reducer {
    rd_reduce_fn reduce; /* op over sources that all carry partial results */
    /* The first touch of a user's input: AVG of floating types scales each contribution by 1/n, PREMULSUM by its
     * scalar, as it is loaded. NULL: none. dst = scale(src), count elements. */
    void (*load)(void *dst, const void *src, size_t count, const void *arg);
    /* After the last sum, before anything is handed out: integer AVG divides, truncating toward zero. NULL: none. */
    void (*finish)(void *dst, size_t count, const void *arg);
    size_t type_size;
    unsigned char arg[32]; /* the scalar, as the functions above want it */
} rd_reducer_t;

/* `simd` below: the best instruction set that the CPU has and that is not above this one. Results are bitwise the same
 * at every level. */
enum { RD_SIMD_BEST = -1, RD_SIMD_PLAIN = 0, RD_SIMD_AVX2 = 1, RD_SIMD_AVX512 = 2 };

/* Fills one in for a valid pair of type and built-in op; nranks is for AVG. */
typedef void (*rd_reducer_init_fn)(rd_reducer_t *r, rondo_type_t type, rondo_op_t op, int nranks, int simd);

#endif
