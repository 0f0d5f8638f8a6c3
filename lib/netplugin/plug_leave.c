/* How a rank leaves the network, in order or after a failure. As with libfabric (lib/ofi), a rank that ends in order
 * waits for the farewells of all peers, or until they have confirmed its own: what a peer has not taken when the comms
 * are closed is lost. */
#include <stdlib.h>

#include "netplugin/netplugin.h"

#define STAYS_MS 1000 /* time for a peer that has taken all, and has not left */
#define POLLS 1000    /* the most polls of a network that lingers, at a time */

/* Nothing is received into the user's memory, nor sent from there. */
void rd_plug_cancel(rd_transport_t *transport)
{
    rd_net_dests_back(&rd_plug_of(transport)->base);
}

/* ---- the end */

void rd_plug_leave(rd_transport_t *transport)
{
    rd_plug_net_t *net = rd_plug_of(transport);
    if (!net->plug || net->base.left_ms != 0)
        return;
    for (int r = 0; r < net->base.nranks; r++) /* every pair has receives posted */
        if (rd_plug_peer(net, r)->memory)
            rd_net_peer_used(&rd_plug_peer(net, r)->base);
    rd_net_part(&net->base);
}

/* Returns true if nothing is posted any more for any peer that is there. */
static bool all_drained(rd_net_t *net)
{
    for (const rd_net_peer_t *n = net->used; n; n = n->next_used) {
        const rd_plug_peer_t *p = rd_plug_peer_of(n);
        if (n->lost_ms == 0 && (!p->filled || !n->taken || p->nin != 0 || p->nout != 0 || n->pending != 0))
            return false;
    }
    return true;
}

static bool longs_over(const rd_net_t *net)
{
    for (const rd_net_peer_t *n = net->used; n; n = n->next_used)
        if (n->lost_ms == 0 && rd_plug_peer_of(n)->nlongs != 0)
            return false;
    return true;
}

/* Returns true if nothing that is being sent lies in the communicator's memory, as far as the plugin has said, too. */
static bool is_given_back(rd_net_t *net)
{
    return (((rd_plug_net_t *)net)->outstanding == 0 || rd_net_all_read(net)) && longs_over(net);
}

static void end(rd_plug_net_t *net)
{
    rd_net_end_say(&net->base, rd_net_is_unread);
    rd_plug_close(net);
    rd_net_release(&net->base);
    free(net);
}

/* ---- a network that outlives its communicator */

/* A peer that has gone is not waited for, nor, for long, one that has taken everything and stays. */
static bool linger_poll(rd_linger_t *linger)
{
    rd_plug_net_t *net = linger->net;
    for (int i = 0; i < POLLS && rd_plug_poll(&net->base); i++)
        continue;
    rd_net_say_bye(&net->base);
    return all_drained(&net->base) || (rd_net_all_read(&net->base) && rd_clock_ms() - linger->left_ms > STAYS_MS);
}

static void linger_end(rd_linger_t *linger)
{
    end(linger->net);
}

/* Returns true if the network will be closed later; the caller then no longer owns it. Long payloads lie in the
 * communicator's memory: all have left, and what peers send is needed no more. */
static bool linger(rd_net_t *net)
{
    rd_plug_close_longs((rd_plug_net_t *)net);
    return rd_net_linger(net, &(rd_linger_t){.detach = rd_net_detach, .poll = linger_poll, .end = linger_end});
}

static const rd_net_ending_t ending = {.is_parted = all_drained,
                                       .is_over = all_drained,
                                       .is_read = rd_net_all_read,
                                       .is_given_back = is_given_back,
                                       .linger = linger};

void rd_plug_destroy(rd_transport_t *transport)
{
    rd_plug_net_t *net = rd_plug_of(transport);
    rd_plug_leave(transport);
    if (!rd_net_end_wait(&net->base, &ending))
        end(net);
}
