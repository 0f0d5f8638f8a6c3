/* How a UCX network comes to outlive its communicator (transport/linger.h), and what is left of it then. */
#include "ucx/ucx.h"

#define POLLS 1000 /* the most polls of the network in a turn */

/* A peer that greets the network meanwhile gets its farewell. */
static bool poll_one(rd_linger_t *linger)
{
    rd_ucx_net_t *net = linger->net;
    for (int i = 0; i < POLLS && rd_ucx_poll(net) != 0; i++)
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
    rd_ucx_gdr_free(linger->net);
    rd_net_detach(linger);
}

bool rd_ucx_linger(rd_ucx_net_t *net)
{
    return rd_net_linger(&net->base, &(rd_linger_t){.detach = detach, .poll = poll_one, .end = end});
}
