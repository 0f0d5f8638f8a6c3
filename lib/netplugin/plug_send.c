/* Sending, and learning that a peer is gone.
 *
 * A message is copied into one of the peer's buffers behind its header, and so its slot is free at once. Where no
 * buffer is free, or the plugin takes no more (a request of NULL), it waits in the order of its peer and lies in its
 * slot; a long payload lies there in any case, until its credit has come back. A plugin says that a peer is gone by an
 * error of a call, or not at all: then the bootstrap and LIVENESS find it out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netplugin/netplugin.h"

/* ---- messages */

rd_plug_message_t *rd_plug_message(rd_plug_peer_t *peer, rd_net_kind_t kind, int channel)
{
    rd_plug_net_t *net = rd_plug_net_of(peer);
    rd_plug_message_t *m = net->free;
    if (m)
        net->free = m->next;
    else
        m = malloc(sizeof *m);
    if (!m) {
        rd_stop_fail(net->base.stop, net->base.ctx, RONDO_ERR_NO_MEMORY, -1, "no memory for a network message");
        return NULL;
    }
    *m = (rd_plug_message_t){.next = NULL};
    rd_net_header_fill(&m->header, &net->base, channel, kind, 0, 0);
    return m;
}

void rd_plug_release(rd_plug_net_t *net, rd_plug_message_t *m)
{
    m->next = net->free;
    net->free = m;
}

static bool is_counted(const rd_plug_message_t *m)
{
    return m->header.kind == RD_NET_DATA || m->header.kind == RD_NET_CREDIT;
}

/* It has left, or never will. `tells`: its connection is still there, and a credit may follow another one. */
static void end_one(rd_plug_peer_t *peer, rd_plug_message_t *m, bool tells)
{
    rd_plug_net_t *net = rd_plug_net_of(peer);
    rd_net_conn_t *credited = tells && m->header.kind == RD_NET_CREDIT ? &m->conn->base : NULL;
    net->outstanding -= is_counted(m);
    peer->base.pending--;
    rd_plug_release(net, m);
    if (credited)
        rd_net_credit_sent(credited);
}

static void complete(rd_plug_peer_t *peer, rd_plug_message_t *m)
{
    end_one(peer, m, true);
}

static void append(rd_plug_list_t *list, rd_plug_message_t *m)
{
    m->next = NULL;
    if (list->first)
        list->last->next = m;
    else
        list->first = m;
    list->last = m;
}

static rd_plug_message_t *take_first(rd_plug_list_t *list)
{
    rd_plug_message_t *m = list->first;
    list->first = m->next;
    return m;
}

/* ---- peers that are gone */

static void drop(rd_plug_peer_t *peer, rd_plug_list_t *list, bool tells)
{
    rd_plug_message_t *m = list->first;
    *list = (rd_plug_list_t){NULL, NULL};
    while (m) {
        rd_plug_message_t *next = m->next;
        end_one(peer, m, tells);
        m = next;
    }
}

/* A credit that is completed may make another one: that one finds the peer lost. The plugin is not asked for what it
 * has any more, and its comms are closed with the network. */
static void cut(rd_plug_peer_t *peer, bool tells)
{
    drop(peer, &peer->waiting, tells);
    drop(peer, &peer->payloads, tells);
    while (peer->nlongs != 0) {
        peer->nlongs--;
        end_one(peer, peer->longs[peer->longs_first++ % RD_PLUG_LONGS].message, tells);
    }
    while (peer->nout != 0) {
        rd_plug_message_t *m = peer->out[peer->out_first++ % RD_PLUG_AHEAD].message;
        peer->nout--;
        if (m)
            end_one(peer, m, tells);
    }
}

void rd_plug_forget(rd_plug_peer_t *peer)
{
    cut(peer, false);
}

void rd_plug_peer_lost(rd_plug_peer_t *peer, const char *call, int error)
{
    char text[80];
    if (peer->base.lost_ms != 0)
        return;
    snprintf(peer->why, sizeof peer->why, "net plugin %.60s, %s", rd_plug_net_of(peer)->plug->name,
             rd_plug_failure(call, error, text, sizeof text));
    if (rd_net_peer_lost(&peer->base, peer->why))
        cut(peer, true);
}

void rd_plug_unregistered(rd_plug_peer_t *peer, int error)
{
    const rd_plug_net_t *net = rd_plug_net_of(peer);
    char text[80];
    rd_stop_fail(net->base.stop, net->base.ctx, RONDO_ERR_SYSTEM, -1, "the net plugin %.60s of %.200s fails: %s",
                 net->plug->name, net->plug->file,
                 rd_plug_failure("regMr (is `ulimit -l` unlimited?)", error, text, sizeof text));
    rd_plug_peer_lost(peer, "regMr", error);
}

/* ---- giving messages to the plugin */

/* Returns true if it was given, false if it has to wait or the peer is lost. */
static bool give(rd_plug_peer_t *peer, rd_plug_message_t *m)
{
    const rd_plug_net_t *net = rd_plug_net_of(peer);
    unsigned at = (peer->out_first + peer->nout) % RD_PLUG_AHEAD;
    char *buffer = peer->memory + at * RD_PLUG_BUFFER;
    size_t bytes = sizeof m->header;
    void *request;
    if (peer->nout == RD_PLUG_AHEAD)
        return false;
    memcpy(buffer, &m->header, sizeof m->header);
    if (!m->announced && m->bytes != 0) {
        memcpy(buffer + bytes, m->data, m->bytes);
        bytes += m->bytes;
    }
    int error =
        rd_plug_send(net->plug, peer->sends[RD_PLUG_COMM_SHORT], buffer, bytes, RD_PLUG_TAG, peer->sent_mr, &request);
    if (error != 0) {
        rd_plug_peer_lost(peer, "isend", error);
        return false;
    }
    if (!request)
        return false;
    /* A payload that was announced completes its message; else the header does. */
    peer->out[at] = (rd_plug_flight_t){request, m->announced ? NULL : m};
    peer->nout++;
    if (m->announced)
        append(&peer->payloads, m);
    return true;
}

static bool give_payload(rd_plug_peer_t *peer, rd_plug_message_t *m)
{
    const rd_plug_net_t *net = rd_plug_net_of(peer);
    void *registration, *request;
    if (peer->nlongs == RD_PLUG_LONGS)
        return false;
    int error = rd_plug_register(peer, true, m->conn->sent, m->ring, &registration);
    if (error != 0) {
        rd_plug_unregistered(peer, error);
        return false;
    }
    error = rd_plug_send(net->plug, peer->sends[RD_PLUG_COMM_LONG], (void *)(uintptr_t)m->data, m->bytes, RD_PLUG_TAG,
                         registration, &request);
    if (error != 0) {
        rd_plug_peer_lost(peer, "isend", error);
        return false;
    }
    if (!request)
        return false;
    peer->longs[(peer->longs_first + peer->nlongs++) % RD_PLUG_LONGS] = (rd_plug_flight_t){request, m};
    return true;
}

static void push_payloads(rd_plug_peer_t *peer)
{
    while (peer->payloads.first) {
        rd_plug_message_t *m = take_first(&peer->payloads), *rest = peer->payloads.first;
        if (give_payload(peer, m))
            continue;
        if (peer->base.lost_ms != 0) { /* the list is gone, and this one with it */
            complete(peer, m);
            return;
        }
        m->next = rest;
        peer->payloads.last = rest ? peer->payloads.last : m;
        peer->payloads.first = m;
        return;
    }
}

bool rd_plug_push(rd_plug_peer_t *peer, rd_plug_message_t *m, bool now)
{
    rd_plug_net_t *net = rd_plug_net_of(peer);
    peer->base.pending++;
    net->outstanding += is_counted(m);
    rd_net_peer_used(&peer->base);
    m->announced = m->bytes > RD_PLUG_SHORT;
    if (peer->base.lost_ms == 0 && !peer->waiting.first && give(peer, m)) {
        bool free = !m->announced;
        push_payloads(peer);
        return free;
    }
    if (peer->base.lost_ms != 0 || now) {
        complete(peer, m);
        return true;
    }
    append(&peer->waiting, m);
    return m->bytes == 0;
}

static void push_waiting(rd_plug_peer_t *peer)
{
    while (peer->waiting.first) {
        rd_plug_message_t *m = take_first(&peer->waiting), *rest = peer->waiting.first;
        if (give(peer, m))
            continue;
        if (peer->base.lost_ms != 0) {
            complete(peer, m);
            return;
        }
        m->next = rest;
        peer->waiting.last = rest ? peer->waiting.last : m;
        peer->waiting.first = m;
        return;
    }
}

/* ---- what has left */

/* Returns 1 if the oldest of these is over, 0 if it is not, -1 if the peer is lost. */
static int is_over(rd_plug_peer_t *peer, const rd_plug_flight_t *f)
{
    int done = 0, bytes = 0;
    int error = rd_plug_test(rd_plug_net_of(peer)->plug, f->request, &done, &bytes);
    if (error == 0)
        return done != 0;
    rd_plug_peer_lost(peer, "test of a send", error);
    return -1;
}

bool rd_plug_poll_sends(rd_plug_peer_t *peer)
{
    bool any = false;
    int over = 0;
    while (peer->nout != 0 && (over = is_over(peer, &peer->out[peer->out_first % RD_PLUG_AHEAD])) > 0) {
        rd_plug_message_t *m = peer->out[peer->out_first++ % RD_PLUG_AHEAD].message;
        peer->nout--;
        peer->base.settled = any = true;
        if (m)
            complete(peer, m);
    }
    while (over >= 0 && peer->nlongs != 0 &&
           (over = is_over(peer, &peer->longs[peer->longs_first % RD_PLUG_LONGS])) > 0) {
        rd_plug_message_t *m = peer->longs[peer->longs_first++ % RD_PLUG_LONGS].message;
        peer->nlongs--;
        any = true;
        complete(peer, m);
    }
    if (over >= 0 && peer->waiting.first)
        push_waiting(peer);
    if (peer->payloads.first)
        push_payloads(peer);
    return any;
}

/* ---- without payload */

bool rd_plug_say(rd_net_peer_t *to, rd_net_conn_t *conn, const rd_net_header_t *header)
{
    rd_plug_peer_t *peer = rd_plug_peer_of(to);
    rd_plug_message_t *m = rd_plug_message(peer, (rd_net_kind_t)header->kind, header->channel);
    if (!m)
        return false;
    m->conn = (rd_plug_conn_t *)conn;
    m->header = *header;
    (void)rd_plug_push(peer, m, false);
    return true;
}

/* Where both have left and have taken all, nothing else is sent any more. */
void rd_plug_fill(rd_plug_peer_t *peer)
{
    if (!peer->base.parted || !peer->base.confirmed || peer->filled || peer->base.lost_ms != 0)
        return;
    peer->filled = true;
    for (int i = 1; i < RD_PLUG_POSTED; i++)
        rd_net_say(&peer->base, RD_NET_TAKEN, 0);
}
