/* Barrier, and what moves blocks of equal length: bytes for rondo, whatever the types on each rank. Only what MPI says
 * is looked at on a rank is looked at. */
#include <stdlib.h>
#include <string.h>

#include "mpi/interpose.h"

/* The layouts of what this rank sends and receives. */
typedef struct {
    rd_mpi_layout_t send, recv;
} layouts_t;

static char *block_of(const rd_mpi_bytes_t *b, int rank, size_t bytes)
{
    return b->at ? b->at + (size_t)rank * bytes : NULL;
}

/* The short way of the next call (entry_forms.h): for handles that are never used again for something else. */
static void remember(rd_mpi_comm_t *c, MPI_Datatype type, const rd_mpi_layout_t *layout)
{
    if (!layout->dense || !rd_mpi_short_ways(c) || !rd_mpi_named(type))
        return;
    c->last_moved = type;
    c->last_moved_size = layout->size;
}

static int bcast(rd_mpi_work_t *w)
{
    rd_mpi_comm_t *c = w->c;
    const rd_mpi_call_t *call = w->call;
    bool root = c->rank == call->root;
    rd_mpi_layout_t layout;
    rd_mpi_bytes_t *b = root ? &w->in : &w->out;
    int result;

    if (!rd_mpi_layout(call->recvtype, &layout))
        return RD_MPI_HAND_ON(RD_MPI_ARGUMENT);
    result = rd_mpi_admit(w, (uint64_t)call->recvcount * layout.size);
    if (result != MPI_SUCCESS)
        return result;
    if (root)
        result = rd_mpi_sent(c, b, call->recv, call->recvcount, call->recvtype, &layout);
    else
        result = rd_mpi_receiving(c, b, call->recv, call->recvcount, call->recvtype, &layout);
    if (result != MPI_SUCCESS)
        return result;
    w->bytes = b->bytes;
    remember(c, call->recvtype, &layout);
    return rd_mpi_result(c, rondo_broadcast(b->at, b->at, b->bytes, RONDO_UINT8, call->root, w->rondo, NULL));
}

/* What this rank sends when everybody receives blocks into `out`: its block of `out` in place, or from `send`. */
static int own_block(rd_mpi_comm_t *c, const rd_mpi_call_t *call, rd_mpi_bytes_t *in, rd_mpi_bytes_t *out,
                     const rd_mpi_layout_t *send, size_t block)
{
    const char *user;

    if (call->send != MPI_IN_PLACE)
        return rd_mpi_sent(c, in, call->send, call->sendcount, call->sendtype, send);
    *in = (rd_mpi_bytes_t){.at = block_of(out, c->rank, block), .bytes = block};
    if (!out->owned)
        return MPI_SUCCESS;
    user = (const char *)call->recv + (MPI_Aint)c->rank * call->recvcount * out->layout.extent;
    return rd_mpi_pack(c, user, call->recvcount, call->recvtype, &out->layout, in->at);
}

static int gather(rd_mpi_work_t *w, const layouts_t *l)
{
    rd_mpi_comm_t *c = w->c;
    const rd_mpi_call_t *call = w->call;
    bool all = call->what == RD_MPI_ALLGATHER, gets = all || c->rank == call->root;
    size_t block = gets ? (size_t)call->recvcount * l->recv.size : (size_t)call->sendcount * l->send.size;
    int result = rd_mpi_admit(w, block);

    if (result == MPI_SUCCESS && gets)
        result = rd_mpi_receiving(c, &w->out, call->recv, c->nranks * call->recvcount, call->recvtype, &l->recv);
    if (result == MPI_SUCCESS)
        result = own_block(c, call, &w->in, &w->out, &l->send, block);
    if (result != MPI_SUCCESS)
        return result;
    w->bytes = block;
    return rd_mpi_result(c, all ? rondo_allgather(w->in.at, w->out.at, block, RONDO_UINT8, w->rondo, NULL)
                                : rondo_gather(w->in.at, w->out.at, block, RONDO_UINT8, call->root, w->rondo, NULL));
}

static int scatter(rd_mpi_work_t *w, const layouts_t *l)
{
    rd_mpi_comm_t *c = w->c;
    const rd_mpi_call_t *call = w->call;
    bool root = c->rank == call->root, in_place = root && call->recv == MPI_IN_PLACE;
    size_t block = root ? (size_t)call->sendcount * l->send.size : (size_t)call->recvcount * l->recv.size;
    int result = rd_mpi_admit(w, block);

    if (result == MPI_SUCCESS && root)
        result = rd_mpi_sent(c, &w->in, call->send, c->nranks * call->sendcount, call->sendtype, &l->send);
    if (result == MPI_SUCCESS && !in_place)
        result = rd_mpi_receiving(c, &w->out, call->recv, call->recvcount, call->recvtype, &l->recv);
    if (result != MPI_SUCCESS)
        return result;
    if (in_place)
        w->out.at = block_of(&w->in, c->rank, block);
    w->bytes = block;
    return rd_mpi_result(c, rondo_scatter(w->in.at, w->out.at, block, RONDO_UINT8, call->root, w->rondo, NULL));
}

/* rondo's does not run in place, so what is sent is copied. */
static int alltoall(rd_mpi_work_t *w, const layouts_t *l)
{
    rd_mpi_comm_t *c = w->c;
    const rd_mpi_call_t *call = w->call;
    MPI_Count all = c->nranks * call->recvcount;
    size_t block = (size_t)call->recvcount * l->recv.size;
    int result = rd_mpi_admit(w, block);

    if (result == MPI_SUCCESS)
        result = rd_mpi_receiving(c, &w->out, call->recv, all, call->recvtype, &l->recv);
    if (result == MPI_SUCCESS && call->send == MPI_IN_PLACE) {
        w->in.at = w->in.owned = malloc(w->out.bytes + 1);
        result = w->in.at ? rd_mpi_pack(c, call->recv, all, call->recvtype, &l->recv, w->in.at)
                          : rd_mpi_raise(c, MPI_ERR_NO_MEM);
    } else if (result == MPI_SUCCESS) {
        result = rd_mpi_sent(c, &w->in, call->send, c->nranks * call->sendcount, call->sendtype, &l->send);
    }
    if (result != MPI_SUCCESS)
        return result;
    w->bytes = block;
    return rd_mpi_result(c, rondo_alltoall(w->in.at, w->out.at, block, RONDO_UINT8, w->rondo, NULL));
}

int rd_mpi_begin_blocks(rd_mpi_work_t *w)
{
    rd_mpi_comm_t *c = w->c;
    const rd_mpi_call_t *call = w->call;
    layouts_t l = {0};
    int result;

    switch (call->what) {
    case RD_MPI_BARRIER_CALL:
        result = rd_mpi_admit(w, 0);
        w->bytes = 0;
        return result == MPI_SUCCESS ? rd_mpi_result(c, rondo_barrier(w->rondo, NULL)) : result;
    case RD_MPI_BCAST:
        return bcast(w);
    default:
        break;
    }
    if ((rd_mpi_sends(c, call) && !rd_mpi_layout(call->sendtype, &l.send)) ||
        (rd_mpi_receives(c, call) && !rd_mpi_layout(call->recvtype, &l.recv)))
        return RD_MPI_HAND_ON(RD_MPI_ARGUMENT);
    if (rd_mpi_sends(c, call))
        remember(c, call->sendtype, &l.send);
    else if (rd_mpi_receives(c, call))
        remember(c, call->recvtype, &l.recv);
    switch (call->what) {
    case RD_MPI_SCATTER:
        return scatter(w, &l);
    case RD_MPI_ALLTOALL:
        return alltoall(w, &l);
    default:
        return gather(w, &l);
    }
}
