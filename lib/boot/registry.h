/* The rendezvous threads of this process: found by job, ended in order, none left behind. */
#ifndef RD_BOOT_REGISTRY_H
#define RD_BOOT_REGISTRY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* First member of what a thread serves; the whole is freed by free(). */
typedef struct rd_served {
    unsigned char job[16];
    pthread_t thread;
    int wake;                        /* eventfd: readable once cancelled */
    _Atomic(const char *) cancelled; /* why, NULL: it is not */
    atomic_int members;              /* ranks that have come */
    int done;
    int awaited; /* a rank waits for the end, takes the result and frees it: nobody else may */
    struct rd_served *next;
} rd_served_t;

/* Starts run(served) in a thread that no signal reaches; 0, or -1 with errno. */
int rd_served_start(rd_served_t *s, void *(*run)(void *));
static inline const char *rd_served_cancelled(rd_served_t *s)
{
    return atomic_load(&s->cancelled);
}
void rd_served_done(rd_served_t *s); /* the thread's last word; s is no longer its own */

/* Waits up to `ms` for job's thread to end by itself, then cancels it for `why`, and joins and frees it. Nothing if it
 * is not here. */
void rd_served_finish(const unsigned char job[16], int64_t ms, const char *why);
/* Tells job's thread to end for `why`, if it is here, and waits for nothing. */
void rd_served_cancel(const unsigned char job[16], const char *why);
/* Cancels job's thread if it is here and no rank has come; true: done. */
bool rd_served_release(const unsigned char job[16], const char *why);
void rd_served_reap(void); /* joins and frees what has ended */

#endif
