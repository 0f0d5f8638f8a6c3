/* What is in flight on a communicator, beyond the one blocking call.
 *
 * A task is a run that waits its turn in a chain: collectives follow each other in one chain, messages to a peer in
 * another, messages from a peer in a third; tasks of different chains run side by side. Whoever waits (group end,
 * request, a later blocking call) advances all active tasks of the communicator.
 */
#ifndef RD_QUEUE_H
#define RD_QUEUE_H

#include "exec/host/run.h"
#include "base/wait.h"

struct rondo_request {
    uint64_t mark;       /* rd_comm_mark of the process that submitted */
    _Atomic int pending; /* tasks that are not over; an abort of one communicator may end its tasks from elsewhere */
    _Atomic int result;  /* of the first that failed */
    int submitted;       /* the tasks are in their queues */
    int ncomms;
    rondo_comm_t *comms; /* whose tasks these are: a reference to each; most groups have one alone */
    rondo_comm_t one;
    int later;           /* its end does not wait for what runs on devices */
    struct rd_cuda_pending *cuda; /* what of it runs there and is waited for; NULL: nothing */
};

/* The first error stands. */
static inline void rd_request_fail(struct rondo_request *request, rondo_result_t result)
{
    int success = RONDO_SUCCESS;

    if (result == RONDO_SUCCESS)
        return;
    atomic_compare_exchange_strong(&request->result, &success, (int)result);
}

struct rd_check;

typedef struct rd_task {
    struct rd_task *next;  /* recorded in a group, later active; or among the spent */
    struct rd_task *after; /* the next of its chain */
    rondo_comm_t comm;
    struct rd_task **chain;
    rd_plan_t *plan;
    const void *in;
    void *out;
    struct rondo_request *request; /* NULL: nobody asks */
    void *aside; /* the output is made here and copied to `result` in the end; NULL: it is made in its place */
    void *result;
    size_t result_bytes;
    struct rd_check *check; /* compared and freed when the task is over; NULL: none */
    rd_run_t run;
} rd_task_t;

typedef struct rd_queue {
    rd_task_t *active;
    rd_task_t *last;   /* of active: tasks start in the order in which they came */
    rd_task_t **tails; /* of each chain; 1 + 2 * nranks */
    rd_task_t *spent;  /* memory for the next tasks: a code's groups are alike */
    int nspent;
    rd_run_t run;      /* of the blocking call */
    char *scratch;     /* of the collective that runs */
    size_t scratch_bytes;
    char *spare; /* more of it, reserved: takes its place when a collective that needs so much begins */
    size_t spare_bytes;
    rd_wait_t wait;
    int deserted; /* misses in a row on a rank that has left */
} rd_queue_t;

rondo_result_t rd_queue_create(rd_queue_t *queue, rondo_comm_t comm);
void rd_queue_free(rd_queue_t *queue);

/* Which chain a task belongs to. */
#define RD_CHAIN_COLLECTIVE 0
#define RD_CHAIN_SEND(peer) (1 + 2 * (peer))
#define RD_CHAIN_RECV(peer) (2 + 2 * (peer))

/* A task for later: takes over the caller's use of `plan` (gives it back on failure too). */
rondo_result_t rd_task_create(rondo_comm_t comm, rd_plan_t *plan, int chain, const void *in, void *out,
                              rd_task_t **task);
/* The caller is inside the communicator; NULL: it is gone. */
void rd_task_free(rondo_comm_t comm, rd_task_t *task);
/* Gets what it needs to run. All of a group's tasks are prepared before the first is added: then none can fail for lack
 * of memory when others have begun. */
rondo_result_t rd_queue_prepare(rondo_comm_t comm, rd_task_t *task);
/* Appends it to its chain. */
void rd_queue_add(rondo_comm_t comm, rd_task_t *task);

/* One turn over everything active; *moved is set if anything moved. An error fails the communicator and ends all of
 * its tasks with it. */
rondo_result_t rd_queue_advance(rondo_comm_t comm, int *moved);
/* The same without a look at the network, which takes as long as a short operation: the caller owes it. */
rondo_result_t rd_queue_tasks(rondo_comm_t comm, int *moved);
/* After a turn in which something moved. */
void rd_queue_moved(rondo_comm_t comm);
/* After a turn in which nothing moved: waits a little, sees abort, death and timeout. */
rondo_result_t rd_queue_miss(rondo_comm_t comm);
/* After a miss: fails the communicator if the rank that is waited for has left, since it sends nothing more. */
rondo_result_t rd_queue_deserted(rondo_comm_t comm);
/* Until nothing is active. */
rondo_result_t rd_queue_drain(rondo_comm_t comm);
/* Is nothing? RONDO_IN_PROGRESS: something is, after one turn. */
rondo_result_t rd_queue_drained(rondo_comm_t comm);
/* Ends everything active with `code`. */
void rd_queue_flush(rondo_comm_t comm, rondo_result_t code);

/* Runs one plan to its end, behind whatever its chain holds. Takes over the caller's use of `plan`. */
rondo_result_t rd_queue_run(rondo_comm_t comm, rd_plan_t *plan, int chain, const void *in, void *out);
/* The same, of a short plan of a collective that has run before and stays the caller's. */
rondo_result_t rd_queue_repeat(rondo_comm_t comm, rd_plan_t *plan, const void *in, void *out);

#endif
