/* The beginning of an operation: at once where it can be, else in the list of those that wait. */
#include "rma/rma_int.h"

/* A fence between a put by message and one into mapped memory waits for the first; messages keep their order. */
static bool needs_messages(const rd_rma_t *rma, const rd_rma_op_t *op)
{
    bool any = false;

    for (int r = 0; r < rma->team->nranks; r++)
        if (op->peer < 0 || op->peer == r)
            any |= op->kind == RD_RMA_FENCE ? rma->mixed[r] : rma->by_message[r];
    return any && rma->peers;
}

rondo_result_t rd_rma_try(rd_rma_t *rma, rd_rma_op_t *op)
{
    rondo_result_t result = RONDO_SUCCESS;

    switch (op->kind) {
    case RD_RMA_WAIT:
        return rd_rma_consume(rma, op) ? RONDO_SUCCESS : RONDO_IN_PROGRESS;
    case RD_RMA_FLUSH:
    case RD_RMA_FENCE:
        atomic_thread_fence(op->kind == RD_RMA_FLUSH ? memory_order_seq_cst : memory_order_release);
        return needs_messages(rma, op) ? RONDO_IN_PROGRESS : RONDO_SUCCESS;
    case RD_RMA_PUT:
    case RD_RMA_GET:
        if (op->window->parts[op->peer].way == RD_RMA_MESSAGES)
            return RONDO_IN_PROGRESS;
        result = rd_rma_copy(rma, op);
        break;
    case RD_RMA_SIGNAL:
        op->signals = true;
        break;
    }
    if (!op->signals || result != RONDO_SUCCESS)
        return result;
    if (rma->by_message[op->peer]) {
        op->kind = RD_RMA_SIGNAL; /* the put is done; its signal goes behind the messages */
        return RONDO_IN_PROGRESS;
    }
    rd_rma_count(rma, op->peer, op->context, op->signal);
    return RONDO_SUCCESS;
}

void rd_rma_add(rd_rma_t *rma, rd_rma_op_t *op)
{
    op->next = NULL;
    op->id = ++rma->ids;
    if (rma->first)
        rma->last->next = op;
    else
        rma->first = op;
    rma->last = op;
}

static bool uses(const rd_rma_t *rma, const rd_rma_window_t *window)
{
    const rd_rma_op_t *op = rma->first;

    while (op && op->window != window)
        op = op->next;
    return op != NULL;
}

/* Makes turns until the operation is over, or without one until none uses the window, and all messages have left. */
static rondo_result_t go_on_until(rd_rma_t *rma, const rd_rma_op_t *op, const rd_rma_window_t *window)
{
    rondo_result_t result = RONDO_SUCCESS;

    rma->own = op;
    rd_queue_wait_begin(rma->queue);
    rma->queue->wait.slow = rma->peers && rd_transport_polled(rma->net.queue->net);
    while (result == RONDO_SUCCESS &&
           ((op ? !op->over : uses(rma, window)) || (rma->peers && !rd_transport_idle(rma->net.queue->net)))) {
        int moved = 0;
        result = rd_queue_advance(rma->queue, &moved);
        if (moved)
            rd_queue_moved(rma->queue);
        else if (result == RONDO_SUCCESS)
            result = rd_queue_backoff(rma->queue);
    }
    rma->own = NULL;
    if (result != RONDO_SUCCESS)
        rd_queue_flush(rma->queue, result);
    return result;
}

rondo_result_t rd_rma_run(rd_rma_t *rma, rd_rma_op_t *op)
{
    rd_rma_add(rma, op);
    return go_on_until(rma, op, NULL);
}

rondo_result_t rd_rma_window_rest(rd_rma_t *rma, const rd_rma_window_t *window)
{
    return uses(rma, window) ? go_on_until(rma, NULL, window) : RONDO_SUCCESS;
}
