/* Waiting.
 *
 * This is called after a poll that finds nothing. The cheap part comes first: as many pauses as the communicator allows
 * (none if ranks outnumber the cores, because then the peer that is waited for needs this core), and yields after that.
 * The stop word is one load of a line that is hardly ever written, so it is checked on every miss: an abort or a dead
 * peer ends a wait within microseconds. Reading the clock costs a call, and is done now and then while pausing, and
 * after each yield. */
#include "base/wait.h"

#include <sched.h>
#include <time.h>

#if defined(__x86_64__) || defined(__i386__)
#define pause_cpu() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define pause_cpu() __asm__ volatile("isb" ::: "memory")
#else
#define pause_cpu() __asm__ volatile("" ::: "memory")
#endif

#define CLOCK_PAUSES 1024 /* pauses between two readings of the clock */

int64_t rd_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void rd_wait_begin(rd_wait_t *w, rd_stop_t *stop, int spin, int64_t timeout_ms)
{
    *w = (rd_wait_t){.stop = stop, .spin = spin > 0 ? spin : 0, .timeout_ms = timeout_ms};
}

/* A clock of 0 means "not yet read", so the first reading only starts the measurement. */
static rondo_result_t look_at_clock(rd_wait_t *w)
{
    int64_t now = w->looked_ms = rd_clock_ms();
    if (w->began_ms == 0) {
        w->began_ms = w->named_ms = now;
        return RONDO_SUCCESS;
    }
    if (w->timeout_ms > 0 && now - w->began_ms >= w->timeout_ms)
        return RONDO_ERR_TIMEOUT;
    if (now - w->named_ms >= RD_LATE_MS) {
        w->named_ms = now;
        return RONDO_IN_PROGRESS;
    }
    return RONDO_SUCCESS;
}

rondo_result_t rd_wait_backoff(rd_wait_t *w)
{
    rondo_result_t code = rd_stop_get(w->stop);
    if (code != RONDO_SUCCESS)
        return code;
    if (++w->misses <= w->spin) {
        if (!w->slow)
            pause_cpu();
        return w->misses % CLOCK_PAUSES ? RONDO_SUCCESS : look_at_clock(w);
    }
    sched_yield(); /* costs far more than reading the clock; and on a busy machine it may be long until the next one */
    w->misses = w->spin; /* stays in the yielding phase; the count never overflows */
    return look_at_clock(w);
}
