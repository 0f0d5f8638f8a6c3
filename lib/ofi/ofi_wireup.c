/* Wireup: while the communicator is made, every rank greets every rank of other nodes and waits for its greeting.
 *
 * Connecting on first use would do, and is what large communicators do. But after the wireup no connection is half
 * made, the first operation takes no longer than the second, and two hosts that cannot reach each other are found while
 * that can still be reported plainly. Of two ranks the lower one begins, so that there is one connection and not two
 * that cross.
 *
 * In a large communicator one rank may wait for another although the two have never met. A rank that then leaves does
 * not know that another waits for it. So a rank that has waited for a while greets the other one, and gets an answer: a
 * greeting, a farewell, or a connection that fails because nobody listens any more. */
#include "ofi/ofi.h"

#define MEET_MOST 64     /* the most ranks; larger communicators connect on first use */
#define NEWS_EVERY_MS 10 /* of the bootstrap, during the wireup */

bool rd_ofi_wires_all(const rd_ofi_net_t *net)
{
    return net->base.nranks <= MEET_MOST;
}

void rd_ofi_greet(rd_ofi_peer_t *peer, bool answer)
{
    rd_ofi_say(peer, RD_NET_HELLO, answer, 0);
}

void rd_ofi_seek(rd_transport_t *transport, int rank)
{
    rd_ofi_peer_t *peer = rd_ofi_peer(rd_ofi_of(transport), rank);
    if (peer->base.remote && !peer->base.used)
        rd_ofi_greet(peer, false);
}

/* Returns the first remote rank with which the wireup is not complete; -1: there is none. */
static int missing(const rd_ofi_net_t *net)
{
    for (int r = 0; r < net->base.nranks; r++) {
        const rd_ofi_peer_t *peer = rd_ofi_peer(net, r);
        if (peer->base.remote && (!peer->base.greeted || peer->pending != 0))
            return r;
    }
    return -1;
}

/* A rank whose process has ended may still be there for libfabric, by sockets that a child of it holds. */
static rondo_result_t news(const rd_ofi_net_t *net, int64_t *asked_ms)
{
    int64_t now = rd_clock_ms();

    if (now - *asked_ms < NEWS_EVERY_MS)
        return RONDO_SUCCESS;
    *asked_ms = now;
    return rd_boot_check(net->base.boot);
}

static rondo_result_t greet_all(rd_ofi_net_t *net, const rd_env_t *env)
{
    int64_t asked_ms = rd_clock_ms();
    rd_wait_t wait;
    rondo_result_t result = rd_stop_get(net->base.stop);
    int rank = -1;
    for (int r = net->base.rank + 1; r < net->base.nranks; r++)
        if (rd_net_peer(&net->base, r)->remote)
            rd_ofi_greet(rd_ofi_peer(net, r), false);
    rd_wait_begin(&wait, net->base.stop, 0, env->create_timeout_ms);
    while (result == RONDO_SUCCESS && (rank = missing(net)) >= 0) {
        if (rd_ofi_poll(net))
            continue;
        if (net->base.nlost != 0)
            rd_net_judge_lost(&net->base);
        result = rd_wait_backoff(&wait);
        if (result == RONDO_IN_PROGRESS) {
            rd_log(net->base.ctx, RD_LOG_WARN, "still waiting for rank %d (%s) to be reached over the network", rank,
                   rd_boot_whois(net->base.boot, rank));
            result = RONDO_SUCCESS;
        }
        if (result == RONDO_SUCCESS)
            result = news(net, &asked_ms);
    }
    if (result != RONDO_ERR_TIMEOUT)
        return result;
    return rd_stop_set(net->base.stop, net->base.ctx, RONDO_ERR_TIMEOUT, rank,
                       "rank %d (%s) was not reached over the network within %lld ms: does a firewall close the ports "
                       "between the hosts (RONDO_IFACE, RONDO_OFI_PROVIDER, RONDO_CREATE_TIMEOUT_MS)?",
                       rank, rd_boot_whois(net->base.boot, rank), (long long)env->create_timeout_ms);
}

/* The exchange at the end is the barrier: before it no messages come for which nothing is bound here yet. */
rondo_result_t rd_ofi_wireup(rd_ofi_net_t *net, const rd_env_t *env)
{
    unsigned char all[MEET_MOST] = {0};
    if (!rd_ofi_wires_all(net))
        return RONDO_SUCCESS;
    rondo_result_t result = greet_all(net, env);
    all[net->base.rank] = 1;
    return result == RONDO_SUCCESS ? rd_boot_allgather(net->base.boot, all, 1) : result;
}
