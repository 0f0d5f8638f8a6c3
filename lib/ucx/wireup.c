/* Greetings, which make connections (transport/network/net_wireup.c): every rank greets every other one.
 *
 * UCX is fragile while a connection is being made: the UCX of Debian 12 ends the process when a worker is destroyed
 * whose answer to a peer's first message still waits for a connection, for instance because that peer has just been
 * stopped. After the wireup none is half made. In a larger communicator a rank that leaves polls the network until that
 * has been quiet for a moment (disconnect.c), so that UCX's answer to a greeting that comes just then is sent.
 *
 * The wireup itself remains a risk: a rank that dies in this moment may take a rank on another node with it. UCX 1.13
 * ends the process (ucp_worker_discard_uct_ep) when the connection breaks while its first message is being sent: once
 * in 800 trials of killing a rank during creation. And UCX 1.13 to 1.22 do when the peer has connected, and dies before
 * this side, which then uses that connection, has answered on it: the endpoint is given up (uct_tcp_ep_connect, by
 * uct_tcp_ep_set_failed), is marked as in use all the same, and UCX's assertion (uct_tcp_ep_destroy_progress), which
 * distributions leave in, finds the mark. That was 6 times in 3,900 trials of two deaths, six at a time on two cores.
 *
 * Nor may an endpoint be closed that is half made: UCX 1.16 then ends the process by a null pointer in the next
 * progress, or by an assertion (wireup_ep.c, pending_count), 7 times in 2,000 trials of deaths in splits and shrinks on
 * 32 cores. A network with one is left as it is (rd_ucx_end).
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
