/* The rendezvous threads of this process, and those that take a last word to one elsewhere. They are found by their job
 * and ended in order, and none is left behind. */
#ifndef RD_BOOT_REGISTRY_H
#define RD_BOOT_REGISTRY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* The first member of the struct that a thread serves; the whole struct is freed by free(). */
typedef struct rd_served {
    unsigned char job[16];
    pthread_t thread;
    int wake;                        /* eventfd: readable once cancelled; -1: none, so that is to be looked for */
    _Atomic(const char *) cancelled; /* the reason; NULL: it is not cancelled */
    char why[RD_ERROR_BYTES];
    _Atomic(const char *) failed; /* the sentence of a rank of this process that has failed, or the thread's own; NULL:
                                     none */
    char failure[RD_ERROR_BYTES];
    atomic_int members; /* ranks that have come */
    int done;
    int awaited; /* a rank waits for its end and will join and free it: nobody else may */
    int *moved;  /* not NULL: it has a table of its own (rd_fd_own_table), into which it took along these `nmoved`,
                    all its descriptors; NULL: it uses the process's */
    int nmoved;  /* 0: it has had that table from the start, with nothing that the process would have to close */
    void *(*run)(void *);
    int table; /* 1: it has a table of its own from the start, 2: and is on the list; -1: it could not get one */
    struct rd_served *next;
} rd_served_t;

/* Starts run(served) in a thread that no signal reaches. Returns 0, or -1 with errno set. */
int rd_served_start(rd_served_t *s, void *(*run)(void *));
/* The same for a process that has no descriptor left: the thread has a table of its own (rd_fd_own_table) with `fd`,
 * which stays open in the process, and it has no wake. */
int rd_served_start_own_table(rd_served_t *s, void *(*run)(void *), int fd);
static inline const char *rd_served_cancelled(rd_served_t *s)
{
    return atomic_load(&s->cancelled);
}
static inline const char *rd_served_failed(rd_served_t *s)
{
    return atomic_load(&s->failed);
}
void rd_served_woken(rd_served_t *s); /* the thread has seen that its wake is readable: it is so no longer */
void rd_served_done(rd_served_t *s);  /* the last call of the thread, after which it no longer owns s */

/* Waits up to `ms` for the thread of `job` to end by itself, then cancels it for the reason `why`, and joins and frees
 * it. Without a reason one that goes on then is left alone: it is joined when it has ended, or when this process ends.
 * Does nothing if this process has no such thread. */
void rd_served_finish(const unsigned char job[16], int64_t ms, const char *why);
bool rd_served_here(const unsigned char job[16]); /* this process has such a thread, and it has not ended */
/* Copies the sentence with which it failed. Returns false if there is none. */
bool rd_served_failure(const unsigned char job[16], char sentence[RD_ERROR_BYTES]);
/* Hands the thread of `job`, if this process has one, the sentence of a rank of this process that has failed. It goes
 * on, and gives the sentence to the ranks that come. The first one stands. */
void rd_served_fail(const unsigned char job[16], const char *sentence);
/* Tells the thread of `job`, if this process has one, to end for the reason `why`, and does not wait. */
void rd_served_cancel(const unsigned char job[16], const char *why);
/* Cancels the thread of `job` if this process has one and no rank has come. Returns true if it did. */
bool rd_served_release(const unsigned char job[16], const char *why);
void rd_served_reap(void); /* joins and frees the threads that have ended */

#endif
