/* What a communicator consists of, from the agreement of its ranks to the liveness thread. */
#ifndef RD_CORE_MODULES_H
#define RD_CORE_MODULES_H

#include "core/comm.h"

/* Makes the modules after the bootstrap, each of which uses those before it. If that fails, rd_modules_end follows. */
rondo_result_t rd_modules_make(rondo_comm_t comm);
/* Takes all modules down, the bootstrap too, and any number of them may never have been made. The struct stays. */
void rd_modules_end(rondo_comm_t comm);

#endif
