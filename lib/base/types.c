/* The types and operators: sizes, names, and which operator makes sense for which type. There is one row for each type
 * and one for each operator; everything else reads the rows. types.h defines what an operator means for a type. */
#include <strings.h>

#include "base/types.h"

enum { INTEGER = 1, FLOATING = 2, COMPLEX = 4, LOGICAL = 8, PAIR = 16 };

const rd_type_row_t rd_types[] = {
    [RONDO_INT8] = {"int8", "char", 1, INTEGER},
    [RONDO_UINT8] = {"uint8", "byte", 1, INTEGER},
    [RONDO_INT16] = {"int16", "short", 2, INTEGER},
    [RONDO_UINT16] = {"uint16", NULL, 2, INTEGER},
    [RONDO_INT32] = {"int32", "int", 4, INTEGER},
    [RONDO_UINT32] = {"uint32", NULL, 4, INTEGER},
    [RONDO_INT64] = {"int64", "long", 8, INTEGER},
    [RONDO_UINT64] = {"uint64", NULL, 8, INTEGER},
    [RONDO_FLOAT16] = {"float16", "half", 2, FLOATING},
    [RONDO_BFLOAT16] = {"bfloat16", "bf16", 2, FLOATING},
    [RONDO_FLOAT32] = {"float32", "float", 4, FLOATING},
    [RONDO_FLOAT64] = {"float64", "double", 8, FLOATING},
    [RONDO_FLOAT8_E4M3] = {"float8_e4m3", "fp8_e4m3", 1, FLOATING},
    [RONDO_FLOAT8_E5M2] = {"float8_e5m2", "fp8_e5m2", 1, FLOATING},
    [RONDO_COMPLEX64] = {"complex64", NULL, 8, COMPLEX},
    [RONDO_COMPLEX128] = {"complex128", NULL, 16, COMPLEX},
    [RONDO_BOOL] = {"bool", NULL, 1, LOGICAL},
    [RONDO_FLOAT32_INT32] = {"float32_int32", "float_int", 8, PAIR},
    [RONDO_FLOAT64_INT32] = {"float64_int32", "double_int", 16, PAIR},
    [RONDO_INT32_INT32] = {"int32_int32", "2int", 8, PAIR},
    [RONDO_INT64_INT32] = {"int64_int32", "long_int", 16, PAIR},
    [RONDO_FLOAT32_FLOAT32] = {"float32_float32", "2real", 8, PAIR},
    [RONDO_FLOAT64_FLOAT64] = {"float64_float64", "2double", 16, PAIR},
};
_Static_assert(sizeof rd_types / sizeof rd_types[0] == RONDO_NUM_TYPES, "a row for each type");

typedef struct {
    const char *name;
    int kinds; /* the kinds of types that it makes sense for */
} op_row_t;

static const op_row_t ops[RONDO_NUM_OPS] = {
    [RONDO_SUM] = {"sum", INTEGER | FLOATING | COMPLEX | LOGICAL},
    [RONDO_PROD] = {"prod", INTEGER | FLOATING | COMPLEX | LOGICAL},
    [RONDO_MIN] = {"min", INTEGER | FLOATING},
    [RONDO_MAX] = {"max", INTEGER | FLOATING},
    [RONDO_AVG] = {"avg", INTEGER | FLOATING | COMPLEX},
    [RONDO_BAND] = {"band", INTEGER | LOGICAL},
    [RONDO_BOR] = {"bor", INTEGER | LOGICAL},
    [RONDO_BXOR] = {"bxor", INTEGER | LOGICAL},
    [RONDO_LAND] = {"land", INTEGER | LOGICAL},
    [RONDO_LOR] = {"lor", INTEGER | LOGICAL},
    [RONDO_LXOR] = {"lxor", INTEGER | LOGICAL},
    [RONDO_MINLOC] = {"minloc", PAIR},
    [RONDO_MAXLOC] = {"maxloc", PAIR},
};

/* The arguments come from users' ints: the enum's range cannot be relied on. */
static bool type_known(rondo_type_t type)
{
    return (int)type >= 0 && (int)type < RONDO_NUM_TYPES;
}

static bool op_known(rondo_op_t op)
{
    return op >= 0 && op < RONDO_NUM_OPS;
}

size_t rondo_type_size(rondo_type_t type)
{
    return type_known(type) ? rd_types[type].size : 0;
}

bool rd_type_floating(rondo_type_t type)
{
    return type_known(type) && rd_types[type].kind == FLOATING;
}

const char *rd_type_name(rondo_type_t type)
{
    return type_known(type) ? rd_types[type].name : NULL;
}

const char *rd_op_name(rondo_op_t op)
{
    return op_known(op) ? ops[op].name : NULL;
}

int rd_type_parse(const char *name, rondo_type_t *type)
{
    for (int i = 0; i < RONDO_NUM_TYPES; i++) {
        if (strcasecmp(name, rd_types[i].name) == 0 ||
            (rd_types[i].alias && strcasecmp(name, rd_types[i].alias) == 0)) {
            *type = (rondo_type_t)i;
            return 0;
        }
    }
    return -1;
}

int rd_op_parse(const char *name, rondo_op_t *op)
{
    for (int i = 0; i < RONDO_NUM_OPS; i++) {
        if (strcasecmp(name, ops[i].name) == 0) {
            *op = i;
            return 0;
        }
    }
    return -1;
}

bool rd_op_valid(rondo_op_t op, rondo_type_t type)
{
    return op_known(op) && type_known(type) && (ops[op].kinds & rd_types[type].kind) != 0;
}
