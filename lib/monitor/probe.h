/* Probes find circles of waits over any number of nodes and communicators, where no process sees all the records. A
 * rank that waits sends one to the rank that it waits for. That rank's process looks, in its own record, whether the
 * rank still has to make that call, and whether its thread is held meanwhile by another one: if so it sends the probe
 * to whom that one waits for, by the communicator in which it does; so it does where the rank is in the same call, and
 * no rank can end that before all have begun it. A probe that comes back to the call that sent it has gone round a
 * circle.
 *
 * No two of these looks are made at the same time, and they need not be. Where a rank was seen to be held by a call
 * that another one owes, and that one is seen later and still owes it, the first has been held all the while; so, back
 * from the last to the first, all of them were at the time of the last look. */
#ifndef RD_MONITOR_PROBE_H
#define RD_MONITOR_PROBE_H

#include "boot/boot.h"
#include "monitor/view.h"

/* A rank of a communicator waits in a call for a peer, which owes the same collective or the other end of a message. */
typedef struct rd_probe_wait {
    uint64_t comm, number; /* number: of the collective; or how many messages to or from the peer have begun */
    int32_t waiter, peer, track;
} rd_probe_wait_t;

typedef struct rd_probe {
    rd_probe_wait_t origin, at;
    int32_t waits;   /* it has followed so many */
    int32_t several; /* in more than one communicator */
    char text[RD_ERROR_BYTES];
} rd_probe_t;

_Static_assert(sizeof(rd_probe_t) <= RD_BOOT_PROBE, "a probe fits into a question");

/* Begins one at a rank that waits. `view` needs this process's record alone. Returns false if nobody owes it anything,
 * as far as is known, or the call does not hold its thread. */
bool rd_probe_begin(const rd_view_t *view, uint64_t comm, int rank, rd_probe_t *probe);

/* The probe has come to its peer's process: follows one more wait. */
typedef enum { RD_PROBE_ENDS, RD_PROBE_GOES_ON, RD_PROBE_IS_BACK } rd_probe_step_t;
rd_probe_step_t rd_probe_follow(const rd_view_t *view, rd_probe_t *probe);
/* What is said of the circle round which it has gone. */
void rd_probe_text(const rd_probe_t *probe, char *text, size_t bytes);

#endif
