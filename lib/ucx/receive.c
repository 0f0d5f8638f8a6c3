/* Receiving: what UCX hands over goes to the common checks (transport/network/net_receive.c). Data that the sender has
 * only announced are fetched; what is about GDR messages and questions goes to its own file. */
#include <stdlib.h>
#include <string.h>

#include "ucx/ucx.h"

static ucs_status_t drop(rd_ucx_net_t *net, const char *what, uint64_t value)
{
    rd_net_drop(&net->base, what, value);
    return UCS_OK;
}

static void fetched(void *request, ucs_status_t status, size_t bytes, void *arg)
{
    rd_ucx_landing_t *landing = arg;
    rd_ucx_conn_t *conn = landing->conn;
    (void)bytes; /* compared before the fetch */
    rd_ucx_net_of(conn->base.peer)->outstanding--;
    rd_ucx_net_of(conn->base.peer)->fetching--;
    rd_ucp.request_free(request);
    if (status == UCS_OK) {
        rd_ucx_net_of(conn->base.peer)->kept = rd_ucx_net_of(conn->base.peer)->keeps; /* UCX's answer to the peer */
        rd_net_land(&conn->base, (uint64_t)(landing - conn->landings));
    } else {
        rd_ucx_peer_lost(rd_ucx_peer_of(conn->base.peer), status);
    }
}

static int landings_make(rd_ucx_conn_t *conn)
{
    size_t slots = rd_net_ring(conn->base.recv->shorter, conn->base.recv->slots_mask);
    if (conn->landings)
        return 0;
    conn->landings = calloc(slots, sizeof *conn->landings);
    for (size_t i = 0; conn->landings && i < slots; i++)
        conn->landings[i].conn = conn;
    return conn->landings ? 0 : -1;
}

/* The sender has only announced the bytes: fetches them directly into the slot, since a fetch under way could not be
 * kept out of the user's memory. */
static ucs_status_t fetch(rd_ucx_conn_t *conn, const rd_net_header_t *h, void *descriptor, size_t bytes)
{
    rd_ucx_net_t *net = rd_ucx_net_of(conn->base.peer);
    rd_recv_t *recv = conn->base.recv;
    uint64_t at = h->number & (rd_net_ring(recv->shorter, recv->slots_mask) - 1);
    if (!rd_net_data_due(&conn->base, h, bytes, true))
        return UCS_OK;
    if (landings_make(conn) != 0) {
        rd_stop_fail(net->base.stop, net->base.ctx, RONDO_ERR_NO_MEMORY, -1, "no memory to receive %zu bytes", bytes);
        return UCS_OK;
    }
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb = {.recv_am = fetched},
                                 .user_data = &conn->landings[at]};
    ucs_status_ptr_t request =
        rd_ucp.am_recv_data_nbx(net->worker, descriptor, rd_recv_slot(recv, bytes, h->number), bytes, &param);
    if (!request) {
        net->kept = net->keeps;
        rd_net_land(&conn->base, at);
    } else if (UCS_PTR_IS_ERR(request)) {
        rd_ucx_peer_lost(rd_ucx_peer_of(conn->base.peer), UCS_PTR_STATUS(request));
    } else {
        net->outstanding++;
        net->fetching++;
    }
    return UCS_INPROGRESS;
}

static ucs_status_t take_gdr(rd_ucx_peer_t *peer, const rd_net_header_t *h, void *data, size_t bytes, int announced)
{
    const char *wrong = "its length does not fit";
    ucs_status_t status = UCS_OK;
    if (announced && h->bytes == bytes)
        status = rd_ucx_announced(peer, h, data, &wrong);
    return status == UCS_INPROGRESS || !wrong ? status : drop(rd_ucx_net_of(&peer->base), wrong, h->number);
}

static ucs_status_t take_rts(rd_ucx_peer_t *peer, const rd_net_header_t *h, const char *data, size_t bytes,
                             int announced)
{
    const char *wrong = "a list that is not with it";
    if (!announced)
        wrong = h->kind == RD_NET_RTS ? rd_ucx_offered(peer, h, data, bytes) : rd_ucx_ack(peer, h);
    return !wrong ? UCS_OK : drop(rd_ucx_net_of(&peer->base), wrong, h->bytes);
}

static void take_called(rd_ucx_peer_t *peer, const rd_net_header_t *h, const void *data, size_t bytes, int announced)
{
    rd_ucx_net_of(&peer->base)->asides = 1;
    if (h->kind == RD_NET_ASK)
        rd_ucx_asked(peer);
    else if (announced)
        rd_net_drop(peer->base.net, "an answer that is not with it", bytes);
    else
        rd_net_take_answer(&peer->base, data, bytes);
}

static ucs_status_t take_data(rd_net_conn_t *conn, const rd_net_header_t *h, void *data, size_t bytes, int announced)
{
    if (announced)
        return fetch((rd_ucx_conn_t *)conn, h, data, bytes);
    rd_net_take_data(conn, h, data, bytes);
    return UCS_OK;
}

/* What is about a channel. A network that lingers has none that need it any more. */
static ucs_status_t take_of_conn(rd_net_peer_t *peer, const rd_net_header_t *h, void *data, size_t bytes, int announced)
{
    rd_net_conn_t *conn = peer->net->alone ? NULL : rd_net_conn_of(peer, h);
    if (conn && h->kind == RD_NET_DATA)
        return take_data(conn, h, data, bytes, announced);
    if (conn)
        rd_net_take_credit(conn, h);
    return UCS_OK;
}

static ucs_status_t take(rd_ucx_net_t *net, const void *header, void *data, size_t bytes, int announced)
{
    rd_net_header_t h; /* a copy: the original need not be aligned */
    memcpy(&h, header, sizeof h);
    bool has_data = h.kind == RD_NET_DATA || h.kind == RD_NET_GDR || h.kind == RD_NET_RTS || h.kind == RD_NET_CALLED;
    rd_net_peer_t *sender = rd_net_sender(&net->base, &h, bytes, has_data);
    rd_ucx_peer_t *peer = rd_ucx_peer_of(sender);
    if (!sender)
        return UCS_OK;
    switch (h.kind) {
    case RD_NET_BYE:
        rd_net_take_bye(sender, &h);
        return UCS_OK;
    case RD_NET_HELLO:
        sender->greeted = true;
        return UCS_OK;
    case RD_NET_ASK:
    case RD_NET_CALLED:
        take_called(peer, &h, data, bytes, announced);
        return UCS_OK;
    case RD_NET_GDR:
        return take_gdr(peer, &h, data, bytes, announced);
    case RD_NET_RTS:
    case RD_NET_ACK:
        return take_rts(peer, &h, data, bytes, announced);
    default:
        return take_of_conn(sender, &h, data, bytes, announced);
    }
}

/* Short messages end with their headers, and two may have come as one. Bytes that the last message does not account for
 * are the other one, which is checked by itself. */
static ucs_status_t take_short(rd_ucx_net_t *net, char *data, size_t bytes)
{
    rd_net_header_t h;
    memcpy(&h, data + bytes - sizeof h, sizeof h);
    uint64_t own = h.bytes & UINT32_MAX; /* it is data */
    size_t other = rd_net_is_token(&net->base, h.token) && own < bytes - sizeof h ? bytes - sizeof h - own : 0;
    if (other >= sizeof h) {
        take(net, data + other - sizeof h, data, other - sizeof h, 0);
        data += other;
        bytes -= other;
    }
    return take(net, data + bytes - sizeof h, data, bytes - sizeof h, 0);
}

ucs_status_t rd_ucx_arrive(void *net, const void *header, size_t header_bytes, void *data, size_t bytes,
                           const ucp_am_recv_param_t *param)
{
    int announced = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    if (header_bytes == 0 && bytes >= sizeof(rd_net_header_t) && !announced)
        return take_short(net, data, bytes);
    if (header_bytes != sizeof(rd_net_header_t))
        return drop(net, "its header has another length", header_bytes);
    return take(net, header, data, bytes, announced);
}
