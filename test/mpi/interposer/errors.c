/* Calls made wrongly, and errors that rondo meets, blocking and nonblocking: what must hold with librondo_mpi.so as
 * without. The numbers are those of doc/notebook/host.md; a hang ends by the caller's time limit.
 *
 *   mpirun -n N errors NAME...   (2 to 64 ranks)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corner.h"

static int handled;
static MPI_Comm handled_comm;
static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    handled++;
    handled_comm = *comm;
}

/* The same call by the interposer and by the MPI: one class, and the handler once, with the user's handle. */
#define WRONG(call, ...)                                                                                               \
    do {                                                                                                               \
        int class, by_mpi, times, code = MPI_##call(__VA_ARGS__);                                                      \
        times = handled;                                                                                               \
        handled = 0;                                                                                                   \
        MPI_Error_class(code, &class);                                                                                 \
        code = PMPI_##call(__VA_ARGS__);                                                                               \
        MPI_Error_class(code, &by_mpi);                                                                                \
        CHECK(class == by_mpi && (class != MPI_SUCCESS || HANDLED_IS_SUCCESS), #call ": class %d, the MPI's is %d",    \
              class, by_mpi);                                                                                          \
        CHECK(times == 1 && handled == 1 && handled_comm == dup, #call ": handled %d times, by the MPI %d", times,     \
              handled);                                                                                                \
        handled = 0;                                                                                                   \
    } while (0)

/* Buffers that are one, which MPICH refuses on the rank that has them; behind a call of the type that was served, for
 * the short way of the next ones. */
static void aliases(MPI_Comm dup)
{
#ifndef OPEN_MPI
    int room[MOST_RANKS] = {0}, ones[MOST_RANKS], places[MOST_RANKS];

    for (int r = 0; r < nranks; r++) {
        ones[r] = 1;
        places[r] = r;
    }
    MPI_Bcast(room, 1, MPI_INT, 0, dup);
    if (rank == 0) {
        WRONG(Gather, room, 1, MPI_INT, room, 1, MPI_INT, 0, dup);
        WRONG(Scatter, room, 1, MPI_INT, room, 1, MPI_INT, 0, dup);
        WRONG(Gatherv, room, 1, MPI_INT, room, ones, places, MPI_INT, 0, dup);
        WRONG(Scatterv, room, ones, places, MPI_INT, room, 1, MPI_INT, 0, dup);
        WRONG(Reduce, room, room, 1, MPI_INT, MPI_SUM, 0, dup);
    }
    WRONG(Allgather, room + rank, 1, MPI_INT, room, 1, MPI_INT, dup);
    WRONG(Alltoall, room, 1, MPI_INT, room, 1, MPI_INT, dup);
    WRONG(Allgatherv, room + rank, 1, MPI_INT, room, ones, places, MPI_INT, dup);
    WRONG(Alltoallv, room, ones, places, MPI_INT, room, ones, places, MPI_INT, dup);
    WRONG(Reduce_scatter, room, room, ones, MPI_INT, MPI_SUM, dup);
    WRONG(Exscan, room, room, 1, MPI_INT, MPI_SUM, dup);
#else
    (void)dup;
#endif
}

/* A duplicate of what is no communicator: the handler of MPI_COMM_WORLD once, as by the MPI alone. */
static void no_comm(MPI_Errhandler mine)
{
#ifdef OPEN_MPI
    MPI_Errhandler before;
    MPI_Request request;
    MPI_Comm dup = MPI_COMM_WORLD, out;

    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine);
    WRONG(Comm_idup, (MPI_Comm)0, &out, &request);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&before);
#else
    (void)mine;
#endif
}

/* 30, 31: the MPI's class for a wrong argument, the handler once, with the user's handle; then all goes on. */
static void errors(void)
{
    MPI_Errhandler mine;
    MPI_Datatype raw;
    MPI_Comm dup;
    int value = 1, sum = 0, zeros[MOST_RANKS] = {0}, minus[MOST_RANKS] = {-1};

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    warm(dup);
    MPI_Comm_create_errhandler(handler, &mine);
    MPI_Comm_set_errhandler(dup, mine);
    MPI_Type_contiguous(2, MPI_INT, &raw); /* not committed */
    handled = 0;
    if (!NO_TYPE_CRASHES)
        WRONG(Allreduce, &value, &sum, 1, MPI_DATATYPE_NULL, MPI_SUM, dup);
    WRONG(Allreduce, &value, &sum, 1, MPI_INT, MPI_OP_NULL, dup);
    WRONG(Bcast, &value, 1, MPI_INT, nranks, dup);
    WRONG(Bcast, &value, 1, MPI_INT, -7, dup);
    WRONG(Bcast, &value, 1, raw, 0, dup);
    WRONG(Bcast, &value, 1, (MPI_Datatype)0, 0, dup); /* no handle of any type */
    WRONG(Reduce, &value, &sum, 1, MPI_INT, MPI_SUM, -1, dup);
#ifdef OPEN_MPI /* MPICH 4.0 itself takes these, and crashes */
    WRONG(Allreduce, &value, &sum, -1, MPI_INT, MPI_SUM, dup);
    WRONG(Allgather, &value, -1, MPI_INT, &sum, 1, MPI_INT, dup);
    WRONG(Alltoallv, &value, minus, zeros, MPI_INT, &sum, zeros, zeros, MPI_INT, dup);
#endif
#if MPI_VERSION >= 4 /* a type that was made with large counts */
    MPI_Type_free(&raw);
    MPI_Type_contiguous_c(2, MPI_INT, &raw);
    MPI_Type_commit(&raw);
    WRONG(Allreduce, zeros, minus, 1, raw, MPI_SUM, dup);
#endif
    aliases(dup);
    CHECK(sum_of(1, dup) == nranks, "the sum after errors");
    if (getenv("LD_PRELOAD")) { /* an error that rondo finds */
        char room[32] = {0};
        int code = MPI_Allreduce(room, room + 4, 4, MPI_INT, MPI_SUM, dup), class;
        MPI_Error_class(code, &class);
        CHECK(class == MPI_ERR_BUFFER && handled == 1, "buffers that overlap: class %d, handled %d times", class,
              handled);
    }
    handled = 0;
    no_comm(mine);
    CHECK(sum_of(1, dup) == nranks, "the sum after rondo's error");
    MPI_Type_free(&raw);
    MPI_Errhandler_free(&mine);
    MPI_Comm_free(&dup);
}

/* 31: an error that rondo meets when the call has begun, at rank 0 another one than at the others: the handler once,
 * with the user's handle, and nothing is tried again by the MPI. Others of the communicator's group are as before. */
static void begun(void)
{
    MPI_Errhandler mine;
    MPI_Comm comm;
    int value = 1, sum = 0, code, class;

    if (!getenv("LD_PRELOAD")) /* else the ranks wait for each other */
        return;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    warm(comm);
    MPI_Comm_create_errhandler(handler, &mine);
    MPI_Comm_set_errhandler(comm, mine);
    handled = 0;
    code = rank ? MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm) : MPI_Barrier(comm);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_OTHER && handled == 1 && handled_comm == comm, "class %d, handled %d times", class, handled);
    PMPI_Barrier(comm);
    MPI_Errhandler_free(&mine);
    MPI_Comm_free(&comm);
    CHECK(sum_of(1, MPI_COMM_WORLD) == nranks, "the sum after another communicator's error");
}

/* The MPI's class for a wrong argument, when it is started; the handler once; then all goes on. */
static void errors_nonblocking(void)
{
    MPI_Errhandler mine;
    MPI_Comm dup;
    MPI_Request request = MPI_REQUEST_NULL;
    int value = 1, sum = 0;

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    warm_all(dup);
    MPI_Comm_create_errhandler(handler, &mine);
    MPI_Comm_set_errhandler(dup, mine);
    handled = 0;
    if (!NO_TYPE_CRASHES)
        WRONG(Iallreduce, &value, &sum, 1, MPI_DATATYPE_NULL, MPI_SUM, dup, &request);
    WRONG(Iallreduce, &value, &sum, 1, MPI_INT, MPI_OP_NULL, dup, &request);
    WRONG(Ibcast, &value, 1, MPI_INT, nranks, dup, &request);
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, dup, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == nranks, "the sum after errors");
    if (getenv("LD_PRELOAD")) { /* an error that rondo finds */
        char room[32] = {0};
        int code = MPI_Iallreduce(room, room + 4, 4, MPI_INT, MPI_SUM, dup, &request), class;
        MPI_Error_class(code, &class);
        CHECK(class == MPI_ERR_BUFFER && handled == 1, "buffers that overlap: class %d, handled %d times", class,
              handled);
    }
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, dup, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == nranks, "the sum after rondo's error");
    MPI_Errhandler_free(&mine);
    MPI_Comm_free(&dup);
}

/* The handler of an error calls the MPI again, nonblocking and blocking: on a communicator of its own, whose ranks have
 * all made the same error. */
static MPI_Comm beside;
static void calling_handler(MPI_Comm *comm, int *code, ...)
{
    MPI_Request requests[2];
    int one = 1, sums[3] = {0, 0, 0};

    (void)comm, (void)code;
    handled++;
    for (int i = 0; i < 2; i++)
        MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, beside, &requests[i]);
    sums[2] = sum_of(1, beside);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(sums[0] == nranks && sums[1] == nranks && sums[2] == nranks, "in the handler: %d %d %d", sums[0], sums[1],
          sums[2]);
}
static void handler_calls(void)
{
    MPI_Errhandler mine;
    MPI_Comm dup;
    MPI_Request requests[2];
    char room[32] = {0};
    int one = 1, sum = 0;

    if (!getenv("LD_PRELOAD")) /* else the MPI finds no error */
        return;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_dup(MPI_COMM_WORLD, &beside);
    warm_all(dup);
    warm_all(beside);
    MPI_Comm_create_errhandler(calling_handler, &mine);
    MPI_Comm_set_errhandler(dup, mine);
    handled = 0;
    for (int i = 0; i < 3; i++) { /* alone, and while another one is in flight */
        if (i)
            MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, dup, &requests[0]);
        MPI_Iallreduce(room, room + 4, 4, MPI_INT, MPI_SUM, dup, &requests[1]);
        CHECK(handled == i + 1, "buffers that overlap: handled %d times", handled);
        if (i)
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        CHECK(!i || sum == nranks, "the sum behind the error is %d", sum);
        sum = 0;
    }
    MPI_Errhandler_free(&mine);
    MPI_Comm_free(&beside);
    MPI_Comm_free(&dup);
}

static const corner_t corners[] = {
    {"errors", errors}, {"begun", begun}, {"errors_nonblocking", errors_nonblocking}, {"handler_calls", handler_calls}};

int main(int argc, char **argv)
{
    corners_begin(argc, argv);
    if (argc > 1 && strcmp(argv[1], "begun") != 0)
        warm_all(MPI_COMM_WORLD);
    return corners_run(argc, argv, corners, sizeof corners / sizeof corners[0]);
}
