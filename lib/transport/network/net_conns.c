/* The network of a communicator and its connections: made, bound, and the credits that go back on them.
 *
 * Credits go back with the data of the other direction; where there is none, in batches of half the long slots, so that
 * a stream of messages costs little in the other direction, and a sender always keeps more than half of the long slots.
 * Short messages have many more slots: their credits wait for a larger batch, or until nothing comes any more. */
#include <stdlib.h>
#include <string.h>

#include "transport/conns.h"
#include "transport/network/network.h"

bool rd_net_init(rd_net_t *net, const rd_net_library_t *library, const rd_transport_args_t *args)
{
    unsigned char key[32];
    const int *node_of = args->node->node_of;
    *net = (rd_net_t){.transport = {.ops = library->ops},
                      .library = library,
                      .boot = args->boot,
                      .ctx = args->ctx,
                      .stop = args->stop,
                      .rank = args->rank,
                      .nranks = args->nranks,
                      .self = args->conns ? &args->conns->self->called : NULL,
                      .peers = calloc((size_t)args->nranks, library->peer_bytes)};
    for (int r = 0; net->peers && r < net->nranks; r++) {
        rd_net_peer_t *peer = rd_net_peer(net, r);
        peer->net = net;
        peer->rank = r;
        peer->remote = node_of[r] != node_of[args->rank];
        net->nremotes += peer->remote;
    }
    rd_boot_key(args->boot, library->ops->name, key);
    memcpy(net->token, key, RD_NET_TOKEN);
    return net->peers;
}

static void conn_free(rd_net_conn_t *conn)
{
    if (conn)
        free(conn->claimed);
    free(conn);
}

void rd_net_release(rd_net_t *net)
{
    for (int r = 0; r < net->nranks; r++) {
        rd_net_peer_t *peer = rd_net_peer(net, r);
        for (int c = 0; c < peer->nconns; c++)
            conn_free(peer->conns[c]);
        free(peer->conns);
        free(peer->called);
    }
    free(net->peers);
    free(net->alone);
}

/* ---- binding */

/* Gets the connection of (peer, channel), which is made when first requested. */
static rondo_result_t conn_get(rd_net_t *net, int rank, int channel, rd_net_conn_t **out)
{
    if (rank < 0 || rank >= net->nranks || !rd_net_peer(net, rank)->remote || channel < 0 ||
        channel >= RD_NET_MAX_CHANNELS)
        return rd_error(net->ctx, RONDO_ERR_INTERNAL, "no network connection to rank %d on channel %d is possible",
                        rank, channel);
    rd_net_peer_t *peer = rd_net_peer(net, rank);
    if (channel >= peer->nconns) {
        rd_net_conn_t **more = realloc(peer->conns, (size_t)(channel + 1) * sizeof(*more));
        if (!more)
            return rd_error(net->ctx, RONDO_ERR_NO_MEMORY, "no memory for a network connection");
        memset(more + peer->nconns, 0, (size_t)(channel + 1 - peer->nconns) * sizeof(*more));
        peer->conns = more;
        peer->nconns = channel + 1;
    }
    if (!peer->conns[channel]) {
        rd_net_conn_t *conn = calloc(1, net->library->conn_bytes);
        if (!conn)
            return rd_error(net->ctx, RONDO_ERR_NO_MEMORY, "no memory for a network connection");
        conn->peer = peer;
        conn->channel = channel;
        peer->conns[channel] = conn;
    }
    *out = peer->conns[channel];
    return RONDO_SUCCESS;
}

rondo_result_t rd_net_bind_send(rd_transport_t *transport, int peer, int channel, rd_send_t *send)
{
    rd_net_conn_t *conn = NULL;
    rondo_result_t result = conn_get((rd_net_t *)transport, peer, channel, &conn);
    if (result != RONDO_SUCCESS)
        return result;
    conn->send = send;
    send->link = conn;
    return RONDO_SUCCESS;
}

rondo_result_t rd_net_bind_recv(rd_transport_t *transport, int peer, int channel, rd_recv_t *recv)
{
    rd_net_t *net = (rd_net_t *)transport;
    rd_net_conn_t *conn = NULL;
    rondo_result_t result = conn_get(net, peer, channel, &conn);
    if (result != RONDO_SUCCESS)
        return result;
    if (rd_net_ring(recv->shorter, recv->slots_mask) > RD_NET_MAX_SLOTS)
        return rd_error(net->ctx, RONDO_ERR_INTERNAL, "a network connection has at most %d slots", RD_NET_MAX_SLOTS);
    conn->recv = recv;
    conn->next = conn->credited = recv->received;
    recv->link = conn;
    return RONDO_SUCCESS;
}

/* ---- messages and credits */

rondo_result_t rd_net_head(const rd_send_t *send, size_t bytes, rd_net_header_t *header)
{
    rd_net_conn_t *conn = send->link;
    rd_net_t *net = conn->peer->net;
    if (conn->peer->left && rd_stop_get(net->stop) == RONDO_SUCCESS)
        return rd_net_has_left(conn->peer);
    uint64_t sign =
        send->signs ? atomic_load_explicit(&send->signs[(send->sent - 1) & send->signs_mask], memory_order_relaxed) : 0;
    rd_net_header_fill(header, net, conn->channel, RD_NET_DATA, send->sent - 1, bytes | sign << 32);
    if (conn->recv)
        header->credit = conn->credited = conn->recv->received;
    return RONDO_SUCCESS;
}

int rd_net_zcopy_peer(const rd_transport_t *transport)
{
    const rd_net_peer_t *p = ((const rd_net_t *)transport)->used;
    while (p && p->zcopies == 0)
        p = p->next_used;
    return p ? p->rank : -1;
}

void rd_net_credits_flush(rd_net_t *net, bool least_a_batch)
{
    for (rd_net_peer_t *p = net->used; p; p = p->next_used) {
        for (int c = 0; c < p->nconns; c++) {
            rd_net_conn_t *conn = p->conns[c];
            if (conn && conn->recv && rd_net_owes(conn, least_a_batch ? rd_net_batch(conn->recv->slots_mask) : 1))
                net->library->credit(conn);
        }
    }
}

void rd_net_polled(rd_net_t *net, bool moved)
{
    if (net->nlost != 0)
        rd_net_judge_lost(net);
    if (net->ndue != 0)
        rd_net_byes_due(net);
    net->quiet = moved ? 0 : net->quiet + (net->quiet <= RD_NET_QUIET);
    if (net->quiet == RD_NET_QUIET)
        rd_net_credits_flush(net, true);
}

/* What was consumed while this credit was being sent is sent in the next one. */
void rd_net_credit_sent(rd_net_conn_t *conn)
{
    conn->credit_busy = 0;
    if (conn->recv && rd_net_owes(conn, rd_net_batch(conn->recv->slots_mask)))
        conn->peer->net->library->credit(conn);
}
