/* Receiving: what comes into the posted buffers goes to the common checks (transport/network/net_receive.c). A long
 * payload is received only after its announcement was checked, in its slot and with its length. */
#include <stdlib.h>
#include <string.h>

#include "netplugin/netplugin.h"

/* ---- questions (transport/network/net_question.c) */

/* Only a question that comes while nothing waits for this peer is answered: it does not take what is sent to it. */
void rd_plug_answer(rd_net_peer_t *who)
{
    rd_plug_peer_t *peer = rd_plug_peer_of(who);
    rd_called_digest_t digest;

    _Static_assert(sizeof digest <= RD_PLUG_SHORT, "an answer is a short message");
    if (!rd_net_answers(&peer->base) || peer->waiting.first)
        return;
    rd_plug_message_t *m = rd_plug_message(peer, RD_NET_CALLED, 0);
    if (!m)
        return;
    rd_called_tell(peer->base.net->self, &digest);
    m->data = &digest;
    m->bytes = sizeof digest;
    m->header.bytes = sizeof digest;
    (void)rd_plug_push(peer, m, true);
}

/* ---- what comes */

/* About the peer as a whole. Returns false if it is about a channel. A confirmation that is not the first one fills a
 * receive (rd_plug_fill). */
static bool take_control(rd_plug_peer_t *peer, const rd_net_header_t *h, const void *data, size_t bytes)
{
    if (h->kind == RD_NET_TAKEN)
        peer->due -= peer->base.left && peer->base.taken;
    if (!rd_net_take_control(&peer->base, h, data, bytes))
        return false;
    if (h->kind == RD_NET_BYE)
        peer->left_ms = peer->base.left ? rd_clock_ms() : 0;
    return true;
}

/* An announcement that is refused leaves a payload on the long comm for which there is no receive, so the two cannot go
 * on. */
static void take_announcement(rd_plug_conn_t *conn, const rd_net_header_t *h, size_t bytes)
{
    rd_plug_peer_t *peer = rd_plug_peer_of(conn->base.peer);
    rd_recv_t *recv = conn->base.recv;
    rd_plug_landing_t *l = NULL;
    if (!rd_net_data_due(&conn->base, h, bytes, true) || !(l = malloc(sizeof *l))) {
        rd_net_t *net = peer->base.net;
        rd_stop_fail(net->stop, net->ctx, RONDO_ERR_REMOTE, peer->base.rank,
                     "rank %d (%s) announces %zu bytes that are not due", peer->base.rank,
                     rd_boot_whois(net->boot, peer->base.rank), bytes);
        return;
    }
    *l = (rd_plug_landing_t){.conn = conn,
                             .slot = rd_recv_slot(recv, bytes, h->number),
                             .ring = rd_recv_ring(recv, bytes),
                             .bytes = (uint32_t)bytes,
                             .at = h->number & (rd_net_ring(recv->shorter, recv->slots_mask) - 1)};
    if (peer->landings)
        peer->last_landing->next = l;
    else
        peer->landings = l;
    peer->last_landing = l;
}

/* A message of a peer that is known has another length than the plugin says: what it was cannot be told any more. */
static void wrong_length(rd_plug_peer_t *peer)
{
    rd_plug_peer_lost(peer, "a length from test that the message has not", 3); /* NCCL's internal error */
}

/* About a channel: a network that lingers has none that need it any more. */
static void take_of_conn(rd_plug_peer_t *peer, const rd_net_header_t *h, const void *data, size_t bytes)
{
    rd_net_conn_t *conn = peer->base.net->alone ? NULL : rd_net_conn_of(&peer->base, h);
    size_t whole = h->bytes & UINT32_MAX;
    if (!conn)
        return;
    if (h->kind == RD_NET_CREDIT)
        rd_net_take_credit(conn, h);
    else if (bytes == 0 && whole > RD_PLUG_SHORT)
        take_announcement((rd_plug_conn_t *)conn, h, whole);
    else if (bytes != whole)
        wrong_length(peer);
    else
        rd_net_take_data(conn, h, data, bytes);
    if (peer->base.left)
        rd_net_confirm(&peer->base);
}

/* What comes on a peer's comm is that peer's, or somebody else has connected to it. */
static void take(rd_plug_peer_t *peer, const char *at, size_t bytes)
{
    rd_net_t *net = peer->base.net;
    rd_net_header_t h;
    if (bytes < sizeof h || bytes > RD_PLUG_BUFFER) {
        if (peer->base.greeted)
            wrong_length(peer);
        else
            rd_net_drop(net, "it is no message of rondo's; its length", bytes);
        return;
    }
    memcpy(&h, at, sizeof h);
    bytes -= sizeof h;
    const bool has_data = h.kind == RD_NET_DATA || h.kind == RD_NET_CALLED;
    if (peer->base.greeted && bytes != 0 && !has_data) {
        wrong_length(peer);
        return;
    }
    const rd_net_peer_t *sender = rd_net_sender(net, &h, bytes, has_data);
    if (!sender)
        return;
    if (sender != &peer->base) {
        rd_net_drop(net, "it comes on the connection of another rank than", h.rank);
        return;
    }
    if (!take_control(peer, &h, at + sizeof h, bytes))
        take_of_conn(peer, &h, at + sizeof h, bytes);
}

/* ---- receives */

static char *buffer_of(const rd_plug_peer_t *peer, unsigned at)
{
    return peer->memory + (RD_PLUG_AHEAD + at % RD_PLUG_POSTED) * RD_PLUG_BUFFER;
}

/* A plugin that takes no more receives for now is asked again by the next poll. */
void rd_plug_post(rd_plug_peer_t *peer)
{
    const rd_plug_net_t *net = rd_plug_net_of(peer);
    const int most = peer->base.left && peer->base.taken ? peer->due : RD_PLUG_POSTED;
    while ((int)peer->nin < most && peer->base.lost_ms == 0) {
        unsigned at = peer->in_first + peer->nin;
        void *request;
        int error = rd_plug_recv(net->plug, peer->recvs[RD_PLUG_COMM_SHORT], buffer_of(peer, at), RD_PLUG_BUFFER,
                                 RD_PLUG_TAG, peer->received_mr, &request);
        if (error != 0)
            rd_plug_peer_lost(peer, "irecv", error);
        if (error != 0 || !request)
            return;
        peer->in[at % RD_PLUG_POSTED].request = request;
        peer->nin++;
    }
}

/* Returns true if the request is over, with its length. */
static bool is_over(rd_plug_peer_t *peer, void *request, size_t *bytes)
{
    int done = 0, size = 0;
    int error = rd_plug_test(rd_plug_net_of(peer)->plug, request, &done, &size);
    if (error != 0)
        rd_plug_peer_lost(peer, "test of a receive", error);
    *bytes = size < 0 ? 0 : (size_t)size;
    return error == 0 && done != 0;
}

static void land(rd_plug_peer_t *peer, size_t bytes)
{
    rd_plug_landing_t *l = peer->landings;
    rd_net_t *net = peer->base.net;
    peer->landings = l->next;
    if (bytes == l->bytes)
        rd_net_land(&l->conn->base, l->at);
    else
        rd_stop_fail(net->stop, net->ctx, RONDO_ERR_REMOTE, peer->base.rank,
                     "rank %d (%s) has announced %u bytes, and the net plugin %.60s says that %zu have come",
                     peer->base.rank, rd_boot_whois(net->boot, peer->base.rank), l->bytes,
                     rd_plug_net_of(peer)->plug->name, bytes);
    free(l);
    if (peer->base.left)
        rd_net_confirm(&peer->base);
}

/* A rank that has failed closes its comms behind its farewell. Receives are not posted for what it has announced: some
 * libraries end the process over a payload that is to be fetched from a connection that is gone (libfabric 1.17). */
static bool has_failed(const rd_plug_peer_t *peer)
{
    const rd_net_peer_t *p = &peer->base;
    return rd_stop_get(p->net->stop) != RONDO_SUCCESS ||
           (p->left && p->farewell != RONDO_SUCCESS && p->farewell != RONDO_ERR_MISMATCH);
}

static void post_landings(rd_plug_peer_t *peer)
{
    const rd_plug_net_t *net = rd_plug_net_of(peer);
    int posted = 0;
    for (rd_plug_landing_t *l = peer->landings; l && posted < RD_PLUG_LONGS; l = l->next, posted++) {
        void *registration;
        if (l->request)
            continue;
        int error = rd_plug_register(peer, false, l->conn->received, l->ring, &registration);
        if (error != 0) {
            rd_plug_unregistered(peer, error);
            return;
        }
        error = rd_plug_recv(net->plug, peer->recvs[RD_PLUG_COMM_LONG], l->slot, l->bytes, RD_PLUG_TAG, registration,
                             &l->request);
        if (error != 0)
            rd_plug_peer_lost(peer, "irecv", error);
        if (error != 0 || !l->request)
            return;
    }
}

bool rd_plug_poll_receives(rd_plug_peer_t *peer)
{
    bool any = false;
    size_t bytes;
    for (int turn = 0; turn < RD_PLUG_POSTED && peer->nin != 0 && peer->base.lost_ms == 0; turn++) {
        unsigned at = peer->in_first;
        if (!is_over(peer, peer->in[at % RD_PLUG_POSTED].request, &bytes))
            break;
        peer->in_first++;
        peer->nin--;
        take(peer, buffer_of(peer, at), bytes);
        rd_plug_post(peer);
        any = true;
    }
    if (peer->nin < RD_PLUG_POSTED)
        rd_plug_post(peer);
    if (!peer->landings || peer->base.lost_ms != 0 || !peer->recvs[RD_PLUG_COMM_LONG])
        return any;
    if (!has_failed(peer))
        post_landings(peer);
    while (peer->landings && peer->landings->request && peer->base.lost_ms == 0 &&
           is_over(peer, peer->landings->request, &bytes)) {
        land(peer, bytes);
        any = true;
    }
    return any;
}
