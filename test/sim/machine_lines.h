/* Which lines of 128 bytes have changed, and what a fiber that polls has seen of them. A line's changes are counted by
 * a hash of its address, so two lines may share a count. */
#ifndef TEST_SIM_MACHINE_LINES_H
#define TEST_SIM_MACHINE_LINES_H

#include <stddef.h>
#include <stdint.h>

#include <atomic>

namespace machine
{

constexpr size_t LINE = 128;
constexpr unsigned WATCHED = 32; /* lines: no less than a warp polls at once */

extern std::atomic<uint32_t> changes[1 << 16]; /* of the lines with that hash */

void line_changed(const void *p);
uint64_t lines_changed(); /* how often any has */

inline uint16_t place_of(const void *p)
{
    uintptr_t line = (uintptr_t)p / LINE;
    return (uint16_t)(line ^ line >> 16);
}

inline uint32_t changes_of(const void *p)
{
    return changes[place_of(p)].load(std::memory_order_acquire);
}

/* The place of change number `number`, from 1 on. False: it is too long ago, or somebody is just about to write it
 * down.
 */
bool change_of(uint64_t number, uint16_t *place);

/* A sum of what the line of `p` holds: other processes and the host change lines, and count nothing. */
uint64_t sum_of(const void *p);

struct fiber_t;

/* One of those who wait for a place: see machine_sleepers.cc. */
struct link_t {
    fiber_t *fiber;
    uint16_t place;
    link_t *next, **from;
};

/* The lines that a fiber (or warp) which polls has looked at last, how often they had changed by then, and what they
 * held (0 where the machine is alone, and changes are counted all). `news` counts the looks that found something new: a
 * fiber that looks again at an unchanged line, with no news since its last look there, has seen all that there is. */
struct watch_t {
    struct seen_t {
        const char *at;
        uint64_t sum;
        uint32_t changes;
        unsigned news;
    } seen[WATCHED];
    unsigned count = 0, next = 0, news = 0;
    link_t links[WATCHED]; /* of the fiber that sleeps on it */

    /* Not of what `seen` and `links` have beyond the count. */
    watch_t()
    {
    }

    void clear()
    {
        count = next = 0;
        news++;
    }

    /* True: nothing new at `p`, nor anywhere since. */
    bool note(const char *p, bool alone)
    {
        uint32_t now = changes_of(p);
        uint64_t sum = alone ? 0 : sum_of(p);

        for (unsigned i = 0; i < count; i++) {
            seen_t *s = &seen[i];
            if ((uintptr_t)s->at / LINE != (uintptr_t)p / LINE)
                continue;
            bool same = s->changes == now && s->sum == sum, idle = same && s->news == news;
            news += !same;
            s->changes = now;
            s->sum = sum;
            s->news = news;
            return idle;
        }
        news++;
        seen[next] = {p, sum, now, news};
        next = (next + 1) % WATCHED;
        if (count < WATCHED)
            count++;
        return false;
    }

    bool changed() const
    {
        for (unsigned i = 0; i < count; i++)
            if (changes_of(seen[i].at) != seen[i].changes)
                return true;
        return false;
    }

    bool differs() const
    {
        for (unsigned i = 0; i < count; i++)
            if (sum_of(seen[i].at) != seen[i].sum)
                return true;
        return false;
    }
};

} // namespace machine

#endif
