/* The corners that make interposers wrong, each by its number in doc/notebook/host.md: what must hold with librondo_mpi.so
 * as without. Everything that a correct program may rely on; a hang ends by the caller's time limit.
 *
 *   mpirun -n N corners NAME...   (2 to 64 ranks)
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../util/comma.h"
#include "corner.h"

/* 3 to 5 in setup.c's manner: nothing but results. */
static void plain(void)
{
    for (int i = 0; i < MANY; i++)
        CHECK(sum_of(rank + i, MPI_COMM_WORLD) == nranks * (nranks - 1) / 2 + nranks * i, "the sum of call %d", i);
}

/* 8: what a peer sends before it comes to the collective is long, so this rank's MPI must answer meanwhile. */
static void progress(void)
{
    enum { LONG = 4 << 20 };
    char *buffer = calloc(1, LONG);
    MPI_Comm other;
    MPI_Request request;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &other);
    for (int round = 0; round < 2 * MANY; round++) { /* also while rondo's communicator for `other` is made: 9 */
        MPI_Comm comm = round % 2 ? other : MPI_COMM_WORLD;
        if (rank == 0)
            MPI_Irecv(buffer, LONG, MPI_CHAR, nranks - 1, 5, MPI_COMM_WORLD, &request);
        if (rank == nranks - 1)
            MPI_Send(buffer, LONG, MPI_CHAR, 0, 5, MPI_COMM_WORLD);
        CHECK(sum_of(1, comm) == nranks, "the sum");
        if (rank == 0)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&other);
    free(buffer);
}

/* 10: what else is in flight goes on at a rank that waits in a collective. */
static void in_flight(void)
{
    int one = 1, sum = 0, *cell, put = 40 + rank, last = nranks - 1;
    MPI_Comm dup;
    MPI_Request request;
    MPI_Win win;

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    warm(MPI_COMM_WORLD);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, dup, &request);
    if (rank == last) /* the others are in the barrier, and so must the reduction go on */
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == nranks, "a nonblocking sum is %d", sum);
    MPI_Win_allocate(sizeof *cell, sizeof *cell, MPI_INFO_NULL, MPI_COMM_WORLD, &cell, &win);
    *cell = 7;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == last) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Put(&put, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    CHECK(*cell == (rank ? 7 : 40 + last), "what was put is %d", *cell);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
    MPI_Comm_free(&dup);
}

/* 11 */
static void barrier(void)
{
    double in, out, last_in, first_out;

    for (int i = 0; i < 6; i++) {
        usleep((useconds_t)(((rank + i) % nranks) * 8000));
        in = seconds();
        MPI_Barrier(MPI_COMM_WORLD);
        out = seconds();
        PMPI_Allreduce(&in, &last_in, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        PMPI_Allreduce(&out, &first_out, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        CHECK(first_out >= last_in, "a rank left %g s before the last came", last_in - first_out);
    }
}

/* 13: handles come back for other groups. */
static void handles(void)
{
    for (int i = 0; i < 8; i++) {
        MPI_Comm part;
        int size, place, color = i % 2 ? rank % 2 : rank < nranks / 2;
        MPI_Comm_split(MPI_COMM_WORLD, color, i % 3 ? -rank : rank, &part);
        MPI_Comm_size(part, &size);
        MPI_Comm_rank(part, &place);
        for (int k = 0; k < MANY; k++) {
            int value = place == size - 1 ? rank : -1;
            MPI_Bcast(&value, 1, MPI_INT, size - 1, part);
            CHECK(value >= 0 && value < nranks, "a broadcast gives %d", value);
            CHECK(sum_of(1, part) == size, "the sum in a part");
        }
        MPI_Comm_free(&part);
    }
}

/* MPI 4's calls with larger counts. */
static void large(void)
{
#if MPI_VERSION >= 4
    int in[MOST_RANKS], out[MOST_RANKS], total = nranks * (nranks - 1) / 2;
    MPI_Count counts[MOST_RANKS], one = 1;
    MPI_Aint displs[MOST_RANKS];
    MPI_Datatype row, gaps; /* the same bytes on all ranks */

    MPI_Type_contiguous_c(2, MPI_INT, &row);
    MPI_Type_vector_c(2, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&row);
    MPI_Type_commit(&gaps);
    for (int r = 0; r < nranks; r++) {
        counts[r] = 1;
        displs[r] = nranks - 1 - r;
        in[r] = rank;
    }
    for (int i = 0; i < 3; i++) {
        MPI_Allreduce_c(in, out, one, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(out[0] == total, "MPI_Allreduce_c");
        MPI_Allgatherv_c(in, one, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD);
        CHECK(out[0] == nranks - 1 && out[nranks - 1] == 0, "MPI_Allgatherv_c");
        MPI_Alltoallv_c(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD);
        CHECK(out[0] == nranks - 1 && out[nranks - 1] == 0, "MPI_Alltoallv_c");
        MPI_Reduce_scatter_c(in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(out[0] == total, "MPI_Reduce_scatter_c");
        MPI_Bcast_c(in, one, MPI_INT, 0, MPI_COMM_WORLD);
        CHECK(in[0] == 0, "MPI_Bcast_c");
        in[0] = rank;
        memset(out, rank ? -1 : 0, sizeof out);
        MPI_Bcast(out, 1, rank % 2 ? row : gaps, 0, MPI_COMM_WORLD);
        CHECK(!out[0] && !out[rank % 2 ? 1 : 2] && out[rank % 2 ? 2 : 1] == (rank ? -1 : 0), "types with larger counts");
    }
    MPI_Type_free(&gaps);
    MPI_Type_free(&row);
#endif
}

/* 22: MPI_BOTTOM with absolute addresses. */
static void bottom(void)
{
    static int a, b, all[2 * MOST_RANKS];
    int lengths[2] = {1, 1};
    MPI_Aint at[2];
    MPI_Datatype pair, types[2] = {MPI_INT, MPI_INT};

    MPI_Get_address(&a, &at[0]);
    MPI_Get_address(&b, &at[1]);
    MPI_Type_create_struct(2, lengths, at, types, &pair);
    MPI_Type_commit(&pair);
    for (int i = 0; i < 4; i++) {
        a = rank == 0 ? 11 + i : 0;
        b = rank == 0 ? 22 + i : 0;
        MPI_Bcast(MPI_BOTTOM, 1, pair, 0, MPI_COMM_WORLD);
        CHECK(a == 11 + i && b == 22 + i, "%d %d", a, b);
        a = rank;
        b = -rank;
        memset(all, 0, sizeof all);
        MPI_Allgather(MPI_BOTTOM, 1, pair, all, 2, MPI_INT, MPI_COMM_WORLD);
        for (int r = 0; r < nranks; r++)
            CHECK(all[2 * r] == r && all[2 * r + 1] == -r, "of rank %d: %d %d", r, all[2 * r], all[2 * r + 1]);
    }
    MPI_Type_free(&pair);
}

/* 23: one rank gets no block of a sum, and has no buffer for one. */
static void no_block(void)
{
    int in[MOST_RANKS], counts[MOST_RANKS], last = nranks - 1, got[2] = {-1, -1};
    MPI_Request request;

    for (int r = 0; r < nranks; r++) {
        in[r] = r;
        counts[r] = r != last;
    }
    MPI_Reduce_scatter(in, rank == last ? NULL : &got[0], counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Ireduce_scatter(in, rank == last ? NULL : &got[1], counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; i++)
        CHECK(got[i] == (rank == last ? -1 : rank * nranks), "a block of a sum is %d", got[i]);
#ifdef OPEN_MPI /* there is nothing before the first rank; MPICH asks for a buffer all the same */
    MPI_Exscan(&in[rank], rank ? &got[0] : NULL, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Iexscan(&in[rank], rank ? &got[1] : NULL, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; rank && i < 2; i++)
        CHECK(got[i] == rank * (rank - 1) / 2, "the sum of the ranks before is %d", got[i]);
#endif
    got[0] = 1 + rank; /* in place the first rank's buffer counts */
    MPI_Exscan(MPI_IN_PLACE, &got[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(!rank || got[0] == rank * (rank + 1) / 2, "the sum in place of the ranks before is %d", got[0]);
}

/* 23: a rank that only sends has nothing but that buffer. */
static void one_way(void)
{
    int sends[MOST_RANKS] = {0}, recvs[MOST_RANKS] = {0}, zeros[MOST_RANKS] = {0}, last = nranks - 1, got = -1;
    int value = 40 + rank;

    sends[last] = rank == 0;
    recvs[0] = rank == last;
    MPI_Alltoallv(&value, sends, zeros, MPI_INT, rank == last ? &got : &value, recvs, zeros, MPI_INT, MPI_COMM_WORLD);
    CHECK(value == 40 + rank && got == (rank == last ? 40 : -1), "one way: %d came", got);
}

/* 23: nothing to move, and no buffer either. */
static void nothing(void)
{
    int zeros[MOST_RANKS] = {0};
    MPI_Comm comm = MPI_COMM_WORLD;

    for (int i = 0; i < 3; i++) {
        MPI_Bcast(NULL, 0, MPI_INT, 0, comm);
        MPI_Reduce(NULL, NULL, 0, MPI_INT, MPI_SUM, 0, comm);
        MPI_Allreduce(MPI_IN_PLACE, NULL, 0, MPI_INT, MPI_SUM, comm);
        MPI_Reduce_scatter_block(MPI_IN_PLACE, NULL, 0, MPI_INT, MPI_SUM, comm);
        MPI_Reduce_scatter(MPI_IN_PLACE, NULL, zeros, MPI_INT, MPI_SUM, comm);
        MPI_Gather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, comm);
        MPI_Gatherv(NULL, 0, MPI_INT, NULL, zeros, zeros, MPI_INT, 0, comm);
        MPI_Scatter(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, comm);
        MPI_Scatterv(NULL, zeros, zeros, MPI_INT, NULL, 0, MPI_INT, 0, comm);
        MPI_Allgather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, comm);
        MPI_Allgatherv(NULL, 0, MPI_INT, NULL, zeros, zeros, MPI_INT, comm);
        MPI_Alltoall(NULL, 0, MPI_INT, NULL, 0, MPI_INT, comm);
        MPI_Alltoallv(NULL, zeros, zeros, MPI_INT, NULL, zeros, zeros, MPI_INT, comm);
        CHECK(sum_of(1, comm) == nranks, "the sum after nothing");
        no_block();
        one_way();
    }
}

/* 25: every named type with every operator. */
static void matrix(void)
{
    const MPI_Datatype types[] = {MPI_CHAR, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_BYTE, MPI_WCHAR, MPI_SHORT,
        MPI_UNSIGNED_SHORT, MPI_INT, MPI_UNSIGNED, MPI_LONG, MPI_UNSIGNED_LONG, MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE,
        MPI_LONG_LONG_INT, MPI_UNSIGNED_LONG_LONG, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT,
        MPI_LONG_DOUBLE_INT, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T,
        MPI_UINT64_T, MPI_C_BOOL, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX, MPI_AINT,
        MPI_OFFSET, MPI_COUNT, MPI_PACKED, MPI_CHARACTER, MPI_LOGICAL, MPI_INTEGER, MPI_REAL, MPI_DOUBLE_PRECISION,
        MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_2INTEGER, MPI_2REAL, MPI_2DOUBLE_PRECISION};
    const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR,
        MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE};
    unsigned char in[64], out[2][64];
    int pairs = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (unsigned t = 0; t < sizeof types / sizeof types[0]; t++) {
        int size;
        if (types[t] == MPI_DATATYPE_NULL)
            continue;
        MPI_Type_size(types[t], &size);
        for (unsigned o = 0; o < sizeof ops / sizeof ops[0]; o++) {
            int class[2], same;
#ifndef OPEN_MPI /* MPICH 4.0 itself ends by an assertion at those that it takes, but cannot do */
            if (o >= 4 && o <= 9 && (t >= 31 || (t >= 11 && t <= 13) || t == 0 || t == 4 || (t >= 16 && t <= 21)))
                continue;
#endif
            memset(in, 0, sizeof in);
            in[0] = (unsigned char)(rank & 1); /* small as an integer, and as the last bits of others */
            if (size == 4)
                memcpy(in, rank ? (float[]){3} : (float[]){2}, 4);
            if (size == 8)
                memcpy(in, rank ? (double[]){3} : (double[]){2}, 8);
            memset(out, 0x55, sizeof out);
            class[0] = MPI_Allreduce(in, out[0], 1, types[t], ops[o], MPI_COMM_WORLD);
            class[1] = PMPI_Allreduce(in, out[1], 1, types[t], ops[o], MPI_COMM_WORLD);
            for (int i = 0; i < 2; i++)
                MPI_Error_class(class[i], &class[i]);
            same = memcmp(out[0], out[1], (size_t)size > 16 ? 16 : (size_t)size) == 0;
            CHECK(class[0] == class[1], "type %u, operator %u: class %d, the MPI's is %d", t, o, class[0], class[1]);
            CHECK(class[1] != MPI_SUCCESS || types[t] == MPI_LONG_DOUBLE || types[t] == MPI_DOUBLE_INT || same,
                  "type %u, operator %u: another answer than the MPI's", t, o);
            pairs++;
        }
    }
    CHECK(pairs > 350, "%d pairs", pairs);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
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

/* 28: an int count of elements that reach over more than 2^31 bytes, of which few are touched, and displacements. */
static void huge(void)
{
    enum { EXTENT = 1 << 21, COUNT = 1025 };
    int counts[MOST_RANKS], displs[MOST_RANKS];
    size_t bytes = (size_t)EXTENT * COUNT;
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *last = at + bytes - EXTENT;
    MPI_Datatype sparse;

    CHECK(at != MAP_FAILED, "there is no memory");
    MPI_Type_create_resized(MPI_CHAR, 0, EXTENT, &sparse);
    MPI_Type_commit(&sparse);
    for (int r = 0; r < nranks; r++) {
        counts[r] = r == 0 || r == nranks - 1;
        displs[r] = r == 0 ? 0 : COUNT - 1;
    }
    for (int i = 0; i < COUNT; i++)
        at[(size_t)i * EXTENT] = (char)(rank ? -1 : i % 100);
    MPI_Bcast(at, COUNT, sparse, 0, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++)
        CHECK(at[(size_t)i * EXTENT] == i % 100 && !at[(size_t)i * EXTENT + 1], "element %d: %d", i,
              at[(size_t)i * EXTENT]);
    at[0] = *last = (char)(1 + rank);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_CHAR, at, counts, displs, sparse, MPI_COMM_WORLD);
    CHECK(at[0] == 1 && *last == nranks, "%d and %d are gathered", at[0], *last);
    MPI_Type_free(&sparse);
    munmap(at, bytes);
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

/* 29: with RONDO_MPI_REPRODUCIBLE sums are x0 + (x1 + (... + xn)), short and long, whatever serves them otherwise. */
static void in_order(void)
{
    enum { LONG = 50000 };
    static double in[LONG], out[LONG];

    for (int n = 1; n <= LONG; n = n * 13 + 2) {
        for (int i = 0; i < n; i++)
            in[i] = 1.0 / (3 + i + 7 * rank);
        MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) {
            double sum = 1.0 / (3 + i + 7 * (nranks - 1));
            for (int r = nranks - 2; r >= 0; r--)
                sum = 1.0 / (3 + i + 7 * r) + sum;
            if (sum != out[i]) {
                CHECK(0, "%d elements, element %d: %a, in order %a", n, i, out[i], sum);
                break;
            }
        }
    }
}

/* 32: a wildcard receive gets nothing of this. */
static void wildcard(void)
{
    MPI_Comm comm;
    MPI_Request request;
    MPI_Status status;
    int got = -1, token = 99;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
    warm(comm);
    CHECK(got == -1, "something came: %d", got);
    MPI_Send(&token, 1, MPI_INT, nranks - 1 - rank, 3, comm); /* to itself */
    MPI_Wait(&request, &status);
    CHECK(got == 99 && status.MPI_TAG == 3, "%d with tag %d came", got, status.MPI_TAG);
    MPI_Comm_free(&comm);
}

/* 33: those that stay the MPI's, mixed with those served. */
static void mixed(void)
{
    int one = 1, sums[3] = {0}, ring = 1, around[2], all[2 * MOST_RANKS], ones[MOST_RANKS], places[MOST_RANKS];
    MPI_Datatype types[MOST_RANKS];
    MPI_Comm cart;
    MPI_Request requests[2];

    for (int r = 0; r < nranks; r++) {
        ones[r] = 1;
        places[r] = r * (int)sizeof(int);
        types[r] = MPI_INT;
    }
    MPI_Cart_create(MPI_COMM_WORLD, 1, &nranks, &ring, 0, &cart);

    for (int i = 0; i < 20; i++) {
        MPI_Iallreduce(&one, &sums[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
        MPI_Allreduce(&one, &sums[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
        MPI_Scan(&one, &sums[2], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(sums[0] == nranks && sums[1] == nranks && sums[2] == rank + 1, "%d %d %d", sums[0], sums[1], sums[2]);
        MPI_Neighbor_allgather(&rank, 1, MPI_INT, around, 1, MPI_INT, cart);
        CHECK(around[0] == (rank + nranks - 1) % nranks && around[1] == (rank + 1) % nranks, "%d %d", around[0],
              around[1]);
        CHECK(sum_of(1, cart) == nranks, "the sum between those");
        MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, cart);
        MPI_Alltoallw(all, ones, places, types, all + nranks, ones, places, types, cart);
        MPI_Reduce_local(all, all + nranks, nranks, MPI_INT, MPI_SUM);
        CHECK(all[nranks] == rank && all[2 * nranks - 1] == rank + nranks - 1, "%d %d", all[nranks], all[2 * nranks - 1]);
    }
    MPI_Comm_free(&cart);
}

/* Often enough for each to be measured, of lengths that are alike and of such that differ by rank: whoever serves them
 * then, all ranks agree on it. */
static void choose(void)
{
    static int all[MOST_RANKS * MOST_RANKS];
    int counts[MOST_RANKS], displs[MOST_RANKS], mine[MOST_RANKS + 1], total = 0, one = rank, sum;

    for (int r = 0; r < nranks; r++) {
        counts[r] = r + 1;
        displs[r] = total;
        total += r + 1;
    }
    for (int i = 0; i <= MOST_RANKS; i++)
        mine[i] = rank;
    for (int i = 0; i < 200; i++) {
        int root = i % nranks, value = rank == root ? i : -1, ones[MOST_RANKS], back[MOST_RANKS];
        memset(all, -1, sizeof all);
        MPI_Bcast(&value, 1, MPI_INT, root, MPI_COMM_WORLD);
        MPI_Gatherv(mine, rank + 1, MPI_INT, all, counts, displs, MPI_INT, root, MPI_COMM_WORLD);
        for (int r = 0; rank == root && r < nranks; r++)
            CHECK(all[displs[r]] == r && all[displs[r] + r] == r, "of rank %d: %d", r, all[displs[r]]);
        MPI_Scatterv(all, counts, displs, MPI_INT, mine, rank + 1, MPI_INT, root, MPI_COMM_WORLD);
        MPI_Allgather(&one, 1, MPI_INT, ones, 1, MPI_INT, MPI_COMM_WORLD);
        MPI_Alltoall(ones, 1, MPI_INT, back, 1, MPI_INT, MPI_COMM_WORLD);
        CHECK(value == i && mine[0] == rank && mine[rank] == rank && ones[nranks - 1] == nranks - 1 && back[0] == rank,
              "call %d: %d %d %d %d", i, value, mine[0], ones[nranks - 1], back[0]);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == nranks * (nranks - 1) / 2, "sum %d is %d", i, sum);
    }
}

/* 4: rank 1's environment is another's. */
static void environment(void)
{
    if (rank == 1) {
        setenv("RONDO_MPI_SERVE", "-allreduce,bcast=0-8", 1);
        setenv("RONDO_MPI_AFTER", "2", 1);
        setenv("RONDO_MPI_REPRODUCIBLE", "1", 1);
        setenv("RONDO_MPI_TABLE", "off", 1);
    }
    plain();
    handles();
    choose();
}
static void environment_off(void)
{
    if (rank == nranks - 1)
        setenv("RONDO_MPI_SERVE", "off", 1);
    plain();
    handles();
}

/* 5: one rank cannot make its part. */
static void not_made(void)
{
    double began = seconds();

    if (rank == 1)
        setenv("RONDO_CMA", "banana", 1);
    plain();
    CHECK(seconds() - began < 60, "it took %g s", seconds() - began);
}

/* 20 */
static void leave(void)
{
    plain();
    fflush(stdout);
    exit(0);
}
static void abort_one(void)
{
    plain();
    fflush(stdout);
    if (rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 3);
    plain();
}
static void die(void)
{
    plain();
    fflush(stdout);
    if (rank == 1)
        raise(9);
    plain();
}

/* One goes while the others wait for it. */
static void leave_one(void)
{
    plain();
    fflush(stdout);
    if (rank == 1)
        exit(0);
    plain();
}

/* Buffers that are one, which MPI forbids, where the MPI takes them: on one rank alone, so that the others would wait. */
static void equal(void)
{
    int sum = 0, value = 1, all[MOST_RANKS], block = 7 + rank;

    for (int i = 0; i < 3; i++) {
        value = 1;
        MPI_Allreduce(&value, rank ? &sum : &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK((rank ? sum : value) == nranks, "the sum is %d", rank ? sum : value);
        all[0] = block;
        MPI_Gather(rank ? &block : all, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
        for (int r = 0; !rank && r < nranks; r++)
            CHECK(all[r] == 7 + r, "of rank %d: %d", r, all[r]);
    }
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

/* Five calls of each size; who serves them, the report says. */
static void table(void)
{
    static const int bytes[] = {8, 2048, 8192, 131072};
    static double in[16384], out[16384];
    MPI_Comm dup;

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    for (int i = 0; i < 16384; i++)
        in[i] = rank + i % 100;
    for (int call = 0; call < 20; call++) {
        int count = bytes[call % 4] / 8;
        MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        CHECK(out[count - 1] == nranks * (nranks - 1) / 2 + nranks * ((count - 1) % 100), "call %d", call);
        MPI_Bcast(out, count, MPI_DOUBLE, call % nranks, dup);
    }
    MPI_Comm_free(&dup);
}

/* In a program whose numbers have a comma. */
static void choose_comma(void)
{
    if (!comma_set())
        printf("skipped: comma\n");
    choose();
}

static const corner_t corners[] = {{"plain", plain}, {"progress", progress}, {"in_flight", in_flight}, {"barrier", barrier},
    {"handles", handles}, {"bottom", bottom}, {"nothing", nothing}, {"large", large}, {"matrix", matrix}, {"names", names}, {"ties", ties}, {"huge", huge}, {"equal_bits", equal_bits}, {"in_order", in_order},
    {"wildcard", wildcard}, {"mixed", mixed}, {"environment", environment}, {"environment_off", environment_off}, {"not_made", not_made}, {"leave", leave},
    {"abort", abort_one}, {"die", die}, {"leave_one", leave_one}, {"table", table}, {"choose", choose}, {"choose_comma", choose_comma},
    {"equal", equal}, {"builtin", builtin}};

int main(int argc, char **argv)
{
    corners_begin(argc, argv);
    return corners_run(argc, argv, corners, sizeof corners / sizeof corners[0]);
}
