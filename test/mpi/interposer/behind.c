/* Another tool that takes MPI's calls: counts those that come to it, and says so at the end. Preloaded behind the
 * interposer it must get what that hands on. It plays an MPICH with a builtin operator that others do not know. */
#include <mpi.h>
#include <stdio.h>

static int calls;

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    calls++;
#ifndef OPEN_MPI
    if (op == (MPI_Op)0x5800000f) { /* MPIX_EQUAL of MPICH 4.2 */
        *(int *)recv = 99;
        return MPI_SUCCESS;
    }
#endif
    return PMPI_Allreduce(send, recv, count, type, op, comm);
}

int MPI_Finalize(void)
{
    fprintf(stderr, "behind: %d calls\n", calls);
    return PMPI_Finalize();
}
