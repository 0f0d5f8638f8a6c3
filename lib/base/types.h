/* The types and operators: sizes, names, which operator makes sense for which type, and what it means there.
 *
 *   integers   SUM PROD MIN MAX AVG, BAND BOR BXOR, LAND LOR LXOR. Arithmetic wraps. AVG divides the (wrapped) sum,
 *              truncating toward zero. The logical ones yield 0 or 1.
 *   floating   SUM PROD MIN MAX AVG. float16, bfloat16 and float8 are computed in float32 within one call of a reducer
 *              and rounded once at its end, to nearest, ties to even; scaled sums (AVG, PREMULSUM) once at the end of
 *              the whole operation. MIN and MAX yield a quiet NaN (positive, no
 *              payload) if any element is one; of two equal zeros the later one. Where a sum has several NaNs, which
 *              one's payload survives is unspecified.
 *   float8     float8_e4m3 is OCP's E4M3 ("fn"): no infinity, NaN is 0x7f or 0xff, the largest is 448. A finite result
 *              that is too large becomes the largest finite number with its sign, in both formats, as with CUDA's
 *              __NV_SATFINITE; an infinity stays one in float8_e5m2 and becomes 448 in float8_e4m3. NaN is written as
 *              0x7f (e4m3) or 0x7e (e5m2).
 *   complex    SUM PROD AVG. PROD is (ac - bd, ad + bc), without C's treatment of infinities.
 *   bool       SUM LOR are "or", PROD LAND "and", LXOR "exclusive or" of "not zero", and yield 0 or 1; BAND BOR BXOR
 *              work on the byte. No MIN, MAX, AVG.
 *   pairs      MINLOC MAXLOC on {value, index}: the lowest index wins a tie, and a NaN value wins against any number
 *              (the lowest index among NaNs), as it does in MIN and MAX. The result's padding is zero. */
#ifndef RD_BASE_TYPES_H
#define RD_BASE_TYPES_H

#include <rondo.h>
#include <stdbool.h>
#include <stddef.h>

/* A row for each type. */
typedef struct rd_type_row {
    const char *name, *alias;
    size_t size; /* bytes */
    int kind;
} rd_type_row_t;

extern const rd_type_row_t rd_types[RONDO_NUM_TYPES];

/* The same as rondo_type_size, for a type that is known to be one. */
static inline size_t rd_type_size(rondo_type_t type)
{
    return rd_types[type].size;
}

const char *rd_type_name(rondo_type_t type);             /* "float32" and the like; NULL if out of range */
const char *rd_op_name(rondo_op_t op);                   /* "sum" and the like */
int rd_type_parse(const char *name, rondo_type_t *type); /* 0 or -1; also accepts "float", "double", "int" */
int rd_op_parse(const char *name, rondo_op_t *op);
bool rd_type_floating(rondo_type_t type);           /* a real number with a fraction: no complex one, no pair */
bool rd_op_valid(rondo_op_t op, rondo_type_t type); /* built-in operators only */

#endif
