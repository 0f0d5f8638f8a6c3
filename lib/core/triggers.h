/* Dumps that are asked for from outside: by a signal (RONDO_DUMP_SIGNAL), or by a byte in a named pipe
 * (RONDO_DUMP_PIPE). The monitor thread writes them into RONDO_DUMP_DIR. */
#ifndef RD_CORE_TRIGGERS_H
#define RD_CORE_TRIGGERS_H

#include "core/comm.h"

/* To be called when a communicator is published, and when it has ended. The first that wants them installs the handler
 * and makes the pipe; the last takes them back. */
void rd_triggers_join(rondo_comm_t comm);
void rd_triggers_leave(rondo_comm_t comm);

/* For the monitor thread. */
int rd_triggers_fd(void); /* of the pipe; -1: there is none */
void rd_triggers_turn(void);

void rd_triggers_forget(void); /* in a forked child */

#endif
