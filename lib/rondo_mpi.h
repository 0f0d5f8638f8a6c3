/* Making a communicator from an MPI_Comm. Static inline, so that librondo links no MPI and one binary serves every MPI.
 */
#ifndef RONDO_MPI_H
#define RONDO_MPI_H

#include <mpi.h>
#include <rondo.h>

/* Collective over `mpi`. Asks MPI for rank, size and one broadcast of 128 bytes, and nothing more, also when it fails:
 * if rank 0 cannot make an id it broadcasts one that carries the error, which rondo_comm_create then returns
 * everywhere. MPI is called in this thread, during this call: the thread level need be no higher than that asks for,
 * and MPI_THREAD_SINGLE will do in a program's only thread. Nothing of rondo calls MPI afterwards, so the communicator
 * may be used by any thread, and used and destroyed after MPI_Finalize. */
static inline rondo_result_t rondo_comm_create_mpi(rondo_comm_t *comm, MPI_Comm mpi, const rondo_config_t *config)
{
    int rank, nranks;
    rondo_unique_id_t id;

    if (MPI_Comm_rank(mpi, &rank) != MPI_SUCCESS || MPI_Comm_size(mpi, &nranks) != MPI_SUCCESS)
        return RONDO_ERR_INVALID_ARGUMENT;
    if (rank == 0)
        (void)rondo_unique_id_create(&id); /* an id that carries the error on failure */
    if (MPI_Bcast(&id, (int)sizeof id, MPI_BYTE, 0, mpi) != MPI_SUCCESS)
        return RONDO_ERR_SYSTEM;
    return rondo_comm_create(comm, nranks, &id, rank, config);
}

#endif
