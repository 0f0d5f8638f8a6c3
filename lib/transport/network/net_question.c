/* What ranks of other nodes have called lately (monitor/called.h). A rank that is stuck asks those that it may be stuck
 * because of, and they answer when they poll the network, which they do while they wait themselves. A peer is asked
 * again only when it has answered, so one that does not poll is not sent more and more. */
#include <stdlib.h>
#include <string.h>

#include "transport/network/network.h"

struct rd_net_called {
    rd_called_t heard;
    bool some;  /* something was heard */
    bool asked; /* and not answered yet */
};

/* NULL: there is no memory, and nothing is heard. */
static rd_net_called_t *called_of(rd_net_peer_t *peer)
{
    const size_t bytes = sizeof *peer->called; /* whole lines, as of all that has lines in it */

    if (!peer->called && (peer->called = aligned_alloc(RD_LINE, bytes)) != NULL)
        memset(peer->called, 0, bytes);
    return peer->called;
}

bool rd_net_asks(rd_net_peer_t *peer)
{
    rd_net_called_t *c = peer->left ? NULL : called_of(peer);

    if (!c || c->asked)
        return false;
    c->asked = true;
    return true;
}

const rd_called_t *rd_net_called(const rd_transport_t *transport, int rank)
{
    const rd_net_called_t *c = rd_net_peer((const rd_net_t *)transport, rank)->called;

    return c && c->some ? &c->heard : NULL;
}

bool rd_net_answers(const rd_net_peer_t *peer)
{
    return peer->net->self && !peer->net->alone && !peer->left && !peer->parted;
}

void rd_net_take_answer(rd_net_peer_t *peer, const void *data, size_t bytes)
{
    rd_net_called_t *c = peer->called;
    rd_called_digest_t digest;

    if (!c || !c->asked || bytes != sizeof digest) {
        rd_net_drop(peer->net, "an answer that was not asked for", bytes);
        return;
    }
    memcpy(&digest, data, sizeof digest); /* the original need not be aligned */
    rd_called_hear(&c->heard, &digest);
    c->some = true;
    c->asked = false;
}
