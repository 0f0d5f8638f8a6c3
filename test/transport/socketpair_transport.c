/* A transport that is not rondo's own: messages between played nodes over Unix sockets (SOCK_SEQPACKET), one pair of
 * ranks a socket. It shows that a transport needs no edit in lib/: a program that links these files registers it, and
 * goes by it between nodes unless RONDO_TRANSPORT names another. How ranks are wired up is in socketpair_wireup.c.
 *
 *   post       A message waits in a list of its peer until the socket takes it, in packets of at most PACKET bytes. It
 *              is sent from its slot, or from the user's memory (post_zcopy): the socket copies.
 *   progress   Sends what the sockets take, reads what they have. Packets of a peer arrive in order, so a connection
 * has one message at a time that is not complete. Nothing of a packet is used before it was compared with what can be
 * right. the end    A farewell is a packet behind all others. A socket that ends without one is a dead peer, unless the
 *              liveness thread or the bootstrap know better within GRACE_MS.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/transports.h"
#include "transport/socketpair.h"

#define READS 64 /* packets from one peer in a turn */
#define GRACE_MS 250
#define LEAVE_MS 2000 /* until a live peer has made room for what it is being sent */
#define FAILED_MS 50  /* the same after a failure */

static const rd_transport_ops_t ops;
uint64_t (*sp_limit)(int from, int to);
bool (*sp_lose)(int from, int to, uint64_t number);

/* ---- sending */

header_t sp_header(const sp_t *sp, kind_t kind, int channel, uint64_t number, uint64_t bytes)
{
    header_t h = {.rank = (uint32_t)sp->rank,
                  .channel = (uint16_t)channel,
                  .kind = (uint8_t)kind,
                  .number = number,
                  .bytes = bytes};

    memcpy(h.token, sp->token, sizeof h.token);
    return h;
}

static void forget(sp_t *sp, out_t *out)
{
    sp->base.zcopy_pending -= out->zcopy;
    free(out);
}

/* Nothing goes to this peer any more; what it had sent before may still lie in the socket. */
static void stop_sending(peer_t *p)
{
    p->deaf = true;
    for (out_t *o; (o = p->first);) {
        p->first = o->next;
        forget(p->sp, o);
    }
}

/* Nor does anything come from it. */
static void lose(peer_t *p)
{
    if (p->fd < 0)
        return;
    close(p->fd);
    p->fd = -1;
    stop_sending(p);
    if (!p->left)
        p->lost_ms = rd_clock_ms();
}

bool sp_packet_send(peer_t *p, const header_t *h, const void *data, size_t bytes)
{
    struct iovec parts[2] = {{(void *)(uintptr_t)h, sizeof *h}, {(void *)(uintptr_t)data, bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

    if (p->deaf)
        return false;
    ssize_t sent = sendmsg(p->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != ENOBUFS && errno != EINTR && errno != ECONNRESET)
        stop_sending(p);
    p->sp->moved |= sent >= 0;
    return sent >= 0;
}

static void credits_send(peer_t *p)
{
    for (int c = 0; c < RD_CHANNELS; c++) {
        link_t *l = &p->links[c];
        if (!l->credit_due)
            continue;
        header_t h = sp_header(p->sp, CREDIT, c, l->recv->received, 0);
        if (sp_packet_send(p, &h, NULL, 0))
            l->credited = l->recv->received;
        l->credit_due = l->credited != l->recv->received && !p->deaf;
    }
}

/* Is the next packet due? Then its successor is, when the limit has let this one pass. */
static bool within_limit(peer_t *p, size_t bytes)
{
    uint64_t limit = sp_limit ? sp_limit(p->sp->rank, p->rank) : 0;
    int64_t now = limit ? rd_clock_ns() : 0;

    if (!limit)
        return true;
    if (now < p->next_ns)
        return false;
    p->next_ns = now + (int64_t)(bytes * UINT64_C(1000000000) / limit);
    return true;
}

static void flush(peer_t *p)
{
    credits_send(p);
    for (out_t *o; (o = p->first);) {
        size_t left = o->header.bytes - o->header.offset, part = left < PACKET ? left : PACKET;
        bool data = o->header.kind == DATA;
        if (data && sp_lose && sp_lose(p->sp->rank, p->rank, o->header.number)) {
            p->first = o->next;
            forget(p->sp, o);
            continue;
        }
        if (data && !within_limit(p, part))
            return;
        if (!sp_packet_send(p, &o->header, data ? o->data + o->header.offset : NULL, data ? part : 0))
            return;
        o->header.offset += part;
        if (data && o->header.offset < o->header.bytes)
            continue;
        p->first = o->next;
        forget(p->sp, o);
    }
}

static rondo_result_t append(peer_t *p, header_t header, const char *data, bool zcopy)
{
    sp_t *sp = p->sp;

    if (p->deaf)
        return RONDO_SUCCESS; /* the verdict comes by the stop word */
    out_t *o = malloc(sizeof *o);
    if (!o)
        return rd_error(sp->ctx, RONDO_ERR_NO_MEMORY, "no memory for a message");
    *o = (out_t){.header = header, .data = data, .zcopy = zcopy};
    sp->base.zcopy_pending += zcopy;
    if (p->first)
        p->last->next = o;
    else
        p->first = o;
    p->last = o;
    flush(p);
    return RONDO_SUCCESS;
}

static rondo_result_t post_from(rd_send_t *send, const char *data, size_t bytes, bool zcopy)
{
    link_t *l = send->link;
    sp_t *sp = l->peer->sp;

    if (l->peer->left && rd_stop_get(sp->stop) == RONDO_SUCCESS)
        return rd_stop_set(sp->stop, sp->ctx, RONDO_ERR_REMOTE, l->peer->rank,
                           "rank %d (%s) has left the communicator, and an operation here still needs it",
                           l->peer->rank, rd_boot_whois(sp->boot, l->peer->rank));
    send->slot++; /* this slot is needed until the socket has taken what lies there */
    return append(l->peer, sp_header(sp, DATA, l->channel, send->sent - 1, bytes), data, zcopy);
}

static rondo_result_t post(rd_send_t *send, size_t bytes, int more)
{
    (void)more;
    return post_from(send, rd_ring_slot(rd_send_ring(send, bytes), send->slot), bytes, false);
}

static rondo_result_t post_zcopy(rd_send_t *send, const void *data, size_t bytes, int more)
{
    (void)more;
    return post_from(send, data, bytes, true);
}

/* In batches of half the long slots: a call does not end before they are in the socket, whose room must do for a peer
 * that does not read. No sender is ahead by more messages than its ring of the shortest slots has. */
static rondo_result_t credit(rd_recv_t *recv, size_t bytes)
{
    link_t *l = recv->link;

    (void)bytes;
    if (recv->received - l->credited >= (recv->slots_mask + 1) / 2) {
        l->credit_due = true;
        credits_send(l->peer);
    }
    return RONDO_SUCCESS;
}

/* ---- what arrives */

/* A message may be placed where the step that waits for it wants it, and else lies in its slot. */
static char *place_for(const rd_recv_t *r, const header_t *h)
{
    if (r->dest && h->number == r->received && h->bytes == r->dest_bytes)
        return r->dest;
    return rd_recv_slot(r, h->bytes, h->number);
}

/* NULL, or what is wrong with it. */
static const char *take_data(peer_t *p, const header_t *h, const char *data, size_t bytes)
{
    link_t *l = h->channel < RD_CHANNELS ? &p->links[h->channel] : NULL;
    rd_recv_t *r = l ? l->recv : NULL;

    if (!r || h->bytes > r->slot_bytes)
        return "a message for which nothing is bound, or that is too long";
    if (h->number != l->next || h->number - r->received > rd_recv_ring(r, h->bytes).mask)
        return "a message that is not due";
    if (h->offset != l->got || bytes > h->bytes - l->got || (bytes == 0 && h->bytes != 0))
        return "a part of a message that is not due";
    if (l->got == 0)
        l->to = place_for(r, h);
    memcpy(l->to + l->got, data, bytes);
    l->got += bytes;
    if (l->got < h->bytes)
        return NULL;
    if (l->to == r->dest) /* else it may be a later one than the message that is there */
        r->delivered = 1;
    l->next++;
    l->got = 0;
    /* Release: the message's bytes before the count. */
    atomic_store_explicit(&r->tail->value, l->next, memory_order_release);
    return NULL;
}

static const char *take_credit(peer_t *p, const header_t *h, size_t bytes)
{
    rd_send_t *s = h->channel < RD_CHANNELS ? p->links[h->channel].send : NULL;

    if (!s || bytes != 0 || h->number > s->sent || h->number < atomic_load(&s->head->value))
        return "a credit for what was not sent";
    atomic_store_explicit(&s->head->value, h->number, memory_order_release);
    return NULL;
}

static const char *take_bye(peer_t *p, const header_t *h, size_t bytes)
{
    sp_t *sp = p->sp;
    uint64_t failed_rank = h->bytes & UINT32_MAX, reporter = h->bytes >> 32, most = (uint64_t)sp->nranks;

    if (bytes != 0 || h->number > RD_LAST_RESULT || failed_rank > most || reporter > most)
        return "a farewell of no known kind";
    p->left = true;
    p->farewell = (rondo_result_t)h->number;
    if (p->farewell == RONDO_SUCCESS || p->farewell == RONDO_ERR_MISMATCH)
        return NULL;
    rd_failure_t failure = {
        .said = p->farewell, .failed_rank = failed_rank ? (int)failed_rank - 1 : p->rank, .reporter = (int)reporter};
    rd_boot_report(sp->boot, p->rank, &failure);
    failure.reporter = rd_reporter((int)reporter, p->rank);
    rd_stop_heard(sp->stop, sp->ctx, &failure);
    return NULL;
}

static const char *take(peer_t *p, const char *packet, size_t bytes)
{
    header_t h;

    if (bytes < sizeof h || bytes > sizeof h + PACKET)
        return "a packet of another length";
    memcpy(&h, packet, sizeof h);
    bytes -= sizeof h;
    if (memcmp(h.token, p->sp->token, sizeof h.token) != 0 || h.rank != (uint32_t)p->rank || h.zero != 0 || p->left)
        return "a header of another sender";
    switch (h.kind) {
    case DATA:
        return take_data(p, &h, packet + sizeof h, bytes);
    case CREDIT:
        return take_credit(p, &h, bytes);
    case BYE:
        return take_bye(p, &h, bytes);
    default:
        return "a packet of no known kind";
    }
}

/* A socket belongs to one rank of this communicator, so what is wrong there is a mistake, and not a stranger's doing.
 */
static void arrive(peer_t *p, size_t bytes)
{
    sp_t *sp = p->sp;
    const char *wrong = take(p, sp->packet, bytes);

    sp->moved = true;
    if (!wrong)
        return;
    rd_stop_set(sp->stop, sp->ctx, RONDO_ERR_INTERNAL, p->rank, "rank %d (%s) has sent %s", p->rank,
                rd_boot_whois(sp->boot, p->rank), wrong);
    lose(p);
}

/* Who closes a socket with packets unread resets it, which is said once, ahead of what it had sent. */
static void read_peer(peer_t *p)
{
    for (int i = 0; i < READS && p->fd >= 0; i++) {
        ssize_t got = recv(p->fd, p->sp->packet, sizeof p->sp->packet, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            return;
        if (got > 0)
            arrive(p, (size_t)got);
        else if (got == 0 || (errno != ECONNRESET && errno != EINTR))
            lose(p);
    }
}

static void judge(peer_t *p)
{
    sp_t *sp = p->sp;

    if (!p->lost_ms || rd_clock_ms() - p->lost_ms < GRACE_MS || rd_stop_get(sp->stop) != RONDO_SUCCESS)
        return;
    rd_stop_set(sp->stop, sp->ctx, RONDO_ERR_REMOTE, p->rank, "rank %d (%s) died: its socket has ended", p->rank,
                rd_boot_whois(sp->boot, p->rank));
}

static bool progress(rd_transport_t *transport)
{
    sp_t *sp = (sp_t *)transport;

    sp->moved = false;
    for (int r = 0; r < sp->nranks; r++) {
        flush(&sp->peers[r]);
        read_peer(&sp->peers[r]);
        judge(&sp->peers[r]);
    }
    return sp->moved;
}

static bool is_flushed(const peer_t *p)
{
    bool due = p->first != NULL;

    for (int c = 0; c < RD_CHANNELS; c++)
        due |= p->links[c].credit_due;
    return p->deaf || !due;
}

static bool idle(rd_transport_t *transport)
{
    const sp_t *sp = (const sp_t *)transport;
    int r = 0;

    while (r < sp->nranks && is_flushed(&sp->peers[r]))
        r++;
    return r == sp->nranks;
}

/* ---- peers */

static int zcopy_peer(const rd_transport_t *transport)
{
    const sp_t *sp = (const sp_t *)transport;

    for (int r = 0; r < sp->nranks; r++) {
        for (const out_t *o = sp->peers[r].first; o; o = o->next) {
            if (o->zcopy)
                return r;
        }
    }
    return -1;
}

static rondo_result_t farewell(const rd_transport_t *transport, int peer)
{
    const peer_t *p = &((const sp_t *)transport)->peers[peer];

    return p->left ? p->farewell : RONDO_IN_PROGRESS;
}

/* The user's memory is his again: what is to be sent of it is copied, or, for lack of memory, goes with its peer. */
static void take_copies(peer_t *p)
{
    p->last = NULL;
    for (out_t **at = &p->first; *at; at = &(*at)->next) {
        out_t *copy = (*at)->zcopy ? malloc(sizeof *copy + (*at)->header.bytes) : *at;
        if (!copy) {
            lose(p);
            return;
        }
        if (copy != *at) {
            memcpy(copy, *at, sizeof *copy);
            memcpy(copy->own, copy->data, copy->header.bytes);
            copy->data = copy->own;
            copy->zcopy = false;
            forget(p->sp, *at);
            *at = copy;
        }
        p->last = copy;
    }
}

/* What was wanted in the user's memory goes to its slot instead. */
static void take_place_back(link_t *l)
{
    rd_recv_t *r = l->recv;

    if (!r || !r->dest)
        return;
    if (l->got && l->to == r->dest) {
        char *slot = rd_recv_slot(r, r->dest_bytes, l->next);
        memcpy(slot, r->dest, l->got);
        l->to = slot;
    }
    r->dest = NULL;
}

static void cancel(rd_transport_t *transport)
{
    sp_t *sp = (sp_t *)transport;

    for (int r = 0; r < sp->nranks; r++) {
        take_copies(&sp->peers[r]);
        for (int c = 0; c < RD_CHANNELS; c++)
            take_place_back(&sp->peers[r].links[c]);
    }
}

/* ---- the end */

static void leave(rd_transport_t *transport)
{
    sp_t *sp = (sp_t *)transport;
    rondo_result_t code = rd_stop_get(sp->stop);
    int failed_rank = code == RONDO_SUCCESS ? -1 : atomic_load(&sp->stop->failed_rank);
    int reporter = code == RONDO_SUCCESS ? 0 : rd_reporter(atomic_load(&sp->stop->reporter), sp->rank);

    if (code != RONDO_SUCCESS && failed_rank < 0)
        failed_rank = sp->rank;
    for (int r = 0; r < sp->nranks; r++) {
        peer_t *p = &sp->peers[r];
        uint64_t blame = (uint64_t)reporter << 32 | (uint64_t)(failed_rank + 1);
        if (!p->parted)
            append(p, sp_header(sp, BYE, 0, (uint64_t)code, blame), NULL, false);
        p->parted = true;
    }
}

static void destroy(rd_transport_t *transport)
{
    static const struct timespec nap = {0, 1000000};
    sp_t *sp = (sp_t *)transport;

    leave(transport);
    int64_t until = rd_clock_ms() + (rd_stop_get(sp->stop) == RONDO_SUCCESS ? LEAVE_MS : FAILED_MS);
    while (!idle(transport) && rd_clock_ms() < until) {
        if (!progress(transport))
            nanosleep(&nap, NULL);
    }
    if (!idle(transport) && rd_stop_get(sp->stop) == RONDO_SUCCESS)
        rd_log(sp->ctx, RD_LOG_WARN, "a rank has not read in time what this rank had sent it before it left");
    for (int r = 0; r < sp->nranks; r++)
        lose(&sp->peers[r]);
    free(sp);
}

/* ---- the beginning */

static rondo_result_t create(rd_transport_t **transport, const rd_transport_args_t *args)
{
    size_t n = (size_t)args->nranks;
    sp_t *sp = calloc(1, sizeof *sp + n * sizeof *sp->peers);
    unsigned char key[32];

    if (!sp)
        return rd_error(args->ctx, RONDO_ERR_NO_MEMORY, "no memory for the sockets of %zu ranks", n);
    sp->base.ops = &ops;
    sp->boot = args->boot;
    sp->ctx = args->ctx;
    sp->stop = args->stop;
    sp->rank = args->rank;
    sp->nranks = args->nranks;
    rd_boot_key(args->boot, "sockpair", key);
    memcpy(sp->token, key, sizeof sp->token);
    for (int r = 0; r < sp->nranks; r++)
        sp->peers[r] = (peer_t){.sp = sp, .rank = r, .fd = -1, .deaf = true};
    rondo_result_t result = sp_wire_up(sp, args);
    if (result != RONDO_SUCCESS) {
        destroy(&sp->base);
        return result;
    }
    *transport = &sp->base;
    return RONDO_SUCCESS;
}

static link_t *link_of(rd_transport_t *transport, int peer, int channel)
{
    link_t *l = &((sp_t *)transport)->peers[peer].links[channel];

    l->peer = &((sp_t *)transport)->peers[peer];
    l->channel = channel;
    return l;
}

static rondo_result_t bind_send(rd_transport_t *transport, int peer, int channel, rd_send_t *send)
{
    link_t *l = link_of(transport, peer, channel);

    l->send = send;
    send->link = l;
    return RONDO_SUCCESS;
}

static rondo_result_t bind_recv(rd_transport_t *transport, int peer, int channel, rd_recv_t *recv)
{
    link_t *l = link_of(transport, peer, channel);

    l->recv = recv;
    recv->link = l;
    return RONDO_SUCCESS;
}

static const rd_transport_ops_t ops = {.name = "socketpair",
                                       .reach = RD_BETWEEN_NODES,
                                       .create = create,
                                       .bind_send = bind_send,
                                       .bind_recv = bind_recv,
                                       .leave = leave,
                                       .destroy = destroy,
                                       .post = post,
                                       .credit = credit,
                                       .progress = progress,
                                       .idle = idle,
                                       .post_zcopy = post_zcopy,
                                       .zcopy_peer = zcopy_peer,
                                       .farewell = farewell,
                                       .cancel = cancel};

/* Before main, so that the program need not know of it. */
__attribute__((constructor)) static void add(void)
{
    if (rd_transport_register(&ops) != 0)
        abort();
    setenv("RONDO_TRANSPORT", ops.name, 0);
}
