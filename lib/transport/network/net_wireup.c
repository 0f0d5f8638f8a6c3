/* Wireup: while the communicator is made, ranks greet those of other nodes and wait for their greetings.
 *
 * Connecting on first use would do, and is what large communicators do. But after the wireup no connection is half
 * made, the first operation takes no longer than the second, and two hosts that cannot reach each other are found while
 * that can still be reported plainly.
 *
 * In a large communicator one rank may wait for another although the two have never met. A rank that then leaves does
 * not know that another waits for it. So a rank that has waited for a while greets the other one (the operation
 * `seek`), and gets an answer: a greeting, a farewell, or a connection that fails because nobody listens any more. */
#include "transport/network/network.h"

#include <unistd.h>

#define MEET_MOST 64     /* the most ranks; larger communicators connect on first use */
#define NEWS_EVERY_MS 10 /* of the bootstrap, during the wireup */

bool rd_net_wires_all(const rd_net_t *net)
{
    return net->nranks <= MEET_MOST;
}

/* Returns the first remote rank with which the wireup is not complete; -1: there is none. */
static int missing(const rd_net_t *net)
{
    for (int r = 0; r < net->nranks; r++) {
        const rd_net_peer_t *peer = rd_net_peer(net, r);
        if (peer->remote && !(peer->greeted && peer->settled))
            return r;
    }
    return -1;
}

/* A rank whose process has ended, or runs another program by exec, may still be there for the library: by sockets that
 * a child of it holds, or that are made close-on-exec only when all are open (rd_fd_close_on_exec). Those of the
 * bootstrap are from the beginning. */
static rondo_result_t news(const rd_net_t *net, int64_t *asked_ms)
{
    int64_t now = rd_clock_ms();

    if (now - *asked_ms < NEWS_EVERY_MS)
        return RONDO_SUCCESS;
    *asked_ms = now;
    return rd_boot_check(net->boot);
}

rondo_result_t rd_net_why_unreached(const rd_net_t *net)
{
    const int64_t until = rd_clock_ms() + RD_NET_GRACE_MS;
    rondo_result_t result;

    while ((result = rd_boot_check(net->boot)) == RONDO_SUCCESS && rd_clock_ms() < until)
        usleep(1000);
    return result;
}

static rondo_result_t greet_all(rd_net_t *net, const rd_env_t *env)
{
    int64_t asked_ms = rd_clock_ms();
    rd_wait_t wait;
    rondo_result_t result = rd_stop_get(net->stop);
    int rank = -1;
    for (int r = 0; r < net->nranks; r++)
        if (rd_net_peer(net, r)->remote)
            net->library->greet(rd_net_peer(net, r));
    rd_wait_begin(&wait, net->stop, 0, env->create_timeout_ms);
    while (result == RONDO_SUCCESS && (rank = missing(net)) >= 0) {
        if (rd_transport_progress(&net->transport))
            continue;
        result = rd_wait_backoff(&wait);
        if (result == RONDO_IN_PROGRESS) {
            rd_log(net->ctx, RD_LOG_WARN, "still waiting for rank %d (%s) to be reached over the network", rank,
                   rd_boot_whois(net->boot, rank));
            result = RONDO_SUCCESS;
        }
        if (result == RONDO_SUCCESS)
            result = news(net, &asked_ms);
    }
    if (result != RONDO_ERR_TIMEOUT || rd_stop_get(net->stop) != RONDO_SUCCESS) /* another rank's time is over */
        return result;
    return rd_error(net->ctx, RONDO_ERR_TIMEOUT,
                    "rank %d (%s) was not reached over the network within %lld ms: does a firewall close the ports "
                    "between the hosts %s?",
                    rank, rd_boot_whois(net->boot, rank), (long long)env->create_timeout_ms, net->library->unreached);
}

/* Before the barrier at the end no messages come for which nothing is bound here yet. */
rondo_result_t rd_net_wireup(rd_net_t *net, const rd_env_t *env)
{
    if (!rd_net_wires_all(net))
        return RONDO_SUCCESS;
    net->greets = true;
    rondo_result_t result = greet_all(net, env);
    net->greets = false;
    return result == RONDO_SUCCESS || result == RONDO_ERR_TIMEOUT
               ? rd_boot_meet_waiters(net->boot, result, env->create_timeout_ms)
               : result;
}
