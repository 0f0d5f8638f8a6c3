/* See limit.h. */
#include "progress/limit.h"

void rd_limit_init(rd_limit_t *l, int64_t first_ms)
{
    *l = (rd_limit_t){.first_ms = first_ms};
    atomic_init(&l->varies, first_ms >= 0);
}

static uint64_t begun(const rd_seat_t *seat)
{
    uint64_t sum = 0;

    for (int track = 0; track < RD_TRACKS; track++)
        sum += atomic_load_explicit(&seat->board->calls[track].begun, memory_order_relaxed);
    return sum;
}

static uint64_t ended(const rd_seat_t *seat)
{
    uint64_t sum = 0;

    for (int track = 0; track < RD_TRACKS; track++)
        sum += atomic_load_explicit(&seat->board->calls[track].ended, memory_order_relaxed);
    return sum;
}

int64_t rd_limit_varied(rd_limit_t *l, const rd_seat_t *seat, int64_t ms)
{
    int64_t extra = atomic_load(&l->extra_ms);

    if (atomic_load_explicit(&l->own, memory_order_relaxed))
        ms = atomic_load_explicit(&l->own_ms, memory_order_relaxed);
    else if (l->first_ms >= 0 && !ended(seat))
        ms = l->first_ms;
    if (extra && ended(seat) >= atomic_load(&l->extra_to)) {
        atomic_compare_exchange_strong(&l->extra_ms, &extra, 0);
        extra = 0;
    }
    if (!ms)
        return 0;
    return extra > INT64_MAX - ms ? INT64_MAX : ms + extra;
}

void rd_limit_own(rd_limit_t *l, int64_t ms)
{
    atomic_store_explicit(&l->own_ms, ms, memory_order_relaxed);
    atomic_store_explicit(&l->own, true, memory_order_relaxed);
    atomic_store_explicit(&l->varies, 1, memory_order_relaxed);
}

void rd_limit_extend(rd_limit_t *l, const rd_seat_t *seat, int64_t ms)
{
    atomic_store(&l->extra_to, begun(seat) + 1);
    atomic_fetch_add(&l->extra_ms, ms);
    atomic_store(&l->varies, 1);
}
