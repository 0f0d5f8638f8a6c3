/* What the entry of every operation does: it refuses what is wrong, then runs the operation at once or records it in
 * the group. */
#ifndef RD_CORE_SUBMIT_H
#define RD_CORE_SUBMIT_H

#include <stdbool.h>

#include "core/caller.h"
#include "core/lifetime.h"
#include "core/limits.h"
#include "plan/call.h"
#include "plan/chunk_map.h"

/* Runs or records a collective of this thread, which `caller` is. The call gets its tag and its group. */
rondo_result_t rd_call_collective(const rd_caller_t *caller, rondo_comm_t comm, rd_call_t *call);

/* Returns true if the call is outside of groups and repeats the communicator's last one, as latency-bound codes do
 * over and over. All of it is known to be valid, except for the buffers. `kind`: the collective. */
static inline bool rd_call_repeats(rondo_comm_t comm, int kind, rondo_type_t type, rondo_op_t op, int root,
                                   size_t count, rondo_stream_t stream)
{
    if (!comm || atomic_load_explicit(&comm->alive, memory_order_relaxed) != rd_comm_mark || rd_caller()->differs ||
        stream)
        return false;
    return comm->last.plan && comm->last.count == count && comm->last.kind == kind && comm->last.type == type &&
           comm->last.op == op && comm->last.root == root && comm->last.tag == rd_caller()->tag;
}

static inline int rd_call_kind_v(rd_coll_t coll)
{
    return RD_NUM_COLLS + (int)coll;
}

/* The same of a v-operation, which repeats the last one if all counts and displacements of this rank are equal. */
static inline bool rd_call_repeats_v(rondo_comm_t comm, const rd_call_t *call)
{
    return rd_call_repeats(comm, rd_call_kind_v(call->kind), call->desc.type, call->desc.op, call->root, 0,
                           call->stream) &&
           rd_map_same(comm->last.plan, call->tables, comm->team.nranks);
}

/* Runs such a call. */
rondo_result_t rd_call_repeat(rondo_comm_t comm, const void *in, void *out);
/* The same for a message. */
rondo_result_t rd_call_message(const rd_caller_t *caller, rondo_comm_t comm, rd_message_t *message);

/* For a collective that is refused for its arguments: what was said for this thread's next one was said for it. */
rondo_result_t rd_call_refused(rondo_result_t result);
/* The same for a message or a one-sided operation. Inside a group a time limit is the group's, and stays. */
rondo_result_t rd_message_refused(rondo_result_t result);
/* To be called after a call that failed. The other ranks are in it, or will be, and wait for this rank, so a call that
 * could not begin for lack of memory or the like fails the communicator. Other refusals leave it as it was. Returns the
 * final result. */
rondo_result_t rd_call_spoiled(rondo_comm_t comm, rondo_result_t result);

/* A split, or the making or the end of a window, begins, and ends: the record says so, and it is signed like a
 * collective. `kind` is RD_MONITOR_SPLIT, _GROW, _WINDOW, _SUSPEND or _RESUME; `name` is what the other ranks are told
 * in exchanges over the bootstrap meanwhile. The caller is inside the communicator. */
uint64_t rd_call_begin_other(rondo_comm_t comm, uint8_t kind, const char *name);
void rd_call_end_other(rondo_comm_t comm, uint64_t entry, rondo_result_t result);
/* What rondo_timeout_next has said counts for this call, unless that is recorded in a group. */
static inline void rd_call_limit(const rd_caller_t *caller, rondo_comm_t comm)
{
    int64_t ms = caller->differs && !caller->depth ? rd_limit_take() : -1;

    if (ms >= 0)
        rd_limit_own(&comm->queue.limit, ms);
}

/* To be called when a task of a group enters its queue: the record says so. */
void rd_call_begin_task(rondo_comm_t comm, rd_task_t *task);

/* Record a task, or a message of this rank to itself, in this thread's group. They take over the plan. */
rondo_result_t rd_group_record(struct rd_group *group, rondo_comm_t comm, rd_task_t *task);
/* Records a short message as one that follows a task: progress/queue.h. Returns false if it needs a task of its own. */
bool rd_group_follow(struct rd_group *group, rondo_comm_t comm, const rd_message_t *message, rd_plan_t *plan);
rondo_result_t rd_group_record_self(struct rd_group *group, rondo_comm_t comm, const rd_message_t *message);
/* Records a one-sided operation, which is allocated, and so is `waits`. It is taken over. */
struct rd_rma_op;
rondo_result_t rd_group_record_rma(struct rd_group *group, rondo_comm_t comm, struct rd_rma_op *op);
/* Adds the communicator to this thread's group, which holds it until its end. */
rondo_result_t rd_group_note(struct rd_group *group, rondo_comm_t comm);
/* For a call that may not be inside a group: refuses it if it is. The group goes on. `comm` may be NULL. */
rondo_result_t rd_group_refuse(rondo_comm_t comm, const char *call);
/* Records that a call inside the group failed: the end of the group will return the same result. */
rondo_result_t rd_group_failed(rondo_result_t result);

#endif
