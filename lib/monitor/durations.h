/* How long calls take, as the ring of a process's own record tells it: the times of the first call of each run of equal
 * calls, since calls that repeat the one before them read no clock. Whoever looks often enough misses none; what the
 * ring has lost between two looks is counted. */
#ifndef RD_MONITOR_DURATIONS_H
#define RD_MONITOR_DURATIONS_H

#include "monitor/view.h"

#define RD_DURATION_BUCKETS 7 /* 10 us, 100 us, 1 ms, 10 ms, 100 ms, 1 s, longer */
#define RD_DURATION_KINDS 80  /* more than there are: RD_MONITOR_LAST */
#define RD_DURATION_PENDING 64

typedef struct rd_duration {
    uint64_t buckets[RD_DURATION_BUCKETS], count;
    double seconds;
} rd_duration_t;

/* All zero is of no process. */
typedef struct rd_durations {
    uint64_t record;                       /* which one it is about: when that was made */
    uint64_t next;                         /* events before this one were looked at */
    uint64_t pending[RD_DURATION_PENDING]; /* but for these, which had not ended */
    int npending;
    uint64_t lost;
    rd_duration_t kinds[RD_DURATION_KINDS]; /* as in an event */
} rd_durations_t;

extern const char *const rd_duration_bounds[RD_DURATION_BUCKETS]; /* seconds, as text in no locale */

/* Adds what has ended since it was called last. On devices calls end when they are enqueued: those are left out. */
void rd_durations_read(rd_durations_t *durations, const rd_view_process_t *process);

#endif
