/* Groups: what a thread calls between rondo_group_start and the end that matches it is recorded as tasks, then enters
 * the communicators' queues at once, and the caller makes the progress of all of them together. See queue.h for why
 * that cannot deadlock: no task waits for another of a different chain.
 */
#include <stdlib.h>
#include <string.h>

#include "call.h"

/* A message of a rank to itself: one half of a pair that must be complete within the group. */
typedef struct self_message {
    struct self_message *next;
    rondo_comm_t comm;
    int send, matched;
    void *buffer;
    size_t bytes;
} self_message_t;

typedef struct recorded {
    struct recorded *next;
    rondo_comm_t comm;
    rd_task_t *task;
} recorded_t;

_Thread_local int rd_group_depth;
static _Thread_local struct {
    recorded_t *first, *last;
    self_message_t *self_first, *self_last;
    rondo_result_t result; /* of the first call that failed */
} group;

rondo_result_t rd_group_failed(rondo_result_t result)
{
    if (rd_group_depth && group.result == RONDO_SUCCESS)
        group.result = result;
    return result;
}

rondo_result_t rondo_group_start(void)
{
    rd_group_depth++;
    return RONDO_SUCCESS;
}

rondo_result_t rd_group_record(rondo_comm_t comm, rd_task_t *task)
{
    recorded_t *r = malloc(sizeof *r);

    if (!r) {
        rd_task_free(comm, task);
        return rd_group_failed(rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory to record an operation"));
    }
    *r = (recorded_t){NULL, comm, task};
    if (group.last)
        group.last->next = r;
    else
        group.first = r;
    group.last = r;
    return RONDO_SUCCESS;
}

rondo_result_t rd_group_record_self(rondo_comm_t comm, int send, void *buffer, size_t bytes)
{
    self_message_t *m = malloc(sizeof *m);

    if (!m)
        return rd_group_failed(rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory to record an operation"));
    *m = (self_message_t){NULL, comm, send, 0, buffer, bytes};
    if (group.self_last)
        group.self_last->next = m;
    else
        group.self_first = m;
    group.self_last = m;
    return RONDO_SUCCESS;
}

/* The first message of the other direction on the same communicator that has no partner yet. */
static self_message_t *partner(const self_message_t *of)
{
    for (self_message_t *m = group.self_first; m; m = m->next) {
        if (!m->matched && m->comm == of->comm && m->send != of->send)
            return m;
    }
    return NULL;
}

/* Sends and receives of a rank with itself match in order and are copies. */
static rondo_result_t match_self(void)
{
    for (self_message_t *m = group.self_first; m; m = m->next) {
        if (m->matched)
            continue;
        self_message_t *p = partner(m);
        if (!p)
            return rd_error(&m->comm->who, RONDO_ERR_INVALID_USAGE,
                            "%s to this rank itself has no matching %s in the same group",
                            m->send ? "a send" : "a recv", m->send ? "recv" : "send");
        if (p->bytes != m->bytes)
            return rd_error(&m->comm->who, RONDO_ERR_INVALID_ARGUMENT,
                            "a rank sends itself %zu bytes and receives %zu: the counts must match",
                            m->send ? m->bytes : p->bytes, m->send ? p->bytes : m->bytes);
        p->matched = m->matched = 1;
    }
    return RONDO_SUCCESS;
}

static void copy_self(void)
{
    for (self_message_t *m = group.self_first; m; m = m->next)
        m->matched = 0;
    for (self_message_t *m = group.self_first; m; m = m->next) {
        if (m->matched)
            continue;
        self_message_t *p = partner(m);
        m->matched = p->matched = 1;
        if (m->bytes) /* else the buffers may be NULL */
            memmove(m->send ? p->buffer : m->buffer, m->send ? m->buffer : p->buffer, m->bytes);
    }
}

/* Forgets what is recorded; tasks that were not handed on are freed. */
static void clear(void)
{
    while (group.first) {
        recorded_t *r = group.first;
        group.first = r->next;
        if (r->task)
            rd_task_free(r->comm, r->task);
        free(r);
    }
    while (group.self_first) {
        self_message_t *m = group.self_first;
        group.self_first = m->next;
        free(m);
    }
    memset(&group, 0, sizeof group);
}

/* Notes the communicator once. */
static rondo_result_t add_comm(struct rondo_request *request, rondo_comm_t comm)
{
    for (int i = 0; i < request->ncomms; i++) {
        if (request->comms[i] == comm)
            return RONDO_SUCCESS;
    }
    rondo_comm_t *more = realloc(request->comms, (size_t)(request->ncomms + 1) * sizeof *more);
    if (!more)
        return rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory for a request");
    request->comms = more;
    request->comms[request->ncomms++] = comm;
    return RONDO_SUCCESS;
}

/* Hands all recorded tasks to their queues. After a failure none is handed on. */
static rondo_result_t submit(struct rondo_request *request)
{
    rondo_result_t result = group.result;

    for (recorded_t *r = group.first; r && result == RONDO_SUCCESS; r = r->next) {
        result = rd_comm_valid(r->comm, "the end of a group"); /* a fork may lie between start and end */
        if (result == RONDO_SUCCESS)
            result = rd_comm_check(r->comm);
        if (result == RONDO_SUCCESS)
            result = add_comm(request, r->comm);
    }
    if (result == RONDO_SUCCESS)
        result = match_self();
    if (result == RONDO_SUCCESS)
        copy_self();
    for (recorded_t *r = group.first; r && result == RONDO_SUCCESS; r = r->next) {
        r->task->request = request;
        request->pending++;
        result = rd_queue_add(r->comm, r->task);
        r->task = NULL;
        if (result != RONDO_SUCCESS) { /* part of the group has begun: there is no way back */
            result = rd_comm_fail(r->comm, result, -1, "%s", "no memory to begin an operation of a group");
            rd_queue_flush(r->comm, result);
        }
    }
    for (int i = 0; i < request->ncomms && result == RONDO_SUCCESS; i++)
        rd_wait_begin(&request->comms[i]->queue.wait, &request->comms[i]->stop, request->comms[i]->spin,
                      request->comms[i]->timeout_ms);
    clear();
    return result;
}

/* One turn over every communicator of the request. */
static int turn(struct rondo_request *request)
{
    int any = 0;

    for (int i = 0; i < request->ncomms; i++) {
        rondo_comm_t comm = request->comms[i];
        int moved = 0;
        rondo_result_t result = rd_comm_enter(comm);
        if (result == RONDO_SUCCESS)
            result = rd_queue_advance(comm, &moved);
        else
            rd_queue_flush(comm, result);
        if (moved)
            rd_wait_progress(&comm->queue.wait);
        any |= moved;
        if (result != RONDO_SUCCESS && request->result == RONDO_SUCCESS)
            request->result = result;
        rd_comm_leave(comm, result);
    }
    return any;
}

/* Between nodes: what was posted has left this rank's memory. */
static int idle(const struct rondo_request *request)
{
    for (int i = 0; i < request->ncomms; i++) {
        if (request->comms[i]->net && !rd_net_idle(request->comms[i]->net))
            return 0;
    }
    return 1;
}

static int over(const struct rondo_request *request)
{
    return request->pending == 0 && (request->result != RONDO_SUCCESS || idle(request));
}

/* After a turn in which nothing moved: a little patience, and a look at abort, death and timeout. */
static void miss(struct rondo_request *request)
{
    for (int i = 0; i < request->ncomms && !over(request); i++) {
        rondo_comm_t comm = request->comms[i];
        if (!comm->queue.active && !comm->net)
            continue;
        rondo_result_t result = rd_comm_enter(comm);
        if (result == RONDO_SUCCESS)
            result = rd_queue_miss(comm);
        if (result != RONDO_SUCCESS) {
            request->result = request->result ? request->result : result;
            rd_queue_flush(comm, result);
        }
        rd_comm_leave(comm, result);
    }
}

static void finish(struct rondo_request *request)
{
    while (!over(request)) {
        if (!turn(request))
            miss(request);
    }
}

static rondo_result_t too_many_ends(const char *call)
{
    return rd_error(NULL, RONDO_ERR_INVALID_USAGE, "%s without a rondo_group_start before it", call);
}

rondo_result_t rondo_group_end(void)
{
    struct rondo_request request = {0};
    rondo_result_t result;

    if (rd_group_depth == 0)
        return too_many_ends("rondo_group_end");
    if (--rd_group_depth)
        return RONDO_SUCCESS;
    result = submit(&request);
    if (result != RONDO_SUCCESS && request.result == RONDO_SUCCESS)
        request.result = result;
    finish(&request);
    free(request.comms);
    return request.result;
}

rondo_result_t rondo_group_submit(rondo_request_t *request)
{
    struct rondo_request *made;
    rondo_result_t result;

    if (rd_group_depth == 0)
        return too_many_ends("rondo_group_submit");
    if (!request)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_group_submit: request is NULL");
    if (rd_group_depth > 1)
        return rd_error(NULL, RONDO_ERR_INVALID_USAGE, "rondo_group_submit ends the outermost group alone: %d are open",
                        rd_group_depth);
    rd_group_depth = 0;
    made = calloc(1, sizeof *made);
    if (!made) {
        clear();
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for a request");
    }
    result = submit(made);
    if (result != RONDO_SUCCESS) {
        made->result = result;
        finish(made);
        free(made->comms);
        free(made);
        return result;
    }
    made->mark = rd_comm_mark;
    turn(made);
    *request = made;
    return RONDO_SUCCESS;
}

static rondo_result_t release(rondo_request_t *request)
{
    rondo_result_t result = (*request)->result;

    free((*request)->comms);
    free(*request);
    *request = NULL;
    return result;
}

static rondo_result_t check_mark(const struct rondo_request *request, const char *call)
{
    if (request->mark == rd_comm_mark)
        return RONDO_SUCCESS;
    return rd_error(NULL, RONDO_ERR_INVALID_USAGE,
                    "%s: request is the parent process's: a forked child submits requests of its own", call);
}

rondo_result_t rondo_request_test(rondo_request_t *request, int *done)
{
    if (!request || !done)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_request_test: %s is NULL",
                        request ? "done" : "request");
    if (!*request) {
        *done = 1;
        return RONDO_SUCCESS;
    }
    rondo_result_t result = check_mark(*request, "rondo_request_test");
    if (result != RONDO_SUCCESS)
        return result;
    if (!over(*request) && !turn(*request))
        miss(*request);
    *done = over(*request);
    return *done ? release(request) : RONDO_SUCCESS;
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
    finish(*request);
    return release(request);
}
