/* Groups: what a thread calls between rondo_group_start and the matching end is recorded as tasks, then enters the
 * communicators' queues at once, and the caller makes the progress of all of them together. See progress/queue.h for
 * why that cannot deadlock: no task waits for another of a different chain. */
#include <stdlib.h>
#include <string.h>

#include "core/limits.h"
#include "core/request.h"
#include "core/rma_calls.h"
#include "core/self_messages.h"
#include "core/submit.h"
#include "exec/cuda/cuda.h"
#include "monitor/named.h"
#include "profile/profile.h"
#include "progress/signature.h"

/* What a thread's group records. */
typedef struct rd_group {
    rd_task_t *first, *last;
    rd_task_t *last_of[RD_TRACKS]; /* of each track; NULL: there is none */
    int calls;                     /* that are tasks, or follow one */
    rd_self_messages_t self;
    rd_rma_list_t rma;
    struct rondo_request whose; /* the communicators, each once, and the result of the first call that failed */
} rd_group_t;

rondo_result_t rd_group_failed(rondo_result_t result)
{
    rd_group_t *group = rd_caller_group(rd_caller());

    if (group)
        rd_completion_fail(&group->whose.completion, result);
    return result;
}

rondo_result_t rd_group_refuse(rondo_comm_t comm, const char *call)
{
    if (rd_caller()->in_hook)
        return rd_error(NULL, RONDO_ERR_INVALID_USAGE, "%s in a hook, which must not call rondo", call);
    if (!rd_caller()->depth)
        return RONDO_SUCCESS;
    return rd_error(comm ? &comm->ctx : NULL, RONDO_ERR_INVALID_USAGE,
                    "%s inside a group, where only operations may be called: end the group first", call);
}

/* Returns a new thread's record, for all of its groups. */
static rd_group_t *first_group(void)
{
    static _Thread_local rd_group_t group;

    return &group;
}

static void set_depth(rd_caller_t *caller, int depth)
{
    caller->depth = depth;
    rd_caller_note(caller);
}

rondo_result_t rondo_group_start(void)
{
    rd_caller_t *caller = rd_caller();

    if (caller->in_hook)
        return rd_group_refuse(NULL, "rondo_group_start");
    if (!caller->group)
        caller->group = first_group();
    set_depth(caller, caller->depth + 1);
    return RONDO_SUCCESS;
}

static rondo_result_t no_memory(rondo_comm_t comm)
{
    return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory to record an operation");
}

rondo_result_t rd_group_note(rd_group_t *group, rondo_comm_t comm)
{
    return rd_request_add(&group->whose, comm) == 0 ? RONDO_SUCCESS : no_memory(comm);
}

rondo_result_t rd_group_record(rd_group_t *group, rondo_comm_t comm, rd_task_t *task)
{
    if (rd_request_add(&group->whose, comm) != 0) {
        rd_task_free(&comm->queue, task);
        return no_memory(comm);
    }
    if (group->first)
        group->last->next = task;
    else
        group->first = task;
    group->last = task;
    if (task->recorded) {
        task->index = group->calls++;
        group->last_of[task->track] = task;
    }
    return RONDO_SUCCESS;
}

/* What follows has the next number of its track, so it goes to the same rank as the last message that way, or comes
 * from it. */
bool rd_group_follow(rd_group_t *group, rondo_comm_t comm, const rd_message_t *m, rd_plan_t *plan)
{
    rd_task_t *t = group->last_of[m->send ? RD_TRACK_SEND : RD_TRACK_RECV];

    if (!t || t->queue != &comm->queue || t->noted.root != m->peer || t->noted.tag != m->tag || t->has_more ||
        !t->plan->one_message || !rd_task_follow(t, plan, m->buffer, group->calls))
        return false;
    group->calls++;
    return true;
}

rondo_result_t rd_group_record_self(rd_group_t *group, rondo_comm_t comm, const rd_message_t *m)
{
    if (rd_request_add(&group->whose, comm) == 0 && rd_self_add(&group->self, comm, m->send, m->buffer, m->bytes))
        return RONDO_SUCCESS;
    return no_memory(comm);
}

rondo_result_t rd_group_record_rma(rd_group_t *group, rondo_comm_t comm, rd_rma_op_t *op)
{
    if (rd_request_add(&group->whose, comm) == 0) {
        rd_rma_list_add(&group->rma, op);
        return RONDO_SUCCESS;
    }
    free(op);
    return no_memory(comm);
}

/* Takes the next of the recorded tasks out of the record. */
static rd_task_t *take_task(rd_group_t *group)
{
    rd_task_t *t = group->first;

    group->first = t->next;
    t->next = NULL;
    return t;
}

/* Clears the record and frees the tasks that were not handed on. The request has those communicators that are not gone,
 * and the caller is inside them. */
static void clear(rd_group_t *group, const struct rondo_request *request)
{
    while (group->first) {
        rd_task_t *t = take_task(group);
        rd_task_free(rd_request_has(request, t->queue) ? t->queue : NULL, t);
    }
    if (group->rma.n)
        rd_rma_list_clear(&group->rma);
    if (group->self.first)
        rd_self_clear(&group->self);
    for (int i = 0; i < RD_TRACKS; i++)
        group->last_of[i] = NULL;
    group->calls = 0;
    rd_profile_group_end();
    if (group->whose.devices)
        rd_cuda_group_clear();
    rd_request_init(&group->whose);
}

static void add(struct rondo_request *request, rd_task_t *t)
{
    _Atomic int *pending = &request->completion.pending;

    t->completion = &request->completion;
    atomic_store_explicit(pending, atomic_load_explicit(pending, memory_order_relaxed) + 1, memory_order_relaxed);
    rd_queue_add(t->queue, t);
}

static bool is_pending(struct rondo_request *request)
{
    return atomic_load_explicit(&request->completion.pending, memory_order_relaxed) != 0;
}

/* Sends or takes a message at once, or adds the task to its queue. But in a group of two, which is a send and a receive
 * as a rule, a short message that would have to wait is kept back: when the other one is over, it is polled alone.
 * `waits`: the first task, if it is kept, or NULL. Returns the one that is kept now. */
static rd_task_t *at_once_or_add(struct rondo_request *request, rd_task_t *waits, rd_task_t *t, bool two)
{
    if (waits && waits->chain == t->chain) { /* it comes first */
        add(request, waits);
        waits = NULL;
    }
    if (rd_queue_at_once(t->queue, t))
        return waits;
    if (two && !waits && t->plan->one_message)
        return t;
    if (waits)
        add(request, waits);
    add(request, t);
    return NULL;
}

static void name_works(struct rondo_request *request, rondo_comm_t comm, const rd_task_t *t)
{
    request->works[t->index] = rd_name_of(&comm->seat, t->track, t->number);
    for (int i = 0; i < rd_task_following(t); i++)
        request->works[t->followers->of[i].index] = rd_name_of(&comm->seat, t->track, t->number + 1 + (uint64_t)i);
    request->nworks += 1 + rd_task_following(t);
}

/* Hands all recorded tasks to their queues, inside all of the communicators. After a failure none is handed on. */
static rondo_result_t hand_on(rd_group_t *group, struct rondo_request *request)
{
    rondo_result_t result = atomic_load(&request->completion.result);
    const bool two = group->rma.n + group->calls <= 2;
    rd_task_t *waits = NULL;

    for (int i = 0; i < request->ncomms && result == RONDO_SUCCESS; i++) {
        request->comms[i]->latest.index = -1;
        result = rd_health_check(&request->comms[i]->health);
    }
    if (group->self.first && result == RONDO_SUCCESS)
        result = rd_self_match(&group->self);
    for (rd_task_t *t = group->first; t && result == RONDO_SUCCESS; t = t->next)
        result = rd_task_is_message(t) ? RONDO_SUCCESS : rd_queue_prepare(t->queue, t);
    if (group->whose.devices && result == RONDO_SUCCESS)
        result = rd_cuda_group_submit(request->later ? &request->cuda : NULL);
    if (result != RONDO_SUCCESS)
        return result;
    if (group->self.first)
        rd_self_copy(&group->self);
    if (request->later)
        request->works = malloc((size_t)group->calls * sizeof *request->works + 1);
    /* Counts the one-sided operations here, and tasks as they are added; none ends before this thread waits. */
    atomic_store_explicit(&request->completion.pending, group->rma.n, memory_order_relaxed);
    while (group->first) {
        rd_task_t *t = take_task(group);
        rondo_comm_t comm = rd_comm_of(t->queue);
        if (comm->env.check)
            rd_signature_number(t, &comm->sequence);
        rd_call_begin_task(comm, t);
        if (request->works && t->recorded)
            name_works(request, comm, t);
        waits = at_once_or_add(request, waits, t, two);
    }
    if (waits && (request->later || !rd_queue_soon(waits->queue, waits)))
        add(request, waits);
    for (int i = 0; i < request->ncomms; i++) { /* the wait is for everything that is under way there */
        rd_queue_t *q = &request->comms[i]->queue;
        if (group->whose.devices || is_pending(request) || rd_queue_busy(q))
            rd_queue_wait_begin(q);
    }
    if (group->rma.n)
        rd_rma_list_hand_on(&group->rma, &request->completion);
    return RONDO_SUCCESS;
}

/* Moves the communicators of this thread's group, and what has failed so far, to the request, which nobody else knows
 * yet. The caller is inside the communicators afterwards. */
static void take_group(const rd_caller_t *caller, struct rondo_request *request)
{
    const struct rondo_request *whose = &caller->group->whose;

    request->one = whose->one;
    request->comms = whose->comms == &whose->one ? &request->one : whose->comms;
    request->ncomms = request->nheld = whose->ncomms;
    atomic_init(&request->completion.result, atomic_load_explicit(&whose->completion.result, memory_order_relaxed));
    request->limit_ms = caller->differs ? rd_limit_take() + 1 : 0;
    rd_profile_group_ends();
    rd_request_enter(request);
}

/* Turns this thread's group into a request. The caller is inside its communicators afterwards. */
static rondo_result_t submit(const rd_caller_t *caller, struct rondo_request *request)
{
    take_group(caller, request);
    rd_completion_fail(&request->completion, hand_on(caller->group, request));
    rondo_result_t result = atomic_load(&request->completion.result);
    for (int i = 0; i < request->ncomms && result != RONDO_SUCCESS; i++)
        rd_call_spoiled(request->comms[i], result); /* other ranks wait for calls that cannot begin here */
    request->submitted = 1;
    request->mark = rd_comm_mark;
    clear(caller->group, request);
    return result;
}

static rondo_result_t too_many_ends(const char *call)
{
    return rd_error(NULL, RONDO_ERR_INVALID_USAGE, "%s without a rondo_group_start before it", call);
}

rondo_result_t rondo_group_end(void)
{
    rd_caller_t *caller = rd_caller();
    struct rondo_request request;

    if (caller->depth == 0)
        return too_many_ends("rondo_group_end");
    set_depth(caller, caller->depth - 1);
    if (caller->depth)
        return RONDO_SUCCESS;
    rd_request_init(&request);
    submit(caller, &request);
    rd_request_finish(&request);
    return rd_request_release(&request);
}

/* Of a group whose communicators are all there. The collectives of one communicator run one after another, those of
 * several concurrently. Returns a negative number
 * if something has no price. */
static double estimate(const rd_group_t *group, const struct rondo_request *request)
{
    double longest = rd_cuda_group_estimate();

    if (group->self.first || group->rma.n)
        return -1;
    for (const rd_task_t *t = group->first; t; t = t->next)
        if (rd_task_is_message(t))
            return -1;
    for (int i = 0; i < request->ncomms; i++) {
        double sum = 0;

        for (const rd_task_t *t = group->first; t; t = t->next)
            sum += t->queue == &request->comms[i]->queue ? t->plan->us : 0;
        longest = sum > longest && longest >= 0 ? sum : longest;
    }
    return longest;
}

/* Ends this thread's group, of which nothing has begun. */
static rondo_result_t drop(const rd_caller_t *caller, rondo_result_t why)
{
    struct rondo_request request = {0};

    rd_completion_fail(&caller->group->whose.completion, why);
    take_group(caller, &request);
    clear(caller->group, &request);
    return rd_request_release(&request);
}

rondo_result_t rondo_group_estimate(double *microseconds)
{
    rd_caller_t *caller = rd_caller();
    struct rondo_request request = {0};
    rondo_result_t result;
    double us;

    if (caller->depth == 0)
        return too_many_ends("rondo_group_estimate");
    if (caller->depth > 1)
        return rd_error(NULL, RONDO_ERR_INVALID_USAGE,
                        "rondo_group_estimate ends the outermost group alone: %d are open", caller->depth);
    set_depth(caller, 0);
    if (!microseconds)
        return drop(caller, rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_group_estimate: microseconds is NULL"));
    take_group(caller, &request);
    us = atomic_load(&request.completion.result) == RONDO_SUCCESS ? estimate(caller->group, &request) : -1;
    clear(caller->group, &request);
    result = rd_request_release(&request);
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
    rd_caller_t *caller = rd_caller();
    struct rondo_request *made, refused = {0};
    rondo_result_t result;

    if (caller->depth == 0)
        return too_many_ends("rondo_group_submit");
    if (caller->depth > 1)
        return rd_error(NULL, RONDO_ERR_INVALID_USAGE, "rondo_group_submit ends the outermost group alone: %d are open",
                        caller->depth);
    set_depth(caller, 0);
    if (!request)
        return drop(caller, rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_group_submit: request is NULL"));
    made = malloc(sizeof *made); /* calloc goes past the memory that the thread has just freed */
    if (made) {
        rd_request_init(made);
        made->later = 1;
    } else {
        rd_completion_fail(&caller->group->whose.completion,
                           rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for a request"));
    }
    if (submit(caller, made ? made : &refused) != RONDO_SUCCESS) {
        rd_request_finish(made ? made : &refused);
        result = rd_request_release(made ? made : &refused);
        free(made);
        return result;
    }
    rd_request_turn(made);
    for (int i = 0; i < made->ncomms; i++)
        offer(made->comms[i]);
    rd_request_leave(made);
    *request = made;
    return RONDO_SUCCESS;
}
