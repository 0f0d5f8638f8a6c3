/* The one place through which every wait of the library goes: it sees abort, a dead peer and the timeout.
 */
#ifndef RD_BASE_WAIT_H
#define RD_BASE_WAIT_H

#include "base/health.h"

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
rondo_result_t rd_wait_backoff(rd_wait_t *w);
static inline void rd_wait_progress(rd_wait_t *w)
{
    w->misses = 0;
    w->began_ms = 0;
}

int64_t rd_clock_ms(void); /* monotonic */

#endif
