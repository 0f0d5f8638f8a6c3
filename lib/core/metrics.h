/* RONDO_METRICS: what this process counts, in a file for Prometheus that is replaced every RONDO_METRICS_MS. The
 * monitor thread writes and removes it (metrics_file.h), so that no call waits for a file server. With the last
 * communicator, and at the end of the process, it is removed: what is not there any more counts nothing. */
#ifndef RD_CORE_METRICS_H
#define RD_CORE_METRICS_H

#include "core/comm.h"

/* To be called when a communicator is published, and when it has ended. */
void rd_metrics_join(rondo_comm_t comm);
void rd_metrics_leave(rondo_comm_t comm);
/* It was said who holds a call up: `status` of a verdict, and the rank that it names. */
void rd_metrics_stall(rondo_comm_t comm, int status, int rank);

/* For the monitor thread: writes the file if it is due. Returns in how many milliseconds it is again; -1: never. */
int rd_metrics_turn(void);
/* The process ends without exit: the file goes. Waits for a second at most. */
void rd_metrics_end(void);
void rd_metrics_forget(void); /* in a forked child */

#endif
