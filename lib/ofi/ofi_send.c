/* Sending, and learning that a peer is gone.
 *
 * A provider that has no room for a message says so (FI_EAGAIN), and so it does while it makes a connection. Then the
 * message waits in a list of its peer, and is given again by the next poll; messages of one peer stay in their order.
 * No more are given than the completion queue can hold.
 *
 * A message is complete when it has left this rank (FI_TRANSMIT_COMPLETE, the default). That says nothing about the
 * peer, nor is it told when a connection ends from which nothing is expected: that a rank has died is known by the
 * bootstrap and the liveness thread (transport/liveness.c). What a failed send adds is that its peer cannot be reached
 * though its process may live. */
#include <stdlib.h>
#include <string.h>

#include "ofi/ofi.h"

static void drop_waiting(rd_ofi_peer_t *peer)
{
    rd_ofi_request_t *first = peer->first;
    peer->first = peer->last = NULL;
    while (first) {
        rd_ofi_request_t *next = first->next;
        rd_ofi_net_of(&peer->base)->waiting--;
        rd_ofi_complete(first);
        first = next;
    }
}

void rd_ofi_peer_lost(rd_ofi_peer_t *peer, const char *why)
{
    if (!rd_net_peer_lost(&peer->base, why))
        return;
    rd_ofi_dial_end(peer);
    drop_waiting(peer);
}

/* ---- requests */

rd_ofi_request_t *rd_ofi_message(rd_ofi_peer_t *peer, rd_net_kind_t kind, int channel, bool copying)
{
    rd_ofi_net_t *net = rd_ofi_net_of(&peer->base);
    rd_ofi_request_t *r = rd_ofi_request(net, copying);
    if (!r) {
        rd_stop_fail(net->base.stop, net->base.ctx, RONDO_ERR_NO_MEMORY, -1, "no memory for a network message");
        return NULL;
    }
    r->next = NULL;
    r->peer = peer;
    r->conn = NULL;
    r->data = NULL;
    r->desc = NULL;
    r->joined = NULL;
    r->zcopy = false;
    r->bytes = 0;
    rd_net_header_fill(&r->header, &net->base, channel, kind, 0, 0);
    return r;
}

static bool is_counted(const rd_ofi_request_t *r)
{
    return r->header.kind == RD_NET_DATA || r->header.kind == RD_NET_CREDIT;
}

void rd_ofi_release(rd_ofi_request_t *r)
{
    rd_ofi_net_t *net = rd_ofi_net_of(&r->peer->base);
    rd_ofi_request_t **list = r->copies ? &net->free_copying : &net->free;
    free(r->joined);
    r->joined = NULL;
    r->next = *list;
    *list = r;
}

void rd_ofi_complete(rd_ofi_request_t *r)
{
    rd_net_conn_t *credited = r->header.kind == RD_NET_CREDIT ? r->conn : NULL;
    rd_ofi_net_of(&r->peer->base)->outstanding -= is_counted(r);
    r->peer->base.pending--;
    r->peer->base.zcopies -= r->zcopy;
    r->peer->base.net->transport.zcopy_pending -= r->zcopy;
    rd_ofi_release(r);
    if (credited)
        rd_net_credit_sent(credited);
}

/* Makes one piece of header and payload, for a provider that takes no lists. Returns false if there is no memory. */
static bool join(rd_ofi_request_t *r)
{
    if (!r->joined && (r->joined = malloc(sizeof r->header + r->bytes)) != NULL) {
        memcpy(r->joined, &r->header, sizeof r->header);
        memcpy((char *)r->joined + sizeof r->header, r->data, r->bytes);
    }
    return r->joined;
}

static long give(rd_ofi_request_t *r)
{
    rd_ofi_net_t *net = rd_ofi_net_of(&r->peer->base);
    size_t bytes = sizeof r->header + r->bytes;
    uint64_t tag = r->bytes <= RD_OFI_SHORT ? RD_OFI_TAG_SHORT : RD_OFI_TAG_LONG;
    if (net->flying >= net->most)
        return -FI_EAGAIN;
    if (!r->data)
        return fi_tsend(net->ep, &r->header, bytes, r->own_desc, r->peer->address, tag, &r->context);
    if (net->joins)
        return join(r) ? fi_tsend(net->ep, r->joined, bytes, NULL, r->peer->address, tag, &r->context) : -FI_ENOMEM;
    struct iovec parts[2] = {{&r->header, sizeof r->header}, {(void *)(uintptr_t)r->data, r->bytes}};
    void *descs[2] = {r->own_desc, r->desc};
    return fi_tsendv(net->ep, parts, descs, 2, r->peer->address, tag, &r->context);
}

/* The provider does not take a message. That there is no memory here says nothing of the peer. */
static void refused(rd_ofi_request_t *r, long error)
{
    rd_ofi_peer_t *peer = r->peer;
    const rd_net_t *net = peer->base.net;
    const size_t bytes = r->bytes;

    rd_ofi_complete(r);
    if (error == -FI_ENOMEM && !net->alone)
        rd_stop_fail(net->stop, net->ctx, RONDO_ERR_NO_MEMORY, -1, "no memory to send %zu bytes to rank %d (%s)", bytes,
                     peer->base.rank, rd_boot_whois(net->boot, peer->base.rank));
    else
        rd_ofi_peer_lost(peer, rd_ofi_strerror(error));
}

/* Returns false if it has to wait. */
static bool try(rd_ofi_request_t *r)
{
    long error = give(r);
    if (error == -FI_EAGAIN)
        return false;
    if (error == 0)
        rd_ofi_net_of(&r->peer->base)->flying++;
    else
        refused(r, error);
    return true;
}

void rd_ofi_push(rd_ofi_request_t *r)
{
    rd_ofi_peer_t *peer = r->peer;
    rd_ofi_net_t *net = rd_ofi_net_of(&peer->base);
    peer->base.pending++;
    peer->base.zcopies += r->zcopy;
    net->base.transport.zcopy_pending += r->zcopy;
    net->outstanding += is_counted(r);
    rd_net_peer_used(&peer->base);
    if (peer->base.lost_ms != 0 || !net->ep) {
        rd_ofi_complete(r);
        return;
    }
    if (!peer->first && try(r))
        return;
    r->next = NULL;
    if (peer->first)
        peer->last->next = r;
    else
        peer->first = r;
    peer->last = r;
    net->waiting++;
}

static void push_waiting(rd_ofi_peer_t *p)
{
    while (p->first) {
        rd_ofi_request_t *r = p->first, *next = r->next;
        long error = give(r);
        if (error == -FI_EAGAIN)
            break;
        p->first = next;
        rd_ofi_net_of(&p->base)->waiting--;
        p->dial_ms = 0;
        if (error == 0)
            rd_ofi_net_of(&p->base)->flying++;
        else
            refused(r, error);
    }
}

/* Where the two have not met, or the peer has left, every attempt may be one to connect: there is one in a few
 * milliseconds. */
void rd_ofi_push_waiting(rd_ofi_net_t *net)
{
    int64_t now_ms = 0;
    for (rd_ofi_peer_t *p = rd_ofi_first(net); p; p = rd_ofi_next(p)) {
        if (!p->first)
            continue;
        now_ms = now_ms != 0 ? now_ms : rd_clock_ms();
        rd_ofi_dial(p, now_ms);
        if ((!p->met || p->base.left) && now_ms == p->tried_ms)
            continue;
        p->tried_ms = now_ms;
        push_waiting(p);
    }
}

bool rd_ofi_say(rd_net_peer_t *peer, rd_net_conn_t *conn, const rd_net_header_t *header)
{
    rd_ofi_request_t *r = rd_ofi_message(rd_ofi_peer_of(peer), (rd_net_kind_t)header->kind, header->channel, false);
    if (!r)
        return false;
    r->conn = conn;
    r->header = *header;
    rd_ofi_push(r);
    return true;
}

/* Only a question that comes while nothing waits for this peer is answered: it does not take what is sent to it. */
void rd_ofi_answer(rd_net_peer_t *who)
{
    rd_ofi_peer_t *peer = rd_ofi_peer_of(who);
    rd_called_digest_t digest;

    _Static_assert(sizeof digest <= RD_OFI_SHORT, "an answer goes by the short tag");
    if (!rd_net_answers(&peer->base) || peer->first)
        return;
    rd_ofi_request_t *r = rd_ofi_message(peer, RD_NET_CALLED, 0, true);
    if (!r)
        return;
    if (!r->copies) { /* so much is under way that the rank is not stuck */
        rd_ofi_release(r);
        return;
    }
    rd_called_tell(peer->base.net->self, &digest);
    memcpy(r->copy, &digest, sizeof digest);
    r->bytes = sizeof digest;
    r->header.bytes = sizeof digest;
    rd_ofi_push(r);
}
