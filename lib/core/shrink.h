/* Making a communicator of the ranks that are left. */
#ifndef RD_CORE_SHRINK_H
#define RD_CORE_SHRINK_H

#include "core/comm.h"

/* Implements rondo_comm_shrink with RONDO_SURVIVORS; the arguments have been checked. */
rondo_result_t rd_comm_shrink_survivors(rondo_comm_t comm, rondo_comm_t *newcomm, const rondo_config_t *config);

#endif
