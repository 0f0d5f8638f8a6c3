/* MPI's names for rondo's types and operators. */
#ifndef BENCH_MPI_TYPES_H
#define BENCH_MPI_TYPES_H

#include <mpi.h>
#include <rondo.h>

/* MPI_DATATYPE_NULL: MPI has no such type. */
static inline MPI_Datatype mpi_type_of(rondo_type_t type)
{
    switch (type) {
    case RONDO_INT8:
        return MPI_INT8_T;
    case RONDO_UINT8:
        return MPI_UINT8_T;
    case RONDO_INT16:
        return MPI_INT16_T;
    case RONDO_UINT16:
        return MPI_UINT16_T;
    case RONDO_INT32:
        return MPI_INT32_T;
    case RONDO_UINT32:
        return MPI_UINT32_T;
    case RONDO_INT64:
        return MPI_INT64_T;
    case RONDO_UINT64:
        return MPI_UINT64_T;
    case RONDO_FLOAT32:
        return MPI_FLOAT;
    case RONDO_FLOAT64:
        return MPI_DOUBLE;
    case RONDO_COMPLEX64:
        return MPI_C_FLOAT_COMPLEX;
    case RONDO_COMPLEX128:
        return MPI_C_DOUBLE_COMPLEX;
    case RONDO_BOOL:
        return MPI_C_BOOL;
    case RONDO_FLOAT32_INT32:
        return MPI_FLOAT_INT;
    case RONDO_FLOAT64_INT32:
        return MPI_DOUBLE_INT;
    case RONDO_INT32_INT32:
        return MPI_2INT;
    case RONDO_INT64_INT32:
        return MPI_LONG_INT;
    default:
        return MPI_DATATYPE_NULL;
    }
}

/* MPI_OP_NULL: MPI has no such operator. Sums of logical values are theirs by "or", products by "and";
 * by bits it combines integers alone, and of 0 and 1 that is the same. */
static inline MPI_Op mpi_op_of(rondo_op_t op, rondo_type_t type)
{
    const MPI_Op ops[RONDO_NUM_OPS] = {MPI_SUM,  MPI_PROD, MPI_MIN, MPI_MAX,  MPI_OP_NULL, MPI_BAND,  MPI_BOR,
                                       MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_MINLOC,  MPI_MAXLOC};

    if (type == RONDO_BOOL && (op == RONDO_SUM || op == RONDO_BOR))
        return MPI_LOR;
    if (type == RONDO_BOOL && (op == RONDO_PROD || op == RONDO_BAND))
        return MPI_LAND;
    if (type == RONDO_BOOL && op == RONDO_BXOR)
        return MPI_LXOR;
    return ops[op];
}

#endif
