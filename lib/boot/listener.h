/* A listener: the listening side of bootstrap connections. Strangers wait in it until they have proven themselves. */
#ifndef RD_BOOT_LISTENER_H
#define RD_BOOT_LISTENER_H

#include <poll.h>

#include "boot/session.h"

#define RD_LISTENER_MOST 64        /* strangers at a time */
#define RD_LISTENER_MS 2000        /* for each to name the job */
#define RD_LISTENER_PROOF_MS 20000 /* and to prove itself: on a busy machine a rank may wait for its turn that long */
#define RD_LISTENER_POLLS (RD_LISTENER_MOST + 1)

typedef struct rd_listener {
    int fd; /* listening; owned by the caller */
    rd_creds_t creds;
    unsigned char endpoint[RD_ENDPOINT];
    rd_hello_t mine;
    rd_chan_t *pending[RD_LISTENER_MOST]; /* oldest first */
    int npending;
    int poor; /* one who had proved itself, and believes to be in, was lost for lack of memory: give up */
} rd_listener_t;

void rd_listener_open(rd_listener_t *d, int fd, const rd_creds_t *creds, const void *endpoint, size_t bytes,
                      const rd_hello_t *mine);
void rd_listener_close(rd_listener_t *d); /* frees the strangers */

int rd_listener_fill(const rd_listener_t *d, struct pollfd *p); /* at most RD_LISTENER_POLLS entries; how many */
/* After poll: accepts, pumps and drops. Never waits. */
void rd_listener_pump(rd_listener_t *d);
/* One who has proven itself, or NULL; the caller owns it. */
rd_chan_t *rd_listener_next(rd_listener_t *d);

#endif
