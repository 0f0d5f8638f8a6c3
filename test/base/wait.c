/* Waits: they end on the stop word at once, on the timeout when it is over and not before, and say once a minute that
 * they are still there; the first who stops a communicator is the one who is quoted, whoever else tries; and whoever
 * sees the stop word finds the communicator's sentence complete. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/check.h"
#include "base/wait.h"

static rd_stop_t shared;
static atomic_int others;

static rondo_result_t poll_until(rd_wait_t *w, rondo_result_t first)
{
    rondo_result_t code;
    while ((code = rd_wait_backoff(w)) == first)
        ;
    return code;
}

static void timeouts(int spin)
{
    rd_stop_t stop = {0};
    rd_wait_t w;
    int64_t began = rd_clock_ms();
    rd_wait_begin(&w, &stop, spin, 60);
    CHECK(poll_until(&w, RONDO_SUCCESS) == RONDO_ERR_TIMEOUT, "timeout");
    CHECK(rd_clock_ms() - began >= 60, "not before its time");
    rd_wait_begin(&w, &stop, spin, 3600 * 1000);
    for (int i = 0; i < 20000 && !w.began_ms; i++)
        rd_wait_backoff(&w);
    w.began_ms -= 3600 * 1000;
    rd_wait_progress(&w); /* begins the time anew */
    for (int i = 0; i < 20000; i++)
        CHECK(rd_wait_backoff(&w) != RONDO_ERR_TIMEOUT, "timeout in spite of progress");
    rd_wait_begin(&w, &stop, spin, 0);
    for (int i = 0; i < 20000 && !w.named_ms; i++)
        rd_wait_backoff(&w);
    CHECK(w.named_ms != 0, "the clock is looked at");
    w.named_ms -= 60 * 1000;
    w.began_ms -= 60 * 1000;
    CHECK(poll_until(&w, RONDO_SUCCESS) == RONDO_IN_PROGRESS, "names a late peer after a minute");
    for (int i = 0; i < 3000; i++)
        CHECK(rd_wait_backoff(&w) == RONDO_SUCCESS, "and then not for another one");
}

/* A wait that may pause a thousand million times yields all the same when its microseconds are over, and pauses again
 * after progress. */
static void spins_by_clock(void)
{
    enum { SPIN = 1000000000 };
    rd_stop_t stop = {0};
    rd_wait_t w;
    rd_wait_begin(&w, &stop, SPIN, 0);
    w.spin_us = 1;
    while (w.misses < SPIN)
        CHECK(rd_wait_backoff(&w) == RONDO_SUCCESS, "goes on"); /* the harness ends a test that hangs */
    CHECK(rd_wait_backoff(&w) == RONDO_SUCCESS && w.misses == SPIN, "yields, and goes on yielding");
    rd_wait_progress(&w);
    CHECK(rd_wait_backoff(&w) == RONDO_SUCCESS && w.misses == 1, "progress begins a new wait");
}

static void *stopper(void *arg)
{
    int me = (int)(intptr_t)arg;
    while (!atomic_load(&others))
        ;
    rondo_result_t code = rd_stop_set(&shared, NULL, RONDO_ERR_REMOTE, me, "rank %d died", me);
    return (void *)(intptr_t)(code == RONDO_ERR_REMOTE);
}

static void stops(void)
{
    rd_wait_t w;
    pthread_t t[4];
    void *good;
    char text[32];
    rd_wait_begin(&w, &shared, 1000000000, 0);
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, stopper, (void *)(intptr_t)i);
    atomic_store(&others, 1);
    CHECK(poll_until(&w, RONDO_SUCCESS) == RONDO_ERR_REMOTE, "the stop word");
    snprintf(text, sizeof(text), "rank %d died", atomic_load(&shared.failed_rank));
    CHECK(strcmp(text, shared.text) == 0, "failed rank and sentence are of one writer");
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], &good);
        CHECK(good != NULL, "the code that stands");
    }
    CHECK(rd_stop_set(&shared, NULL, RONDO_ERR_ABORTED, 9, "late") == RONDO_ERR_REMOTE, "a late writer");
    CHECK(strcmp(text, shared.text) == 0, "a late writer changes nothing");
}

/* One thread stops a communicator, this one looks at nothing but the stop word: what it then finds as the last error.
 */
#define HASTES 1000
static struct {
    rd_stop_t stop;
    rd_log_ctx_t ctx;
} hasty[HASTES];

static void *stop_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < HASTES; i++) {
        while (i && !atomic_load(&others))
            sched_yield();
        atomic_store(&others, 0);
        rd_stop_set(&hasty[i].stop, &hasty[i].ctx, RONDO_ERR_REMOTE, i, "rank %d of %s died", i, "a communicator");
    }
    return NULL;
}

static void sentences(void)
{
    pthread_t t;
    char text[64];
    int bad = 0;
    atomic_store(&others, 0);
    pthread_create(&t, NULL, stop_all, NULL);
    for (int i = 0; i < HASTES; i++) {
        for (int polls = 1; rd_stop_get(&hasty[i].stop) == RONDO_SUCCESS; polls++)
            if (polls % 10000 == 0)
                sched_yield();
        snprintf(text, sizeof(text), "rank %d of a communicator died", i);
        bad += strcmp(rd_log_ctx_error(&hasty[i].ctx), text) != 0 || atomic_load(&hasty[i].stop.failed_rank) != i;
        atomic_store(&others, 1);
    }
    pthread_join(t, NULL);
    if (bad)
        printf("%d of %d\n", bad, HASTES);
    CHECK(bad == 0, "the sentence is there before the stop word");
}

int main(void)
{
    alarm(60);
    rd_log_set_level(RD_LOG_NONE);
    timeouts(0);
    timeouts(5000);
    spins_by_clock();
    stops();
    sentences();
    return failures != 0;
}
