/* What is in flight on a communicator, beyond the one blocking call.
 *
 * A task is a run that waits for its turn in a chain: collectives follow each other in one chain, messages to a peer in
 * another, messages from a peer in a third; tasks of different chains run side by side. Any call that waits (the end of
 * a group, a request, a later blocking call) advances all active tasks of the communicator. */
#ifndef RD_PROGRESS_QUEUE_H
#define RD_PROGRESS_QUEUE_H

#include "base/outstanding.h"
#include "base/wait.h"
#include "exec/host/run.h"
#include "monitor/called.h"
#include "monitor/hashed.h"
#include "monitor/seat.h"
#include "node/team.h"
#include "profile/profile.h"
#include "progress/deadlock.h"
#include "progress/late.h"
#include "progress/limit.h"

/* What tasks leave behind for the caller that waits for them. */
typedef struct rd_completion {
    _Atomic int pending; /* tasks that are not over; another thread's abort may end them */
    _Atomic int result;  /* of the first task that failed */
} rd_completion_t;

/* Records an error, unless one is recorded already. */
static inline void rd_completion_fail(rd_completion_t *completion, rondo_result_t result)
{
    int success = RONDO_SUCCESS;

    if (result == RONDO_SUCCESS)
        return;
    atomic_compare_exchange_strong(&completion->result, &success, (int)result);
}

struct rd_task;

/* Members that few tasks need: see rd_task_more. */
typedef struct rd_task_more {
    void *bounce; /* the output is written here and copied to `result` at the end; NULL: it is written in place */
    void *result;
    size_t result_bytes;
    /* Called when the task is over, before the next one of its chain begins; if it fails, the communicator fails. May
     * be NULL. */
    rondo_result_t (*on_done)(struct rd_task *task);
    void *record;             /* for on_done; freed with the task */
    rd_hashed_t *hashed;      /* what it writes, of which the record gets a hash; NULL: nobody asks */
    rd_profile_task_t *shown; /* to a profiler plugin; NULL: to none */
} rd_task_more_t;

/* A short message that follows a task of its chain, and has none of its own. */
typedef struct rd_follower {
    rd_plan_t *plan;
    void *buffer;
    uint64_t entry; /* as the task's */
    int index;      /* likewise */
} rd_follower_t;

typedef struct rd_followers {
    int next, n, room; /* those from `next` on have yet to get their turn */
    rd_follower_t of[];
} rd_followers_t;

/* Of many short messages of a group that go the same way one behind the other, only the first is a task. The others
 * follow it: when a message is over, the task becomes the next one. So a message costs a few words and no run, unless
 * it has to wait. */
typedef struct rd_task {
    struct rd_task *next;  /* of the recorded tasks of a group, later of the active ones, finally of the spent ones */
    struct rd_task *after; /* the next task of its chain */
    struct rd_queue *queue;
    struct rd_task **chain;
    rd_plan_t *plan;
    const void *in;
    void *out;
    rd_completion_t *completion; /* NULL: nobody waits for it */
    rd_followers_t *followers;   /* NULL: there are none */
    rd_run_t run;
    uint64_t sign; /* of its messages */
    bool has_more; /* `more` is valid: rd_task_more */
    /* What the record (monitor/) says of it. */
    bool recorded; /* else it is the library's own, and no call: `noted` and `called` are not set */
    rd_track_t track;
    uint64_t entry;
    uint64_t number; /* of the call in its track; 0: it has not begun. The followers have the next numbers */
    int index;       /* among the calls of its group, from 0 on */
    rd_monitor_call_t noted;
    rd_signed_call_t called; /* a collective: is signed when its group begins */
    rd_task_more_t more;
} rd_task_t;

/* Returns the task's rarely needed members. They are set to zero at the first call, so most tasks are made without. */
static inline rd_task_more_t *rd_task_more(rd_task_t *task)
{
    if (!task->has_more)
        task->more = (rd_task_more_t){.bounce = NULL};
    task->has_more = true;
    return &task->more;
}

/* Operations of a communicator that are no plans: one-sided ones (rma/rma.h). Whoever makes a turn of the queue makes
 * one of theirs, too. */
typedef struct rd_side {
    /* Makes one turn. Sets *moved if anything moved. An error has failed the communicator. */
    rondo_result_t (*turn)(struct rd_side *side, int *moved);
    bool (*busy)(const struct rd_side *side);                 /* an operation was begun that is not over */
    int (*waits_for)(const struct rd_side *side);             /* the rank that it waits for; -1: none */
    void (*flush)(struct rd_side *side, rondo_result_t code); /* ends everything with `code` */
    rd_transport_t *net; /* by which peers ask something of this rank, whatever it calls; NULL: they ask nothing */
} rd_side_t;

/* What a rank of another node has called, as its process says. */
typedef struct rd_answered {
    int asked;           /* the rank of which that was asked, plus one; 0: none, or it was answered */
    int of;              /* the rank that `called` is of, plus one; 0: none in this wait. The network may know more */
    rd_called_t *called; /* NULL: nothing was heard yet */
} rd_answered_t;

typedef struct rd_queue {
    /* What runs here: plans of this planner, for this team. */
    const rd_team_t *team;
    rd_health_t *health;                  /* the team's */
    rd_planner_t *planner;                /* NULL on a CUDA communicator, whose operations do not run here */
    rd_transport_t *net;                  /* reaches other nodes; on a single node it need not be polled */
    bool polled;                          /* messages come only by the progress of `net` */
    rd_control_t *self, *const *controls; /* this rank's own, and those of its node's ranks */
    int spin, spin_us, spin_yield;        /* the team's */
    _Atomic int64_t timeout_ms;           /* of the waits that begin now; other threads may set it. 0: none */
    rd_limit_t limit;                     /* what takes precedence over that */

    rd_task_t *active;
    rd_task_t *last;   /* of the active list: tasks start in the order in which they came */
    rd_task_t **tails; /* of each chain; 1 + 2 * nranks */
    rd_task_t *spent;  /* memory for the next tasks, because a program's groups are often alike */
    int nspent;
    rd_run_t run;    /* of the blocking call */
    rd_side_t *side; /* NULL: there is none */
    char *scratch;   /* of the collective that runs */
    size_t scratch_bytes;
    char *spare; /* larger scratch, reserved: replaces `scratch` when a collective begins that needs it */
    size_t spare_bytes;
    rd_wait_t wait;
    int64_t paused_ms; /* since when the program makes no call that waits, though the wait goes on; 0: it does not */
    rd_outstanding_t outstanding; /* for waits in other communicators, while a submitted request is not over */
    bool elsewhere;               /* a call of all ranks waits for sockets, and the network may bring questions */
    rd_deadlock_t deadlock;       /* RONDO_CHECK=1 */
    rd_signing_t signing;         /* of the collectives that the user calls */
    uint64_t asked_in;            /* the call in which ranks of other nodes were last asked what they call, */
    int64_t asked_gap;            /* milliseconds until they are asked again, */
    int64_t asked_ms;             /* and when they were */
    int64_t looked_ms;            /* when this rank last looked whether ranks call the same */
    rd_answered_t answered;       /* by the process of a rank that was asked and did not answer */
    int64_t unlike_ms;            /* when it was first seen that ranks do not call the same; 0: it was not */
    int peer_left;                /* consecutive misses while waiting for a rank that has left */
    void (*on_wait)(void *data);  /* the caller's: called now and then by a call that waits; NULL: none */
    void *on_wait_data;
    unsigned waited;     /* pauses and yields, for on_wait */
    rd_late_t late;      /* a wait that lasts */
    _Atomic int reports; /* a time limit that is over is only said, and fails nothing */
    /* It is said who holds a call up: `status` of a verdict, the rank that it names; NULL: nobody cares. */
    void (*on_stall)(struct rd_queue *queue, int status, int rank, const char *text);
} rd_queue_t;

rondo_result_t rd_queue_create(rd_queue_t *queue, const rd_team_t *team, rd_planner_t *planner, const rd_conns_t *conns,
                               rd_transport_t *net);
void rd_queue_free(rd_queue_t *queue);

/* The chains that a task may belong to. */
#define RD_CHAIN_COLLECTIVE 0
#define RD_CHAIN_SEND(peer) (1 + 2 * (peer))
#define RD_CHAIN_RECV(peer) (2 + 2 * (peer))

static inline bool rd_task_is_message(const rd_task_t *task)
{
    return task->chain != &task->queue->tails[RD_CHAIN_COLLECTIVE];
}

static inline bool rd_task_is_send(const rd_task_t *task)
{
    return (task->chain - task->queue->tails) % 2 == RD_CHAIN_SEND(0);
}

/* Returns how many messages follow that have yet to get their turn. */
static inline int rd_task_following(const rd_task_t *task)
{
    return task->followers ? task->followers->n - task->followers->next : 0;
}

/* Makes room in a run of this queue for the lanes of a plan that is not flat. */
rondo_result_t rd_queue_lanes(rd_queue_t *queue, rd_run_t *run, const rd_plan_t *plan);
/* Creates a task for later. It takes over the caller's reference to `plan`, and releases it on failure, too. */
rondo_result_t rd_task_create(rd_queue_t *queue, rd_plan_t *plan, int chain, const void *in, void *out,
                              rd_task_t **task);
/* Appends a short message to the task, which is such a message itself, goes the same way and has not begun. It takes
 * over the reference to `plan`, unless it returns false, for lack of memory. */
bool rd_task_follow(rd_task_t *task, rd_plan_t *plan, void *buffer, int index);
/* The message that the task was is over: it becomes the next one. Returns false if there is none. */
bool rd_task_next(rd_task_t *task);
/* Must be called from inside the communicator, so that nobody else uses its queue; `queue` is NULL if the queue is
 * gone. */
void rd_task_free(rd_queue_t *queue, rd_task_t *task);
/* Allocates what the task needs to run. All tasks of a group are prepared before the first one is added, so that none
 * can fail for lack of memory when others have begun. */
rondo_result_t rd_queue_prepare(rd_queue_t *queue, rd_task_t *task);
#define RD_FLAT_POLLS 500 /* a few microseconds */

/* Sends or takes what a plan of one message is about, if there is room for it, or it comes within a few microseconds.
 * Nothing is ahead in its chain. */
bool rd_queue_message(const rd_queue_t *queue, const rd_plan_t *plan, const void *in, void *out);
/* Sends or takes a short message whose turn it is, and those that follow it, as far as that can be done at once. If all
 * are over, the task is freed, and nobody is told but the record; else it returns false. */
bool rd_queue_at_once(rd_queue_t *queue, rd_task_t *task);
/* The same for such a message as the only one that its caller waits for: polls for a few microseconds, if nothing else
 * is active and every rank has a core of its own. Between two polls is a pause: the peer's store would have to wait for
 * its line, which this core fetches as soon as it is gone. */
bool rd_queue_soon(rd_queue_t *queue, rd_task_t *task);
/* The message that an active task was is over: does the same with those that follow it. */
void rd_queue_followers(rd_queue_t *queue, rd_task_t *task);
/* Appends the task to its chain. */
void rd_queue_add(rd_queue_t *queue, rd_task_t *task);

/* Prepares a task and appends it at once. For a proxy, which alone makes this queue's progress. `completion` counts the
 * task as pending. On failure the task is freed. */
rondo_result_t rd_queue_submit(rd_queue_t *queue, rd_task_t *task, rd_completion_t *completion);

/* Returns for how long a wait that begins may go on. */
static inline int64_t rd_queue_limit(rd_queue_t *queue)
{
    return rd_limit_now(&queue->limit, queue->team->seat,
                        atomic_load_explicit(&queue->timeout_ms, memory_order_relaxed));
}

/* Starts the clock of waits, with that limit. */
void rd_queue_wait_begin(rd_queue_t *queue);
/* A wait that goes on from one call to the next, as tests of a request do: the time in between counts as waiting only
 * up to some milliseconds at a time. A program that polls waits, and one that computes does not. */
void rd_queue_wait_pause(rd_queue_t *queue);
void rd_queue_wait_resume(rd_queue_t *queue);
/* The waits of the call that goes on, also one that has begun, have that limit until rd_limit_own_end. */
static inline void rd_queue_own_limit(rd_queue_t *queue, int64_t ms)
{
    rd_limit_own(&queue->limit, ms);
    queue->wait.timeout_ms = rd_queue_limit(queue);
}

/* Makes one turn over everything active, and sets *moved if anything moved. An error fails the communicator and ends
 * all of its tasks. */
rondo_result_t rd_queue_advance(rd_queue_t *queue, int *moved);
/* The same without polling the network, which takes as long as a short operation: the caller has to poll it. */
rondo_result_t rd_queue_tasks(rd_queue_t *queue, int *moved);
/* To be called after a turn in which something moved. */
void rd_queue_moved(rd_queue_t *queue);
/* To be called after a turn in which nothing moved: backs off a little, and checks for an abort, a death and the
 * timeout. */
rondo_result_t rd_queue_backoff(rd_queue_t *queue);
/* To be called after a miss: fails the communicator if the rank that is waited for has left, because it will send
 * nothing more. */
rondo_result_t rd_queue_peer_left(rd_queue_t *queue);
/* What the first rank of this node tells the others. */
static inline rd_control_t *rd_queue_first(const rd_queue_t *queue)
{
    rd_control_t *first = queue->controls[queue->team->node->local[0]];

    return first ? first : queue->self;
}

/* Ranks of a node find at once that something is wrong, and shall say the same: returns true for the first that asks.
 * The others wait for its sentence (rd_queue_news), but not for long. */
static inline bool rd_queue_says(const rd_queue_t *queue)
{
    int nobody = 0, self = queue->team->rank + 1;

    return atomic_compare_exchange_strong(&rd_queue_first(queue)->says, &nobody, self) || nobody == self;
}
/* Waits for the failure that another rank has found, for so long at most. Returns true if it has come. */
#define RD_QUEUE_NEWS_MS 300
bool rd_queue_news(rd_queue_t *queue, int ms);

/* Returns true if anything is active, or on its way to other nodes. */
bool rd_queue_busy(rd_queue_t *queue);
/* Returns true if a wait in another communicator has to make progress here, too, whatever this rank has begun. */
static inline bool rd_queue_serves(const rd_queue_t *queue)
{
    return queue->side && queue->side->net;
}
/* Returns true if the call of that number, which has begun, is not over. */
bool rd_queue_has(const rd_queue_t *queue, rd_track_t track, uint64_t number);
/* Advances until nothing is active. */
rondo_result_t rd_queue_drain(rd_queue_t *queue);
/* Makes one turn. Returns RONDO_SUCCESS if nothing is active, RONDO_IN_PROGRESS if something is. */
rondo_result_t rd_queue_drained(rd_queue_t *queue);
/* Ends everything active with `code`. */
void rd_queue_flush(rd_queue_t *queue, rondo_result_t code);

/* Runs one plan to its end, behind whatever its chain holds. Takes over the caller's reference to `plan`. A collective
 * has the signature of the last call. */
rondo_result_t rd_queue_run(rd_queue_t *queue, rd_plan_t *plan, int chain, const void *in, void *out);
/* The same for the plan of a collective that has run before; the caller keeps its reference. */
rondo_result_t rd_queue_repeat(rd_queue_t *queue, rd_plan_t *plan, const void *in, void *out, uint64_t sign);

#endif
