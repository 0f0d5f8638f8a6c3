/* What moves blocks of different lengths. Each rank knows only its own lengths, allgatherv aside, so there is no choice
 * by size here. */
#include <stdlib.h>

#include "mpi/interpose.h"

static int64_t count_at(const rd_mpi_side_t *s, int r)
{
    return rd_mpi_list_at(s->counts, s->large, r);
}

static char *user_block(const rd_mpi_side_t *s, int r)
{
    return s->user + rd_mpi_list_at(s->displs, s->large, r) * s->layout.extent;
}

/* Dense blocks stay where they are: offsets count from the lowest, for MPI's displacements may be negative. Where there
 * are none the user's buffer does not matter, and may be the other side's. */
static void lay_out(rd_mpi_side_t *s, int n)
{
    int64_t lowest = INT64_MAX;

    for (int r = 0; r < n; r++) {
        int64_t displ = rd_mpi_list_at(s->displs, s->large, r);
        if (count_at(s, r) && displ < lowest)
            lowest = displ;
    }
    if (lowest == INT64_MAX)
        lowest = 0;
    s->at = s->user && s->bytes ? s->user + lowest * s->layout.extent + s->layout.true_lb : NULL;
    for (int r = 0; r < n; r++)
        s->offsets[r] =
            s->lengths[r] ? (size_t)((rd_mpi_list_at(s->displs, s->large, r) - lowest) * s->layout.extent) : 0;
}

/* Fills lengths and offsets, and takes memory if blocks have to be packed. */
static int begin(rd_mpi_comm_t *c, rd_mpi_side_t *s, size_t *lists, bool copy)
{
    s->lengths = lists;
    s->offsets = lists + c->nranks;
    s->bytes = 0;
    for (int r = 0; r < c->nranks; r++) {
        s->lengths[r] = (size_t)count_at(s, r) * s->layout.size;
        s->offsets[r] = s->bytes;
        s->bytes += s->lengths[r];
    }
    if (s->layout.dense && !copy) {
        lay_out(s, c->nranks);
        return MPI_SUCCESS;
    }
    s->at = s->owned = malloc(s->bytes + 1);
    return s->owned ? MPI_SUCCESS : rd_mpi_raise(c, MPI_ERR_NO_MEM);
}

static int pack_one(rd_mpi_comm_t *c, const rd_mpi_side_t *s, int r)
{
    return count_at(s, r) ? rd_mpi_pack(c, user_block(s, r), count_at(s, r), s->type, &s->layout, s->at + s->offsets[r])
                          : MPI_SUCCESS;
}

static int pack_all(rd_mpi_comm_t *c, const rd_mpi_side_t *s)
{
    int result = MPI_SUCCESS;

    for (int r = 0; s->owned && r < c->nranks && result == MPI_SUCCESS; r++)
        result = pack_one(c, s, r);
    return result;
}

int rd_mpi_end_lists(const rd_mpi_work_t *w)
{
    const rd_mpi_side_t *s = &w->to;
    int result = MPI_SUCCESS;

    for (int r = 0; r < w->c->nranks && result == MPI_SUCCESS; r++) {
        if (r != w->but && count_at(s, r))
            result = rd_mpi_unpack(w->c, s->at + s->offsets[r], user_block(s, r), count_at(s, r), s->type, &s->layout);
    }
    return result;
}

static rd_mpi_side_t send_side(const rd_mpi_call_t *call, const rd_mpi_layout_t *layout)
{
    return (rd_mpi_side_t){.layout = *layout,
                           .type = call->sendtype,
                           .user = (char *)(uintptr_t)call->send,
                           .counts = call->sendcounts,
                           .displs = call->sdispls,
                           .large = call->large};
}

static rd_mpi_side_t recv_side(const rd_mpi_call_t *call, const rd_mpi_layout_t *layout)
{
    return (rd_mpi_side_t){.layout = *layout,
                           .type = call->recvtype,
                           .user = call->recv,
                           .counts = call->recvcounts,
                           .displs = call->rdispls,
                           .large = call->large};
}

/* gatherv, allgatherv */
static int gatherv(rd_mpi_work_t *w, const rd_mpi_layout_t *send, const rd_mpi_layout_t *recv)
{
    rd_mpi_comm_t *c = w->c;
    const rd_mpi_call_t *call = w->call;
    bool all = call->what == RD_MPI_ALLGATHERV, gets = all || c->rank == call->root;
    rd_mpi_bytes_t *in = &w->in;
    rd_mpi_side_t *out = &w->to;
    int result;

    *out = recv_side(call, recv);
    result = gets ? begin(c, out, w->lists, false) : MPI_SUCCESS;
    if (result == MPI_SUCCESS && all)
        result = rd_mpi_admit(w, out->bytes);
    if (result == MPI_SUCCESS && gets && call->send == MPI_IN_PLACE) {
        w->but = c->rank;
        in->bytes = out->lengths[c->rank];
        in->at = out->at ? out->at + out->offsets[c->rank] : NULL;
        result = out->owned ? pack_one(c, out, c->rank) : MPI_SUCCESS;
    } else if (result == MPI_SUCCESS) {
        result = rd_mpi_sent(c, in, call->send, call->sendcount, call->sendtype, send);
    }
    if (result != MPI_SUCCESS)
        return result;
    w->bytes = all ? out->bytes : in->bytes;
    return rd_mpi_result(
        c, all ? rondo_allgatherv(in->at, in->bytes, out->at, out->lengths, out->offsets, RONDO_UINT8, w->rondo, NULL)
               : rondo_gatherv(in->at, in->bytes, out->at, out->lengths, out->offsets, RONDO_UINT8, call->root,
                               w->rondo, NULL));
}

static int scatterv(rd_mpi_work_t *w, const rd_mpi_layout_t *send, const rd_mpi_layout_t *recv)
{
    rd_mpi_comm_t *c = w->c;
    const rd_mpi_call_t *call = w->call;
    bool root = c->rank == call->root;
    rd_mpi_side_t *in = &w->from;
    rd_mpi_bytes_t *out = &w->out;
    int result;

    *in = send_side(call, send);
    result = root ? begin(c, in, w->lists, false) : MPI_SUCCESS;
    if (result == MPI_SUCCESS && root)
        result = pack_all(c, in);
    if (result == MPI_SUCCESS && root && call->recv == MPI_IN_PLACE) {
        out->bytes = in->lengths[c->rank];
        out->at = in->at ? in->at + in->offsets[c->rank] : NULL;
    } else if (result == MPI_SUCCESS) {
        result = rd_mpi_receiving(c, out, call->recv, call->recvcount, call->recvtype, recv);
    }
    if (result != MPI_SUCCESS)
        return result;
    w->bytes = out->bytes;
    return rd_mpi_result(c, rondo_scatterv(in->at, in->lengths, in->offsets, out->at, out->bytes, RONDO_UINT8,
                                           call->root, w->rondo, NULL));
}

static int alltoallv(rd_mpi_work_t *w, const rd_mpi_layout_t *send, const rd_mpi_layout_t *recv)
{
    rd_mpi_comm_t *c = w->c;
    const rd_mpi_call_t *call = w->call;
    bool in_place = call->send == MPI_IN_PLACE;
    rd_mpi_side_t *in = &w->from, *out = &w->to;
    int result;

    *out = recv_side(call, recv);
    *in = in_place ? *out : send_side(call, send);
    result = begin(c, out, w->lists, false);
    if (result == MPI_SUCCESS)
        result = begin(c, in, w->lists + 2 * c->nranks, in_place);
    if (result == MPI_SUCCESS)
        result = pack_all(c, in);
    if (result != MPI_SUCCESS)
        return result;
    w->bytes = in->bytes;
    return rd_mpi_result(c, rondo_alltoallv(in->at, in->lengths, in->offsets, out->at, out->lengths, out->offsets,
                                            RONDO_UINT8, w->rondo, NULL));
}

int rd_mpi_begin_lists(rd_mpi_work_t *w)
{
    rd_mpi_comm_t *c = w->c;
    const rd_mpi_call_t *call = w->call;
    rd_mpi_layout_t send = {0}, recv = {0};
    int refused;

    if ((rd_mpi_sends(c, call) && !rd_mpi_layout(call->sendtype, &send)) ||
        (rd_mpi_receives(c, call) && !rd_mpi_layout(call->recvtype, &recv)))
        return RD_MPI_HAND_ON(RD_MPI_ARGUMENT);
    if (call->what != RD_MPI_ALLGATHERV && (refused = rd_mpi_admit(w, 0)) != MPI_SUCCESS)
        return refused;
    switch (call->what) {
    case RD_MPI_SCATTERV:
        return scatterv(w, &send, &recv);
    case RD_MPI_ALLTOALLV:
        return alltoallv(w, &send, &recv);
    default:
        return gatherv(w, &send, &recv);
    }
}
