/* What is in flight on a communicator, beyond the one blocking call.
 *
 * A task is a run that waits its turn in a chain: collectives follow each other in one chain, messages to a peer in
 * another, messages from a peer in a third; tasks of different chains run side by side. Whoever waits (group end,
 * request, a later blocking call) advances all active tasks of the communicator.
 */
#ifndef RD_PROGRESS_QUEUE_H
#define RD_PROGRESS_QUEUE_H

#include "base/wait.h"
#include "exec/host/run.h"
#include "node/team.h"

/* What tasks leave behind for whoever waits for them. */
typedef struct rd_completion {
    _Atomic int pending; /* tasks that are not over; an abort of one communicator may end its tasks from elsewhere */
    _Atomic int result;  /* of the first that failed */
} rd_completion_t;

/* The first error stands. */
static inline void rd_completion_fail(rd_completion_t *completion, rondo_result_t result)
{
    int success = RONDO_SUCCESS;

    if (result == RONDO_SUCCESS)
        return;
    atomic_compare_exchange_strong(&completion->result, &success, (int)result);
}

typedef struct rd_task {
    struct rd_task *next;  /* recorded in a group, later active; or among the spent */
    struct rd_task *after; /* the next of its chain */
    struct rd_queue *queue;
    struct rd_task **chain;
    rd_plan_t *plan;
    const void *in;
    void *out;
    rd_completion_t *completion; /* NULL: nobody asks */
    void *bounce; /* the output is made here and copied to `result` in the end; NULL: it is made in its place */
    void *result;
    size_t result_bytes;
    /* What is to be done when it is over, before the next of its chain begins; its failure is the communicator's. NULL:
     * nothing. */
    rondo_result_t (*on_done)(struct rd_task *task);
    void *record; /* for on_done; freed with the task */
    rd_run_t run;
} rd_task_t;

typedef struct rd_queue {
    /* What runs here: plans of this planner, for this team. */
    const rd_team_t *team;
    rd_health_t *health;   /* the team's */
    rd_planner_t *planner; /* NULL on a CUDA communicator, for which nothing runs here */
    rd_transport_t *net;   /* by which other nodes are reached; on one node one that need not be polled */
    bool polled;           /* messages come by the progress of `net` alone */
    rd_control_t *self, *const *controls; /* this rank's own, and those of its node */
    int spin, spin_yield;                 /* the team's */
    int64_t timeout_ms;                   /* the team's */

    rd_task_t *active;
    rd_task_t *last;   /* of active: tasks start in the order in which they came */
    rd_task_t **tails; /* of each chain; 1 + 2 * nranks */
    rd_task_t *spent;  /* memory for the next tasks: a code's groups are alike */
    int nspent;
    rd_run_t run;  /* of the blocking call */
    char *scratch; /* of the collective that runs */
    size_t scratch_bytes;
    char *spare; /* more of it, reserved: takes its place when a collective that needs so much begins */
    size_t spare_bytes;
    rd_wait_t wait;
    int peer_left; /* misses in a row on a rank that has left */
} rd_queue_t;

rondo_result_t rd_queue_create(rd_queue_t *queue, const rd_team_t *team, rd_planner_t *planner, const rd_conns_t *conns,
                               rd_transport_t *net);
void rd_queue_free(rd_queue_t *queue);

/* Which chain a task belongs to. */
#define RD_CHAIN_COLLECTIVE 0
#define RD_CHAIN_SEND(peer) (1 + 2 * (peer))
#define RD_CHAIN_RECV(peer) (2 + 2 * (peer))

/* A task for later: takes over the caller's use of `plan` (gives it back on failure too). */
rondo_result_t rd_task_create(rd_queue_t *queue, rd_plan_t *plan, int chain, const void *in, void *out,
                              rd_task_t **task);
/* The caller is inside the communicator, so that nobody else uses its queue; NULL: the queue is gone. */
void rd_task_free(rd_queue_t *queue, rd_task_t *task);
/* Gets what it needs to run. All of a group's tasks are prepared before the first is added: then none can fail for lack
 * of memory when others have begun. */
rondo_result_t rd_queue_prepare(rd_queue_t *queue, rd_task_t *task);
/* Appends it to its chain. */
void rd_queue_add(rd_queue_t *queue, rd_task_t *task);

/* Prepares a task and appends it at once, for a proxy, which alone makes this queue's progress; `completion` counts it
 * among those that are pending. On failure the task is freed. */
rondo_result_t rd_queue_submit(rd_queue_t *queue, rd_task_t *task, rd_completion_t *completion);

/* The time of waits begins now, with the team's patience. */
void rd_queue_wait_begin(rd_queue_t *queue);

/* One turn over everything active; *moved is set if anything moved. An error fails the communicator and ends all of
 * its tasks with it. */
rondo_result_t rd_queue_advance(rd_queue_t *queue, int *moved);
/* The same without a look at the network, which takes as long as a short operation: the caller owes it. */
rondo_result_t rd_queue_tasks(rd_queue_t *queue, int *moved);
/* After a turn in which something moved. */
void rd_queue_moved(rd_queue_t *queue);
/* After a turn in which nothing moved: waits a little, sees abort, death and timeout. */
rondo_result_t rd_queue_backoff(rd_queue_t *queue);
/* After a miss: fails the communicator if the rank that is waited for has left, since it sends nothing more. */
rondo_result_t rd_queue_peer_left(rd_queue_t *queue);
/* Until nothing is active. */
rondo_result_t rd_queue_drain(rd_queue_t *queue);
/* Is nothing? RONDO_IN_PROGRESS: something is, after one turn. */
rondo_result_t rd_queue_drained(rd_queue_t *queue);
/* Ends everything active with `code`. */
void rd_queue_flush(rd_queue_t *queue, rondo_result_t code);

/* Runs one plan to its end, behind whatever its chain holds. Takes over the caller's use of `plan`. */
rondo_result_t rd_queue_run(rd_queue_t *queue, rd_plan_t *plan, int chain, const void *in, void *out);
/* The same, of a flat plan of a collective that has run before and stays the caller's. */
rondo_result_t rd_queue_repeat(rd_queue_t *queue, rd_plan_t *plan, const void *in, void *out);

#endif
