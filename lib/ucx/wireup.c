/* Greetings, which make connections (transport/network/net_wireup.c): every rank greets every other one.
 *
 * UCX is fragile while a connection is being made: the UCX of Debian 12 ends the process when a worker is destroyed
 * whose answer to a peer's first message still waits for a connection, for instance because that peer has just been
 * stopped. After the wireup none is half made. In a larger communicator a rank that leaves polls the network until that
 * has been quiet for a moment (disconnect.c), so that UCX's answer to a greeting that comes just then is sent.
 *
 * A rank that dies during the wireup may take a rank on another node with it in two ways, where UCX is let. When the
 * peer has taken the connection, and dies before this side has sent its first bytes on it, UCX's tcp (1.13 to 1.22,
 * uct_tcp_ep_connect) tries once more, finds nobody, gives the endpoint up (uct_tcp_ep_set_failed), and marks it as in
 * use all the same; the next poll frees it, by an assertion or by memory that others still use. It calls that an error
 * in its log, and nowhere else. So rondo listens (rd_ucx_errors_begin): a network that has made such an endpoint is
 * broken, which means that it is never polled again. That was one of 75 trials of deaths in splits and shrinks with
 * UCX 1.16, and none of 1,600 since.
 *
 * UCX 1.13 also ends the process (ucp_worker_discard_uct_ep) when the connection breaks while its first message is
 * being sent: once in 800 trials of killing a rank during creation.
 *
 * Nor may an endpoint be closed that is half made: UCX 1.16 then ends the process by a null pointer in the next
 * progress, or by an assertion, 7 times in 2,000 trials of deaths in splits and shrinks on 32 cores. A network with one
 * is left as it is (rd_ucx_end).
 *
 * UCX connects two endpoints by messages of its own (a request, a reply), which the first message that is not short
 * starts. It queues the request for a connection that tcp has yet to make. If the peer dies between making it and the
 * request, sending fails while the request is in no queue, and cleaning up does not find it: an assertion (wireup_ep.c,
 * pending_count; 1.13 to 1.22) ended a rank in 1 of 1,500 trials of deaths between nodes on 64 cores. So over tcp the
 * greeting waits until the connection is made, by a flush of an endpoint that has nothing to send; then the request
 * goes at once, and the peer, which has the connection as well, replies at once. test/ucx/greeting_lost plays it. Where
 * ranks do not greet each other, the first message still waits in that queue.
 */
#include "ucx/ucx.h"

static void connected(void *request, ucs_status_t status, void *arg)
{
    rd_ucx_peer_t *peer = arg;
    rd_ucx_net_t *net = rd_ucx_net_of(&peer->base);
    bool is_made = status == UCS_OK;
    peer->greeting = is_made ? RD_UCX_CONNECTED : RD_UCX_UNGREETED;
    if (!is_made)
        rd_ucx_peer_lost(peer, status);
    net->greetings |= is_made;
    net->outstanding--;
    rd_ucp.request_free(request);
}

/* A flush of an endpoint over which nothing was sent is over when the connection is made. */
static void connect_first(rd_ucx_peer_t *peer)
{
    rd_ucx_net_t *net = rd_ucx_net_of(&peer->base);
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb = {.send = connected},
                                 .user_data = peer};
    if (rd_ucx_peer_connect(peer) != RONDO_SUCCESS || !peer->ep)
        return;
    peer->greeting = RD_UCX_CONNECTING;
    ucs_status_ptr_t request = rd_ucp.ep_flush_nbx(peer->ep, &param);
    if (UCS_PTR_IS_PTR(request)) {
        net->outstanding++;
    } else if (UCS_PTR_IS_ERR(request)) {
        peer->greeting = RD_UCX_UNGREETED;
        rd_ucx_peer_lost(peer, UCS_PTR_STATUS(request));
    } else {
        peer->greeting = RD_UCX_CONNECTED;
        net->greetings = true;
    }
}

/* The greeting goes as data go, in a list: what UCX sends as a short message does not connect the endpoints. */
static void hello_listed(rd_ucx_peer_t *peer)
{
    int pending;
    rd_net_header_fill(&peer->hello, peer->base.net, 0, RD_NET_HELLO, 0, 0);
    peer->hello_list = (ucp_dt_iov_t){.buffer = &peer->hello, .length = sizeof peer->hello};
    peer->greeting = RD_UCX_GREETED;
    rd_ucx_send_list(peer, &peer->hello_list, 1, rd_ucx_sent, peer, &pending);
}

void rd_ucx_greetings_send(rd_ucx_net_t *net)
{
    net->greetings = false;
    if (net->base.left_ms != 0) {
        rd_ucx_say_bye(net, 0);
        return;
    }
    if (rd_stop_get(net->base.stop) != RONDO_SUCCESS)
        return;
    for (rd_ucx_peer_t *p = rd_ucx_first(net); p; p = rd_ucx_next(p))
        if (p->greeting == RD_UCX_CONNECTED)
            hello_listed(p);
}

static void hello(rd_ucx_peer_t *peer)
{
    int pending;
    rd_net_header_fill(&peer->hello, peer->base.net, 0, RD_NET_HELLO, 0, 0);
    rd_ucx_send(peer, &peer->hello, NULL, 0, rd_ucx_sent, peer, &pending);
}

void rd_ucx_greet(rd_net_peer_t *to)
{
    rd_ucx_peer_t *peer = rd_ucx_peer_of(to);
    if (rd_ucx_net_of(to)->lists && peer->base.lost_ms == 0)
        connect_first(peer);
    else
        hello(peer);
}

void rd_ucx_seek(rd_transport_t *transport, int rank)
{
    rd_ucx_peer_t *peer = rd_ucx_peer(rd_ucx_of(transport), rank);
    if (peer->base.remote && !peer->ep && !peer->base.left)
        hello(peer);
}
