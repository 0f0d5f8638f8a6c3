/* See extents.h. */
#include "core/extents.h"

/* `displs` is NULL where the blocks follow each other. */
static void each_block(int n, const void *buffer, const size_t *counts, const size_t *displs, rondo_type_t type,
                       rd_extent_fn each, void *arg)
{
    size_t packed = 0;

    for (int r = 0; r < n; r++) {
        each(arg, buffer, displs ? displs[r] : packed, counts[r], type);
        packed += counts[r];
    }
}

static size_t blocks_read(const struct rondo_comm *comm, const rd_coll_desc_t *d)
{
    const bool root = d->root == comm->team.rank;

    switch (d->coll) {
    case RD_BARRIER:
        return 0;
    case RD_BROADCAST:
        return root ? 1 : 0;
    case RD_SCATTER:
        return root ? (size_t)comm->team.nranks : 0;
    case RD_REDUCE_SCATTER:
    case RD_ALLTOALL:
        return (size_t)comm->team.nranks;
    default:
        return 1;
    }
}

static size_t blocks_written(const struct rondo_comm *comm, const rd_coll_desc_t *d)
{
    const bool root = d->root == comm->team.rank;

    switch (d->coll) {
    case RD_BARRIER:
        return 0;
    case RD_REDUCE:
        return root ? 1 : 0;
    case RD_GATHER:
        return root ? (size_t)comm->team.nranks : 0;
    case RD_ALLGATHER:
    case RD_ALLTOALL:
        return (size_t)comm->team.nranks;
    default:
        return 1;
    }
}

void rd_extents_read(const struct rondo_comm *comm, const rd_call_t *call, rd_extent_fn each, void *arg)
{
    const rd_tables_t *t = call->tables;
    const rd_coll_desc_t *d = &call->desc;

    if (!t)
        each(arg, call->in, 0, blocks_read(comm, d) * d->count, d->type);
    else if (!t->in_counts) /* allgatherv */
        each(arg, call->in, 0, t->out_counts[comm->team.rank], d->type);
    else
        each_block(comm->team.nranks, call->in, t->in_counts, t->in_displs, d->type, each, arg);
}

void rd_extents_written(const struct rondo_comm *comm, const rd_call_t *call, rd_extent_fn each, void *arg)
{
    const rd_tables_t *t = call->tables;
    const rd_coll_desc_t *d = &call->desc;

    if (!t)
        each(arg, call->out, 0, blocks_written(comm, d) * d->count, d->type);
    else if (!t->out_counts) /* reduce_scatterv */
        each(arg, call->out, 0, t->in_counts[comm->team.rank], d->type);
    else
        each_block(comm->team.nranks, call->out, t->out_counts, t->out_displs, d->type, each, arg);
}
