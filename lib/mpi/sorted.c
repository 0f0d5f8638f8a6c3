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

/* Reduces what was collected and writes this rank's result. */
static int finish(rd_mpi_comm_t *c, const rd_mpi_call_t *call, char *blocks, size_t stride, size_t count, char *to)
{
    int last = c->nranks - 1, result;

    if (call->what == RD_MPI_REDUCE && c->rank != call->root)
        return MPI_SUCCESS;
    if (call->what == RD_MPI_SCAN)
        last = c->rank;
    if (call->what == RD_MPI_EXSCAN)
        last = c->rank - 1;
    if (last < 0)
        return MPI_SUCCESS;
    result = reduce_blocks(blocks, stride, 0, last, count, call);
    if (result == MPI_SUCCESS && count)
        memcpy(to, blocks + (size_t)last * stride, stride);
    return result;
}

/* `count` elements of every rank; `room` for all of them. */
static int piece(rd_mpi_comm_t *c, const rd_mpi_call_t *call, const char *from, char *to, size_t count, size_t size,
                 char *room)
{
    size_t bytes = count * size;
    rondo_result_t result;

    if (call->what == RD_MPI_REDUCE)
        result = rondo_gather(from, room, bytes, RONDO_UINT8, call->root, c->rondo, NULL);
    else
        result = rondo_allgather(from, room, bytes, RONDO_UINT8, c->rondo, NULL);
    if (result != RONDO_SUCCESS)
        return rd_mpi_failed(c, result);
    return finish(c, call, room, bytes, count, to);
}

static int whole(rd_mpi_comm_t *c, const rd_mpi_call_t *call, size_t size)
{
    const char *from = call->send == MPI_IN_PLACE ? call->recv : call->send;
    size_t count = (size_t)call->recvcount, most = PIECE / ((size_t)c->nranks * size);
    int result = MPI_SUCCESS;
    char *room, *to = call->recv;

    if (most == 0)
        most = 1;
    room = malloc((count < most ? count : most) * size * (size_t)c->nranks + 1);
    if (!room)
        return rd_mpi_raise(c, MPI_ERR_NO_MEM);
    while (count && result == MPI_SUCCESS) {
        size_t n = count < most ? count : most;
        result = piece(c, call, from, to, n, size, room);
        from += n * size;
        to += to ? n * size : 0;
        count -= n;
    }
    free(room);
    return result;
}

/* Reduce_scatter: each rank gets its block of every other. */
static int scattered(rd_mpi_comm_t *c, const rd_mpi_call_t *call, size_t size)
{
    size_t n = (size_t)c->nranks, own, offset = 0, *lists = c->lists, *sends = lists, *sdispls = lists + n;
    size_t *recvs = lists + 2 * n, *rdispls = lists + 3 * n;
    const void *send = call->send == MPI_IN_PLACE ? call->recv : call->send;
    rondo_result_t result;
    char *room;
    int reduced;

    for (size_t r = 0; r < n; r++) {
        sends[r] =
            size * (size_t)(call->recvcounts ? rd_mpi_list_at(call->recvcounts, call->large, (int)r) : call->recvcount);
        sdispls[r] = offset;
        offset += sends[r];
    }
    own = sends[c->rank];
    for (size_t r = 0; r < n; r++) {
        recvs[r] = own;
        rdispls[r] = r * own;
    }
    room = malloc(n * own + 1);
    if (!room)
        return rd_mpi_raise(c, MPI_ERR_NO_MEM);
    result = rondo_alltoallv(send, sends, sdispls, room, recvs, rdispls, RONDO_UINT8, c->rondo, NULL);
    reduced = result == RONDO_SUCCESS ? reduce_blocks(room, own, 0, c->nranks - 1, own / size, call)
                                      : rd_mpi_failed(c, result);
    if (reduced == MPI_SUCCESS && own)
        memcpy(call->recv, room + (n - 1) * own, own);
    free(room);
    return reduced;
}

int rd_mpi_serve_sorted(rd_mpi_comm_t *c, const rd_mpi_call_t *call, size_t size)
{
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
    rd_mpi_count_served(call->what, all / (size_t)(scatters ? 1 : c->nranks));
    return scatters ? scattered(c, call, size) : whole(c, call, size);
}
