/* The runtime's streams and events: a worker thread and a queue for each stream. See runtime.h. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/machine.h"
#include "sim/runtime.h"
#include "kernels/table.h"

#define DEVICES 64

static cudaStream_t all;
static cudaStream_t legacy[DEVICES];
static unsigned long long ids;
static unsigned jitter;

void sim_jitter(unsigned seed)
{
    jitter = seed;
}

/* ---- marks and ops ---- */

sim_mark_t *sim_mark_new(void)
{
    sim_mark_t *mark = sim_memory(NULL, sizeof *mark);
    mark->refs = 1;
    return mark;
}

sim_mark_t *sim_mark_keep(sim_mark_t *mark)
{
    if (mark)
        mark->refs++;
    return mark;
}

void sim_mark_drop(sim_mark_t *mark)
{
    if (mark && --mark->refs == 0)
        free(mark);
}

sim_op_t *sim_op_new(sim_kind_t kind)
{
    sim_op_t *op = sim_memory(NULL, sizeof *op);
    op->kind = kind;
    return op;
}

/* For a graph's replay: without marks. */
sim_op_t *sim_op_copy(const sim_op_t *op)
{
    sim_op_t *copy = sim_memory(NULL, sizeof *copy);

    *copy = *op;
    copy->next = NULL;
    copy->mark = copy->done = copy->begun = NULL;
    if (op->work) {
        copy->work = sim_memory(NULL, sizeof(rd_kwork_t));
        memcpy(copy->work, op->work, sizeof(rd_kwork_t));
    }
    return copy;
}

void sim_op_free(sim_op_t *op)
{
    sim_mark_drop(op->mark);
    sim_mark_drop(op->done);
    sim_mark_drop(op->begun);
    sim_run_free(op->run);
    free(op->work);
    free(op);
}

static void set_mark(sim_mark_t *mark)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (mark) {
        mark->done = 1;
        mark->when_ns = (long long)now.tv_sec * 1000000000 + now.tv_nsec;
    }
    pthread_cond_broadcast(&sim_moved);
}

void sim_finish(sim_op_t *op)
{
    set_mark(op->done);
}

static void set_begun(const sim_op_t *op)
{
    if (!op->begun)
        return;
    pthread_mutex_lock(&sim_lock);
    set_mark(op->begun);
    pthread_mutex_unlock(&sim_lock);
}

static void wait_mark(sim_mark_t *mark)
{
    pthread_mutex_lock(&sim_lock);
    while (mark && !mark->done)
        pthread_cond_wait(&sim_moved, &sim_lock);
    pthread_mutex_unlock(&sim_lock);
}

static void linger(void)
{
    static _Thread_local unsigned state;

    if (!jitter)
        return;
    state = (state ? state : jitter ^ (unsigned)(uintptr_t)&state) * 1664525u + 1013904223u;
    for (unsigned i = state >> 28; i; i--)
        sched_yield();
}

void sim_op_run(sim_op_t *op)
{
    linger();
    switch (op->kind) {
    case SIM_KERNEL:
        set_begun(op);
        rd_sim_grid(op->function, op->blocks, op->threads, op->shared, op->work);
        break;
    case SIM_COPY:
        sim_copy(op);
        break;
    case SIM_SET:
        memset(op->to, op->value, op->bytes);
        break;
    case SIM_WAIT:
        wait_mark(op->mark);
        break;
    case SIM_HOST:
        op->host(op->user);
        break;
    case SIM_LAUNCH:
        sim_run_all(op->run);
        break;
    case SIM_RELEASE:
        sim_release(op->to);
        break;
    case SIM_RECORD:
        break;
    }
}

/* ---- streams ---- */

static void *work(void *arg)
{
    cudaStream_t s = arg;

    cudaSetDevice(s->device);
    pthread_mutex_lock(&sim_lock);
    for (;;) {
        while (!s->first && !s->closing)
            pthread_cond_wait(&sim_moved, &sim_lock);
        sim_op_t *op = s->first;
        if (!op)
            break;
        s->first = op->next;
        if (!s->first)
            s->last = NULL;
        pthread_mutex_unlock(&sim_lock);
        sim_op_run(op);
        pthread_mutex_lock(&sim_lock);
        sim_finish(op);
        sim_op_free(op);
    }
    cudaStream_t *at = &all;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    sim_mark_drop(s->tail);
    free(s->deps);
    free(s);
    pthread_cond_broadcast(&sim_moved);
    pthread_mutex_unlock(&sim_lock);
    return NULL;
}

static cudaStream_t make(int device, int blocking)
{
    cudaStream_t s = sim_memory(NULL, sizeof *s);

    s->device = device;
    s->id = ++ids;
    s->blocking = blocking;
    s->next = all;
    all = s;
    sim_count(SIM_STREAM, 1);
    pthread_create(&s->worker, NULL, work, s);
    pthread_detach(s->worker);
    return s;
}

/* The default stream is made when it is first used, and is not counted as left behind. */
cudaStream_t sim_stream(cudaStream_t stream)
{
    int device = sim_current();

    if ((uintptr_t)stream > 2)
        return stream;
    if (!legacy[device]) {
        legacy[device] = make(device, 0);
        sim_count(SIM_STREAM, -1);
    }
    return legacy[device];
}

static void append(cudaStream_t s, sim_op_t *op)
{
    op->done = op->done ? op->done : sim_mark_new();
    sim_mark_drop(s->tail);
    s->tail = sim_mark_keep(op->done);
    if (s->last)
        s->last->next = op;
    else
        s->first = op;
    s->last = op;
    pthread_cond_broadcast(&sim_moved);
}

static void append_wait(cudaStream_t s, sim_mark_t *mark)
{
    if (!mark || mark->done)
        return;
    sim_op_t *op = sim_op_new(SIM_WAIT);
    op->mark = sim_mark_keep(mark);
    append(s, op);
}

/* The legacy stream waits for all blocking ones of its device, and they for it. */
static void join_legacy(cudaStream_t s)
{
    if (s == legacy[s->device]) {
        for (cudaStream_t other = all; other; other = other->next) {
            if (other->blocking && other->device == s->device)
                append_wait(s, other->tail);
        }
    } else if (s->blocking && legacy[s->device]) {
        append_wait(s, legacy[s->device]->tail);
    }
}

cudaError_t sim_enqueue(cudaStream_t stream, sim_op_t *op)
{
    cudaStream_t s = sim_stream(stream);

    if (s->capture)
        return sim_capture_add(s, op);
    if (op->kind == SIM_KERNEL && s->device != sim_current()) {
        sim_op_free(op);
        return cudaErrorInvalidResourceHandle;
    }
    join_legacy(s);
    append(s, op);
    return cudaSuccess;
}

void sim_drain(int device)
{
    for (int idle = 0; !idle;) {
        idle = 1;
        for (cudaStream_t s = all; s && idle; s = s->next) {
            if (s->device == device && s->tail && !s->tail->done)
                idle = 0;
        }
        if (!idle)
            pthread_cond_wait(&sim_moved, &sim_lock);
    }
}

static cudaError_t enqueue(cudaStream_t stream, sim_op_t *op)
{
    pthread_mutex_lock(&sim_lock);
    cudaError_t error = sim_enqueue(stream, op);
    pthread_mutex_unlock(&sim_lock);
    return sim_error(error);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    pthread_mutex_lock(&sim_lock);
    *stream = make(sim_current(), !(flags & cudaStreamNonBlocking));
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    pthread_mutex_lock(&sim_lock);
    stream->closing = 1; /* its worker ends when it is empty; the caller has none any more */
    sim_count(SIM_STREAM, -1);
    pthread_cond_broadcast(&sim_moved);
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    pthread_mutex_lock(&sim_lock);
    cudaStream_t s = sim_stream(stream);
    cudaError_t error = s->capture ? sim_capture_spoil(s) : cudaSuccess;
    *id = s->id;
    pthread_mutex_unlock(&sim_lock);
    return error == cudaSuccess ? error : sim_error(error);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    pthread_mutex_lock(&sim_lock);
    cudaStream_t s = sim_stream(stream);
    if (s->capture || sim_forbidden()) {
        pthread_mutex_unlock(&sim_lock);
        return sim_error(cudaErrorStreamCaptureUnsupported);
    }
    if (s == legacy[s->device])
        join_legacy(s);
    sim_mark_t *mark = sim_mark_keep(s->tail);
    while (mark && !mark->done)
        pthread_cond_wait(&sim_moved, &sim_lock);
    sim_mark_drop(mark);
    pthread_mutex_unlock(&sim_lock);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    pthread_mutex_lock(&sim_lock);
    cudaStream_t s = sim_stream(stream);
    cudaError_t error = s->capture || sim_forbidden() ? cudaErrorStreamCaptureUnsupported
                        : s->tail && !s->tail->done   ? cudaErrorNotReady
                                                      : cudaSuccess;
    pthread_mutex_unlock(&sim_lock);
    return error == cudaErrorNotReady ? error : sim_error(error);
}

cudaError_t cudaDeviceSynchronize(void)
{
    pthread_mutex_lock(&sim_lock);
    int forbidden = sim_forbidden();
    if (!forbidden)
        sim_drain(sim_current());
    pthread_mutex_unlock(&sim_lock);
    return forbidden ? sim_error(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}

/* ---- what streams do ---- */

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    sim_op_t *op = sim_op_new(SIM_COPY);

    (void)kind;
    op->to = to;
    op->from = from;
    op->bytes = bytes;
    return enqueue(stream, op);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, NULL);
    return error == cudaSuccess ? cudaStreamSynchronize(NULL) : error;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    sim_op_t *op = sim_op_new(SIM_SET);

    op->to = to;
    op->value = value;
    op->bytes = bytes;
    return enqueue(stream, op);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    cudaError_t error = cudaMemsetAsync(to, value, bytes, NULL);
    return error == cudaSuccess ? cudaStreamSynchronize(NULL) : error;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user)
{
    sim_op_t *op = sim_op_new(SIM_HOST);

    op->host = function;
    op->user = user;
    return enqueue(stream, op);
}

/* A launch completion event: recorded when the kernel begins; in a capture, with what the kernel waits for. */
static cudaError_t record_launch(const cudaLaunchConfig_t *config, sim_op_t *op)
{
    cudaStream_t s = sim_stream(config->stream);

    for (unsigned i = 0; i < config->numAttrs; i++) {
        cudaEvent_t event = config->attrs[i].val.launchCompletionEvent.event;

        if (config->attrs[i].id != cudaLaunchAttributeLaunchCompletionEvent)
            continue;
        if (event->timed)
            return cudaErrorInvalidValue;
        if (s->capture)
            return sim_capture_record(s, event, 0);
        op->begun = sim_mark_new();
        sim_mark_drop(event->mark);
        event->mark = sim_mark_keep(op->begun);
        event->capture = NULL;
    }
    return cudaSuccess;
}

/* What a kernel lets in stands beside it while both wait for a rank that is late, so both must be small. */
static void check_let_in(const cudaLaunchConfig_t *config, const rd_kwork_t *work)
{
    cudaStream_t s = sim_stream(config->stream);
    const uint32_t threads = config->gridDim.x * config->blockDim.x;
    int beside = 0;

    for (unsigned i = 0; i < config->numAttrs; i++)
        beside |= config->attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization &&
                  config->attrs[i].val.programmaticStreamSerializationAllowed;
    if (threads > RD_KT_EARLY && (work->comm.lets_in || (beside && s->let_in == work->comm.own))) {
        fprintf(stderr, "sim: a kernel of %u threads lets the next one in, or is let in\n", threads);
        abort();
    }
    s->let_in = work->comm.lets_in ? work->comm.own : NULL;
}

/* Every kernel has one argument, an rd_kwork_t. */
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **args)
{
    if (config->gridDim.x == 0)
        return sim_error(cudaErrorInvalidConfiguration);
    sim_op_t *op = sim_op_new(SIM_KERNEL);

    op->function = function;
    op->blocks = config->gridDim.x;
    op->threads = config->blockDim.x;
    op->shared = config->dynamicSmemBytes;
    op->work = sim_memory(NULL, sizeof(rd_kwork_t));
    memcpy(op->work, args[0], sizeof(rd_kwork_t));
    pthread_mutex_lock(&sim_lock);
    check_let_in(config, args[0]);
    cudaError_t error = record_launch(config, op);
    if (error == cudaSuccess)
        error = sim_enqueue(config->stream, op);
    else
        sim_op_free(op);
    pthread_mutex_unlock(&sim_lock);
    return sim_error(error);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
    (void)function;
    memset(attributes, 0, sizeof *attributes);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    (void)function;
    (void)attribute;
    (void)value;
    return cudaSuccess;
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    *event = sim_memory(NULL, sizeof **event);
    (*event)->timed = !(flags & cudaEventDisableTiming);
    sim_count(SIM_EVENT, 1);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    pthread_mutex_lock(&sim_lock);
    sim_mark_drop(event->mark);
    pthread_mutex_unlock(&sim_lock);
    free(event->deps);
    free(event);
    sim_count(SIM_EVENT, -1);
    return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    cudaError_t error = cudaSuccess;

    pthread_mutex_lock(&sim_lock);
    cudaStream_t s = sim_stream(stream);
    if (s->capture) {
        error = sim_capture_record(s, event, flags == cudaEventRecordExternal);
    } else if (flags == cudaEventRecordExternal) {
        error = cudaErrorInvalidValue;
    } else {
        sim_op_t *op = sim_op_new(SIM_RECORD);
        error = sim_enqueue(s, op);
        sim_mark_drop(event->mark);
        event->mark = sim_mark_keep(s->tail);
        event->capture = NULL;
    }
    pthread_mutex_unlock(&sim_lock);
    return sim_error(error);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return cudaEventRecordWithFlags(event, stream, 0);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    cudaError_t error = cudaSuccess;

    pthread_mutex_lock(&sim_lock);
    cudaStream_t s = sim_stream(stream);
    if (s->capture || event->capture)
        error = sim_capture_wait(s, event, flags == cudaEventWaitExternal);
    else
        append_wait(s, event->mark);
    pthread_mutex_unlock(&sim_lock);
    return sim_error(error);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    pthread_mutex_lock(&sim_lock);
    cudaError_t error = event->capture || sim_forbidden()   ? cudaErrorStreamCaptureUnsupported
                        : event->mark && !event->mark->done ? cudaErrorNotReady
                                                            : cudaSuccess;
    pthread_mutex_unlock(&sim_lock);
    return error == cudaErrorNotReady ? error : sim_error(error);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    pthread_mutex_lock(&sim_lock);
    int forbidden = event->capture || sim_forbidden();
    sim_mark_t *mark = forbidden ? NULL : sim_mark_keep(event->mark);
    while (mark && !mark->done)
        pthread_cond_wait(&sim_moved, &sim_lock);
    sim_mark_drop(mark);
    pthread_mutex_unlock(&sim_lock);
    return forbidden ? sim_error(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    cudaError_t error = cudaEventQuery(from);

    if (error == cudaSuccess)
        error = cudaEventQuery(to);
    if (error != cudaSuccess)
        return error;
    *ms = (float)(to->mark->when_ns - from->mark->when_ns) * 1e-6f;
    return cudaSuccess;
}
