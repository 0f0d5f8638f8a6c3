/* Threads of the library's own. */
#ifndef RD_BASE_THREAD_H
#define RD_BASE_THREAD_H

#include <pthread.h>

/* A thread that no signal reaches: the user's signals go to the user's threads. 0, or an errno. */
int rd_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
