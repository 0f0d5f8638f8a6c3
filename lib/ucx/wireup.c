/* Meeting: while the communicator is made, every rank greets every rank of other nodes and waits to be greeted.
 *
 * Connecting on first use would do, and is what large communicators do. But a connection that is being made is where
 * UCX is fragile: the UCX of Debian 12 ends the process when a worker is destroyed whose answer to somebody's first
 * message still waits for a connection, as when that somebody has just been stopped. After a meeting no connection is
 * half made, the first operation takes no longer than the second, and two hosts that cannot reach each other are found
 * while it can still be said plainly.
 *
 * In a large communicator two may wait for each other that have never met. Who then leaves does not know that it is
 * waited for. So who has waited for a while greets the other one: that is answered by a farewell, or by a connection
 * that fails because nobody listens any more. And who leaves looks at the network until that has been quiet for a
 * moment (disconnect.c), so that UCX's answer to who greets it just then gets away.
 *
 * What is left is the meeting itself: UCX 1.13 also ends the process (ucp_worker_discard_uct_ep) when the connection
 * under its first message breaks while that is being sent, so a rank that dies in this moment may take one on another
 * node with it. It was seen once in 800 trials of killing a rank during creation.
 */
#include "ucx/ucx.h"

#define MEET_MOST 64 /* ranks; larger communicators connect on first use */

int rd_ucx_wires_all(const rd_ucx_net_t *net)
{
    return net->nranks <= MEET_MOST;
}

static void greet(rd_ucx_net_t *net, rd_ucx_peer_t *peer)
{
    int pending;
    rd_ucx_header_fill(&peer->hello, net, 0, RD_UCX_HELLO, 0, 0);
    rd_ucx_send(peer, &peer->hello, NULL, 0, rd_ucx_sent, peer, &pending);
}

void rd_ucx_seek(rd_transport_t *transport, int rank)
{
    rd_ucx_net_t *net = rd_ucx_of(transport);
    rd_ucx_peer_t *peer = &net->peers[rank];
    if (peer->address && !peer->ep && !peer->left)
        greet(net, peer);
}

/* The first remote rank with which the meeting is not over; -1: none. */
static int missing(const rd_ucx_net_t *net)
{
    for (int r = 0; r < net->nranks; r++) {
        const rd_ucx_peer_t *peer = &net->peers[r];
        if (peer->address && !(peer->greeted && peer->settled))
            return r;
    }
    return -1;
}

static rondo_result_t greet_all(rd_ucx_net_t *net, const rd_env_t *env)
{
    rd_wait_t wait;
    rondo_result_t result = rd_stop_get(net->stop);
    int rank = -1;
    for (int r = 0; r < net->nranks; r++)
        if (net->peers[r].address)
            greet(net, &net->peers[r]);
    rd_wait_begin(&wait, net->stop, 0, env->create_timeout_ms);
    while (result == RONDO_SUCCESS && (rank = missing(net)) >= 0) {
        if (rd_ucx_progress(&net->base))
            continue;
        result = rd_wait_backoff(&wait);
        if (result == RONDO_IN_PROGRESS) {
            rd_log(net->ctx, RD_LOG_WARN, "still waiting for rank %d (%s) to be reached over the network", rank,
                   rd_boot_whois(net->boot, rank));
            result = RONDO_SUCCESS;
        }
    }
    if (result != RONDO_ERR_TIMEOUT)
        return result;
    return rd_stop_set(net->stop, net->ctx, RONDO_ERR_TIMEOUT, rank,
                       "rank %d (%s) was not reached over the network within %lld ms: does a firewall close the ports "
                       "between the hosts (RONDO_IFACE, RONDO_UCX_NET_DEVICES, RONDO_CREATE_TIMEOUT_MS)?",
                       rank, rd_boot_whois(net->boot, rank), (long long)env->create_timeout_ms);
}

/* The exchange at the end is the barrier: before it nobody's messages come, for which nothing is bound yet. */
rondo_result_t rd_ucx_wireup(rd_ucx_net_t *net, const rd_env_t *env)
{
    unsigned char all[MEET_MOST] = {0};
    if (!rd_ucx_wires_all(net))
        return RONDO_SUCCESS;
    rondo_result_t result = greet_all(net, env);
    all[net->rank] = 1;
    return result == RONDO_SUCCESS ? rd_boot_allgather(net->boot, all, 1) : result;
}
