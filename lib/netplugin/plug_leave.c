/* How a rank leaves the network, in order or after a failure. As with libfabric (lib/ofi), a rank that ends in order
 * waits for the farewells of all peers, or until they have confirmed its own: what a peer has not taken when the comms
 * are closed is lost. */
#include <stdlib.h>

#include "netplugin/netplugin.h"

#define FAREWELL_MS 1000 /* the most time for farewells after a mismatch */
#define READ_MS 2000     /* the most time for peers to take what was sent, where the network cannot linger */
#define PARTED_MS 50     /* time for peers' farewells, and until they have taken all */
#define STAYS_MS 1000    /* time for a peer that has taken all, and has not left */
#define FAILED_MS 20     /* time to send farewells after a failure */
#define POLLS 1000       /* the most polls of the network before anything is sent or decided */

/* Nothing is received into the user's memory, nor sent from there. */
void rd_plug_cancel(rd_transport_t *transport)
{
    rd_net_dests_back(&rd_plug_of(transport)->base);
}

/* ---- the end */

static void poll_some(rd_plug_net_t *net)
{
    for (int i = 0; i < POLLS && rd_plug_progress(&net->base.transport); i++)
        continue;
}

void rd_plug_leave(rd_transport_t *transport)
{
    rd_plug_net_t *net = rd_plug_of(transport);
    if (!net->plug || net->base.left_ms != 0)
        return;
    for (int r = 0; r < net->base.nranks; r++) /* every pair has receives posted */
        if (rd_plug_peer(net, r)->memory)
            rd_net_peer_used(&rd_plug_peer(net, r)->base);
    poll_some(net); /* for a farewell that a failing send would hide */
    if (rd_stop_get(net->base.stop) == RONDO_SUCCESS)
        rd_net_credits_flush(&net->base, false);
    rd_plug_say_bye(net);
    net->base.left_ms = rd_clock_ms();
}

/* Returns true if a live peer may not have taken all that was sent to it. One that has sent its own farewell is polling
 * for this rank's, and gets it when the plugin has sent it. */
static bool is_unread(const rd_net_peer_t *peer)
{
    const rd_plug_peer_t *p = rd_plug_peer_of(peer);
    return peer->lost_ms == 0 && !p->taken && (!peer->left || p->pending != 0);
}

static bool all_read(rd_net_t *net)
{
    for (const rd_net_peer_t *p = net->used; p; p = p->next_used)
        if (is_unread(p))
            return false;
    return true;
}

/* Returns true if nothing is posted any more for any peer that is there. */
static bool all_drained(rd_net_t *net)
{
    for (const rd_net_peer_t *n = net->used; n; n = n->next_used) {
        const rd_plug_peer_t *p = rd_plug_peer_of(n);
        if (n->lost_ms == 0 && (!p->filled || !p->taken || p->nin != 0 || p->nout != 0 || p->pending != 0))
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
    return (((rd_plug_net_t *)net)->outstanding == 0 || all_read(net)) && longs_over(net);
}

static void end(rd_plug_net_t *net)
{
    rd_net_end_say(&net->base, is_unread);
    rd_plug_close(net);
    rd_net_release(&net->base);
    free(net);
}

/* ---- a network that outlives its communicator */

/* A peer that has gone is not waited for, nor, for long, one that has taken everything and stays. */
static bool linger_poll(rd_linger_t *linger)
{
    rd_plug_net_t *net = linger->net;
    for (int i = 0; i < POLLS && rd_plug_poll(net); i++)
        continue;
    rd_plug_say_bye(net);
    return all_drained(&net->base) || (all_read(&net->base) && rd_clock_ms() - linger->left_ms > STAYS_MS);
}

static void linger_end(rd_linger_t *linger)
{
    end(linger->net);
}

/* Returns true if the network will be closed later; the caller then no longer owns it. Long payloads lie in the
 * communicator's memory: all have left, and what peers send is needed no more. */
static bool linger(rd_plug_net_t *net)
{
    rd_plug_close_longs(net);
    return rd_net_linger(&net->base, &(rd_linger_t){.detach = rd_net_detach, .poll = linger_poll, .end = linger_end});
}

/* Returns true if the network lingers, because a live peer does not poll. */
static bool leave_in_order(rd_plug_net_t *net)
{
    if (net->base.left_ms == 0) /* it was never completely made */
        return false;
    poll_some(net);
    rd_plug_say_bye(net);
    if (rd_net_wait_until(&net->base, all_drained, PARTED_MS))
        return false;
    if (rd_net_wait_until(&net->base, is_given_back, READ_MS) && linger(net))
        return true;
    rd_net_wait_until(&net->base, all_read, READ_MS);
    return false;
}

/* Waits after a failure until the farewells are sent. */
static void failed_wait(rd_plug_net_t *net, int64_t limit_ms)
{
    int64_t until = rd_clock_ms() + limit_ms;
    int pending;
    do {
        (void)rd_plug_poll(net);
        pending = 0;
        for (const rd_plug_peer_t *p = rd_plug_first(net); p; p = rd_plug_next(p))
            pending += p->base.lost_ms == 0 ? p->pending : 0;
    } while (pending != 0 && rd_clock_ms() < until);
}

void rd_plug_destroy(rd_transport_t *transport)
{
    rd_plug_net_t *net = rd_plug_of(transport);
    rd_plug_leave(transport);
    if (rd_stop_get(net->base.stop) == RONDO_SUCCESS && leave_in_order(net))
        return;
    if (net->plug && rd_stop_get(net->base.stop) != RONDO_SUCCESS) /* after a mismatch the others are alive, and find it
                                                                      from what this rank has sent */
        failed_wait(net, rd_stop_get(net->base.stop) == RONDO_ERR_MISMATCH ? FAREWELL_MS : FAILED_MS);
    end(net);
}
