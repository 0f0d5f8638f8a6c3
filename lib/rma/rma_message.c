/* The origin's side of what goes by messages: see rma_int.h for their form. */
#include "rma/rma_int.h"

#include <string.h>

bool rd_rma_post_bytes(rd_send_t *to, const void *bytes, size_t n, rondo_result_t *result)
{
    if (!rd_slot_may_send(to, n))
        return false;
    memcpy(rd_slot_to_fill(to, n), bytes, n);
    *result = rd_slot_publish(to, 0, n, 0);
    return true;
}

/* Posts the message that begins an operation. What fits goes along. */
static bool post_first(rd_rma_t *rma, rd_rma_op_t *op, int peer, rd_rma_head_kind_t kind, rondo_result_t *result)
{
    bool along = kind == RD_RMA_HEAD_PUT && op->bytes <= RD_RMA_INLINE;
    rd_rma_first_t first = {.head = {.kind = (uint32_t)kind,
                                     .window = op->window ? op->window->number : 0,
                                     .offset = op->offset,
                                     .bytes = op->bytes,
                                     .id = op->id,
                                     .context = op->context,
                                     .signal = op->signals ? op->signal : -1}};

    if (along && op->bytes)
        memcpy(first.data, op->local, op->bytes);
    if (!rd_rma_post_bytes(rd_rma_send(rma, RD_RMA_REQUESTS, peer), &first, RD_RMA_FIRST, result))
        return false;
    op->done = along ? op->bytes : 0;
    return true;
}

/* Posts the next bytes of a put, from the user's memory where the transport can. */
static bool post_more(rd_rma_t *rma, rd_rma_op_t *op, rondo_result_t *result)
{
    rd_send_t *to = rd_rma_send(rma, RD_RMA_REQUESTS, op->peer);
    size_t n = op->bytes - op->done < to->slot_bytes ? op->bytes - op->done : to->slot_bytes;

    if (n <= RD_SHORT || !rd_slot_may_zcopy(to)) {
        if (!rd_rma_post_bytes(to, op->local + op->done, n, result))
            return false;
    } else {
        if (!rd_slot_may_send(to, n))
            return false;
        op->zcopied = true;
        *result = rd_slot_zcopy(to, 0, op->local + op->done, n, 0);
    }
    op->done += n;
    return true;
}

static bool post_put(rd_rma_t *rma, rd_rma_op_t *op, rondo_result_t *result)
{
    rd_rma_peer_t *peer = &rma->peers[op->peer];
    bool moved = false;

    if (peer->sends && peer->sends != op)
        return false;
    if (!op->headed) {
        if (!post_first(rma, op, op->peer, RD_RMA_HEAD_PUT, result))
            return false;
        op->headed = moved = true;
        peer->sends = op;
    }
    while (op->done < op->bytes && *result == RONDO_SUCCESS && post_more(rma, op, result))
        moved = true;
    if (op->done < op->bytes || *result != RONDO_SUCCESS)
        return moved;
    peer->sends = NULL;
    op->over = !op->zcopied || !rma->net.queue->net->zcopy_pending;
    return moved || op->over;
}

/* Asks all ranks that are concerned, then waits for their answers. */
static bool post_flush(rd_rma_t *rma, rd_rma_op_t *op, rondo_result_t *result)
{
    bool moved = false;

    for (; op->at < rma->team->nranks; op->at++) {
        int r = op->at;
        if (r == rma->team->rank || (op->peer >= 0 && op->peer != r) ||
            !(op->kind == RD_RMA_FENCE ? rma->mixed[r] : rma->by_message[r]))
            continue;
        if (rma->peers[r].sends || !post_first(rma, op, r, RD_RMA_HEAD_FLUSH, result))
            return moved;
        rma->peers[r].due++;
        op->answers++;
        moved = true;
        if (*result != RONDO_SUCCESS)
            return moved;
    }
    op->over = op->answers == 0;
    return moved || op->over;
}

bool rd_rma_post(rd_rma_t *rma, rd_rma_op_t *op, rondo_result_t *result)
{
    bool signal = op->kind == RD_RMA_SIGNAL;

    if (op->kind == RD_RMA_PUT)
        return post_put(rma, op, result);
    if (op->kind == RD_RMA_FLUSH || op->kind == RD_RMA_FENCE)
        return post_flush(rma, op, result);
    if (op->headed || rma->peers[op->peer].sends ||
        !post_first(rma, op, op->peer, signal ? RD_RMA_HEAD_SIGNAL : RD_RMA_HEAD_GET, result))
        return false;
    op->headed = true;
    op->over = signal; /* a get is over when its answer has come */
    return true;
}
