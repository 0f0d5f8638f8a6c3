/* Peers: which of them were used, have left, or are lost.
 *
 * A connection that ends is not yet a death: a rank that destroys its communicator in order, or one that gives up
 * because of a third rank, ends its connections too. So each rank sends a farewell to every peer it has exchanged
 * messages with, and the farewell of a failure names the failed rank. After a connection breaks without a farewell
 * there is a grace time, in which the liveness thread or the bootstrap may learn the reason; then the peer is declared
 * dead. */
#include <string.h>

#include "transport/network/network.h"

void rd_net_header_fill(rd_net_header_t *header, const rd_net_t *net, int channel, rd_net_kind_t kind, uint64_t number,
                        uint64_t bytes)
{
    memcpy(header->token, net->token, RD_NET_TOKEN);
    header->rank = (uint32_t)net->rank;
    header->channel = (uint16_t)channel;
    header->kind = (uint8_t)kind;
    header->zero = 0;
    header->number = number;
    header->bytes = bytes;
    header->credit = 0;
}

void rd_net_peer_used(rd_net_peer_t *peer)
{
    if (!peer->used) {
        peer->used = true;
        peer->next_used = peer->net->used;
        peer->net->used = peer;
    }
}

bool rd_net_peer_lost(rd_net_peer_t *peer, const char *why)
{
    if (peer->lost_ms != 0)
        return false;
    peer->lost_ms = rd_clock_ms();
    peer->lost_why = why;
    peer->net->nlost += !peer->left;
    return true;
}

rondo_result_t rd_net_has_failed(const rd_net_t *net, int rank, const char *cannot, const char *why)
{
    char said[RD_ERROR_BYTES];

    rd_boot_cause(net->boot, rank, why, said);
    rd_boot_farewell_alike(net->boot);
    return rd_error(net->ctx, RONDO_ERR_REMOTE, "rank %d (%s) %s: %.400s", rank, rd_boot_whois(net->boot, rank), cannot,
                    said);
}

rondo_result_t rd_net_has_left(rd_net_peer_t *peer)
{
    rd_net_t *net = peer->net;
    /* Why it has left comes by the bootstrap, and this farewell may have been faster. */
    rondo_result_t why = peer->farewell != RONDO_SUCCESS && !net->alone ? rd_net_why_unreached(net) : RONDO_SUCCESS;
    if (why != RONDO_SUCCESS)
        return why;
    if (peer->due_ms != 0) {
        peer->due_ms = 1;
        rd_net_byes_due(net);
    }
    return rd_stop_fail(net->stop, net->ctx, RONDO_ERR_REMOTE, peer->rank,
                        "rank %d (%s) has left the communicator, and an operation of rank %d still needs it",
                        peer->rank, rd_boot_whois(net->boot, peer->rank), net->rank);
}

void rd_net_judge_lost(rd_net_t *net)
{
    int64_t now = rd_clock_ms();
    for (rd_net_peer_t *p = net->used; p; p = p->next_used) {
        if (p->lost_ms == 0 || p->left || p->judged || now - p->lost_ms < RD_NET_GRACE_MS)
            continue;
        net->nlost--;
        p->judged = true;
        if (!net->alone)
            rd_stop_fail(net->stop, net->ctx, RONDO_ERR_REMOTE, p->rank,
                         "the network's connection to rank %d (%s) from rank %d was lost: %s; the process of rank %d "
                         "may have ended",
                         p->rank, rd_boot_whois(net->boot, p->rank), net->rank, p->lost_why, p->rank);
    }
}

void rd_net_bye_fill(rd_net_header_t *header, const rd_net_peer_t *peer)
{
    const rd_net_t *net = peer->net;
    rondo_result_t code = rd_stop_get(net->stop);
    int failed_rank = code == RONDO_SUCCESS ? -1 : atomic_load(&net->stop->failed_rank);
    int reporter = code == RONDO_SUCCESS ? 0 : rd_reporter(atomic_load(&net->stop->reporter), net->rank);
    if (code != RONDO_SUCCESS && failed_rank < 0)
        failed_rank = net->rank;
    bool died = code == RONDO_ERR_REMOTE && atomic_load(&net->stop->died);
    rd_net_header_fill(header, net, 0, RD_NET_BYE, (uint64_t)code,
                       (uint64_t)reporter << 32 | (died ? RD_NET_BYE_DIED : 0) | (uint64_t)(failed_rank + 1));
    for (int c = 0; c < peer->nconns; c++)
        header->credit += peer->conns[c] && peer->conns[c]->send ? peer->conns[c]->send->sent : 0;
}

uint64_t rd_net_come(const rd_net_peer_t *peer)
{
    uint64_t come = 0;
    for (int c = 0; c < peer->nconns; c++)
        come += peer->conns[c] ? peer->conns[c]->next : 0;
    return come;
}
