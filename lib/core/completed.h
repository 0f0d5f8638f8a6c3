/* RONDO_HOOK_COMPLETED: operations that are over are told to the program's functions. */
#ifndef RD_CORE_COMPLETED_H
#define RD_CORE_COMPLETED_H

#include "core/comm.h"

/* To be called when the communicator has its seat. Only if there is such a hook by then, its operations are told, until
 * its end. */
void rd_completed_begin(rondo_comm_t comm);

#endif
