/* A rank whose connection was lost, as by a firewall that has forgotten it, may live, and nothing tells when it ends.
 * While a meeting waits for it, a rank that dialled it at its creation dials it again, where it listens. As long as
 * that connection is there, so is the rank; when it ends, there is another one. Only a refusal says that the rank is
 * not there any more, as in the agreement of a shrink (boot/agree_shrink.h): a rank listens until it leaves or ends. A
 * rank that cannot be dialled, or lets the connection wait, is waited for. */
#include <errno.h>
#include <poll.h>

#include "boot/sock.h"
#include "transport/liveness_int.h"

int rd_redial_add(rd_liveness_t *w, int rank)
{
    for (int i = 0; i < w->nredials; i++)
        if (w->redial[i].rank == rank)
            return 0;
    if (w->nredials == RD_MOST_REDIALS || !rd_boot_has_dialled(w->boot, rank))
        return 0;
    w->redial[w->nredials++] = (rd_redial_t){.rank = rank, .fd = -1};
    return 1;
}

static void hang_up(rd_redial_t *d)
{
    rd_fd_close(d->fd);
    d->fd = -1;
    d->answered = false;
}

int rd_redials_end(rd_liveness_t *w)
{
    int n = w->nredials;

    for (int i = 0; i < n; i++)
        hang_up(&w->redial[i]);
    w->nredials = 0;
    return n;
}

/* Returns true if nobody listens there. */
static bool is_refused(const rd_liveness_t *w, rd_redial_t *d)
{
    struct pollfd p = {.events = d->answered ? POLLIN : POLLOUT};

    if (d->fd < 0)
        d->fd = rd_boot_dial(w->boot, d->rank);
    if (d->fd < 0)
        return errno == ECONNREFUSED;
    p.fd = d->fd;
    if (poll(&p, 1, 0) <= 0)
        return false;
    const int error = rd_sock_error(d->fd);
    if (!error && !d->answered) {
        d->answered = true;
        return false;
    }
    hang_up(d);
    return error == ECONNREFUSED;
}

void rd_redials_turn(rd_liveness_t *w)
{
    for (int i = 0; i < w->nredials; i++) {
        rd_redial_t *d = &w->redial[i];
        if (w->gone[d->rank] != RD_HERE || !rd_meetings_await(w, d->rank))
            hang_up(d);
        else if (is_refused(w, d))
            rd_meetings_miss(w, d->rank);
    }
}
