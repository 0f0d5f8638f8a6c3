/* The functions that a communicator hands down to its health (base/health.h) and to the liveness thread
 * (transport/liveness.h), whose argument it is. */
#ifndef RD_CORE_HEALTH_OPS_H
#define RD_CORE_HEALTH_OPS_H

#include "core/comm.h"

extern const rd_health_ops_t rd_comm_health_ops;
extern const rd_liveness_ops_t rd_comm_liveness_ops;

#endif
