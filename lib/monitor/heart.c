/* See heart.h. */
#include "monitor/heart.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "monitor/thread_text.h"

/* What a thread writes, and what those who look remember. */
static struct {
    _Atomic uint64_t beat;                      /* odd: it works */
    _Atomic int thread;                         /* the kernel's number */
    _Atomic uint64_t seen;                      /* the beat at the last look, which was odd; 0: it was not */
    _Atomic int64_t seen_ms;                    /* when that was */
    _Atomic int times;                          /* at that beat */
    void (*_Atomic on_stuck)(const char *text); /* NULL: it is logged */
} hearts[RD_HEARTS];

void rd_heart_works(rd_heart_t heart)
{
    const uint64_t beat = atomic_load_explicit(&hearts[heart].beat, memory_order_relaxed);

    atomic_store_explicit(&hearts[heart].thread, (int)syscall(SYS_gettid), memory_order_relaxed);
    atomic_store_explicit(&hearts[heart].beat, (beat + 1) | 1, memory_order_release);
}

void rd_heart_rests(rd_heart_t heart)
{
    const uint64_t beat = atomic_load_explicit(&hearts[heart].beat, memory_order_relaxed);

    atomic_store_explicit(&hearts[heart].beat, (beat | 1) + 1, memory_order_release);
}

static void say(rd_heart_t heart, char *text, size_t bytes)
{
    static const char *const what[RD_HEARTS] = {
        "the thread that watches over other ranks is stuck, so that a rank's death may not be noticed",
        "the thread that writes dumps and calls hooks is stuck"};
    char number[16], where[256] = "";

    snprintf(number, sizeof number, "%d", atomic_load(&hearts[heart].thread));
    if (!rd_thread_text(getpid(), number, where, sizeof where))
        snprintf(where, sizeof where, "thread %s has ended", number);
    snprintf(text, bytes, "%s: for %d s it has not come back from one piece of work (%s); rondo-ras stacks says more",
             what[heart], RD_HEART_TIMES * RD_HEART_LOOK_MS / 1000, where);
}

/* Of those who look at once one counts. */
void rd_heart_look(rd_heart_t heart, int64_t now_ms)
{
    int64_t before = atomic_load_explicit(&hearts[heart].seen_ms, memory_order_relaxed);
    const uint64_t beat = atomic_load_explicit(&hearts[heart].beat, memory_order_acquire);
    void (*call)(const char *text) = atomic_load(&hearts[heart].on_stuck);
    char text[512];

    if (now_ms - before < RD_HEART_LOOK_MS || !atomic_compare_exchange_strong(&hearts[heart].seen_ms, &before, now_ms))
        return;
    if (!(beat & 1) || atomic_exchange(&hearts[heart].seen, beat) != beat) {
        atomic_store(&hearts[heart].times, 0);
        return;
    }
    if (atomic_fetch_add(&hearts[heart].times, 1) + 1 != RD_HEART_TIMES)
        return;
    say(heart, text, sizeof text);
    if (call)
        call(text);
    else
        rd_log(NULL, RD_LOG_WARN, "%s", text);
}

void rd_heart_on_stuck(rd_heart_t heart, void (*call)(const char *text))
{
    atomic_store(&hearts[heart].on_stuck, call);
}

void rd_heart_forget(void)
{
    memset((void *)hearts, 0, sizeof hearts);
}
