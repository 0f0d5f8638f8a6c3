/* The clock of events: the processor's counter where it runs evenly, which costs half of what the kernel's clock does.
 */
#ifndef RD_MONITOR_TICKS_H
#define RD_MONITOR_TICKS_H

#include <stdint.h>

#include "base/clock.h"
#include "base/wait.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

typedef enum rd_ticks {
    RD_TICKS_NS, /* CLOCK_MONOTONIC */
    RD_TICKS_TSC /* x86's time stamp counter; its rate is known by reading both clocks twice */
} rd_ticks_t;

/* Returns the counter if this process may read it and it runs at one rate whatever the processor does, as it says
 * itself. */
static inline rd_ticks_t rd_ticks_kind(void)
{
#ifdef __x86_64__
    unsigned a, b, c, d;

    if (rd_clock_has_counter() && __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1)
        return RD_TICKS_TSC;
#endif
    return RD_TICKS_NS;
}

/* Returns true if a record's clock is one that this process can read. */
static inline bool rd_ticks_known(uint32_t clock)
{
    return clock == RD_TICKS_NS || (clock == RD_TICKS_TSC && rd_clock_has_counter());
}

static inline uint64_t rd_ticks_now(rd_ticks_t kind)
{
#ifdef __x86_64__
    if (kind == RD_TICKS_TSC)
        return __builtin_ia32_rdtsc();
#endif
    (void)kind;
    return (uint64_t)rd_clock_ns();
}

#endif
