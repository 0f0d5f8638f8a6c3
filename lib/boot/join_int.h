/* A rank on its way into a communicator: what join.c and join_tell.c share. */
#ifndef RD_BOOT_JOIN_INT_H
#define RD_BOOT_JOIN_INT_H

#include "boot/boot_int.h"
#include "boot/dial.h"
#include "boot/listener.h"

#define RD_JOIN_TELL_MS 300 /* in which one that has heard of a death reaches the rendezvous, if there still is one */

typedef struct rd_joining {
    rd_boot_t *b;
    const rd_env_t *env;
    rd_dial_t rendezvous;
    rd_dial_t dial[RD_BOOT_ROUNDS];
    rd_listener_t incoming;
    int tabled, missing; /* missing: neighbours without a connection; the listener is open when tabled */
    int64_t say_ms;      /* when it is said that the rendezvous does not answer; 0: it has been, or is not to be */
    int64_t deadline_ms, stopped_ms; /* stopped_ms: when the stop word was first seen set; 0: not yet */
    rondo_result_t code;
    int failed_rank;     /* the rank to blame; -1: not known */
    int from_rendezvous; /* the failure came from the rendezvous, which need not be told */
    int said;            /* the failure was logged where it happened */
    bool no_fd, no_poll; /* it is that no descriptor was left, or that this rank cannot wait for any */
    char text[sizeof(((rd_fail_t *)0)->text)];
    struct rd_served
        *served; /* the thread that tells for this rank, which may be told to end; NULL: it is a caller's */
} rd_joining_t;

/* The rendezvous has authenticated this rank, which now listens and sends its address. Defined in join.c. */
void rd_join_say(rd_joining_t *j);
/* This rank has failed: tells the rendezvous, and the neighbours that it has reached. Defined in join_tell.c. */
void rd_join_tell(rd_joining_t *j);

#endif
