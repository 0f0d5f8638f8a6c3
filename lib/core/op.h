/* The user's own operators: PREMULSUM, a sum of contributions that are each scaled by their rank's scalar. */
#ifndef RD_CORE_OP_H
#define RD_CORE_OP_H

#include "core/comm.h"
#include "plan/call.h"

/* Returns the reducer of a user's op of this communicator; NULL, with an error, if it is not one or is for another
 * type. */
const rd_reducer_t *rd_op_reducer(rondo_comm_t comm, rondo_op_t op, rondo_type_t type, const char *call);
/* Makes the same check before a call has entered the communicator. */
rondo_result_t rd_op_check(rondo_comm_t comm, rondo_op_t op, rondo_type_t type, const char *call);
/* Returns the scalar of a user's op, or NULL if it is not one. */
const rd_op_scalar_t *rd_op_scalar(rondo_comm_t comm, rondo_op_t op);
void rd_op_free_all(rondo_comm_t comm);

#endif
