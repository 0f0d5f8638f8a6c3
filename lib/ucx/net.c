/* The transport over UCX: its operations (transport/transport.h), in the table at the end. Those that end something are
 * in disconnect.c; ucx.h lists the files.
 *
 * Every message is an active message, sent directly from its slot in the mirror; two short messages in a row to one
 * peer are sent as one. A slot that UCX has not copied is reused only after its credit has come back, which the
 * receiver sends after it has read the bytes. By then UCX has finished with them, so no send needs to be waited for.
 * Credits go back with the data of the other direction; where there is none, in batches of half the long slots, so that
 * a stream of messages costs little in the other direction, and a sender always keeps more than half of the long slots.
 * Short messages have many more slots: their credits wait for a larger batch, or until nothing comes any more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/conns.h"
#include "ucx/ucx.h"

#define QUIET 16                              /* polls of the network, some microseconds */
#define LIST_BYTES (2 * sizeof(ucp_dt_iov_t)) /* after the data in a slot: the list of two messages */

const char *rd_ucx_version(void)
{
    static char text[64];
    snprintf(text, sizeof text, "ucx %.58s", rd_ucx_load() ? "that is not installed" : rd_ucp.get_version_string());
    return text;
}

/* Returns NULL if there is no memory. */
static rd_ucx_net_t *net_make(const rd_transport_args_t *args)
{
    unsigned char key[32];
    rd_ucx_net_t *net = calloc(1, sizeof *net);
    rd_ucx_peer_t *peers = calloc((size_t)args->nranks, sizeof *peers);
    if (!net || !peers) {
        free(peers);
        free(net);
        return NULL;
    }
    *net = (rd_ucx_net_t){.base = {.ops = &rd_transport_ucx},
                          .boot = args->boot,
                          .ctx = args->ctx,
                          .stop = args->stop,
                          .rank = args->rank,
                          .nranks = args->nranks,
                          .self = args->conns ? &args->conns->self->called : NULL,
                          .peers = peers};
    for (int r = 0; r < net->nranks; r++) {
        peers[r].net = net;
        peers[r].rank = r;
    }
    rd_boot_key(args->boot, "ucx", key);
    memcpy(net->token, key, RD_UCX_TOKEN);
    return net;
}

/* Collective. A device that has vanished since it was chosen is no reason to fail: all go on over tcp. */
static rondo_result_t open_fast(rd_ucx_net_t *net, rd_env_t *env, const char *address, int local_rank,
                                rondo_result_t *opened)
{
    rondo_result_t result = rd_ucx_choose(net, env, address, local_rank);
    if (result != RONDO_SUCCESS)
        return result;
    *opened = rd_ucx_open(net, env, address, local_rank);
    if (!net->fast)
        return RONDO_SUCCESS;
    unsigned char *failed = calloc((size_t)net->nranks, 1);
    if (!failed)
        return rd_error(net->ctx, RONDO_ERR_NO_MEMORY, "no memory for %d ranks", net->nranks);
    failed[net->rank] = *opened != RONDO_SUCCESS;
    result = rd_boot_allgather(net->boot, failed, 1);
    const unsigned char *first = memchr(failed, 1, (size_t)net->nranks);
    if (result == RONDO_SUCCESS && first) {
        if (first == &failed[net->rank])
            rd_log(net->ctx, RD_LOG_WARN, "%s cannot be used here: data between nodes goes by tcp", net->devices);
        rd_ucx_close(net);
        net->fast = false;
        snprintf(env->ucx_tls, sizeof env->ucx_tls, "tcp");
        *opened = rd_ucx_open(net, env, address, local_rank);
    }
    free(failed);
    return result;
}

static rondo_result_t start(rd_ucx_net_t *net, const rd_transport_args_t *args, rd_env_t *env)
{
    const int *node_of = args->node->node_of;
    char address[RD_BOOT_ADDRESS];
    int local_rank = 0;
    for (int r = 0; r < net->rank; r++)
        local_rank += node_of[r] == node_of[net->rank];
    rd_boot_address(net->boot, address);
    rondo_result_t opened, result = open_fast(net, env, address, local_rank, &opened);
    if (result == RONDO_SUCCESS)
        result = rd_ucx_exchange(net, env, opened, node_of);
    return result == RONDO_SUCCESS ? rd_ucx_wireup(net, env) : result;
}

static rondo_result_t create(rd_transport_t **transport, const rd_transport_args_t *args)
{
    rd_ucx_net_t *net = net_make(args);
    if (!net)
        return rd_error(args->ctx, RONDO_ERR_NO_MEMORY, "no memory for the network of %d ranks", args->nranks);
    rd_env_t env = *args->env; /* with the transports that are chosen */
    rondo_result_t result = start(net, args, &env);
    if (result != RONDO_SUCCESS) {
        rd_ucx_destroy(&net->base);
        return result;
    }
    if (rd_log_enabled(RD_LOG_INFO)) {
        char resources[RD_UCX_RESOURCES];
        rd_ucx_resources(net->context, resources, sizeof resources);
        rd_log(net->ctx, RD_LOG_INFO, "network %s, transports %s: %s", rd_ucx_version(),
               env.ucx_tls[0] != 0 ? env.ucx_tls : "as UCX chooses", resources);
    }
    *transport = &net->base;
    return RONDO_SUCCESS;
}

/* Gets the connection of (peer, channel), which is made when first requested. */
static rondo_result_t conn_get(rd_ucx_net_t *net, int rank, int channel, rd_ucx_conn_t **out)
{
    if (rank < 0 || rank >= net->nranks || !net->peers[rank].address || channel < 0 || channel >= RD_UCX_MAX_CHANNELS) {
        return rd_error(net->ctx, RONDO_ERR_INTERNAL, "no network connection to rank %d on channel %d is possible",
                        rank, channel);
    }
    rd_ucx_peer_t *peer = &net->peers[rank];
    if (channel >= peer->nconns) {
        rd_ucx_conn_t **more = realloc(peer->conns, (size_t)(channel + 1) * sizeof(*more));
        if (!more)
            return rd_error(net->ctx, RONDO_ERR_NO_MEMORY, "no memory for a network connection");
        memset(more + peer->nconns, 0, (size_t)(channel + 1 - peer->nconns) * sizeof(*more));
        peer->conns = more;
        peer->nconns = channel + 1;
    }
    if (!peer->conns[channel]) {
        rd_ucx_conn_t *conn = calloc(1, sizeof *conn);
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
    rd_ucx_conn_t *conn = NULL;
    rondo_result_t result = conn_get(rd_ucx_of(transport), peer, channel, &conn);
    if (result != RONDO_SUCCESS)
        return result;
    conn->send = send;
    send->link = conn;
    return RONDO_SUCCESS;
}

static rondo_result_t bind_recv(rd_transport_t *transport, int peer, int channel, rd_recv_t *recv)
{
    rd_ucx_net_t *net = rd_ucx_of(transport);
    rd_ucx_conn_t *conn = NULL;
    rondo_result_t result = conn_get(net, peer, channel, &conn);
    if (result != RONDO_SUCCESS)
        return result;
    if (rd_ucx_ring(recv->shorter, recv->slots_mask) > RD_UCX_MAX_SLOTS)
        return rd_error(net->ctx, RONDO_ERR_INTERNAL, "a network connection has at most %d slots", RD_UCX_MAX_SLOTS);
    conn->recv = recv;
    conn->next = conn->credited = recv->received;
    recv->link = conn;
    return RONDO_SUCCESS;
}

static size_t conn_bytes(void)
{
    return sizeof(rd_ucx_conn_t) + sizeof(rd_ucx_conn_t *);
}

static void zcopies_back(void *request, ucs_status_t status, void *arg)
{
    rd_ucx_peer_t *peer = arg;
    peer->zcopies--;
    peer->net->base.zcopy_pending--;
    rd_ucx_sent(request, status, peer);
}

/* The held message already has its slot, and the next one may already have been written to another. */
void rd_ucx_send_held(rd_ucx_net_t *net)
{
    rd_ucx_conn_t *conn = net->held;
    int pending;
    if (conn) {
        rd_ucx_send_list(conn->peer, conn->held, 1, rd_ucx_sent, conn->peer, &pending);
        net->held = NULL;
        conn->held = NULL;
    }
}

/* Checks whether the message can be sent now, and fills its header. */
static rondo_result_t head(rd_send_t *send, size_t bytes, rd_ucx_header_t *header)
{
    rd_ucx_conn_t *conn = send->link;
    rd_ucx_net_t *net = conn->peer->net;
    if (conn->peer->left && rd_stop_get(net->stop) == RONDO_SUCCESS)
        return rd_ucx_has_left(conn->peer);
    uint64_t sign =
        send->signs ? atomic_load_explicit(&send->signs[(send->sent - 1) & send->signs_mask], memory_order_relaxed) : 0;
    rd_ucx_header_fill(header, net, conn->channel, RD_UCX_DATA, send->sent - 1, bytes | sign << 32);
    if (bytes > RD_SHORT) {
        conn->longer = send->sent;
        conn->longest = bytes > conn->longest ? bytes : conn->longest;
    }
    if (conn->recv)
        header->credit = conn->credited = conn->recv->received;
    return RONDO_SUCCESS;
}

/* Posts a message in its slot, with space after the data: it is one piece with its header, sent alone or in one list
 * with the message that was held. As a rule UCX has copied it on return, and the slots are used again. If UCX keeps it,
 * the next message goes into another slot; and the credits, which limit how far ahead a sender may be, keep it off
 * slots that are still read. */
static rondo_result_t post_listed(rd_send_t *send, char *slot, ucp_dt_iov_t *list, size_t bytes, int more)
{
    rd_ucx_conn_t *conn = send->link;
    rd_ucx_net_t *net = conn->peer->net;
    rd_ucx_header_t header;
    rondo_result_t result = head(send, bytes, &header);
    if (result != RONDO_SUCCESS)
        return result;
    memcpy(slot + bytes, &header, sizeof header);
    int held = conn->held != NULL, pending;
    list = held ? conn->held : list;
    list[held] = (ucp_dt_iov_t){.buffer = slot, .length = bytes + sizeof header};
    if (!held && more && net->lists) {
        conn->held = list;
        net->held = conn;
        send->slot++;
        return RONDO_SUCCESS;
    }
    conn->held = NULL;
    net->held = NULL;
    result = rd_ucx_send_list(conn->peer, list, 1 + (size_t)held, rd_ucx_sent, conn->peer, &pending);
    send->slot += pending ? 1 : -(uint64_t)held;
    return result;
}

static rondo_result_t post(rd_send_t *send, const void *data, size_t bytes, int zcopies)
{
    rd_ucx_conn_t *conn = send->link;
    rd_ucx_peer_t *peer = conn->peer;
    rd_ucx_net_t *net = peer->net;
    uint64_t ring = rd_ucx_ring(send->shorter, send->slots_mask);
    int pending = 0;
    if (!conn->headers && (conn->headers = calloc(ring, sizeof *conn->headers)) == NULL)
        return rd_error(net->ctx, RONDO_ERR_NO_MEMORY, "no memory for a network connection");
    rd_ucx_header_t *header = &conn->headers[send->slot & (ring - 1)];
    rondo_result_t result = head(send, bytes, header);
    if (result == RONDO_SUCCESS)
        result = rd_ucx_send(peer, header, data, bytes, zcopies ? zcopies_back : rd_ucx_sent, peer, &pending);
    send->slot += pending != 0;
    if (zcopies && pending) {
        peer->zcopies++;
        net->base.zcopy_pending++;
    }
    return result;
}

/* Returns true if a message has space in its slot for its header and a list. */
static bool fits(rd_ring_t ring, size_t bytes)
{
    return bytes + sizeof(rd_ucx_header_t) + LIST_BYTES <= ring.bytes;
}

/* Returns true if the message is short and is sent with the one before it, or waits for the next one. */
static bool joins(const rd_send_t *send, size_t bytes, int more)
{
    const rd_ucx_conn_t *conn = send->link;
    const rd_ucx_net_t *net = conn->peer->net;
    return bytes <= RD_JOINED && net->lists && (more || net->held == conn) && fits(rd_send_ring(send, bytes), bytes);
}

static rondo_result_t post_slot(rd_send_t *send, size_t bytes, int more)
{
    const rd_ucx_conn_t *conn = send->link;
    rd_ring_t ring = rd_send_ring(send, bytes);
    char *slot = rd_ring_slot(ring, send->slot);
    rd_ucx_net_t *net = conn->peer->net;
    int listed = (bytes <= RD_SHORT && fits(ring, bytes)) || joins(send, bytes, more);
    if (net->held && (net->held != conn || !listed))
        rd_ucx_send_held(net);
    return listed ? post_listed(send, slot, (ucp_dt_iov_t *)(slot + ring.bytes - LIST_BYTES), bytes, more)
                  : post(send, slot, bytes, 0);
}

static rondo_result_t post_zcopy(rd_send_t *send, const void *data, size_t bytes, int more)
{
    const rd_ucx_conn_t *conn = send->link;
    if (joins(send, bytes, more)) { /* a copy is cheaper than a message */
        memcpy(rd_ring_slot(rd_send_ring(send, bytes), send->slot), data, bytes);
        return post_slot(send, bytes, more);
    }
    rd_ucx_send_held(conn->peer->net);
    return post(send, data, bytes, 1);
}

static int zcopy_peer(const rd_transport_t *transport)
{
    const rd_ucx_peer_t *p = ((const rd_ucx_net_t *)transport)->used;
    while (p && p->zcopies == 0)
        p = p->next_used;
    return p ? p->rank : -1;
}

static rondo_result_t credit_send(rd_ucx_conn_t *conn);

/* What was consumed while this credit was being sent is sent in the next one. */
static void credit_sent(void *request, ucs_status_t status, void *arg)
{
    rd_ucx_conn_t *conn = arg;
    rd_ucx_sent(request, status, conn->peer);
    conn->credit_busy = 0;
    if (status == UCS_OK && conn->recv && conn->recv->received - conn->credited >= rd_ucx_batch(conn->recv->slots_mask))
        credit_send(conn);
}

static rondo_result_t credit_send(rd_ucx_conn_t *conn)
{
    rd_ucx_net_t *net = conn->peer->net;
    uint64_t consumed = conn->recv->received;
    if (conn->credit_busy || conn->peer->left)
        return RONDO_SUCCESS;
    conn->credited = consumed;
    rd_ucx_header_fill(&conn->credit_header, net, conn->channel, RD_UCX_CREDIT, consumed, 0);
    return rd_ucx_send(conn->peer, &conn->credit_header, NULL, 0, credit_sent, conn, &conn->credit_busy);
}

static rondo_result_t credit(rd_recv_t *recv, size_t bytes)
{
    rd_ucx_conn_t *conn = recv->link;
    conn->peer->net->quiet = 0; /* there may be credits to return */
    if (recv->received - conn->credited >= rd_ucx_batch(rd_recv_ring(recv, bytes).mask))
        return credit_send(conn);
    /* The endpoint is needed because it also reports the peer's death. */
    return !conn->peer->ep && !conn->peer->left ? rd_ucx_peer_connect(conn->peer) : RONDO_SUCCESS;
}

void rd_ucx_credits_flush(rd_ucx_net_t *net, int least_a_batch)
{
    for (rd_ucx_peer_t *p = net->used; p; p = p->next_used) {
        for (int c = 0; c < p->nconns; c++) {
            rd_ucx_conn_t *conn = p->conns[c];
            if (!conn || !conn->recv)
                continue;
            if (conn->recv->received - conn->credited >= (least_a_batch ? rd_ucx_batch(conn->recv->slots_mask) : 1))
                credit_send(conn);
        }
    }
}

/* Where nothing comes any more, a peer may be waiting to send a long message: it needs the credits of short ones that
 * were held back. */
bool rd_ucx_progress(rd_transport_t *transport)
{
    rd_ucx_net_t *net = rd_ucx_of(transport);
    net->progressed = 0;
    net->asides = 0;
    rd_ucx_send_held(net);
    rd_ucx_rndv_advance(net);
    unsigned events = rd_ucp.worker_progress(net->worker);
    rd_ucx_rndv_advance(net);
    if (net->nlost != 0)
        rd_ucx_judge_lost(net);
    int moved = (events != 0 && !net->asides) || net->progressed;
    net->quiet = moved ? 0 : net->quiet + (net->quiet <= QUIET);
    if (net->quiet == QUIET)
        rd_ucx_credits_flush(net, 1);
    return moved;
}

static void flushed(void *request, ucs_status_t status, void *arg)
{
    rd_ucx_net_t *net = arg;
    (void)status; /* a failed endpoint has its own call */
    net->outstanding--;
    rd_ucp.request_free(request);
}

/* Over tcp a message is complete for UCX when it has copied it, even if the socket is full. The rest goes out when a
 * thread polls, which may be never: the next call may wait for that very peer on another communicator. What a peer has
 * yet to acknowledge at the end is waited for, for a limited time, by rd_ucx_destroy. */
static bool idle(rd_transport_t *transport)
{
    rd_ucx_net_t *net = rd_ucx_of(transport);
    rd_ucx_send_held(net);
    rd_ucx_rndv_advance(net);
    if (net->outstanding == 0 && net->kept) {
        ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                     .cb = {.send = flushed},
                                     .user_data = net};
        ucs_status_ptr_t request = rd_ucp.worker_flush_nbx(net->worker, &param);
        net->kept = 0;
        net->outstanding += UCS_PTR_IS_PTR(request);
    }
    return net->outstanding == 0 || net->left_ms != 0;
}

const rd_transport_ops_t rd_transport_ucx = {.name = "ucx",
                                             .reach = RD_BETWEEN_NODES,
                                             .signs = true,
                                             .version = rd_ucx_version,
                                             .unusable = rd_ucx_unusable,
                                             .fragile = rd_ucx_fragile,
                                             .probe = rd_ucx_probe,
                                             .conn_bytes = conn_bytes,
                                             .create = create,
                                             .bind_send = bind_send,
                                             .bind_recv = bind_recv,
                                             .leave = rd_ucx_leave,
                                             .destroy = rd_ucx_destroy,
                                             .post = post_slot,
                                             .credit = credit,
                                             .progress = rd_ucx_progress,
                                             .idle = idle,
                                             .post_zcopy = post_zcopy,
                                             .zcopy_peer = zcopy_peer,
                                             .gdr = rd_ucx_gdr,
                                             .gdr_peer = rd_ucx_gdr_peer,
                                             .seek = rd_ucx_seek,
                                             .ask_called = rd_ucx_ask_called,
                                             .called = rd_ucx_called,
                                             .farewell = rd_ucx_farewell,
                                             .cancel = rd_ucx_cancel};
