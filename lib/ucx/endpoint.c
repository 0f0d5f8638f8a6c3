/* Peers: connecting on first use, sending, and learning that a peer is gone.
 *
 * A connection that ends is not yet a death: a rank that destroys its communicator in order, or one that gives up
 * because of a third rank, ends its connections too. So each rank sends a farewell to every peer it has exchanged
 * messages with, and the farewell of a failure names the failed rank. After a connection breaks without a farewell
 * there is a grace time, in which the liveness thread or the bootstrap may learn the reason; then the peer is declared
 * dead. */
#include <string.h>
#include <unistd.h>

#include "ucx/ucx.h"

#define LET_GO_MS 1000 /* time for UCX to complete what it was told to give up: it waits for no peer */

void rd_ucx_peer_used(rd_ucx_peer_t *peer)
{
    if (!peer->used) {
        peer->used = 1;
        peer->next_used = peer->net->used;
        peer->net->used = peer;
    }
}

void rd_ucx_peer_lost(rd_ucx_peer_t *peer, const char *why)
{
    if (peer->lost_ms != 0)
        return;
    peer->lost_ms = rd_clock_ms();
    peer->lost_why = why;
    peer->net->nlost += !peer->left;
    rd_ucx_offers_back(peer, 1);
}

rondo_result_t rd_ucx_has_left(rd_ucx_peer_t *peer)
{
    rd_ucx_net_t *net = peer->net;
    return rd_stop_set(net->stop, net->ctx, RONDO_ERR_REMOTE, peer->rank,
                       "rank %d (%s) has left the communicator, and an operation here still needs it", peer->rank,
                       rd_boot_whois(net->boot, peer->rank));
}

/* Called while at least one peer is lost. */
void rd_ucx_judge_lost(rd_ucx_net_t *net)
{
    int64_t now = rd_clock_ms();
    for (rd_ucx_peer_t *p = net->used; p; p = p->next_used) {
        if (p->lost_ms != 0 && !p->left && !p->judged && now - p->lost_ms >= RD_UCX_GRACE_MS) {
            net->nlost--;
            p->judged = 1;
            rd_stop_set(net->stop, net->ctx, RONDO_ERR_REMOTE, p->rank, "rank %d (%s) died or its network failed: %s",
                        p->rank, rd_boot_whois(net->boot, p->rank), p->lost_why);
        }
    }
}

/* UCX calls it from within progress. The endpoint stays until it is closed. */
static void endpoint_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)ep;
    rd_ucx_peer_lost(arg, rd_ucp.status_string(status));
}

/* UCX cannot reach a peer that has just died either. That is what the others will be told, so it goes before. */
static rondo_result_t unreachable(rd_ucx_peer_t *peer, ucs_status_t status)
{
    rd_ucx_net_t *net = peer->net;
    int64_t until = rd_clock_ms() + RD_UCX_GRACE_MS;
    rondo_result_t news;

    while ((news = rd_boot_check(net->boot)) == RONDO_SUCCESS && rd_clock_ms() < until)
        usleep(1000);
    if (news != RONDO_SUCCESS)
        return news;
    return rd_stop_set(net->stop, net->ctx, RONDO_ERR_REMOTE, peer->rank,
                       "UCX cannot reach rank %d (%s): %s (RONDO_IFACE and RONDO_UCX_TLS choose the way)", peer->rank,
                       rd_boot_whois(net->boot, peer->rank), rd_ucp.status_string(status));
}

rondo_result_t rd_ucx_peer_connect(rd_ucx_peer_t *peer)
{
    rd_ucx_net_t *net = peer->net;
    if (peer->ep)
        return RONDO_SUCCESS;
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = peer->address,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {.cb = endpoint_failed, .arg = peer}};
    ucs_status_t status = rd_ucp.ep_create(net->worker, &params, &peer->ep);
    if (status != UCS_OK)
        peer->ep = NULL;
    if (status != UCS_OK && net->alone) {
        rd_ucx_peer_lost(peer, rd_ucp.status_string(status));
        return RONDO_ERR_REMOTE;
    }
    if (status != UCS_OK)
        return unreachable(peer, status);
    rd_ucx_peer_used(peer);
    return RONDO_SUCCESS;
}

void rd_ucx_header_fill(rd_ucx_header_t *header, const rd_ucx_net_t *net, int channel, rd_ucx_kind_t kind,
                        uint64_t number, uint64_t bytes)
{
    memcpy(header->token, net->token, RD_UCX_TOKEN);
    header->rank = (uint32_t)net->rank;
    header->channel = (uint16_t)channel;
    header->kind = (uint8_t)kind;
    header->zero = 0;
    header->number = number;
    header->bytes = bytes;
    header->credit = 0;
}

void rd_ucx_sent(void *request, ucs_status_t status, void *arg)
{
    rd_ucx_peer_t *peer = arg;
    peer->settled |= status == UCS_OK; /* a failed endpoint has its own call */
    peer->net->outstanding--;
    rd_ucp.request_free(request);
}

/* `param` has the rest. `header` is NULL if the data end with it. */
static rondo_result_t give(rd_ucx_peer_t *peer, const rd_ucx_header_t *header, const void *data, size_t count,
                           ucp_request_param_t *param, int *pending)
{
    *pending = 0;
    if (peer->lost_ms != 0)
        return RONDO_SUCCESS;
    rondo_result_t result = rd_ucx_peer_connect(peer);
    if (result != RONDO_SUCCESS)
        return result;
    param->op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    if (peer->net->base.cuda) { /* or UCX would check what kind of memory it is */
        param->op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
        param->memory_type = UCS_MEMORY_TYPE_HOST;
    }
    if (!header || header->kind == RD_UCX_RTS) { /* the receiver must get it at once */
        param->op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        param->flags = UCP_AM_SEND_FLAG_EAGER;
    }
    ucs_status_ptr_t request =
        rd_ucp.am_send_nbx(peer->ep, RD_UCX_AM, header, header ? sizeof *header : 0, data, count, param);
    peer->net->kept = peer->net->keeps;
    if (UCS_PTR_IS_ERR(request)) {
        rd_ucx_peer_lost(peer, rd_ucp.status_string(UCS_PTR_STATUS(request)));
    } else if (request) {
        peer->net->outstanding++;
        *pending = 1;
    } else {
        peer->settled = 1;
    }
    return RONDO_SUCCESS;
}

rondo_result_t rd_ucx_send(rd_ucx_peer_t *peer, const rd_ucx_header_t *header, const void *data, size_t bytes,
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
    if (!peer->net->lists)
        return give(peer, NULL, list->buffer, list->length, &param, pending);
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype = ucp_dt_make_iov();
    return give(peer, NULL, list, n, &param, pending);
}

static uint64_t sent_to(const rd_ucx_peer_t *peer)
{
    uint64_t sent = 0;
    for (int c = 0; c < peer->nconns; c++)
        sent += peer->conns[c] && peer->conns[c]->send ? peer->conns[c]->send->sent : 0;
    return sent;
}

/* Sends the farewell to all peers that were used, or only to those that have yet to take a zero-copy or GDR message.
 * It says that this rank leaves in order, or names the failure that it knows. Peers that have left get it too, since
 * they may be waiting for it. */
void rd_ucx_say_bye(rd_ucx_net_t *net, int zcopies_alone)
{
    rd_ucx_send_held(net);
    rondo_result_t code = rd_stop_get(net->stop);
    int failed_rank = code == RONDO_SUCCESS ? -1 : atomic_load(&net->stop->failed_rank);
    int reporter = code == RONDO_SUCCESS ? 0 : rd_reporter(atomic_load(&net->stop->reporter), net->rank);
    if (code != RONDO_SUCCESS && failed_rank < 0)
        failed_rank = net->rank;
    for (rd_ucx_peer_t *p = net->used; p; p = p->next_used) {
        int pending;
        if (p->parted || (zcopies_alone && p->zcopies == 0) || (!p->ep && (p->left || code != RONDO_SUCCESS)))
            continue; /* not worth a new connection */
        p->parted = 1;
        rd_ucx_header_fill(&p->bye, net, 0, RD_UCX_BYE, (uint64_t)code,
                           (uint64_t)reporter << 32 | (uint64_t)(failed_rank + 1));
        p->bye.credit = sent_to(p);
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
    if (peer->lost_ms == 0) {
        peer->lost_ms = rd_clock_ms();
        peer->lost_why = "given up";
        peer->judged = 1;
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
 * outstanding. */
bool rd_ucx_disconnect(rd_ucx_net_t *net)
{
    for (rd_ucx_peer_t *p = net->used; p; p = p->next_used)
        rd_ucx_forsake(p);
    int64_t until = rd_clock_ms() + LET_GO_MS;
    while (net->outstanding != 0 && rd_clock_ms() < until)
        rd_ucp.worker_progress(net->worker);
    return net->outstanding == 0;
}
