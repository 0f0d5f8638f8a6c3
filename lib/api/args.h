/* Checks that every operation's entry makes. Each says what was wrong, what it was and what is allowed. */
#ifndef RD_API_ARGS_H
#define RD_API_ARGS_H

#include "core/comm.h"

/* Where an argument was given: the public call, and its communicator. */
typedef struct rd_at {
    const char *call;
    rondo_comm_t comm;
} rd_at_t;

rondo_result_t rd_args_start(rd_at_t at, rondo_type_t type, rondo_stream_t stream);
/* Elements that memory can hold. Sizes of types are powers of two: a shift, where each call would make a division. */
static inline size_t rd_args_most(rondo_type_t type)
{
    return SIZE_MAX / 2 >> __builtin_ctzl(rondo_type_size(type));
}

rondo_result_t rd_args_rank(rd_at_t at, const char *what, int rank);
rondo_result_t rd_args_op(rd_at_t at, rondo_op_t op, rondo_type_t type);

#endif
