/* Operators of the user's own: PREMULSUM, a sum of contributions each scaled by its rank's scalar. */
#ifndef RD_CORE_OP_H
#define RD_CORE_OP_H

#include "core/comm.h"
#include "plan/call.h"

/* The reducer of a user's op of this communicator; NULL and an error where it is not one, or for another type. */
const rd_reducer_t *rd_op_reducer(rondo_comm_t comm, rondo_op_t op, rondo_type_t type, const char *call);
/* The same question before a call has entered the communicator. */
rondo_result_t rd_op_check(rondo_comm_t comm, rondo_op_t op, rondo_type_t type, const char *call);
/* Its scalar, or NULL: it is not one. */
const rd_op_scalar_t *rd_op_scalar(rondo_comm_t comm, rondo_op_t op);
void rd_op_free_all(rondo_comm_t comm);

#endif
