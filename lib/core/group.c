/* Groups: what a thread calls between rondo_group_start and the matching end is recorded as tasks, then enters the
 * communicators' queues at once, and the caller makes the progress of all of them together. See progress/queue.h for
 * why that cannot deadlock: no task waits for another of a different chain. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/hooks.h"
#include "core/limits.h"
#include "core/rma_calls.h"
#include "core/self_messages.h"
#include "core/submit.h"
#include "exec/cuda/cuda.h"
#include "monitor/named.h"
#include "profile/profile.h"
#include "progress/signature.h"

struct rondo_request {
    uint64_t mark;              /* rd_comm_mark of the process that submitted */
    rd_completion_t completion; /* of the tasks */
    int submitted;              /* the tasks are in their queues */
    /* The communicators of these tasks, with a reference to each until the end. Those after the first `ncomms` have
     * been ended or have failed: this request is not inside them any more. Most groups have only one. */
    int ncomms, nheld;
    rondo_comm_t *comms;
    rondo_comm_t one;
    rondo_work_t *works; /* of the tasks, in the order of their calls; NULL: there was no memory */
    int nworks;
    int64_t limit_ms;             /* of rondo_timeout_next, plus one; 0: none of its own */
    int later;                    /* its end does not wait for what runs on devices */
    struct rd_cuda_pending *cuda; /* the part that runs there and is waited for; NULL: nothing */
};

typedef struct {
    rd_task_t *first, *last;
    rd_self_messages_t self;
    rd_rma_list_t rma;
    struct rondo_request whose; /* the communicators, each once, and the result of the first call that failed */
} group_t;

_Thread_local int rd_group_depth;

/* Returns this thread's group. If CUDA is in the library, a thread variable is found by a call: `const` leaves one call
 * in a function, however often the function uses it. */
static __attribute__((const, noinline)) group_t *own(void)
{
    static _Thread_local group_t group;

    return &group;
}

rondo_result_t rd_group_failed(rondo_result_t result)
{
    if (rd_group_depth)
        rd_completion_fail(&own()->whose.completion, result);
    return result;
}

rondo_result_t rd_group_refuse(rondo_comm_t comm, const char *call)
{
    if (rd_in_hook)
        return rd_error(NULL, RONDO_ERR_INVALID_USAGE, "%s in a hook, which must not call rondo", call);
    if (!rd_group_depth)
        return RONDO_SUCCESS;
    return rd_error(comm ? &comm->ctx : NULL, RONDO_ERR_INVALID_USAGE,
                    "%s inside a group, where only operations may be called: end the group first", call);
}

static void set_depth(int depth)
{
    rd_group_depth = depth;
    rd_call_note();
}

rondo_result_t rondo_group_start(void)
{
    if (rd_in_hook)
        return rd_group_refuse(NULL, "rondo_group_start");
    set_depth(rd_group_depth + 1);
    return RONDO_SUCCESS;
}

static bool has(const struct rondo_request *request, rondo_comm_t comm)
{
    for (int i = 0; i < request->ncomms; i++) {
        if (request->comms[i] == comm)
            return true;
    }
    return false;
}

static bool has_queue(const struct rondo_request *request, const rd_queue_t *queue)
{
    for (int i = 0; i < request->ncomms; i++) {
        if (&request->comms[i]->queue == queue)
            return true;
    }
    return false;
}

/* Makes space for one more communicator. Returns false if there is no memory. */
static bool comms_room(struct rondo_request *request)
{
    rondo_comm_t *own = request->comms == &request->one ? NULL : request->comms, *more = &request->one;

    if (request->ncomms) {
        more = realloc(own, (size_t)(request->ncomms + 1) * sizeof *more);
        if (!more)
            return false;
        if (!own)
            more[0] = request->one;
    }
    request->comms = more;
    return true;
}

/* Adds the communicator, once. Returns -1 if there is no memory. */
static int add_comm(struct rondo_request *request, rondo_comm_t comm)
{
    if (has(request, comm))
        return 0;
    if (!comms_room(request))
        return -1;
    rd_comm_retain(comm);
    request->comms[request->ncomms++] = comm;
    return 0;
}

rondo_result_t rd_group_note(rondo_comm_t comm)
{
    if (add_comm(&own()->whose, comm) == 0)
        return RONDO_SUCCESS;
    return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory to record an operation");
}

rondo_result_t rd_group_record(rondo_comm_t comm, rd_task_t *task)
{
    if (add_comm(&own()->whose, comm) != 0) {
        rd_task_free(&comm->queue, task);
        return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory to record an operation");
    }
    if (own()->first)
        own()->last->next = task;
    else
        own()->first = task;
    own()->last = task;
    return RONDO_SUCCESS;
}

rondo_result_t rd_group_record_self(rondo_comm_t comm, int send, void *buffer, size_t bytes)
{
    if (add_comm(&own()->whose, comm) == 0 && rd_self_add(&own()->self, comm, send, buffer, bytes))
        return RONDO_SUCCESS;
    return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory to record an operation");
}

rondo_result_t rd_group_record_rma(rondo_comm_t comm, rd_rma_op_t *op)
{
    if (add_comm(&own()->whose, comm) == 0) {
        rd_rma_list_add(&own()->rma, op);
        return RONDO_SUCCESS;
    }
    free(op);
    return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory to record an operation");
}

/* Takes the next of the recorded tasks out of the record. */
static rd_task_t *take_task(void)
{
    rd_task_t *t = own()->first;

    own()->first = t->next;
    t->next = NULL;
    return t;
}

/* Clears the record and frees the tasks that were not handed on. The request has those communicators that are not gone,
 * and the caller is inside them. */
static void clear(const struct rondo_request *request)
{
    while (own()->first) {
        rd_task_t *t = take_task();
        rd_task_free(has_queue(request, t->queue) ? t->queue : NULL, t);
    }
    rd_rma_list_clear(&own()->rma);
    rd_self_clear(&own()->self);
    rd_profile_group_end();
    memset(own(), 0, sizeof *own());
    rd_cuda_group_clear();
}

/* The request no longer uses its i-th communicator, which this thread need not be inside. */
static void forget(struct rondo_request *request, int i)
{
    rondo_comm_t comm = request->comms[i];

    request->comms[i] = request->comms[--request->ncomms];
    request->comms[request->ncomms] = comm;
}

/* From here until `leave_all` no other thread ends one of the communicators. One that has been ended is removed: its
 * tasks ended with it. */
static void enter_all(struct rondo_request *request)
{
    int64_t ms = request->limit_ms - 1;

    for (int i = request->ncomms - 1; i >= 0; i--) {
        rondo_comm_t comm = request->comms[i];
        if (rd_comm_inherited(comm)) { /* there was a fork between start and end */
            rd_completion_fail(&request->completion, rd_comm_valid(comm, "the end of a group"));
            forget(request, i);
            continue;
        }
        rondo_result_t result = rd_comm_enter(comm);
        if (ms >= 0 && !rd_comm_gone(comm))
            rd_queue_own_limit(&comm->queue, ms);
        if (!rd_comm_gone(comm))
            continue;
        if (!request->submitted && result == RONDO_SUCCESS)
            result =
                rd_error(NULL, RONDO_ERR_INVALID_USAGE, "a communicator was destroyed inside a group that uses it");
        rd_comm_leave(comm, result);
        if (!request->submitted) /* else what was under way has ended the request, if anything was */
            rd_completion_fail(&request->completion, result);
        forget(request, i);
    }
}

static void leave_all(struct rondo_request *request)
{
    int failed = atomic_load(&request->completion.result) != RONDO_SUCCESS;

    for (int i = 0; i < request->ncomms; i++)
        rd_limit_own_end(&request->comms[i]->queue.limit);
    for (int i = 0; i < request->ncomms; i++)
        rd_comm_leave(request->comms[i], failed ? rd_health_check(&request->comms[i]->health) : RONDO_SUCCESS);
}

/* Handles the failure of a communicator: its tasks end, and a thread that wants to end it need not wait for the others
 * of the request. */
static void lose(struct rondo_request *request, int i, rondo_result_t result)
{
    rondo_comm_t comm = request->comms[i];

    rd_completion_fail(&request->completion, result);
    rd_queue_flush(&comm->queue, result);
    rd_limit_own_end(&comm->queue.limit);
    rd_comm_leave(comm, result);
    forget(request, i);
}

/* Hands all recorded tasks to their queues, inside all of the communicators. After a failure none is handed on. */
static rondo_result_t hand_on(struct rondo_request *request)
{
    rondo_result_t result = atomic_load(&request->completion.result);

    for (int i = 0; i < request->ncomms && result == RONDO_SUCCESS; i++)
        result = rd_health_check(&request->comms[i]->health);
    if (result == RONDO_SUCCESS)
        result = rd_self_match(&own()->self);
    for (rd_task_t *t = own()->first; t && result == RONDO_SUCCESS; t = t->next)
        result = rd_queue_prepare(t->queue, t);
    if (result == RONDO_SUCCESS)
        result = rd_cuda_group_submit(request->later ? &request->cuda : NULL);
    if (result != RONDO_SUCCESS)
        return result;
    rd_self_copy(&own()->self);
    int tasks = own()->rma.n;
    for (rd_task_t *t = own()->first; t; t = t->next)
        tasks++;
    if (request->later)
        request->works = malloc((size_t)tasks * sizeof *request->works + 1);
    atomic_store_explicit(&request->completion.pending, tasks, memory_order_relaxed); /* none has begun */
    for (int i = 0; i < request->ncomms; i++)
        rd_queue_wait_begin(&request->comms[i]->queue);
    while (own()->first) {
        rd_task_t *t = take_task();
        rd_signature_number(t, &rd_comm_of(t->queue)->sequence);
        rd_call_begin_task(rd_comm_of(t->queue), t);
        if (request->works && t->recorded)
            request->works[request->nworks++] = rd_name_of(&rd_comm_of(t->queue)->seat, t->track, t->number);
        t->completion = &request->completion;
        rd_queue_add(t->queue, t);
    }
    rd_rma_list_hand_on(&own()->rma, &request->completion);
    return RONDO_SUCCESS;
}

/* Moves the communicators of this thread's group, and what has failed so far, to the request. The caller is inside the
 * communicators afterwards. */
static void take_group(struct rondo_request *request)
{
    request->one = own()->whose.one;
    request->comms = own()->whose.comms == &own()->whose.one ? &request->one : own()->whose.comms;
    request->ncomms = request->nheld = own()->whose.ncomms;
    atomic_store(&request->completion.result, atomic_load(&own()->whose.completion.result));
    request->limit_ms = rd_call_differs ? rd_limit_take() + 1 : 0;
    rd_profile_group_ends();
    enter_all(request);
}

/* Turns this thread's group into a request. The caller is inside its communicators afterwards. */
static rondo_result_t submit(struct rondo_request *request)
{
    take_group(request);
    rd_completion_fail(&request->completion, hand_on(request));
    for (int i = 0; i < request->ncomms; i++) /* the other ranks wait for what cannot begin, for lack of memory */
        rd_call_spoiled(request->comms[i], atomic_load(&request->completion.result));
    request->submitted = 1;
    request->mark = rd_comm_mark;
    clear(request);
    return atomic_load(&request->completion.result);
}

static rondo_result_t device_health(rondo_comm_t comm)
{
    rondo_result_t result = rd_cuda_check(comm->cuda);

    return result == RONDO_SUCCESS ? rd_health_poll(&comm->health) : result;
}

/* Checks what runs on devices, which needs no progress from here. It is over when it has run, or when its communicator
 * has failed. */
static void poll_devices(struct rondo_request *request)
{
    rondo_result_t result = request->cuda ? rd_cuda_pending_test(&request->cuda) : RONDO_IN_PROGRESS;

    if (result == RONDO_IN_PROGRESS)
        return;
    rd_completion_fail(&request->completion, result);
    for (int i = 0; i < request->nheld; i++) {
        rondo_comm_t comm = request->comms[i];
        if (comm->team.device >= 0)
            rd_completion_fail(&request->completion,
                               i < request->ncomms ? device_health(comm) : rd_health_check(&comm->health));
    }
}

/* Makes the progress of every communicator of the request, which this thread is inside. */
static bool turn(struct rondo_request *request)
{
    int any = 0;

    poll_devices(request);
    for (int i = request->ncomms - 1; i >= 0; i--) {
        rondo_comm_t comm = request->comms[i];
        int moved = 0;
        rondo_result_t result = rd_queue_advance(&comm->queue, &moved);
        if (moved)
            rd_queue_moved(&comm->queue);
        any |= moved;
        if (result != RONDO_SUCCESS)
            lose(request, i, result);
    }
    return any;
}

/* Returns true if what was posted to other nodes has left this rank's memory. */
static bool idle(const struct rondo_request *request)
{
    for (int i = 0; i < request->ncomms; i++) {
        const rd_queue_t *q = &request->comms[i]->queue;
        if (!rd_transport_idle(q->net) || (rd_queue_serves(q) && !rd_transport_idle(q->side->net)))
            return false;
    }
    return true;
}

static bool over(struct rondo_request *request)
{
    return atomic_load(&request->completion.pending) == 0 && !request->cuda &&
           (atomic_load(&request->completion.result) != RONDO_SUCCESS || idle(request));
}

/* The backoff after a turn in which nothing moved; it checks for abort, death and timeout. */
static void back_off(struct rondo_request *request)
{
    for (int i = request->ncomms - 1; i >= 0 && !over(request); i--) {
        rondo_comm_t comm = request->comms[i];
        if (!rd_queue_busy(&comm->queue)) /* its part is over: it waits for no rank */
            continue;
        rondo_result_t result = rd_queue_backoff(&comm->queue);
        if (result != RONDO_SUCCESS)
            lose(request, i, result);
    }
}

static void finish(struct rondo_request *request)
{
    while (!over(request)) {
        if (!turn(request))
            back_off(request);
        if (request->cuda && !rd_outstanding_turn())
            sched_yield();
    }
}

/* Leaves and releases the communicators of the request. */
static rondo_result_t release(struct rondo_request *request)
{
    leave_all(request);
    while (request->nheld)
        rd_comm_release(request->comms[--request->nheld]);
    request->ncomms = 0;
    if (request->comms != &request->one)
        free(request->comms);
    free(request->works);
    return atomic_load(&request->completion.result);
}

static rondo_result_t too_many_ends(const char *call)
{
    return rd_error(NULL, RONDO_ERR_INVALID_USAGE, "%s without a rondo_group_start before it", call);
}

rondo_result_t rondo_group_end(void)
{
    struct rondo_request request = {0};

    if (rd_group_depth == 0)
        return too_many_ends("rondo_group_end");
    set_depth(rd_group_depth - 1);
    if (rd_group_depth)
        return RONDO_SUCCESS;
    submit(&request);
    finish(&request);
    return release(&request);
}

/* The collectives of one communicator run one after another, those of several concurrently. Returns a negative number
 * if something has no price. */
static double estimate(const struct rondo_request *request)
{
    double longest = rd_cuda_group_estimate();

    if (own()->self.first || own()->rma.n)
        return -1;
    for (const rd_task_t *t = own()->first; t; t = t->next)
        if (rd_task_is_message(t))
            return -1;
    for (int i = 0; i < request->ncomms; i++) {
        double sum = 0;

        for (const rd_task_t *t = own()->first; t; t = t->next)
            sum += t->queue == &request->comms[i]->queue ? t->plan->us : 0;
        longest = sum > longest && longest >= 0 ? sum : longest;
    }
    return longest;
}

/* Ends this thread's group, of which nothing has begun. */
static rondo_result_t drop(rondo_result_t why)
{
    struct rondo_request request = {0};

    rd_completion_fail(&own()->whose.completion, why);
    take_group(&request);
    clear(&request);
    return release(&request);
}

rondo_result_t rondo_group_estimate(double *microseconds)
{
    struct rondo_request request = {0};
    rondo_result_t result;
    double us;

    if (rd_group_depth == 0)
        return too_many_ends("rondo_group_estimate");
    if (rd_group_depth > 1)
        return rd_error(NULL, RONDO_ERR_INVALID_USAGE,
                        "rondo_group_estimate ends the outermost group alone: %d are open", rd_group_depth);
    set_depth(0);
    if (!microseconds)
        return drop(rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_group_estimate: microseconds is NULL"));
    take_group(&request);
    us = estimate(&request);
    clear(&request);
    result = release(&request);
    if (result == RONDO_SUCCESS && us < 0)
        return rd_error(NULL, RONDO_ERR_UNSUPPORTED,
                        "rondo_group_estimate: messages have no price, nor on CUDA communicators blocks of different "
                        "lengths and operations between nodes: estimate the other calls without them");
    if (result == RONDO_SUCCESS)
        *microseconds = us;
    return result;
}

/* From the next leave on, waits in other communicators make progress for this one's outstanding operations. */
static void offer(rondo_comm_t comm)
{
    if (rd_queue_busy(&comm->queue) && !rd_outstanding_listed(&comm->queue.outstanding))
        rd_outstanding_list(&comm->queue.outstanding);
}

rondo_result_t rondo_group_submit(rondo_request_t *request)
{
    struct rondo_request *made, refused = {0};
    rondo_result_t result;

    if (rd_group_depth == 0)
        return too_many_ends("rondo_group_submit");
    if (rd_group_depth > 1)
        return rd_error(NULL, RONDO_ERR_INVALID_USAGE, "rondo_group_submit ends the outermost group alone: %d are open",
                        rd_group_depth);
    set_depth(0);
    if (!request)
        return drop(rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_group_submit: request is NULL"));
    made = calloc(1, sizeof *made);
    if (made)
        made->later = 1;
    if (!made)
        rd_completion_fail(&own()->whose.completion, rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for a request"));
    if (submit(made ? made : &refused) != RONDO_SUCCESS) {
        finish(made ? made : &refused);
        result = release(made ? made : &refused);
        free(made);
        return result;
    }
    turn(made);
    for (int i = 0; i < made->ncomms; i++)
        offer(made->comms[i]);
    leave_all(made);
    *request = made;
    return RONDO_SUCCESS;
}

static rondo_result_t dispose(rondo_request_t *request)
{
    rondo_result_t result = release(*request);

    free(*request);
    *request = NULL;
    return result;
}

static rondo_result_t check_mark(const struct rondo_request *request, const char *call)
{
    if (rd_in_hook)
        return rd_group_refuse(NULL, call);
    if (request->mark == rd_comm_mark)
        return RONDO_SUCCESS;
    return rd_error(NULL, RONDO_ERR_INVALID_USAGE,
                    "%s: request is the parent process's: a forked child submits requests of its own", call);
}

rondo_result_t rondo_request_work(rondo_request_t request, int i, rondo_work_t *work)
{
    if (!request || !work)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_request_work: %s is NULL", work ? "request" : "work");
    rondo_result_t result = check_mark(request, "rondo_request_work");
    if (result != RONDO_SUCCESS)
        return result;
    if (!request->works)
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "rondo_request_work: there was no memory for the request's works");
    if (i < 0 || i >= request->nworks)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "rondo_request_work: i is %d: the request has %d operations on host memory", i,
                        request->nworks);
    *work = request->works[i];
    return RONDO_SUCCESS;
}

rondo_result_t rondo_request_test(rondo_request_t *request, int *done)
{
    if (!request || !done)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_request_test: %s is NULL",
                        request ? "done" : "request");
    rondo_result_t result = *request ? check_mark(*request, "rondo_request_test") : RONDO_SUCCESS;
    if (result != RONDO_SUCCESS)
        return result;
    *done = 1;
    if (!*request)
        return RONDO_SUCCESS;
    enter_all(*request);
    if (!over(*request) && !turn(*request))
        back_off(*request);
    if (over(*request))
        return dispose(request);
    leave_all(*request);
    *done = 0;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_request_wait(rondo_request_t *request)
{
    if (!request)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_request_wait: request is NULL");
    if (!*request)
        return RONDO_SUCCESS;
    rondo_result_t result = check_mark(*request, "rondo_request_wait");
    if (result != RONDO_SUCCESS)
        return result;
    enter_all(*request);
    finish(*request);
    return dispose(request);
}
