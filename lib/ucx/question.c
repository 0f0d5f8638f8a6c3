/* What ranks of other nodes have called lately (monitor/called.h). A rank that is stuck asks those that it may be stuck
 * because of, and they answer when they poll the network, which they do while they wait themselves. A peer is asked
 * again only when it has answered, so one that does not poll is not sent more and more. */
#include <stdlib.h>
#include <string.h>

#include "ucx/ucx.h"

struct rd_ucx_called {
    rd_called_t heard;
    bool some;  /* something was heard */
    bool asked; /* and not answered yet */
    int busy;   /* the answer to the peer is being sent */
    rd_net_header_t question, answer;
    rd_called_digest_t digest;
};

/* NULL: there is no memory, and nothing is heard. */
static rd_ucx_called_t *called_of(rd_ucx_peer_t *peer)
{
    const size_t bytes = sizeof *peer->called; /* whole lines, as of all that has lines in it */

    if (!peer->called && (peer->called = aligned_alloc(RD_LINE, bytes)) != NULL)
        memset(peer->called, 0, bytes);
    return peer->called;
}

void rd_ucx_ask_called(rd_transport_t *transport, int rank)
{
    rd_ucx_net_t *net = rd_ucx_of(transport);
    rd_ucx_peer_t *peer = rd_ucx_peer(net, rank);
    rd_ucx_called_t *c = peer->address && peer->ep && !peer->base.left ? called_of(peer) : NULL;
    int pending;

    if (!c || c->asked)
        return;
    c->asked = true;
    rd_net_header_fill(&c->question, &net->base, 0, RD_NET_ASK, 0, 0);
    rd_ucx_send(peer, &c->question, NULL, 0, rd_ucx_sent, peer, &pending);
}

const rd_called_t *rd_ucx_called(const rd_transport_t *transport, int rank)
{
    const rd_ucx_called_t *c = rd_ucx_peer((const rd_ucx_net_t *)transport, rank)->called;

    return c && c->some ? &c->heard : NULL;
}

static void answer_sent(void *request, ucs_status_t status, void *arg)
{
    rd_ucx_peer_t *peer = arg;

    peer->called->busy = 0;
    rd_ucx_sent(request, status, peer);
}

void rd_ucx_asked(rd_ucx_peer_t *peer)
{
    rd_ucx_net_t *net = rd_ucx_net_of(&peer->base);
    rd_ucx_called_t *c =
        net->base.self && !net->base.alone && !peer->base.left && !peer->base.parted ? called_of(peer) : NULL;

    if (!c || c->busy)
        return;
    rd_called_tell(net->base.self, &c->digest);
    rd_net_header_fill(&c->answer, &net->base, 0, RD_NET_CALLED, 0, sizeof c->digest);
    rd_ucx_send(peer, &c->answer, &c->digest, sizeof c->digest, answer_sent, peer, &c->busy);
}

const char *rd_ucx_answered(rd_ucx_peer_t *peer, const void *data, size_t bytes)
{
    rd_ucx_called_t *c = peer->called;
    rd_called_digest_t digest;

    if (!c || !c->asked || bytes != sizeof digest)
        return "an answer that was not asked for";
    memcpy(&digest, data, sizeof digest); /* the original need not be aligned */
    rd_called_hear(&c->heard, &digest);
    c->some = true;
    c->asked = false;
    return NULL;
}
