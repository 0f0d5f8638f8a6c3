/* Which bytes of a buffer a call touches: from the first one to the last one, and where a type or the displacements
 * leave gaps, which of these it receives. What is in the gaps is not the call's: another one may receive there, or the
 * program write, while this one goes on, so they must not be written back with it. The MPI itself says which bytes are
 * a type's, by unpacking marks. */
#include <stdlib.h>
#include <string.h>

#include "mpi/device_spans.h"

/* Called for `count` elements of `type` from the `first`th place on. Returns false to end. */
typedef bool (*block_fn)(void *data, int64_t first, int64_t count, MPI_Datatype type);

static bool widen(void *data, int64_t first, int64_t count, MPI_Datatype type)
{
    rd_mpi_span_t *s = data;
    MPI_Count lb, extent, true_lb, true_extent;
    int64_t low, high;

    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return true;
    PMPI_Type_get_extent_x(type, &lb, &extent);
    PMPI_Type_get_true_extent_x(type, &true_lb, &true_extent);
    low = first * extent + true_lb;
    high = low + (count - 1) * extent + true_extent;
    if (extent < 0)
        low += (count - 1) * extent;
    if (s->low == s->high) {
        s->low = low;
        s->high = high;
    }
    s->low = low < s->low ? low : s->low;
    s->high = high > s->high ? high : s->high;
    return true;
}

static int64_t blocks_of(const rd_mpi_comm_t *c, const rd_mpi_call_t *call, bool is_send)
{
    switch (call->what) {
    case RD_MPI_ALLTOALL:
        return c->nranks;
    case RD_MPI_SCATTER:
        return is_send ? c->nranks : 1;
    case RD_MPI_GATHER:
    case RD_MPI_ALLGATHER:
        return is_send ? 1 : c->nranks;
    case RD_MPI_REDUCE_SCATTER_BLOCK:
        return is_send || call->send == MPI_IN_PLACE ? c->nranks : 1;
    default:
        return 1;
    }
}

static bool reduces(const rd_mpi_call_t *call)
{
    return call->what >= RD_MPI_BCAST && call->what <= RD_MPI_EXSCAN;
}

static const void *counts_of(const rd_mpi_call_t *call, bool is_send)
{
    return is_send && !reduces(call) ? call->sendcounts : call->recvcounts;
}

static const void *displs_of(const rd_mpi_call_t *call, bool is_send)
{
    return is_send ? call->sdispls : call->rdispls;
}

static void each_block(const rd_mpi_comm_t *c, const rd_mpi_call_t *call, bool is_send, block_fn block, void *data)
{
    const void *counts = counts_of(call, is_send), *displs = displs_of(call, is_send);
    MPI_Datatype type = is_send && !reduces(call) ? call->sendtype : call->recvtype;
    MPI_Count count = is_send && !reduces(call) ? call->sendcount : call->recvcount;
    int64_t all = 0;

    if (call->what == RD_MPI_REDUCE_SCATTER) {
        for (int r = 0; r < c->nranks; r++)
            all += rd_mpi_list_at(counts, call->large, r);
        block(data, 0, is_send || call->send == MPI_IN_PLACE ? all : rd_mpi_list_at(counts, call->large, c->rank),
              type);
    } else if (counts && displs) {
        for (int r = 0; r < c->nranks; r++) {
            if (!block(data, rd_mpi_list_at(displs, call->large, r), rd_mpi_list_at(counts, call->large, r), type))
                return;
        }
    } else {
        block(data, 0, blocks_of(c, call, is_send) * count, type);
    }
}

void rd_mpi_span_measure(const rd_mpi_comm_t *c, const rd_mpi_call_t *call, bool is_send, rd_mpi_span_t *s)
{
    each_block(c, call, is_send, widen, s);
}

/* One byte for each of the span's: 0, or not if it is received. */
typedef struct {
    rd_mpi_comm_t *c;
    const rd_mpi_span_t *span;
    char *marks;
    int result;
} marking_t;

static bool mark(void *data, int64_t first, int64_t count, MPI_Datatype type)
{
    marking_t *m = data;
    rd_mpi_layout_t layout;
    char *ones;

    if (count <= 0 || !rd_mpi_layout(type, &layout))
        return true;
    ones = malloc((size_t)count * layout.size + 1);
    if (!ones) {
        m->result = rd_mpi_raise(m->c, MPI_ERR_NO_MEM);
        return false;
    }
    memset(ones, 1, (size_t)count * layout.size);
    m->result = rd_mpi_unpack(m->c, ones, m->marks - m->span->low + first * layout.extent, count, type, &layout);
    free(ones);
    return m->result == MPI_SUCCESS;
}

/* Writes the pieces to `to`, if that is not NULL, and returns how many there are. */
static size_t find_pieces(const rd_mpi_span_t *s, const char *marks, rd_mpi_piece_t *to)
{
    int64_t bytes = s->high - s->low, from, at = 0;
    size_t n = 0;

    while (at < bytes) {
        while (at < bytes && !marks[at])
            at++;
        from = at;
        while (at < bytes && marks[at])
            at++;
        if (to && at > from)
            to[n] = (rd_mpi_piece_t){s->low + from, s->low + at};
        n += at > from;
    }
    return n;
}

static bool has_gaps(const rd_mpi_call_t *call)
{
    rd_mpi_layout_t layout;

    return (counts_of(call, false) && displs_of(call, false)) || !rd_mpi_layout(call->recvtype, &layout) ||
           !layout.dense;
}

int rd_mpi_span_divide(rd_mpi_comm_t *c, const rd_mpi_call_t *call, rd_mpi_span_t *s)
{
    marking_t m = {.c = c, .span = s, .result = MPI_SUCCESS};

    if (!has_gaps(call))
        return MPI_SUCCESS;
    m.marks = calloc((size_t)(s->high - s->low), 1);
    if (!m.marks)
        return rd_mpi_raise(c, MPI_ERR_NO_MEM);
    each_block(c, call, false, mark, &m);
    if (m.result == MPI_SUCCESS) {
        s->num_pieces = find_pieces(s, m.marks, NULL);
        s->pieces = malloc((s->num_pieces + 1) * sizeof *s->pieces);
        if (s->pieces)
            find_pieces(s, m.marks, s->pieces);
        else
            m.result = rd_mpi_raise(c, MPI_ERR_NO_MEM);
    }
    free(m.marks);
    return m.result;
}
