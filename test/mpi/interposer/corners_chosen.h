/* Corners of who serves a call, by what was measured. A part of corners.c. */
#ifndef RD_TEST_CORNERS_CHOSEN_H
#define RD_TEST_CORNERS_CHOSEN_H

#include <string.h>

#include "../../util/comma.h"
#include "corner.h"

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

/* In a program whose numbers have a comma. */
static void choose_comma(void)
{
    if (!comma_set())
        printf("skipped: comma\n");
    choose();
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

#endif
