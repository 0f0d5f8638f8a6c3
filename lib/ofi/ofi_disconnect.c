/* How a rank leaves the network, in order or after a failure. */
#include <stdlib.h>
#include <string.h>

#include "ofi/ofi.h"

#define FAREWELL_MS 1000 /* the most time for farewells after a mismatch */
#define READ_MS 2000     /* the most time for peers to take what was sent, where the network cannot linger */
#define PARTED_MS 50     /* time for peers' farewells, and until they have taken all */
#define FAILED_MS 20     /* time to send farewells after a failure */
#define POLLS 1000       /* the most polls of the network before anything is sent or decided */

/* Waits for messages out of the user's memory that peers have yet to take. */
static void zcopies_wait(rd_ofi_net_t *net)
{
    int64_t until = rd_clock_ms() + FAILED_MS;
    while (net->base.transport.zcopy_pending != 0 && rd_clock_ms() < until)
        (void)rd_ofi_poll(net);
}

/* What is then still being sent out of the user's memory can only be given up with the endpoint, behind farewells. */
void rd_ofi_cancel(rd_transport_t *transport)
{
    rd_ofi_net_t *net = rd_ofi_of(transport);
    rd_net_dests_back(&net->base);
    zcopies_wait(net);
    if (net->base.transport.zcopy_pending == 0)
        return;
    rd_ofi_say_bye(net);
    zcopies_wait(net);
    if (net->base.transport.zcopy_pending != 0)
        rd_ofi_cut(net);
}

/* ---- the end */

static void poll_some(rd_ofi_net_t *net)
{
    for (int i = 0; i < POLLS && rd_ofi_progress(&net->base.transport); i++)
        continue;
}

void rd_ofi_leave(rd_transport_t *transport)
{
    rd_ofi_net_t *net = rd_ofi_of(transport);
    if (!net->ep || net->base.left_ms != 0)
        return;
    poll_some(net); /* for a farewell that a failing send would hide */
    if (rd_stop_get(net->base.stop) == RONDO_SUCCESS)
        rd_net_credits_flush(&net->base, false);
    rd_ofi_say_bye(net);
    net->base.left_ms = rd_clock_ms();
}

/* Returns true if a live peer may not have taken all that was sent to it. One that has sent its own farewell is polling
 * for this rank's, and gets it when the provider has sent it. */
static bool is_unread(const rd_net_peer_t *peer)
{
    const rd_ofi_peer_t *p = rd_ofi_peer_of(peer);
    return peer->lost_ms == 0 && !p->taken && (!peer->left || p->pending != 0);
}

static bool all_read(rd_net_t *net)
{
    for (const rd_net_peer_t *p = net->used; p; p = p->next_used)
        if (is_unread(p))
            return false;
    return true;
}

/* Returns true if all peers have sent a farewell as well, and all is sent. */
static bool all_parted(rd_net_t *net)
{
    for (const rd_net_peer_t *p = net->used; p; p = p->next_used)
        if (p->lost_ms == 0 && (!p->left || rd_ofi_peer_of(p)->pending != 0))
            return false;
    return true;
}

/* Returns true if nothing that is being sent lies in the communicator's memory. */
static bool is_given_back(rd_net_t *net)
{
    return ((rd_ofi_net_t *)net)->outstanding == 0 || all_read(net);
}

static void net_free(rd_ofi_net_t *net)
{
    for (int r = 0; r < net->base.nranks; r++)
        rd_ofi_dial_end(rd_ofi_peer(net, r));
    rd_net_release(&net->base);
    free(net);
}

static void end(rd_ofi_net_t *net)
{
    rd_net_end_say(&net->base, is_unread);
    rd_ofi_close(net);
    net_free(net);
}

/* ---- a network that outlives its communicator */

/* A peer that greets the network meanwhile gets its farewell; one that has gone is not waited for. */
static bool linger_poll(rd_linger_t *linger)
{
    rd_ofi_net_t *net = linger->net;
    for (int i = 0; i < POLLS && rd_ofi_poll(net); i++)
        continue;
    rd_ofi_say_bye(net);
    int64_t now_ms = rd_clock_ms();
    for (rd_ofi_peer_t *p = rd_ofi_first(net); p; p = rd_ofi_next(p))
        if (is_unread(&p->base))
            rd_ofi_dial(p, now_ms);
    return all_read(&net->base);
}

static void linger_end(rd_linger_t *linger)
{
    end(linger->net);
}

/* Returns true if the network will be closed later; the caller then no longer owns it. */
static bool linger(rd_ofi_net_t *net)
{
    rd_ofi_mirrors_back(net);
    return rd_net_linger(&net->base, &(rd_linger_t){.detach = rd_net_detach, .poll = linger_poll, .end = linger_end});
}

/* An endpoint that is closed takes what is on its way along: what the peer has not taken is lost, and a socket that is
 * closed with unread bytes resets its connection. So a network that ends in order waits for the farewells of all peers,
 * or until they have confirmed this rank's; and if a live peer does not poll, the network lingers. Returns true if it
 * does. */
static bool leave_in_order(rd_ofi_net_t *net)
{
    if (net->base.left_ms == 0) /* it was never completely made */
        return false;
    poll_some(net);
    rd_ofi_say_bye(net);
    if (rd_net_wait_until(&net->base, all_parted, PARTED_MS) || all_read(&net->base))
        return false;
    if (rd_net_wait_until(&net->base, is_given_back, READ_MS) && !all_read(&net->base) && linger(net))
        return true;
    rd_net_wait_until(&net->base, all_read, READ_MS);
    return false;
}

/* Waits after a failure until the farewells are sent. */
static void failed_wait(rd_ofi_net_t *net, int64_t limit_ms)
{
    int64_t until = rd_clock_ms() + limit_ms;
    int pending;
    do {
        (void)rd_ofi_poll(net);
        pending = 0;
        for (const rd_ofi_peer_t *p = rd_ofi_first(net); p; p = rd_ofi_next(p))
            pending += p->base.lost_ms == 0 ? p->pending : 0;
    } while (pending != 0 && rd_clock_ms() < until);
}

void rd_ofi_destroy(rd_transport_t *transport)
{
    rd_ofi_net_t *net = rd_ofi_of(transport);
    rd_ofi_leave(transport);
    if (rd_stop_get(net->base.stop) == RONDO_SUCCESS && leave_in_order(net))
        return;
    if (net->ep && rd_stop_get(net->base.stop) != RONDO_SUCCESS) /* after a mismatch the others are alive, and find it
                                                               from what this rank has sent */
        failed_wait(net, rd_stop_get(net->base.stop) == RONDO_ERR_MISMATCH ? FAREWELL_MS : FAILED_MS);
    end(net);
}
