/* The door. Whoever can reach the port can connect, so a stranger may cost only a bounded share: one of 64 places, the
 * bytes of a hello, two seconds, or twenty if it has named this job. When the places are taken, one who has not goes
 * first, the oldest of them; a rank that loses its place under a flood tries again by itself. Everything is driven by
 * poll: no stranger, however slow, keeps the others waiting. */
#include "boot/listener.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>

#include "base/wait.h"

#define ACCEPTS 32 /* in one turn, so that a flood leaves time for those inside */

void rd_door_open(rd_door_t *d, int fd, const rd_creds_t *creds, const void *endpoint, size_t bytes,
                  const rd_hello_t *mine)
{
    memset(d, 0, sizeof(*d));
    d->fd = fd;
    d->creds = *creds;
    memcpy(d->endpoint, endpoint, bytes < RD_ENDPOINT ? bytes : RD_ENDPOINT);
    d->mine = *mine;
}

static void take_out(rd_door_t *d, int i)
{
    d->nstrangers--;
    memmove(d->stranger + i, d->stranger + i + 1, (size_t)(d->nstrangers - i) * sizeof(d->stranger[0]));
}

static void drop(rd_door_t *d, int i)
{
    rd_chan_free(d->stranger[i]);
    take_out(d, i);
}

void rd_door_close(rd_door_t *d)
{
    while (d->nstrangers)
        drop(d, d->nstrangers - 1);
}

int rd_door_fill(const rd_door_t *d, struct pollfd *p)
{
    p[0] = (struct pollfd){.fd = d->fd, .events = POLLIN};
    for (int i = 0; i < d->nstrangers; i++)
        p[i + 1] = (struct pollfd){.fd = d->stranger[i]->fd, .events = rd_chan_events(d->stranger[i])};
    return d->nstrangers + 1;
}

static bool is_late(const rd_chan_t *c, int64_t now)
{
    return c->state != RD_CHAN_OPEN && now - c->since_ms > (c->state == RD_CHAN_PROOF ? RD_DOOR_PROOF_MS : RD_DOOR_MS);
}

static void make_room(rd_door_t *d)
{
    int victim = 0;
    for (int i = d->nstrangers - 1; i >= 0; i--)
        if (d->stranger[i]->state == RD_CHAN_HELLO)
            victim = i;
    drop(d, victim);
}

/* Without a free descriptor accept fails also where it would have found nobody. */
static bool somebody_waits(const rd_door_t *d)
{
    struct pollfd p = {.fd = d->fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* False: nobody waits there. */
static bool let_in(rd_door_t *d)
{
    int fd = rd_sock_accept(d->fd);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && d->nstrangers && somebody_waits(d)) {
        make_room(d);
        fd = rd_sock_accept(d->fd);
    }
    if (fd < 0)
        return errno == ECONNABORTED || errno == EINTR;
    if (d->nstrangers == RD_DOOR_MOST)
        make_room(d);
    rd_chan_t *c = rd_chan_server(fd, &d->creds, d->endpoint, RD_ENDPOINT, &d->mine);
    if (c)
        d->stranger[d->nstrangers++] = c;
    if (c)
        rd_chan_pump(c); /* a rank's hello is usually there already: it is answered before the next one is let in */
    return true;
}

void rd_door_pump(rd_door_t *d)
{
    int64_t now = rd_clock_ms();
    for (int i = d->nstrangers - 1; i >= 0; i--) {
        rd_chan_t *c = d->stranger[i];
        rd_chan_pump(c);
        d->poor |= c->poor;
        if (c->state == RD_CHAN_DEAD || is_late(c, now))
            drop(d, i);
    }
    for (int i = 0; i < ACCEPTS && let_in(d); i++)
        ;
}

rd_chan_t *rd_door_next(rd_door_t *d)
{
    for (int i = 0; i < d->nstrangers; i++) {
        rd_chan_t *c = d->stranger[i];
        if (c->state != RD_CHAN_OPEN)
            continue;
        take_out(d, i);
        return c;
    }
    return NULL;
}
