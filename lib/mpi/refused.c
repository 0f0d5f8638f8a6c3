/* Calls that are handed on and counted: has the MPI refused one, or has this rank taken part in it with the others?
 *
 * What the call returns does not always tell. MPI says what an error handler is called with, and nothing of what comes
 * after one that returns: Open MPI and MPICH 4.0 return the error then, MPICH 4.3 returns success. So while such a call
 * runs, a handler that listens is in the place of one that the user has made, and that one is called when its
 * communicator has it back, once. The MPI's own handlers stay: they return the error, or nothing returns.
 *
 * Where several threads may be in the MPI, another one's error on the same communicator would be heard here, so there
 * is no listening, and the result has to tell. */
#include "mpi/interpose.h"

static int heard; /* the first error; MPI_SUCCESS: there was none */

static void on_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    if (heard == MPI_SUCCESS)
        heard = *code;
}

static MPI_Errhandler listener(void)
{
    static MPI_Errhandler handler;
    static bool made;

    if (!made)
        made = PMPI_Comm_create_errhandler(on_error, &handler) == MPI_SUCCESS;
    return made ? handler : MPI_ERRHANDLER_NULL;
}

static bool is_the_mpis(MPI_Errhandler handler)
{
#if MPI_VERSION >= 4
    if (handler == MPI_ERRORS_ABORT)
        return true;
#endif
    return handler == MPI_ERRHANDLER_NULL || handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_RETURN;
}

static bool is_counted(rd_mpi_reason_t reason)
{
    return reason == RD_MPI_EARLY || reason == RD_MPI_COMPARED;
}

rd_mpi_watch_t rd_mpi_watch(const rd_mpi_call_t *call, rd_mpi_reason_t reason)
{
    rd_mpi_watch_t w = {.call = call, .reason = reason, .users = MPI_ERRHANDLER_NULL};

    if (!is_counted(reason) || rd_mpi_many_threads() || listener() == MPI_ERRHANDLER_NULL ||
        PMPI_Comm_get_errhandler(call->comm, &w.users) != MPI_SUCCESS)
        return w;
    if (is_the_mpis(w.users)) {
        PMPI_Errhandler_free(&w.users);
        w.users = MPI_ERRHANDLER_NULL;
        return w;
    }
    heard = MPI_SUCCESS;
    PMPI_Comm_set_errhandler(call->comm, listener());
    return w;
}

/* Has the MPI found an argument wrong, before it talked to anybody? What fails later has taken part. */
static bool is_refused(int result)
{
    int class = MPI_SUCCESS;

    if (result == MPI_SUCCESS)
        return false;
    PMPI_Error_class(result, &class);
    switch (class) {
    case MPI_ERR_BUFFER:
    case MPI_ERR_COUNT:
    case MPI_ERR_TYPE:
    case MPI_ERR_COMM:
    case MPI_ERR_ROOT:
    case MPI_ERR_OP:
    case MPI_ERR_ARG:
    case MPI_ERR_REQUEST:
    case MPI_ERR_INFO:
    case MPI_ERR_NO_MEM:
        return true;
    default:
        return false;
    }
}

static void count(const rd_mpi_watch_t *w)
{
    int error;
    rd_mpi_comm_t *c = rd_mpi_comm_of(w->call->comm, &error);

    if (c && w->reason == RD_MPI_EARLY)
        rd_mpi_setup_count(c, w->call->form);
    else if (c)
        c->compared[rd_mpi_kind(w->call)]++;
}

int rd_mpi_passed(rd_mpi_watch_t *w, int result)
{
    bool listened = w->users != MPI_ERRHANDLER_NULL;
    int error = listened ? heard : MPI_SUCCESS;

    if (listened) {
        PMPI_Comm_set_errhandler(w->call->comm, w->users);
        PMPI_Errhandler_free(&w->users);
    }
    if (is_counted(w->reason) && !is_refused(error) && !is_refused(result))
        count(w);
    if (error != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(w->call->comm, error);
    return result;
}
