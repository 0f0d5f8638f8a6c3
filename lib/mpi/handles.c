/* Named types and operators: which of rondo's they are, and which pairs MPI allows. What MPI refuses goes to the MPI,
 * so that it refuses it; rondo itself has more, such as logical operators on floating types.
 *
 * The handles of named types and operators are fixed for the life of the MPI, so a small table by handle serves. */
#include <string.h>

#include "mpi/interpose.h"

#define BIT(op) (1u << (op))
enum {
    ARITHMETIC = BIT(RONDO_SUM) | BIT(RONDO_PROD),
    ORDER = BIT(RONDO_MIN) | BIT(RONDO_MAX),
    LOGIC = BIT(RONDO_LAND) | BIT(RONDO_LOR) | BIT(RONDO_LXOR),
    BITS = BIT(RONDO_BAND) | BIT(RONDO_BOR) | BIT(RONDO_BXOR),
    INTEGER = ARITHMETIC | ORDER | LOGIC | BITS, /* MPI's classes of types: C's integers, */
    OTHER_INTEGER = ARITHMETIC | ORDER | BITS,   /* Fortran's, and those of several languages */
    FLOATING = ARITHMETIC | ORDER,
    COMPLEX = ARITHMETIC,
    LOGICAL = LOGIC,
    BYTE = BITS,
    PAIR = BIT(RONDO_MINLOC) | BIT(RONDO_MAXLOC),
    NONE = 0
};

#define TYPES 256 /* a power of two, several times the number of named types */
#define OPS 64
static rd_mpi_named_t types[TYPES];
static struct {
    MPI_Op handle;
    int rondo;
    bool used;
} ops[OPS];

static unsigned hash_slot(uintptr_t handle, unsigned bits)
{
    return (unsigned)(handle * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

const rd_mpi_named_t *rd_mpi_named(MPI_Datatype type)
{
    for (unsigned i = hash_slot((uintptr_t)type, 8);; i = (i + 1) % TYPES) {
        if (types[i].handle == type)
            return &types[i];
        if (types[i].handle == MPI_DATATYPE_NULL)
            return NULL;
    }
}

/* May it be one of the user's? MPICH, whose handles say what they are, has other operators of its own (MPIX_EQUAL). */
#ifdef OPEN_MPI
static bool may_be_users(MPI_Op op)
{
    return op != NULL;
}

bool rd_mpi_is_type(MPI_Datatype type)
{
    return type != NULL && type != MPI_DATATYPE_NULL;
}
#else
enum { TYPE = 3, OPERATOR = 6, BUILTIN = 1 };

/* What a handle is of, and how it is kept: 0 is no handle, 1 is builtin. */
static unsigned is_of(unsigned handle)
{
    return handle >> 26 & 15;
}

static unsigned kept_as(unsigned handle)
{
    return handle >> 30;
}

static bool may_be_users(MPI_Op op)
{
    return is_of((unsigned)op) == OPERATOR && kept_as((unsigned)op) > BUILTIN;
}

bool rd_mpi_is_type(MPI_Datatype type)
{
    return is_of((unsigned)type) == TYPE && kept_as((unsigned)type) >= BUILTIN;
}
#endif

int rd_mpi_op(MPI_Op op)
{
    for (unsigned i = hash_slot((uintptr_t)op, 6);; i = (i + 1) % OPS) {
        if (!ops[i].used)
            return may_be_users(op) ? -2 : -1;
        if (ops[i].handle == op)
            return ops[i].rondo;
    }
}

static void add_op(MPI_Op op, int rondo)
{
    unsigned i = hash_slot((uintptr_t)op, 6);

    while (ops[i].used)
        i = (i + 1) % OPS;
    ops[i].handle = op;
    ops[i].rondo = rondo;
    ops[i].used = true;
}

/* `rondo` of -1 is a type that rondo does not have. A type that this MPI lacks (Fortran's, without a compiler) is left
 * out. */
static void add(MPI_Datatype type, int rondo, unsigned allowed)
{
    unsigned i = hash_slot((uintptr_t)type, 8);
    MPI_Count size = 0, lb, extent;

    if (type == MPI_DATATYPE_NULL || rd_mpi_named(type))
        return;
    PMPI_Type_size_x(type, &size);
    PMPI_Type_get_extent_x(type, &lb, &extent);
    while (types[i].handle != MPI_DATATYPE_NULL)
        i = (i + 1) % TYPES;
    types[i] = (rd_mpi_named_t){type, rondo, allowed, (size_t)size, lb == 0 && extent == size};
    if (rondo >= 0 && rondo_type_size((rondo_type_t)rondo) != (size_t)extent)
        types[i].rondo = -1;
}

static int integer_of(size_t size, bool is_signed)
{
    switch (size) {
    case 1:
        return is_signed ? RONDO_INT8 : RONDO_UINT8;
    case 2:
        return is_signed ? RONDO_INT16 : RONDO_UINT16;
    case 4:
        return is_signed ? RONDO_INT32 : RONDO_UINT32;
    case 8:
        return is_signed ? RONDO_INT64 : RONDO_UINT64;
    default:
        return -1;
    }
}

/* One of a kind whose length depends on the machine or on Fortran's compiler. */
static void add_sized(MPI_Datatype type, unsigned class)
{
    int size = 0, rondo = -1;

    if (type == MPI_DATATYPE_NULL)
        return;
    PMPI_Type_size(type, &size);
    if (class == OTHER_INTEGER || class == LOGICAL)
        rondo = integer_of((size_t)size, true);
    else if (class == FLOATING)
        rondo = size == 4 ? RONDO_FLOAT32 : size == 8 ? RONDO_FLOAT64 : -1;
    else if (class == COMPLEX)
        rondo = size == 8 ? RONDO_COMPLEX64 : size == 16 ? RONDO_COMPLEX128 : -1;
    add(type, rondo, class);
}

/* To Open MPI a character has a sign on every machine, to MPICH where C's has. */
static bool has_sign(MPI_Datatype type)
{
    unsigned char least = 1;

    PMPI_Reduce_local((unsigned char[]){200}, &least, 1, type, MPI_MIN);
    return least != 1;
}

/* MPI allows no operators for a character, but every MPI at hand takes those of arithmetic, and benchmarks reduce
 * nothing else. Which ones, the MPI is asked, by calls that are over at once and whose errors are returned. Logical and
 * bitwise ones some take, and then end by an assertion. An MPI without Fortran may have a handle, but no type: it is
 * asked for nothing then, for it need not look at arguments. */
static void add_char(MPI_Datatype type)
{
    unsigned taken = NONE;
    int size = 0;

    if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS || size != 1)
        return;
    for (int i = 0; i < OPS; i++) {
        char one = 1, result;
        if (ops[i].used && ops[i].rondo >= 0 && ((ARITHMETIC | ORDER) & BIT(ops[i].rondo)) &&
            PMPI_Allreduce(&one, &result, 1, type, ops[i].handle, rd_mpi_private) == MPI_SUCCESS)
            taken |= BIT(ops[i].rondo);
    }
    add(type, integer_of(1, (taken & BIT(RONDO_MIN)) && has_sign(type)), taken);
}

static void add_c(void)
{
    add(MPI_SIGNED_CHAR, RONDO_INT8, INTEGER);
    add(MPI_UNSIGNED_CHAR, RONDO_UINT8, INTEGER);
    add(MPI_SHORT, RONDO_INT16, INTEGER);
    add(MPI_UNSIGNED_SHORT, RONDO_UINT16, INTEGER);
    add(MPI_INT, RONDO_INT32, INTEGER);
    add(MPI_UNSIGNED, RONDO_UINT32, INTEGER);
    add(MPI_LONG, integer_of(sizeof(long), true), INTEGER);
    add(MPI_UNSIGNED_LONG, integer_of(sizeof(long), false), INTEGER);
    add(MPI_LONG_LONG_INT, RONDO_INT64, INTEGER);
    add(MPI_UNSIGNED_LONG_LONG, RONDO_UINT64, INTEGER);
    add(MPI_INT8_T, RONDO_INT8, INTEGER);
    add(MPI_INT16_T, RONDO_INT16, INTEGER);
    add(MPI_INT32_T, RONDO_INT32, INTEGER);
    add(MPI_INT64_T, RONDO_INT64, INTEGER);
    add(MPI_UINT8_T, RONDO_UINT8, INTEGER);
    add(MPI_UINT16_T, RONDO_UINT16, INTEGER);
    add(MPI_UINT32_T, RONDO_UINT32, INTEGER);
    add(MPI_UINT64_T, RONDO_UINT64, INTEGER);
    add(MPI_AINT, RONDO_INT64, OTHER_INTEGER);
    add(MPI_OFFSET, RONDO_INT64, OTHER_INTEGER);
    add(MPI_COUNT, RONDO_INT64, OTHER_INTEGER);
    add(MPI_FLOAT, RONDO_FLOAT32, FLOATING);
    add(MPI_DOUBLE, RONDO_FLOAT64, FLOATING);
    add(MPI_LONG_DOUBLE, -1, FLOATING);
    add(MPI_C_FLOAT_COMPLEX, RONDO_COMPLEX64, COMPLEX);
    add(MPI_C_DOUBLE_COMPLEX, RONDO_COMPLEX128, COMPLEX);
    add(MPI_C_LONG_DOUBLE_COMPLEX, -1, COMPLEX);
    add(MPI_CXX_FLOAT_COMPLEX, RONDO_COMPLEX64, COMPLEX);
    add(MPI_CXX_DOUBLE_COMPLEX, RONDO_COMPLEX128, COMPLEX);
    add(MPI_C_BOOL, RONDO_BOOL, LOGICAL);
    add(MPI_CXX_BOOL, RONDO_BOOL, LOGICAL);
    add(MPI_BYTE, RONDO_UINT8, BYTE);
    add_char(MPI_CHAR);
    add(MPI_PACKED, -1, NONE);
    add(MPI_WCHAR, -1, NONE);
    add(MPI_FLOAT_INT, RONDO_FLOAT32_INT32, PAIR);
    add(MPI_DOUBLE_INT, RONDO_FLOAT64_INT32, PAIR);
    add(MPI_LONG_INT, sizeof(long) == 8 ? RONDO_INT64_INT32 : RONDO_INT32_INT32, PAIR);
    add(MPI_2INT, RONDO_INT32_INT32, PAIR);
    add(MPI_SHORT_INT, -1, PAIR);
    add(MPI_LONG_DOUBLE_INT, -1, PAIR);
}

static void add_fortran(void)
{
    add_sized(MPI_INTEGER, OTHER_INTEGER);
    add_sized(MPI_INTEGER1, OTHER_INTEGER);
    add_sized(MPI_INTEGER2, OTHER_INTEGER);
    add_sized(MPI_INTEGER4, OTHER_INTEGER);
    add_sized(MPI_INTEGER8, OTHER_INTEGER);
    add_sized(MPI_REAL, FLOATING);
    add_sized(MPI_REAL4, FLOATING);
    add_sized(MPI_REAL8, FLOATING);
    add_sized(MPI_REAL16, FLOATING);
    add_sized(MPI_DOUBLE_PRECISION, FLOATING);
    add_sized(MPI_COMPLEX, COMPLEX);
    add_sized(MPI_COMPLEX8, COMPLEX);
    add_sized(MPI_COMPLEX16, COMPLEX);
    add_sized(MPI_COMPLEX32, COMPLEX);
    add_sized(MPI_DOUBLE_COMPLEX, COMPLEX);
    add_sized(MPI_LOGICAL, LOGICAL);
    add_char(MPI_CHARACTER);
    add(MPI_2REAL, RONDO_FLOAT32_FLOAT32, PAIR);
    add(MPI_2DOUBLE_PRECISION, RONDO_FLOAT64_FLOAT64, PAIR);
    add(MPI_2INTEGER, RONDO_INT32_INT32, PAIR);
}

void rd_mpi_handles_start(void)
{
    const MPI_Op handles[RONDO_NUM_OPS] = {
        [RONDO_SUM] = MPI_SUM,       [RONDO_PROD] = MPI_PROD, [RONDO_MIN] = MPI_MIN,   [RONDO_MAX] = MPI_MAX,
        [RONDO_AVG] = MPI_OP_NULL,   [RONDO_BAND] = MPI_BAND, [RONDO_BOR] = MPI_BOR,   [RONDO_BXOR] = MPI_BXOR,
        [RONDO_LAND] = MPI_LAND,     [RONDO_LOR] = MPI_LOR,   [RONDO_LXOR] = MPI_LXOR, [RONDO_MINLOC] = MPI_MINLOC,
        [RONDO_MAXLOC] = MPI_MAXLOC,
    };

    for (int i = 0; i < TYPES; i++)
        types[i].handle = MPI_DATATYPE_NULL;
    for (int op = 0; op < RONDO_NUM_OPS; op++) {
        if (handles[op] != MPI_OP_NULL)
            add_op(handles[op], op);
    }
    add_op(MPI_OP_NULL, -1);
    add_op(MPI_REPLACE, -1);
    add_op(MPI_NO_OP, -1);
    add_c();
    add_fortran();
}
