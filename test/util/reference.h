/* What must come out: input data and reductions for every type and operator, written as plainly as possible and apart
 * from the library, so that a mistake there is not repeated here.
 *
 * Input is a pure function of (seed, rank, element): every rank can compute what any other one holds, and no test has
 * to move data to check data. Three kinds of it:
 *   exact     any order of summing gives the same value, also in the narrow types: results are compared exactly
 *   rounding  random mantissas: ranks must agree bit by bit, the value is held to a bound
 *   special   as exact, with NaN, infinities and zeros of both signs among the values: for MIN and MAX
 */
#ifndef TEST_REFERENCE_H
#define TEST_REFERENCE_H

#include <rondo.h>

typedef enum { REF_EXACT, REF_ROUNDING, REF_SPECIAL, REF_BYTES } ref_data_t;

typedef struct ref_input {
    rondo_type_t type;
    rondo_op_t op;
    ref_data_t data;
    uint64_t seed;
    int nranks;
} ref_input_t;

size_t ref_size(rondo_type_t type);
int ref_valid(rondo_type_t type, rondo_op_t op); /* does the operator make sense for the type? */
const char *ref_type_name(rondo_type_t type);
const char *ref_op_name(rondo_op_t op);
int ref_is_float(rondo_type_t type);

/* Elements first ... first+count-1 of what `rank` contributes. With REF_BYTES: random bytes, for operations that only
 * move. */
void ref_fill(const ref_input_t *in, int rank, size_t first, size_t count, void *dst);
/* Is `got` the reduction over all ranks of elements first...? Returns -1 when right, else the first wrong element, and
 * says in `text` what it was and should have been. */
long long ref_check(const ref_input_t *in, size_t first, size_t count, const void *got, char *text, size_t size);
/* A number for the bits of a result; padding between the members of a pair is left out. */
uint64_t ref_hash(rondo_type_t type, const void *data, size_t count);

#endif
