/* Choosing the reduction: which kernel serves a type and an operator on this CPU, and what is done to a contribution
 * before the first sum (AVG's and PREMULSUM's scaling) and to the result after the last (integer AVG's division; what
 * is scaled of a narrow floating type is summed in float32 and rounded then). The arithmetic is in reduce_vec.h for
 * what has to be fast, in reduce_rare.c, reduce_pair.c and reduce_scalar.c for the rest. */
#include <string.h>

#include "base/narrow.h"
#include "exec/host/reduce_cpu.h"

static rd_reduce_fn find_reduce(const rd_kernels_t *kernels, rondo_type_t type, rondo_op_t op)
{
    if (op == RONDO_MINLOC || op == RONDO_MAXLOC)
        return rd_reduce_pair[type][op - RONDO_MINLOC];
    return kernels->reduce[type][op] ? kernels->reduce[type][op] : rd_kernels_rare.reduce[type][op];
}

/* Sets what a floating type needs for a sum of scaled contributions. */
static void set_scale(rd_reducer_t *r, const rd_kernels_t *kernels, rondo_type_t type)
{
    r->load = kernels->scale[type] ? kernels->scale[type] : rd_kernels_rare.scale[type];
    r->store = kernels->store[type] ? kernels->store[type] : rd_kernels_rare.store[type];
    if (r->store)
        r->reduce = find_reduce(kernels, RONDO_FLOAT32, RONDO_SUM);
}

/* Sets the factor of AVG in the form that the scale kernels need: in double for types made of doubles, else in float.
 */
static void set_fraction(rd_reducer_t *r, rondo_type_t type, int nranks)
{
    float narrow = 1.0f / (float)nranks;
    double wide = 1.0 / nranks;

    if (type == RONDO_FLOAT64 || type == RONDO_COMPLEX128)
        memcpy(r->arg, &wide, sizeof wide);
    else
        memcpy(r->arg, &narrow, sizeof narrow);
}

void rd_reducer_init(rd_reducer_t *r, rondo_type_t type, rondo_op_t op, int nranks, int simd)
{
    const char *name;
    const rd_kernels_t *kernels = rd_kernels_for(simd, &name);
    int64_t ranks = nranks;

    memset(r, 0, sizeof *r);
    r->reduce = find_reduce(kernels, type, op);
    r->type_size = rondo_type_size(type);
    if (op != RONDO_AVG)
        return;
    r->finish = rd_divide[type];
    if (r->finish) {
        memcpy(r->arg, &ranks, sizeof ranks);
    } else {
        set_scale(r, kernels, type);
        set_fraction(r, type, nranks);
    }
}

float rd_scalar_widen(rondo_type_t type, const void *scalar)
{
    uint16_t two;
    uint8_t one;
    float f;

    switch (type) {
    case RONDO_FLOAT16:
        memcpy(&two, scalar, sizeof two);
        return rd_f16_widen(two);
    case RONDO_BFLOAT16:
        memcpy(&two, scalar, sizeof two);
        return rd_bf16_widen(two);
    case RONDO_FLOAT8_E4M3:
        memcpy(&one, scalar, sizeof one);
        return rd_e4m3_widen(one);
    case RONDO_FLOAT8_E5M2:
        memcpy(&one, scalar, sizeof one);
        return rd_e5m2_widen(one);
    default: /* RONDO_FLOAT32 */
        memcpy(&f, scalar, sizeof f);
        return f;
    }
}

void rd_reducer_init_premulsum(rd_reducer_t *r, rondo_type_t type, const void *scalar, int simd)
{
    const char *name;
    const rd_kernels_t *kernels = rd_kernels_for(simd, &name);
    float f;

    memset(r, 0, sizeof *r);
    r->reduce = find_reduce(kernels, type, RONDO_SUM);
    r->type_size = rondo_type_size(type);
    if (rd_premul[type])
        r->load = rd_premul[type];
    else
        set_scale(r, kernels, type);
    if (rd_premul[type] || type == RONDO_FLOAT64) {
        memcpy(r->arg, scalar, r->type_size);
    } else {
        f = rd_scalar_widen(type, scalar);
        memcpy(r->arg, &f, sizeof f);
    }
}

const char *rd_reduce_simd_name(void)
{
    const char *name;

    rd_kernels_for(RD_SIMD_BEST, &name);
    return name;
}
