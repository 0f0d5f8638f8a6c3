/* Peers: connecting on first use, sending, and what UCX says of those that are gone (transport/network/net_peers.c). */

#include "ucx/ucx.h"

#define LET_GO_MS 1000 /* time for UCX to complete what it was told to give up: it waits for no peer */
#define POLLS 1000     /* the most polls before that */

/* That UCX has no memory is this rank's own failure, and says nothing of the peer. */
void rd_ucx_peer_lost(rd_ucx_peer_t *peer, ucs_status_t status)
{
    const rd_net_t *net = peer->base.net;
    if (status == UCS_ERR_NO_MEMORY && !net->alone)
        rd_stop_fail(net->stop, net->ctx, RONDO_ERR_NO_MEMORY, -1,
                     "UCX has no memory for messages with rank %d (%s): raise `ulimit -v` and `ulimit -d`",
                     peer->base.rank, rd_boot_whois(net->boot, peer->base.rank));
    if (rd_net_peer_lost(&peer->base, rd_ucp.status_string(status)))
        rd_ucx_offers_back(peer, 1);
}

/* Where all greet each other, a rank that has greeted nobody has failed before, and does not poll: greetings would
 * come, and UCX's answers to them still be waiting for connections when the worker is destroyed, which ends the process
 * (rd_ucx_answer_ends). */
unsigned rd_ucx_poll(rd_ucx_net_t *net)
{
    if (!net->worker || net->broken || (!net->base.used && rd_net_wires_all(&net->base)))
        return 0;
    unsigned events = rd_ucp.worker_progress(net->worker);
    if (net->greetings)
        rd_ucx_greetings_send(net);
    return events;
}

/* Returns true if the network must not be used any more, because UCX would end the process. Nothing is received then,
 * so all ranks are told, unless this one leaves already. */
static bool goes_blind(rd_ucx_net_t *net)
{
    bool was = net->blind;
    if (!rd_ucx_is_blind(net))
        return false;
    if (!was && net->base.left_ms == 0 && !net->base.alone)
        rd_stop_fail(net->base.stop, net->base.ctx, RONDO_ERR_SYSTEM, net->base.rank,
                     "this process can no longer read /proc/net/route, without which UCX would end it: if it has "
                     "changed its root, mount /proc there");
    return true;
}

/* UCX calls it from within progress. The endpoint stays until it is closed. */
static void endpoint_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    rd_ucx_peer_t *peer = arg;

    (void)ep;
    goes_blind(rd_ucx_net_of(&peer->base)); /* UCX ends the connection in the next poll */
    rd_ucx_peer_lost(peer, status);
}

static rondo_result_t unreachable(rd_ucx_peer_t *peer, ucs_status_t status)
{
    rd_ucx_net_t *net = rd_ucx_net_of(&peer->base);

    if (status == UCS_ERR_NO_MEMORY) /* the peer has nothing to do with that */
        return rd_stop_fail(net->base.stop, net->base.ctx, RONDO_ERR_NO_MEMORY, net->base.rank,
                            "UCX has no memory for a connection to rank %d (%s): raise `ulimit -v` and `ulimit -d`",
                            peer->base.rank, rd_boot_whois(net->base.boot, peer->base.rank));
    rondo_result_t news = rd_net_why_unreached(&net->base);
    if (news != RONDO_SUCCESS)
        return news;
    return rd_stop_fail(net->base.stop, net->base.ctx, RONDO_ERR_REMOTE, peer->base.rank,
                        "UCX cannot reach rank %d (%s) from rank %d: %s (RONDO_IFACE and RONDO_UCX_TLS choose the way)",
                        peer->base.rank, rd_boot_whois(net->base.boot, peer->base.rank), net->base.rank,
                        rd_ucp.status_string(status));
}

/* Where the peer takes the connection and dies before the first bytes are sent, UCX's tcp tries once more, gives the
 * endpoint up and returns it all the same: see wireup.c. Then the network is broken, and no endpoint is there. */
static ucs_status_t endpoint_make(rd_ucx_net_t *net, const ucp_ep_params_t *params, ucp_ep_h *ep)
{
    rd_ucx_errors_begin();
    ucs_status_t status = rd_ucp.ep_create(net->worker, params, ep);
    bool erred = rd_ucx_errors_end();
    net->broken |= status == UCS_OK && erred;
    if (net->broken)
        status = UCS_ERR_CONNECTION_RESET;
    if (status != UCS_OK)
        *ep = NULL;
    return status;
}

rondo_result_t rd_ucx_peer_connect(rd_ucx_peer_t *peer)
{
    rd_ucx_net_t *net = rd_ucx_net_of(&peer->base);
    if (peer->ep || net->broken)
        return RONDO_SUCCESS;
    if (goes_blind(net)) /* UCX begins the connection now */
        return net->base.alone ? RONDO_SUCCESS : rd_stop_get(net->base.stop);
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = peer->address,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {.cb = endpoint_failed, .arg = peer}};
    ucs_status_t status = endpoint_make(net, &params, &peer->ep);
    if (status != UCS_OK && net->base.alone) {
        rd_ucx_peer_lost(peer, status);
        return RONDO_ERR_REMOTE;
    }
    if (status != UCS_OK)
        return unreachable(peer, status);
    rd_net_peer_used(&peer->base);
    return RONDO_SUCCESS;
}

void rd_ucx_sent(void *request, ucs_status_t status, void *arg)
{
    rd_ucx_peer_t *peer = arg;
    peer->base.settled |= status == UCS_OK; /* a failed endpoint has its own call */
    rd_ucx_net_of(&peer->base)->outstanding--;
    rd_ucp.request_free(request);
}

/* `param` has the rest. `header` is NULL if the data end with it. */
static rondo_result_t give(rd_ucx_peer_t *peer, const rd_net_header_t *header, const void *data, size_t count,
                           ucp_request_param_t *param, int *pending)
{
    *pending = 0;
    if (peer->base.lost_ms != 0)
        return RONDO_SUCCESS;
    rondo_result_t result = rd_ucx_peer_connect(peer);
    if (result != RONDO_SUCCESS || !peer->ep)
        return result;
    param->op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    if (peer->base.net->transport.cuda) { /* or UCX would check what kind of memory it is */
        param->op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
        param->memory_type = UCS_MEMORY_TYPE_HOST;
    }
    if (!header || header->kind == RD_NET_RTS) { /* the receiver must get it at once */
        param->op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        param->flags = UCP_AM_SEND_FLAG_EAGER;
    }
    ucs_status_ptr_t request =
        rd_ucp.am_send_nbx(peer->ep, RD_UCX_AM, header, header ? sizeof *header : 0, data, count, param);
    rd_ucx_net_of(&peer->base)->kept = rd_ucx_net_of(&peer->base)->keeps;
    if (UCS_PTR_IS_ERR(request)) {
        rd_ucx_peer_lost(peer, UCS_PTR_STATUS(request));
        return rd_stop_get(peer->base.net->stop);
    } else if (request) {
        rd_ucx_net_of(&peer->base)->outstanding++;
        *pending = 1;
    } else {
        peer->base.settled = 1;
    }
    return RONDO_SUCCESS;
}

rondo_result_t rd_ucx_send(rd_ucx_peer_t *peer, const rd_net_header_t *header, const void *data, size_t bytes,
                           ucp_send_nbx_callback_t done, void *arg, int *pending)
{
    ucp_request_param_t param = {.cb = {.send = done}, .user_data = arg};
    return give(peer, header, data, bytes, &param, pending);
}

/* UCX's tcp passes what it considers a short message to the kernel in pieces, by `sendmsg`. A list, even one of a
 * single piece, it copies together first, and `send` of the copy is faster. */
rondo_result_t rd_ucx_send_list(rd_ucx_peer_t *peer, const ucp_dt_iov_t *list, size_t n, ucp_send_nbx_callback_t done,
                                void *arg, int *pending)
{
    ucp_request_param_t param = {.cb = {.send = done}, .user_data = arg};
    if (!rd_ucx_net_of(&peer->base)->lists)
        return give(peer, NULL, list->buffer, list->length, &param, pending);
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype = ucp_dt_make_iov();
    return give(peer, NULL, list, n, &param, pending);
}

/* Sends the farewell to all peers that were used, or only to those that have yet to take a zero-copy or GDR message.
 * Peers that have left get it too, since they may be waiting for it. */
void rd_ucx_say_bye(rd_ucx_net_t *net, int zcopies_alone)
{
    rd_ucx_send_held(net);
    bool failed = rd_stop_get(net->base.stop) != RONDO_SUCCESS;
    for (rd_ucx_peer_t *p = rd_ucx_first(net); p; p = rd_ucx_next(p)) {
        int pending;
        if (p->base.parted || (zcopies_alone && p->base.zcopies == 0) || (!p->ep && (p->base.left || failed)))
            continue; /* not worth a new connection */
        if (p->greeting == RD_UCX_CONNECTING)
            continue; /* when the connection is made */
        p->greeting = RD_UCX_GREETED;
        p->base.parted = 1;
        rd_net_bye_fill(&p->bye, &p->base);
        rd_ucx_send(p, &p->bye, NULL, 0, rd_ucx_sent, p, &pending);
    }
}

/* No verdict follows, because it is this rank that gives up or leaves. UCX soon completes what it still has for this
 * peer, and nothing more is sent there. */
void rd_ucx_forsake(rd_ucx_peer_t *peer)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    if (!peer->ep)
        return;
    if (peer->base.lost_ms == 0) {
        peer->base.lost_ms = rd_clock_ms();
        peer->base.lost_why = "given up";
        peer->base.judged = 1;
        rd_ucx_offers_back(peer, 1);
    }
    ucs_status_ptr_t request = rd_ucp.ep_close_nbx(peer->ep, &param);
    peer->ep = NULL;
    if (UCS_PTR_IS_PTR(request))
        rd_ucp.request_free(request);
}

/* UCX ends the process by an assertion when a worker is destroyed while a peer owes it an answer, such as the bytes of
 * a message that the peer had announced before it stopped polling. An orderly close does not wait for such an answer,
 * and what it has closed cannot be closed by force. So every endpoint is closed by force, which completes all that is
 * outstanding: all but a flush that UCX is to resume in the next poll, in which it uses the endpoint that is no more. A
 * poll that finds nothing leaves none. */
bool rd_ucx_disconnect(rd_ucx_net_t *net)
{
    for (int i = 0; i < POLLS && rd_ucx_poll(net) != 0; i++)
        continue;
    for (rd_ucx_peer_t *p = rd_ucx_first(net); p; p = rd_ucx_next(p))
        rd_ucx_forsake(p);
    int64_t until = rd_clock_ms() + LET_GO_MS;
    while (net->outstanding != 0 && rd_clock_ms() < until)
        rd_ucx_poll(net);
    return net->outstanding == 0;
}
