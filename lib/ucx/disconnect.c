/* How a rank leaves the network, in order or after a failure, and how it takes back messages that peers have yet to
 * read. */
#include <stdlib.h>
#include <time.h>

#include "ucx/ucx.h"

#define FAREWELL_MS 1000 /* the most time for farewells after a mismatch, and for peers to read messages */
#define GIVEN_MS 2000    /* the most time until UCX releases the communicator's memory at an orderly end */
#define PARTED_MS 50     /* time for peers' farewells, and until they have taken all */
#define LITTLE 32768     /* bytes that a socket takes whether its owner polls or not, if its buffers are not set */
#define POLLS 1000       /* the most polls of the network before anything is sent or decided */
#define FAILED_MS 20     /* time to send farewells after a failure */
#define HALF_MADE_MS 200 /* time for connections that were being made when it came */
#define QUIET_MS 50      /* time in which a peer that greets this rank polls the network */

/* Waits for messages that peers have yet to read. Peers that fail as well take what is on the wire to them within this
 * time. */
static void zcopies_wait(rd_ucx_net_t *net, int64_t limit_ms)
{
    int64_t until = rd_clock_ms() + limit_ms;
    while (net->base.transport.zcopy_pending + net->gdr_flying != 0 && rd_clock_ms() < until) {
        rd_ucp.worker_progress(net->worker);
        rd_ucx_rndv_advance(net);
    }
}

void rd_ucx_cancel(rd_transport_t *transport)
{
    rd_ucx_net_t *net = rd_ucx_of(transport);
    for (rd_ucx_peer_t *p = rd_ucx_first(net); p; p = rd_ucx_next(p)) {
        for (int c = 0; c < p->base.nconns; c++)
            if (p->base.conns[c] && p->base.conns[c]->recv)
                p->base.conns[c]->recv->dest = NULL;
    }
    rd_ucx_gdr_back(net);
    zcopies_wait(net, FAILED_MS);
    if (net->base.transport.zcopy_pending + net->gdr_flying !=
        0) { /* peers would take a broken connection for a death */
        rd_ucx_say_bye(net, 1);
        zcopies_wait(net, FAILED_MS);
    }
    for (rd_ucx_peer_t *p = rd_ucx_first(net); p && net->base.transport.zcopy_pending + net->gdr_flying != 0;
         p = rd_ucx_next(p))
        if (p->base.zcopies != 0)
            rd_ucx_forsake(p);
    zcopies_wait(net, FAREWELL_MS);
}

/* A farewell may come before a long message that was sent before it: UCX sends that in pieces, over several transports
 * if it has them. If the connection has broken since, nothing more comes. */
rondo_result_t rd_ucx_farewell(const rd_transport_t *transport, int rank)
{
    const rd_ucx_peer_t *peer = rd_ucx_peer((const rd_ucx_net_t *)transport, rank);
    uint64_t come = 0;
    if (!peer->base.left)
        return RONDO_IN_PROGRESS;
    for (int c = 0; c < peer->base.nconns; c++)
        come += peer->base.conns[c] ? peer->base.conns[c]->next : 0;
    return come == peer->base.sent || peer->base.lost_ms != 0 ? peer->base.farewell : RONDO_IN_PROGRESS;
}

/* ---- the end */

static void flushed(void *request, ucs_status_t status, void *arg)
{
    rd_ucx_peer_t *peer = arg;
    rd_ucx_net_of(&peer->base)->flushes--;
    peer->flushing = 0;
    rd_ucx_sent(request, status, peer);
}

/* Begins flushes, which end when all that was sent has reached the peer's UCX; an idle peer confirms that when it polls
 * again. */
static void flush_begin(rd_ucx_net_t *net)
{
    for (rd_ucx_peer_t *p = rd_ucx_first(net); p; p = rd_ucx_next(p)) {
        ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                     .cb = {.send = flushed},
                                     .user_data = p};
        p->flushing = p->ep && p->base.lost_ms == 0 && UCS_PTR_IS_PTR(rd_ucp.ep_flush_nbx(p->ep, &param));
        net->outstanding += (uint64_t)p->flushing;
        net->flushes += (uint64_t)p->flushing;
    }
}

/* Polls the network. Returns true if something came. */
static bool poll_some(rd_ucx_net_t *net)
{
    int came = 0;
    while (came < POLLS && rd_ucx_progress(&net->base.transport))
        came++;
    return came;
}

void rd_ucx_leave(rd_transport_t *transport)
{
    rd_ucx_net_t *net = rd_ucx_of(transport);
    if (!net->worker || net->base.left_ms != 0)
        return;
    (void)poll_some(net); /* for a farewell that a failing send would hide */
    if (rd_stop_get(net->base.stop) == RONDO_SUCCESS)
        rd_net_credits_flush(&net->base, false);
    rd_ucx_gdr_release(net);
    rd_ucx_say_bye(net, 0);
    flush_begin(net);
    net->base.left_ms = rd_clock_ms();
}

/* Returns true if the peer's kernel can hold what the peer may not have consumed yet, whether it polls or not: over
 * tcp.
 */
static bool is_little(const rd_ucx_peer_t *peer)
{
    size_t bytes = 0;
    for (int c = 0; c < peer->base.nconns; c++) {
        const rd_ucx_conn_t *conn = (const rd_ucx_conn_t *)peer->base.conns[c];
        if (conn && conn->base.send) {
            uint64_t consumed = atomic_load_explicit(&conn->base.send->head->value, memory_order_relaxed);
            bytes += (conn->base.send->sent - consumed) * (consumed < conn->longer ? conn->longest : RD_SHORT);
        }
    }
    return bytes <= LITTLE && rd_ucx_net_of(&peer->base)->lists && !rd_ucx_net_of(&peer->base)->buffers_set;
}

/* Returns true if a live peer may not have taken all, and that may be more than its kernel holds, or if something
 * has yet to be sent to it. */
static bool is_unread(rd_ucx_peer_t *p)
{
    if (!p->base.net->alone)
        p->little = is_little(p);
    return p->flushing && !p->little && !p->base.left && p->base.lost_ms == 0;
}

bool rd_ucx_unread(rd_ucx_net_t *net)
{
    int unread = net->outstanding != net->flushes;
    for (rd_ucx_peer_t *p = rd_ucx_first(net); p; p = rd_ucx_next(p))
        unread |= is_unread(p);
    return unread;
}

static bool all_read(rd_ucx_net_t *net)
{
    return !rd_ucx_unread(net);
}

/* Returns true if all peers have taken everything and have sent a farewell. */
static bool all_parted(rd_ucx_net_t *net)
{
    int here = 0;
    for (const rd_ucx_peer_t *p = rd_ucx_first(net); p; p = rd_ucx_next(p))
        here += !p->base.left && p->base.lost_ms == 0;
    return here == 0 && net->outstanding == 0;
}

/* Returns true if UCX has none of the communicator's memory or the user's: what was sent has been drained before. */
static bool is_given_back(rd_ucx_net_t *net)
{
    return net->fetching + net->base.transport.zcopy_pending + net->gdr_flying == 0 || all_read(net);
}

/* Waits until `over`, or until `limit_ms` after the farewells; a peer that greets this rank only now gets a farewell,
 * too. Returns true if `over` holds and nothing has failed. */
static bool wait_until(rd_ucx_net_t *net, bool (*over)(rd_ucx_net_t *net), int64_t limit_ms)
{
    rd_wait_t wait;
    rondo_result_t result = rd_stop_get(net->base.stop);
    rd_wait_begin(&wait, net->base.stop, 0, 0);
    while (result == RONDO_SUCCESS && !over(net)) {
        if (rd_clock_ms() - net->base.left_ms > limit_ms)
            return false;
        rd_ucx_progress(&net->base.transport);
        rd_ucx_say_bye(net, 0);
        result = rd_wait_backoff(&wait);
    }
    return result == RONDO_SUCCESS;
}

/* A rank that has not met all others may just have been greeted. UCX answers that by itself, as soon as the other rank
 * has polled the network: then something comes from there. What comes first may be the greeting that asks for a
 * farewell. */
static void answered_wait(rd_ucx_net_t *net, int came)
{
    static const struct timespec nap = {0, 1000000};
    int64_t now = rd_clock_ms(), moved = came ? now : net->base.left_ms;
    if (rd_ucx_wires_all(net) || !rd_ucx_answer_ends())
        return;
    while (now - moved < QUIET_MS && now - net->base.left_ms < GIVEN_MS &&
           rd_stop_get(net->base.stop) == RONDO_SUCCESS) {
        came = rd_ucx_progress(&net->base.transport);
        rd_ucx_say_bye(net, 0);
        if (!came)
            nanosleep(&nap, NULL);
        now = rd_clock_ms();
        moved = came ? now : moved;
    }
}

/* A socket that is closed with unread bytes resets its connection, and the peer may lose what was on its way there. So
 * a network that ends in order waits for the farewells of all peers, and until they have taken everything; and if a
 * live peer does not poll, and more may be under way than its kernel holds, the network lingers. Returns true if it
 * does. */
static bool leave_in_order(rd_ucx_net_t *net)
{
    if (net->base.left_ms == 0) /* it was never completely made */
        return false;
    int came = poll_some(net);
    rd_ucx_say_bye(net, 0);
    answered_wait(net, came);
    if (wait_until(net, all_parted, PARTED_MS) || all_read(net))
        return false;
    if (wait_until(net, is_given_back, GIVEN_MS) && !all_read(net) && rd_ucx_linger(net))
        return true;
    wait_until(net, all_read, GIVEN_MS);
    return false;
}

/* Returns true if a connection to a live peer is still being made: see wireup.c. To a peer that has left, and to
 * which this rank had nothing to send, none was ever made. */
static bool half_made(const rd_ucx_net_t *net)
{
    for (const rd_ucx_peer_t *p = rd_ucx_first(net); p; p = rd_ucx_next(p)) {
        int never_made = !p->ep && p->base.left;
        if (!p->base.settled && p->base.lost_ms == 0 && !never_made)
            return true;
    }
    return false;
}

/* Waits after a failure until the farewells are sent and connections are made or refused. */
static void failed_wait(rd_ucx_net_t *net, int64_t limit_ms)
{
    int64_t began = rd_clock_ms(), passed = 0;
    while ((net->outstanding != 0 && passed < limit_ms) || (half_made(net) && passed < HALF_MADE_MS)) {
        rd_ucp.worker_progress(net->worker);
        passed = rd_clock_ms() - began;
    }
}

static void net_free(rd_ucx_net_t *net)
{
    for (int r = 0; r < net->base.nranks; r++) {
        rd_ucx_peer_t *peer = rd_ucx_peer(net, r);
        for (int c = 0; c < peer->base.nconns; c++) {
            rd_ucx_conn_t *conn = (rd_ucx_conn_t *)peer->base.conns[c];
            if (conn) {
                free(conn->headers);
                free(conn->landings);
            }
        }
        free(peer->gdr);
        free(peer->called);
    }
    rd_net_release(&net->base);
    free(net->addresses);
    free(net);
}

static void lost_say(const rd_ucx_net_t *net)
{
    for (rd_ucx_peer_t *p = rd_ucx_first(net); p; p = rd_ucx_next(p)) {
        if (rd_stop_get(net->base.stop) == RONDO_SUCCESS && is_unread(p)) {
            rd_log(net->base.ctx, RD_LOG_WARN,
                   "rank %d has not read in time what this rank had sent it before it left: that may be lost",
                   p->base.rank);
        }
    }
}

void rd_ucx_end(rd_ucx_net_t *net)
{
    lost_say(net);
    const char *held = half_made(net) ? "a connection that was being made when the failure came" : NULL;
    if (!rd_ucx_disconnect(net) && !held)
        held = "a connection with a message that UCX does not give up";
    if (net->base.dropped > 1) {
        rd_log(net->base.ctx, RD_LOG_WARN, "dropped %llu messages from the network in all",
               (unsigned long long)net->base.dropped);
    }
    if (!held) {
        rd_ucx_close(net);
    } else {
        rd_log(net->base.ctx, RD_LOG_WARN,
               "%s stays open until this process ends: closing it now would end the process", held);
    }
    net_free(net);
}

void rd_ucx_destroy(rd_transport_t *transport)
{
    rd_ucx_net_t *net = rd_ucx_of(transport);
    rd_ucx_leave(transport);
    if (rd_stop_get(net->base.stop) == RONDO_SUCCESS && leave_in_order(net))
        return;
    if (rd_stop_get(net->base.stop) != RONDO_SUCCESS) {
        /* After a mismatch the others are alive, and find it from what this rank has sent. */
        failed_wait(net, rd_stop_get(net->base.stop) == RONDO_ERR_MISMATCH ? FAREWELL_MS : FAILED_MS);
    }
    rd_ucx_end(net);
}
