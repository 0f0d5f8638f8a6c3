/* A request: the operations of a group that has been submitted, and the communicators that they run on. */
#ifndef RD_CORE_REQUEST_H
#define RD_CORE_REQUEST_H

#include "core/comm.h"
#include "core/submit.h"

struct rondo_request {
    uint64_t mark;              /* rd_comm_mark of the process that submitted */
    rd_completion_t completion; /* of the tasks */
    int submitted;              /* the tasks are in their queues */
    /* The communicators of these tasks, with a reference to each until the end. Those after the first `ncomms` have
     * been ended or have failed: this request is not inside them any more. Most groups have only one. */
    int ncomms, nheld;
    int devices; /* how many of them were added that are on GPUs */
    rondo_comm_t *comms;
    rondo_comm_t one;
    rondo_work_t *works; /* of the tasks, in the order of their calls; NULL: there was no memory */
    int nworks;
    int64_t limit_ms;             /* of rondo_timeout_next, plus one; 0: none of its own */
    int later;                    /* its end does not wait for what runs on devices */
    struct rd_cuda_pending *cuda; /* the part that runs there and is waited for; NULL: nothing */
};

/* A request of nothing, field by field: to clear all of it at once takes a short group longer. */
static inline void rd_request_init(struct rondo_request *request)
{
    atomic_init(&request->completion.pending, 0);
    atomic_init(&request->completion.result, RONDO_SUCCESS);
    request->mark = 0;
    request->submitted = request->ncomms = request->nheld = request->devices = request->nworks = request->later = 0;
    request->comms = NULL;
    request->works = NULL;
    request->limit_ms = 0;
    request->cuda = NULL;
}

/* Adds the communicator, once. Returns -1 if there is no memory. */
int rd_request_add_slowly(struct rondo_request *request, rondo_comm_t comm);
static inline int rd_request_add(struct rondo_request *request, rondo_comm_t comm)
{
    return request->ncomms && request->comms[0] == comm ? 0 : rd_request_add_slowly(request, comm);
}

bool rd_request_has(const struct rondo_request *request, const rd_queue_t *queue); /* its communicator */
/* From here until rd_request_leave no other thread ends one of the communicators. One that has been ended is removed:
 * its tasks ended with it. */
void rd_request_enter(struct rondo_request *request);
void rd_request_leave(struct rondo_request *request);
/* Makes the progress of every communicator of the request, which this thread is inside. */
bool rd_request_turn(struct rondo_request *request);
void rd_request_finish(struct rondo_request *request); /* waits until it is over, inside of its communicators */
/* Leaves and releases the communicators of the request. */
rondo_result_t rd_request_release(struct rondo_request *request);

#endif
