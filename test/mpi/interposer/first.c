/* The first collective of all comes while a communicator is being made behind its call: rondo makes none then, with
 * which Open MPI 4.1.4 would hang now and then. The program has the name of the function that would make it.
 *
 *   mpirun -n N first idup
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "corner.h"

static int watched, made;

int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
    int (*split)(MPI_Comm, int, int, MPI_Comm *) =
        (int (*)(MPI_Comm, int, int, MPI_Comm *))dlsym(RTLD_NEXT, "PMPI_Comm_split");

    made += watched;
    return split(comm, color, key, newcomm);
}

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
    CHECK(made == 0, "%d communicators were made in MPI_Iallreduce", made);
    CHECK(sum == nranks, "the sum of the first call");
    CHECK(sum_of(1, comm) == nranks, "a sum on the duplicate");
    MPI_Comm_free(&comm);
}

static const corner_t corners[] = {{"idup", idup}};

int main(int argc, char **argv)
{
    corners_begin(argc, argv);
    return corners_run(argc, argv, corners, sizeof corners / sizeof corners[0]);
}
