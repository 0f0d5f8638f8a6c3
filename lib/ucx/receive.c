/* Receiving: each message is checked, put into its slot, and published in order.
 *
 * UCX's endpoints are not authenticated, and everybody who reaches this process's port may speak UCX's protocol. So
 * nothing in a message is used before the token, which only the ranks of this communicator know, has been compared, and
 * every number has been checked against what is possible here. A wrong message is dropped; the first one is logged.
 *
 * Messages of one connection arrive in order only if UCX sends them in the same way: the bytes of a rendezvous come
 * later than those of a short message after it. So each message out of turn has a bit for "is coming" and one for "is
 * here", and `tail` moves over those that are here, in the order of their numbers. */
#include <stdlib.h>
#include <string.h>

#include "ucx/ucx.h"

static ucs_status_t drop(rd_ucx_net_t *net, const char *what, uint64_t value)
{
    if (net->dropped++ == 0) {
        rd_log(net->ctx, RD_LOG_WARN,
               "dropped a message from the network: %s (%llu); more of them are dropped in silence (somebody unknown "
               "on this "
               "network, or a mistake of rondo's)",
               what, (unsigned long long)value);
    }
    return UCS_OK;
}

/* Compares in constant time: an attacker learns nothing from how long a refusal takes. */
static bool token_right(const rd_ucx_net_t *net, const unsigned char *token)
{
    unsigned char difference = 0;
    for (int i = 0; i < RD_UCX_TOKEN; i++)
        difference |= (unsigned char)(net->token[i] ^ token[i]);
    return difference == 0;
}

static uint64_t ring(const rd_ucx_conn_t *conn)
{
    return rd_ucx_ring(conn->recv->shorter, conn->recv->slots_mask);
}

static int bits_make(rd_ucx_conn_t *conn)
{
    size_t words = (ring(conn) + 63) / 64;
    if (!conn->claimed) {
        conn->claimed = calloc(2 * words, sizeof *conn->claimed);
        conn->landed = conn->claimed ? conn->claimed + words : NULL;
    }
    return conn->claimed ? 0 : -1;
}

static bool marked(const uint64_t *bits, uint64_t at)
{
    return (int)(bits[at / 64] >> (at % 64) & 1);
}

/* Moves `tail` over all messages that are complete, in order. */
static void publish(rd_ucx_conn_t *conn)
{
    uint64_t mask = ring(conn) - 1, at;
    while (conn->landed && marked(conn->landed, at = conn->next & mask)) {
        conn->landed[at / 64] &= ~(UINT64_C(1) << (at % 64));
        conn->claimed[at / 64] &= ~(UINT64_C(1) << (at % 64));
        conn->next++;
    }
    /* Release: the slots' bytes are visible before the count. */
    atomic_store_explicit(&conn->recv->tail->value, conn->next, memory_order_release);
    conn->peer->net->progressed = 1;
}

/* `at`: the message's number modulo the ring. */
static void land(rd_ucx_conn_t *conn, uint64_t at)
{
    conn->landed[at / 64] |= UINT64_C(1) << (at % 64);
    publish(conn);
}

static void fetched(void *request, ucs_status_t status, size_t bytes, void *arg)
{
    rd_ucx_landing_t *landing = arg;
    rd_ucx_conn_t *conn = landing->conn;
    (void)bytes; /* compared before the fetch */
    conn->peer->net->outstanding--;
    conn->peer->net->fetching--;
    rd_ucp.request_free(request);
    if (status == UCS_OK) {
        conn->peer->net->kept = conn->peer->net->keeps; /* UCX's answer to the peer */
        land(conn, (uint64_t)(landing - conn->landings));
    } else {
        rd_ucx_peer_lost(conn->peer, rd_ucp.status_string(status));
    }
}

static int landings_make(rd_ucx_conn_t *conn)
{
    size_t slots = ring(conn);
    if (conn->landings)
        return 0;
    conn->landings = calloc(slots, sizeof *conn->landings);
    for (size_t i = 0; conn->landings && i < slots; i++)
        conn->landings[i].conn = conn;
    return conn->landings ? 0 : -1;
}

/* The sender has only announced the bytes: fetches them directly into the slot. */
static ucs_status_t fetch(rd_ucx_conn_t *conn, uint64_t at, void *descriptor, char *to, size_t bytes)
{
    rd_ucx_net_t *net = conn->peer->net;
    if (landings_make(conn) != 0) {
        rd_stop_set(net->stop, net->ctx, RONDO_ERR_NO_MEMORY, -1, "no memory to receive %zu bytes", bytes);
        return UCS_OK;
    }
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb = {.recv_am = fetched},
                                 .user_data = &conn->landings[at]};
    ucs_status_ptr_t request = rd_ucp.am_recv_data_nbx(net->worker, descriptor, to, bytes, &param);
    if (!request) {
        net->kept = net->keeps;
        land(conn, at);
    } else if (UCS_PTR_IS_ERR(request)) {
        rd_ucx_peer_lost(conn->peer, rd_ucp.status_string(UCS_PTR_STATUS(request)));
    } else {
        net->outstanding++;
        net->fetching++;
    }
    return UCS_INPROGRESS;
}

/* Takes in a credit for what the peer has consumed. Returns true if that is more than was sent. */
static bool credit_wrong(rd_ucx_conn_t *conn, uint64_t consumed)
{
    rd_send_t *send = conn->send;
    if (consumed > send->sent)
        return true;
    if (consumed > atomic_load_explicit(&send->head->value, memory_order_relaxed)) { /* an older credit is ignored */
        atomic_store_explicit(&send->head->value, consumed, memory_order_release);
        conn->peer->net->progressed = 1;
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

static ucs_status_t take_data(rd_ucx_conn_t *conn, const rd_ucx_header_t *h, void *data, size_t bytes, int announced)
{
    rd_ucx_net_t *net = conn->peer->net;
    rd_recv_t *recv = conn->recv;
    uint64_t at = h->number & (ring(conn) - 1);
    uint32_t sign = (uint32_t)(h->bytes >> 32);
    /* The sender holds a credit for messages up to here: their slots are free, or just being filled. */
    if (h->number < conn->next || h->number - conn->credited > rd_recv_ring(recv, bytes).mask ||
        (conn->claimed && marked(conn->claimed, at)))
        return drop(net, "its number is not due", h->number);
    if ((h->bytes & UINT32_MAX) != bytes || bytes > recv->slot_bytes)
        return drop(net, "its length does not fit", h->bytes & UINT32_MAX);
    if (h->credit != 0 && (!conn->send || credit_wrong(conn, h->credit)))
        return drop(net, "it returns more credits than were taken", h->credit);
    int in_turn = h->number == conn->next && !announced; /* as nearly all are: nothing needs to be remembered of it */
    if (!in_turn && bits_make(conn) != 0) {
        rd_stop_set(net->stop, net->ctx, RONDO_ERR_NO_MEMORY, -1, "no memory to receive %zu bytes", bytes);
        return UCS_OK;
    }
    if (!in_turn)
        conn->claimed[at / 64] |= UINT64_C(1) << (at % 64);
    if (in_turn && h->number == recv->received && !conn->claimed) /* no slot is in use */
        recv->base = (uint32_t)h->number;
    if (recv->signs)
        atomic_store_explicit(&recv->signs[h->number & recv->signs_mask], sign, memory_order_relaxed);
    char *to = rd_recv_slot(recv, bytes, h->number);
    if (announced) /* into the slot, since a fetch under way could not be kept out of the user's memory */
        return fetch(conn, at, data, to, bytes);
    char *dest = wanted(recv, h->number, sign, bytes);
    if (dest) {
        to = dest;
        recv->delivered = 1;
    }
    memcpy(to, data, bytes);
    if (in_turn) {
        conn->next++;
        publish(conn);
    } else {
        land(conn, at);
    }
    return UCS_OK;
}

static ucs_status_t take_credit(rd_ucx_conn_t *conn, const rd_ucx_header_t *h)
{
    if (h->bytes != 0 || credit_wrong(conn, h->number))
        return drop(conn->peer->net, "it returns more credits than were taken", h->number);
    return UCS_OK;
}

static ucs_status_t take_gdr(rd_ucx_peer_t *peer, const rd_ucx_header_t *h, void *data, size_t bytes, int announced)
{
    const char *wrong = "its length does not fit";
    ucs_status_t status = UCS_OK;
    if (announced && h->bytes == bytes)
        status = rd_ucx_announced(peer, h, data, &wrong);
    return status == UCS_INPROGRESS || !wrong ? status : drop(peer->net, wrong, h->number);
}

static ucs_status_t take_rts(rd_ucx_peer_t *peer, const rd_ucx_header_t *h, const char *data, size_t bytes,
                             int announced)
{
    const char *wrong = "a list that is not with it";
    if (!announced)
        wrong = h->kind == RD_UCX_RTS ? rd_ucx_offered(peer, h, data, bytes) : rd_ucx_ack(peer, h);
    return !wrong ? UCS_OK : drop(peer->net, wrong, h->bytes);
}

static ucs_status_t take_called(rd_ucx_peer_t *peer, const rd_ucx_header_t *h, const void *data, size_t bytes,
                                int announced)
{
    const char *wrong = NULL;
    peer->net->asides = 1;
    if (h->kind == RD_UCX_ASK)
        rd_ucx_asked(peer);
    else
        wrong = announced ? "an answer that is not with it" : rd_ucx_answered(peer, data, bytes);
    return !wrong ? UCS_OK : drop(peer->net, wrong, bytes);
}

/* Handles a failure like the bootstrap's farewells, so that it does not matter which comes first. */
static void take_failure(rd_ucx_peer_t *peer, rondo_result_t code, int failed_rank, int reporter)
{
    rd_ucx_net_t *net = peer->net;
    char text[200];
    rondo_result_t mine = rd_boot_report(net->boot, peer->rank, code, failed_rank, reporter, text, sizeof(text));
    rd_stop_heard(net->stop, net->ctx, mine, failed_rank, rd_reporter(reporter, peer->rank), text);
}

static ucs_status_t take_bye(rd_ucx_peer_t *peer, const rd_ucx_header_t *h)
{
    rd_ucx_net_t *net = peer->net;
    uint64_t failed_rank = h->bytes & UINT32_MAX, reporter = h->bytes >> 32, most = (uint64_t)net->nranks;
    if (h->number > RD_LAST_RESULT || failed_rank > most || reporter > most)
        return drop(net, "a farewell that makes no sense", h->number);
    if (peer->left)
        return UCS_OK;
    net->nlost -= peer->lost_ms != 0 && !peer->judged;
    peer->left = 1;
    peer->farewell = (rondo_result_t)h->number;
    peer->sent = h->credit;
    net->progressed = 1;
    /* A rank that leaves over a mismatch has sent all that the others need to find it themselves; why another failed
     * comes by the bootstrap. */
    if (h->number != RONDO_SUCCESS && !rd_boot_says_why((int)h->number) && !net->alone) {
        take_failure(peer, (rondo_result_t)h->number, failed_rank != 0 ? (int)failed_rank - 1 : peer->rank,
                     (int)reporter);
    }
    return UCS_OK;
}

static ucs_status_t take(rd_ucx_net_t *net, const void *header, void *data, size_t bytes, int announced)
{
    rd_ucx_header_t h; /* a copy: the original need not be aligned */
    memcpy(&h, header, sizeof h);
    if (!token_right(net, h.token))
        return drop(net, "its token is not this communicator's; its length", bytes);
    if (h.rank >= (uint32_t)net->nranks || !net->peers[h.rank].address)
        return drop(net, "no rank on another node has the number that it says", h.rank);
    rd_ucx_peer_t *peer = &net->peers[h.rank];
    int has_data = h.kind == RD_UCX_DATA || h.kind == RD_UCX_GDR || h.kind == RD_UCX_RTS || h.kind == RD_UCX_CALLED;
    if (h.zero != 0 || (!has_data && bytes != 0))
        return drop(net, "it is not well-formed, of kind", h.kind);
    rd_ucx_peer_used(peer);
    if (h.kind == RD_UCX_BYE)
        return take_bye(peer, &h);
    if (h.kind == RD_UCX_HELLO) {
        peer->greeted = 1;
        return UCS_OK;
    }
    if (h.kind == RD_UCX_ASK || h.kind == RD_UCX_CALLED)
        return take_called(peer, &h, data, bytes, announced);
    if (h.kind == RD_UCX_GDR)
        return take_gdr(peer, &h, data, bytes, announced);
    if (h.kind == RD_UCX_RTS || h.kind == RD_UCX_ACK)
        return take_rts(peer, &h, data, bytes, announced);
    if (net->alone) /* nothing here needs it any more */
        return UCS_OK;
    rd_ucx_conn_t *conn = h.channel < peer->nconns ? peer->conns[h.channel] : NULL;
    if (h.kind == RD_UCX_DATA && conn && conn->recv)
        return take_data(conn, &h, data, bytes, announced);
    if (h.kind == RD_UCX_CREDIT && conn && conn->send)
        return take_credit(conn, &h);
    return drop(net, "nothing is bound to its channel", h.channel);
}

/* Short messages end with their headers, and two may have come as one. Bytes that the last message does not account for
 * are the other one, which is checked by itself. */
static ucs_status_t take_short(rd_ucx_net_t *net, char *data, size_t bytes)
{
    rd_ucx_header_t h;
    memcpy(&h, data + bytes - sizeof h, sizeof h);
    uint64_t own = h.bytes & UINT32_MAX; /* it is data */
    size_t other = token_right(net, h.token) && own < bytes - sizeof h ? bytes - sizeof h - own : 0;
    if (other >= sizeof h) {
        take(net, data + other - sizeof h, data, other - sizeof h, 0);
        data += other;
        bytes -= other;
    }
    return take(net, data + bytes - sizeof h, data, bytes - sizeof h, 0);
}

ucs_status_t rd_ucx_arrive(void *net, const void *header, size_t header_bytes, void *data, size_t bytes,
                           const ucp_am_recv_param_t *param)
{
    int announced = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    if (header_bytes == 0 && bytes >= sizeof(rd_ucx_header_t) && !announced)
        return take_short(net, data, bytes);
    if (header_bytes != sizeof(rd_ucx_header_t))
        return drop(net, "its header has another length", header_bytes);
    return take(net, header, data, bytes, announced);
}
