/* Another tool that takes MPI's calls and is preloaded before the interposer: what it hands on to PMPI_ passes the
 * interposer by. */
#include <mpi.h>

int MPI_Start(MPI_Request *request)
{
    return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request requests[])
{
    return PMPI_Startall(count, requests);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    return PMPI_Wait(request, status);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    return PMPI_Waitall(count, requests, statuses);
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    return PMPI_Waitany(count, requests, index, status);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    return PMPI_Test(request, flag, status);
}

int MPI_Op_free(MPI_Op *op)
{
    return PMPI_Op_free(op);
}

int MPI_Type_free(MPI_Datatype *type)
{
    return PMPI_Type_free(type);
}

int MPI_Request_free(MPI_Request *request)
{
    return PMPI_Request_free(request);
}
