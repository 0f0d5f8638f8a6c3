/* Who waits for whom again and again: the waits of a rank in collectives, summed in periods (record.h), by which a rank
 * is found that comes late to many calls, none of which lasts (verdict_slow.c).
 *
 * They are summed where a wait is put on the board, that is at slow misses, where the clock has been read anyway: calls
 * that find at once what they need pay nothing. The clock is coarse, a few milliseconds; a wait that is shorter is
 * counted as nothing or as a tick, in the long run as long as it was. */
#ifndef RD_MONITOR_PERIODS_H
#define RD_MONITOR_PERIODS_H

#include <stdbool.h>

#include "monitor/record.h"

/* The wait that goes on, which only its thread knows. */
typedef struct rd_period_wait {
    int64_t since_ms, seen_ms;
    uint64_t counted; /* the collective that was last counted among those that waited */
} rd_period_wait_t;

/* A wait for `peer` (-1: no particular rank) in a call of the track goes on, or has begun. */
void rd_periods_note(rd_monitor_comm_t *board, rd_period_wait_t *wait, rd_track_t track, int peer, int64_t since_ms,
                     int64_t now_ms);

/* What a rank has waited in a span of periods. */
typedef struct rd_waits {
    uint64_t ms, message_ms; /* in collectives; in sends and receives */
    uint64_t late, calls;    /* collectives in which it waited, of how many; 0 of 0: of none */
    int peer;                /* for whom most of `ms`; -1: nobody in particular */
} rd_waits_t;

/* Periods, counted back: 0 is the one that goes on at `now_ms` of the writer's clock. From the `from`-th to the
 * `to`-th, both included; from >= to. */
typedef struct rd_span {
    bool longs;
    int from, to;
} rd_ago_t;

/* Returns the clock's milliseconds that the span has lasted, since the communicator was made at the earliest. */
int64_t rd_span_ms(rd_ago_t span, const rd_monitor_comm_t *comm, int64_t now_ms);
void rd_periods_read(const rd_monitor_comm_t *comm, rd_ago_t span, int64_t now_ms, rd_waits_t *waits);

#endif
