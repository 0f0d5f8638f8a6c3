/* See waited.h. */
#include "monitor/waited.h"

#include <stdlib.h>

#include "monitor/verdict.h"

rd_waited_t *rd_waited_make(int size)
{
    rd_waited_t *waited = calloc(1, sizeof *waited + (size_t)size * sizeof waited->peers_ms[0]);

    if (!waited)
        return NULL;
    waited->size = size;
    atomic_init(&waited->late, -1);
    return waited;
}

void rd_waited_note(rd_waited_t *waited, int peer, int64_t since_ms, int64_t now_ms)
{
    int64_t from = waited->since_ms == since_ms ? waited->seen_ms : since_ms;
    uint64_t more = now_ms > from ? (uint64_t)(now_ms - from) : 0;

    waited->since_ms = since_ms;
    waited->seen_ms = now_ms;
    atomic_fetch_add_explicit(&waited->total_ms, more, memory_order_relaxed);
    if (peer >= 0 && peer < waited->size)
        atomic_fetch_add_explicit(&waited->peers_ms[peer], more, memory_order_relaxed);
}

void rd_waited_stall(rd_waited_t *waited, int status, int rank, uint64_t waits_in)
{
    const int verdict = status == RD_VERDICT_LATE || status == RD_VERDICT_SLOW ? RD_WAITED_LATE
                        : status == RD_VERDICT_BLAMED                          ? RD_WAITED_BLAMED
                                                                               : RD_WAITED_UNKNOWN;

    atomic_store(&waited->late, verdict == RD_WAITED_UNKNOWN ? -1 : rank);
    atomic_store(&waited->late_in, waits_in);
    atomic_fetch_add(&waited->stalls[verdict], 1);
}
