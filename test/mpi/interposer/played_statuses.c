/* Plays the calls of MPI 4.1 that ask for several requests, to an MPI that does not have them: see asks.c. */
#include <mpi.h>

int played_calls;

int MPI_Request_get_status_all(int n, const MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    int one;

    played_calls++;
    *flag = 1;
    for (int i = 0; i < n; i++) {
        PMPI_Request_get_status(requests[i], &one, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i]);
        *flag &= one;
    }
    return MPI_SUCCESS;
}

int MPI_Request_get_status_any(int n, const MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    played_calls++;
    *flag = 0;
    for (*index = 0; *index < n; ++*index) {
        PMPI_Request_get_status(requests[*index], flag, status);
        if (*flag)
            return MPI_SUCCESS;
    }
    *index = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int MPI_Request_get_status_some(int n, const MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
    int one;

    played_calls++;
    *outcount = 0;
    for (int i = 0; i < n; i++) {
        PMPI_Request_get_status(requests[i], &one, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i]);
        if (one)
            indices[(*outcount)++] = i;
    }
    return MPI_SUCCESS;
}
