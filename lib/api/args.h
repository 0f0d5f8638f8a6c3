/* Checks that the entry of every operation makes. Each reports what was wrong, what the value was and what is allowed.
 */
#ifndef RD_API_ARGS_H
#define RD_API_ARGS_H

#include "base/types.h"
#include "core/caller.h"
#include "core/comm.h"

/* The public call in which an argument was given, and its communicator. */
typedef struct rd_at {
    const char *call;
    rondo_comm_t comm;
} rd_at_t;

/* What is wrong with the communicator, the type or the stream, and with a rank, if anything is. Calls ask the two
 * functions below, which take few instructions where all is well. */
rondo_result_t rd_args_start_slow(rd_at_t at, rondo_type_t type, rondo_stream_t stream);
rondo_result_t rd_args_rank_slow(rd_at_t at, const char *what, int rank);

static inline rondo_result_t rd_args_start(rd_at_t at, rondo_type_t type, rondo_stream_t stream)
{
    bool sound = at.comm && atomic_load_explicit(&at.comm->alive, memory_order_acquire) == rd_comm_mark &&
                 !rd_caller()->in_hook && (unsigned)type < RONDO_NUM_TYPES && (!stream || rd_comm_on_device(at.comm));

    return sound ? RONDO_SUCCESS : rd_args_start_slow(at, type, stream);
}

static inline rondo_result_t rd_args_rank(rd_at_t at, const char *what, int rank)
{
    return (unsigned)rank < (unsigned)at.comm->team.nranks ? RONDO_SUCCESS : rd_args_rank_slow(at, what, rank);
}

/* Returns the number of elements that memory can hold. Sizes of types are powers of two, so a shift replaces a division
 * in each call. */
static inline size_t rd_args_most(rondo_type_t type)
{
    return SIZE_MAX / 2 >> __builtin_ctzl(rd_type_size(type));
}

rondo_result_t rd_args_op(rd_at_t at, rondo_op_t op, rondo_type_t type);

#endif
