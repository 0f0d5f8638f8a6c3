/* A door: the listening side of bootstrap connections. Strangers wait in it until they have proven themselves. */
#ifndef RD_BOOT_LISTENER_H
#define RD_BOOT_LISTENER_H

#include <poll.h>

#include "boot/session.h"

#define RD_DOOR_MOST 64 /* strangers at a time */
#define RD_DOOR_MS 2000 /* for each to name the job */
#define RD_DOOR_PROOF_MS 20000 /* and to prove itself: on a busy machine a rank may wait for its turn that long */
#define RD_DOOR_POLLS (RD_DOOR_MOST + 1)

typedef struct rd_door {
    int fd; /* listening; owned by the caller */
    rd_creds_t creds;
    unsigned char endpoint[RD_ENDPOINT];
    rd_hello_t mine;
    rd_chan_t *stranger[RD_DOOR_MOST]; /* oldest first */
    int nstrangers;
    int poor; /* one who had proved itself, and believes to be in, was lost for lack of memory: give up */
} rd_door_t;

void rd_door_open(rd_door_t *d, int fd, const rd_creds_t *creds, const void *endpoint, size_t bytes,
                  const rd_hello_t *mine);
void rd_door_close(rd_door_t *d); /* frees the strangers */

int rd_door_fill(const rd_door_t *d, struct pollfd *p); /* at most RD_DOOR_POLLS entries; how many */
/* After poll: accepts, pumps and drops. Never waits. */
void rd_door_pump(rd_door_t *d);
/* One who has proven itself, or NULL; the caller owns it. */
rd_chan_t *rd_door_next(rd_door_t *d);

#endif
