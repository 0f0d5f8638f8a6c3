/* The origin's side of answers: to its gets, whose bytes they bring, and to its flushes. */
#include "rma/rma_int.h"

#include <string.h>

/* Returns the operation that an answer of `peer` is for; NULL: there is none. */
static rd_rma_op_t *asked(const rd_rma_t *rma, int peer, const rd_rma_head_t *h)
{
    rd_rma_op_t *op = rma->first;

    while (op && op->id != h->id)
        op = op->next;
    if (!op || h->kind != RD_RMA_HEAD_DONE || (op->peer >= 0 && op->peer != peer))
        return NULL;
    if (op->kind == RD_RMA_GET)
        return op->headed && h->bytes == op->bytes && op->done == 0 ? op : NULL;
    return (op->kind == RD_RMA_FLUSH || op->kind == RD_RMA_FENCE) && h->bytes == 0 && rma->peers[peer].due ? op : NULL;
}

static rondo_result_t wrong(rd_rma_t *rma, int peer)
{
    return rd_health_fail(rma->team->health, RONDO_ERR_MISMATCH, peer,
                          "rank %d (%s) has answered a one-sided operation that this rank has not called", peer,
                          rd_health_whois(rma->team->health, peer));
}

static rondo_result_t begin(rd_rma_t *rma, int peer, rd_recv_t *from)
{
    rd_rma_first_t first;

    memcpy(&first, rd_slot_to_read(from, RD_RMA_FIRST), RD_RMA_FIRST);
    rondo_result_t result = rd_slot_return(from, RD_RMA_FIRST);
    rd_rma_op_t *op = asked(rma, peer, &first.head);
    if (result != RONDO_SUCCESS || !op)
        return result != RONDO_SUCCESS ? result : wrong(rma, peer);
    if (op->kind != RD_RMA_GET) {
        rma->peers[peer].due--;
        op->answers--;
    } else if (op->bytes <= RD_RMA_INLINE) {
        rd_rma_words(op->local, first.data, op->bytes);
        op->over = true;
    } else {
        rma->peers[peer].answers = (rd_rma_stream_t){.head = first.head};
    }
    return RONDO_SUCCESS;
}

static rondo_result_t go_on(rd_rma_t *rma, int peer, rd_recv_t *from)
{
    rd_rma_stream_t *s = &rma->peers[peer].answers;
    size_t rest = s->head.bytes - s->done, n = rest < from->slot_bytes ? rest : from->slot_bytes;
    rd_rma_op_t *op = asked(rma, peer, &s->head);

    if (!op)
        return wrong(rma, peer);
    memcpy(op->local + s->done, rd_slot_to_read(from, n), n);
    s->done += n;
    if (s->done == s->head.bytes) {
        s->head.kind = 0;
        op->over = true;
    }
    return rd_slot_return(from, n);
}

bool rd_rma_take_answers(rd_rma_t *rma, int peer, rondo_result_t *result)
{
    rd_recv_t *from = rd_rma_recv(rma, RD_RMA_ANSWERS, peer);
    bool moved = false;

    while (*result == RONDO_SUCCESS && rd_slot_there(from)) {
        *result = rma->peers[peer].answers.head.kind ? go_on(rma, peer, from) : begin(rma, peer, from);
        moved = true;
    }
    return moved;
}
