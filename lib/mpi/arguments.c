/* What MPI looks at on this rank, and whether it is plainly right. What is not goes to the MPI, on this rank alone: it
 * finds the error before it talks to anybody, has the class for it, and calls the communicator's error handler. */
#include "mpi/interpose.h"

static bool has_root(rd_mpi_what_t what)
{
    return what == RD_MPI_BCAST || what == RD_MPI_REDUCE || what == RD_MPI_GATHER || what == RD_MPI_GATHERV ||
           what == RD_MPI_SCATTER || what == RD_MPI_SCATTERV;
}

bool rd_mpi_reduces(rd_mpi_what_t what)
{
    return what >= RD_MPI_REDUCE && what <= RD_MPI_EXSCAN;
}

bool rd_mpi_sends(const rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    switch (call->what) {
    case RD_MPI_GATHER:
    case RD_MPI_GATHERV:
        return c->rank != call->root || call->send != MPI_IN_PLACE;
    case RD_MPI_SCATTER:
    case RD_MPI_SCATTERV:
        return c->rank == call->root;
    default:
        return call->send != MPI_IN_PLACE;
    }
}

bool rd_mpi_receives(const rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    switch (call->what) {
    case RD_MPI_REDUCE:
        return c->rank == call->root;
    case RD_MPI_EXSCAN: /* there is no result at the first rank, but in place this is where its part lies */
        return c->rank != 0 || call->send == MPI_IN_PLACE;
    case RD_MPI_GATHER:
    case RD_MPI_GATHERV:
        return c->rank == call->root;
    case RD_MPI_SCATTER:
    case RD_MPI_SCATTERV:
        return c->rank != call->root || call->recv != MPI_IN_PLACE;
    default:
        return true;
    }
}

/* NULL is where absolute types begin (MPI_BOTTOM), but no element of a dense type lies there. */
static bool good_buffer(const void *buffer, bool any, MPI_Datatype type)
{
    rd_mpi_layout_t layout;

    if (type == MPI_DATATYPE_NULL || buffer == MPI_IN_PLACE || !rd_mpi_layout(type, &layout))
        return false;
    return buffer || !any || !layout.dense || layout.size == 0;
}

static bool good_list(const rd_mpi_comm_t *c, const rd_mpi_call_t *call, const void *counts, bool *any)
{
    if (!counts)
        return false;
    for (int r = 0; r < c->nranks; r++) {
        int64_t count = rd_mpi_list_at(counts, call->large, r);
        if (count < 0)
            return false;
        *any |= count > 0;
    }
    return true;
}

static bool good_side(const rd_mpi_comm_t *c, const rd_mpi_call_t *call, bool is_send)
{
    const void *counts = is_send ? call->sendcounts : call->recvcounts;
    const void *displs = is_send ? call->sdispls : call->rdispls;
    MPI_Count count = is_send ? call->sendcount : call->recvcount;
    bool lists =
        call->what == RD_MPI_ALLTOALLV ||
        (is_send ? call->what == RD_MPI_SCATTERV : call->what == RD_MPI_GATHERV || call->what == RD_MPI_ALLGATHERV);
    bool any = count > 0;

    if (lists ? !displs || !good_list(c, call, counts, &any) : count < 0)
        return false;
    return good_buffer(is_send ? call->send : call->recv, any, is_send ? call->sendtype : call->recvtype);
}

/* MPICH refuses equal buffers; Open MPI takes them for in place. */
static bool may_alias(void)
{
#ifdef OPEN_MPI
    return true;
#else
    return false;
#endif
}

static bool good_reduction(const rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    bool in_place = call->send == MPI_IN_PLACE, gets = rd_mpi_receives(c, call), any = call->recvcount > 0, own;

    if (call->op == MPI_OP_NULL || call->recvtype == MPI_DATATYPE_NULL || call->recvcount < 0)
        return false;
    if (call->what == RD_MPI_REDUCE_SCATTER && !good_list(c, call, call->recvcounts, &any))
        return false;
    if (in_place ? !gets : !good_buffer(call->send, any, call->recvtype))
        return false;
    own = any; /* in place all that is reduced lies there */
    if (call->what == RD_MPI_REDUCE_SCATTER && !in_place)
        own = rd_mpi_list_at(call->recvcounts, call->large, c->rank) > 0;
    if (gets && !good_buffer(call->recv, own, call->recvtype))
        return false;
    return may_alias() || !any || call->send != call->recv || (call->what == RD_MPI_REDUCE && !gets);
}

bool rd_mpi_plausible(const rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    if (call->what == RD_MPI_BARRIER_CALL)
        return true;
    if (has_root(call->what) && (call->root < 0 || call->root >= c->nranks))
        return false;
    if (rd_mpi_reduces(call->what))
        return good_reduction(c, call);
    if (call->what == RD_MPI_BCAST)
        return call->recvcount >= 0 && good_buffer(call->recv, call->recvcount > 0, call->recvtype);
    return (!rd_mpi_sends(c, call) || good_side(c, call, true)) &&
           (!rd_mpi_receives(c, call) || good_side(c, call, false));
}
