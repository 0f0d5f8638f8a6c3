/* Questions about what a peer has called, and answers (transport/network/net_question.c): UCX reads both from here
 * until they have been sent. */
#include <stdlib.h>

#include "ucx/ucx.h"

struct rd_ucx_said {
    int busy; /* the answer is being sent */
    rd_net_header_t question, answer;
    rd_called_digest_t digest;
};

/* NULL: there is no memory, and nothing is said. */
static rd_ucx_said_t *said_of(rd_ucx_peer_t *peer)
{
    if (!peer->said)
        peer->said = calloc(1, sizeof *peer->said);
    return peer->said;
}

void rd_ucx_ask_called(rd_transport_t *transport, int rank)
{
    rd_ucx_peer_t *peer = rd_ucx_peer(rd_ucx_of(transport), rank);
    rd_ucx_said_t *said = peer->ep ? said_of(peer) : NULL;
    int pending;

    if (!said || !rd_net_asks(&peer->base))
        return;
    rd_net_header_fill(&said->question, peer->base.net, 0, RD_NET_ASK, 0, 0);
    rd_ucx_send(peer, &said->question, NULL, 0, rd_ucx_sent, peer, &pending);
}

static void answer_sent(void *request, ucs_status_t status, void *arg)
{
    rd_ucx_peer_t *peer = arg;

    peer->said->busy = 0;
    rd_ucx_sent(request, status, peer);
}

void rd_ucx_asked(rd_ucx_peer_t *peer)
{
    rd_ucx_said_t *said = rd_net_answers(&peer->base) ? said_of(peer) : NULL;

    if (!said || said->busy)
        return;
    rd_called_tell(peer->base.net->self, &said->digest);
    rd_net_header_fill(&said->answer, peer->base.net, 0, RD_NET_CALLED, 0, sizeof said->digest);
    rd_ucx_send(peer, &said->answer, &said->digest, sizeof said->digest, answer_sent, peer, &said->busy);
}
