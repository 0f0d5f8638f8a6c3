/* Another tool that takes MPI's calls: counts those that come to it, and says so at the end. Preloaded behind the
 * interposer it must get what that hands on. */
#include <mpi.h>
#include <stdio.h>

static int calls;

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    calls++;
    return PMPI_Allreduce(send, recv, count, type, op, comm);
}

int MPI_Finalize(void)
{
    fprintf(stderr, "behind: %d calls\n", calls);
    return PMPI_Finalize();
}
