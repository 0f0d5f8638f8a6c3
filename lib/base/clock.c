/* See clock.h. */
#define _GNU_SOURCE
#include "base/clock.h"

#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef enum { UNKNOWN, COUNTER, NO_COUNTER } way_t;

static _Atomic int way;

/* The setting is a thread's, which threads that it starts later inherit. */
static int find(void)
{
    int set = PR_TSC_ENABLE;
    int found = prctl(PR_GET_TSC, &set, 0, 0, 0) == 0 && set == PR_TSC_SIGSEGV ? NO_COUNTER : COUNTER;

    atomic_store_explicit(&way, found, memory_order_relaxed);
    return found;
}

bool rd_clock_has_counter(void)
{
    int known = atomic_load_explicit(&way, memory_order_relaxed);

    return (known != UNKNOWN ? known : find()) == COUNTER;
}

void rd_clock_read(clockid_t clock, struct timespec *now)
{
    if (rd_clock_has_counter())
        clock_gettime(clock, now);
    else
        (void)syscall(SYS_clock_gettime, clock, now);
}
