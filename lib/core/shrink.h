/* Making a communicator of whoever is left. */
#ifndef RD_CORE_SHRINK_H
#define RD_CORE_SHRINK_H

#include "core/comm.h"

/* rondo_comm_shrink with RONDO_SURVIVORS; the arguments have been looked at. */
rondo_result_t rd_comm_shrink_survivors(rondo_comm_t comm, rondo_comm_t *newcomm, const rondo_config_t *config);

#endif
