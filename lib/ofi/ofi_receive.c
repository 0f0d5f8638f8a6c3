/* Receiving: what comes into the posted buffers goes to the common checks (transport/network/net_receive.c). */
#include <string.h>

#include "ofi/ofi.h"

#define ENTRIES 16 /* completions that are read at once */
#define TURNS 4    /* such reads in one poll */

/* About a channel: a network that lingers has none that need it any more. */
static void take_of_conn(rd_net_peer_t *peer, const rd_net_header_t *h, const void *data, size_t bytes)
{
    rd_net_conn_t *conn = peer->net->alone ? NULL : rd_net_conn_of(peer, h);
    if (conn && h->kind == RD_NET_DATA) {
        rd_net_take_data(conn, h, data, bytes);
        if (peer->left)
            rd_net_confirm(peer);
    } else if (conn) {
        rd_net_take_credit(conn, h);
    }
}

static void take(rd_ofi_net_t *net, const char *at, size_t bytes)
{
    rd_net_header_t h;
    if (bytes < sizeof h) {
        rd_net_drop(&net->base, "it is shorter than a header", bytes);
        return;
    }
    memcpy(&h, at, sizeof h);
    bytes -= sizeof h;
    rd_net_peer_t *peer = rd_net_sender(&net->base, &h, bytes, h.kind == RD_NET_DATA || h.kind == RD_NET_CALLED);
    if (!peer)
        return;
    rd_ofi_peer_of(peer)->met = true;
    if (!rd_net_take_control(peer, &h, at + sizeof h, bytes))
        take_of_conn(peer, &h, at + sizeof h, bytes);
}

/* ---- buffers and completions */

static size_t room(const rd_ofi_net_t *net, const rd_ofi_buffer_t *b)
{
    return sizeof(rd_net_header_t) + (b->tag == RD_OFI_TAG_SHORT ? RD_OFI_SHORT : net->longest);
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
        rd_stop_fail(net->base.stop, net->base.ctx, RONDO_ERR_SYSTEM, -1, "libfabric's provider %s takes no buffer: %s",
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
        r->peer->met = r->peer->base.settled = true;
        rd_ofi_complete(r);
        return;
    }
    rd_ofi_buffer_t *b = e->op_context;
    if (e->len > room(net, b))
        rd_net_drop(&net->base, "it is longer than its buffer", e->len);
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
            rd_net_drop(&net->base, "it is longer than its buffer", e.len + e.olen);
        (void)post_one(net, e.op_context);
        return;
    }
    rd_ofi_request_t *r = e.op_context;
    rd_ofi_peer_t *peer = r->peer;
    net->flying--;
    rd_ofi_complete(r);
    rd_ofi_peer_lost(peer, rd_ofi_strerror(e.err));
}

bool rd_ofi_poll(rd_net_t *base)
{
    rd_ofi_net_t *net = (rd_ofi_net_t *)base;
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
            rd_stop_fail(net->base.stop, net->base.ctx, RONDO_ERR_SYSTEM, -1, "libfabric's completion queue fails: %s",
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
