/* The runtime's capture and graphs: see runtime.h. Independent nodes of a graph run at the same time, each on a thread
 * of its own, because a graph may hold kernels of several ranks that wait for each other. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/runtime.h"

struct CUgraphNode_st {
    sim_op_t *op;
    cudaGraphNode_t *deps;
    size_t ndeps;
    int index; /* in the graph */
};

typedef struct held {
    struct held *next;
    cudaUserObject_t object;
} held_t;

struct CUgraph_st {
    cudaGraphNode_t *nodes;
    size_t n;
    held_t *held;
};

struct CUuserObject_st {
    void *pointer;
    cudaHostFn_t destroy;
    int refs;
};

struct sim_capture {
    cudaGraph_t graph;
    unsigned long long id;
    cudaStream_t origin;
    enum cudaStreamCaptureMode mode;
    pthread_t thread;
    cudaStream_t streams[64];
    int nstreams;
    int spoiled; /* by a call that a captured stream does not allow */
};

/* A replay: the ops and, for each, which others it waits for. */
struct sim_run {
    size_t n;
    sim_op_t **ops;
    int **deps, *ndeps, *done;
};

struct CUgraphExec_st {
    struct sim_run *model;
    held_t *held;
};

static int open_captures; /* in global mode */
static unsigned long long last_id;
static _Thread_local enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;
static _Thread_local int own_captures; /* of this thread, global or thread-local */

/* ---- user objects ---- */

static void hold(held_t **list, cudaUserObject_t object)
{
    held_t *h = sim_memory(NULL, sizeof *h);

    *h = (held_t){*list, object};
    *list = h;
    object->refs++;
}

static void let_go(cudaUserObject_t object, int count)
{
    if ((object->refs -= count) > 0)
        return;
    object->destroy(object->pointer);
    free(object);
    sim_count(SIM_USER_OBJECT, -1);
}

static void release_held(held_t *list)
{
    while (list) {
        held_t *h = list;
        list = h->next;
        let_go(h->object, 1);
        free(h);
    }
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *pointer, cudaHostFn_t destroy, unsigned refs,
                                 unsigned flags)
{
    (void)flags;
    *object = sim_memory(NULL, sizeof **object);
    **object = (struct CUuserObject_st){pointer, destroy, (int)refs};
    sim_count(SIM_USER_OBJECT, 1);
    return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count)
{
    pthread_mutex_lock(&sim_lock);
    let_go(object, (int)count);
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags)
{
    pthread_mutex_lock(&sim_lock);
    for (unsigned i = 0; i < count; i++)
        hold(&graph->held, object);
    if (flags & cudaGraphUserObjectMove)
        let_go(object, (int)count);
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

/* ---- nodes ---- */

static void depend(cudaGraphNode_t node, cudaGraphNode_t on)
{
    for (size_t i = 0; i < node->ndeps; i++) {
        if (node->deps[i] == on)
            return;
    }
    node->deps = sim_memory(node->deps, (node->ndeps + 1) * sizeof *node->deps);
    node->deps[node->ndeps++] = on;
}

static cudaGraphNode_t add_node(cudaGraph_t graph, sim_op_t *op, const cudaGraphNode_t *deps, size_t ndeps)
{
    cudaGraphNode_t node = sim_memory(NULL, sizeof *node);

    node->op = op;
    node->index = (int)graph->n;
    for (size_t i = 0; i < ndeps; i++)
        depend(node, deps[i]);
    graph->nodes = sim_memory(graph->nodes, (graph->n + 1) * sizeof *graph->nodes);
    graph->nodes[graph->n++] = node;
    return node;
}

static cudaError_t add_event_node(cudaGraphNode_t *node, sim_kind_t kind, cudaGraph_t graph,
                                  const cudaGraphNode_t *deps, size_t ndeps, cudaEvent_t event)
{
    sim_op_t *op = sim_op_new(kind);

    op->event = event;
    pthread_mutex_lock(&sim_lock);
    *node = add_node(graph, op, deps, ndeps);
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
                                        size_t ndeps, cudaEvent_t event)
{
    return add_event_node(node, SIM_RECORD, graph, deps, ndeps, event);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
                                      size_t ndeps, cudaEvent_t event)
{
    return add_event_node(node, SIM_WAIT, graph, deps, ndeps, event);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *edges, size_t n)
{
    (void)graph;
    (void)edges;
    pthread_mutex_lock(&sim_lock);
    for (size_t i = 0; i < n; i++)
        depend(to[i], from[i]);
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                        const cudaGraphEdgeData *edges, size_t n)
{
    cudaError_t error = cudaSuccess;

    (void)graph;
    (void)edges;
    pthread_mutex_lock(&sim_lock);
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < to[i]->ndeps && to[i]->deps[k] != from[i])
            k++;
        if (k == to[i]->ndeps)
            error = cudaErrorInvalidValue;
        else
            to[i]->deps[k] = to[i]->deps[--to[i]->ndeps];
    }
    pthread_mutex_unlock(&sim_lock);
    return sim_error(error);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
    for (size_t i = 0; nodes && i < *n && i < graph->n; i++)
        nodes[i] = graph->nodes[i];
    *n = graph->n;
    return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    static const enum cudaGraphNodeType types[] = {
        [SIM_KERNEL] = cudaGraphNodeTypeKernel,  [SIM_COPY] = cudaGraphNodeTypeMemcpy,
        [SIM_SET] = cudaGraphNodeTypeMemset,     [SIM_RECORD] = cudaGraphNodeTypeEventRecord,
        [SIM_WAIT] = cudaGraphNodeTypeWaitEvent, [SIM_HOST] = cudaGraphNodeTypeHost,
        [SIM_LAUNCH] = cudaGraphNodeTypeGraph,   [SIM_RELEASE] = cudaGraphNodeTypeMemFree,
    };

    *type = types[node->op->kind];
    return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
    (void)flags;
    *graph = sim_memory(NULL, sizeof **graph);
    sim_count(SIM_GRAPH, 1);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    pthread_mutex_lock(&sim_lock);
    for (size_t i = 0; i < graph->n; i++) {
        sim_op_free(graph->nodes[i]->op);
        free(graph->nodes[i]->deps);
        free(graph->nodes[i]);
    }
    release_held(graph->held);
    pthread_mutex_unlock(&sim_lock);
    free(graph->nodes);
    free(graph);
    sim_count(SIM_GRAPH, -1);
    return cudaSuccess;
}

/* ---- capture ---- */

int sim_forbidden(void)
{
    return thread_mode != cudaStreamCaptureModeRelaxed &&
           ((thread_mode == cudaStreamCaptureModeGlobal && open_captures > 0) || own_captures > 0);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    enum cudaStreamCaptureMode before = thread_mode;

    thread_mode = *mode;
    *mode = before;
    return cudaSuccess;
}

static void set_deps(cudaStream_t s, const cudaGraphNode_t *deps, size_t n)
{
    s->deps = sim_memory(s->deps, (n + 1) * sizeof *s->deps);
    if (n)
        memmove(s->deps, deps, n * sizeof *deps);
    s->ndeps = n;
}

static void add_dep(cudaStream_t s, cudaGraphNode_t node)
{
    for (size_t i = 0; i < s->ndeps; i++) {
        if (s->deps[i] == node)
            return;
    }
    s->deps = sim_memory(s->deps, (s->ndeps + 1) * sizeof *s->deps);
    s->deps[s->ndeps++] = node;
}

cudaError_t sim_capture_add(cudaStream_t s, sim_op_t *op)
{
    /* Children and allocations are not needed here. */
    if (op->kind == SIM_LAUNCH || op->kind == SIM_RELEASE || s->capture->spoiled) {
        sim_op_free(op);
        return s->capture->spoiled ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnsupported;
    }
    cudaGraphNode_t node = add_node(s->capture->graph, op, s->deps, s->ndeps);
    set_deps(s, &node, 1);
    return cudaSuccess;
}

cudaError_t sim_capture_spoil(cudaStream_t s)
{
    s->capture->spoiled = 1;
    return cudaErrorStreamCaptureUnsupported;
}

cudaError_t sim_capture_record(cudaStream_t s, cudaEvent_t event, int external)
{
    if (external) {
        sim_op_t *op = sim_op_new(SIM_RECORD);
        op->event = event;
        return sim_capture_add(s, op);
    }
    event->capture = s->capture;
    event->ndeps = s->ndeps;
    event->deps = sim_memory(event->deps, (s->ndeps + 1) * sizeof *event->deps);
    if (s->ndeps)
        memcpy(event->deps, s->deps, s->ndeps * sizeof *event->deps);
    return cudaSuccess;
}

cudaError_t sim_capture_wait(cudaStream_t s, cudaEvent_t event, int external)
{
    if (s->capture && external) {
        sim_op_t *op = sim_op_new(SIM_WAIT);
        op->event = event;
        return sim_capture_add(s, op);
    }
    if (!event->capture)
        return cudaErrorStreamCaptureIsolation; /* a capturing stream waits for work outside */
    if (s->capture && s->capture != event->capture)
        return cudaErrorStreamCaptureMerge;
    if (!s->capture) {
        s->capture = event->capture;
        s->capture->streams[s->capture->nstreams++] = s;
        set_deps(s, NULL, 0);
    }
    for (size_t i = 0; i < event->ndeps; i++)
        add_dep(s, event->deps[i]);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    cudaGraph_t graph;

    if ((uintptr_t)stream <= 2)
        return sim_error(cudaErrorStreamCaptureImplicit);
    cudaGraphCreate(&graph, 0);
    pthread_mutex_lock(&sim_lock);
    struct sim_capture *c = sim_memory(NULL, sizeof *c);
    c->graph = graph;
    c->id = ++last_id;
    c->origin = c->streams[0] = stream;
    c->nstreams = 1;
    c->mode = mode;
    stream->capture = c;
    set_deps(stream, NULL, 0);
    open_captures += mode == cudaStreamCaptureModeGlobal;
    own_captures += mode != cudaStreamCaptureModeRelaxed;
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

/* Marks a node and what it waits for, directly and indirectly. */
static void mark_back(cudaGraphNode_t node, char *seen)
{
    if (seen[node->index])
        return;
    seen[node->index] = 1;
    for (size_t i = 0; i < node->ndeps; i++)
        mark_back(node->deps[i], seen);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    cudaError_t error = cudaSuccess;

    pthread_mutex_lock(&sim_lock);
    struct sim_capture *c = stream->capture;
    if (!c || c->origin != stream) {
        pthread_mutex_unlock(&sim_lock);
        return sim_error(c ? cudaErrorStreamCaptureUnmatched : cudaErrorIllegalState);
    }
    char *seen = sim_memory(NULL, c->graph->n + 1);
    if (c->spoiled)
        error = cudaErrorStreamCaptureInvalidated;
    for (size_t i = 0; i < stream->ndeps; i++)
        mark_back(stream->deps[i], seen);
    for (int k = 0; k < c->nstreams; k++) {
        for (size_t i = 0; i < c->streams[k]->ndeps; i++) {
            if (!seen[c->streams[k]->deps[i]->index])
                error = cudaErrorStreamCaptureUnjoined;
        }
        c->streams[k]->capture = NULL;
        c->streams[k]->ndeps = 0;
    }
    open_captures -= c->mode == cudaStreamCaptureModeGlobal;
    own_captures -= c->mode != cudaStreamCaptureModeRelaxed;
    *graph = c->graph;
    free(seen);
    free(c);
    pthread_mutex_unlock(&sim_lock);
    if (error != cudaSuccess) {
        cudaGraphDestroy(*graph);
        *graph = NULL;
    }
    return sim_error(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    return cudaStreamGetCaptureInfo(stream, status, NULL, NULL, NULL, NULL, NULL);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **deps, const cudaGraphEdgeData **edges,
                                     size_t *ndeps)
{
    pthread_mutex_lock(&sim_lock);
    cudaStream_t s = (uintptr_t)stream > 2 ? stream : NULL;
    *status = s && s->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (s && s->capture && s->capture->spoiled) {
        *status = cudaStreamCaptureStatusInvalidated;
    } else if (s && s->capture) {
        if (id)
            *id = s->capture->id;
        if (graph)
            *graph = s->capture->graph;
        if (deps)
            *deps = s->deps;
        if (edges)
            *edges = NULL;
        if (ndeps)
            *ndeps = s->ndeps;
    }
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t *deps, const cudaGraphEdgeData *edges,
                                                size_t n, unsigned flags)
{
    (void)edges;
    pthread_mutex_lock(&sim_lock);
    if (flags == cudaStreamSetCaptureDependencies)
        set_deps(s, deps, n);
    for (size_t i = 0; i < n && flags == cudaStreamAddCaptureDependencies; i++)
        add_dep(s, deps[i]);
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

/* ---- replay ---- */

static struct sim_run *run_new(size_t n)
{
    struct sim_run *r = sim_memory(NULL, sizeof *r);

    r->n = n;
    r->ops = sim_memory(NULL, (n + 1) * sizeof *r->ops);
    r->deps = sim_memory(NULL, (n + 1) * sizeof *r->deps);
    r->ndeps = sim_memory(NULL, (n + 1) * sizeof *r->ndeps);
    r->done = sim_memory(NULL, (n + 1) * sizeof *r->done);
    return r;
}

void sim_run_free(struct sim_run *r)
{
    for (size_t i = 0; r && i < r->n; i++) {
        sim_op_free(r->ops[i]);
        free(r->deps[i]);
    }
    if (r) {
        free(r->ops);
        free(r->deps);
        free(r->ndeps);
        free(r->done);
    }
    free(r);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    cudaGraphExec_t made = sim_memory(NULL, sizeof *made);

    (void)flags;
    pthread_mutex_lock(&sim_lock);
    if (sim_forbidden()) {
        pthread_mutex_unlock(&sim_lock);
        free(made);
        return sim_error(cudaErrorStreamCaptureUnsupported);
    }
    made->model = run_new(graph->n);
    for (size_t i = 0; i < graph->n; i++) {
        const struct CUgraphNode_st *node = graph->nodes[i];
        made->model->ops[i] = sim_op_copy(node->op);
        made->model->ndeps[i] = (int)node->ndeps;
        made->model->deps[i] = sim_memory(NULL, (node->ndeps + 1) * sizeof(int));
        for (size_t k = 0; k < node->ndeps; k++)
            made->model->deps[i][k] = node->deps[k]->index;
    }
    for (held_t *h = graph->held; h; h = h->next)
        hold(&made->held, h->object);
    pthread_mutex_unlock(&sim_lock);
    sim_count(SIM_EXEC, 1);
    *exec = made;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    pthread_mutex_lock(&sim_lock);
    sim_run_free(exec->model);
    release_held(exec->held);
    pthread_mutex_unlock(&sim_lock);
    free(exec);
    sim_count(SIM_EXEC, -1);
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    (void)exec;
    (void)stream;
    return cudaSuccess;
}

/* Events: a wait looks at what was recorded when the graph is launched, a record counts from then on. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    sim_op_t *op = sim_op_new(SIM_LAUNCH);

    pthread_mutex_lock(&sim_lock);
    struct sim_run *model = exec->model, *r = op->run = run_new(model->n);
    for (size_t i = 0; i < r->n; i++) {
        r->ops[i] = sim_op_copy(model->ops[i]);
        r->ndeps[i] = model->ndeps[i];
        r->deps[i] = sim_memory(NULL, (size_t)(model->ndeps[i] + 1) * sizeof(int));
        memcpy(r->deps[i], model->deps[i], (size_t)model->ndeps[i] * sizeof(int));
        if (r->ops[i]->kind == SIM_WAIT)
            r->ops[i]->mark = sim_mark_keep(r->ops[i]->event->mark);
    }
    for (size_t i = 0; i < r->n; i++) {
        if (r->ops[i]->kind != SIM_RECORD)
            continue;
        sim_mark_t *mark = r->ops[i]->done = sim_mark_new();
        sim_mark_drop(r->ops[i]->event->mark);
        r->ops[i]->event->mark = sim_mark_keep(mark);
        r->ops[i]->event->capture = NULL;
    }
    cudaError_t error = sim_enqueue(stream, op);
    pthread_mutex_unlock(&sim_lock);
    return sim_error(error);
}

typedef struct {
    struct sim_run *run;
    size_t i;
    int device;
    pthread_t thread;
} runner_t;

static int ready(const struct sim_run *r, size_t i)
{
    for (int k = 0; k < r->ndeps[i]; k++) {
        if (!r->done[r->deps[i][k]])
            return 0;
    }
    return 1;
}

static void *run_node(void *arg)
{
    runner_t *n = arg;
    struct sim_run *r = n->run;

    cudaSetDevice(n->device);
    pthread_mutex_lock(&sim_lock);
    while (!ready(r, n->i))
        pthread_cond_wait(&sim_moved, &sim_lock);
    pthread_mutex_unlock(&sim_lock);
    sim_op_run(r->ops[n->i]);
    pthread_mutex_lock(&sim_lock);
    r->done[n->i] = 1;
    sim_finish(r->ops[n->i]);
    pthread_mutex_unlock(&sim_lock);
    return NULL;
}

void sim_run_all(struct sim_run *r)
{
    runner_t *nodes = sim_memory(NULL, (r->n + 1) * sizeof *nodes);

    for (size_t i = 0; i < r->n; i++) {
        nodes[i] = (runner_t){r, i, sim_current(), 0};
        pthread_create(&nodes[i].thread, NULL, run_node, &nodes[i]);
    }
    for (size_t i = 0; i < r->n; i++)
        pthread_join(nodes[i].thread, NULL);
    free(nodes);
}
