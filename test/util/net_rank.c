/* See net_rank.h. */
#include <stdlib.h>
#include <unistd.h>

#include "ucx/transport_ucx.h"
#include "util/net_rank.h"

int net_rank_meet(net_rank_t *r, net_id_t *id)
{
    atomic_store(&r->stop.failed_rank, -1);
    if (rd_env_read(&r->env)) {
        return 1;
    }
    if (r->ctx.rank == 0) {
        (void)rd_boot_id_create(&id->id, &r->env); /* carries the error on failure */
        atomic_store(&id->made, 1);
    }
    while (!atomic_load(&id->made)) {
        usleep(1000);
    }
    return rd_boot_create(&r->boot, &id->id, r->ctx.rank, r->ctx.nranks, &r->env, &r->ctx, &r->stop) != RONDO_SUCCESS;
}

int net_rank_join(net_rank_t *r)
{
    r->node = (rd_node_t){.nnodes = r->ctx.nranks, .node_of = malloc((size_t)r->ctx.nranks * sizeof(int))};
    if (r->node.node_of == NULL) {
        return 1;
    }
    for (int i = 0; i < r->ctx.nranks; i++) {
        r->node.node_of[i] = i;
    }
    const rd_transport_args_t args = {.rank = r->ctx.rank,
                                      .nranks = r->ctx.nranks,
                                      .node = &r->node,
                                      .env = &r->env,
                                      .boot = r->boot,
                                      .ctx = &r->ctx,
                                      .stop = &r->stop};
    return rd_transport_ucx.create(&r->net, &args) != RONDO_SUCCESS;
}

void net_rank_leave(net_rank_t *r)
{
    r->net->ops->destroy(r->net);
    rd_boot_destroy(r->boot);
    free(r->node.node_of);
}
