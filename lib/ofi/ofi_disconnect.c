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
    for (rd_ofi_peer_t *p = rd_ofi_first(net); p; p = rd_ofi_next(p)) {
        for (int c = 0; c < p->base.nconns; c++)
            if (p->base.conns[c] && p->base.conns[c]->recv)
                p->base.conns[c]->recv->dest = NULL;
    }
    zcopies_wait(net);
    if (net->base.transport.zcopy_pending == 0)
        return;
    rd_ofi_say_bye(net);
    zcopies_wait(net);
    if (net->base.transport.zcopy_pending != 0)
        rd_ofi_cut(net);
}

/* A farewell may come before a message that was sent before it, where the provider keeps no order. If the connection
 * has broken since, nothing more comes. */
rondo_result_t rd_ofi_farewell(const rd_transport_t *transport, int rank)
{
    const rd_ofi_peer_t *peer = rd_ofi_peer((const rd_ofi_net_t *)transport, rank);
    uint64_t come = 0;
    if (!peer->base.left)
        return RONDO_IN_PROGRESS;
    for (int c = 0; c < peer->base.nconns; c++)
        come += peer->base.conns[c] ? peer->base.conns[c]->next : 0;
    return come == peer->base.sent || peer->base.lost_ms != 0 ? peer->base.farewell : RONDO_IN_PROGRESS;
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
static bool is_unread(const rd_ofi_peer_t *p)
{
    return p->base.lost_ms == 0 && !p->taken && (!p->base.left || p->pending != 0);
}

static bool all_read(rd_ofi_net_t *net)
{
    for (const rd_ofi_peer_t *p = rd_ofi_first(net); p; p = rd_ofi_next(p))
        if (is_unread(p))
            return false;
    return true;
}

/* Returns true if all peers have sent a farewell as well, and all is sent. */
static bool all_parted(rd_ofi_net_t *net)
{
    for (const rd_ofi_peer_t *p = rd_ofi_first(net); p; p = rd_ofi_next(p))
        if (p->base.lost_ms == 0 && (!p->base.left || p->pending != 0))
            return false;
    return true;
}

/* Returns true if nothing that is being sent lies in the communicator's memory. */
static bool is_given_back(rd_ofi_net_t *net)
{
    return net->outstanding == 0 || all_read(net);
}

/* Waits until `over`, or until `limit_ms` after the farewells; a peer that greets this rank only now gets a farewell,
 * too. Returns true if `over` holds and nothing has failed. */
static bool wait_until(rd_ofi_net_t *net, bool (*over)(rd_ofi_net_t *net), int64_t limit_ms)
{
    rd_wait_t wait;
    rondo_result_t result = rd_stop_get(net->base.stop);
    rd_wait_begin(&wait, net->base.stop, 0, 0);
    while (result == RONDO_SUCCESS && !over(net)) {
        if (rd_clock_ms() - net->base.left_ms > limit_ms)
            return false;
        if (rd_ofi_progress(&net->base.transport))
            rd_wait_progress(&wait);
        rd_ofi_say_bye(net);
        result = rd_wait_backoff(&wait);
    }
    return result == RONDO_SUCCESS;
}

static void net_free(rd_ofi_net_t *net)
{
    for (int r = 0; r < net->base.nranks; r++) {
        free(rd_ofi_peer(net, r)->called);
        rd_ofi_dial_end(rd_ofi_peer(net, r));
    }
    rd_net_release(&net->base);
    free(net);
}

static void end(rd_ofi_net_t *net)
{
    for (const rd_ofi_peer_t *p = rd_ofi_first(net); p; p = rd_ofi_next(p)) {
        if (net->base.left_ms != 0 && rd_stop_get(net->base.stop) == RONDO_SUCCESS && is_unread(p))
            rd_log(net->base.ctx, RD_LOG_WARN,
                   "rank %d has not read in time what this rank had sent it before it left: that may be lost",
                   p->base.rank);
    }
    if (net->base.dropped > 1)
        rd_log(net->base.ctx, RD_LOG_WARN, "dropped %llu messages from the network in all",
               (unsigned long long)net->base.dropped);
    rd_ofi_close(net);
    net_free(net);
}

/* ---- a network that outlives its communicator */

static rd_ofi_net_t *net_of(rd_linger_t *linger)
{
    return linger->net;
}

/* A peer that greets the network meanwhile gets its farewell; one that has gone is not waited for. */
static bool linger_poll(rd_linger_t *linger)
{
    rd_ofi_net_t *net = net_of(linger);
    for (int i = 0; i < POLLS && rd_ofi_poll(net); i++)
        continue;
    rd_ofi_say_bye(net);
    int64_t now_ms = rd_clock_ms();
    for (rd_ofi_peer_t *p = rd_ofi_first(net); p; p = rd_ofi_next(p))
        if (is_unread(p))
            rd_ofi_dial(p, now_ms);
    return all_read(net);
}

static void linger_end(rd_linger_t *linger)
{
    end(net_of(linger));
}

/* Gives the communicator's memory back to it. */
static void linger_detach(rd_linger_t *linger)
{
    rd_ofi_net_t *net = net_of(linger);
    rd_net_alone_t *alone = (rd_net_alone_t *)linger;
    alone->ctx = (rd_log_ctx_t){.rank = net->base.ctx->rank, .nranks = net->base.ctx->nranks};
    memcpy(alone->ctx.name, net->base.ctx->name, sizeof alone->ctx.name);
    for (int r = 0; r < net->base.nranks; r++) {
        for (int c = 0; c < rd_net_peer(&net->base, r)->nconns; c++) {
            if (rd_net_peer(&net->base, r)->conns[c]) {
                rd_net_peer(&net->base, r)->conns[c]->send = NULL;
                rd_net_peer(&net->base, r)->conns[c]->recv = NULL;
            }
        }
    }
    net->base.ctx = &alone->ctx;
    net->base.stop = &alone->stop;
    net->base.boot = NULL;
    net->base.alone = alone;
}

/* Returns true if the network will be closed later; the caller then no longer owns it. Its mirrors are given back now.
 */
static bool linger(rd_ofi_net_t *net)
{
    rd_net_alone_t *alone = calloc(1, sizeof *alone);
    if (!alone)
        return false;
    alone->linger = (rd_linger_t){
        .net = net, .left_ms = net->base.left_ms, .detach = linger_detach, .poll = linger_poll, .end = linger_end};
    rd_ofi_mirrors_back(net);
    if (rd_linger_begin(&alone->linger))
        return true;
    free(alone);
    return false;
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
    if (wait_until(net, all_parted, PARTED_MS) || all_read(net))
        return false;
    if (wait_until(net, is_given_back, READ_MS) && !all_read(net) && linger(net))
        return true;
    wait_until(net, all_read, READ_MS);
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
