/* When a communicator fails: the last calls of those that matter are written down (RONDO_DUMP_DIR). */
#ifndef RD_CORE_DUMPS_H
#define RD_CORE_DUMPS_H

#include "core/comm.h"

/* A call has failed, and the communicator with it, for the first time on this rank; the others know of it. Returns when
 * the dumps are written, if it is this rank that writes them, or nothing was written for a second: then a thread goes
 * on. Where they cannot be written, a line of the log says why. */
void rd_comm_dump(rondo_comm_t comm);

/* Somebody has asked for a dump of this process: into RONDO_DUMP_DIR. */
rondo_result_t rd_dump_asked(void);

#endif
