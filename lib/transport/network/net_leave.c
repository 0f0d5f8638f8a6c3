/* How a network ends: what its peers' farewells say, waits at an orderly end, and what is left of a network that
 * outlives its communicator (transport/linger.h). */
#include <stdlib.h>
#include <string.h>

#include "transport/network/network.h"

void rd_net_dests_back(rd_net_t *net)
{
    for (rd_net_peer_t *p = net->used; p; p = p->next_used) {
        for (int c = 0; c < p->nconns; c++)
            if (p->conns[c] && p->conns[c]->recv)
                p->conns[c]->recv->dest = NULL;
    }
}

/* A farewell may come before a message that was sent before it, where the network keeps no order: a long one is sent in
 * pieces, or fetched. If the connection has broken since, nothing more comes. */
rondo_result_t rd_net_farewell(const rd_transport_t *transport, int rank)
{
    const rd_net_peer_t *peer = rd_net_peer((const rd_net_t *)transport, rank);
    if (!peer->left)
        return RONDO_IN_PROGRESS;
    return rd_net_come(peer) == peer->sent || peer->lost_ms != 0 ? peer->farewell : RONDO_IN_PROGRESS;
}

bool rd_net_wait_until(rd_net_t *net, bool (*over)(rd_net_t *net), int64_t limit_ms)
{
    rd_wait_t wait;
    rondo_result_t result = rd_stop_get(net->stop);
    rd_wait_begin(&wait, net->stop, 0, 0);
    while (result == RONDO_SUCCESS && !over(net)) {
        if (rd_clock_ms() - net->left_ms > limit_ms)
            return false;
        if (rd_transport_progress(&net->transport))
            rd_wait_progress(&wait);
        net->library->say_bye(net);
        result = rd_wait_backoff(&wait);
    }
    return result == RONDO_SUCCESS;
}

void rd_net_end_say(const rd_net_t *net, bool (*is_unread)(const rd_net_peer_t *peer))
{
    for (const rd_net_peer_t *p = net->used; p; p = p->next_used) {
        if (net->left_ms != 0 && rd_stop_get(net->stop) == RONDO_SUCCESS && is_unread(p))
            rd_log(net->ctx, RD_LOG_WARN,
                   "rank %d has not read in time what this rank had sent it before it left: that may be lost", p->rank);
    }
    if (net->dropped > 1)
        rd_log(net->ctx, RD_LOG_WARN, "dropped %llu messages from the network in all",
               (unsigned long long)net->dropped);
}

/* ---- a network that outlives its communicator */

void rd_net_detach(rd_linger_t *linger)
{
    rd_net_alone_t *alone = (rd_net_alone_t *)linger;
    rd_net_t *net = linger->net;
    alone->ctx = (rd_log_ctx_t){.rank = net->ctx->rank, .nranks = net->ctx->nranks};
    memcpy(alone->ctx.name, net->ctx->name, sizeof alone->ctx.name);
    for (int r = 0; r < net->nranks; r++) {
        const rd_net_peer_t *peer = rd_net_peer(net, r);
        for (int c = 0; c < peer->nconns; c++) {
            if (peer->conns[c]) {
                peer->conns[c]->send = NULL;
                peer->conns[c]->recv = NULL;
            }
        }
    }
    net->ctx = &alone->ctx;
    net->stop = &alone->stop;
    net->boot = NULL;
    net->alone = alone;
}

bool rd_net_linger(rd_net_t *net, const rd_linger_t *how)
{
    rd_net_alone_t *alone = calloc(1, sizeof *alone);
    if (!alone)
        return false;
    alone->linger = *how;
    alone->linger.net = net;
    alone->linger.left_ms = net->left_ms;
    if (rd_linger_begin(&alone->linger))
        return true;
    free(alone);
    return false;
}
