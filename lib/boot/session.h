/* A channel: one bootstrap connection that never blocks. It connects, shakes hands, and then carries records. */
#ifndef RD_BOOT_SESSION_H
#define RD_BOOT_SESSION_H

#include <stdbool.h>

#include "boot/auth.h"

typedef enum {
    RD_CHAN_CONNECTING,
    RD_CHAN_HELLO, /* waits for the other's hello (a client: and its proof) */
    RD_CHAN_PROOF, /* a server waits for the client's proof */
    RD_CHAN_OPEN,
    RD_CHAN_DEAD
} rd_chan_state_t;

typedef struct rd_chan {
    int fd;
    rd_chan_state_t state;
    int ended;        /* the other side closed; records may still be waiting */
    int error;        /* errno, if that is why it is dead */
    int poor;         /* it has proved itself, but there was no memory for its records */
    int64_t since_ms; /* began */
    rd_auth_t auth;
    rd_hello_t theirs;
    unsigned char *in, *out; /* `in` holds in_have bytes, of which the first in_taken were handed out */
    size_t in_have, in_taken;
    size_t out_have, out_done, out_room;
    unsigned char early[RD_HELLO + RD_PROOF]; /* `in` until the other is known: strangers get no more memory */
} rd_chan_t;

/* Both take the descriptor over, also when they return NULL (no memory). */
rd_chan_t *rd_chan_client(int fd, const rd_creds_t *creds, const void *endpoint, size_t bytes, const rd_hello_t *mine);
rd_chan_t *rd_chan_server(int fd, const rd_creds_t *creds, const void *endpoint, size_t bytes, const rd_hello_t *mine);
void rd_chan_free(rd_chan_t *c);    /* NULL is fine */
void rd_chan_hang_up(rd_chan_t *c); /* closes the connection, and is over */

short rd_chan_events(const rd_chan_t *c); /* for poll */
/* Does what can be done without waiting; afterwards look at `state` and take records. */
void rd_chan_pump(rd_chan_t *c);

/* Queues a record and sends what fits; 0, or -1 (dead, or no memory). */
int rd_chan_send(rd_chan_t *c, int type, const void *data, size_t bytes);
size_t rd_chan_queued(const rd_chan_t *c); /* bytes not yet sent */
/* The next record, valid until the next call; false: there is none now. Kills the channel on a bad one. */
bool rd_chan_next(rd_chan_t *c, int *type, const unsigned char **data, size_t *bytes);
/* The record just handed out comes again at the next call. */
void rd_chan_put_back(rd_chan_t *c);
/* Nothing more will come: dead, or ended and empty. */
bool rd_chan_over(const rd_chan_t *c);

#endif
