/* The monitor thread: what may take long and must not hold up a call, or what comes from outside of calls. It writes
 * the dumps that are asked for (triggers.h) and the file for Prometheus (metrics.h), says how far a rank is
 * (status_lines.h), and calls the hooks (hooks.h). It starts with the first who needs it and ends with the last.
 *
 * Where it is stuck, as by a file server that does not answer, another thread takes its place once (monitor/heart.h),
 * and does all but what the first one is still in.
 *
 * It waits in poll and holds no lock that a call takes. It is waited for at its end, but not for longer than a second:
 * a file server that does not answer must not keep a communicator from being destroyed. */
#ifndef RD_CORE_MONITOR_THREAD_H
#define RD_CORE_MONITOR_THREAD_H

#include <stdbool.h>

/* Returns false, and logs why, if there is no thread. */
bool rd_monitor_thread_join(void);
void rd_monitor_thread_leave(void);
/* Makes it look at everything. Also in a signal handler. */
void rd_monitor_thread_wake(void);

#endif
