/* How a UCX network comes to outlive its communicator (transport/linger.h), and what is left of it then. */
#include <stdlib.h>
#include <string.h>

#include "ucx/ucx.h"

#define POLLS 1000 /* the most polls of the network in a turn */

/* A peer that greets the network meanwhile gets its farewell. */
static bool poll_one(rd_linger_t *linger)
{
    rd_ucx_net_t *net = linger->net;
    for (int i = 0; i < POLLS && rd_ucp.worker_progress(net->worker) != 0; i++)
        continue;
    rd_ucx_rndv_advance(net);
    rd_ucx_say_bye(net, 0);
    return !rd_ucx_unread(net);
}

static void end(rd_linger_t *linger)
{
    rd_ucx_end(linger->net);
}

/* Gives the communicator's and the user's memory back to them. */
static void detach(rd_linger_t *linger)
{
    rd_ucx_net_t *net = linger->net;
    rd_net_alone_t *alone = (rd_net_alone_t *)linger;
    alone->ctx = (rd_log_ctx_t){.rank = net->base.ctx->rank, .nranks = net->base.ctx->nranks};
    memcpy(alone->ctx.name, net->base.ctx->name, sizeof alone->ctx.name);
    for (int r = 0; r < net->base.nranks; r++) {
        for (int c = 0; c < rd_net_peer(&net->base, r)->nconns; c++) {
            if (rd_net_peer(&net->base, r)->conns[c]) {
                rd_net_peer(&net->base, r)->conns[c]->send = NULL;
                rd_net_peer(&net->base, r)->conns[c]->recv = NULL;
            }
        }
    }
    rd_ucx_gdr_free(net);
    net->base.ctx = &alone->ctx;
    net->base.stop = &alone->stop;
    net->base.boot = NULL;
    net->base.alone = alone;
}

bool rd_ucx_linger(rd_ucx_net_t *net)
{
    rd_net_alone_t *alone = calloc(1, sizeof *alone);
    if (!alone)
        return false;
    alone->linger =
        (rd_linger_t){.net = net, .left_ms = net->base.left_ms, .detach = detach, .poll = poll_one, .end = end};
    if (rd_linger_begin(&alone->linger))
        return true;
    free(alone);
    return false;
}
