/* Corners of what is in flight beside a collective, and goes on while a rank waits in one. A part of corners.c. */
#ifndef RD_TEST_CORNERS_PROGRESS_H
#define RD_TEST_CORNERS_PROGRESS_H

#include <stdlib.h>
#include <unistd.h>

#include "corner.h"

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
        CHECK(all[nranks] == rank && all[2 * nranks - 1] == rank + nranks - 1, "%d %d", all[nranks],
              all[2 * nranks - 1]);
    }
    MPI_Comm_free(&cart);
}

#endif
