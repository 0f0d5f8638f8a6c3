/* Who looks at a communicator's calls before they run: a profiler plugin, NVTX, the search for NaN, hashes, stacks.
 * Where nobody does, `comm->shown` is NULL, which is all that a call looks at; where somebody does, no call is
 * remembered, so that none goes the way of repetitions (submit.h), which looks at nothing. */
#ifndef RD_CORE_SHOWN_H
#define RD_CORE_SHOWN_H

#include "core/comm.h"
#include "plan/call.h"
#include "profile/profile.h"

typedef struct rd_shown rd_shown_t;

/* When a communicator has been made, and when its tasks have ended. */
void rd_shown_begin(rondo_comm_t comm);
void rd_shown_end(rondo_comm_t comm);

/* Run a call by `run`, and show it. From inside the communicator, as everything here. */
typedef rondo_result_t (*rd_run_collective_fn)(rondo_comm_t comm, const rd_call_t *call);
typedef rondo_result_t (*rd_run_message_fn)(rondo_comm_t comm, const rd_message_t *message);
rondo_result_t rd_shown_collective(rondo_comm_t comm, const rd_call_t *call, rd_run_collective_fn run);
rondo_result_t rd_shown_message(rondo_comm_t comm, const rd_message_t *message, rd_run_message_fn run);

/* On the way, on host memory: the plan by which the call runs now; or the task by which it will run. */
void rd_shown_runs(rondo_comm_t comm, const rd_plan_t *plan);
void rd_shown_record(rondo_comm_t comm, rd_task_t *task);

/* Adds to what the record will say of the call that is under way; and says what it has written, before it ends. */
void rd_shown_note(rondo_comm_t comm, rd_monitor_call_t *what);
void rd_shown_other(rondo_comm_t comm, rd_monitor_call_t *what); /* a call that is no operation */
void rd_shown_wrote(rondo_comm_t comm, uint64_t entry);

#endif
