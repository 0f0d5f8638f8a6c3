/* Questions about what a peer has called, and answers (transport/network/net_question.c). */
#include <string.h>

#include "ofi/ofi.h"

void rd_ofi_ask_called(rd_transport_t *transport, int rank)
{
    rd_ofi_peer_t *peer = rd_ofi_peer(rd_ofi_of(transport), rank);

    if (peer->base.used && rd_net_asks(&peer->base))
        rd_ofi_say(peer, RD_NET_ASK, 0, 0);
}

/* Only a question that comes while nothing waits for this peer is answered: it does not take what is sent to it. */
void rd_ofi_asked(rd_ofi_peer_t *peer)
{
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
