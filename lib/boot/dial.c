/* Dialling: see dial.h. */
#include "boot/dial.h"

#include <errno.h>

#include "base/wait.h"

#define RETRY_MS 5000 /* for how long a server that closes before the end of the handshake is dialled again */

void rd_dial_begin(rd_dial_t *d, const rd_addr_t *addr, const rd_hello_t *hello)
{
    *d = (rd_dial_t){.addr = *addr, .hello = *hello};
    d->cancel_ms = rd_clock_ms() + RETRY_MS;
}

void rd_dial_again(rd_dial_t *d)
{
    rd_chan_free(d->chan);
    d->chan = NULL;
    if (d->opened) /* a server is there */
        d->cancel_ms = rd_clock_ms() + RETRY_MS;
    d->closed |= d->opened;
    d->opened = 0;
    d->again_ms = rd_clock_ms() + (d->tries < 5 ? 1 << d->tries : 50);
    d->tries++;
}

/* Returns true if a connection that has ended so is worth another attempt. A server that closes early may only have
 * been flooded. One that has let this rank in and says nothing is the rendezvous before: its end is a reset, and not an
 * orderly one, if it has not read what this rank had to say. A port where nobody listens is given up. */
static bool is_dialled_again(const rd_dial_t *d, int error, bool opened)
{
    if (opened)
        return d->unheard && (error == ECONNRESET || error == EPIPE);
    return error == ECONNRESET || error == EPIPE || error == EPROTO;
}

int rd_dial_pump(rd_dial_t *d, const rd_creds_t *creds)
{
    int64_t now = rd_clock_ms();
    if (d->chan)
        rd_chan_pump(d->chan);
    if (d->chan && d->chan->state == RD_CHAN_DEAD) {
        int error = d->chan->error;
        bool again = is_dialled_again(d, error, d->opened);
        d->closed |= error == ECONNRESET || error == EPIPE; /* somebody was there to end it */
        rd_dial_again(d);
        if (!again || now > d->cancel_ms)
            return error ? error : EIO;
    }
    if (d->chan)
        d->opened |= d->chan->state == RD_CHAN_OPEN;
    if (d->chan || now < d->again_ms)
        return 0;
    int fd = rd_sock_connect(&d->addr);
    if (fd < 0)
        return errno;
    d->chan = rd_chan_client(fd, creds, &d->addr, sizeof(d->addr), &d->hello);
    if (!d->chan)
        return ENOMEM;
    rd_chan_pump(d->chan);
    return 0;
}
