/* Reductions. Type, operator and count are alike on all ranks by MPI's rule, so they may decide who serves a call. */
#include "mpi/interpose.h"
#include "mpi/kept.h"

/* What rondo calls the type and the operator of a reduction; `sorted`: it is done in the order of ranks. */
typedef struct {
    rondo_type_t type;
    rondo_op_t op;
    size_t size;
    bool sorted, must; /* whatever its length */
} reduction_t;

/* A duplicate of a named type reduces as that. */
static const rd_mpi_named_t *named_of(MPI_Datatype type)
{
    const rd_mpi_named_t *named = rd_mpi_named(type);
    MPI_Datatype of;
    int combiner;

    if (named)
        return named;
    combiner = rd_mpi_type_open(type, &of);
    if (of == MPI_DATATYPE_NULL)
        return NULL;
    if (combiner == MPI_COMBINER_DUP)
        named = named_of(of);
    rd_mpi_type_close(of);
    return named;
}

MPI_Datatype rd_mpi_reduced_type(MPI_Datatype type)
{
    const rd_mpi_named_t *named = named_of(type);

    return named ? named->handle : type;
}

static bool is_rounded(rondo_type_t type, rondo_op_t op)
{
    return (op == RONDO_SUM || op == RONDO_PROD) &&
           (type == RONDO_FLOAT32 || type == RONDO_FLOAT64 || type == RONDO_COMPLEX64 || type == RONDO_COMPLEX128);
}

static bool scans(const rd_mpi_call_t *call)
{
    return call->what == RD_MPI_SCAN || call->what == RD_MPI_EXSCAN;
}

/* Returns a reason to hand the call on. */
static rd_mpi_reason_t translate(const rd_mpi_comm_t *c, const rd_mpi_call_t *call, reduction_t *r)
{
    int op = rd_mpi_op(call->op);
    const rd_mpi_named_t *named = op == -2 ? NULL : named_of(call->recvtype);
    rd_mpi_layout_t layout;
    bool reproducible = rd_mpi_is_reproducible(c);

    if (op == -2) {
        if (call->form != RD_MPI_BLOCKING && !rd_mpi_may_keep())
            return RD_MPI_OPERATOR;
        if (!rd_mpi_layout(call->recvtype, &layout))
            return RD_MPI_ARGUMENT;
        *r = (reduction_t){.size = layout.size, .sorted = true, .must = reproducible};
        return layout.dense ? RD_MPI_SERVED : RD_MPI_OPERATOR;
    }
    if (op < 0 || !named || !(named->ops >> op & 1) || (named->rondo < 0 && !named->dense))
        return RD_MPI_OPERATOR;
    *r = (reduction_t){(rondo_type_t)named->rondo, op, named->size, named->rondo < 0, false};
    if (named->rondo >= 0)
        r->size = rondo_type_size(r->type);
    r->must = reproducible && (r->sorted || is_rounded(r->type, r->op));
    r->sorted |= r->must || scans(call);
    return RD_MPI_SERVED;
}

static size_t *counts_of(const rd_mpi_work_t *w)
{
    const rd_mpi_call_t *call = w->call;
    size_t *counts = w->lists;

    for (int r = 0; r < w->c->nranks; r++)
        counts[r] = (size_t)rd_mpi_list_at(call->recvcounts, call->large, r);
    return counts;
}

/* The elements that every rank has. */
static size_t elements_of(const rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    size_t all = 0;

    if (call->what == RD_MPI_REDUCE_SCATTER_BLOCK)
        return (size_t)call->recvcount * (size_t)c->nranks;
    if (call->what != RD_MPI_REDUCE_SCATTER)
        return (size_t)call->recvcount;
    for (int r = 0; r < c->nranks; r++)
        all += (size_t)rd_mpi_list_at(call->recvcounts, call->large, r);
    return all;
}

/* The short way of the next call (entries.c): for handles that are never used again for something else. */
static void remember(rd_mpi_comm_t *c, const rd_mpi_call_t *call, const reduction_t *r)
{
    if (!rd_mpi_short_ways(c) || !rd_mpi_named(call->recvtype))
        return;
    c->last_type = call->recvtype;
    c->last_op = call->op;
    c->last_rondo_type = r->type;
    c->last_rondo_op = r->op;
    c->last_size = r->size;
}

int rd_mpi_begin_reduction(rd_mpi_work_t *w)
{
    rd_mpi_comm_t *c = w->c;
    const rd_mpi_call_t *call = w->call;
    const void *send = call->send == MPI_IN_PLACE ? call->recv : call->send;
    size_t count = (size_t)call->recvcount, bytes;
    reduction_t r;
    rd_mpi_reason_t reason = translate(c, call, &r);
    int refused;

    if (reason != RD_MPI_SERVED)
        return RD_MPI_HAND_ON(reason);
    bytes = elements_of(c, call) * r.size;
    refused = rd_mpi_admit(w, bytes);
    if (refused != MPI_SUCCESS)
        return refused;
    if (r.sorted)
        return rd_mpi_begin_sorted(w, r.size, r.must);
    remember(c, call, &r);
    w->bytes = bytes;
    switch (call->what) {
    case RD_MPI_ALLREDUCE:
        return rd_mpi_result(c, rondo_allreduce(send, call->recv, count, r.type, r.op, w->rondo, NULL));
    case RD_MPI_REDUCE:
        return rd_mpi_result(c, rondo_reduce(send, call->recv, count, r.type, r.op, call->root, w->rondo, NULL));
    case RD_MPI_REDUCE_SCATTER_BLOCK:
        return rd_mpi_result(c, rondo_reduce_scatter(send, call->recv, count, r.type, r.op, w->rondo, NULL));
    default:
        return rd_mpi_result(c, rondo_reduce_scatterv(send, call->recv, counts_of(w), r.type, r.op, w->rondo, NULL));
    }
}

/* Is it one that rondo would serve, but not now, or not here? */
static bool may_be_ordered(const rd_mpi_call_t *call, rd_mpi_reason_t reason)
{
    return rd_mpi_reduces(call->what) &&
           (reason == RD_MPI_EARLY || reason == RD_MPI_NOT_MADE || reason == RD_MPI_COMPARED ||
            reason == RD_MPI_UNDRIVEN || reason == RD_MPI_MANY);
}

/* What is switched off stays the MPI's own, from the first call on. */
static bool is_off(const rd_mpi_comm_t *c, const rd_mpi_call_t *call, size_t size)
{
    const rd_mpi_rules_t *rules = c->rules ? c->rules : &rd_mpi_settings.rules;

    return !rd_mpi_allowed(rules, rd_mpi_kind(call), elements_of(c, call) * size);
}

bool rd_mpi_is_ordered(const rd_mpi_comm_t *c, const rd_mpi_call_t *call, rd_mpi_reason_t reason, size_t *size)
{
    reduction_t r;

    if (!may_be_ordered(call, reason) || !rd_mpi_is_reproducible(c) || !rd_mpi_plausible(c, call) ||
        translate(c, call, &r) != RD_MPI_SERVED || !r.must || is_off(c, call, r.size))
        return false;
    *size = r.size;
    return true;
}

int rd_mpi_order(rd_mpi_comm_t *c, const rd_mpi_call_t *call, rd_mpi_reason_t reason)
{
    rd_mpi_work_t w = {.c = c, .call = call, .comm = c->comm, .but = -1};
    size_t size;
    int result;

    if (!rd_mpi_is_ordered(c, call, reason, &size))
        return RD_MPI_HAND_ON(reason);
    result = rd_mpi_begin_sorted(&w, size, true);
    return rd_mpi_end(&w, result);
}
