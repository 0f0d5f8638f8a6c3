/* Receiving: each message is checked, put into its slot, and published in order.
 *
 * Endpoints are not authenticated, and everybody who reaches this process's port may speak the library's protocol. So
 * nothing in a message is used before the token, which only the ranks of this communicator know, has been compared, and
 * every number has been checked against what is possible here. A wrong message is dropped; the first one is logged.
 *
 * Messages of one connection need not arrive in order: the bytes of a long one, which are fetched, may come later than
 * those of a short one after it. So each message out of turn has a bit for "is coming" and one for "is here", and
 * `tail` moves over those that are here, in the order of their numbers. */
#include <stdlib.h>
#include <string.h>

#include "transport/network/network.h"

void rd_net_drop(rd_net_t *net, const char *what, uint64_t value)
{
    if (net->dropped++ == 0) {
        rd_log(net->ctx, RD_LOG_WARN,
               "dropped a message from the network: %s (%llu); more of them are dropped in silence (somebody unknown "
               "on this network, or a mistake of rondo's)",
               what, (unsigned long long)value);
    }
}

/* Compares in constant time: an attacker learns nothing from how long a refusal takes. */
bool rd_net_is_token(const rd_net_t *net, const unsigned char *token)
{
    unsigned char difference = 0;
    for (int i = 0; i < RD_NET_TOKEN; i++)
        difference |= (unsigned char)(net->token[i] ^ token[i]);
    return difference == 0;
}

rd_net_peer_t *rd_net_sender(rd_net_t *net, const rd_net_header_t *h, size_t bytes, bool has_data)
{
    if (!rd_net_is_token(net, h->token)) {
        rd_net_drop(net, "its token is not this communicator's; its length", bytes);
        return NULL;
    }
    if (h->rank >= (uint32_t)net->nranks || !rd_net_peer(net, (int)h->rank)->remote) {
        rd_net_drop(net, "no rank on another node has the number that it says", h->rank);
        return NULL;
    }
    if (h->zero != 0 || (!has_data && bytes != 0)) {
        rd_net_drop(net, "it is not well-formed, of kind", h->kind);
        return NULL;
    }
    rd_net_peer_t *peer = rd_net_peer(net, (int)h->rank);
    rd_net_peer_used(peer);
    return peer;
}

rd_net_conn_t *rd_net_conn_of(rd_net_peer_t *peer, const rd_net_header_t *h)
{
    rd_net_conn_t *conn = h->channel < peer->nconns ? peer->conns[h->channel] : NULL;
    if (conn && ((h->kind == RD_NET_DATA && conn->recv) || (h->kind == RD_NET_CREDIT && conn->send)))
        return conn;
    rd_net_drop(peer->net, "nothing is bound to its channel", h->channel);
    return NULL;
}

/* ---- data */

static uint64_t ring(const rd_net_conn_t *conn)
{
    return rd_net_ring(conn->recv->shorter, conn->recv->slots_mask);
}

static bool bits_make(rd_net_conn_t *conn)
{
    size_t words = (ring(conn) + 63) / 64;
    if (!conn->claimed) {
        conn->claimed = calloc(2 * words, sizeof *conn->claimed);
        conn->landed = conn->claimed ? conn->claimed + words : NULL;
    }
    return conn->claimed;
}

static bool is_marked(const uint64_t *bits, uint64_t at)
{
    return bits[at / 64] >> (at % 64) & 1;
}

/* Moves `tail` over all messages that are complete, in order. */
static void publish(rd_net_conn_t *conn)
{
    uint64_t mask = ring(conn) - 1, at;
    while (conn->landed && is_marked(conn->landed, at = conn->next & mask)) {
        conn->landed[at / 64] &= ~(UINT64_C(1) << (at % 64));
        conn->claimed[at / 64] &= ~(UINT64_C(1) << (at % 64));
        conn->next++;
    }
    /* Release: the slots' bytes are visible before the count. */
    atomic_store_explicit(&conn->recv->tail->value, conn->next, memory_order_release);
    conn->peer->net->progressed = true;
}

void rd_net_land(rd_net_conn_t *conn, uint64_t at)
{
    conn->landed[at / 64] |= UINT64_C(1) << (at % 64);
    publish(conn);
}

/* Takes in a credit for what the peer has consumed. Returns true if that is more than was sent. */
static bool credit_wrong(rd_net_conn_t *conn, uint64_t consumed)
{
    rd_send_t *send = conn->send;
    if (consumed > send->sent)
        return true;
    if (consumed > atomic_load_explicit(&send->head->value, memory_order_relaxed)) { /* an older credit is ignored */
        atomic_store_explicit(&send->head->value, consumed, memory_order_release);
        conn->peer->net->progressed = true;
    }
    return false;
}

/* Returns true if the message was wrong, and was dropped. */
static bool is_wrong(rd_net_conn_t *conn, const rd_net_header_t *h, size_t bytes)
{
    const rd_recv_t *recv = conn->recv;
    rd_net_t *net = conn->peer->net;
    /* The sender holds a credit for messages up to here: their slots are free, or just being filled. */
    if (h->number < conn->next || h->number - conn->credited > rd_recv_ring(recv, bytes).mask ||
        (conn->claimed && is_marked(conn->claimed, h->number & (ring(conn) - 1))))
        rd_net_drop(net, "its number is not due", h->number);
    else if ((h->bytes & UINT32_MAX) != bytes || bytes > recv->slot_bytes)
        rd_net_drop(net, "its length does not fit", h->bytes & UINT32_MAX);
    else if (h->credit != 0 && (!conn->send || credit_wrong(conn, h->credit)))
        rd_net_drop(net, "it returns more credits than were taken", h->credit);
    else
        return false;
    return true;
}

bool rd_net_data_due(rd_net_conn_t *conn, const rd_net_header_t *h, size_t bytes, bool later)
{
    rd_net_t *net = conn->peer->net;
    rd_recv_t *recv = conn->recv;
    uint64_t at = h->number & (ring(conn) - 1);
    if (is_wrong(conn, h, bytes))
        return false;
    bool in_turn = h->number == conn->next && !later; /* as nearly all are: nothing needs to be remembered of it */
    if (!in_turn && !bits_make(conn)) {
        rd_stop_fail(net->stop, net->ctx, RONDO_ERR_NO_MEMORY, -1, "no memory to receive %zu bytes", bytes);
        return false;
    }
    if (!in_turn)
        conn->claimed[at / 64] |= UINT64_C(1) << (at % 64);
    if (in_turn && h->number == recv->received && !conn->claimed) /* no slot is in use */
        recv->base = (uint32_t)h->number;
    if (recv->signs)
        atomic_store_explicit(&recv->signs[h->number & recv->signs_mask], (uint32_t)(h->bytes >> 32),
                              memory_order_relaxed);
    return true;
}

/* Returns where the message is wanted, if it is the one; else NULL. `sign`: of its call. */
static char *wanted(const rd_recv_t *recv, uint64_t number, uint32_t sign, size_t bytes)
{
    bool is_it = recv->dest && number == recv->received && bytes == recv->dest_bytes &&
                 (!recv->signs || sign == recv->dest_sign);
    return is_it ? recv->dest : NULL;
}

void rd_net_take_data(rd_net_conn_t *conn, const rd_net_header_t *h, const void *data, size_t bytes)
{
    rd_recv_t *recv = conn->recv;
    if (!rd_net_data_due(conn, h, bytes, false))
        return;
    char *dest = wanted(recv, h->number, (uint32_t)(h->bytes >> 32), bytes);
    if (dest)
        recv->delivered = 1;
    memcpy(dest ? dest : rd_recv_slot(recv, bytes, h->number), data, bytes);
    if (h->number == conn->next) {
        conn->next++;
        publish(conn);
    } else {
        rd_net_land(conn, h->number & (ring(conn) - 1));
    }
}

void rd_net_take_credit(rd_net_conn_t *conn, const rd_net_header_t *h)
{
    if (h->bytes != 0 || credit_wrong(conn, h->number))
        rd_net_drop(conn->peer->net, "it returns more credits than were taken", h->number);
}

/* ---- farewells */

/* Handles a failure like the bootstrap's farewells, so that it does not matter which comes first. */
static void take_failure(rd_net_peer_t *peer)
{
    rd_net_t *net = peer->net;
    rd_failure_t failure = {.said = peer->farewell, .failed_rank = peer->failed_rank, .reporter = peer->reporter};
    rd_boot_report(net->boot, peer->rank, &failure);
    net->ndue -= peer->due_ms != 0;
    peer->due_ms = 0;
    rd_failure_advise(&failure);
    failure.reporter = rd_reporter(peer->reporter, peer->rank);
    rd_stop_heard(net->stop, net->ctx, &failure);
}

void rd_net_byes_due(rd_net_t *net)
{
    int64_t now = rd_clock_ms();
    for (int r = 0; r < net->nranks; r++) {
        rd_net_peer_t *peer = rd_net_peer(net, r);
        if (peer->due_ms != 0 && now >= peer->due_ms && !net->alone)
            take_failure(peer);
    }
}

/* A rank that has failed because another one is late, or is lost: who is late, and what it does, or why the other is
 * lost, is on its way by the bootstrap, in a sentence that is the same on all ranks. */
static void await_sentence(rd_net_peer_t *peer)
{
    peer->due_ms = rd_clock_ms() + RD_NET_GRACE_MS;
    peer->net->ndue++;
}

void rd_net_take_bye(rd_net_peer_t *peer, const rd_net_header_t *h)
{
    rd_net_t *net = peer->net;
    uint64_t failed_rank = h->bytes & UINT32_MAX & ~RD_NET_BYE_DIED, reporter = h->bytes >> 32,
             most = (uint64_t)net->nranks;
    if (h->number > RD_LAST_RESULT || failed_rank > most || reporter > most) {
        rd_net_drop(net, "a farewell that makes no sense", h->number);
        return;
    }
    if (peer->left)
        return;
    if (h->bytes & RD_NET_BYE_DIED && failed_rank && (int)failed_rank - 1 != net->rank && !net->alone)
        rd_boot_died(net->boot, (int)failed_rank - 1);
    net->nlost -= peer->lost_ms != 0 && !peer->judged;
    peer->left = true;
    peer->farewell = (rondo_result_t)h->number;
    peer->sent = h->credit;
    net->progressed = true;
    peer->failed_rank = failed_rank != 0 ? (int)failed_rank - 1 : peer->rank;
    peer->reporter = (int)reporter;
    /* A rank that leaves over a mismatch has sent all that the others need to find it themselves; why another failed
     * comes by the bootstrap. */
    if (h->number == RONDO_SUCCESS || rd_boot_says_why((int)h->number) || net->alone)
        return;
    if (h->number == RONDO_ERR_TIMEOUT || (h->number == RONDO_ERR_REMOTE && !(h->bytes & RD_NET_BYE_DIED))) {
        await_sentence(peer);
        return;
    }
    if (net->greets) /* what the peer has said by the bootstrap before, with a sentence, is heard first */
        (void)rd_boot_check(net->boot);
    take_failure(peer);
}
