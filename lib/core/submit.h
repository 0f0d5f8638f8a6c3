/* What every operation's entry does: refuse what is wrong, then run it at once or record it in the group. */
#ifndef RD_CORE_SUBMIT_H
#define RD_CORE_SUBMIT_H

#include "core/lifetime.h"
#include "plan/call.h"

/* Runs or records. */
rondo_result_t rd_call_collective(rondo_comm_t comm, const rd_call_t *call);

extern _Thread_local int rd_group_depth;

/* Nonzero: a call outside of groups that asks for what the communicator's last one did, as latency-bound codes call
 * over and over. All of it is known to be good, but for the buffers. */
static inline int rd_call_repeats(rondo_comm_t comm, rd_coll_t coll, rondo_type_t type, rondo_op_t op, int root,
                                  size_t count, rondo_stream_t stream)
{
    if (!comm || atomic_load_explicit(&comm->alive, memory_order_relaxed) != rd_comm_mark || rd_group_depth || stream)
        return 0;
    const rd_coll_desc_t *last = &comm->last.desc;
    return comm->last.plan && last->count == count && last->coll == coll && last->type == type && last->op == op &&
           last->root == root;
}

/* Such a call. */
rondo_result_t rd_call_repeat(rondo_comm_t comm, const void *in, void *out);
rondo_result_t rd_call_message(rondo_comm_t comm, int send, void *buffer, size_t bytes, int peer,
                               rondo_stream_t stream);

/* After a call that failed: the others are in it, or will be, and wait for this rank, so what could not begin for lack
 * of memory and the like fails the communicator. Other refusals leave it as it was. Returns the result that stands. */
rondo_result_t rd_call_spoiled(rondo_comm_t comm, rondo_result_t result);

/* Into this thread's group. Take over the plan. */
rondo_result_t rd_group_record(rondo_comm_t comm, rd_task_t *task);
rondo_result_t rd_group_record_self(rondo_comm_t comm, int send, void *buffer, size_t bytes);
/* This thread's group has to do with the communicator: holds it until the end. */
rondo_result_t rd_group_note(rondo_comm_t comm);
/* A call inside the group failed: its end will return the same. */
rondo_result_t rd_group_failed(rondo_result_t result);

#endif
