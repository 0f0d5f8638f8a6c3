/* See shm.h; conns.h draws the layout of a rank's segment. */
#include "transport/shm/shm.h"

#include <stdlib.h>

#include "transport/conns.h"

typedef struct shm {
    rd_transport_t base;
    const rd_node_t *node;
    const rd_layout_t *layout;
} shm_t;

static int member_of(const rd_node_t *node, int rank)
{
    int m = 0;

    while (node->local[m] != rank)
        m++;
    return m;
}

/* Returns the inbox at member `to` for what member `from` sends it; a member has no inbox for itself. */
static char *inbox_at(const shm_t *shm, int to, int from, int channel)
{
    size_t number = (size_t)(from < to ? from : from - 1) * RD_CHANNELS + (size_t)channel;

    return shm->node->base + (size_t)to * shm->node->segment_bytes + shm->layout->inboxes +
           number * shm->layout->inbox_bytes;
}

/* Returns the credits at member `at` for what it sends to member `peer`. */
static rd_counter_t *credits_at(const rd_node_t *node, int at, int peer, int channel)
{
    char *segment = node->base + (size_t)at * node->segment_bytes;

    return (rd_counter_t *)(segment + sizeof(rd_control_t)) + 2 * ((size_t)peer * RD_CHANNELS + (size_t)channel);
}

static rondo_result_t create(rd_transport_t **transport, const rd_transport_args_t *args)
{
    shm_t *shm = malloc(sizeof *shm);

    if (!shm)
        return rd_error(args->ctx, RONDO_ERR_NO_MEMORY, "no memory for the connections of %d ranks", args->nranks);
    *shm = (shm_t){.base = {.ops = &rd_transport_shm}, .node = args->node, .layout = &args->conns->layout};
    *transport = &shm->base;
    return RONDO_SUCCESS;
}

static rondo_result_t bind_send(rd_transport_t *transport, int peer, int channel, rd_send_t *send)
{
    const shm_t *shm = (const shm_t *)transport;
    int self = shm->node->self, member = member_of(shm->node, peer);

    rd_send_lay(send, shm->layout, inbox_at(shm, member, self, channel), credits_at(shm->node, self, member, channel),
                peer);
    return RONDO_SUCCESS;
}

static rondo_result_t bind_recv(rd_transport_t *transport, int peer, int channel, rd_recv_t *recv)
{
    const shm_t *shm = (const shm_t *)transport;
    int self = shm->node->self, member = member_of(shm->node, peer);

    rd_recv_lay(recv, shm->layout, inbox_at(shm, self, member, channel), credits_at(shm->node, member, self, channel),
                peer);
    return RONDO_SUCCESS;
}

static void destroy(rd_transport_t *transport)
{
    free(transport);
}

const rd_transport_ops_t rd_transport_shm = {.name = "shm",
                                             .reach = RD_WITHIN_NODE,
                                             .create = create,
                                             .bind_send = bind_send,
                                             .bind_recv = bind_recv,
                                             .destroy = destroy};
