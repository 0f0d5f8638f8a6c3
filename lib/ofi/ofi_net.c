/* The transport over libfabric: its operations (transport/transport.h), in the table at the end. Those that end
 * something are in ofi_disconnect.c; ofi.h lists the files.
 *
 * A short message is copied behind its header, and its slot is used again at once. A longer one is sent from its slot,
 * which is reused only after its credit has come back, and so after the bytes have left it. There are no zero-copy
 * sends: the provider could not be made to give the user's memory back after a failure, and over tcp UCX copies as
 * well.
 *
 * Credits go back with the data of the other direction; where there is none, in batches of half the long slots, so that
 * a sender always keeps more than half of them. Short messages have many more slots: their credits wait for a larger
 * batch, or until nothing comes any more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ofi/ofi.h"
#include "transport/conns.h"

#define QUIET 16                    /* polls of the network, some microseconds */
#define LONGEST ((size_t)508 << 10) /* payload, where there are no connections that say it */

/* Returns NULL if there is no memory. */
static rd_ofi_net_t *net_make(const rd_transport_args_t *args)
{
    unsigned char key[32];
    rd_ofi_net_t *net = calloc(1, sizeof *net);
    rd_ofi_peer_t *peers = calloc((size_t)args->nranks, sizeof *peers);
    if (!net || !peers) {
        free(peers);
        free(net);
        return NULL;
    }
    *net = (rd_ofi_net_t){.base = {.ops = &rd_transport_ofi},
                          .boot = args->boot,
                          .ctx = args->ctx,
                          .stop = args->stop,
                          .rank = args->rank,
                          .nranks = args->nranks,
                          .self = args->conns ? &args->conns->self->called : NULL,
                          .longest = args->conns ? args->conns->layout.long_bytes : LONGEST,
                          .peers = peers};
    if (net->longest < RD_OFI_SHORT)
        net->longest = RD_OFI_SHORT;
    if (args->conns)
        net->mirrors = (rd_ofi_memory_t){.base = args->conns->mirrors, .bytes = args->conns->mirror_bytes};
    for (int r = 0; r < net->nranks; r++) {
        peers[r].net = net;
        peers[r].rank = r;
        peers[r].dialled = -1;
        peers[r].remote = args->node->node_of[r] != args->node->node_of[args->rank];
        net->nremotes += peers[r].remote;
    }
    rd_boot_key(args->boot, "ofi", key);
    memcpy(net->token, key, RD_OFI_TOKEN);
    return net;
}

static rondo_result_t start(rd_ofi_net_t *net, const rd_transport_args_t *args)
{
    const int *node_of = args->node->node_of;
    char address[RD_BOOT_ADDRESS];
    int local_rank = 0;
    for (int r = 0; r < net->rank; r++)
        local_rank += node_of[r] == node_of[net->rank];
    rd_boot_address(net->boot, address);
    rondo_result_t result = rd_ofi_choose(net, args->env, address, local_rank);
    if (result == RONDO_SUCCESS)
        result = rd_ofi_exchange(net, rd_ofi_open(net));
    return result == RONDO_SUCCESS ? rd_ofi_wireup(net, args->env) : result;
}

static rondo_result_t create(rd_transport_t **transport, const rd_transport_args_t *args)
{
    rd_ofi_net_t *net = net_make(args);
    if (!net)
        return rd_error(args->ctx, RONDO_ERR_NO_MEMORY, "no memory for the network of %d ranks", args->nranks);
    rondo_result_t result = start(net, args);
    if (result != RONDO_SUCCESS) {
        rd_ofi_destroy(&net->base);
        return result;
    }
    rd_log(net->ctx, RD_LOG_INFO, "network %s, provider %s, domain %s, fabric %s", rd_ofi_version(),
           net->info->fabric_attr->prov_name, net->info->domain_attr->name, net->info->fabric_attr->name);
    *transport = &net->base;
    return RONDO_SUCCESS;
}

/* Gets the connection of (peer, channel), which is made when first requested. */
static rondo_result_t conn_get(rd_ofi_net_t *net, int rank, int channel, rd_ofi_conn_t **out)
{
    if (rank < 0 || rank >= net->nranks || !net->peers[rank].remote || channel < 0 || channel >= RD_OFI_MAX_CHANNELS)
        return rd_error(net->ctx, RONDO_ERR_INTERNAL, "no network connection to rank %d on channel %d is possible",
                        rank, channel);
    rd_ofi_peer_t *peer = &net->peers[rank];
    if (channel >= peer->nconns) {
        rd_ofi_conn_t **more = realloc(peer->conns, (size_t)(channel + 1) * sizeof(*more));
        if (!more)
            return rd_error(net->ctx, RONDO_ERR_NO_MEMORY, "no memory for a network connection");
        memset(more + peer->nconns, 0, (size_t)(channel + 1 - peer->nconns) * sizeof(*more));
        peer->conns = more;
        peer->nconns = channel + 1;
    }
    if (!peer->conns[channel]) {
        rd_ofi_conn_t *conn = calloc(1, sizeof *conn);
        if (!conn)
            return rd_error(net->ctx, RONDO_ERR_NO_MEMORY, "no memory for a network connection");
        conn->peer = peer;
        conn->channel = channel;
        peer->conns[channel] = conn;
    }
    *out = peer->conns[channel];
    return RONDO_SUCCESS;
}

static rondo_result_t bind_send(rd_transport_t *transport, int peer, int channel, rd_send_t *send)
{
    rd_ofi_conn_t *conn = NULL;
    rondo_result_t result = conn_get(rd_ofi_of(transport), peer, channel, &conn);
    if (result != RONDO_SUCCESS)
        return result;
    conn->send = send;
    send->link = conn;
    return RONDO_SUCCESS;
}

static rondo_result_t bind_recv(rd_transport_t *transport, int peer, int channel, rd_recv_t *recv)
{
    rd_ofi_net_t *net = rd_ofi_of(transport);
    rd_ofi_conn_t *conn = NULL;
    rondo_result_t result = conn_get(net, peer, channel, &conn);
    if (result != RONDO_SUCCESS)
        return result;
    if (rd_ofi_ring(recv->shorter, recv->slots_mask) > RD_OFI_MAX_SLOTS)
        return rd_error(net->ctx, RONDO_ERR_INTERNAL, "a network connection has at most %d slots", RD_OFI_MAX_SLOTS);
    conn->recv = recv;
    conn->next = conn->credited = recv->received;
    recv->link = conn;
    return RONDO_SUCCESS;
}

static size_t conn_bytes(void)
{
    return sizeof(rd_ofi_conn_t) + sizeof(rd_ofi_conn_t *);
}

/* Fills a message that is about to be sent; NULL: it cannot be, and *result says why. */
static rd_ofi_request_t *message(rd_send_t *send, size_t bytes, bool copying, rondo_result_t *result)
{
    rd_ofi_conn_t *conn = send->link;
    rd_ofi_net_t *net = conn->peer->net;
    if (conn->peer->left && rd_stop_get(net->stop) == RONDO_SUCCESS) {
        *result = rd_ofi_has_left(conn->peer);
        return NULL;
    }
    rd_ofi_request_t *r = rd_ofi_message(conn->peer, RD_OFI_DATA, conn->channel, copying);
    *result = r ? RONDO_SUCCESS : rd_stop_get(net->stop);
    if (!r)
        return NULL;
    uint64_t sign =
        send->signs ? atomic_load_explicit(&send->signs[(send->sent - 1) & send->signs_mask], memory_order_relaxed) : 0;
    r->header.number = send->sent - 1;
    r->header.bytes = bytes | sign << 32;
    if (conn->recv)
        r->header.credit = conn->credited = conn->recv->received;
    r->bytes = (uint32_t)bytes;
    return r;
}

static char *slot_of(const rd_send_t *send, size_t bytes)
{
    return rd_ring_slot(rd_send_ring(send, bytes), send->slot);
}

static rondo_result_t post(rd_send_t *send, size_t bytes, int more)
{
    rondo_result_t result;
    rd_ofi_request_t *r = message(send, bytes, bytes <= RD_SHORT, &result);
    (void)more; /* a message is given at once */
    if (!r)
        return result;
    if (r->copies) {
        memcpy(r->copy, slot_of(send, bytes), bytes);
    } else if (bytes != 0) {
        r->data = slot_of(send, bytes);
        r->desc = r->peer->net->mirrors.desc;
        send->slot++;
    }
    rd_ofi_push(r);
    return RONDO_SUCCESS;
}

static rondo_result_t post_zcopy(rd_send_t *send, const void *data, size_t bytes, int more)
{
    const rd_ofi_conn_t *conn = send->link;
    const rd_ofi_net_t *net = conn->peer->net;
    rondo_result_t result;
    if (net->regs || net->joins || bytes == 0) {
        memcpy(slot_of(send, bytes), data, bytes);
        return post(send, bytes, more);
    }
    rd_ofi_request_t *r = message(send, bytes, false, &result);
    if (!r)
        return result;
    r->data = data;
    r->zcopy = true;
    rd_ofi_push(r);
    return RONDO_SUCCESS;
}

static int zcopy_peer(const rd_transport_t *transport)
{
    const rd_ofi_peer_t *p = ((const rd_ofi_net_t *)transport)->used;
    while (p && p->zcopies == 0)
        p = p->next_used;
    return p ? p->rank : -1;
}

/* ---- credits */

static void credit_send(rd_ofi_conn_t *conn)
{
    uint64_t consumed = conn->recv->received;
    if (conn->credit_busy || conn->peer->left)
        return;
    rd_ofi_request_t *r = rd_ofi_message(conn->peer, RD_OFI_CREDIT, conn->channel, false);
    if (!r)
        return;
    conn->credited = consumed;
    conn->credit_busy = true;
    r->conn = conn;
    r->header.number = consumed;
    rd_ofi_push(r);
}

/* What was consumed while this credit was being sent is sent in the next one. */
void rd_ofi_credit_sent(rd_ofi_conn_t *conn)
{
    conn->credit_busy = false;
    if (conn->recv && conn->recv->received - conn->credited >= rd_ofi_batch(conn->recv->slots_mask))
        credit_send(conn);
}

static rondo_result_t credit(rd_recv_t *recv, size_t bytes)
{
    rd_ofi_conn_t *conn = recv->link;
    conn->peer->net->quiet = 0; /* there may be credits to return */
    if (recv->received - conn->credited >= rd_ofi_batch(rd_recv_ring(recv, bytes).mask))
        credit_send(conn);
    return RONDO_SUCCESS;
}

void rd_ofi_credits_flush(rd_ofi_net_t *net, bool least_a_batch)
{
    for (rd_ofi_peer_t *p = net->used; p; p = p->next_used) {
        for (int c = 0; c < p->nconns; c++) {
            rd_ofi_conn_t *conn = p->conns[c];
            if (!conn || !conn->recv)
                continue;
            if (conn->recv->received - conn->credited >= (least_a_batch ? rd_ofi_batch(conn->recv->slots_mask) : 1))
                credit_send(conn);
        }
    }
}

/* ---- progress */

/* Where nothing comes any more, a peer may be waiting to send a long message: it needs the credits of short ones that
 * were held back. */
bool rd_ofi_progress(rd_transport_t *transport)
{
    rd_ofi_net_t *net = rd_ofi_of(transport);
    net->progressed = false;
    (void)rd_ofi_poll(net);
    if (net->nlost != 0)
        rd_ofi_judge_lost(net);
    net->quiet = net->progressed ? 0 : net->quiet + (net->quiet <= QUIET);
    if (net->quiet == QUIET)
        rd_ofi_credits_flush(net, true);
    return net->progressed;
}

static bool idle(rd_transport_t *transport)
{
    rd_ofi_net_t *net = rd_ofi_of(transport);
    return net->outstanding == 0 || net->left_ms != 0;
}

const rd_transport_ops_t rd_transport_ofi = {.name = "ofi",
                                             .reach = RD_BETWEEN_NODES,
                                             .asked_for = true,
                                             .signs = true,
                                             .version = rd_ofi_version,
                                             .unusable = rd_ofi_unusable,
                                             .probe = rd_ofi_probe,
                                             .conn_bytes = conn_bytes,
                                             .create = create,
                                             .bind_send = bind_send,
                                             .bind_recv = bind_recv,
                                             .leave = rd_ofi_leave,
                                             .destroy = rd_ofi_destroy,
                                             .post = post,
                                             .credit = credit,
                                             .progress = rd_ofi_progress,
                                             .idle = idle,
                                             .post_zcopy = post_zcopy,
                                             .zcopy_peer = zcopy_peer,
                                             .seek = rd_ofi_seek,
                                             .ask_called = rd_ofi_ask_called,
                                             .called = rd_ofi_called,
                                             .farewell = rd_ofi_farewell,
                                             .cancel = rd_ofi_cancel};
