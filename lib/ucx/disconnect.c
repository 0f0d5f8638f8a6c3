/* How a rank leaves the network, in order or after a failure, and how it takes back messages that peers have yet to
 * read. */
#include <stdlib.h>
#include <time.h>

#include "ucx/ucx.h"

#define READ_MS 1000     /* the most time for peers to read messages */
#define ANSWERED_MS 2000 /* the most time for answers to greetings at an orderly end */
#define LITTLE 32768     /* bytes that a socket takes whether its owner polls or not, if its buffers are not set */
#define FAILED_MS 20     /* time for messages that peers have yet to read after a failure */
#define HALF_MADE_MS 200 /* time for connections that were being made when it came */
#define QUIET_MS 50      /* time in which a peer that greets this rank polls the network */

/* Returns true if UCX or a peer still has some of the user's memory. */
static bool is_exposed(const rd_ucx_net_t *net)
{
    return net->base.transport.zcopy_pending + net->gdr_flying != 0;
}

/* Waits for messages that peers have yet to read. Peers that fail as well take what is on the wire to them within this
 * time. */
static void zcopies_wait(rd_ucx_net_t *net, int64_t limit_ms)
{
    int64_t until = rd_clock_ms() + limit_ms;
    while (is_exposed(net) && rd_clock_ms() < until) {
        rd_ucx_poll(net);
        rd_ucx_rndv_advance(net);
    }
}

void rd_ucx_cancel(rd_transport_t *transport)
{
    rd_ucx_net_t *net = rd_ucx_of(transport);
    rd_net_dests_back(&net->base);
    rd_ucx_gdr_back(net);
    zcopies_wait(net, FAILED_MS);
    if (is_exposed(net)) { /* peers would take a broken connection for a death */
        rd_ucx_say_bye(net, 1);
        zcopies_wait(net, FAILED_MS);
    }
    for (rd_ucx_peer_t *p = rd_ucx_first(net); p && is_exposed(net); p = rd_ucx_next(p))
        if (p->base.zcopies != 0 && p->base.settled) /* see wireup.c */
            rd_ucx_forsake(p);
    zcopies_wait(net, READ_MS);
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
        p->flushing = p->ep && p->base.lost_ms == 0 && p->greeting != RD_UCX_CONNECTING &&
                      UCS_PTR_IS_PTR(rd_ucp.ep_flush_nbx(p->ep, &param));
        net->outstanding += (uint64_t)p->flushing;
        net->flushes += (uint64_t)p->flushing;
    }
}

void rd_ucx_leave(rd_transport_t *transport)
{
    rd_ucx_net_t *net = rd_ucx_of(transport);
    if (!net->worker || net->base.left_ms != 0)
        return;
    rd_ucx_is_blind(net);
    (void)rd_net_poll_some(&net->base); /* for a farewell that a failing send would hide */
    if (rd_stop_get(net->base.stop) == RONDO_SUCCESS)
        rd_net_credits_flush(&net->base, false);
    rd_ucx_gdr_release(net);
    rd_ucx_say_bye(net, 0);
    flush_begin(net);
    net->base.left_ms = rd_clock_ms();
}

/* Returns true if the peer's kernel can hold what the peer may not have consumed yet, whether it polls or not: over
 * tcp. */
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
static bool is_unread(const rd_net_peer_t *peer)
{
    rd_ucx_peer_t *p = rd_ucx_peer_of(peer);
    if (!peer->net->alone)
        p->little = is_little(p);
    return p->flushing && !p->little && !peer->left && peer->lost_ms == 0;
}

bool rd_ucx_unread(rd_ucx_net_t *net)
{
    int unread = net->outstanding != net->flushes;
    for (const rd_net_peer_t *p = net->base.used; p; p = p->next_used)
        unread |= is_unread(p);
    return unread;
}

static bool all_read(rd_net_t *net)
{
    return !rd_ucx_unread((rd_ucx_net_t *)net);
}

/* Returns true if all peers have taken everything and have sent a farewell. */
static bool all_parted(rd_net_t *net)
{
    int here = 0;
    for (const rd_net_peer_t *p = net->used; p; p = p->next_used)
        here += !p->left && p->lost_ms == 0;
    return here == 0 && ((rd_ucx_net_t *)net)->outstanding == 0;
}

/* Returns true if UCX has none of the communicator's memory or the user's: what was sent has been drained before. */
static bool is_given_back(rd_net_t *base)
{
    const rd_ucx_net_t *net = (rd_ucx_net_t *)base;
    return (net->fetching == 0 && !is_exposed(net)) || all_read(base);
}

/* A rank that has not met all others may just have been greeted. UCX answers that by itself, as soon as the other rank
 * has polled the network: then something comes from there. What comes first may be the greeting that asks for a
 * farewell. */
static void answered_wait(rd_ucx_net_t *net, int came)
{
    static const struct timespec nap = {0, 1000000};
    int64_t now = rd_clock_ms(), moved = came ? now : net->base.left_ms;
    if (rd_net_wires_all(&net->base) || !rd_ucx_answer_ends())
        return;
    while (now - moved < QUIET_MS && now - net->base.left_ms < ANSWERED_MS &&
           rd_stop_get(net->base.stop) == RONDO_SUCCESS) {
        came = rd_ucx_progress(&net->base.transport);
        rd_ucx_say_bye(net, 0);
        if (!came)
            nanosleep(&nap, NULL);
        now = rd_clock_ms();
        moved = came ? now : moved;
    }
}

static bool linger(rd_net_t *net)
{
    return rd_ucx_linger((rd_ucx_net_t *)net);
}

/* A socket that is closed with unread bytes resets its connection, and the peer may lose what was on its way there. So
 * a network that ends in order waits for the farewells of all peers, and until they have taken everything; and if a
 * live peer does not poll, and more may be under way than its kernel holds, the network lingers. */
static const rd_net_ending_t ending = {.is_parted = all_parted,
                                       .is_over = all_read,
                                       .is_read = all_read,
                                       .is_given_back = is_given_back,
                                       .linger = linger};

/* Returns true if the network lingers. */
static bool leave_in_order(rd_ucx_net_t *net)
{
    if (net->base.left_ms == 0) /* it was never completely made */
        return false;
    bool came = rd_net_poll_some(&net->base);
    rd_ucx_say_bye(net, 0);
    answered_wait(net, came);
    return rd_net_end_in_order(&net->base, &ending);
}

/* Returns true if a connection to a live peer is still being made: see wireup.c. To a peer that has left, and to
 * which this rank had nothing to send, none was ever made. */
static bool half_made(const rd_ucx_net_t *net)
{
    for (const rd_ucx_peer_t *p = rd_ucx_first(net); p; p = rd_ucx_next(p)) {
        int never_made = !p->ep && p->base.left, unused = p->greeting == RD_UCX_CONNECTED;
        if (!p->base.settled && p->base.lost_ms == 0 && !never_made && !unused)
            return true;
    }
    return false;
}

/* Waits after a failure until the farewells are sent and connections are made or refused. */
static void failed_wait(rd_ucx_net_t *net)
{
    int64_t began = rd_clock_ms(), passed = 0, limit_ms = rd_net_failed_ms(&net->base);
    while ((net->outstanding != 0 && passed < limit_ms) || (half_made(net) && passed < HALF_MADE_MS)) {
        rd_ucx_poll(net);
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
        free(peer->said);
    }
    rd_net_release(&net->base);
    free(net->addresses);
    free(net);
}

void rd_ucx_end(rd_ucx_net_t *net)
{
    rd_net_end_say(&net->base, is_unread);
    const char *held = net->blind       ? "a network whose process sees no /proc any more"
                       : net->broken    ? "a connection that failed while it was being made"
                       : half_made(net) ? "a connection that was being made when the failure came"
                                        : NULL;
    if (!held && !rd_ucx_disconnect(net)) /* else it is left as it is, and reads nothing any more: see wireup.c */
        held = "a connection with a message that UCX does not give up";
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
    if (rd_ucx_is_blind(net)) {
        /* What UCX has not passed to the kernel by now is lost, and farewells may be of it. */
        rd_ucx_end(net);
        return;
    }
    if (rd_stop_get(net->base.stop) == RONDO_SUCCESS && leave_in_order(net))
        return;
    if (rd_stop_get(net->base.stop) != RONDO_SUCCESS)
        failed_wait(net);
    rd_ucx_end(net);
}
