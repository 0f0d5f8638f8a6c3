/* Requests: what a group has handed to the queues of its communicators, as long as it is not over. A thread that waits
 * for one makes the progress of all of its communicators together; rondo_group_end waits for one of its own. */
#include "core/request.h"

#include <sched.h>
#include <stdlib.h>

#include "core/caller.h"
#include "exec/cuda/cuda.h"

bool rd_request_has(const struct rondo_request *request, const rd_queue_t *queue)
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

int rd_request_add_slowly(struct rondo_request *request, rondo_comm_t comm)
{
    if (rd_request_has(request, &comm->queue))
        return 0;
    if (!comms_room(request))
        return -1;
    rd_comm_retain(comm);
    request->comms[request->ncomms++] = comm;
    request->devices += comm->cuda != NULL;
    return 0;
}

/* The request no longer uses its i-th communicator, which this thread need not be inside. */
static void forget(struct rondo_request *request, int i)
{
    rondo_comm_t comm = request->comms[i];

    request->comms[i] = request->comms[--request->ncomms];
    request->comms[request->ncomms] = comm;
}

void rd_request_enter(struct rondo_request *request)
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
        bool gone = rd_comm_gone(comm);
        if (ms >= 0 && !gone)
            rd_queue_own_limit(&comm->queue, ms);
        if (!gone)
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

void rd_request_leave(struct rondo_request *request)
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
        if (rd_comm_on_device(comm))
            rd_completion_fail(&request->completion,
                               i < request->ncomms ? device_health(comm) : rd_health_check(&comm->health));
    }
}

bool rd_request_turn(struct rondo_request *request)
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

void rd_request_finish(struct rondo_request *request)
{
    while (!over(request)) {
        if (!rd_request_turn(request))
            back_off(request);
        if (request->cuda && !rd_outstanding_turn())
            sched_yield();
    }
}

rondo_result_t rd_request_release(struct rondo_request *request)
{
    rd_request_leave(request);
    while (request->nheld)
        rd_comm_release(request->comms[--request->nheld]);
    request->ncomms = 0;
    if (request->comms != &request->one)
        free(request->comms);
    if (request->works)
        free(request->works);
    return atomic_load(&request->completion.result);
}

static rondo_result_t dispose(rondo_request_t *request)
{
    rondo_result_t result = rd_request_release(*request);

    free(*request);
    *request = NULL;
    return result;
}

/* A thread makes the progress of what a call with blocking = 0 uses. What else has become of a communicator is said by
 * how its operations have ended. */
static rondo_result_t check_idle(const struct rondo_request *request, const char *call)
{
    for (int i = 0; i < request->ncomms; i++)
        if (rd_comm_busy(request->comms[i]))
            return rd_comm_valid(request->comms[i], call);
    return RONDO_SUCCESS;
}

static rondo_result_t check_mark(const struct rondo_request *request, const char *call)
{
    if (rd_caller()->in_hook)
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
                        "rondo_request_work: i is %d: the request has %d collectives and messages on host memory", i,
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
    if (*request && result == RONDO_SUCCESS)
        result = check_idle(*request, "rondo_request_test");
    if (result != RONDO_SUCCESS)
        return result;
    *done = 1;
    if (!*request)
        return RONDO_SUCCESS;
    rd_request_enter(*request);
    for (int i = 0; i < (*request)->ncomms; i++)
        rd_queue_wait_resume(&(*request)->comms[i]->queue);
    if (!over(*request) && !rd_request_turn(*request))
        back_off(*request);
    if (over(*request))
        return dispose(request);
    for (int i = 0; i < (*request)->ncomms; i++)
        rd_queue_wait_pause(&(*request)->comms[i]->queue);
    rd_request_leave(*request);
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
    if (result == RONDO_SUCCESS)
        result = check_idle(*request, "rondo_request_wait");
    if (result != RONDO_SUCCESS)
        return result;
    rd_request_enter(*request);
    for (int i = 0; i < (*request)->ncomms; i++)
        rd_queue_wait_begin(&(*request)->comms[i]->queue); /* what the program did since is no wait */
    rd_request_finish(*request);
    return dispose(request);
}
