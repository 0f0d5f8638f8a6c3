/* The target's side of messages: what a peer asks for is checked, and done in this rank's memory. */
#include "rma/rma_int.h"

#include <string.h>

#define MOST 64 /* messages of a peer in one turn, so that no peer holds up the others */

static rondo_result_t wrong(rd_rma_t *rma, int peer, const rd_rma_head_t *h)
{
    return rd_health_fail(rma->team->health, RONDO_ERR_MISMATCH, peer,
                          "rank %d (%s) has sent a one-sided operation that does not fit here: kind %u, window %u, "
                          "%llu bytes at offset %llu, context %d, signal %d",
                          peer, rd_health_whois(rma->team->health, peer), (unsigned)h->kind, (unsigned)h->window,
                          (unsigned long long)h->bytes, (unsigned long long)h->offset, (int)h->context, (int)h->signal);
}

static bool counter_fits(const rd_rma_t *rma, const rd_rma_head_t *h)
{
    return h->context >= 0 && h->context < rma->contexts && h->signal >= 0 && h->signal < rma->signals;
}

/* Returns where the bytes of a request lie in this rank's part of its window; NULL: nowhere. */
static char *bytes_of(const rd_rma_t *rma, const rd_rma_head_t *h)
{
    const rd_rma_window_t *window = rd_rma_numbered(rma, h->window);
    const rd_rma_part_t *own = window ? &window->parts[rma->team->rank] : NULL;

    if (!own || h->offset > own->bytes || h->bytes > own->bytes - h->offset)
        return NULL;
    return (char *)(uintptr_t)own->address + h->offset;
}

static bool fits(const rd_rma_t *rma, const rd_rma_head_t *h)
{
    switch (h->kind) {
    case RD_RMA_HEAD_PUT:
        return (h->signal < 0 || counter_fits(rma, h)) && rd_rma_numbered(rma, h->window) &&
               (h->bytes == 0 || bytes_of(rma, h));
    case RD_RMA_HEAD_GET:
        return h->bytes && bytes_of(rma, h);
    case RD_RMA_HEAD_SIGNAL:
        return counter_fits(rma, h);
    default:
        return h->kind == RD_RMA_HEAD_FLUSH;
    }
}

/* The bytes of a put have come. Release, as everywhere: this rank's own thread may wait for the signal elsewhere. */
static void put_has_come(rd_rma_t *rma, int peer, const rd_rma_head_t *h)
{
    if (h->signal >= 0)
        atomic_fetch_add_explicit(rd_rma_counter(rma, rma->team->rank, peer, h->context, h->signal), 1,
                                  memory_order_release);
}

static void owe(rd_rma_peer_t *peer, const rd_rma_head_t *h)
{
    peer->owed = *h;
    peer->owed_headed = false;
    peer->owed_done = 0;
}

/* Takes the first message of a request. */
static rondo_result_t begin(rd_rma_t *rma, int peer, rd_recv_t *from)
{
    rd_rma_peer_t *p = &rma->peers[peer];
    rd_rma_first_t first;

    memcpy(&first, rd_slot_to_read(from, RD_RMA_FIRST), RD_RMA_FIRST);
    rondo_result_t result = rd_slot_return(from, RD_RMA_FIRST);
    rd_rma_head_t *h = &first.head;
    if (result != RONDO_SUCCESS || !fits(rma, h))
        return result != RONDO_SUCCESS ? result : wrong(rma, peer, h);
    if (h->kind == RD_RMA_HEAD_FLUSH || h->kind == RD_RMA_HEAD_GET) {
        /* Full: what this rank has put into its memory for one rank comes before what it gets there for another. */
        atomic_thread_fence(memory_order_seq_cst);
        owe(p, h);
    } else if (h->kind == RD_RMA_HEAD_PUT && h->bytes > RD_RMA_INLINE) {
        p->requests = (rd_rma_stream_t){.head = *h};
    } else {
        if (h->kind == RD_RMA_HEAD_PUT && h->bytes)
            rd_rma_words(bytes_of(rma, h), first.data, h->bytes);
        put_has_come(rma, peer, h);
    }
    return RONDO_SUCCESS;
}

/* Takes one more message of a put. The window is looked up again: a rank that destroys it has not kept to the rules,
 * and the bytes must not go where it was. */
static rondo_result_t go_on(rd_rma_t *rma, int peer, rd_recv_t *from)
{
    rd_rma_stream_t *s = &rma->peers[peer].requests;
    size_t rest = s->head.bytes - s->done, n = rest < from->slot_bytes ? rest : from->slot_bytes;
    char *to = bytes_of(rma, &s->head);

    if (!to)
        return wrong(rma, peer, &s->head);
    memcpy(to + s->done, rd_slot_to_read(from, n), n);
    s->done += n;
    if (s->done == s->head.bytes) {
        put_has_come(rma, peer, &s->head);
        s->head.kind = 0;
    }
    return rd_slot_return(from, n);
}

/* Posts what this rank owes. Returns true if something was posted. */
static bool answer(rd_rma_t *rma, int peer, rondo_result_t *result)
{
    rd_send_t *to = rd_rma_send(rma, RD_RMA_ANSWERS, peer);
    rd_rma_peer_t *p = &rma->peers[peer];
    size_t bytes = p->owed.kind == RD_RMA_HEAD_GET ? p->owed.bytes : 0;
    const char *data = bytes ? bytes_of(rma, &p->owed) : NULL;
    bool moved = false;

    if (bytes && !data)
        *result = wrong(rma, peer, &p->owed);
    if (*result == RONDO_SUCCESS && !p->owed_headed) {
        rd_rma_first_t first = {.head = {.kind = RD_RMA_HEAD_DONE, .bytes = bytes, .id = p->owed.id}};
        bool along = bytes <= RD_RMA_INLINE;
        if (along && bytes)
            rd_rma_words(first.data, data, bytes);
        if (!rd_rma_post_bytes(to, &first, RD_RMA_FIRST, result))
            return false;
        p->owed_headed = moved = true;
        p->owed_done = along ? bytes : 0;
    }
    while (*result == RONDO_SUCCESS && p->owed_done < bytes) {
        size_t rest = bytes - p->owed_done, n = rest < to->slot_bytes ? rest : to->slot_bytes;
        if (!rd_rma_post_bytes(to, data + p->owed_done, n, result))
            return moved;
        p->owed_done += n;
        moved = true;
    }
    p->owed.kind = 0;
    return moved;
}

bool rd_rma_serve_requests(rd_rma_t *rma, int peer, rondo_result_t *result)
{
    rd_recv_t *from = rd_rma_recv(rma, RD_RMA_REQUESTS, peer);
    rd_rma_peer_t *p = &rma->peers[peer];
    bool moved = false;

    for (int n = 0; n < MOST && *result == RONDO_SUCCESS; n++) {
        if (p->owed.kind)
            moved |= answer(rma, peer, result);
        if (p->owed.kind || *result != RONDO_SUCCESS || !rd_slot_there(from))
            break;
        *result = p->requests.head.kind ? go_on(rma, peer, from) : begin(rma, peer, from);
        moved = true;
    }
    return moved;
}
