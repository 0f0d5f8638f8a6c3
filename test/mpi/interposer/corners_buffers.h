/* Corners of buffers: absolute addresses, none, more than 2^31 bytes, MPI 4's counts, one for both. A part of
 * corners.c. */
#ifndef RD_TEST_CORNERS_BUFFERS_H
#define RD_TEST_CORNERS_BUFFERS_H

#include <string.h>
#include <sys/mman.h>

#include "corner.h"

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
        CHECK(!out[0] && !out[rank % 2 ? 1 : 2] && out[rank % 2 ? 2 : 1] == (rank ? -1 : 0),
              "types with larger counts");
    }
    MPI_Type_free(&gaps);
    MPI_Type_free(&row);
#endif
}

/* Buffers that are one, which MPI forbids, where the MPI takes them: on one rank alone, so that the others would wait.
 */
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

#endif
