/* Receiving: each message is checked, put into its slot, and published in order.
 *
 * Endpoints are not authenticated, and who reaches this process's port may speak the provider's protocol. So nothing in
 * a message is used before the token, which only the ranks of this communicator know, has been compared, and every
 * number has been checked against what is possible here. A wrong message is dropped; the first one is logged.
 *
 * A provider need not complete messages in the order in which they were sent: a long one, whose bytes are fetched, may
 * come after a short one that was sent later. So each message out of turn has a bit for "is here", and `tail` moves
 * over those that are here, in the order of their numbers. */
#include <stdlib.h>
#include <string.h>

#include "ofi/ofi.h"

#define ENTRIES 16 /* completions that are read at once */
#define TURNS 4    /* such reads in one poll */

static void drop(rd_ofi_net_t *net, const char *what, uint64_t value)
{
    if (net->dropped++ == 0) {
        rd_log(net->ctx, RD_LOG_WARN,
               "dropped a message from the network: %s (%llu); more of them are dropped in silence (somebody unknown "
               "on this network, or a mistake of rondo's)",
               what, (unsigned long long)value);
    }
}

/* Compares in constant time: an attacker learns nothing from how long a refusal takes. */
static bool token_right(const rd_ofi_net_t *net, const unsigned char *token)
{
    unsigned char difference = 0;
    for (int i = 0; i < RD_OFI_TOKEN; i++)
        difference |= (unsigned char)(net->token[i] ^ token[i]);
    return difference == 0;
}

/* ---- data */

static uint64_t ring(const rd_ofi_conn_t *conn)
{
    return rd_ofi_ring(conn->recv->shorter, conn->recv->slots_mask);
}

static bool bits_make(rd_ofi_conn_t *conn)
{
    if (!conn->landed)
        conn->landed = calloc((ring(conn) + 63) / 64, sizeof *conn->landed);
    return conn->landed;
}

static bool is_marked(const uint64_t *bits, uint64_t at)
{
    return bits[at / 64] >> (at % 64) & 1;
}

/* Moves `tail` over all messages that are here, in order. */
static void publish(rd_ofi_conn_t *conn)
{
    uint64_t mask = ring(conn) - 1, at;
    while (conn->landed && is_marked(conn->landed, at = conn->next & mask)) {
        conn->landed[at / 64] &= ~(UINT64_C(1) << (at % 64));
        conn->next++;
    }
    /* Release: the slots' bytes are visible before the count. */
    atomic_store_explicit(&conn->recv->tail->value, conn->next, memory_order_release);
    conn->peer->net->progressed = true;
}

/* Takes in a credit for what the peer has consumed. Returns true if that is more than was sent. */
static bool credit_wrong(rd_ofi_conn_t *conn, uint64_t consumed)
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

/* Returns where the message is wanted, if it is the one; else NULL. `sign`: of its call. */
static char *wanted(const rd_recv_t *recv, uint64_t number, uint32_t sign, size_t bytes)
{
    bool is_it = recv->dest && number == recv->received && bytes == recv->dest_bytes &&
                 (!recv->signs || sign == recv->dest_sign);
    return is_it ? recv->dest : NULL;
}

/* Returns what is wrong with a message, or NULL. */
static const char *wrong_with(rd_ofi_conn_t *conn, const rd_ofi_header_t *h, size_t bytes)
{
    const rd_recv_t *recv = conn->recv;
    /* The sender holds a credit for messages up to here: their slots are free. */
    if (h->number < conn->next || h->number - conn->credited > rd_recv_ring(recv, bytes).mask ||
        (conn->landed && is_marked(conn->landed, h->number & (ring(conn) - 1))))
        return "its number is not due";
    if ((h->bytes & UINT32_MAX) != bytes || bytes > recv->slot_bytes)
        return "its length does not fit";
    if (h->credit != 0 && (!conn->send || credit_wrong(conn, h->credit)))
        return "it returns more credits than were taken";
    return NULL;
}

static void take_data(rd_ofi_conn_t *conn, const rd_ofi_header_t *h, const void *data, size_t bytes)
{
    rd_ofi_net_t *net = conn->peer->net;
    rd_recv_t *recv = conn->recv;
    const char *wrong = wrong_with(conn, h, bytes);
    uint32_t sign = (uint32_t)(h->bytes >> 32);
    bool in_turn = h->number == conn->next; /* as nearly all are: nothing needs to be remembered of it */
    if (wrong) {
        drop(net, wrong, h->number);
        return;
    }
    if (!in_turn && !bits_make(conn)) {
        rd_stop_set(net->stop, net->ctx, RONDO_ERR_NO_MEMORY, -1, "no memory to receive %zu bytes", bytes);
        return;
    }
    if (in_turn && h->number == recv->received && !conn->landed) /* no slot is in use */
        recv->base = (uint32_t)h->number;
    if (recv->signs)
        atomic_store_explicit(&recv->signs[h->number & recv->signs_mask], sign, memory_order_relaxed);
    char *dest = wanted(recv, h->number, sign, bytes);
    recv->delivered |= dest != NULL;
    memcpy(dest ? dest : rd_recv_slot(recv, bytes, h->number), data, bytes);
    if (in_turn)
        conn->next++;
    else
        conn->landed[(h->number & (ring(conn) - 1)) / 64] |= UINT64_C(1) << (h->number & (ring(conn) - 1)) % 64;
    publish(conn);
    if (conn->peer->left)
        rd_ofi_confirm(conn->peer);
}

/* ---- farewells */

/* Handles a failure like the bootstrap's farewells, so that it does not matter which comes first. */
static void take_failure(rd_ofi_peer_t *peer, rondo_result_t code, int failed_rank, int reporter)
{
    rd_ofi_net_t *net = peer->net;
    char text[200];
    rondo_result_t mine = rd_boot_report(net->boot, peer->rank, code, failed_rank, reporter, text, sizeof(text));
    rd_stop_heard(net->stop, net->ctx, mine, failed_rank, rd_reporter(reporter, peer->rank), text);
}

static void take_bye(rd_ofi_peer_t *peer, const rd_ofi_header_t *h)
{
    rd_ofi_net_t *net = peer->net;
    uint64_t failed_rank = h->bytes & UINT32_MAX, reporter = h->bytes >> 32, most = (uint64_t)net->nranks;
    if (h->number > RD_LAST_RESULT || failed_rank > most || reporter > most) {
        drop(net, "a farewell that makes no sense", h->number);
        return;
    }
    if (peer->left)
        return;
    net->nlost -= peer->lost_ms != 0 && !peer->judged;
    peer->left = true;
    peer->farewell = (rondo_result_t)h->number;
    peer->sent = h->credit;
    net->progressed = true;
    rd_ofi_confirm(peer);
    /* A rank that leaves over a mismatch has sent all that the others need to find it themselves; why another failed
     * comes by the bootstrap. */
    if (h->number != RONDO_SUCCESS && !rd_boot_says_why((int)h->number) && !net->alone)
        take_failure(peer, (rondo_result_t)h->number, failed_rank != 0 ? (int)failed_rank - 1 : peer->rank,
                     (int)reporter);
}

/* A network that lingers needs nothing of what was sent to it. */
void rd_ofi_confirm(rd_ofi_peer_t *peer)
{
    uint64_t come = 0;
    for (int c = 0; c < peer->nconns; c++)
        come += peer->conns[c] ? peer->conns[c]->next : 0;
    if (peer->confirmed || (come != peer->sent && !peer->net->alone))
        return;
    peer->confirmed = true;
    rd_ofi_say(peer, RD_OFI_TAKEN, 0, 0);
}

/* ---- what comes */

static void take_hello(rd_ofi_peer_t *peer, const rd_ofi_header_t *h)
{
    bool first = !peer->greeted;
    peer->greeted = true;
    if (first && h->number == 0)
        rd_ofi_greet(peer, true);
}

/* About the peer as a whole. Returns false if it is about a channel. */
static bool take_of_peer(rd_ofi_peer_t *peer, const rd_ofi_header_t *h, const void *data, size_t bytes)
{
    const char *wrong = NULL;
    switch (h->kind) {
    case RD_OFI_HELLO:
        take_hello(peer, h);
        break;
    case RD_OFI_BYE:
        take_bye(peer, h);
        break;
    case RD_OFI_TAKEN:
        peer->taken = peer->parted;
        break;
    case RD_OFI_ASK:
        rd_ofi_asked(peer);
        break;
    case RD_OFI_CALLED:
        wrong = rd_ofi_answered(peer, data, bytes);
        break;
    default:
        return false;
    }
    if (wrong)
        drop(peer->net, wrong, bytes);
    return true;
}

static void take(rd_ofi_net_t *net, const char *at, size_t bytes)
{
    rd_ofi_header_t h;
    if (bytes < sizeof h) {
        drop(net, "it is shorter than a header", bytes);
        return;
    }
    memcpy(&h, at, sizeof h);
    bytes -= sizeof h;
    if (!token_right(net, h.token)) {
        drop(net, "its token is not this communicator's; its length", bytes);
        return;
    }
    if (h.rank >= (uint32_t)net->nranks || !net->peers[h.rank].remote) {
        drop(net, "no rank on another node has the number that it says", h.rank);
        return;
    }
    rd_ofi_peer_t *peer = &net->peers[h.rank];
    if (h.zero != 0 || (h.kind != RD_OFI_DATA && h.kind != RD_OFI_CALLED && bytes != 0)) {
        drop(net, "it is not well-formed, of kind", h.kind);
        return;
    }
    rd_ofi_peer_used(peer);
    peer->met = true;
    if (take_of_peer(peer, &h, at + sizeof h, bytes) || net->alone)
        return;
    rd_ofi_conn_t *conn = h.channel < peer->nconns ? peer->conns[h.channel] : NULL;
    if (h.kind == RD_OFI_DATA && conn && conn->recv)
        take_data(conn, &h, at + sizeof h, bytes);
    else if (h.kind != RD_OFI_CREDIT || !conn || !conn->send)
        drop(net, "nothing is bound to its channel", h.channel);
    else if (h.bytes != 0 || credit_wrong(conn, h.number))
        drop(net, "it returns more credits than were taken", h.number);
}

/* ---- buffers and completions */

static size_t room(const rd_ofi_net_t *net, const rd_ofi_buffer_t *b)
{
    return sizeof(rd_ofi_header_t) + (b->tag == RD_OFI_TAG_SHORT ? RD_OFI_SHORT : net->longest);
}

/* A provider that takes no more buffers for now has many. */
static bool post_one(rd_ofi_net_t *net, rd_ofi_buffer_t *b)
{
    long error =
        fi_trecv(net->ep, b->at, room(net, b), net->arena.desc, FI_ADDR_UNSPEC, (uint64_t)b->tag, 0, &b->context);
    if (error == 0)
        return true;
    b->next = net->unposted;
    net->unposted = b;
    if (error != -FI_EAGAIN)
        rd_stop_set(net->stop, net->ctx, RONDO_ERR_SYSTEM, -1, "libfabric's provider %s takes no buffer: %s",
                    net->info->fabric_attr->prov_name, rd_ofi_strerror(error));
    return false;
}

void rd_ofi_post(rd_ofi_net_t *net)
{
    for (int i = 0; i < net->nbuffers; i++)
        (void)post_one(net, &net->buffers[i]);
}

static void post_again(rd_ofi_net_t *net)
{
    for (rd_ofi_buffer_t *b; (b = net->unposted);) {
        net->unposted = b->next;
        if (!post_one(net, b))
            return;
    }
}

static bool is_buffer(const rd_ofi_net_t *net, const void *context)
{
    return (const char *)context >= (const char *)net->buffers &&
           (const char *)context < (const char *)(net->buffers + net->nbuffers);
}

static void completed(rd_ofi_net_t *net, const struct fi_cq_tagged_entry *e)
{
    if (!is_buffer(net, e->op_context)) {
        rd_ofi_request_t *r = e->op_context;
        net->flying--;
        r->peer->met = true;
        rd_ofi_complete(r);
        return;
    }
    rd_ofi_buffer_t *b = e->op_context;
    if (e->len > room(net, b))
        drop(net, "it is longer than its buffer", e->len);
    else
        take(net, b->at, e->len);
    (void)post_one(net, b);
}

/* The error of a buffer is that of a sender who has gone, or of somebody who sends too much: nobody is waiting for it.
 */
static void take_error(rd_ofi_net_t *net)
{
    struct fi_cq_err_entry e = {.err_data_size = 0};
    if (fi_cq_readerr(net->cq, &e, 0) != 1 || !e.op_context)
        return;
    if (is_buffer(net, e.op_context)) {
        if (e.err == FI_ETRUNC)
            drop(net, "it is longer than its buffer", e.len + e.olen);
        (void)post_one(net, e.op_context);
        return;
    }
    rd_ofi_request_t *r = e.op_context;
    rd_ofi_peer_t *peer = r->peer;
    net->flying--;
    rd_ofi_complete(r);
    rd_ofi_peer_lost(peer, rd_ofi_strerror(e.err));
}

bool rd_ofi_poll(rd_ofi_net_t *net)
{
    struct fi_cq_tagged_entry entries[ENTRIES];
    bool any = false;
    if (!net->ep)
        return false;
    for (int turn = 0; turn < TURNS; turn++) {
        long n = fi_cq_read(net->cq, entries, ENTRIES);
        if (n == -FI_EAVAIL)
            take_error(net);
        for (long i = 0; i < n; i++)
            completed(net, &entries[i]);
        any |= n > 0 || n == -FI_EAVAIL;
        if (n < 0 && n != -FI_EAVAIL && n != -FI_EAGAIN)
            rd_stop_set(net->stop, net->ctx, RONDO_ERR_SYSTEM, -1, "libfabric's completion queue fails: %s",
                        rd_ofi_strerror(n));
        if (n < ENTRIES && n != -FI_EAVAIL)
            break;
    }
    if (net->unposted)
        post_again(net);
    if (net->waiting != 0)
        rd_ofi_push_waiting(net);
    return any;
}
