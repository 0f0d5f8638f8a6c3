/* See pace.h. */
#include "monitor/pace.h"

#define STALE 16 /* short periods after which a link's place is given away, and its paces count no more */
#define MOST 255

static uint64_t load(const _Atomic uint64_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

static void store(_Atomic uint64_t *at, uint64_t value)
{
    atomic_store_explicit(at, value, memory_order_relaxed);
}

static uint64_t period_now(void)
{
    return (uint64_t)rd_clock_ms() >> RD_PERIOD_SHORT_SHIFT;
}

/* Returns the connection's place, or one that is free or stale; -1: others have them all. */
static int entry_for(rd_pace_t *paces, rd_monitor_comm_t *board, const void *connection, int peer)
{
    int at = -1;

    for (int i = 0; i < RD_MONITOR_LINKS; i++) {
        if (paces[i].connection == connection)
            return i;
        if (!paces[i].connection || (uint32_t)load(&board->links[i].period) + STALE < (uint32_t)period_now())
            at = i;
    }
    if (at < 0)
        return -1;
    rd_monitor_link_t *link = &board->links[at];
    paces[at] = (rd_pace_t){.connection = connection};
    store(&link->peer, 0);
    store(&link->period, (uint32_t)period_now());
    for (int i = 0; i < RD_MONITOR_PACES / 8; i++)
        store(&link->paces[i], 0);
    atomic_store_explicit(&link->peer, (uint64_t)peer + 1, memory_order_release);
    return at;
}

static int class_of(uint64_t bytes, int64_t ns)
{
    uint64_t mb = bytes * 1000 / (uint64_t)ns; /* each second */
    int class = 0;

    while (mb && class < RD_MONITOR_PACES - 1) {
        mb >>= 1;
        class ++;
    }
    return class;
}

static void count(rd_monitor_link_t *link, int class)
{
    _Atomic uint64_t *word = &link->paces[class / 8];
    const int shift = class % 8 * 8;

    if ((load(word) >> shift & MOST) == MOST)
        for (int i = 0; i < RD_MONITOR_PACES / 8; i++)
            store(&link->paces[i], load(&link->paces[i]) >> 1 & UINT64_C(0x7f7f7f7f7f7f7f7f));
    store(word, load(word) + (UINT64_C(1) << shift));
}

/* What is older than a few seconds counts less and less: all paces are halved in every fourth period. */
static void turn(rd_monitor_link_t *link)
{
    uint64_t was = load(&link->period), now = (uint32_t)period_now(), periods = was >> 32;

    if ((uint32_t)was == now && periods)
        return;
    if ((uint32_t)was / 4 != now / 4) {
        for (int i = 0; i < RD_MONITOR_PACES / 8; i++)
            store(&link->paces[i], load(&link->paces[i]) >> 1 & UINT64_C(0x7f7f7f7f7f7f7f7f));
        periods = periods / 2;
    }
    store(&link->period, (periods + 1) << 32 | now);
}

void rd_pace_note_taken(rd_pace_t *paces, rd_monitor_comm_t *board, const void *connection, int peer, size_t bytes)
{
    int at = entry_for(paces, board, connection, peer);

    if (at < 0)
        return;
    rd_pace_t *p = &paces[at];
    uint32_t call = (uint32_t)load(&board->calls[RD_TRACK_COLLECTIVE].begun);
    if (p->call != call)
        p->from_ns = 0;
    int64_t now = p->from_ns ? rd_clock_ns() : 0;
    p->kb += (uint32_t)(bytes >> 10);
    if (now > p->from_ns) {
        turn(&board->links[at]);
        count(&board->links[at], class_of((uint64_t)p->kb << 10, now - p->from_ns));
    }
    if (p->before_ns) {
        p->from_ns = p->before_ns;
        p->kb = 0;
    }
    p->call = call;
    p->missed_ns = p->before_ns = 0;
}

/* ---- reading ---- */

int rd_pace_counts(const rd_monitor_link_t *link, int counts[RD_MONITOR_PACES])
{
    int sum = 0;

    for (int i = 0; i < RD_MONITOR_PACES; i++) {
        counts[i] = (int)(link->paces[i / 8] >> i % 8 * 8 & MOST);
        sum += counts[i];
    }
    return sum;
}

int rd_pace_best(const rd_monitor_link_t *link, int least, int periods, int64_t now_ms)
{
    int counts[RD_MONITOR_PACES], sum = rd_pace_counts(link, counts), best = RD_MONITOR_PACES, reached = 0;
    uint32_t now = (uint32_t)((uint64_t)now_ms >> RD_PERIOD_SHORT_SHIFT);

    if (sum < least || (int64_t)(link->period >> 32) < periods || (uint32_t)link->period + STALE < now)
        return -1;
    while (best > 0 && reached * 10 < sum)
        reached += counts[--best];
    return best;
}

double rd_pace_of(int class)
{
    return class ? 0.75e6 * (double)(1 << class) : 0.5e6;
}
