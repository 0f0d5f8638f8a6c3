/* For how long a wait may go on. There is the communicator's limit, of its config or rondo_timeout_set, and what takes
 * precedence over it: a limit of the first call, one of this call alone, and an extension for a while. */
#ifndef RD_PROGRESS_LIMIT_H
#define RD_PROGRESS_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "monitor/seat.h"

typedef struct rd_limit {
    _Atomic int varies;        /* any of what follows counts, or has */
    int64_t first_ms;          /* until a call is over; -1: as all others */
    _Atomic bool own;          /* the call that goes on has a limit of its own, */
    _Atomic int64_t own_ms;    /* which is this; 0: none. Only its thread writes both */
    _Atomic int64_t extra_ms;  /* is added to any limit */
    _Atomic uint64_t extra_to; /* it is added until this many calls have ended */
} rd_limit_t;

void rd_limit_init(rd_limit_t *limit, int64_t first_ms);

/* Returns the limit of a wait that begins, or has reached its limit; `ms`: the communicator's. 0: none. Any thread. */
int64_t rd_limit_varied(rd_limit_t *limit, const rd_seat_t *seat, int64_t ms);

static inline int64_t rd_limit_now(rd_limit_t *limit, const rd_seat_t *seat, int64_t ms)
{
    if (__builtin_expect(atomic_load_explicit(&limit->varies, memory_order_relaxed), 0))
        return rd_limit_varied(limit, seat, ms);
    return ms;
}

/* The call that goes on, and waits that begin before rd_limit_own_end, have that limit. For the thread that calls. */
void rd_limit_own(rd_limit_t *limit, int64_t ms);
static inline void rd_limit_own_end(rd_limit_t *limit)
{
    atomic_store_explicit(&limit->own, false, memory_order_relaxed);
}

/* Adds to all limits, until the first call that begins from now on is over; or, where several are under way, as many.
 * Any thread. */
void rd_limit_extend(rd_limit_t *limit, const rd_seat_t *seat, int64_t ms);

#endif
