/* A channel: one bootstrap connection that never blocks. It connects, shakes hands, and then carries records. */
#ifndef RD_BOOT_SESSION_H
#define RD_BOOT_SESSION_H

#include <stdbool.h>

#include "boot/auth.h"

typedef enum {
    RD_CHAN_CONNECTING,
    RD_CHAN_HELLO, /* waits for the peer's hello (a client: and its proof) */
    RD_CHAN_PROOF, /* a server waits for the client's proof */
    RD_CHAN_OPEN,
    RD_CHAN_DEAD
} rd_chan_state_t;

typedef struct rd_chan {
    int fd;
    rd_chan_state_t state;
    int ended;        /* the peer has closed the connection; records may still be waiting */
    int error;        /* the errno that killed it, if one did; 0 with `ended`: the peer has closed it */
    bool far;         /* the other end is on another host: more than a process can end the connection */
    int poor;         /* the peer is authenticated, but there was no memory for its records */
    bool takes;       /* descriptors that come along are kept: only where a node's are passed */
    int passed;       /* the last one of them; -1: none */
    int64_t since_ms; /* when it began */
    rd_auth_t auth;
    rd_hello_t theirs;
    unsigned char *in, *out; /* `in` holds in_have bytes, of which the first in_taken have been handed out */
    size_t in_have, in_taken;
    size_t out_have, out_done, out_room;
    unsigned char
        early[RD_HELLO + RD_PROOF]; /* the buffer `in` until the peer is authenticated: it gets no more memory before */
} rd_chan_t;

/* Both take over the descriptor, also when they return NULL (no memory). */
rd_chan_t *rd_chan_client(int fd, const rd_creds_t *creds, const void *endpoint, size_t bytes, const rd_hello_t *mine);
rd_chan_t *rd_chan_server(int fd, const rd_creds_t *creds, const void *endpoint, size_t bytes, const rd_hello_t *mine);
void rd_chan_free(rd_chan_t *c); /* NULL is fine */
/* The same, once the last word has been sent. What has come and nobody reads is taken first, lest the connection ends
 * by a reset, which would overtake that word where packets are lost. */
void rd_chan_leave(rd_chan_t *c);
void rd_chan_hang_up(rd_chan_t *c); /* closes the connection; the channel is then over */

short rd_chan_events(const rd_chan_t *c); /* the events to poll for */
/* Does what can be done without waiting. Afterwards the caller checks `state` and takes records. */
void rd_chan_pump(rd_chan_t *c);

/* Queues a record and sends what fits. Returns 0, or -1 if the channel is dead or there is no memory. */
int rd_chan_send(rd_chan_t *c, int type, const void *data, size_t bytes);
size_t rd_chan_queued(const rd_chan_t *c); /* the bytes not yet sent */
/* Hands out the next record, which is valid until the next call. Returns false if there is none now. A bad record kills
 * the channel. */
bool rd_chan_next(rd_chan_t *c, int *type, const unsigned char **data, size_t *bytes);
/* Makes the next call of rd_chan_next hand out the same record again. */
void rd_chan_put_back(rd_chan_t *c);
/* Returns true if nothing more will come: the channel is dead, or it has ended and is empty. */
bool rd_chan_over(const rd_chan_t *c);

#endif
