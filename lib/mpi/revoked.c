/* MPIs that go on after failures (ULFM): Open MPI 5 under mpirun --with-ft ulfm, MPICH with MPIR_CVAR_ENABLE_FT.
 *
 * A rank that revokes a communicator lets all others out of what they do on it, also of what rondo does: so the
 * communicators of rondo's that serve it are revoked with it, and the others' calls end with an error. What that error
 * is called, a revoked communicator or a process that has failed, the MPI knows, if not at once. */
#include <stdlib.h>
#include <time.h>

#include "mpi/interpose.h"

#ifdef MPIX_ERR_REVOKED
#define NAP_NS 1000000
#define NAPS 2000 /* until the MPI must have heard of what rondo has */

#ifdef OPEN_MPI
bool rd_mpi_is_tolerant(void)
{
    int *value = NULL, found = 0;

    return rd_mpi_next.Comm_revoke && PMPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, &value, &found) == MPI_SUCCESS &&
           found && *value;
}
#else
bool rd_mpi_is_tolerant(void)
{
    const char *value = getenv("MPIR_CVAR_ENABLE_FT");

    return value && *value && *value != '0' && *value != 'n' && *value != 'f';
}
#endif

/* What the MPI says of a communicator that has failed: a question of which it returns the error. */
static int ask(MPI_Comm comm)
{
    int there, class = MPI_SUCCESS;

    PMPI_Error_class(PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &there, MPI_STATUS_IGNORE), &class);
    return class == MPIX_ERR_PROC_FAILED_PENDING ? MPIX_ERR_PROC_FAILED : class;
}

int rd_mpi_class_of_failure(rd_mpi_comm_t *c)
{
    const struct timespec nap = {0, NAP_NS};
    MPI_Errhandler users;
    int class = MPI_SUCCESS;

    if (!rd_mpi_is_tolerant() || PMPI_Comm_get_errhandler(c->comm, &users) != MPI_SUCCESS)
        return MPI_ERR_OTHER;
    PMPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < NAPS && class != MPIX_ERR_REVOKED && class != MPIX_ERR_PROC_FAILED; i++) {
        if (i)
            nanosleep(&nap, NULL);
        class = ask(c->comm);
    }
    PMPI_Comm_set_errhandler(c->comm, users);
    PMPI_Errhandler_free(&users);
    return class == MPIX_ERR_REVOKED ? class : MPIX_ERR_PROC_FAILED;
}

static int c_comm_revoke(W comm)
{
    int result = rd_mpi_next.Comm_revoke(comm), error;
    rd_mpi_comm_t *c = result == MPI_SUCCESS ? rd_mpi_comm_of((MPI_Comm)comm, &error) : NULL;

    if (!c)
        return result;
    if (c->core)
        rondo_comm_revoke(c->core->rondo);
    if (c->own)
        rondo_comm_revoke(c->own->rondo);
    return result;
}

void rd_mpi_revoke_fill(rd_mpi_entries_t *entries)
{
    entries->Comm_revoke = c_comm_revoke;
}
#else
bool rd_mpi_is_tolerant(void)
{
    return false;
}

int rd_mpi_class_of_failure(rd_mpi_comm_t *c)
{
    (void)c;
    return MPI_ERR_OTHER;
}

void rd_mpi_revoke_fill(rd_mpi_entries_t *entries)
{
    (void)entries;
}
#endif
