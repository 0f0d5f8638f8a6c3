/* The listener. Anybody who can reach the port can connect, so a connection that is not yet authenticated may cost only
 * a bounded share: one of 64 places, the bytes of a hello, and two seconds, or twenty if it has named this job. When
 * all places are taken, the oldest connection that has not named the job is dropped; a rank that loses its place under
 * a flood tries again by itself. Everything is driven by poll: no connection, however slow, keeps the others waiting.
 */
#include "boot/listener.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>

#include "base/wait.h"

#define REFUSALS 3 /* in a row: then it is no firewall that refuses one connection */
#define ACCEPTS 32 /* in one turn, so that a flood leaves time for the connections that were accepted before */

void rd_listener_open(rd_listener_t *d, int fd, const rd_creds_t *creds, const void *endpoint, size_t bytes,
                      const rd_hello_t *mine)
{
    memset(d, 0, sizeof(*d));
    d->fd = fd;
    d->creds = *creds;
    memcpy(d->endpoint, endpoint, bytes < RD_ENDPOINT ? bytes : RD_ENDPOINT);
    d->mine = *mine;
}

static void take_out(rd_listener_t *d, int i)
{
    d->npending--;
    memmove(d->pending + i, d->pending + i + 1, (size_t)(d->npending - i) * sizeof(d->pending[0]));
}

static void drop(rd_listener_t *d, int i)
{
    rd_chan_free(d->pending[i]);
    take_out(d, i);
}

void rd_listener_close(rd_listener_t *d)
{
    while (d->npending)
        drop(d, d->npending - 1);
}

int rd_listener_fill(const rd_listener_t *d, struct pollfd *p)
{
    p[0] = (struct pollfd){.fd = d->fd, .events = POLLIN};
    for (int i = 0; i < d->npending; i++)
        p[i + 1] = (struct pollfd){.fd = d->pending[i]->fd, .events = rd_chan_events(d->pending[i])};
    return d->npending + 1;
}

static bool is_late(const rd_chan_t *c, int64_t now)
{
    return c->state != RD_CHAN_OPEN &&
           now - c->since_ms > (c->state == RD_CHAN_PROOF ? RD_LISTENER_PROOF_MS : RD_LISTENER_MS);
}

static void make_room(rd_listener_t *d)
{
    int victim = 0;
    for (int i = d->npending - 1; i >= 0; i--)
        if (d->pending[i]->state == RD_CHAN_HELLO)
            victim = i;
    drop(d, victim);
}

/* Without a free descriptor accept fails even if no connection is waiting. */
static bool somebody_waits(const rd_listener_t *d)
{
    struct pollfd p = {.fd = d->fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* Returns false if no connection is waiting. */
static bool let_in(rd_listener_t *d)
{
    int fd = rd_sock_accept(d->fd), error = errno;
    bool waits = fd < 0 && rd_fd_none_left(error) && somebody_waits(d);
    if (waits && !d->error) { /* its owner may find some; if not, the error is still set when it comes again */
        d->error = error;
        return false;
    }
    d->refusals = fd < 0 && rd_fd_refused(error) ? d->refusals + 1 : 0;
    if (d->refusals == REFUSALS)
        d->error = error;
    if (waits && d->npending) {
        make_room(d);
        fd = rd_sock_accept(d->fd);
        error = errno;
    }
    if (fd < 0)
        return error == ECONNABORTED || error == EINTR;
    if (d->npending == RD_LISTENER_MOST)
        make_room(d);
    rd_chan_t *c = rd_chan_server(fd, &d->creds, d->endpoint, RD_ENDPOINT, &d->mine);
    if (!c) {
        d->poor = 1;
        return false;
    }
    d->pending[d->npending++] = c;
    rd_chan_pump(c); /* a rank's hello has usually arrived already: it is answered before the next one is accepted */
    return true;
}

void rd_listener_pump(rd_listener_t *d)
{
    int64_t now = rd_clock_ms();
    for (int i = d->npending - 1; i >= 0; i--) {
        rd_chan_t *c = d->pending[i];
        rd_chan_pump(c);
        d->poor |= c->poor;
        if (c->state == RD_CHAN_DEAD || is_late(c, now))
            drop(d, i);
    }
    for (int i = 0; i < ACCEPTS && let_in(d); i++)
        ;
}

rd_chan_t *rd_listener_next(rd_listener_t *d)
{
    for (int i = 0; i < d->npending; i++) {
        rd_chan_t *c = d->pending[i];
        if (c->state != RD_CHAN_OPEN)
            continue;
        take_out(d, i);
        return c;
    }
    return NULL;
}
