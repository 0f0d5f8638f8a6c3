/* Lifelines: connections that no child can hold.
 *
 * A neighbour on another node is known to be gone when its connection ends. But a process made by a bare clone, which
 * no fork handler sees, holds copies of all descriptors, and while it lives none of them ends. A lifeline is a second
 * connection to the same neighbour. Nothing is ever sent on it; its descriptor is in the table of a thread of its own
 * (transport/keeper.h), of which a child gets no copy. So it ends when the process does, and not before: a rank that is
 * stopped, in a debugger say, is not taken for dead, as it would be by a heartbeat that its threads have to answer.
 * Only an end in order says so: one that is reset, or has timed out, says nothing of the process, and there is none any
 * more.
 *
 * They are made once all ranks have listeners and know who is where: each rank dials the neighbours that it has dialled
 * before, as far as they are on other nodes. */
#include "boot/boot_int.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "boot/listener.h"

#define AGAIN_MS 10 /* between two attempts to dial */

typedef struct lifelines {
    rd_boot_t *b;
    const bool *far;
    rd_chan_t *to_above[RD_BOOT_ROUNDS], *from_below[RD_BOOT_ROUNDS];
    int64_t again_ms[RD_BOOT_ROUNDS];
    rd_listener_t incoming;
} lifelines_t;

static rd_hello_t hello(const rd_boot_t *b, int slot)
{
    return (rd_hello_t){.purpose = RD_FOR_LIFELINE, .rank = b->rank, .nranks = b->nranks, .slot = slot};
}

/* Dials, or goes on with it. A server that closes early may only have been flooded, so it is dialled again. */
static rondo_result_t dial(lifelines_t *l, int k)
{
    rd_boot_t *b = l->b;
    int rank = b->from[k].rank;
    const rd_hello_t mine = hello(b, k);

    if (l->to_above[k])
        rd_chan_pump(l->to_above[k]);
    if (l->to_above[k] && rd_chan_over(l->to_above[k])) {
        rd_chan_free(l->to_above[k]);
        l->to_above[k] = NULL;
        l->again_ms[k] = rd_clock_ms() + AGAIN_MS;
    }
    if (l->to_above[k] || rd_clock_ms() < l->again_ms[k])
        return RONDO_SUCCESS;
    int fd = rd_sock_connect(&b->addrs[rank]);
    if (fd < 0 && rd_fd_none_left(errno))
        return rd_error(b->ctx, RONDO_ERR_SYSTEM, "cannot connect to rank %d (%s): %s", rank, rd_boot_whois(b, rank),
                        rd_fd_strerror(errno));
    l->again_ms[k] = rd_clock_ms() + AGAIN_MS;
    if (fd < 0)
        return RONDO_SUCCESS;
    l->to_above[k] = rd_chan_client(fd, &b->creds, &b->addrs[rank], sizeof(rd_addr_t), &mine);
    return l->to_above[k] ? RONDO_SUCCESS : rd_error(b->ctx, RONDO_ERR_NO_MEMORY, "no memory for a connection");
}

static rondo_result_t let_in(lifelines_t *l)
{
    rd_boot_t *b = l->b;

    rd_listener_pump(&l->incoming);
    if (l->incoming.error && l->incoming.npending == 0)
        return rd_error(b->ctx, RONDO_ERR_SYSTEM, "cannot accept the connections of the other ranks (accept4): %s",
                        rd_fd_strerror(l->incoming.error));
    if (l->incoming.poor)
        return rd_error(b->ctx, RONDO_ERR_NO_MEMORY, "no memory for the connections to the other ranks");
    for (rd_chan_t *c; (c = rd_listener_next(&l->incoming));) {
        int k = c->theirs.slot;
        if (c->theirs.purpose != RD_FOR_LIFELINE || k < 0 || k >= b->rounds || c->theirs.rank != b->to[k].rank ||
            c->theirs.nranks != b->nranks) {
            rd_chan_free(c);
            continue;
        }
        rd_chan_free(l->from_below[k]); /* it has dialled again */
        l->from_below[k] = c;
    }
    return RONDO_SUCCESS;
}

static bool is_there(rd_chan_t *c)
{
    return c && c->state == RD_CHAN_OPEN && !rd_chan_queued(c);
}

/* Returns a rank whose lifeline is missing; -1: none is. One that has made its own may have left already. */
static int missing(const lifelines_t *l)
{
    const rd_boot_t *b = l->b;

    for (int k = 0; k < b->rounds; k++) {
        if (l->far[b->from[k].rank] && !is_there(l->to_above[k]) && !b->from[k].left)
            return b->from[k].rank;
        if (l->far[b->to[k].rank] && !is_there(l->from_below[k]) && !b->to[k].left)
            return b->to[k].rank;
    }
    return -1;
}

static void sleep_until_news(lifelines_t *l)
{
    struct pollfd p[2 * RD_BOOT_ROUNDS + RD_LISTENER_POLLS];
    int n = 0, again = 0;

    for (int k = 0; k < l->b->rounds; k++) {
        rd_chan_t *c = l->to_above[k];
        again |= l->far[l->b->from[k].rank] && !c;
        if (c && !is_there(c))
            p[n++] = (struct pollfd){.fd = c->fd, .events = rd_chan_events(c)};
    }
    n += rd_listener_fill(&l->incoming, p + n);
    rd_sock_poll(p, (nfds_t)n, again ? AGAIN_MS : RD_BOOT_SLICE_MS);
}

static rondo_result_t check(lifelines_t *l, int64_t deadline_ms)
{
    rd_boot_t *b = l->b;
    int rank = missing(l);
    rondo_result_t code = rd_boot_check(b);

    if (code || (code = rd_stop_get(b->stop)))
        return code;
    if (rank < 0 || !deadline_ms || rd_clock_ms() < deadline_ms)
        return RONDO_SUCCESS;
    return rd_error(b->ctx, RONDO_ERR_TIMEOUT,
                    "rank %d (%s) made no second connection within %lld ms "
                    "(RONDO_CREATE_TIMEOUT_MS)",
                    rank, rd_boot_whois(b, rank), (long long)b->patience.ms);
}

static rondo_result_t turn(lifelines_t *l)
{
    rondo_result_t code = let_in(l);

    for (int k = 0; k < l->b->rounds && !code; k++)
        if (l->far[l->b->from[k].rank] && !is_there(l->to_above[k]))
            code = dial(l, k);
    return code;
}

/* Takes the descriptor out of a channel. */
static void keep(rd_boot_t *b, rd_chan_t **c, int rank, bool wanted)
{
    if (wanted && is_there(*c)) {
        rd_sock_keep_open((*c)->fd);
        b->lifeline[b->nlifelines++] = (rd_lifeline_t){(*c)->fd, rank};
        (*c)->fd = -1;
    }
    rd_chan_free(*c);
    *c = NULL;
}

rondo_result_t rd_boot_lifelines(rd_boot_t *b, const bool *far)
{
    lifelines_t l = {.b = b, .far = far};
    const rd_hello_t mine = hello(b, 0);
    int64_t deadline_ms = b->patience.ms > 0 ? rd_clock_ms() + b->patience.ms : 0;
    rondo_result_t code = RONDO_SUCCESS;

    if (missing(&l) < 0)
        return RONDO_SUCCESS;
    rd_listener_open(&l.incoming, b->listener, &b->creds, &b->addr, sizeof(b->addr), &mine);
    while (!(code = turn(&l)) && missing(&l) >= 0 && !(code = check(&l, deadline_ms)))
        sleep_until_news(&l);
    rd_listener_close(&l.incoming);
    for (int k = 0; k < b->rounds; k++) {
        keep(b, &l.to_above[k], b->from[k].rank, !code);
        keep(b, &l.from_below[k], b->to[k].rank, !code);
    }
    return code;
}

int rd_boot_take_lifelines(rd_boot_t *b, int *fds, int *ranks, int most)
{
    int n = 0;

    while (n < most && b->nlifelines > 0) {
        b->nlifelines--;
        fds[n] = b->lifeline[b->nlifelines].fd;
        ranks[n++] = b->lifeline[b->nlifelines].rank;
    }
    return n;
}

bool rd_boot_has_dialled(const rd_boot_t *b, int rank)
{
    for (int k = 0; k < b->rounds; k++)
        if (b->from[k].rank == rank)
            return true;
    return false;
}

int rd_boot_dial(const rd_boot_t *b, int rank)
{
    int fd = rd_sock_connect(&b->addrs[rank]);

    if (fd >= 0)
        rd_sock_heartbeat(fd, false);
    return fd;
}
