/* The first collective of all comes while a communicator is being made behind its call: rondo makes none then, with
 * which Open MPI 4.1.4 would hang now and then, nor starts a nonblocking collective, which could meet those by which
 * the MPI makes it. The program has the names of the functions that would do so.
 *
 *   mpirun -n N first idup
 *   mpirun -n N first idup_blocking
 *   mpirun -n N first idup_measured
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "corner.h"

static int watched, called;

#define WATCH(name, parameters, arguments)                                                                             \
    int name parameters                                                                                                \
    {                                                                                                                  \
        called += watched;                                                                                             \
        return ((int(*) parameters)dlsym(RTLD_NEXT, #name))arguments;                                                  \
    }
WATCH(PMPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *newcomm), (comm, color, key, newcomm))
WATCH(PMPI_Comm_dup, (MPI_Comm comm, MPI_Comm *newcomm), (comm, newcomm))
WATCH(PMPI_Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm), (comm, group, newcomm))
WATCH(PMPI_Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request))
WATCH(PMPI_Ibcast, (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request),
      (buffer, count, type, root, comm, request))
WATCH(PMPI_Iallreduce,
      (const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request),
      (send, recv, count, type, op, comm, request))

static void idup(void)
{
    MPI_Comm comm;
    MPI_Request requests[2];
    int one = 1, sum = 0;

    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &requests[0]);
    watched = 1;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    watched = 0;
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(called == 0, "%d of what is watched was called in MPI_Iallreduce", called);
    CHECK(sum == nranks, "the sum of the first call");
    CHECK(sum_of(1, comm) == nranks, "a sum on the duplicate");
    MPI_Comm_free(&comm);
}

/* Two of rondo's communicators are made then, because a nonblocking call came before. */
static void idup_blocking(void)
{
    MPI_Comm comm;
    MPI_Request request;
    int one = 1, sum = 0;

    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
    watched = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    watched = 0;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(called == 0, "%d of what is watched was called in MPI_Allreduce", called);
    CHECK(sum == nranks, "the sum of the first blocking call");
    CHECK(sum_of(1, comm) == nranks, "a sum on the duplicate");
    MPI_Comm_free(&comm);
}

/* A measurement of nonblocking calls is due at the next blocking one, which comes while the communicator is duplicated.
 * The log says whether the MPI's nonblocking ones were called for it. */
static void idup_measured(void)
{
    MPI_Comm first, second;
    MPI_Request request;
    int value = 0;

    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    warm_all(first);
    for (int i = 0; i < 64; i++) {
        MPI_Ibcast(&value, 1, MPI_INT, 0, first, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_idup(first, &second, &request);
    CHECK(sum_of(1, first) == nranks, "a sum beside MPI_Comm_idup");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum_of(1, second) == nranks, "a sum on the duplicate");
    MPI_Comm_free(&second);
    MPI_Comm_free(&first);
}

static const corner_t corners[] = {{"idup", idup}, {"idup_blocking", idup_blocking}, {"idup_measured", idup_measured}};

int main(int argc, char **argv)
{
    corners_begin(argc, argv);
    return corners_run(argc, argv, corners, sizeof corners / sizeof corners[0]);
}
