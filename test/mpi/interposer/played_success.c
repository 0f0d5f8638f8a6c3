/* Plays an MPI that returns success behind a handler of the user's which has seen the error, as MPICH does from 4.3 on,
 * for the calls of alone.c that the MPI refuses. Preloaded behind the interposer. */
#include "corner.h"

static int returned(int result)
{
    (void)result;
    return MPI_SUCCESS;
}

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    return returned(PMPI_Allreduce(send, recv, count, type, op, comm));
}

int MPI_Iallreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    return returned(PMPI_Iallreduce(send, recv, count, type, op, comm, request));
}

int INIT(Allreduce)(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Info info,
                    MPI_Request *request)
{
    return returned(PINIT(Allreduce)(send, recv, count, type, op, comm, info, request));
}
