/* The corners of nonblocking collectives: what must hold with librondo_mpi.so as without. A hang ends by the caller's
 * time limit.
 *
 *   mpirun -n N nonblocking NAME...   (2 to 64 ranks)
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "corner.h"

#define LONG (1 << 18)

/* A rank waits for a message, in one of many ways, that another one sends when a collective of both is over. Each part
 * of a long one takes a turn of its own. */
static void elsewhere(void)
{
    static int in[LONG], out[LONG];
    MPI_Request request, message;
    MPI_Status status;
    int token = 7, got, flag;

    for (int i = 0; i < LONG; i++)
        in[i] = i;
    for (int way = 0; way < 8; way++) {
        int n = way % 2 ? LONG : 2;
        MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        got = 0;
        if (rank == 0) {
            switch (way / 2) {
            case 0:
                MPI_Recv(&got, 1, MPI_INT, nranks - 1, 5, MPI_COMM_WORLD, &status);
                break;
            case 1:
                MPI_Probe(nranks - 1, 5, MPI_COMM_WORLD, &status);
                MPI_Recv(&got, 1, MPI_INT, nranks - 1, 5, MPI_COMM_WORLD, &status);
                break;
            case 2:
                MPI_Irecv(&got, 1, MPI_INT, nranks - 1, 5, MPI_COMM_WORLD, &message);
                MPI_Wait(&message, &status);
                break;
            default:
                MPI_Irecv(&got, 1, MPI_INT, nranks - 1, 5, MPI_COMM_WORLD, &message);
                do
                    MPI_Test(&message, &flag, &status);
                while (!flag);
            }
            CHECK(got == 7, "the message is %d", got);
        }
        MPI_Wait(&request, &status);
        if (rank == nranks - 1)
            MPI_Send(&token, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
        CHECK(out[1] == nranks && out[n - 1] == nranks * (n - 1), "the sums %d and %d", out[1], out[n - 1]);
    }
}

/* The same, where the rank waits in a collective on another communicator, rondo's, the MPI's, or one that makes a
 * communicator. */
static void collectives(void)
{
    static int in[LONG], out[LONG];
    MPI_Request request;
    MPI_Comm dup, made;

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    warm_all(dup);
    for (int way = 0; way < 8; way++) {
        int n = way % 2 ? LONG : 2, value = rank;
        in[0] = in[n - 1] = 1;
        MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, dup, &request);
        if (rank == nranks - 1)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        switch (way / 2) {
        case 0:
            MPI_Barrier(MPI_COMM_WORLD);
            break;
        case 1:
            PMPI_Barrier(MPI_COMM_WORLD);
            break;
        case 2:
            MPI_Bcast(&value, 1, MPI_INT, nranks - 1, MPI_COMM_WORLD);
            CHECK(value == nranks - 1, "a broadcast gives %d", value);
            break;
        default:
            MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &made);
            MPI_Comm_free(&made);
        }
        if (rank != nranks - 1)
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(out[0] == nranks && out[n - 1] == nranks, "the sums %d and %d", out[0], out[n - 1]);
    }
    MPI_Comm_free(&dup);
}

/* On each communicator there is one order, but none between them. */
static void orders(void)
{
    MPI_Comm comms[3] = {MPI_COMM_WORLD}, fourth;
    MPI_Request requests[3];
    int one = 1, sums[4];

    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[2]);
    MPI_Comm_dup(MPI_COMM_WORLD, &fourth);
    for (int i = 0; i < 3; i++)
        warm_all(comms[i]);
    warm_all(fourth);
    for (int round = 0; round < 6; round++) {
        memset(sums, 0, sizeof sums);
        if (rank % 2)
            sums[3] = sum_of(1, fourth);
        for (int i = 0; i < 3; i++) {
            int of = (i + rank) % 3;
            MPI_Iallreduce(&one, &sums[of], 1, MPI_INT, MPI_SUM, comms[of], &requests[i]);
        }
        if (rank % 2 == 0)
            sums[3] = sum_of(1, fourth);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 4; i++)
            CHECK(sums[i] == nranks, "sum %d is %d", i, sums[i]);
    }
    MPI_Comm_free(&comms[1]);
    MPI_Comm_free(&comms[2]);
    MPI_Comm_free(&fourth);
}

/* Many at a time, waited for from the last one on. */
static void deep(void)
{
    enum { N = 300 };
    static int in[N], out[N];
    static MPI_Request requests[N];

    for (int i = 0; i < N; i++) {
        in[i] = i;
        MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    }
    CHECK(sum_of(1, MPI_COMM_WORLD) == nranks, "a blocking sum behind them");
    for (int i = N - 1; i >= 0; i--) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        CHECK(out[i] == i * nranks && requests[i] == MPI_REQUEST_NULL, "sum %d is %d", i, out[i]);
    }
}

/* Communicator, type, operator and the arrays of counts are freed, and others made, while it is in flight. */
static void freed(void)
{
    for (int round = 0; round < 20; round++) {
        MPI_Comm comm, other;
        MPI_Datatype every_other;
        MPI_Request requests[3];
        int *counts = malloc(sizeof(int) * (size_t)nranks), *displs = malloc(sizeof(int) * (size_t)nranks);
        int in[2] = {rank, rank}, sum = 0, value = 1, all[3 * MOST_RANKS];

        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (OWN_FAILS || round % 4 == 0)
            warm_all(comm);
        MPI_Type_vector(2, 1, 2, MPI_INT, &every_other);
        MPI_Type_commit(&every_other);
        for (int r = 0; r < nranks; r++) {
            counts[r] = 1;
            displs[r] = nranks - 1 - r;
        }
        memset(all, -1, sizeof all);
        MPI_Iallgatherv(in, 2, MPI_INT, all, counts, displs, every_other, comm, &requests[0]);
        MPI_Iscan(&value, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
        MPI_Ibarrier(comm, &requests[2]);
        MPI_Type_free(&every_other);
#ifdef OPEN_MPI /* MPICH reads the arrays later, as the standard allows */
        memset(counts, -1, sizeof(int) * (size_t)nranks);
#endif
        MPI_Comm_free(&comm);
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &other);
        sum_of(1, other);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        CHECK(sum == rank + 1, "the scan is %d", sum);
        for (int r = 0; r < nranks; r++) /* elements of 3 ints, of which the middle one stays */
            CHECK(all[3 * (nranks - 1 - r)] == r && all[3 * (nranks - 1 - r) + 2] == r &&
                      (nranks == 1 || all[3 * (nranks - 1 - r) + 1] == -1),
                  "of rank %d: %d", r, all[3 * (nranks - 1 - r)]);
        MPI_Comm_free(&other);
        free(counts);
        free(displs);
    }
}

/* A duplicate is made while something is in flight on the old one. */
static void dup_meanwhile(void)
{
    int one = 1, sums[2] = {0, 0};
    MPI_Request requests[2];
    MPI_Comm dup, again;

    for (int i = 0; i < 5; i++) {
        MPI_Iallreduce(&one, &sums[0], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
        MPI_Comm_idup(MPI_COMM_WORLD, &again, &requests[1]);
        MPI_Comm_dup(MPI_COMM_WORLD, &dup);
        CHECK(sum_of(1, dup) == nranks, "the sum of the duplicate");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Iallreduce(&one, &sums[1], 1, MPI_INT, MPI_SUM, again, &requests[1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        CHECK(sums[0] == nranks && sums[1] == nranks, "%d %d", sums[0], sums[1]);
        MPI_Comm_free(&dup);
        MPI_Comm_free(&again);
    }
}

/* What a status says, and what becomes of the request. */
static void statuses(void)
{
    MPI_Request requests[3];
    MPI_Status status[3];
    int one = 1, sum, flag, count, index;

    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    do
        MPI_Request_get_status(requests[0], &flag, &status[0]);
    while (!flag);
    CHECK(requests[0] != MPI_REQUEST_NULL && sum == nranks, "before it is waited for: %d", sum);
    MPI_Test_cancelled(&status[0], &flag);
    CHECK(!flag, "it was cancelled");
    MPI_Wait(&requests[0], &status[0]);
    CHECK(requests[0] == MPI_REQUEST_NULL, "a request is left");
    MPI_Wait(&requests[0], &status[0]); /* of none: an empty status */
    MPI_Get_count(&status[0], MPI_INT, &count);
    CHECK(count == 0 && status[0].MPI_SOURCE == MPI_ANY_SOURCE, "the empty status: %d, %d", count,
          status[0].MPI_SOURCE);
    for (int i = 0; i < 3; i++)
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 3; i++)
        status[i].MPI_ERROR = 77;
    CHECK(MPI_Waitall(3, requests, status) == MPI_SUCCESS, "MPI_Waitall");
    MPI_Waitany(3, requests, &index, &status[0]);
    CHECK(index == MPI_UNDEFINED, "there is still one to wait for: %d", index);
}

/* Those that are handed on, an operator of the user's, mixed with those that are served, blocking or not. */
static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}
static void mixed(void)
{
    int one = 1, sums[6], value;
    MPI_Request requests[4];
    MPI_Op op;

    for (int i = 0; i < 20; i++) {
        memset(sums, 0, sizeof sums);
        value = rank == i % nranks ? 40 + i : 0;
        MPI_Op_create(add, 1, &op);
        MPI_Iallreduce(&one, &sums[0], 1, MPI_INT, op, MPI_COMM_WORLD, &requests[0]);
        MPI_Iallreduce(&one, &sums[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
        MPI_Op_free(&op);
        MPI_Allreduce(&one, &sums[2], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Ibcast(&value, 1, MPI_INT, i % nranks, MPI_COMM_WORLD, &requests[2]);
        MPI_Scan(&one, &sums[3], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        PMPI_Allreduce(&one, &sums[4], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        PMPI_Iallreduce(&one, &sums[5], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        CHECK(sums[0] == nranks && sums[1] == nranks && sums[2] == nranks && sums[3] == rank + 1 && sums[4] == nranks &&
                  sums[5] == nranks && value == 40 + i,
              "%d %d %d %d %d %d, %d", sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], value);
    }
}

/* Nobody's barrier is over before the last one has begun its own. */
static void barrier(void)
{
    for (int i = 0; i < 6; i++) {
        double in, out, last_in, first_out;
        MPI_Request request;
        int flag = 0;
        usleep((useconds_t)(((rank + i) % nranks) * 8000));
        in = seconds();
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        while (!flag)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        out = seconds();
        PMPI_Allreduce(&in, &last_in, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        PMPI_Allreduce(&out, &first_out, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        CHECK(first_out >= last_in, "a rank left %g s before the last came", last_in - first_out);
    }
}

/* A rank starts one and goes to work, without a communicator of rondo's being made: starting does not wait. */
static void does_not_wait(void)
{
    MPI_Comm comm;
    MPI_Request request;
    int one = 1, sum, token = 1;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    for (int i = 0; i < 2 * MANY_OF_BOTH; i++) {
        int before = (rank + i) % nranks;
        if (before) /* the others come when the first one has started */
            MPI_Recv(&token, 1, MPI_INT, (rank + nranks - before) % nranks, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
        for (int r = 1; !before && r < nranks; r++)
            MPI_Send(&token, 1, MPI_INT, (rank + r) % nranks, 8, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sum == nranks, "sum %d is %d", i, sum);
        if (i % 5 == 4)
            sum_of(1, comm);
    }
    MPI_Comm_free(&comm);
}

/* The first calls on a communicator are nonblocking, so the MPI's; the first one that may wait makes up for them: ten
 * of twenty are rondo's, as the report says. */
static void early(void)
{
    MPI_Comm comms[2] = {MPI_COMM_WORLD};
    int all[MOST_RANKS];

    for (int k = 0; k < 2; k++) {
        if (k == 1)
            MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[1]);
        for (int i = 0; i < 20; i++) {
            MPI_Request request;
            int mine = 100 * i + rank;
            if (i == 10)
                MPI_Barrier(comms[k]);
            memset(all, -1, sizeof all);
            MPI_Iallgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comms[k], &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            for (int r = 0; r < nranks; r++)
                CHECK(all[r] == 100 * i + (k ? nranks - 1 - r : r), "call %d: of rank %d: %d", i, r, all[r]);
        }
    }
    MPI_Comm_free(&comms[1]);
}

/* Communicators of one rank, and of two groups. */
static void others(void)
{
    MPI_Comm half, inter;
    MPI_Request request;
    int one = 1, sum = 0, remote;

    for (int i = 0; i < MANY_OF_BOTH; i++) {
        MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sum == rank, "the sum of one");
    }
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 6, &inter);
    MPI_Comm_remote_size(inter, &remote);
    for (int i = 0; i < MANY_OF_BOTH; i++) {
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sum == remote, "the sum of the others is %d", sum);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* Absolute addresses, and nothing to move. */
static void bottom(void)
{
    static int a;
    int length = 1, zeros[MOST_RANKS] = {0};
    MPI_Aint at;
    MPI_Datatype there;
    MPI_Request requests[4];

    MPI_Get_address(&a, &at);
    MPI_Type_create_hindexed(1, &length, &at, MPI_INT, &there);
    MPI_Type_commit(&there);
    for (int i = 0; i < 4; i++) {
        a = rank == 0 ? 11 + i : 0;
        MPI_Ibcast(MPI_BOTTOM, 1, there, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Iallreduce(MPI_IN_PLACE, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
        MPI_Ialltoallv(NULL, zeros, zeros, MPI_INT, NULL, zeros, zeros, MPI_INT, MPI_COMM_WORLD, &requests[2]);
        MPI_Igather(NULL, 0, MPI_INT, NULL, 0, MPI_INT, 0, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        CHECK(a == 11 + i, "%d", a);
    }
    MPI_Type_free(&there);
}

/* MPI 4's calls with larger counts. */
static void large(void)
{
#if MPI_VERSION >= 4
    int in[MOST_RANKS], out[2][MOST_RANKS], total = nranks * (nranks - 1) / 2;
    MPI_Count counts[MOST_RANKS], one = 1;
    MPI_Aint displs[MOST_RANKS];
    MPI_Request requests[2];

    for (int r = 0; r < nranks; r++) {
        counts[r] = 1;
        displs[r] = nranks - 1 - r;
        in[r] = rank;
    }
    for (int i = 0; i < 3; i++) {
        MPI_Iallreduce_c(in, out[0], one, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
        MPI_Ialltoallv_c(in, counts, displs, MPI_INT, out[1], counts, displs, MPI_INT, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(out[0][0] == total, "MPI_Iallreduce_c");
        CHECK(out[1][0] == nranks - 1 && out[1][nranks - 1] == 0, "MPI_Ialltoallv_c");
    }
#endif
}

/* Nonblocking calls on two communicators, in another order on each rank, as often as it takes to have them measured at
 * the blocking calls between: each communicator has a choice of its own, and the result is right with either. The ranks
 * say the same by different types, which only some of them find again in the blocking call. */
static void choose(void)
{
    MPI_Comm comms[2];

    for (int k = 0; k < 2; k++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
        warm_all(comms[k]);
    }
    for (int turn = 0; turn < 200; turn++) {
        MPI_Request requests[6];
        int values[2], sums[2] = {0, 0};
        for (int j = 0; j < 2; j++) {
            int k = (j + rank) % 2;
            values[k] = rank == turn % nranks ? turn + k : -1;
            MPI_Ibcast(&values[k], rank % 2 ? 4 : 1, rank % 2 ? MPI_BYTE : MPI_INT, turn % nranks, comms[k],
                       &requests[3 * k]);
            MPI_Ibarrier(comms[k], &requests[3 * k + 1]);
            MPI_Iallreduce(&turn, &sums[k], 1, MPI_INT, MPI_SUM, comms[k], &requests[3 * k + 2]);
        }
        MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; k < 2; k++)
            CHECK(values[k] == turn + k && sums[k] == turn * nranks, "turn %d: %d, and the sum %d", turn, values[k],
                  sums[k]);
        values[0] = rank == 0 ? turn : -1;
        MPI_Bcast(values, 1, MPI_INT, 0, comms[turn / 10 % 2]);
        CHECK(values[0] == turn, "turn %d: the broadcast %d", turn, values[0]);
    }
    for (int k = 0; k < 2; k++)
        MPI_Comm_free(&comms[k]);
}

/* In a callback of MPI_Finalize. */
static int at_the_end(MPI_Comm comm, int key, void *value, void *extra)
{
    int one = 1, sum = 0;
    MPI_Request request;

    (void)comm, (void)key, (void)value, (void)extra;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == nranks, "the sum in MPI_Finalize");
    return MPI_SUCCESS;
}
static void finalize(void)
{
    int key;

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

/* Rank 0 frees its requests, which MPI forbids and MPICH refuses, and goes on to the end while the others wait for its
 * part; each is a long one, for which it must come by more than once. So MPI_Finalize ends them. */
static int unfinished_at_the_end(MPI_Comm comm, int key, void *value, void *extra)
{
    static int in[LONG], out[2][LONG];
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

    (void)comm, (void)key, (void)extra;
    for (int i = 0; i < LONG; i++)
        in[i] = i;
    MPI_Iallreduce(in, out[0], LONG, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    if (value) {
        requests[1] = *(MPI_Request *)value;
        MPI_Start(&requests[1]);
    }
    if (rank == 0) {
        MPI_Request_free(&requests[0]);
    } else {
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        CHECK(out[0][1] == nranks && out[0][LONG - 1] == nranks * (LONG - 1), "the sum %d", out[0][LONG - 1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    if (value)
        MPI_Request_free(&requests[1]);
    return MPI_SUCCESS;
}
static void unfinished(void)
{
    static MPI_Request request = MPI_REQUEST_NULL;
    static int in[LONG], out[LONG];
    int key;

#ifdef INIT
    if (getenv("LD_PRELOAD"))
        INIT(Allreduce)(in, out, LONG, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
#endif
    (void)in, (void)out;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, unfinished_at_the_end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, request == MPI_REQUEST_NULL ? NULL : &request);
}

/* Many programs never free what they make: all the same every rank takes leave of the others at the end. A duplicate
 * that outlives the world's own call, another order of ranks, and a part. */
static void never_freed(void)
{
    MPI_Comm comms[3];

    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[2]);
    for (int i = 0; i < 3; i++)
        warm_all(comms[i]);
}

/* It ends with something in flight. */
static void start_one(void)
{
    static int one = 1, sum;
    MPI_Request request;

    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    fflush(stdout);
    if (rank != 1)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void leave(void)
{
    start_one();
    exit(0);
}
static void die(void)
{
    if (rank == 1)
        raise(9);
    start_one();
}

static const corner_t corners[] = {{"elsewhere", elsewhere},   {"collectives", collectives},
                                   {"orders", orders},         {"deep", deep},
                                   {"freed", freed},           {"dup_meanwhile", dup_meanwhile},
                                   {"statuses", statuses},     {"mixed", mixed},
                                   {"barrier", barrier},       {"does_not_wait", does_not_wait},
                                   {"early", early},           {"others", others},
                                   {"bottom", bottom},         {"large", large},
                                   {"choose", choose},         {"finalize", finalize},
                                   {"unfinished", unfinished}, {"never_freed", never_freed},
                                   {"leave", leave},           {"die", die}};

int main(int argc, char **argv)
{
    corners_begin(argc, argv);
    if (argc > 1 && strcmp(argv[1], "early") != 0)
        warm_all(MPI_COMM_WORLD);
    return corners_run(argc, argv, corners, sizeof corners / sizeof corners[0]);
}
