/* Reductions in the order of ranks: what every rank has is collected, and each rank that gets a result reduces for
 * itself, by MPI_Reduce_local, always x0 op (x1 op (... op xn)). That serves what rondo's own schedules cannot:
 * MPI_Scan and MPI_Exscan, operators of the user, commutative or not, types that rondo does not have, and, where
 * RONDO_MPI_REPRODUCIBLE asks for it, sums whose bits depend on nothing but the number of ranks and the values. It
 * costs as many times the bytes as there are ranks, so long ones go to the MPI, unless they have to be reproducible:
 * those are done piece by piece. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/interpose.h"

#define MOST (256 << 10)  /* bytes of all ranks together, of calls that the MPI can do as well */
#define PIECE (1 << 20)   /* bytes of all ranks together that are collected at once */
#define AT_ONCE (1 << 30) /* elements that are reduced at once */

/* What was collected in one piece may have more elements than fit into an int. */
static int reduce(const char *in, char *inout, size_t count, size_t size, const rd_mpi_call_t *call)
{
    int result = MPI_SUCCESS;

    for (size_t done = 0, n; done < count && result == MPI_SUCCESS; done += n) {
        n = count - done < AT_ONCE ? count - done : AT_ONCE;
        result = PMPI_Reduce_local(in + done * size, inout + done * size, (int)n, call->recvtype, call->op);
    }
    return result;
}

/* Reduces blocks[first] to blocks[last], `stride` bytes one behind the other, into the last one. */
static int reduce_blocks(char *blocks, size_t stride, int first, int last, size_t count, const rd_mpi_call_t *call)
{
    int result = MPI_SUCCESS;

    for (int r = last - 1; r >= first && result == MPI_SUCCESS && count; r--)
        result = reduce(blocks + (size_t)r * stride, blocks + (size_t)last * stride, count, stride / count, call);
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

/* Counts a request if it has begun. Errors on a communicator of this library's are raised on the user's. */
static int begun(rd_mpi_work_t *w, int result)
{
    w->num_parts += result == MPI_SUCCESS;
    return result == MPI_SUCCESS || w->comm == w->c->comm ? result : rd_mpi_raise(w->c, result);
}

static int gather(rd_mpi_work_t *w, const char *from, size_t bytes, int root)
{
    if (w->rondo)
        return rd_mpi_result(w->c, rondo_gather(from, w->sorted.blocks, bytes, RONDO_UINT8, root, w->rondo, NULL));
    if (w->parts)
        return begun(w, PMPI_Igather(from, (int)bytes, MPI_BYTE, w->sorted.blocks, (int)bytes, MPI_BYTE, root, w->comm,
                                     &w->parts[w->num_parts]));
    return PMPI_Gather(from, (int)bytes, MPI_BYTE, w->sorted.blocks, (int)bytes, MPI_BYTE, root, w->comm);
}

static int allgather(rd_mpi_work_t *w, const char *from, size_t bytes)
{
    if (w->rondo)
        return rd_mpi_result(w->c, rondo_allgather(from, w->sorted.blocks, bytes, RONDO_UINT8, w->rondo, NULL));
    if (w->parts)
        return begun(w, PMPI_Iallgather(from, (int)bytes, MPI_BYTE, w->sorted.blocks, (int)bytes, MPI_BYTE, w->comm,
                                        &w->parts[w->num_parts]));
    return PMPI_Allgather(from, (int)bytes, MPI_BYTE, w->sorted.blocks, (int)bytes, MPI_BYTE, w->comm);
}

/* Collects `count` elements of every rank, from the `done`th on. */
static int collect(rd_mpi_work_t *w, size_t done, size_t count, size_t size)
{
    const rd_mpi_call_t *call = w->call;
    const char *from = call->send == MPI_IN_PLACE ? call->recv : call->send;
    size_t bytes = count * size;

    from = from ? from + done * size : NULL;
    w->sorted.stride = bytes;
    w->sorted.count = count;
    w->sorted.to = call->recv ? (char *)call->recv + done * size : NULL;
    return call->what == RD_MPI_REDUCE ? gather(w, from, bytes, call->root) : allgather(w, from, bytes);
}

/* The last piece is left for the end. A nonblocking call has no other one: what it would begin later would not come in
 * the same order on all ranks. A piece is at most PIECE bytes or one element, and the MPI's counts are ints. */
static int whole(rd_mpi_work_t *w, size_t size)
{
    size_t n = (size_t)w->c->nranks, count = (size_t)w->call->recvcount, most = PIECE / (n * size), done = 0;
    int result = MPI_SUCCESS;

    if (w->call->form != RD_MPI_BLOCKING)
        most = count;
    if (most == 0)
        most = 1;
    if (!w->rondo && size > INT_MAX)
        return RD_MPI_HAND_ON(RD_MPI_OPERATOR);
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

static size_t block_of(const rd_mpi_call_t *call, size_t size, size_t r)
{
    return size * (size_t)(call->recvcounts ? rd_mpi_list_at(call->recvcounts, call->large, (int)r) : call->recvcount);
}

bool rd_mpi_may_collect(const rd_mpi_comm_t *c, const rd_mpi_call_t *call, size_t size)
{
    for (size_t r = 0; size && r < (call->recvcounts ? (size_t)c->nranks : 1); r++) {
        if (block_of(call, 1, r) > INT_MAX / size)
            return false;
    }
    return size > 0;
}

/* Block by block, each rank gathers its own. The MPI's counts are ints. */
static int scatter_by_mpi(rd_mpi_work_t *w, const char *send, size_t size)
{
    int result = MPI_SUCCESS;

    for (int r = 0; r < w->c->nranks; r++) {
        if (block_of(w->call, size, (size_t)r) > INT_MAX)
            return RD_MPI_HAND_ON(RD_MPI_OPERATOR);
    }
    for (int r = 0; r < w->c->nranks && result == MPI_SUCCESS; r++) {
        result = gather(w, send, block_of(w->call, size, (size_t)r), r);
        send += block_of(w->call, size, (size_t)r);
    }
    return result;
}

static int scatter_by_rondo(rd_mpi_work_t *w, const char *send, size_t size)
{
    size_t n = (size_t)w->c->nranks, offset = 0, *sends = w->lists, *sdispls = sends + n;
    size_t *recvs = sends + 2 * n, *rdispls = sends + 3 * n;

    for (size_t r = 0; r < n; r++) {
        sends[r] = block_of(w->call, size, r);
        sdispls[r] = offset;
        offset += sends[r];
        recvs[r] = w->sorted.stride;
        rdispls[r] = r * w->sorted.stride;
    }
    return rd_mpi_result(
        w->c, rondo_alltoallv(send, sends, sdispls, w->sorted.blocks, recvs, rdispls, RONDO_UINT8, w->rondo, NULL));
}

/* Reduce_scatter: each rank gets its block of every other. */
static int scattered(rd_mpi_work_t *w, size_t size)
{
    const rd_mpi_call_t *call = w->call;
    size_t n = (size_t)w->c->nranks, own = block_of(call, size, (size_t)w->c->rank);
    const void *send = call->send == MPI_IN_PLACE ? call->recv : call->send;

    w->sorted.blocks = malloc(n * own + 1);
    if (!w->sorted.blocks)
        return rd_mpi_raise(w->c, MPI_ERR_NO_MEM);
    w->sorted.last = (int)n - 1;
    w->sorted.stride = own;
    w->sorted.count = own / size;
    w->sorted.to = call->recv;
    return w->rondo ? scatter_by_rondo(w, send, size) : scatter_by_mpi(w, send, size);
}

int rd_mpi_begin_sorted(rd_mpi_work_t *w, size_t size, bool must)
{
    const rd_mpi_comm_t *c = w->c;
    const rd_mpi_call_t *call = w->call;
    bool scatters = call->what == RD_MPI_REDUCE_SCATTER || call->what == RD_MPI_REDUCE_SCATTER_BLOCK;
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
