/* The call order of one communicator's operations, whatever streams they go to.
 *
 * An event is recorded behind every operation; the next operation waits for it if it goes to another stream. An
 * operation that is captured depends on the last one of the same capture by an edge of the graph. Towards operations
 * outside, a capture has one node that waits for the event before its first operation, and one that records it behind
 * its last. The latter is moved along as operations are added, so that a graph of many operations pays for it once. So
 * replays and plain calls keep the order in which they were launched.
 *
 * These two nodes are branches of the graph: nothing comes before the first, nothing after the second. CUDA runs
 * branches in few queues, which all graphs of a process share, in the order in which the graphs are launched: so one
 * rank's wait comes to stand before the record of another rank of this process, for which it waits. Where ranks of a
 * process share a GPU, both nodes are therefore put in line with the operations. */
#include <string.h>

#include "exec/cuda/cuda_int.h"

/* ---- what every launch asks ----
 *
 * The runtime takes some 35 ns more for each than the driver's function that it calls (doc/notebook/gpu.md). Where the
 * driver fails, as in a thread that has no context yet, the runtime is asked, which makes one. */

static cudaError_t record(cudaEvent_t event, cudaStream_t stream)
{
    if (rd_driver.event_record && rd_driver.event_record(event, stream) == 0)
        return cudaSuccess;
    return cudaEventRecord(event, stream);
}

bool rd_cuda_captured(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;

    if (cudaStreamIsCapturing(stream, &status) != cudaSuccess)
        (void)cudaGetLastError();
    return status != cudaStreamCaptureStatusNone;
}

rondo_result_t rd_order_create(rd_cuda_t *cuda)
{
    cudaError_t error = cudaEventCreateWithFlags(&cuda->order.event, cudaEventDisableTiming);

    if (error == cudaSuccess)
        error = cudaEventCreateWithFlags(&cuda->order.side, cudaEventDisableTiming);
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(cuda->team->ctx, error, "cudaEventCreate");
}

void rd_order_free(rd_cuda_t *cuda)
{
    if (cuda->order.event)
        (void)cudaEventDestroy(cuda->order.event);
    if (cuda->order.side)
        (void)cudaEventDestroy(cuda->order.side);
    cuda->order.event = cuda->order.side = NULL;
}

static rd_order_t *order_of(rd_cuda_t *cuda)
{
    return &rd_cuda_outer(cuda)->order;
}

typedef struct capture {
    unsigned long long id; /* 0: the stream is not captured */
    cudaGraph_t graph;
    const cudaGraphNode_t *deps; /* of the stream's next operation */
    size_t ndeps;
} capture_t;

static cudaError_t capture_query(cudaStream_t stream, capture_t *c)
{
    enum cudaStreamCaptureStatus status;
    const cudaGraphEdgeData *edges;
    int is = cudaStreamCaptureStatusNone;
    cudaError_t error = cudaSuccess;

    if (rd_driver.capture_info &&
        rd_driver.capture_info(stream, &is, &c->id, &c->graph, &c->deps, &edges, &c->ndeps) == 0)
        status = (enum cudaStreamCaptureStatus)is;
    else
        error = cudaStreamGetCaptureInfo(stream, &status, &c->id, &c->graph, &c->deps, &edges, &c->ndeps);
    if (error == cudaSuccess && status != cudaStreamCaptureStatusActive)
        c->id = 0;
    return error;
}

/* Returns the id of a stream: its handle may be reused for another stream, but its id is not. Not for a stream that is
 * captured, because the query would invalidate the capture. */
static unsigned long long stream_id(cudaStream_t stream)
{
    unsigned long long id = 0;

    if (rd_driver.stream_id && rd_driver.stream_id(stream, &id) == 0)
        return id;
    return cudaStreamGetId(stream, &id) == cudaSuccess ? id : 0;
}

/* Do the event nodes of a capture stand in line with its operations? */
static bool in_line(rd_cuda_t *cuda)
{
    return rd_cuda_outer(cuda)->beside > 1;
}

static bool follows(const capture_t *c, cudaGraphNode_t node)
{
    for (size_t i = 0; i < c->ndeps; i++) {
        if (c->deps[i] == node)
            return true;
    }
    return false;
}

/* Has the capture's operations before this one at hand, if there are any: several captures may go on at once. */
static void recall(rd_order_t *o, unsigned long long id)
{
    rd_captured_t known = {.id = id};
    size_t i = 0;

    if (o->capture.id == id)
        return;
    while (i < RD_CAPTURES - 1 && o->beside[i].id != id)
        i++;
    if (i < RD_CAPTURES - 1)
        known = o->beside[i];
    else
        i--; /* the one of longest ago is over, most likely */
    memmove(&o->beside[1], &o->beside[0], i * sizeof o->beside[0]);
    o->beside[0] = o->capture;
    o->capture = known;
}

static cudaError_t before_captured(rd_order_t *o, cudaStream_t stream, const capture_t *c, bool line)
{
    cudaGraphNode_t wait;
    cudaError_t error = cudaSuccess;
    unsigned how = cudaStreamAddCaptureDependencies;

    recall(o, c->id);
    wait = o->capture.node;
    if (!wait) {
        error = cudaGraphAddEventWaitNode(&wait, c->graph, line ? c->deps : NULL, line ? c->ndeps : 0, o->event);
        if (line)
            how = cudaStreamSetCaptureDependencies;
    } else if (follows(c, wait)) {
        return cudaSuccess;
    }
    return error == cudaSuccess ? cudaStreamUpdateCaptureDependencies(stream, &wait, NULL, 1, how) : error;
}

rondo_result_t rd_order_before(rd_cuda_t *cuda, cudaStream_t stream)
{
    rd_order_t *o = order_of(cuda);
    capture_t c = {0};
    cudaError_t error = capture_query(stream, &c);

    o->captured = c.id != 0;
    if (error == cudaSuccess && c.id) {
        rd_cuda_outer(cuda)->was_captured = true;
        error = before_captured(o, stream, &c, in_line(cuda));
    } else if (error == cudaSuccess) {
        o->next = o->capture.id ? 0 : stream_id(stream); /* a replay may come between this call and the next */
        if (o->next == 0 || o->next != o->stream)
            error = cudaStreamWaitEvent(stream, o->event, 0);
    }
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(cuda->team->ctx, error, "ordering a call");
}

cudaEvent_t rd_order_event(rd_cuda_t *cuda)
{
    rd_order_t *o = order_of(cuda);
    cudaEvent_t event = o->launched;

    o->launched = NULL;
    return event;
}

rondo_result_t rd_order_launched(rd_cuda_t *cuda, cudaStream_t stream)
{
    cudaEvent_t event = rd_order_event(cuda);

    if (!event)
        return RONDO_SUCCESS;
    rd_device_before_t before = rd_device_switch(cuda->device); /* NULL is the stream of the current device */
    cudaError_t error = cudaEventRecord(event, stream);
    rd_device_back(before, cuda->device);
    return error == cudaSuccess ? RONDO_SUCCESS
                                : rd_cuda_error(cuda->team->ctx, error, "recording the event of a launch");
}

uint32_t rd_order_call(rd_cuda_t *cuda, bool epoch)
{
    const rd_order_t *o = order_of(cuda);

    return o->number ? RD_KCALL(o->number, epoch, o->captured) : 0;
}

/* Moves the node that records the event; one in line stays, and the next operation gets its own. If the capture has
 * several last nodes, the operation is not the only one in its stream, which is an error. */
static cudaError_t after_captured(rd_order_t *o, cudaStream_t stream, const capture_t *c, bool line)
{
    rd_captured_t *at = &o->capture;
    cudaGraphNode_t last;
    cudaError_t error = cudaSuccess;

    if (c->ndeps != 1)
        return cudaErrorIllegalState;
    last = c->deps[0];
    if (at->record)
        error = cudaGraphRemoveDependencies(c->graph, &at->node, &at->record, NULL, 1);
    if (error == cudaSuccess)
        error = at->record ? cudaGraphAddDependencies(c->graph, &last, &at->record, NULL, 1)
                           : cudaGraphAddEventRecordNode(&at->record, c->graph, &last, 1, o->event);
    if (error == cudaSuccess && line) {
        last = at->record;
        at->record = NULL;
        error = cudaStreamUpdateCaptureDependencies(stream, &last, NULL, 1, cudaStreamSetCaptureDependencies);
    }
    at->node = last;
    o->stream = 0; /* the graph may be launched into any stream */
    return error;
}

rondo_result_t rd_order_after(rd_cuda_t *cuda, cudaStream_t stream)
{
    rd_order_t *o = order_of(cuda);
    capture_t c = {0};
    cudaError_t error;

    if (!o->captured) {
        error = record(o->event, stream);
        o->stream = o->next;
    } else if ((error = capture_query(stream, &c)) == cudaSuccess) {
        error = after_captured(o, stream, &c, in_line(cuda));
    }
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(cuda->team->ctx, error, "ordering a call");
}

rondo_result_t rd_order_behind(rd_cuda_t *cuda, cudaStream_t stream)
{
    cudaError_t error = cudaStreamWaitEvent(stream, order_of(cuda)->event, 0);

    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(cuda->team->ctx, error, "ordering a request");
}

rondo_result_t rd_order_join(rd_cuda_t *cuda, cudaStream_t from, cudaStream_t to)
{
    rd_order_t *o = order_of(cuda);
    rd_device_before_t before = rd_device_switch(cuda->device); /* NULL is the stream of the current device */
    cudaError_t error = cudaEventRecord(o->side, from);

    if (error == cudaSuccess)
        error = cudaStreamWaitEvent(to, o->side, 0);
    rd_device_back(before, cuda->device);
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(cuda->team->ctx, error, "joining streams");
}

/* ---- two branches between a fork and a join ---- */

rondo_result_t rd_order_fork(rd_cuda_t *cuda, cudaStream_t stream, cudaStream_t beside, rd_fork_t *fork)
{
    capture_t c = {0};
    cudaError_t error = capture_query(stream, &c);

    *fork = (rd_fork_t){.stream = stream, .beside = beside};
    if (error == cudaSuccess && !c.id)
        return rd_order_join(cuda, stream, beside);
    if (error == cudaSuccess && c.ndeps != 1)
        error = cudaErrorIllegalState;
    if (error == cudaSuccess) {
        fork->at = c.deps[0];
        fork->beside = stream;
    }
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(cuda->team->ctx, error, "forking a stream");
}

rondo_result_t rd_order_forked(rd_cuda_t *cuda, rd_fork_t *fork)
{
    capture_t c = {0};

    if (!fork->at)
        return RONDO_SUCCESS;
    cudaError_t error = capture_query(fork->stream, &c);
    if (error == cudaSuccess && c.ndeps != 1)
        error = cudaErrorIllegalState;
    if (error == cudaSuccess) {
        fork->last = c.deps[0];
        error = cudaStreamUpdateCaptureDependencies(fork->stream, &fork->at, NULL, 1, cudaStreamSetCaptureDependencies);
    }
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(cuda->team->ctx, error, "forking a stream");
}

rondo_result_t rd_order_joined(rd_cuda_t *cuda, rd_fork_t *fork)
{
    cudaError_t error;

    if (!fork->at)
        return rd_order_join(cuda, fork->beside, fork->stream);
    error = cudaStreamUpdateCaptureDependencies(fork->stream, &fork->last, NULL, 1, cudaStreamAddCaptureDependencies);
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(cuda->team->ctx, error, "joining streams");
}
