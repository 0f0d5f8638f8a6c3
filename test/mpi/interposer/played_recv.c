/* Plays an MPI that has no memory for the first persistent receives: the request of a persistent collective is one.
 * Preloaded behind the interposer. */
#include <mpi.h>

int PMPI_Recv_init(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    static int made;

    return made++ < 10 ? MPI_ERR_NO_MEM : MPI_Recv_init(buffer, count, type, source, tag, comm, request);
}
