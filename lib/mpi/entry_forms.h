/* The entries that have a short way, for a communicator, type and operator that were served just so before; what is
 * not just so goes on to run_NAME (entries.c). Included for counts K of type int, and for the larger ones of MPI 4. */

static int FORM(allreduce)(const void *send, void *recv, K count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    rd_mpi_comm_t *c = rd_mpi_comm_get(comm);

    if (likely(c && c->last_type == type && c->last_op == op && (int64_t)count * (int64_t)c->last_size > 0 && send &&
               recv && send != recv && recv != MPI_IN_PLACE &&
               rd_mpi_allowed(c->rules, RD_MPI_ALLREDUCE, (uint64_t)count * c->last_size))) {
        rd_mpi_count_served(RD_MPI_ALLREDUCE, (uint64_t)count * c->last_size);
        return rd_mpi_result(c, rondo_allreduce(send == MPI_IN_PLACE ? recv : send, recv, (size_t)count,
                                                c->last_rondo_type, c->last_rondo_op, c->rondo, NULL));
    }
    return FORM(run_allreduce)(send, recv, count, type, op, comm);
}

static int FORM(reduce)(const void *send, void *recv, K count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    rd_mpi_comm_t *c = rd_mpi_comm_get(comm);

    if (likely(c && c->last_type == type && c->last_op == op && (int64_t)count * (int64_t)c->last_size > 0 && send &&
               (unsigned)root < (unsigned)c->nranks && send != MPI_IN_PLACE &&
               (c->rank != root || (recv && recv != send && recv != MPI_IN_PLACE)) &&
               rd_mpi_allowed(c->rules, RD_MPI_REDUCE, (uint64_t)count * c->last_size))) {
        rd_mpi_count_served(RD_MPI_REDUCE, (uint64_t)count * c->last_size);
        return rd_mpi_result(
            c, rondo_reduce(send, recv, (size_t)count, c->last_rondo_type, c->last_rondo_op, root, c->rondo, NULL));
    }
    return FORM(run_reduce)(send, recv, count, type, op, root, comm);
}

static int FORM(bcast)(void *buffer, K count, MPI_Datatype type, int root, MPI_Comm comm)
{
    rd_mpi_comm_t *c = rd_mpi_comm_get(comm);

    if (likely(c && c->last_moved == type && (int64_t)count * (int64_t)c->last_moved_size > 0 && buffer &&
               buffer != MPI_IN_PLACE && (unsigned)root < (unsigned)c->nranks &&
               rd_mpi_allowed(c->rules, RD_MPI_BCAST, (uint64_t)count * c->last_moved_size))) {
        size_t bytes = (size_t)count * c->last_moved_size;
        rd_mpi_count_served(RD_MPI_BCAST, bytes);
        return rd_mpi_result(c, rondo_broadcast(buffer, buffer, bytes, RONDO_UINT8, root, c->rondo, NULL));
    }
    return FORM(run_bcast)(buffer, count, type, root, comm);
}

/* Can a buffer of `count` elements of the last type that was moved go as it is? */
#define PLAIN(c, buffer, count, type)                                                                                  \
    ((c)->last_moved == (type) && (int64_t)(count) * (int64_t)(c)->last_moved_size > 0 && (buffer) &&                  \
     (buffer) != MPI_IN_PLACE)
/* This rank's block among those of all; what lies there already the MPI may refuse. */
#define OWN(c, blocks, count) ((const char *)(blocks) + (size_t)(c)->rank * (size_t)(count) * (c)->last_moved_size)

static int FORM(gather)(const void *send, K sendcount, MPI_Datatype sendtype, void *recv, K recvcount,
                        MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    rd_mpi_comm_t *c = rd_mpi_comm_get(comm);

    if (likely(c && PLAIN(c, send, sendcount, sendtype) && (unsigned)root < (unsigned)c->nranks &&
               (c->rank != root ||
                (PLAIN(c, recv, recvcount, recvtype) && sendcount == recvcount && send != OWN(c, recv, recvcount))) &&
               rd_mpi_allowed(c->rules, RD_MPI_GATHER, (uint64_t)sendcount * c->last_moved_size))) {
        size_t bytes = (size_t)sendcount * c->last_moved_size;
        rd_mpi_count_served(RD_MPI_GATHER, bytes);
        return rd_mpi_result(c, rondo_gather(send, recv, bytes, RONDO_UINT8, root, c->rondo, NULL));
    }
    return FORM(run_gather)(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm);
}

static int FORM(scatter)(const void *send, K sendcount, MPI_Datatype sendtype, void *recv, K recvcount,
                         MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    rd_mpi_comm_t *c = rd_mpi_comm_get(comm);

    if (likely(c && PLAIN(c, recv, recvcount, recvtype) && (unsigned)root < (unsigned)c->nranks &&
               (c->rank != root ||
                (PLAIN(c, send, sendcount, sendtype) && sendcount == recvcount && recv != OWN(c, send, sendcount))) &&
               rd_mpi_allowed(c->rules, RD_MPI_SCATTER, (uint64_t)recvcount * c->last_moved_size))) {
        size_t bytes = (size_t)recvcount * c->last_moved_size;
        rd_mpi_count_served(RD_MPI_SCATTER, bytes);
        return rd_mpi_result(c, rondo_scatter(send, recv, bytes, RONDO_UINT8, root, c->rondo, NULL));
    }
    return FORM(run_scatter)(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm);
}

#define ALL(name, WHAT, own)                                                                                           \
    static int FORM(name)(const void *send, K sendcount, MPI_Datatype sendtype, void *recv, K recvcount,               \
                          MPI_Datatype recvtype, MPI_Comm comm)                                                        \
    {                                                                                                                  \
        rd_mpi_comm_t *c = rd_mpi_comm_get(comm);                                                                      \
                                                                                                                       \
        if (likely(c && PLAIN(c, send, sendcount, sendtype) && PLAIN(c, recv, recvcount, recvtype) &&                  \
                   sendcount == recvcount && send != (own) &&                                                          \
                   rd_mpi_allowed(c->rules, WHAT, (uint64_t)sendcount * c->last_moved_size))) {                        \
            size_t bytes = (size_t)sendcount * c->last_moved_size;                                                     \
            rd_mpi_count_served(WHAT, bytes);                                                                          \
            return rd_mpi_result(c, rondo_##name(send, recv, bytes, RONDO_UINT8, c->rondo, NULL));                     \
        }                                                                                                              \
        return FORM(run_##name)(send, sendcount, sendtype, recv, recvcount, recvtype, comm);                           \
    }
ALL(allgather, RD_MPI_ALLGATHER, OWN(c, recv, recvcount))
ALL(alltoall, RD_MPI_ALLTOALL, recv)
#undef ALL
#undef OWN
#undef PLAIN

/* On to who comes behind, with the arguments as they came; `request` is for those that have one. */
#define PASS(Name, name, ...)                                                                                          \
    return l->form == RD_MPI_BLOCKING      ? n->NEXT(Name)(__VA_ARGS__)                                                \
           : l->form == RD_MPI_NONBLOCKING ? n->NEXT_I(name)(__VA_ARGS__, request)                                     \
                                           : n->NEXT_INIT(Name)(__VA_ARGS__, MPI_INFO_NULL, request)
static int FORM(pass)(const rd_mpi_call_t *l, MPI_Request *request)
{
    const rd_mpi_entries_t *n = &rd_mpi_next;
    K sendcount = (K)l->sendcount, count = (K)l->recvcount;

    switch (l->what) {
    case RD_MPI_BCAST:
        PASS(Bcast, bcast, l->recv, count, l->recvtype, l->root, l->comm);
    case RD_MPI_REDUCE:
        PASS(Reduce, reduce, l->send, l->recv, count, l->recvtype, l->op, l->root, l->comm);
    case RD_MPI_ALLREDUCE:
        PASS(Allreduce, allreduce, l->send, l->recv, count, l->recvtype, l->op, l->comm);
    case RD_MPI_REDUCE_SCATTER_BLOCK:
        PASS(Reduce_scatter_block, reduce_scatter_block, l->send, l->recv, count, l->recvtype, l->op, l->comm);
    case RD_MPI_REDUCE_SCATTER:
        PASS(Reduce_scatter, reduce_scatter, l->send, l->recv, l->recvcounts, l->recvtype, l->op, l->comm);
    case RD_MPI_SCAN:
        PASS(Scan, scan, l->send, l->recv, count, l->recvtype, l->op, l->comm);
    case RD_MPI_EXSCAN:
        PASS(Exscan, exscan, l->send, l->recv, count, l->recvtype, l->op, l->comm);
    case RD_MPI_GATHER:
        PASS(Gather, gather, l->send, sendcount, l->sendtype, l->recv, count, l->recvtype, l->root, l->comm);
    case RD_MPI_GATHERV:
        PASS(Gatherv, gatherv, l->send, sendcount, l->sendtype, l->recv, l->recvcounts, l->rdispls, l->recvtype,
             l->root, l->comm);
    case RD_MPI_SCATTER:
        PASS(Scatter, scatter, l->send, sendcount, l->sendtype, l->recv, count, l->recvtype, l->root, l->comm);
    case RD_MPI_SCATTERV:
        PASS(Scatterv, scatterv, l->send, l->sendcounts, l->sdispls, l->sendtype, l->recv, count, l->recvtype, l->root,
             l->comm);
    case RD_MPI_ALLGATHER:
        PASS(Allgather, allgather, l->send, sendcount, l->sendtype, l->recv, count, l->recvtype, l->comm);
    case RD_MPI_ALLGATHERV:
        PASS(Allgatherv, allgatherv, l->send, sendcount, l->sendtype, l->recv, l->recvcounts, l->rdispls, l->recvtype,
             l->comm);
    case RD_MPI_ALLTOALL:
        PASS(Alltoall, alltoall, l->send, sendcount, l->sendtype, l->recv, count, l->recvtype, l->comm);
    case RD_MPI_ALLTOALLV:
        PASS(Alltoallv, alltoallv, l->send, l->sendcounts, l->sdispls, l->sendtype, l->recv, l->recvcounts, l->rdispls,
             l->recvtype, l->comm);
    default:
        return l->form == RD_MPI_BLOCKING      ? n->Barrier(l->comm)
               : l->form == RD_MPI_NONBLOCKING ? n->Ibarrier(l->comm, request)
                                               : n->Barrier_init(l->comm, MPI_INFO_NULL, request);
    }
}
#undef PASS
