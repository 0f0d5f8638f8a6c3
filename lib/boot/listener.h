/* A listener: the listening side of bootstrap connections. It holds connections until they are authenticated. */
#ifndef RD_BOOT_LISTENER_H
#define RD_BOOT_LISTENER_H

#include <poll.h>

#include "boot/session.h"

#define RD_LISTENER_MOST 64        /* connections at a time that are not yet authenticated */
#define RD_LISTENER_MS 2000        /* the time that each has to name the job */
#define RD_LISTENER_PROOF_MS 20000 /* and to send its proof: a rank may wait that long for a core */
#define RD_LISTENER_POLLS (RD_LISTENER_MOST + 1)

typedef struct rd_listener {
    int fd; /* the listening socket; owned by the caller */
    rd_creds_t creds;
    unsigned char endpoint[RD_ENDPOINT];
    rd_hello_t mine;
    rd_chan_t *pending[RD_LISTENER_MOST]; /* oldest first */
    int npending;
    int error;    /* errno with which a waiting connection could not be accepted, or none can; 0: none */
    int refusals; /* of accept as such, in a row */
    int poor;     /* a connection was lost for lack of memory, which may have been a rank's: the caller must give up */
} rd_listener_t;

void rd_listener_open(rd_listener_t *d, int fd, const rd_creds_t *creds, const void *endpoint, size_t bytes,
                      const rd_hello_t *mine);
void rd_listener_close(rd_listener_t *d); /* frees the pending connections */

int rd_listener_fill(const rd_listener_t *d,
                     struct pollfd *p); /* fills at most RD_LISTENER_POLLS entries; returns their number */
/* To be called after poll: accepts connections, pumps them and drops the late and the dead ones. Never waits. */
void rd_listener_pump(rd_listener_t *d);
/* Returns an authenticated connection, which the caller then owns, or NULL if there is none. */
rd_chan_t *rd_listener_next(rd_listener_t *d);

#endif
