/* Waiting.
 *
 * This is called after a poll that finds nothing. The cheap part comes first: as many pauses as the communicator allows
 * (none if ranks outnumber the cores, because then the peer that is waited for needs this core), and yields after that.
 * Where every rank has a core, two of them may still meet on one: nobody bound them, or another process came. So a long
 * wait yields in any case, by the clock: a poll of 31 peers takes 1 us, and thousands of them would keep the one that
 * is waited for from its core for milliseconds. On a core of its own a yield is a system call that returns at once.
 * The stop word is one load of a line that is hardly ever written, so it is checked on every miss: an abort or a dead
 * peer ends a wait within microseconds. Reading the clock costs a call, and is done now and then while pausing, and
 * after each yield. */
#include "base/wait.h"

#include <sched.h>
#include <stdbool.h>
#include <time.h>

#include "base/clock.h"
#include "base/outstanding.h"

#define CLOCK_PAUSES 1024 /* pauses between two readings of the clock */
#define SPIN_PAUSES 32    /* the same of the fine clock */
#define YIELDS 100        /* to another thread of the process, before the first sleep */
#define NAP_NS 100000

int64_t rd_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t rd_clock_ns(void)
{
    struct timespec now;
    rd_clock_read(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void rd_wait_begin(rd_wait_t *w, rd_stop_t *stop, int spin, int64_t timeout_ms)
{
    *w = (rd_wait_t){.stop = stop, .spin = spin > 0 ? spin : 0, .timeout_ms = timeout_ms};
}

/* A clock of 0 means "not yet read", so the first reading only starts the measurement. */
static rondo_result_t read_clock(rd_wait_t *w)
{
    int64_t now = w->clock_ms = rd_clock_ms();
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

static bool spun_long(rd_wait_t *w)
{
    int64_t ns = rd_clock_ns();
    if (w->spin_ns == 0)
        w->spin_ns = ns;
    return ns - w->spin_ns > 1000 * (int64_t)w->spin_us;
}

rondo_result_t rd_wait_backoff(rd_wait_t *w)
{
    rondo_result_t code = rd_stop_get(w->stop);
    if (code != RONDO_SUCCESS)
        return code;
    if (++w->misses <= w->spin) {
        if (!w->slow)
            rd_wait_pause();
        if (w->spin_us && w->misses % SPIN_PAUSES == 0 && spun_long(w))
            w->misses = w->spin; /* the next miss yields */
        return w->misses % CLOCK_PAUSES ? RONDO_SUCCESS : read_clock(w);
    }
    if (w->alone || !rd_outstanding_turn())
        sched_yield(); /* costs far more than reading the clock; on a busy machine it may be long until the next one */
    w->misses = w->spin; /* stays in the yielding phase; the count never overflows */
    return read_clock(w);
}

void rd_wait_thread(int *yields)
{
    const struct timespec nap = {0, NAP_NS};

    if (*yields >= YIELDS) {
        nanosleep(&nap, NULL);
        return;
    }
    ++*yields;
    sched_yield();
}
