/* See periods.h. */
#include "monitor/periods.h"

#define HALF(word) ((uint32_t)((word) >> 32))

static uint64_t load(_Atomic uint64_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

static void store(_Atomic uint64_t *at, uint64_t value)
{
    atomic_store_explicit(at, value, memory_order_relaxed);
}

static uint64_t both(uint64_t high, uint64_t low)
{
    return high << 32 | (uint32_t)low;
}

/* ---- the rank itself ---- */

/* The place of an older period is given to this one. A reader that sees its number sees none of the old one. */
static void turn(rd_monitor_period_t *p, uint64_t number, uint64_t begun)
{
    store(&p->number, 0);
    atomic_thread_fence(memory_order_release);
    store(&p->waited, 0);
    store(&p->calls, both(0, begun));
    store(&p->peer, 0);
    atomic_store_explicit(&p->number, number + 1, memory_order_release);
}

/* The vote of the majority (Boyer and Moore): what one rank is waited for cancels what others are. */
static uint64_t vote(uint64_t was, int peer, uint64_t ms)
{
    uint64_t weight = HALF(was), mine = (uint64_t)peer + 1;

    if (peer < 0)
        return weight > ms ? both(weight - ms, was) : 0;
    if ((uint32_t)was == mine)
        return both(weight + ms, mine);
    return weight >= ms ? both(weight - ms, was) : both(ms - weight, mine);
}

static void add(rd_monitor_period_t *p, uint64_t number, uint64_t begun, rd_track_t track, int peer, uint64_t ms,
                bool first)
{
    if (load(&p->number) != number + 1)
        turn(p, number, begun);
    if (track != RD_TRACK_COLLECTIVE) {
        uint64_t calls = load(&p->calls);
        store(&p->calls, both(HALF(calls) + ms, calls));
        return;
    }
    uint64_t waited = load(&p->waited);
    store(&p->waited, both(HALF(waited) + ms, waited + first));
    store(&p->peer, vote(load(&p->peer), peer, ms));
}

void rd_periods_note(rd_monitor_comm_t *board, rd_period_wait_t *wait, rd_track_t track, int peer, int64_t since_ms,
                     int64_t now_ms)
{
    int64_t from = wait->since_ms == since_ms ? wait->seen_ms : since_ms;
    uint64_t begun = load(&board->calls[RD_TRACK_COLLECTIVE].begun), now = (uint64_t)now_ms;
    bool first = track == RD_TRACK_COLLECTIVE && wait->counted != begun;

    wait->since_ms = since_ms;
    wait->seen_ms = now_ms;
    if (now_ms <= from)
        return;
    if (first)
        wait->counted = begun;
    uint64_t ms = (uint64_t)(now_ms - from), at = now >> RD_PERIOD_SHORT_SHIFT, at_long = now >> RD_PERIOD_LONG_SHIFT;
    add(&board->shorts[at % RD_PERIODS_SHORT], at, begun, track, peer, ms, first);
    add(&board->longs[at_long % RD_PERIODS_LONG], at_long, begun, track, peer, ms, first);
}

/* ---- whoever reads its record ---- */

static int shift_of(rd_ago_t span)
{
    return span.longs ? RD_PERIOD_LONG_SHIFT : RD_PERIOD_SHORT_SHIFT;
}

int64_t rd_span_ms(rd_ago_t span, const rd_monitor_comm_t *comm, int64_t now_ms)
{
    int64_t period = now_ms >> shift_of(span), made = (int64_t)(comm->made_ns / 1000000);
    int64_t length = INT64_C(1) << shift_of(span), from = (period - span.from) * length,
            to = (period - span.to + 1) * length;

    from = from > made ? from : made;
    to = to < now_ms ? to : now_ms;
    return to > from ? to - from : 0;
}

/* Which rank has been waited for longer than all others together, and clearly so? By a quarter of all the time. */
static int majority(const uint64_t *votes, int n, uint64_t ms)
{
    for (int i = 0; i < n; i++) {
        uint64_t sum = 0;
        for (int k = 0; k < n; k++)
            sum += (uint32_t)votes[k] == (uint32_t)votes[i] ? HALF(votes[k]) : 0;
        if ((uint32_t)votes[i] && 4 * sum > ms)
            return (int)((uint32_t)votes[i] - 1);
    }
    return -1;
}

void rd_periods_read(const rd_monitor_comm_t *comm, rd_ago_t span, int64_t now_ms, rd_waits_t *w)
{
    const rd_monitor_period_t *periods = span.longs ? comm->longs : comm->shorts;
    const int n = span.longs ? RD_PERIODS_LONG : RD_PERIODS_SHORT;
    const int64_t now = now_ms >> shift_of(span);
    const uint64_t begun = comm->calls[RD_TRACK_COLLECTIVE].begun;
    uint64_t votes[RD_PERIODS_SHORT + RD_PERIODS_LONG], before = begun + 1;
    int voted = 0;

    *w = (rd_waits_t){.peer = -1};
    for (int i = 0; i < n; i++) {
        const rd_monitor_period_t *p = &periods[i];
        uint64_t ago = (uint64_t)now - p->number + 1;
        if (!p->number || ago > (uint64_t)span.from || ago < (uint64_t)span.to)
            continue;
        w->ms += HALF(p->waited);
        w->message_ms += HALF(p->calls);
        w->late += (uint32_t)p->waited;
        votes[voted++] = p->peer;
        uint64_t first = begun - (uint32_t)(begun - p->calls); /* whose low half is there */
        before = first < before ? first : before;
    }
    w->calls = begun + 1 - before;
    w->late = w->late < w->calls ? w->late : w->calls;
    w->peer = majority(votes, voted, w->ms);
}
