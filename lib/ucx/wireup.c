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
 * progress, or by an assertion (wireup_ep.c, pending_count), 7 times in 2,000 trials of deaths in splits and shrinks on
 * 32 cores. A network with one is left as it is (rd_ucx_end). The assertion is left, once in 6,000 trials of deaths
 * between nodes, when the peer of such a connection dies and UCX itself gives it up.
 */
#include "ucx/ucx.h"

void rd_ucx_greet(rd_net_peer_t *to)
{
    rd_ucx_peer_t *peer = rd_ucx_peer_of(to);
    int pending;
    rd_net_header_fill(&peer->hello, to->net, 0, RD_NET_HELLO, 0, 0);
    rd_ucx_send(peer, &peer->hello, NULL, 0, rd_ucx_sent, peer, &pending);
}

void rd_ucx_seek(rd_transport_t *transport, int rank)
{
    const rd_ucx_peer_t *peer = rd_ucx_peer(rd_ucx_of(transport), rank);
    if (peer->base.remote && !peer->ep && !peer->base.left)
        rd_ucx_greet(rd_net_peer(&rd_ucx_of(transport)->base, rank));
}
