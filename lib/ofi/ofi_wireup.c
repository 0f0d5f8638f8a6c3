/* Greetings, which make connections (transport/network/net_wireup.c). During the wireup the lower one of two ranks
 * begins, so that there is one connection and not two that cross. */
#include "ofi/ofi.h"

void rd_ofi_greet(rd_ofi_peer_t *peer, bool answer)
{
    rd_ofi_say(peer, RD_NET_HELLO, answer, 0);
}

void rd_ofi_greet_higher(rd_net_peer_t *peer)
{
    if (peer->rank > peer->net->rank)
        rd_ofi_greet(rd_ofi_peer_of(peer), false);
}

void rd_ofi_seek(rd_transport_t *transport, int rank)
{
    rd_ofi_peer_t *peer = rd_ofi_peer(rd_ofi_of(transport), rank);
    if (peer->base.remote && !peer->base.used)
        rd_ofi_greet(peer, false);
}
