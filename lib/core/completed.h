/* RONDO_HOOK_COMPLETED: operations that are over are told to the program's functions. */
#ifndef RD_CORE_COMPLETED_H
#define RD_CORE_COMPLETED_H

#include "core/comm.h"

/* When a communicator has its seat: whether there is such a hook counts for as long as it lives. */
void rd_completed_begin(rondo_comm_t comm);

#endif
