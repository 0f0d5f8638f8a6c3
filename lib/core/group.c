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

typedef struct {
    rd_task_t *first, *last;
    rd_self_messages_t self;
    rd_rma_list_t rma;
    struct rondo_request whose; /* the communicators, each once, and the result of the first call that failed */
} group_t;

/* Returns this thread's group. If CUDA is in the library, a thread variable is found by a call: `const` leaves one call
 * in a function, however often the function uses it. */
static __attribute__((const, noinline)) group_t *own(void)
{
    static _Thread_local group_t group;

    return &group;
}

rondo_result_t rd_group_failed(rondo_result_t result)
{
    if (rd_caller()->depth)
        rd_completion_fail(&own()->whose.completion, result);
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

static void set_depth(int depth)
{
    rd_caller()->depth = depth;
    rd_caller_note(rd_caller());
}

rondo_result_t rondo_group_start(void)
{
    if (rd_caller()->in_hook)
        return rd_group_refuse(NULL, "rondo_group_start");
    set_depth(rd_caller()->depth + 1);
    return RONDO_SUCCESS;
}

rondo_result_t rd_group_note(rondo_comm_t comm)
{
    if (rd_request_add(&own()->whose, comm) == 0)
        return RONDO_SUCCESS;
    return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory to record an operation");
}

rondo_result_t rd_group_record(rondo_comm_t comm, rd_task_t *task)
{
    if (rd_request_add(&own()->whose, comm) != 0) {
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
    if (rd_request_add(&own()->whose, comm) == 0 && rd_self_add(&own()->self, comm, send, buffer, bytes))
        return RONDO_SUCCESS;
    return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory to record an operation");
}

rondo_result_t rd_group_record_rma(rondo_comm_t comm, rd_rma_op_t *op)
{
    if (rd_request_add(&own()->whose, comm) == 0) {
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
        rd_task_free(rd_request_has(request, t->queue) ? t->queue : NULL, t);
    }
    rd_rma_list_clear(&own()->rma);
    rd_self_clear(&own()->self);
    rd_profile_group_end();
    memset(own(), 0, sizeof *own());
    rd_cuda_group_clear();
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
    request->limit_ms = rd_caller()->differs ? rd_limit_take() + 1 : 0;
    rd_profile_group_ends();
    rd_request_enter(request);
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

static rondo_result_t too_many_ends(const char *call)
{
    return rd_error(NULL, RONDO_ERR_INVALID_USAGE, "%s without a rondo_group_start before it", call);
}

rondo_result_t rondo_group_end(void)
{
    struct rondo_request request = {0};

    if (rd_caller()->depth == 0)
        return too_many_ends("rondo_group_end");
    set_depth(rd_caller()->depth - 1);
    if (rd_caller()->depth)
        return RONDO_SUCCESS;
    submit(&request);
    rd_request_finish(&request);
    return rd_request_release(&request);
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
    return rd_request_release(&request);
}

rondo_result_t rondo_group_estimate(double *microseconds)
{
    struct rondo_request request = {0};
    rondo_result_t result;
    double us;

    if (rd_caller()->depth == 0)
        return too_many_ends("rondo_group_estimate");
    if (rd_caller()->depth > 1)
        return rd_error(NULL, RONDO_ERR_INVALID_USAGE,
                        "rondo_group_estimate ends the outermost group alone: %d are open", rd_caller()->depth);
    set_depth(0);
    if (!microseconds)
        return drop(rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_group_estimate: microseconds is NULL"));
    take_group(&request);
    us = estimate(&request);
    clear(&request);
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
    struct rondo_request *made, refused = {0};
    rondo_result_t result;

    if (rd_caller()->depth == 0)
        return too_many_ends("rondo_group_submit");
    if (rd_caller()->depth > 1)
        return rd_error(NULL, RONDO_ERR_INVALID_USAGE, "rondo_group_submit ends the outermost group alone: %d are open",
                        rd_caller()->depth);
    set_depth(0);
    if (!request)
        return drop(rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_group_submit: request is NULL"));
    made = calloc(1, sizeof *made);
    if (made)
        made->later = 1;
    if (!made)
        rd_completion_fail(&own()->whose.completion, rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for a request"));
    if (submit(made ? made : &refused) != RONDO_SUCCESS) {
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
