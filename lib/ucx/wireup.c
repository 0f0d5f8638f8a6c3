/* Wireup: while the communicator is made, every rank greets every rank of other nodes and waits for its greeting.
 *
 * Connecting on first use would do, and is what large communicators do. But UCX is fragile while a connection is being
 * made: the UCX of Debian 12 ends the process when a worker is destroyed whose answer to a peer's first message still
 * waits for a connection, for instance because that peer has just been stopped. After the wireup no connection is half
 * made, the first operation takes no longer than the second, and two hosts that cannot reach each other are found while
 * that can still be reported plainly.
 *
 * In a large communicator one rank may wait for another although the two have never met. A rank that then leaves does
 * not know that another waits for it. So a rank that has waited for a while greets the other one, and gets an answer: a
 * farewell, or a connection that fails because nobody listens any more. And a rank that leaves polls the network until
 * that has been quiet for a moment (disconnect.c), so that UCX's answer to a greeting that comes just then is sent.
 *
 * The wireup itself remains a risk: a rank that dies in this moment may take a rank on another node with it. UCX 1.13
 * ends the process (ucp_worker_discard_uct_ep) when the connection breaks while its first message is being sent: once
 * in 800 trials of killing a rank during creation. And UCX 1.13 to 1.22 do when the peer has connected, and dies before
 * this side, which then uses that connection, has answered on it: the endpoint is given up (uct_tcp_ep_connect, by
 * uct_tcp_ep_set_failed), is marked as in use all the same, and UCX's assertion (uct_tcp_ep_destroy_progress), which
 * distributions leave in, finds the mark. That was 6 times in 3,900 trials of two deaths, six at a time on two cores.
 */
#include "ucx/ucx.h"

#define MEET_MOST 64     /* the most ranks; larger communicators connect on first use */
#define NEWS_EVERY_MS 10 /* of the bootstrap, during the wireup */

bool rd_ucx_wires_all(const rd_ucx_net_t *net)
{
    return net->base.nranks <= MEET_MOST;
}

static void greet(rd_ucx_net_t *net, rd_ucx_peer_t *peer)
{
    int pending;
    rd_net_header_fill(&peer->hello, &net->base, 0, RD_NET_HELLO, 0, 0);
    rd_ucx_send(peer, &peer->hello, NULL, 0, rd_ucx_sent, peer, &pending);
}

void rd_ucx_seek(rd_transport_t *transport, int rank)
{
    rd_ucx_net_t *net = rd_ucx_of(transport);
    rd_ucx_peer_t *peer = rd_ucx_peer(net, rank);
    if (peer->address && !peer->ep && !peer->base.left)
        greet(net, peer);
}

/* Returns the first remote rank with which the wireup is not complete; -1: there is none. */
static int missing(const rd_ucx_net_t *net)
{
    for (int r = 0; r < net->base.nranks; r++) {
        const rd_ucx_peer_t *peer = rd_ucx_peer(net, r);
        if (peer->address && !(peer->base.greeted && peer->base.settled))
            return r;
    }
    return -1;
}

/* A rank whose process has ended, or runs another program by exec, may still be there for UCX: its sockets are made
 * close-on-exec when all are open (rd_fd_close_on_exec). Those of the bootstrap are from the beginning. */
static rondo_result_t news(const rd_ucx_net_t *net, int64_t *asked_ms)
{
    int64_t now = rd_clock_ms();

    if (now - *asked_ms < NEWS_EVERY_MS)
        return RONDO_SUCCESS;
    *asked_ms = now;
    return rd_boot_check(net->base.boot);
}

static rondo_result_t greet_all(rd_ucx_net_t *net, const rd_env_t *env)
{
    int64_t asked_ms = rd_clock_ms();
    rd_wait_t wait;
    rondo_result_t result = rd_stop_get(net->base.stop);
    int rank = -1;
    for (int r = 0; r < net->base.nranks; r++)
        if (rd_ucx_peer(net, r)->address)
            greet(net, rd_ucx_peer(net, r));
    rd_wait_begin(&wait, net->base.stop, 0, env->create_timeout_ms);
    while (result == RONDO_SUCCESS && (rank = missing(net)) >= 0) {
        if (rd_ucx_progress(&net->base.transport))
            continue;
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
    return rd_stop_set(
        net->base.stop, net->base.ctx, RONDO_ERR_TIMEOUT, rank,
        "rank %d (%s) was not reached over the network within %lld ms: does a firewall close the ports "
        "between the hosts (RONDO_IFACE, RONDO_UCX_NET_DEVICES, RONDO_CREATE_TIMEOUT_MS), or lacks UCX memory "
        "on one of them (`ulimit -v`, `ulimit -d`)?",
        rank, rd_boot_whois(net->base.boot, rank), (long long)env->create_timeout_ms);
}

/* The exchange at the end is the barrier: before it no messages come for which nothing is bound here yet. */
rondo_result_t rd_ucx_wireup(rd_ucx_net_t *net, const rd_env_t *env)
{
    unsigned char all[MEET_MOST] = {0};
    if (!rd_ucx_wires_all(net))
        return RONDO_SUCCESS;
    rondo_result_t result = greet_all(net, env);
    all[net->base.rank] = 1;
    return result == RONDO_SUCCESS ? rd_boot_allgather(net->base.boot, all, 1) : result;
}
