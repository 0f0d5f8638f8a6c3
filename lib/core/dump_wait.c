/* See dump_wait.h. */
#include "core/dump_wait.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Process number << 32 | dumps under way: a forked child finds its parent's number there, and begins with none. */
static _Atomic uint64_t under_way;
static _Atomic int64_t limit_ms;

static uint64_t none(void)
{
    return (uint64_t)(uint32_t)getpid() << 32;
}

/* Returns how many are under way in this process. */
static uint64_t count(uint64_t word)
{
    return word >> 32 == none() >> 32 ? word & UINT32_MAX : 0;
}

static void add(int change)
{
    uint64_t was = atomic_load(&under_way);

    while (!atomic_compare_exchange_weak(&under_way, &was, none() | (count(was) + (uint64_t)change)))
        ;
}

void rd_dump_wait_begin(int64_t most_ms)
{
    static _Atomic int registered;

    atomic_store(&limit_ms, most_ms);
    add(1);
    if (!atomic_exchange(&registered, 1))
        (void)atexit(rd_dump_wait);
}

void rd_dump_wait_end(void)
{
    add(-1);
}

void rd_dump_wait(void)
{
    const struct timespec pause = {0, 1000000};
    int64_t most_ms = atomic_load(&limit_ms);

    for (int64_t ms = 0; ms < most_ms && count(atomic_load(&under_way)); ms++)
        nanosleep(&pause, NULL);
}
