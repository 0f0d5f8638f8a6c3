/* RONDO_STACKS: the log says from where a call was made that has failed. */
#ifndef RD_CORE_FAILED_CALL_H
#define RD_CORE_FAILED_CALL_H

#include "core/comm.h"

/* To be called when a call has failed, and the communicator with it, for the first time. Functions are named within
 * RONDO_DUMP_WAIT_MS, or not at all. */
void rd_failed_call_say(rondo_comm_t comm);
/* Says where each thread of this process stands, before RONDO_ON_ERROR ends it. */
void rd_failed_threads_say(rondo_comm_t comm);

#endif
