/* A connection that is dialled until its server is there: to the rendezvous, and to the neighbours. */
#ifndef RD_BOOT_DIAL_H
#define RD_BOOT_DIAL_H

#include <stdbool.h>

#include "boot/session.h"

typedef struct rd_dial {
    rd_addr_t addr;
    rd_hello_t hello;
    rd_chan_t *chan;                        /* NULL: to be dialled (again) */
    int tries, opened, unheard;             /* unheard: nothing has been received, so it may be dialled again */
    int closed;                             /* it has been there before, and has ended */
    int64_t again_ms, cancel_ms, failed_ms; /* failed_ms: when it failed for the first time; 0: not yet */
} rd_dial_t;

void rd_dial_begin(rd_dial_t *d, const rd_addr_t *addr, const rd_hello_t *hello);
/* Continues the attempt to connect. Returns 0, or the errno for which it is given up. */
int rd_dial_pump(rd_dial_t *d, const rd_creds_t *creds);
void rd_dial_again(rd_dial_t *d); /* drops the connection; another one is made after a moment */

static inline bool rd_dial_open(const rd_dial_t *d)
{
    return d->chan && d->chan->state == RD_CHAN_OPEN;
}

#endif
