/* How a network ends: what its peers' farewells say, waits at an orderly end, and what is left of a network that
 * outlives its communicator (transport/linger.h). */
#include <stdlib.h>
#include <string.h>

#include "transport/network/network.h"

#define FAREWELL_MS 1000 /* the most time for farewells after a mismatch */
#define FAILED_MS 20     /* time to send farewells after another failure */
#define GIVEN_MS 2000    /* the most time for memory to be given back, and to be taken, where no network can linger */
#define PARTED_MS 50     /* time for peers' farewells, and until they have taken all */
#define POLLS 1000       /* the most polls of the network before anything is sent or decided */

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

/* ---- waits at the end */

bool rd_net_poll_some(rd_net_t *net)
{
    int came = 0;
    while (came < POLLS && rd_transport_progress(&net->transport))
        came++;
    return came != 0;
}

/* Waits until `over`, or until `limit_ms` after the farewells. Returns true if `over` holds and nothing has failed. */
static bool wait_until(rd_net_t *net, bool (*over)(rd_net_t *net), int64_t limit_ms)
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

bool rd_net_end_in_order(rd_net_t *net, const rd_net_ending_t *ending)
{
    if (wait_until(net, ending->is_parted, PARTED_MS) || ending->is_over(net))
        return false;
    if (wait_until(net, ending->is_given_back, GIVEN_MS) && !ending->is_over(net) && ending->linger(net))
        return true;
    (void)wait_until(net, ending->is_read, GIVEN_MS);
    return false;
}

/* After a mismatch the others are alive, and find it from what this rank has sent. */
int64_t rd_net_failed_ms(const rd_net_t *net)
{
    return rd_stop_get(net->stop) == RONDO_ERR_MISMATCH ? FAREWELL_MS : FAILED_MS;
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

/* ---- the end of a network whose peers confirm farewells (net_say.c) */

/* What has come is taken first: it may be a farewell that a failing send would hide. */
void rd_net_part(rd_net_t *net)
{
    (void)rd_net_poll_some(net);
    if (rd_stop_get(net->stop) == RONDO_SUCCESS)
        rd_net_credits_flush(net, false);
    net->library->say_bye(net);
    net->left_ms = rd_clock_ms();
}

/* One that has sent its own farewell is polling for this rank's, and gets it when the library has sent it. */
bool rd_net_is_unread(const rd_net_peer_t *peer)
{
    return peer->lost_ms == 0 && !peer->taken && (!peer->left || peer->pending != 0);
}

bool rd_net_all_read(rd_net_t *net)
{
    for (const rd_net_peer_t *p = net->used; p; p = p->next_used)
        if (rd_net_is_unread(p))
            return false;
    return true;
}

/* Waits after a failure until the farewells are sent. */
static void failed_wait(rd_net_t *net)
{
    int64_t until = rd_clock_ms() + rd_net_failed_ms(net);
    int pending;
    do {
        (void)net->library->poll(net);
        pending = 0;
        for (const rd_net_peer_t *p = net->used; p; p = p->next_used)
            pending += p->lost_ms == 0 ? p->pending : 0;
    } while (pending != 0 && rd_clock_ms() < until);
}

static bool leave_in_order(rd_net_t *net, const rd_net_ending_t *ending)
{
    if (net->left_ms == 0) /* it was never completely made */
        return false;
    (void)rd_net_poll_some(net);
    net->library->say_bye(net);
    return rd_net_end_in_order(net, ending);
}

bool rd_net_end_wait(rd_net_t *net, const rd_net_ending_t *ending)
{
    if (rd_stop_get(net->stop) == RONDO_SUCCESS && leave_in_order(net, ending))
        return true;
    if (rd_stop_get(net->stop) != RONDO_SUCCESS)
        failed_wait(net);
    return false;
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
