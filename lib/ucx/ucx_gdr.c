/* GDR messages, from and to the caller's memory, which may be a device's: rd_gdr_message_t of transport/transport.h.
 *
 * They use no connection, slot or credit. The sender announces where each lies and keeps its memory until it hears that
 * the message has been read. The receiver keeps the announcement until its caller has named the destination, and then
 * has UCX fetch the bytes there. Only UCX accesses the bytes, and it uses a transport that moves device memory if it
 * has one. The messages of a pair have numbers and match in their order. Each is announced in one of two ways, which
 * the sender chooses: several together if the memory is known (rndv.c), or each by UCX's rendezvous (here).
 *
 * Like everything that arrives, an announcement is used only after its token has been checked, and it must be due. */
#include <stdlib.h>

#include "ucx/ucx_gdr.h"

rd_ucx_gdr_t *rd_ucx_gdr_of(rd_ucx_peer_t *peer)
{
    if (!peer->gdr && (peer->gdr = calloc(1, sizeof *peer->gdr)) != NULL) {
        for (uint64_t i = 0; i < RD_UCX_GDR_SLOTS; i++) {
            peer->gdr->sends[i].peer = peer->gdr->recvs[i].peer = peer;
            peer->gdr->sends[i].number = peer->gdr->recvs[i].number = i;
        }
    }
    return peer->gdr;
}

/* Records that UCX or the peer has the memory of the message, or has it no longer. */
void rd_ucx_flies(rd_ucx_message_t *m, int flying)
{
    int by = flying - m->flying;
    m->flying = flying;
    m->peer->base.zcopies += by;
    rd_ucx_net_of(&m->peer->base)->gdr_flying += by;
}

void rd_ucx_over(rd_ucx_message_t *m)
{
    rd_ucx_net_t *net = rd_ucx_net_of(&m->peer->base);
    if (m->ask.pending) {
        net->gdr_waited--;
        m->peer->gdr->pending--;
        atomic_fetch_sub_explicit(m->ask.pending, 1, memory_order_release);
        m->ask.pending = NULL;
    }
    m->number += RD_UCX_GDR_SLOTS;
    net->base.progressed = 1;
    net->kept = net->keeps; /* UCX's acknowledgement to the peer */
}

static void ended(rd_ucx_message_t *m, void *request, ucs_status_t status)
{
    rd_ucx_net_of(&m->peer->base)->outstanding--;
    rd_ucp.request_free(request);
    rd_ucx_flies(m, 0);
    if (status == UCS_OK)
        rd_ucx_over(m);
    else
        rd_ucx_peer_lost(m->peer, status);
}

static void sent(void *request, ucs_status_t status, void *m)
{
    ended(m, request, status);
}

static void fetched(void *request, ucs_status_t status, size_t bytes, void *m)
{
    (void)bytes; /* compared before the fetch */
    ended(m, request, status);
}

static void begun(rd_ucx_message_t *m, ucs_status_ptr_t request)
{
    if (!request) {
        rd_ucx_over(m);
    } else if (UCS_PTR_IS_ERR(request)) {
        rd_ucx_peer_lost(m->peer, UCS_PTR_STATUS(request));
    } else {
        rd_ucx_net_of(&m->peer->base)->outstanding++;
        rd_ucx_flies(m, 1);
    }
}

static ucp_request_param_t params_of(rd_ucx_message_t *m)
{
    return (ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FIELD_FLAGS,
                                 .memory_type = m->ask.device ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST,
                                 .user_data = m};
}

static rondo_result_t announce(rd_ucx_message_t *m)
{
    rd_ucx_net_t *net = rd_ucx_net_of(&m->peer->base);
    if (m->peer->base.lost_ms != 0) /* the verdict comes by the stop word */
        return RONDO_SUCCESS;
    rondo_result_t result = rd_ucx_peer_connect(m->peer);
    if (result != RONDO_SUCCESS || !m->peer->ep)
        return result;
    rd_net_header_fill(&m->header, &net->base, 0, RD_NET_GDR, m->number, m->ask.bytes);
    ucp_request_param_t param = params_of(m);
    param.flags = UCP_AM_SEND_FLAG_RNDV;
    param.cb.send = sent;
    begun(m,
          rd_ucp.am_send_nbx(m->peer->ep, RD_UCX_AM, &m->header, sizeof m->header, m->ask.data, m->ask.bytes, &param));
    return RONDO_SUCCESS;
}

rondo_result_t rd_ucx_lengths(const rd_ucx_message_t *m)
{
    rd_ucx_net_t *net = rd_ucx_net_of(&m->peer->base);
    if (m->header.bytes == m->ask.bytes)
        return RONDO_SUCCESS;
    const rd_lengths_t lengths = {m->peer->base.rank, net->base.rank, m->header.bytes, m->ask.bytes};
    const rd_failure_t failure = rd_lengths_failure(&lengths, rd_boot_whois(net->base.boot, lengths.from),
                                                    rd_boot_whois(net->base.boot, lengths.to));
    rd_boot_pass_on(net->base.boot, &failure);
    return rd_stop_heard(net->base.stop, net->base.ctx, &failure);
}

static rondo_result_t fetch(rd_ucx_message_t *m)
{
    rd_ucx_net_t *net = rd_ucx_net_of(&m->peer->base);
    void *announced = m->announced;
    rondo_result_t result = rd_ucx_lengths(m);
    if (result != RONDO_SUCCESS)
        return result;
    ucp_request_param_t param = params_of(m);
    param.op_attr_mask &= ~(uint32_t)UCP_OP_ATTR_FIELD_FLAGS;
    param.cb.recv_am = fetched;
    m->announced = NULL;
    begun(m, rd_ucp.am_recv_data_nbx(net->worker, announced, m->ask.data, m->ask.bytes, &param));
    return RONDO_SUCCESS;
}

/* Announces a message: with the next ones if its memory is known, else at once, but after those that wait, for messages
 * are announced in order. */
static rondo_result_t say(rd_ucx_message_t *m)
{
    rd_ucx_net_t *net = rd_ucx_net_of(&m->peer->base);
    rd_ucx_gdr_t *d = m->peer->gdr;
    rondo_result_t result = RONDO_SUCCESS;
    if (rd_ucx_may_rndv(net, &m->ask) && m->peer->base.lost_ms == 0)
        m->key = rd_ucx_rkey_own(net, &m->ask.whole, m->ask.device);
    if (m->key) {
        net->rndv_due = 1;
        d->sent++;
        return d->sent - d->rts_sent == RD_UCX_OFFERS ? rd_ucx_rts(m->peer) : RONDO_SUCCESS;
    }
    result = rd_ucx_rts(m->peer);
    d->rts_sent = ++d->sent;
    return result == RONDO_SUCCESS ? announce(m) : result;
}

rondo_result_t rd_ucx_gdr(rd_transport_t *transport, const rd_gdr_message_t *ask)
{
    rd_ucx_net_t *net = rd_ucx_of(transport);
    rd_ucx_peer_t *peer = rd_ucx_peer(net, ask->peer);
    rd_ucx_gdr_t *d = rd_ucx_gdr_of(peer);
    if (!d)
        return rd_stop_fail(net->base.stop, net->base.ctx, RONDO_ERR_NO_MEMORY, -1,
                            "no memory for messages between GPUs");
    if (peer->base.left && rd_stop_get(net->base.stop) == RONDO_SUCCESS)
        return rd_net_has_left(&peer->base);
    uint64_t number = ask->send ? d->sent : d->requested++;
    rd_ucx_message_t *m = &(ask->send ? d->sends : d->recvs)[number % RD_UCX_GDR_SLOTS];
    if (m->number != number)
        return rd_stop_fail(net->base.stop, net->base.ctx, RONDO_ERR_INTERNAL, -1,
                            "more messages between GPUs are under way than there may be");
    m->ask = *ask;
    net->gdr_waited++;
    d->pending++;
    rd_net_peer_used(&peer->base); /* messages that wait to be announced are searched for among the used peers */
    if (ask->send)
        return say(m);
    if (m->key)
        return rd_ucx_get(m);
    if (net->base.transport.fetches && peer->base.lost_ms == 0) { /* offers that come later can be fetched at once */
        rondo_result_t result = rd_ucx_peer_connect(peer);
        if (result != RONDO_SUCCESS)
            return result;
    }
    return m->announced ? fetch(m) : RONDO_SUCCESS;
}

ucs_status_t rd_ucx_announced(rd_ucx_peer_t *peer, const rd_net_header_t *h, void *announced, const char **wrong)
{
    rd_ucx_gdr_t *d = rd_ucx_gdr_of(peer);
    rd_ucx_message_t *m = d ? &d->recvs[h->number % RD_UCX_GDR_SLOTS] : NULL;
    *wrong = rd_ucx_net_of(&peer->base)->leaving ? NULL : "its number is not due";
    if (!m || rd_ucx_net_of(&peer->base)->leaving || m->number != h->number || m->announced || m->key || m->flying)
        return UCS_OK;
    m->header = *h;
    m->announced = announced;
    peer->base.net->progressed = 1;
    if (m->ask.pending)
        (void)fetch(m); /* a failure is the communicator's */
    return UCS_INPROGRESS;
}

int rd_ucx_gdr_peer(const rd_transport_t *transport)
{
    const rd_ucx_net_t *net = (const rd_ucx_net_t *)transport;
    for (const rd_ucx_peer_t *p = rd_ucx_first(net); p && net->gdr_waited != 0; p = rd_ucx_next(p))
        if (p->gdr && p->gdr->pending != 0)
            return p->base.rank;
    return -1;
}

/* Messages that UCX has not begun are not begun any more. */
void rd_ucx_gdr_back(rd_ucx_net_t *net)
{
    for (rd_ucx_peer_t *p = rd_ucx_first(net); p; p = rd_ucx_next(p)) {
        for (int i = 0; p->gdr && i < RD_UCX_GDR_SLOTS; i++)
            p->gdr->sends[i].ask.pending = p->gdr->recvs[i].ask.pending = NULL;
        if (p->gdr) {
            p->gdr->pending = 0;
            rd_ucx_offers_back(p, 0);
        }
    }
    net->gdr_waited = 0;
}

/* UCX wants each announcement back, or it reports at the end what is missing. */
void rd_ucx_gdr_release(rd_ucx_net_t *net)
{
    net->leaving = 1;
    for (rd_ucx_peer_t *p = rd_ucx_first(net); p; p = rd_ucx_next(p)) {
        for (int i = 0; p->gdr && i < RD_UCX_GDR_SLOTS; i++) {
            if (p->gdr->recvs[i].announced) {
                rd_ucp.am_data_release(net->worker, p->gdr->recvs[i].announced);
                p->gdr->recvs[i].announced = NULL;
            }
        }
    }
}

/* To be called when UCX has nothing under way any more. */
void rd_ucx_gdr_free(rd_ucx_net_t *net)
{
    for (rd_ucx_peer_t *p = rd_ucx_first(net); p; p = rd_ucx_next(p))
        if (p->gdr)
            rd_ucx_keys_free(net, &p->gdr->keys);
    rd_ucx_keys_free(net, &net->keys);
}
