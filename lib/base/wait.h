/* The one place through which every wait of the library goes: it sees abort, a dead peer and the timeout.
 *
 * rd_stop_t is the communicator's health, written by whoever learns of trouble first (the watch, an aborting thread, a
 * failing operation) and read by every wait and at every call: one load of a word that is nearly always zero.
 */
#ifndef RD_WAIT_H
#define RD_WAIT_H

#include <stdatomic.h>

#include "base/error.h"

typedef struct rd_stop {
    _Atomic int code;           /* RONDO_SUCCESS while healthy, else the result with which every wait and call ends */
    _Atomic int culprit;        /* rank that died, left or failed; -1: none */
    _Atomic int witness;        /* who found that out, plus one; 0: this rank itself */
    _Atomic int claimed;        /* the first writer's mark: only it fills the fields here */
    _Atomic(uint32_t *) mirror; /* a word that is set with `code`, for who cannot read this: kernels; or NULL */
    char text[RD_ERROR_BYTES];  /* set before `code` is released, once: "rank 3 (host a, pid 17) died" */
} rd_stop_t;

/* First writer wins; later ones are ignored. Any thread. The sentence is the communicator's last error, and has been
 * printed, before the code can be seen. Returns the code that stands. */
rondo_result_t rd_stop_set(rd_stop_t *stop, rd_who_t *who, rondo_result_t code, int culprit, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The same of what a rank has found out whose number, plus one, is `witness`, and others have passed on. */
rondo_result_t rd_stop_heard(rd_stop_t *stop, rd_who_t *who, rondo_result_t code, int culprit, int witness,
                             const char *text);
/* Who is to be named as the witness by `rank`: itself, where nobody else was. Plus one, as ever. */
static inline int rd_witness(int witness, int rank)
{
    return witness > 0 ? witness : rank + 1;
}

static inline rondo_result_t rd_stop_get(rd_stop_t *stop)
{
    return (rondo_result_t)atomic_load_explicit(&stop->code, memory_order_acquire);
}

#define RD_LATE_MS (60 * 1000) /* a late peer is named as often as this */

typedef struct rd_wait {
    rd_stop_t *stop;
    int spin;           /* polls before the first yield of this wait */
    int slow;           /* a poll is a system call: no pauses between them; the owner may set it */
    int misses;         /* since the last progress */
    int64_t timeout_ms; /* 0: never */
    int64_t began_ms;   /* clock at the first slow miss, 0: none yet */
    int64_t named_ms;   /* when a late peer was last named */
    int64_t looked_ms;  /* clock at the last look; the owner may set it back to 0 to see the next one */
} rd_wait_t;

void rd_wait_begin(rd_wait_t *w, rd_stop_t *stop, int spin, int64_t timeout_ms);
/* After a poll that found nothing. Pauses or yields; now and then looks at the stop word and the clock.
 * RONDO_SUCCESS: poll again. RONDO_ERR_TIMEOUT: the set time is over (the caller names the peer).
 * RONDO_IN_PROGRESS: a minute has passed (the caller names whom it waits for and goes on polling). */
rondo_result_t rd_wait_miss(rd_wait_t *w);
static inline void rd_wait_progress(rd_wait_t *w)
{
    w->misses = 0;
    w->began_ms = 0;
}

int64_t rd_clock_ms(void); /* monotonic */

#endif
