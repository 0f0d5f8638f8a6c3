/* Making a communicator of the ranks that are left. */
#ifndef RD_CORE_SHRINK_H
#define RD_CORE_SHRINK_H

#include "core/background.h"

/* Implements rondo_comm_shrink with RONDO_SURVIVORS; the arguments have been checked. It is a job (core/background.h).
 */
rondo_result_t rd_comm_shrink_survivors(rd_job_t *job);
/* A shrink of the communicator, of either kind, is over: the record says so. */
void rd_comm_shrunk(rondo_comm_t comm);

#endif
