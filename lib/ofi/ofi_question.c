/* What ranks of other nodes have called lately (monitor/called.h). A rank that is stuck asks those that it may be stuck
 * because of, and they answer when they poll the network, which they do while they wait themselves. A peer is asked
 * again only when it has answered, so one that does not poll is not sent more and more. */
#include <stdlib.h>
#include <string.h>

#include "ofi/ofi.h"

struct rd_ofi_called {
    rd_called_t heard;
    bool some;  /* something was heard */
    bool asked; /* and not answered yet */
};

/* NULL: there is no memory, and nothing is heard. */
static rd_ofi_called_t *called_of(rd_ofi_peer_t *peer)
{
    const size_t bytes = sizeof *peer->called; /* whole lines, as of all that has lines in it */

    if (!peer->called && (peer->called = aligned_alloc(RD_LINE, bytes)) != NULL)
        memset(peer->called, 0, bytes);
    return peer->called;
}

void rd_ofi_ask_called(rd_transport_t *transport, int rank)
{
    rd_ofi_peer_t *peer = rd_ofi_peer(rd_ofi_of(transport), rank);
    rd_ofi_called_t *c = peer->base.used && !peer->base.left ? called_of(peer) : NULL;

    if (!c || c->asked)
        return;
    c->asked = true;
    rd_ofi_say(peer, RD_NET_ASK, 0, 0);
}

const rd_called_t *rd_ofi_called(const rd_transport_t *transport, int rank)
{
    const rd_ofi_called_t *c = rd_ofi_peer((const rd_ofi_net_t *)transport, rank)->called;

    return c && c->some ? &c->heard : NULL;
}

/* Only a question that comes while nothing waits for this peer is answered: it does not take what is sent to it. */
void rd_ofi_asked(rd_ofi_peer_t *peer)
{
    rd_ofi_net_t *net = rd_ofi_net_of(&peer->base);
    rd_called_digest_t digest;

    _Static_assert(sizeof digest <= RD_OFI_SHORT, "an answer goes by the short tag");
    if (!net->base.self || net->base.alone || peer->base.left || peer->base.parted || peer->first)
        return;
    rd_ofi_request_t *r = rd_ofi_message(peer, RD_NET_CALLED, 0, true);
    if (!r)
        return;
    if (!r->copies) { /* so much is under way that the rank is not stuck */
        rd_ofi_release(r);
        return;
    }
    rd_called_tell(net->base.self, &digest);
    memcpy(r->copy, &digest, sizeof digest);
    r->bytes = sizeof digest;
    r->header.bytes = sizeof digest;
    rd_ofi_push(r);
}

const char *rd_ofi_answered(rd_ofi_peer_t *peer, const void *data, size_t bytes)
{
    rd_ofi_called_t *c = peer->called;
    rd_called_digest_t digest;

    if (!c || !c->asked || bytes != sizeof digest)
        return "an answer that was not asked for";
    memcpy(&digest, data, sizeof digest); /* the original need not be aligned */
    rd_called_hear(&c->heard, &digest);
    c->some = true;
    c->asked = false;
    return NULL;
}
