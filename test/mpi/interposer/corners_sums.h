/* Corners of sums: every type with every operator, other names of types, ties, bits. A part of corners.c. */
#ifndef RD_TEST_CORNERS_SUMS_H
#define RD_TEST_CORNERS_SUMS_H

#include <limits.h>
#include <string.h>

#include "corner.h"

/* One type with one operator gives what the MPI gives, or is refused as the MPI refuses it. */
static void check_pair(unsigned t, MPI_Datatype type, unsigned o, MPI_Op op)
{
    unsigned char in[64] = {0}, out[2][64];
    int size, class[2];

    MPI_Type_size(type, &size);
    in[0] = (unsigned char)(rank & 1); /* small as an integer, and as the last bits of others */
    if (size == 4)
        memcpy(in, rank ? (float[]){3} : (float[]){2}, 4);
    if (size == 8)
        memcpy(in, rank ? (double[]){3} : (double[]){2}, 8);
    memset(out, 0x55, sizeof out);
    class[0] = MPI_Allreduce(in, out[0], 1, type, op, MPI_COMM_WORLD);
    class[1] = PMPI_Allreduce(in, out[1], 1, type, op, MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++)
        MPI_Error_class(class[i], &class[i]);
    CHECK(class[0] == class[1], "type %u, operator %u: class %d, the MPI's is %d", t, o, class[0], class[1]);
    int same = memcmp(out[0], out[1], (size_t)size > 16 ? 16 : (size_t)size) == 0;
    CHECK(class[1] != MPI_SUCCESS || type == MPI_LONG_DOUBLE || type == MPI_DOUBLE_INT || same,
          "type %u, operator %u: another answer than the MPI's", t, o);
}

/* MPICH 4.0 itself ends by an assertion at logical and bitwise operators of types that it takes, but cannot do. */
#ifdef OPEN_MPI
#define CHECKABLE(t, o) 1
#else
#define CHECKABLE(t, o)                                                                                                \
    ((o) < 4 || (o) > 9 || !((t) >= 31 || ((t) >= 11 && (t) <= 13) || (t) == 0 || (t) == 4 || ((t) >= 16 && (t) <= 21)))
#endif

/* 25: every named type with every operator. */
static void matrix(void)
{
    /* clang-format off */
    const MPI_Datatype types[] = {
        MPI_CHAR, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_BYTE, MPI_WCHAR, MPI_SHORT, MPI_UNSIGNED_SHORT, MPI_INT,
        MPI_UNSIGNED, MPI_LONG, MPI_UNSIGNED_LONG, MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_LONG_LONG_INT,
        MPI_UNSIGNED_LONG_LONG, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT,
        MPI_LONG_DOUBLE_INT, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T,
        MPI_UINT32_T, MPI_UINT64_T, MPI_C_BOOL, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX,
        MPI_C_LONG_DOUBLE_COMPLEX, MPI_AINT, MPI_OFFSET, MPI_COUNT, MPI_PACKED, MPI_CHARACTER, MPI_LOGICAL,
        MPI_INTEGER, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_2INTEGER, MPI_2REAL,
        MPI_2DOUBLE_PRECISION
    };
    /* clang-format on */
    const MPI_Op ops[] = {MPI_SUM,  MPI_PROD, MPI_MIN,  MPI_MAX,    MPI_LAND,   MPI_LOR,    MPI_LXOR,
                          MPI_BAND, MPI_BOR,  MPI_BXOR, MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE};
    int pairs = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (unsigned t = 0; t < sizeof types / sizeof types[0]; t++)
        for (unsigned o = 0; o < sizeof ops / sizeof ops[0]; o++) {
            if (types[t] == MPI_DATATYPE_NULL || !CHECKABLE(t, o))
                continue;
            check_pair(t, types[t], o, ops[o]);
            pairs++;
        }
    CHECK(pairs > 350, "%d pairs", pairs);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* 25: MPI allows no operators for MPI_CHAR, but these MPIs take it, and programs use it. */
static void characters(void)
{
    char in[3], sum[3], least[3];

    for (int i = 0; i < 10; i++) {
        for (int k = 0; k < 3; k++)
            in[k] = (char)(100 * rank + 50 * k + i);
        MPI_Allreduce(in, sum, 3, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(in, least, 3, MPI_CHAR, MPI_MIN, MPI_COMM_WORLD);
        for (int k = 0; k < 3; k++) {
            char all = 0, min = CHAR_MAX;
            for (int r = 0; r < nranks; r++) {
                char its = (char)(100 * r + 50 * k + i);
                all = (char)(all + its);
                min = its < min ? its : min;
            }
            CHECK(sum[k] == all && least[k] == min, "sum %d, least %d", sum[k], least[k]);
        }
    }
}

/* 25: other names of a basic type give what the MPI gives, or, where that refuses a duplicate, the sum. */
static void names(void)
{
    MPI_Datatype types[6], row;
    double pair[2] = {1 + rank, 2 + rank};

    MPI_Type_dup(MPI_DOUBLE, &types[0]);
    MPI_Type_dup(types[0], &types[1]);
    MPI_Type_create_f90_real(15, MPI_UNDEFINED, &types[2]);
    MPI_Type_create_f90_integer(9, &types[3]);
    MPI_Type_create_f90_complex(6, MPI_UNDEFINED, &types[4]);
    MPI_Type_dup(types[2], &types[5]);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int t = 0; t < 6; t++) {
        double in[2] = {1.5 + rank, rank}, out[2][2] = {{-1, -1}, {-1, -1}};
        int code = MPI_Allreduce(in, out[0], 1, types[t], MPI_SUM, MPI_COMM_WORLD);
        if (PMPI_Allreduce(in, out[1], 1, types[t], MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS)
            out[1][0] = code == MPI_SUCCESS ? 1.5 * nranks + nranks * (nranks - 1) / 2 : -1;
        CHECK(memcmp(out[0], out[1], sizeof out[0]) == 0, "type %d: %g, the MPI's is %g", t, out[0][0], out[1][0]);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Type_free(&types[0]);
    MPI_Type_free(&types[1]);
    MPI_Type_free(&types[5]);
    MPI_Type_contiguous(2, types[2], &row); /* a row of what MPI will not have freed */
    MPI_Type_commit(&row);
    MPI_Bcast(pair, 1, row, 0, MPI_COMM_WORLD);
    CHECK(pair[0] == 1 && pair[1] == 2, "a row is %g %g", pair[0], pair[1]);
    MPI_Type_free(&row);
}

/* 29: of equal values the lowest index. */
static void ties(void)
{
    struct {
        double value;
        int index;
    } in = {5, nranks - rank}, out;
    int pair[2] = {7, nranks - rank}, least[2];

    for (int i = 0; i < 3; i++) {
        MPI_Op op = i % 2 ? MPI_MINLOC : MPI_MAXLOC;
        MPI_Allreduce(&in, &out, 1, MPI_DOUBLE_INT, op, MPI_COMM_WORLD);
        CHECK(out.value == 5 && out.index == 1, "%g at %d", out.value, out.index);
        MPI_Allreduce(pair, least, 1, MPI_2INT, op, MPI_COMM_WORLD);
        CHECK(least[0] == 7 && least[1] == 1, "%d at %d", least[0], least[1]);
    }
}

/* 29: every rank has the same bits, and the same again. */
static void equal_bits(void)
{
    double in[100], out[100], again[100], first[100];

    for (int i = 0; i < 100; i++)
        in[i] = 1.0 / (1 + i + 7 * rank);
    MPI_Allreduce(in, out, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(in, again, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    memcpy(first, out, sizeof out);
    MPI_Bcast(first, 100, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    CHECK(memcmp(out, first, sizeof out) == 0, "rank 0 has other bits");
    CHECK(memcmp(out, again, sizeof out) == 0, "the second call gives other bits");
}

static double element(int i, int r)
{
    return 1.0 / (3 + i + 7 * r);
}

/* Is each of them x0 + (x1 + (... + xlast))? */
static void check_order(const char *what, const double *out, int n, int first, int last)
{
    for (int i = 0; i < n; i++) {
        double sum = element(first + i, last);
        for (int r = last - 1; r >= 0; r--)
            sum = element(first + i, r) + sum;
        if (sum != out[i]) {
            CHECK(0, "%s, %d elements, element %d: %a, in order %a", what, n, i, out[i], sum);
            return;
        }
    }
}

enum { LONG = 50000 };
static void in_order_on(MPI_Comm comm, int n)
{
    static double in[LONG], out[LONG];
    int place, root = n % nranks, block = n / nranks;

    MPI_Comm_rank(comm, &place);
    for (int i = 0; i < n; i++)
        in[i] = element(i, place);
    MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, comm);
    check_order("allreduce", out, n, 0, nranks - 1);
    MPI_Reduce_scatter_block(in, out, block, MPI_DOUBLE, MPI_SUM, comm);
    check_order("reduce_scatter_block", out, block, place * block, nranks - 1);
    MPI_Reduce(in, out, n, MPI_DOUBLE, MPI_SUM, root, comm);
    if (place == root)
        check_order("reduce", out, n, 0, nranks - 1);
    MPI_Scan(in, out, n, MPI_DOUBLE, MPI_SUM, comm);
    check_order("scan", out, n, 0, place);
    memcpy(out, in, sizeof *in * (size_t)n);
    MPI_Allreduce(MPI_IN_PLACE, out, n, MPI_DOUBLE, MPI_SUM, comm);
    check_order("allreduce in place", out, n, 0, nranks - 1);
}

/* Those that do not block are one piece, however long. */
static void scans_behind(void)
{
    static double in[LONG], out[LONG];

    warm_all(MPI_COMM_WORLD);
    for (int n = LONG / 1000; n <= LONG; n *= 1000) {
        MPI_Request request;
        for (int i = 0; i < n; i++)
            in[i] = element(i, rank);
        MPI_Iscan(in, out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_order("iscan", out, n, 0, rank);
    }
}

/* 29: with RONDO_MPI_REPRODUCIBLE sums are x0 + (x1 + (... + xn)), short and long, whoever serves them: also the first
 * on a communicator. */
static void in_order(void)
{
    for (int n = 1; n <= LONG; n = n * 13 + 2) {
        MPI_Comm other;
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &other);
        in_order_on(other, n);
        in_order_on(MPI_COMM_WORLD, n);
        MPI_Comm_free(&other);
    }
    scans_behind();
}

/* Do as many calls as make rondo serve give one answer? `out` gets that. */
static void sum_again(double *out, int n, MPI_Comm comm)
{
    static double in[LONG], again[LONG];
    int place;

    MPI_Comm_rank(comm, &place);
    for (int i = 0; i < n; i++)
        in[i] = element(i, place);
    for (int k = 0; k < MANY; k++) {
        MPI_Allreduce(in, k ? again : out, n, MPI_DOUBLE, MPI_SUM, comm);
        CHECK(!k || memcmp(out, again, sizeof *out * (size_t)n) == 0, "call %d gives other bits", k);
    }
}

/* 4, 29: rank 1 is switched off. Where it is, the bits are the MPI's, from the first call on; elsewhere in order. */
static void in_order_without(void)
{
    static double out[LONG];
    MPI_Comm all, part;
    int n = LONG / 10, size;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &all);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 1, rank, &part);
    MPI_Comm_size(part, &size);
    sum_again(out, n, all);
    sum_again(out, n, part);
    check_order("without rank 1", out, n, 0, size - 1);
    MPI_Comm_free(&all);
    MPI_Comm_free(&part);
}

/* 29: a list switches some off (interposer_corners.sh), on rank 1 another one: the bits of those are the MPI's, from
 * the first call on, and others are in order. */
static void in_order_but(void)
{
    static double in[LONG], out[LONG], first[LONG];
    MPI_Comm comm;
    int n = LONG / 10;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    sum_again(out, n, comm);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
    for (int i = 0; i < n * nranks; i++)
        in[i] = element(i, rank);
    for (int k = 0; k < MANY; k++) {
        MPI_Reduce_scatter_block(in, k ? out : first, n, MPI_DOUBLE, MPI_SUM, comm);
        CHECK(!k || memcmp(out, first, sizeof *out * (size_t)n) == 0, "block: call %d gives other bits", k);
        MPI_Reduce(in, out, n, MPI_DOUBLE, MPI_SUM, 0, comm);
        if (!rank)
            check_order("reduce", out, n, 0, nranks - 1);
    }
    MPI_Comm_free(&comm);
}

/* 26: a builtin operator that only the MPI knows, played by behind.c, is not taken for one of the user's. */
static void builtin(void)
{
#ifndef OPEN_MPI
    int one = 1, got = -1;

    plain();
    MPI_Allreduce(&one, &got, 1, MPI_INT, (MPI_Op)0x5800000f, MPI_COMM_WORLD);
    CHECK(got == 99, "another operator gives %d", got);
#endif
}

#endif
