/* The transport over UCX: its operations (transport/transport.h), in the table at the end. Those that end something are
 * in disconnect.c; ucx.h lists the files.
 *
 * Every message is an active message, sent directly from its slot in the mirror; two short messages in a row to one
 * peer are sent as one. A slot that UCX has not copied is reused only after its credit has come back, which the
 * receiver sends after it has read the bytes. By then UCX has finished with them, so no send needs to be waited for.
 * Binding, heads and credits are transport/network/net_conns.c's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/rails.h"
#include "transport/conns.h"
#include "ucx/ucx.h"

#define LIST_BYTES (2 * sizeof(ucp_dt_iov_t)) /* after the data in a slot: the list of two messages */

/* "ucx 1.13.1" */
static const char *version(void)
{
    static char text[64];
    snprintf(text, sizeof text, "ucx %.58s", rd_ucx_load() ? "that is not installed" : rd_ucp.get_version_string());
    return text;
}

/* Collective. A device that has vanished since it was chosen is no reason to fail: all go on over tcp. */
static rondo_result_t open_fast(rd_ucx_net_t *net, rd_env_t *env, const char *address, const rd_node_t *node,
                                rondo_result_t *opened)
{
    const int local_rank = rd_node_rail(node, env->net, rd_locality_sys());
    rondo_result_t result = rd_ucx_choose(net, env, address, node, local_rank);
    if (result != RONDO_SUCCESS)
        return result;
    *opened = rd_ucx_open(net, env, address, local_rank);
    if (!net->fast)
        return RONDO_SUCCESS;
    unsigned char *failed = calloc((size_t)net->base.nranks, 1);
    if (!failed)
        return rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for %d ranks", net->base.nranks);
    failed[net->base.rank] = *opened != RONDO_SUCCESS;
    result = rd_boot_allgather(net->base.boot, failed, 1);
    const unsigned char *first = memchr(failed, 1, (size_t)net->base.nranks);
    if (result == RONDO_SUCCESS && first) {
        if (first == &failed[net->base.rank])
            rd_log(net->base.ctx, RD_LOG_WARN, "%s cannot be used here: data between nodes goes by tcp", net->devices);
        rd_ucx_close(net);
        net->fast = false;
        snprintf(env->ucx_tls, sizeof env->ucx_tls, "tcp");
        rd_ucx_tcp_names(net, env);
        *opened = rd_ucx_open(net, env, address, local_rank);
    }
    free(failed);
    return result;
}

static rondo_result_t start(rd_ucx_net_t *net, const rd_transport_args_t *args, rd_env_t *env)
{
    char address[RD_BOOT_ADDRESS];
    rd_boot_address(net->base.boot, address);
    rondo_result_t opened, result = open_fast(net, env, address, args->node, &opened);
    if (result == RONDO_SUCCESS)
        result = rd_ucx_exchange(net, env, opened);
    rd_ucx_memory_back(net);
    return result == RONDO_SUCCESS ? rd_net_wireup(&net->base, env) : result;
}

static rondo_result_t create(rd_transport_t **transport, const rd_transport_args_t *args)
{
    rd_ucx_net_t *net = calloc(1, sizeof *net);
    if (!net || !rd_net_init(&net->base, &rd_ucx_library, args)) {
        free(net);
        return rd_error(args->ctx, RONDO_ERR_NO_MEMORY, "no memory for the network of %d ranks", args->nranks);
    }
    rd_env_t env = *args->env; /* with the transports that are chosen */
    rondo_result_t result = start(net, args, &env);
    if (result != RONDO_SUCCESS) {
        rd_ucx_destroy(&net->base.transport);
        return result;
    }
    if (rd_log_enabled(RD_LOG_INFO)) {
        char resources[RD_UCX_RESOURCES];
        rd_ucx_resources(net->context, resources, sizeof resources);
        rd_log(net->base.ctx, RD_LOG_INFO, "network %s, transports %s: %s", version(),
               env.ucx_tls[0] != 0 ? env.ucx_tls : "as UCX chooses", resources);
    }
    *transport = &net->base.transport;
    return RONDO_SUCCESS;
}

static size_t conn_bytes(void)
{
    return sizeof(rd_ucx_conn_t) + sizeof(rd_ucx_conn_t *);
}

static void zcopies_back(void *request, ucs_status_t status, void *arg)
{
    rd_ucx_peer_t *peer = arg;
    peer->base.zcopies--;
    peer->base.net->transport.zcopy_pending--;
    rd_ucx_sent(request, status, peer);
}

/* The held message already has its slot, and the next one may already have been written to another. */
void rd_ucx_send_held(rd_ucx_net_t *net)
{
    rd_ucx_conn_t *conn = net->held;
    int pending;
    if (conn) {
        rd_ucx_peer_t *peer = rd_ucx_peer_of(conn->base.peer);
        rd_ucx_send_list(peer, conn->held, 1, rd_ucx_sent, peer, &pending);
        net->held = NULL;
        conn->held = NULL;
    }
}

/* Checks whether the message can be sent now, and fills its header. */
static rondo_result_t head(rd_send_t *send, size_t bytes, rd_net_header_t *header)
{
    rd_ucx_conn_t *conn = send->link;
    if (bytes > RD_SHORT && !conn->base.peer->left) {
        conn->longer = send->sent;
        conn->longest = bytes > conn->longest ? bytes : conn->longest;
    }
    return rd_net_head(send, bytes, header);
}

/* Posts a message in its slot, with space after the data: it is one piece with its header, sent alone or in one list
 * with the message that was held. As a rule UCX has copied it on return, and the slots are used again. If UCX keeps it,
 * the next message goes into another slot; and the credits, which limit how far ahead a sender may be, keep it off
 * slots that are still read. */
static rondo_result_t post_listed(rd_send_t *send, char *slot, ucp_dt_iov_t *list, size_t bytes, int more)
{
    rd_ucx_conn_t *conn = send->link;
    rd_ucx_net_t *net = rd_ucx_net_of(conn->base.peer);
    rd_net_header_t header;
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
    rd_ucx_peer_t *peer = rd_ucx_peer_of(conn->base.peer);
    result = rd_ucx_send_list(peer, list, 1 + (size_t)held, rd_ucx_sent, peer, &pending);
    send->slot += pending ? 1 : -(uint64_t)held;
    return result;
}

static rondo_result_t post(rd_send_t *send, const void *data, size_t bytes, int zcopies)
{
    rd_ucx_conn_t *conn = send->link;
    rd_ucx_peer_t *peer = rd_ucx_peer_of(conn->base.peer);
    rd_ucx_net_t *net = rd_ucx_net_of(&peer->base);
    uint64_t ring = rd_net_ring(send->shorter, send->slots_mask);
    int pending = 0;
    if (!conn->headers && (conn->headers = calloc(ring, sizeof *conn->headers)) == NULL)
        return rd_stop_fail(net->base.stop, net->base.ctx, RONDO_ERR_NO_MEMORY, -1,
                            "no memory for a network connection");
    rd_net_header_t *header = &conn->headers[send->slot & (ring - 1)];
    rondo_result_t result = head(send, bytes, header);
    if (result == RONDO_SUCCESS)
        result = rd_ucx_send(peer, header, data, bytes, zcopies ? zcopies_back : rd_ucx_sent, peer, &pending);
    send->slot += pending != 0;
    if (zcopies && pending) {
        peer->base.zcopies++;
        net->base.transport.zcopy_pending++;
    }
    return result;
}

/* Returns true if a message has space in its slot for its header and a list. */
static bool fits(rd_ring_t ring, size_t bytes)
{
    return bytes + sizeof(rd_net_header_t) + LIST_BYTES <= ring.bytes;
}

/* Returns true if the message is short and is sent with the one before it, or waits for the next one. */
static bool joins(const rd_send_t *send, size_t bytes, int more)
{
    const rd_ucx_conn_t *conn = send->link;
    const rd_ucx_net_t *net = rd_ucx_net_of(conn->base.peer);
    return bytes <= RD_JOINED && net->lists && (more || net->held == conn) && fits(rd_send_ring(send, bytes), bytes);
}

static rondo_result_t post_slot(rd_send_t *send, size_t bytes, int more)
{
    const rd_ucx_conn_t *conn = send->link;
    rd_ring_t ring = rd_send_ring(send, bytes);
    char *slot = rd_ring_slot(ring, send->slot);
    rd_ucx_net_t *net = rd_ucx_net_of(conn->base.peer);
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
    rd_ucx_send_held(rd_ucx_net_of(conn->base.peer));
    return post(send, data, bytes, 1);
}

static void credit_sent(void *request, ucs_status_t status, void *arg)
{
    rd_ucx_conn_t *conn = arg;
    rd_ucx_sent(request, status, rd_ucx_peer_of(conn->base.peer));
    if (status == UCS_OK)
        rd_net_credit_sent(&conn->base);
    else
        conn->base.credit_busy = 0;
}

static rondo_result_t credit_send(rd_net_conn_t *to)
{
    rd_ucx_conn_t *conn = (rd_ucx_conn_t *)to;
    uint64_t consumed = to->recv->received;
    if (to->credit_busy || to->peer->left)
        return RONDO_SUCCESS;
    to->credited = consumed;
    rd_net_header_fill(&conn->credit_header, to->peer->net, to->channel, RD_NET_CREDIT, consumed, 0);
    return rd_ucx_send(rd_ucx_peer_of(to->peer), &conn->credit_header, NULL, 0, credit_sent, conn, &to->credit_busy);
}

static void credit_send_held(rd_net_conn_t *to)
{
    (void)credit_send(to); /* a failure is reported by the stop word */
}

static void say_bye(rd_net_t *net)
{
    rd_ucx_say_bye((rd_ucx_net_t *)net, 0);
}

static rondo_result_t credit(rd_recv_t *recv, size_t bytes)
{
    rd_net_conn_t *conn = recv->link;
    rd_ucx_peer_t *peer = rd_ucx_peer_of(conn->peer);
    conn->peer->net->quiet = 0; /* there may be credits to return */
    if (rd_net_owes(conn, rd_net_batch(rd_recv_ring(recv, bytes).mask)))
        return credit_send(conn);
    /* The endpoint is needed because it also reports the peer's death. */
    return !peer->ep && !conn->peer->left ? rd_ucx_peer_connect(peer) : RONDO_SUCCESS;
}

bool rd_ucx_progress(rd_transport_t *transport)
{
    rd_ucx_net_t *net = rd_ucx_of(transport);
    net->base.progressed = 0;
    net->asides = 0;
    rd_ucx_send_held(net);
    rd_ucx_rndv_advance(net);
    unsigned events = rd_ucx_poll(net);
    rd_ucx_rndv_advance(net);
    bool moved = (events != 0 && !net->asides) || net->base.progressed;
    rd_net_polled(&net->base, moved);
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
    return net->outstanding == 0 || net->base.left_ms != 0;
}

const rd_transport_ops_t rd_transport_ucx = {.name = "ucx",
                                             .reach = RD_BETWEEN_NODES,
                                             .signs = true,
                                             .version = version,
                                             .unusable = rd_ucx_unusable,
                                             .fragile = rd_ucx_fragile,
                                             .probe = rd_ucx_probe,
                                             .conn_bytes = conn_bytes,
                                             .create = create,
                                             .bind_send = rd_net_bind_send,
                                             .bind_recv = rd_net_bind_recv,
                                             .leave = rd_ucx_leave,
                                             .destroy = rd_ucx_destroy,
                                             .post = post_slot,
                                             .credit = credit,
                                             .progress = rd_ucx_progress,
                                             .idle = idle,
                                             .post_zcopy = post_zcopy,
                                             .zcopy_peer = rd_net_zcopy_peer,
                                             .gdr = rd_ucx_gdr,
                                             .gdr_peer = rd_ucx_gdr_peer,
                                             .seek = rd_ucx_seek,
                                             .ask_called = rd_ucx_ask_called,
                                             .called = rd_net_called,
                                             .farewell = rd_net_farewell,
                                             .cancel = rd_ucx_cancel};

const rd_net_library_t rd_ucx_library = {
    .ops = &rd_transport_ucx,
    .peer_bytes = sizeof(rd_ucx_peer_t),
    .conn_bytes = sizeof(rd_ucx_conn_t),
    .unreached = "(RONDO_IFACE, RONDO_UCX_NET_DEVICES, RONDO_CREATE_TIMEOUT_MS), or lacks UCX memory on one of them "
                 "(`ulimit -v`, `ulimit -d`)",
    .greet = rd_ucx_greet,
    .credit = credit_send_held,
    .say_bye = say_bye,
};
