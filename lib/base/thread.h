/* The library's own threads. */
#ifndef RD_BASE_THREAD_H
#define RD_BASE_THREAD_H

#include <pthread.h>

/* Starts a thread that no signal reaches: the user's signals go to the user's threads. Returns 0, or an errno. */
int rd_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
