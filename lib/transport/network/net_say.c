/* What is said by a header alone: credits, greetings, farewells and their confirmations, questions; and what follows
 * when a peer says it. For libraries whose sends are like each other: lib/ofi and lib/netplugin, which bring `say`. */
#include "transport/network/network.h"

/* ---- saying */

void rd_net_say(rd_net_peer_t *peer, rd_net_kind_t kind, uint64_t number)
{
    rd_net_header_t header;
    rd_net_header_fill(&header, peer->net, 0, kind, number, 0);
    (void)peer->net->library->say(peer, NULL, &header);
}

void rd_net_say_credit(rd_net_conn_t *conn)
{
    rd_net_header_t header;
    uint64_t consumed = conn->recv->received;
    if (conn->credit_busy || conn->peer->left)
        return;
    rd_net_header_fill(&header, conn->peer->net, conn->channel, RD_NET_CREDIT, consumed, 0);
    conn->credited = consumed;
    conn->credit_busy = 1;
    if (!conn->peer->net->library->say(conn->peer, conn, &header))
        conn->credit_busy = 0;
}

/* Peers that have left get it too, since they may be waiting for it. A network that lingers has said farewell to all
 * whom it sent something. */
void rd_net_say_bye(rd_net_t *net)
{
    rd_net_header_t header;
    for (rd_net_peer_t *p = net->used; p; p = p->next_used) {
        if (p->parted)
            continue;
        p->parted = true;
        rd_net_header_fill(&header, net, 0, RD_NET_BYE, 0, 0);
        rd_net_bye_fill(&header, p);
        p->parted = net->library->say(p, NULL, &header);
    }
}

/* A network that lingers needs nothing of what was sent to it. */
void rd_net_confirm(rd_net_peer_t *peer)
{
    if (peer->confirmed || (rd_net_come(peer) != peer->sent && !peer->net->alone))
        return;
    peer->confirmed = true;
    rd_net_say(peer, RD_NET_TAKEN, 0);
}

/* ---- what peers say */

static void take_hello(rd_net_peer_t *peer, const rd_net_header_t *h)
{
    bool first = !peer->greeted;
    peer->greeted = true;
    if (first && h->number == 0)
        rd_net_say(peer, RD_NET_HELLO, 1);
}

bool rd_net_take_control(rd_net_peer_t *peer, const rd_net_header_t *h, const void *data, size_t bytes)
{
    switch (h->kind) {
    case RD_NET_HELLO:
        take_hello(peer, h);
        break;
    case RD_NET_BYE:
        rd_net_take_bye(peer, h);
        if (peer->left)
            rd_net_confirm(peer);
        break;
    case RD_NET_TAKEN:
        peer->taken = peer->parted;
        break;
    case RD_NET_ASK:
        peer->net->library->answer(peer);
        break;
    case RD_NET_CALLED:
        rd_net_take_answer(peer, data, bytes);
        break;
    default:
        return false;
    }
    return true;
}

/* ---- operations */

rondo_result_t rd_net_credit(rd_recv_t *recv, size_t bytes)
{
    rd_net_conn_t *conn = recv->link;
    conn->peer->net->quiet = 0; /* there may be credits to return */
    if (rd_net_owes(conn, rd_net_batch(rd_recv_ring(recv, bytes).mask)))
        rd_net_say_credit(conn);
    return RONDO_SUCCESS;
}

bool rd_net_progress(rd_transport_t *transport)
{
    rd_net_t *net = (rd_net_t *)transport;
    net->progressed = false;
    (void)net->library->poll(net);
    rd_net_polled(net, net->progressed);
    return net->progressed;
}

void rd_net_seek(rd_transport_t *transport, int rank)
{
    rd_net_peer_t *peer = rd_net_peer((rd_net_t *)transport, rank);
    if (peer->remote && !peer->used)
        rd_net_say(peer, RD_NET_HELLO, 0);
}

void rd_net_ask_called(rd_transport_t *transport, int rank)
{
    rd_net_peer_t *peer = rd_net_peer((rd_net_t *)transport, rank);
    if (peer->used && rd_net_asks(peer))
        rd_net_say(peer, RD_NET_ASK, 0);
}
