/* The transport over libfabric: its operations (transport/transport.h), in the table at the end. Those that end
 * something are in ofi_disconnect.c; ofi.h lists the files.
 *
 * A short message is copied behind its header, and its slot is used again at once. A longer one is sent from its slot,
 * which is reused only after its credit has come back, and so after the bytes have left it. There are no zero-copy
 * sends: the provider could not be made to give the user's memory back after a failure, and over tcp UCX copies as
 * well. Binding and heads are transport/network/net_conns.c's, credits and greetings net_say.c's. */
#include <stdlib.h>
#include <string.h>

#include "ofi/ofi.h"
#include "transport/conns.h"

#define LONGEST ((size_t)508 << 10) /* payload, where there are no connections that say it */

/* Returns NULL if there is no memory. */
static rd_ofi_net_t *net_make(const rd_transport_args_t *args)
{
    rd_ofi_net_t *net = calloc(1, sizeof *net);
    if (!net || !rd_net_init(&net->base, &rd_ofi_library, args)) {
        free(net);
        return NULL;
    }
    net->longest = args->conns ? args->conns->layout.long_bytes : LONGEST;
    if (net->longest < RD_OFI_SHORT)
        net->longest = RD_OFI_SHORT;
    if (args->conns) {
        net->mirrored = args->conns->mirrors;
        net->piece = args->conns->layout.mirror_bytes;
        net->npieces = args->conns->mirror_bytes / net->piece;
    }
    for (int r = 0; r < net->base.nranks; r++)
        rd_ofi_peer(net, r)->dialled = -1;
    return net;
}

static rondo_result_t start(rd_ofi_net_t *net, const rd_transport_args_t *args)
{
    char address[RD_BOOT_ADDRESS];
    rd_boot_address(net->base.boot, address);
    rondo_result_t result = rd_ofi_choose(net, args->env, address, args->node);
    if (result == RONDO_SUCCESS)
        result = rd_ofi_exchange(net, rd_ofi_open(net));
    return result == RONDO_SUCCESS ? rd_net_wireup(&net->base, args->env) : result;
}

static rondo_result_t create(rd_transport_t **transport, const rd_transport_args_t *args)
{
    rd_ofi_net_t *net = net_make(args);
    if (!net)
        return rd_error(args->ctx, RONDO_ERR_NO_MEMORY, "no memory for the network of %d ranks", args->nranks);
    rondo_result_t result = start(net, args);
    if (result != RONDO_SUCCESS) {
        rd_ofi_destroy(&net->base.transport);
        return result;
    }
    rd_log(net->base.ctx, RD_LOG_INFO, "network %s, provider %s, domain %s, fabric %s", rd_ofi_version(),
           net->info->fabric_attr->prov_name, net->info->domain_attr->name, net->info->fabric_attr->name);
    *transport = &net->base.transport;
    return RONDO_SUCCESS;
}

static size_t conn_bytes(void)
{
    return sizeof(rd_net_conn_t) + sizeof(rd_net_conn_t *);
}

/* Fills a message that is about to be sent; NULL: it cannot be, and *result says why. */
static rd_ofi_request_t *message(rd_send_t *send, size_t bytes, bool copying, rondo_result_t *result)
{
    const rd_net_conn_t *conn = send->link;
    rd_ofi_request_t *r = rd_ofi_message(rd_ofi_peer_of(conn->peer), RD_NET_DATA, conn->channel, copying);
    *result = r ? rd_net_head(send, bytes, &r->header) : rd_stop_get(conn->peer->net->stop);
    if (r && *result != RONDO_SUCCESS) {
        rd_ofi_release(r);
        return NULL;
    }
    if (r)
        r->bytes = (uint32_t)bytes;
    return r;
}

static char *slot_of(const rd_send_t *send, size_t bytes)
{
    return rd_ring_slot(rd_send_ring(send, bytes), send->slot);
}

/* What has failed by then is this rank's own, or known already: a peer is judged to be lost later. */
static rondo_result_t pushed(rd_ofi_request_t *r)
{
    rd_stop_t *stop = r->peer->base.net->stop;
    rd_ofi_push(r);
    return rd_stop_get(stop);
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
        rd_ofi_net_t *net = rd_ofi_net_of(&r->peer->base);
        r->data = slot_of(send, bytes);
        if ((result = rd_ofi_mirror(net, r->data, &r->desc)) != RONDO_SUCCESS) {
            rd_ofi_release(r);
            return rd_stop_fail(net->base.stop, net->base.ctx, result, -1, "%s", rd_thread_error());
        }
        send->slot++;
    }
    return pushed(r);
}

static rondo_result_t post_zcopy(rd_send_t *send, const void *data, size_t bytes, int more)
{
    const rd_net_conn_t *conn = send->link;
    const rd_ofi_net_t *net = rd_ofi_net_of(conn->peer);
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
    return pushed(r);
}

/* During the wireup the lower one of two ranks begins, so that there is one connection and not two that cross. */
static void greet_higher(rd_net_peer_t *peer)
{
    if (peer->rank > peer->net->rank)
        rd_net_say(peer, RD_NET_HELLO, 0);
}

static bool idle(rd_transport_t *transport)
{
    rd_ofi_net_t *net = rd_ofi_of(transport);
    return net->outstanding == 0 || net->base.left_ms != 0;
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
                                             .bind_send = rd_net_bind_send,
                                             .bind_recv = rd_net_bind_recv,
                                             .leave = rd_ofi_leave,
                                             .destroy = rd_ofi_destroy,
                                             .post = post,
                                             .credit = rd_net_credit,
                                             .progress = rd_net_progress,
                                             .idle = idle,
                                             .post_zcopy = post_zcopy,
                                             .zcopy_peer = rd_net_zcopy_peer,
                                             .seek = rd_net_seek,
                                             .ask_called = rd_net_ask_called,
                                             .called = rd_net_called,
                                             .farewell = rd_net_farewell,
                                             .cancel = rd_ofi_cancel};

const rd_net_library_t rd_ofi_library = {
    .ops = &rd_transport_ofi,
    .peer_bytes = sizeof(rd_ofi_peer_t),
    .conn_bytes = sizeof(rd_net_conn_t),
    .unreached = "(RONDO_IFACE, RONDO_OFI_PROVIDER, RONDO_CREATE_TIMEOUT_MS)",
    .greet = greet_higher,
    .credit = rd_net_say_credit,
    .say_bye = rd_net_say_bye,
    .say = rd_ofi_say,
    .answer = rd_ofi_answer,
    .poll = rd_ofi_poll,
};
