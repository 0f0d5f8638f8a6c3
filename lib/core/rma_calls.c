/* The way of a one-sided call: at once where it is a matter of memory alone, else until its turn comes; on a CUDA
 * communicator into the stream. */
#include "core/rma_calls.h"

#include <stdlib.h>
#include <string.h>

#include "core/cuda_windows.h"
#include "core/submit.h"
#include "exec/cuda/cuda.h"
#include "progress/deadlock.h"

/* What the record says of a call that waits, and in which track. */
static rd_monitor_call_t noted(const rd_rma_op_t *op, rd_track_t *track)
{
    static const uint8_t kinds[] = {
        [RD_RMA_PUT] = RD_MONITOR_PUT, [RD_RMA_SIGNAL] = RD_MONITOR_SIGNAL, [RD_RMA_WAIT] = RD_MONITOR_WAIT_SIGNAL,
        [RD_RMA_GET] = RD_MONITOR_GET, [RD_RMA_FLUSH] = RD_MONITOR_FLUSH,   [RD_RMA_FENCE] = RD_MONITOR_FLUSH};
    uint64_t signals = 0;

    for (int i = 0; i < op->nwaits; i++)
        signals += (uint64_t)op->waits[i].count;
    *track = op->kind == RD_RMA_PUT || op->kind == RD_RMA_SIGNAL ? RD_TRACK_SEND : RD_TRACK_RECV;
    return (rd_monitor_call_t){.count = op->kind == RD_RMA_WAIT ? signals : op->bytes,
                               .bytes = op->bytes,
                               .tag = rd_caller()->tag,
                               .root = op->kind == RD_RMA_WAIT ? op->waits[0].peer : op->peer,
                               .kind = kinds[op->kind],
                               .type = RD_MONITOR_BYTE};
}

static rondo_result_t wait_for(rondo_comm_t comm, rd_rma_op_t *op)
{
    rd_track_t track;
    const rd_monitor_call_t call = noted(op, &track);

    if (comm->queue.deadlock.listed)
        rd_deadlock_call(&comm->queue, op->kind == RD_RMA_WAIT ? "a wait for signals" : "a one-sided call", -1);
    uint64_t entry = rd_monitor_begin(&comm->seat, track, &call);
    rondo_result_t result = rd_rma_run(comm->rma, op);
    rd_monitor_end(&comm->seat, track, entry, result);
    return result;
}

static rondo_result_t run(rondo_comm_t comm, const rd_rma_op_t *call)
{
    rd_rma_op_t op = *call;
    rondo_result_t result = RONDO_IN_PROGRESS;
    int moved = 0;

    if (!comm->rma->first) {
        result = rd_rma_try(comm->rma, &op);
        op.tried = true;
    }
    if (result == RONDO_IN_PROGRESS)
        return wait_for(comm, &op);
    if (result == RONDO_SUCCESS && comm->rma->peers) /* what peers ask for gets a turn in every call */
        result = rd_queue_advance(&comm->queue, &moved);
    return result;
}

static rondo_result_t record(struct rd_group *group, rondo_comm_t comm, const rd_rma_op_t *op)
{
    size_t waits = (size_t)op->nwaits * sizeof *op->waits;
    rd_rma_op_t *copy = malloc(sizeof *copy + waits);

    if (!copy)
        return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory to record an operation");
    *copy = *op;
    if (waits)
        copy->waits = memcpy(copy + 1, op->waits, waits);
    return rd_group_record_rma(group, comm, copy);
}

static rondo_result_t check_part(rondo_comm_t comm, const rd_rma_op_t *op, const char *call)
{
    if (!rd_comm_has_window(comm, op->window))
        return rd_window_refused(comm, op->window, call);
    size_t has = op->window->parts[op->peer].bytes;
    if (op->offset > has || op->bytes > has - op->offset)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "%s: %zu bytes at offset %zu leave the part of rank %d, which has %zu bytes", call, op->bytes,
                        op->offset, op->peer, has);
    return RONDO_SUCCESS;
}

/* The caller is inside, so that the windows stay. */
static rondo_result_t check(rondo_comm_t comm, rd_rma_op_t *op, const char *call)
{
    if (!comm->rma)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_USAGE,
                        "%s: the communicator has had no window yet: rondo_window_create, on all ranks, sets up "
                        "one-sided operations",
                        call);
    op->rma = comm->rma;
    return op->kind == RD_RMA_PUT || op->kind == RD_RMA_GET ? check_part(comm, op, call) : RONDO_SUCCESS;
}

/* In a group there is no entry in the record, as on the host. */
static rondo_result_t enqueue(rondo_comm_t comm, const rd_cuda_onesided_t *op, const rd_rma_op_t *as, const char *call)
{
    rd_track_t track;
    const rd_monitor_call_t what = noted(as, &track);

    if (op->group)
        return rd_cuda_onesided(comm->cuda, op, call);
    uint64_t entry = rd_monitor_begin(&comm->seat, track, &what);
    rondo_result_t result = rd_cuda_onesided(comm->cuda, op, call);
    if (rd_monitor_refuses((int)result))
        rd_monitor_take_back(&comm->seat, track, entry, (int)result);
    else
        rd_monitor_end(&comm->seat, track, entry, result);
    return result;
}

/* On a stream each put is over before the next one of the communicator begins, so a fence has nothing to do. */
static rondo_result_t on_device(struct rd_group *group, rondo_comm_t comm, const rd_rma_op_t *op, const char *call,
                                rondo_stream_t stream)
{
    static const rd_cuda_access_t accesses[] = {[RD_RMA_PUT] = RD_CUDA_PUT,
                                                [RD_RMA_SIGNAL] = RD_CUDA_SIGNAL,
                                                [RD_RMA_WAIT] = RD_CUDA_AWAIT,
                                                [RD_RMA_GET] = RD_CUDA_GET,
                                                [RD_RMA_FLUSH] = RD_CUDA_FLUSH};
    const bool accessing = op->kind == RD_RMA_PUT || op->kind == RD_RMA_GET;
    rondo_result_t result =
        accessing ? rd_comm_cuda_window_check(comm, (rondo_window_t)op->window, call) : RONDO_SUCCESS;

    if (result == RONDO_SUCCESS && group)
        result = rd_group_note(group, comm);
    if (result != RONDO_SUCCESS || op->kind == RD_RMA_FENCE)
        return result;
    const rd_cuda_onesided_t one = {.access = accesses[op->kind],
                                    .signals = op->signals,
                                    .group = group != NULL,
                                    .peer = op->peer,
                                    .context = op->context,
                                    .signal = op->signal,
                                    .window = (rd_cuda_window_t *)(void *)op->window,
                                    .offset = op->offset,
                                    .bytes = op->bytes,
                                    .local = op->local,
                                    .waits = op->waits,
                                    .nwaits = op->nwaits,
                                    .signals_each = comm->signals,
                                    .stream = stream};
    return rd_call_spoiled(comm, enqueue(comm, &one, op, call));
}

static rondo_result_t on_host(struct rd_group *group, rondo_comm_t comm, rd_rma_op_t *op, const char *call)
{
    rondo_result_t result = check(comm, op, call);
    const bool nothing = op->kind == RD_RMA_GET && op->bytes == 0;

    if (result != RONDO_SUCCESS || nothing)
        return result;
    return group ? record(group, comm, op) : run(comm, op);
}

rondo_result_t rd_call_rma(rondo_comm_t comm, rd_rma_op_t *op, const char *call, rondo_stream_t stream)
{
    rondo_result_t result = rd_comm_enter(comm);
    struct rd_group *group = rd_caller_group(rd_caller());

    rd_call_limit(rd_caller(), comm);
    if (result == RONDO_SUCCESS)
        result = comm->cuda ? on_device(group, comm, op, call, stream) : on_host(group, comm, op, call);
    rd_limit_own_end(&comm->queue.limit);
    if (result != RONDO_SUCCESS)
        result = rd_group_failed(result);
    return rd_comm_leave(comm, result);
}

/* ---- of a group ---- */

void rd_rma_list_add(rd_rma_list_t *list, rd_rma_op_t *op)
{
    op->next = NULL;
    if (list->first)
        list->last->next = op;
    else
        list->first = op;
    list->last = op;
    list->n++;
}

static rd_rma_op_t *take(rd_rma_list_t *list)
{
    rd_rma_op_t *op = list->first;

    list->first = op->next;
    list->n--;
    return op;
}

void rd_rma_list_hand_on(rd_rma_list_t *list, rd_completion_t *completion)
{
    while (list->first) {
        rd_rma_op_t *op = take(list);
        op->completion = completion;
        rd_rma_add(op->rma, op);
    }
}

void rd_rma_list_clear(rd_rma_list_t *list)
{
    while (list->first)
        free(take(list));
}
