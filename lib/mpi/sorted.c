/* Reductions in the order of ranks: what every rank has is collected, and each rank that gets a result reduces for
 * itself, by MPI_Reduce_local, always x0 op (x1 op (... op xn)). That serves what rondo's own schedules cannot:
 * MPI_Scan and MPI_Exscan, operators of the user, commutative or not, types that rondo does not have, and, where
 * RONDO_MPI_REPRODUCIBLE asks for it, sums whose bits depend on nothing but the number of ranks and the values. It
 * costs as many times the bytes as there are ranks, so long ones go to the MPI, unless they have to be reproducible:
 * those are done piece by piece. */
#include <stdlib.h>
#include <string.h>

#include "mpi/interpose.h"

#define MOST (256 << 10) /* bytes of all ranks together, of calls that the MPI can do as well */
#define PIECE (1 << 20)  /* bytes of all ranks together that are collected at once */

/* Reduces blocks[first] to blocks[last], `stride` bytes one behind the other, into the last one. */
static int reduce_blocks(char *blocks, size_t stride, int first, int last, size_t count, const rd_mpi_call_t *call)
{
    int result = MPI_SUCCESS;

    for (int r = last - 1; r >= first && result == MPI_SUCCESS && count; r--)
        result = PMPI_Reduce_local(blocks + (size_t)r * stride, blocks + (size_t)last * stride, (int)count,
                                   call->recvtype, call->op);
    return result;
}

int rd_mpi_end_sorted(const rd_mpi_work_t *w)
{
    size_t count = w->sorted.count, stride = w->sorted.stride;
    int last = w->sorted.last, result;

    if (last < 0 || !count)
        return MPI_SUCCESS;
    result = reduce_blocks(w->sorted.blocks, stride, 0, last, count, w->call);
    if (result == MPI_SUCCESS)
        memcpy(w->sorted.to, w->sorted.blocks + (size_t)last * stride, stride);
    return result;
}

/* The last rank whose block counts for this rank's result. */
static int last_of(const rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    switch (call->what) {
    case RD_MPI_SCAN:
        return c->rank;
    case RD_MPI_EXSCAN:
        return c->rank - 1;
    case RD_MPI_REDUCE:
        return c->rank == call->root ? c->nranks - 1 : -1;
    default:
        return c->nranks - 1;
    }
}

/* Collects `count` elements of every rank, from the `done`th on. */
static int collect(rd_mpi_work_t *w, size_t done, size_t count, size_t size)
{
    const rd_mpi_call_t *call = w->call;
    const char *from = call->send == MPI_IN_PLACE ? call->recv : call->send;
    size_t bytes = count * size;
    rondo_result_t result;

    from = from ? from + done * size : NULL;
    w->sorted.stride = bytes;
    w->sorted.count = count;
    w->sorted.to = call->recv ? (char *)call->recv + done * size : NULL;
    if (call->what == RD_MPI_REDUCE)
        result = rondo_gather(from, w->sorted.blocks, bytes, RONDO_UINT8, call->root, w->rondo, NULL);
    else
        result = rondo_allgather(from, w->sorted.blocks, bytes, RONDO_UINT8, w->rondo, NULL);
    return rd_mpi_result(w->c, result);
}

/* The last piece is left for the end. A nonblocking call has no other one: what it would begin later would not come in
 * the same order on all ranks. */
static int whole(rd_mpi_work_t *w, size_t size)
{
    size_t n = (size_t)w->c->nranks, count = (size_t)w->call->recvcount, most = PIECE / (n * size), done = 0;
    int result = MPI_SUCCESS;

    if (w->call->form != RD_MPI_BLOCKING)
        most = count;
    if (most == 0)
        most = 1;
    w->sorted.last = last_of(w->c, w->call);
    w->sorted.blocks = malloc((count < most ? count : most) * size * n + 1);
    if (!w->sorted.blocks)
        return rd_mpi_raise(w->c, MPI_ERR_NO_MEM);
    for (; count - done > most && result == MPI_SUCCESS; done += most) {
        result = collect(w, done, most, size);
        if (result == MPI_SUCCESS)
            result = rd_mpi_end_sorted(w);
    }
    return result == MPI_SUCCESS ? collect(w, done, count - done, size) : result;
}

/* Reduce_scatter: each rank gets its block of every other. */
static int scattered(rd_mpi_work_t *w, size_t size)
{
    const rd_mpi_call_t *call = w->call;
    size_t n = (size_t)w->c->nranks, own, offset = 0, *sends = w->lists, *sdispls = sends + n;
    size_t *recvs = sends + 2 * n, *rdispls = sends + 3 * n;
    const void *send = call->send == MPI_IN_PLACE ? call->recv : call->send;

    for (size_t r = 0; r < n; r++) {
        sends[r] =
            size * (size_t)(call->recvcounts ? rd_mpi_list_at(call->recvcounts, call->large, (int)r) : call->recvcount);
        sdispls[r] = offset;
        offset += sends[r];
    }
    own = sends[w->c->rank];
    for (size_t r = 0; r < n; r++) {
        recvs[r] = own;
        rdispls[r] = r * own;
    }
    w->sorted.blocks = malloc(n * own + 1);
    if (!w->sorted.blocks)
        return rd_mpi_raise(w->c, MPI_ERR_NO_MEM);
    w->sorted.last = (int)n - 1;
    w->sorted.stride = own;
    w->sorted.count = own / size;
    w->sorted.to = call->recv;
    return rd_mpi_result(
        w->c, rondo_alltoallv(send, sends, sdispls, w->sorted.blocks, recvs, rdispls, RONDO_UINT8, w->rondo, NULL));
}

int rd_mpi_begin_sorted(rd_mpi_work_t *w, size_t size)
{
    const rd_mpi_comm_t *c = w->c;
    const rd_mpi_call_t *call = w->call;
    bool scatters = call->what == RD_MPI_REDUCE_SCATTER || call->what == RD_MPI_REDUCE_SCATTER_BLOCK;
    bool must = c->rules->reproducible && call->what != RD_MPI_SCAN && call->what != RD_MPI_EXSCAN;
    size_t all = 0;

    if (size == 0)
        return RD_MPI_HAND_ON(RD_MPI_OPERATOR);
    for (int r = 0; r < c->nranks; r++)
        all += size * (size_t)(call->what == RD_MPI_REDUCE_SCATTER ? rd_mpi_list_at(call->recvcounts, call->large, r)
                                                                   : call->recvcount);
    if (!must && all > MOST)
        return RD_MPI_HAND_ON(RD_MPI_OPERATOR);
    w->bytes = all / (size_t)(scatters ? 1 : c->nranks);
    return scatters ? scattered(w, size) : whole(w, size);
}
