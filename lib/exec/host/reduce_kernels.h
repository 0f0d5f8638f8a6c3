/* What one instruction set offers: the table from which reduce.c selects. Three files fill one each by including
 * reduce_isa.h (plain C, AVX2, AVX-512); reduce_rare.c fills the one for reductions that need not be fast. */
#ifndef RD_EXEC_HOST_REDUCE_KERNELS_H
#define RD_EXEC_HOST_REDUCE_KERNELS_H

#include "exec/host/reduce.h"

/* Kernels are fast only with all that they call in them. A compiler that does not optimise gains nothing by that, and
 * takes ten times as long. */
#ifdef __OPTIMIZE__
#define RD_INLINE static inline __attribute__((always_inline, unused))
#else
#define RD_INLINE static __attribute__((unused))
#endif

/* The last operand of an instruction with vectors, which may lie in memory. clang would put it there always. */
#ifdef __clang__
#define RD_ASM_OPERAND(reg) reg
#else
#define RD_ASM_OPERAND(reg) reg "m"
#endif

/* A function of two vectors that is one AVX instruction, which takes them in their order: see reduce_isa.h. */
#define RD_IN_ORDER(type, name, instruction, reg)                                                                      \
    RD_INLINE type name(type a, type b)                                                                                \
    {                                                                                                                  \
        __asm__(instruction " %2, %1, %0" : "=" reg(a) : reg(a), RD_ASM_OPERAND(reg)(b));                              \
        return a;                                                                                                      \
    }

typedef void (*rd_load_fn)(void *dst, const void *src, size_t count, const void *arg);
typedef void (*rd_finish_fn)(void *dst, size_t count, const void *arg);
typedef void (*rd_store_fn)(void *dst, const void *src, size_t count);

typedef struct rd_kernels {
    rd_reduce_fn reduce[RONDO_NUM_TYPES][RONDO_NUM_OPS]; /* NULL: use rd_kernels_rare */
    /* dst = src * factor; `arg` points to the factor: a float for float32 and narrower ones, else an element. For
     * complex types the factor is the real number that scales both parts. What is scaled of a narrow floating type is
     * float32. NULL as above. */
    rd_load_fn scale[RONDO_NUM_TYPES];
    rd_store_fn store[RONDO_NUM_TYPES]; /* of narrow floating types: rounds float32 to the type. NULL as above */
} rd_kernels_t;

extern const rd_kernels_t rd_kernels_plain;
extern const rd_kernels_t rd_kernels_avx2;   /* only on x86-64 */
extern const rd_kernels_t rd_kernels_avx512; /* only on x86-64 */
extern const rd_kernels_t rd_kernels_rare;

extern const rd_reduce_fn rd_reduce_pair[RONDO_NUM_TYPES][2]; /* MINLOC, MAXLOC; NULL if the type is no pair */

/* Multiplies elements by a scalar in the type's own sense, for PREMULSUM: integers wrap, complex numbers multiply, bool
 * is "and". */
extern const rd_load_fn rd_premul[RONDO_NUM_TYPES];
/* Truncating division by the int64_t in `arg`; NULL for types that are not integers. */
extern const rd_finish_fn rd_divide[RONDO_NUM_TYPES];

#endif
