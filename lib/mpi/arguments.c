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

/* MPICH refuses buffers that are one, on the rank that has them, unless it was built or told not to look
 * (MPIR_CVAR_COLL_ALIAS_CHECK). Open MPI refuses some, which rondo does not have to: it takes them for in place. */
#ifdef OPEN_MPI
void rd_mpi_arguments_start(void)
{
}

static bool may_alias(void)
{
    return true;
}
#else
static bool aliases_pass;

/* By the one call that it refuses with nothing to move: where it does not look, it may crash at another. */
void rd_mpi_arguments_start(void)
{
    int zero = 0;

    aliases_pass =
        PMPI_Alltoallv(&zero, &zero, &zero, MPI_INT, &zero, &zero, &zero, MPI_INT, rd_mpi_private) == MPI_SUCCESS;
}

static bool may_alias(void)
{
    return aliases_pass;
}
#endif

/* Does MPICH refuse what is sent and received for being one? These are its own conditions: what it does not refuse
 * would wait for the other ranks. It compares the block of one rank with that rank's place among the blocks of all, and
 * counts places by the type's size; of an alltoallv it looks whether the arrays of counts are one, too, but not, as is
 * done here, whether there is anything to move. */
static bool is_alias(const rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    bool scatters = call->what == RD_MPI_SCATTER || call->what == RD_MPI_SCATTERV;
    const char *blocks = scatters ? call->send : call->recv, *block = scatters ? call->recv : call->send;
    const void *counts = scatters ? call->sendcounts : call->recvcounts;
    const void *displs = scatters ? call->sdispls : call->rdispls;
    MPI_Count own = scatters ? call->recvcount : call->sendcount, before;
    rd_mpi_layout_t layout;
    bool any = false;

    if (call->sendtype != call->recvtype || !rd_mpi_layout(call->sendtype, &layout))
        return false;
    if (call->what == RD_MPI_ALLTOALLV)
        return call->sendcounts == call->recvcounts && block == blocks && good_list(c, call, counts, &any) && any;
    if (own == 0 || (counts ? rd_mpi_list_at(counts, call->large, c->rank) == 0 : call->sendcount != call->recvcount))
        return false;
    before = counts ? rd_mpi_list_at(displs, call->large, c->rank) : call->what == RD_MPI_ALLTOALL ? 0 : c->rank * own;
    return block == blocks + before * (MPI_Count)layout.size;
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
    if ((rd_mpi_sends(c, call) && !good_side(c, call, true)) ||
        (rd_mpi_receives(c, call) && !good_side(c, call, false)))
        return false;
    return may_alias() || !rd_mpi_sends(c, call) || !rd_mpi_receives(c, call) || !is_alias(c, call);
}
