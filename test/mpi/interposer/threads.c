/* MPI_THREAD_MULTIPLE: threads that call collectives at the same time, each on a communicator of its own. What must
 * hold with librondo_mpi.so as without; a hang ends by the caller's time limit.
 *
 *   mpirun -n N threads threads...   (2 to 4 ranks)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "corner.h"

enum { THREADS = 3, ROUNDS = 40 };

/* The interposer frees one of its own when it has made rondo's communicator, and before it uses that: the other threads
 * get time to throw it away. */
int PMPI_Comm_free(MPI_Comm *comm)
{
    int (*next)(MPI_Comm *) = (int (*)(MPI_Comm *))dlsym(RTLD_NEXT, "PMPI_Comm_free");

    usleep(5000);
    return next(comm);
}

/* It leaves the error handler of MPI_COMM_SELF alone, also for a moment: in MPICH from 4.3 on the first one that is set
 * there takes the place of that of MPI_COMM_WORLD. */
static _Atomic int set_for_self;
int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
    int (*next)(MPI_Comm, MPI_Errhandler) =
        (int (*)(MPI_Comm, MPI_Errhandler))dlsym(RTLD_NEXT, "PMPI_Comm_set_errhandler");

    set_for_self += comm == MPI_COMM_SELF;
    return next(comm, handler);
}

static void run(void *(*of_thread)(void *comm))
{
    MPI_Comm comms[THREADS];
    pthread_t ids[THREADS];
    int level;

    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE)
        return;
    CHECK(sum_of(1, MPI_COMM_WORLD) == nranks, "the sum before the threads"); /* there is one that could be shared */
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&ids[i], NULL, of_thread, &comms[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
}

/* 34: they also make and free communicators. */
static void *make_and_free(void *data)
{
    MPI_Comm comm = *(MPI_Comm *)data;

    for (int i = 0; i < 5; i++) {
        MPI_Comm dup;
        MPI_Comm_dup(comm, &dup);
        for (int k = 0; k < MANY; k++)
            CHECK(sum_of(1, dup) == nranks, "the sum of a thread");
        MPI_Comm_free(&dup);
    }
    return NULL;
}

/* 1: the odd ranks say by one element of a type with holes what the others say by two numbers. */
static void check_types(MPI_Comm comm, MPI_Datatype holes, int round)
{
    int strided = rank % 2, root = round % nranks, values[3] = {-1, -1, -1}, all[16];

    values[0] = rank == root ? 10 * round : -1;
    values[strided ? 2 : 1] = rank == root ? 10 * round + 1 : -1;
    MPI_Bcast(values, strided ? 1 : 2, strided ? holes : MPI_INT, root, comm);
    CHECK(values[0] == 10 * round && values[strided ? 2 : 1] == 10 * round + 1, "a broadcast gives %d %d %d", values[0],
          values[1], values[2]);
    values[0] = rank;
    values[strided ? 2 : 1] = -rank;
    MPI_Allgather(values, strided ? 1 : 2, strided ? holes : MPI_INT, all, 2, MPI_INT, comm);
    for (int r = 0; r < nranks; r++)
        CHECK(all[2 * r] == r && all[2 * r + 1] == -r, "of rank %d: %d %d", r, all[2 * r], all[2 * r + 1]);
}

/* 2, 6, 7: what counts at the root alone is rubbish elsewhere; rank r has r numbers, so rank 0 none. */
static void check_lists(MPI_Comm comm, int round)
{
    int root = round % nranks, mine[4], all[16], counts[8], displs[8], one = rank, blocks[8];
    int *rubbish = (int *)(intptr_t)1, total = 0;

    for (int r = 0; r < nranks; r++) {
        counts[r] = r;
        displs[r] = total;
        total += r;
    }
    for (int i = 0; i < rank; i++)
        mine[i] = 100 * rank + i;
    if (rank == root)
        MPI_Gatherv(mine, rank, MPI_INT, all, counts, displs, MPI_INT, root, comm);
    else
        MPI_Gatherv(mine, rank, MPI_INT, NULL, rubbish, rubbish, MPI_DATATYPE_NULL, root, comm);
    for (int r = 0; rank == root && r < nranks; r++)
        for (int i = 0; i < r; i++)
            CHECK(all[displs[r] + i] == 100 * r + i, "of rank %d: %d", r, all[displs[r] + i]);
    MPI_Gather(&one, 1, MPI_INT, blocks, rank == root ? 1 : -7, rank == root ? MPI_INT : MPI_DATATYPE_NULL, root, comm);
    for (int r = 0; rank == root && r < nranks; r++)
        CHECK(blocks[r] == r, "of rank %d: %d", r, blocks[r]);
}

/* 1 to 7, and 11: whether a call is served comes out alike on every rank, whatever the other threads do. */
static void *choose(void *data)
{
    MPI_Comm comm = *(MPI_Comm *)data;
    MPI_Datatype holes;

    MPI_Type_vector(2, 1, 2, MPI_INT, &holes);
    MPI_Type_commit(&holes);
    for (int round = 0; round < ROUNDS; round++) {
        check_types(comm, holes, round);
        check_lists(comm, round);
        CHECK(sum_of(round, comm) == nranks * round, "the sum of a thread");
        MPI_Barrier(comm);
    }
    MPI_Type_free(&holes);
    return NULL;
}

static void threads(void)
{
    run(make_and_free);
}

static void threads_choose(void)
{
    run(choose);
}

/* 4: rank 1's environment is another's. */
static void threads_environment(void)
{
    CHECK(rank != 1 || getenv("RONDO_MPI_AFTER"), "rank 1 has no environment of its own");
    run(choose);
}

/* 5: one rank cannot make its part of any. */
static void threads_not_made(void)
{
    if (rank == 1)
        setenv("RONDO_CMA", "banana", 1);
    run(choose);
}

/* Nonblocking and persistent calls are the MPI's then, mixed with blocking ones. */
static void *start_and_wait(void *data)
{
    MPI_Comm comm = *(MPI_Comm *)data;

    for (int i = 0; i < 2 * MANY_OF_BOTH; i++) {
        int one = 1, sum = 0;
        MPI_Request request;
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
        CHECK(sum_of(1, comm) == nranks, "a blocking sum of a thread");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(sum == nranks, "the sum of a thread");
    }
    return NULL;
}
static void threads_nonblocking(void)
{
    run(start_and_wait);
}

/* 30: types of the threads' own, each seen for the first time. The error handlers are the program's afterwards. */
static void *use_types(void *data)
{
    MPI_Comm comm = *(MPI_Comm *)data;

    for (int i = 0; i < ROUNDS; i++) {
        int values[3] = {rank ? -1 : i, -1, rank ? -1 : 2 * i};
        MPI_Datatype type;
        MPI_Type_vector(2, 1, 2, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Bcast(values, 1, type, 0, comm);
        MPI_Type_free(&type);
        CHECK(values[0] == i && values[1] == -1 && values[2] == 2 * i, "%d %d %d", values[0], values[1], values[2]);
    }
    return NULL;
}
static void threads_types(void)
{
    MPI_Errhandler handler;

    run(use_types);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &handler);
    CHECK(handler == MPI_ERRORS_ARE_FATAL, "MPI_COMM_SELF has another error handler");
    CHECK(!set_for_self, "the error handler of MPI_COMM_SELF was set %d times", set_for_self);
}

static const corner_t corners[] = {{"threads", threads},
                                   {"threads_choose", threads_choose},
                                   {"threads_environment", threads_environment},
                                   {"threads_not_made", threads_not_made},
                                   {"threads_nonblocking", threads_nonblocking},
                                   {"threads_types", threads_types}};

int main(int argc, char **argv)
{
    int level;

    if (argc > 1 && strcmp(argv[1], "threads_environment") == 0 && rank_before() == 1) {
        setenv("RONDO_MPI_SERVE", "-allreduce,bcast=0-8", 1);
        setenv("RONDO_MPI_AFTER", "2", 1);
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    corners_known();
    return corners_run(argc, argv, corners, sizeof corners / sizeof corners[0]);
}
