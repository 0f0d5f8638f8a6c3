/* What the operators do to two integers, for references: `a` and `b` are extended to 64 bits by their type's sign. */
#ifndef TEST_INTEGER_OP_H
#define TEST_INTEGER_OP_H

#include <rondo.h>
#include <stdint.h>

/* Not yet wrapped to the type. An average is its sum. */
static inline uint64_t integer_op(rondo_type_t type, rondo_op_t op, uint64_t a, uint64_t b)
{
    int is_signed = type == RONDO_INT8 || type == RONDO_INT16 || type == RONDO_INT32 || type == RONDO_INT64;
    int less = is_signed ? (int64_t)a < (int64_t)b : a < b;

    switch (op) {
    case RONDO_SUM:
    case RONDO_AVG:
        return type == RONDO_BOOL ? a || b : a + b;
    case RONDO_PROD:
        return type == RONDO_BOOL ? a && b : a * b;
    case RONDO_MIN:
        return less ? a : b;
    case RONDO_MAX:
        return less ? b : a;
    case RONDO_BAND:
        return a & b;
    case RONDO_BOR:
        return a | b;
    case RONDO_BXOR:
        return a ^ b;
    case RONDO_LAND:
        return a && b;
    case RONDO_LOR:
        return a || b;
    default:
        return !a != !b;
    }
}

#endif
