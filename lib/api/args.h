/* Checks that the entry of every operation makes. Each reports what was wrong, what the value was and what is allowed.
 */
#ifndef RD_API_ARGS_H
#define RD_API_ARGS_H

#include "core/comm.h"

/* The public call in which an argument was given, and its communicator. */
typedef struct rd_at {
    const char *call;
    rondo_comm_t comm;
} rd_at_t;

rondo_result_t rd_args_start(rd_at_t at, rondo_type_t type, rondo_stream_t stream);
/* Returns true if rd_args_start would find nothing wrong with a call without a stream: the few instructions of a call
 * that is right. False: ask it. */
static inline bool rd_args_sound(const struct rondo_comm *comm, rondo_type_t type, rondo_stream_t stream)
{
    return comm && atomic_load_explicit(&comm->alive, memory_order_acquire) == rd_comm_mark &&
           (unsigned)type < RONDO_NUM_TYPES && !stream;
}

/* Returns the number of elements that memory can hold. Sizes of types are powers of two, so a shift replaces a division
 * in each call. */
static inline size_t rd_args_most(rondo_type_t type)
{
    return SIZE_MAX / 2 >> __builtin_ctzl(rondo_type_size(type));
}

rondo_result_t rd_args_rank(rd_at_t at, const char *what, int rank);
rondo_result_t rd_args_op(rd_at_t at, rondo_op_t op, rondo_type_t type);

#endif
