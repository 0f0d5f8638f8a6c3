/* The library's own threads. */
#ifndef RD_BASE_THREAD_H
#define RD_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Starts a thread that no signal reaches: the user's signals go to the user's threads. Returns 0, or an errno. */
int rd_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

/* Returns 0 if a thread can be started, or an errno. To be asked before a library starts one that ends the process
 * where it cannot. */
int rd_thread_try(void);

/* Makes a condition variable whose waits end by CLOCK_MONOTONIC: a change of the date does not move their limits. */
void rd_cond_make(pthread_cond_t *cond);

/* Returns strerror(error), or, where a thread or a descriptor could not be had, which limit was met and how to raise
 * it. The text is this thread's, until its next call. */
const char *rd_thread_strerror(int error);

/* Blocks every signal in the calling thread, for the threads that a library starts in the meantime. The caller sets the
 * mask to `before` again. */
void rd_signals_block(sigset_t *before);

#endif
