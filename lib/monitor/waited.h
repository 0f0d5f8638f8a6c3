/* For how long a rank has waited for the others of a communicator so far, of whom each, and what was said of waits that
 * lasted: for RONDO_METRICS, and only counted with it. It is counted where a wait is put on the board (seat.h), that is
 * at slow misses, so a wait of less than a millisecond or so is not there, nor the last milliseconds of a longer one.
 */
#ifndef RD_MONITOR_WAITED_H
#define RD_MONITOR_WAITED_H

#include <stdatomic.h>
#include <stdint.h>

enum { RD_WAITED_LATE, RD_WAITED_BLAMED, RD_WAITED_UNKNOWN, RD_WAITED_VERDICTS };

typedef struct rd_waited {
    int size; /* of the communicator */
    /* The wait that goes on, which only its thread knows. */
    int64_t since_ms, seen_ms;
    _Atomic uint64_t total_ms;
    _Atomic uint64_t stalls[RD_WAITED_VERDICTS]; /* lines of RONDO_STALL_MS */
    _Atomic int64_t late;                        /* the rank that the last one has named; -1: none */
    _Atomic uint64_t late_in;                    /* in which wait: `waits_in` of the board */
    _Atomic uint64_t peers_ms[];                 /* by rank */
} rd_waited_t;

/* Returns NULL if there is no memory. It is released by free. */
rd_waited_t *rd_waited_make(int size);
/* A wait for `peer` (-1: no particular rank) goes on, or has begun. */
void rd_waited_note(rd_waited_t *waited, int peer, int64_t since_ms, int64_t now_ms);
/* It was said who holds up that wait. `status` is of a verdict. */
void rd_waited_stall(rd_waited_t *waited, int status, int rank, uint64_t waits_in);

#endif
