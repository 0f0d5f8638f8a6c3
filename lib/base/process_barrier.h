/* A barrier that one thread issues for all threads of its process, so that what they do often needs none. */
#ifndef RD_BASE_PROCESS_BARRIER_H
#define RD_BASE_PROCESS_BARRIER_H

/* After it, what the threads of this process have stored so far is seen here, and what they read from now on is new. It
 * takes microseconds, or milliseconds where the kernel's is not at hand, and waits for no thread, nor for the kernel's.
 */
void rd_process_barrier(void);

#endif
