/* GDR messages that are announced together: by a list of where they lie, with keys to the memory.
 *
 *   sender           [key, address, length] of several messages   ->  receiver
 *                                                                     fetches each when its destination is known
 *   frees its memory <-  which messages have arrived, when several have or no more is under way
 *
 * UCX's own announcement costs four system calls for each message over tcp: to send and receive it, and to send and
 * receive its acknowledgement. Here these are shared by all messages that are given between two polls of the network.
 * How they are grouped does not matter: each has its number and matches by it, like the messages that UCX announces.
 *
 * A list is checked before anything of it is used. What its keys contain only UCX knows: see rkey.c. */
#include <stdlib.h>
#include <string.h>

#include "ucx/ucx_gdr.h"

#define ACK_MOST 4 /* fetched messages that are not acknowledged yet while others are being fetched */

/* A message in a list. Its key follows it. */
typedef struct item {
    uint64_t address, bytes;
    uint32_t key; /* bytes of the key; 0: it is the key of the message before */
    uint32_t zero;
} item_t;

/* A list that is being sent to the peer. */
typedef struct list {
    rd_ucx_peer_t *peer;
    rd_net_header_t header;
    char items[];
} list_t;

bool rd_ucx_may_rndv(const rd_ucx_net_t *net, const rd_gdr_message_t *ask)
{
    return ask->whole.bytes != 0 && net->base.transport.fetches && (ask->device || rd_ucx_fetches_host());
}

/* ---- the sender */

static void list_sent(void *request, ucs_status_t status, void *arg)
{
    list_t *list = arg;
    rd_ucx_sent(request, status, list->peer);
    free(list);
}

static rd_ucx_message_t *unannounced(rd_ucx_gdr_t *d, uint64_t i)
{
    return &d->sends[(d->rts_sent + i) % RD_UCX_GDR_SLOTS];
}

/* Returns true if message `i` of those that are not announced yet needs no key of its own. */
static bool repeats(rd_ucx_gdr_t *d, uint64_t i)
{
    return i != 0 && unannounced(d, i)->key == unannounced(d, i - 1)->key;
}

static list_t *list_make(rd_ucx_peer_t *peer, uint64_t n, size_t *bytes)
{
    rd_ucx_gdr_t *d = peer->gdr;
    *bytes = n * sizeof(item_t);
    for (uint64_t i = 0; i < n; i++)
        *bytes += repeats(d, i) ? 0 : unannounced(d, i)->key->bytes;
    list_t *list = malloc(sizeof *list + *bytes);
    if (!list)
        return NULL;
    char *at = list->items;
    for (uint64_t i = 0; i < n; i++) {
        const rd_ucx_message_t *m = unannounced(d, i);
        item_t item = {.address = (uint64_t)(uintptr_t)m->ask.data,
                       .bytes = m->ask.bytes,
                       .key = repeats(d, i) ? 0 : (uint32_t)m->key->bytes};
        memcpy(at, &item, sizeof item);
        memcpy(at + sizeof item, m->key->packed, item.key);
        at += sizeof item + item.key;
    }
    list->peer = peer;
    rd_net_header_fill(&list->header, peer->base.net, 0, RD_NET_RTS, d->rts_sent, n);
    return list;
}

rondo_result_t rd_ucx_rts(rd_ucx_peer_t *peer)
{
    rd_ucx_gdr_t *d = peer->gdr;
    uint64_t n = d->sent - d->rts_sent;
    size_t bytes;
    int pending = 0;
    if (n == 0 || peer->base.lost_ms != 0) /* the verdict comes by the stop word */
        return RONDO_SUCCESS;
    list_t *list = list_make(peer, n, &bytes);
    if (!list) {
        return rd_stop_fail(peer->base.net->stop, peer->base.net->ctx, RONDO_ERR_NO_MEMORY, -1,
                            "no memory to announce messages between GPUs");
    }
    rondo_result_t result = rd_ucx_send(peer, &list->header, list->items, bytes, list_sent, list, &pending);
    for (uint64_t i = 0; i < n && peer->base.lost_ms == 0 && result == RONDO_SUCCESS; i++)
        rd_ucx_flies(unannounced(d, i), 1);
    d->rts_sent = d->sent;
    if (!pending)
        free(list);
    return result;
}

/* Handles an acknowledgement: the peer has these messages, a bit for each slot. */
const char *rd_ucx_ack(rd_ucx_peer_t *peer, const rd_net_header_t *h)
{
    rd_ucx_gdr_t *d = peer->gdr;
    if (!d || h->number != 0)
        return "nothing was offered";
    for (int i = 0; i < RD_UCX_GDR_SLOTS; i++)
        if (h->bytes >> i & 1 && (!d->sends[i].key || !d->sends[i].flying))
            return "it has fetched what was not offered, in all";
    for (int i = 0; i < RD_UCX_GDR_SLOTS; i++) {
        if (h->bytes >> i & 1) {
            rd_ucx_flies(&d->sends[i], 0);
            rd_ucx_rkey_release(rd_ucx_net_of(&peer->base), &d->sends[i].key);
            rd_ucx_over(&d->sends[i]);
        }
    }
    return NULL;
}

void rd_ucx_offers_back(rd_ucx_peer_t *peer, int announced)
{
    rd_ucx_gdr_t *d = peer->gdr;
    for (int i = 0; d && i < RD_UCX_GDR_SLOTS; i++) {
        if (d->sends[i].key && (announced || !d->sends[i].flying)) {
            rd_ucx_flies(&d->sends[i], 0);
            rd_ucx_rkey_release(rd_ucx_net_of(&peer->base), &d->sends[i].key);
        }
    }
    if (d)
        d->rts_sent = d->sent;
}

/* ---- the receiver */

/* Reads the message after the first `*at` bytes. Returns true if there is a whole one. */
static bool item_next(const char *data, size_t bytes, size_t *at, item_t *item, const char **key)
{
    if (bytes - *at < sizeof *item)
        return false;
    memcpy(item, data + *at, sizeof *item);
    *at += sizeof *item;
    if (item->zero != 0 || item->key > RD_UCX_KEY_MOST || item->key > bytes - *at)
        return false;
    *key = data + *at;
    *at += item->key;
    return true;
}

/* Returns true if its slot expects this message, and the sender knows that the slot's last message has arrived. */
static bool due(const rd_ucx_gdr_t *d, uint64_t number)
{
    uint64_t at = number % RD_UCX_GDR_SLOTS;
    const rd_ucx_message_t *m = &d->recvs[at];
    return m->number == number && !m->announced && !m->key && !m->flying && !(d->owed >> at & 1);
}

static const char *wrong_with(const rd_ucx_gdr_t *d, const rd_net_header_t *h, const char *data, size_t bytes)
{
    size_t at = 0;
    const char *key;
    item_t item;
    if (h->bytes == 0 || h->bytes > RD_UCX_OFFERS)
        return "it offers so many";
    for (uint64_t i = 0; i < h->bytes; i++) {
        if (!item_next(data, bytes, &at, &item, &key) || (i == 0 && item.key == 0))
            return "its list is not well-formed";
        if (!due(d, h->number + i))
            return "its number is not due";
    }
    return at == bytes ? NULL : "its length does not fit";
}

/* Returns the key of a message; `before` is the key of the message before. */
static rd_ucx_rkey_t *key_of(rd_ucx_peer_t *peer, const item_t *item, const char *key, rd_ucx_rkey_t *before)
{
    if (item->key != 0)
        return rd_ucx_rkey_of(rd_ucx_net_of(&peer->base), peer->gdr, key, item->key);
    before->users++;
    return before;
}

static void take(rd_ucx_peer_t *peer, uint64_t number, const item_t *item, rd_ucx_rkey_t *key)
{
    rd_ucx_message_t *m = &peer->gdr->recvs[number % RD_UCX_GDR_SLOTS];
    m->header.bytes = item->bytes;
    m->address = item->address;
    m->key = key;
    if (m->ask.pending)
        (void)rd_ucx_get(m); /* a failure is the communicator's */
}

const char *rd_ucx_offered(rd_ucx_peer_t *peer, const rd_net_header_t *h, const char *data, size_t bytes)
{
    rd_ucx_net_t *net = rd_ucx_net_of(&peer->base);
    rd_ucx_gdr_t *d = rd_ucx_gdr_of(peer);
    rd_ucx_rkey_t *key = NULL;
    const char *packed, *wrong = d ? wrong_with(d, h, data, bytes) : NULL;
    size_t at = 0;
    item_t item;
    if (net->leaving || wrong)
        return net->leaving ? NULL : wrong;
    if (!d) {
        rd_stop_fail(net->base.stop, net->base.ctx, RONDO_ERR_NO_MEMORY, -1, "no memory for messages between GPUs");
        return NULL;
    }
    for (uint64_t i = 0; i < h->bytes && item_next(data, bytes, &at, &item, &packed); i++) {
        key = key_of(peer, &item, packed, key);
        if (!key) {
            rd_stop_fail(net->base.stop, net->base.ctx, RONDO_ERR_NO_MEMORY, -1, "no memory for messages between GPUs");
            break;
        }
        take(peer, h->number + i, &item, key);
    }
    net->base.progressed = 1;
    return NULL;
}

/* A message has arrived: the peer may free its memory, and will be told so soon. */
static void there(rd_ucx_message_t *m)
{
    rd_ucx_rkey_release(rd_ucx_net_of(&m->peer->base), &m->key);
    m->peer->gdr->owed |= UINT64_C(1) << m->number % RD_UCX_GDR_SLOTS;
    rd_ucx_net_of(&m->peer->base)->rndv_due = 1;
    rd_ucx_over(m);
}

static void got(void *request, ucs_status_t status, void *arg)
{
    rd_ucx_message_t *m = arg;
    rd_ucx_net_t *net = rd_ucx_net_of(&m->peer->base);
    net->outstanding--;
    m->peer->gdr->fetching--;
    rd_ucp.request_free(request);
    rd_ucx_flies(m, 0);
    if (status == UCS_OK) {
        there(m);
    } else {
        rd_ucx_rkey_release(net, &m->key);
        rd_ucx_peer_lost(m->peer, status);
    }
}

rondo_result_t rd_ucx_get(rd_ucx_message_t *m)
{
    rd_ucx_peer_t *peer = m->peer;
    rondo_result_t result = rd_ucx_lengths(m);
    if (result != RONDO_SUCCESS || peer->base.lost_ms != 0 || (result = rd_ucx_peer_connect(peer)) != RONDO_SUCCESS)
        return result;
    if (!peer->ep) /* the network is broken: the verdict comes by the stop word */
        return RONDO_SUCCESS;
    ucs_status_t status = rd_ucx_rkey_unpack(peer, m->key);
    if (status != UCS_OK) {
        rd_ucx_peer_lost(peer, status);
        return RONDO_SUCCESS;
    }
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                                 .memory_type = m->ask.device ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST,
                                 .cb = {.send = got},
                                 .user_data = m};
    ucs_status_ptr_t request = rd_ucp.get_nbx(peer->ep, m->ask.data, m->ask.bytes, m->address, m->key->rkey, &param);
    if (UCS_PTR_IS_ERR(request)) {
        rd_ucx_peer_lost(peer, UCS_PTR_STATUS(request));
    } else if (request) {
        rd_ucx_net_of(&peer->base)->outstanding++;
        peer->gdr->fetching++;
        rd_ucx_flies(m, 1);
    } else {
        there(m);
    }
    return RONDO_SUCCESS;
}

/* ---- both sides */

static void ack_sent(void *request, ucs_status_t status, void *arg)
{
    rd_ucx_peer_t *peer = arg;
    peer->gdr->acking = 0;
    rd_ucx_net_of(&peer->base)->rndv_due = 1;
    rd_ucx_sent(request, status, peer);
}

static void send_ack(rd_ucx_peer_t *peer)
{
    rd_ucx_gdr_t *d = peer->gdr;
    if (d->owed == 0 || d->acking || (d->fetching != 0 && __builtin_popcountll(d->owed) < ACK_MOST))
        return;
    rd_net_header_fill(&d->ack, peer->base.net, 0, RD_NET_ACK, 0, d->owed);
    d->owed = 0;
    (void)rd_ucx_send(peer, &d->ack, NULL, 0, ack_sent, peer, &d->acking);
}

void rd_ucx_rndv_advance(rd_ucx_net_t *net)
{
    if (!net->rndv_due)
        return;
    net->rndv_due = 0;
    for (rd_ucx_peer_t *p = rd_ucx_first(net); p; p = rd_ucx_next(p)) {
        if (p->gdr) {
            (void)rd_ucx_rts(p); /* a failure is the communicator's */
            send_ack(p);
        }
    }
}
