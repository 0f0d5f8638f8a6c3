/* RONDO_STATUS_MS: how far this rank is with each communicator, in the log, so often. The monitor thread says it. */
#ifndef RD_CORE_STATUS_LINES_H
#define RD_CORE_STATUS_LINES_H

#include "core/comm.h"

/* To be called when a communicator is published, and when it has ended. */
void rd_status_lines_join(rondo_comm_t comm);
void rd_status_lines_leave(rondo_comm_t comm);

/* For the monitor thread: says what is due. Returns in how many milliseconds the next line is; -1: none is. */
int rd_status_lines_turn(void);

#endif
