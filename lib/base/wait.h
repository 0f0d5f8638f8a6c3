/* Every wait of the library goes through this module: it notices an abort, a dead peer and the timeout. */
#ifndef RD_BASE_WAIT_H
#define RD_BASE_WAIT_H

#include "base/health.h"

#define RD_LATE_MS (60 * 1000) /* the time between two reports of a late peer */

typedef struct rd_wait {
    rd_stop_t *stop;
    int spin;        /* polls before the first yield of this wait */
    int spin_us;     /* microseconds before the first yield, if that is sooner; 0: `spin` alone; the owner may set it */
    int alone;       /* a thread of the library's own: makes no progress for others; the owner may set it */
    int slow;        /* a poll is a system call, so there are no pauses between polls; the owner may set it */
    int misses;      /* misses since the last progress */
    int64_t spin_ns; /* the fine clock near the first miss; 0: not yet read */
    int64_t timeout_ms; /* 0: never */
    int64_t began_ms;   /* the clock at the first slow miss; 0: none yet */
    int64_t named_ms;   /* when a late peer was last reported */
    int64_t clock_ms;   /* when the clock was last read; the owner may reset it to 0 to see the next reading */
} rd_wait_t;

void rd_wait_begin(rd_wait_t *w, rd_stop_t *stop, int spin, int64_t timeout_ms);
/* The backoff after a poll that found nothing. Pauses or yields; now and then checks the stop word and the clock. Where
 * it would yield, it first makes progress for what else is outstanding in this process (outstanding.h).
 * Returns RONDO_SUCCESS to poll again; RONDO_ERR_TIMEOUT when the set time is over (the caller then names the peer);
 * RONDO_IN_PROGRESS when a minute has passed (the caller names the peer that it waits for and goes on polling). */
rondo_result_t rd_wait_backoff(rd_wait_t *w);
static inline void rd_wait_progress(rd_wait_t *w)
{
    w->misses = 0;
    w->spin_ns = 0;
    w->began_ms = 0;
}

/* A moment's pause between two polls, so that the processor does not begin the next ones ahead of their time. */
#if defined(__x86_64__) || defined(__i386__)
#define rd_wait_pause() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define rd_wait_pause() __asm__ volatile("isb" ::: "memory")
#else
#define rd_wait_pause() __asm__ volatile("" ::: "memory")
#endif

/* To be called again and again until another thread of this process has done something: yields, and after a while
 * sleeps, so that the other one gets a core. `yields` counts them, from 0. */
void rd_wait_thread(int *yields);

int64_t rd_clock_ms(void); /* monotonic, some milliseconds coarse */
int64_t rd_clock_ns(void); /* monotonic and fine: costs several times as much */

#endif
