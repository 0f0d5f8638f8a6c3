/* Groups on CUDA communicators: the calls of a thread between start and end are launched at the end.
 *
 * Within a group, ranks may make calls in different orders if these calls have no order between each other. So the
 * order of the launches does not depend on the order of calls: communicators are sorted by their key, and each launches
 * its collectives in the order of the calls, then all its messages. One-sided operations stay in their order. Those
 * before a communicator's first wait for signals are in front of what all communicators launch otherwise, the others
 * behind it: neither a put nor a collective stands behind what may wait for the rank that waits for it, unless the
 * program has put it behind a wait. */
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/cuda_int.h"

typedef struct op {
    struct op *next;
    rd_call_t call;
    rd_tables_t tables;
    rd_op_scalar_t scalar; /* what the call points to: its operator may be gone at the group's end */
    size_t counts[];       /* what `tables` points to */
} op_t;

/* One communicator's part of the group. */
typedef struct part {
    struct part *next;
    rd_cuda_t *cuda;
    uint64_t key; /* the communicator's key, kept because it may be gone when the next one is recorded */
    int rank;
    op_t *first, *last;
    rd_cuda_message_t *message_first, *message_last;
    rd_cuda_access_op_t *access_first, *access_last;
    const rd_cuda_access_op_t *access_next; /* of those that have not run; set as the group is submitted */
} part_t;

static _Thread_local part_t *parts;

struct rd_cuda_pending {
    int n;
    struct {
        cudaEvent_t event;
        rd_log_ctx_t *ctx; /* of the communicator, whose struct the request holds */
        int device;
    } wait[];
};

/* Returns the communicator's part, at its place in the order of keys; creates it if there is none. */
static part_t *part_of(rd_cuda_t *cuda)
{
    part_t **at = &parts, *made;

    while (*at && ((*at)->key < cuda->key || ((*at)->key == cuda->key && (*at)->rank < cuda->k.rank)))
        at = &(*at)->next;
    if (*at && (*at)->cuda == cuda)
        return *at;
    made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->next = *at;
    made->cuda = cuda;
    made->key = cuda->key;
    made->rank = cuda->k.rank;
    return *at = made;
}

static rondo_result_t no_memory(rd_cuda_t *cuda)
{
    return rd_error(cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory to record an operation");
}

static const size_t *keep(op_t *op, int row, const size_t *from, size_t n)
{
    return from ? memcpy(op->counts + (size_t)row * n, from, n * sizeof *from) : NULL;
}

rondo_result_t rd_cuda_record(rd_cuda_t *cuda, const rd_call_t *call)
{
    size_t n = (size_t)cuda->k.nranks;
    part_t *part = part_of(cuda);
    op_t *op = part ? calloc(1, sizeof *op + (call->tables ? 4 * n * sizeof(size_t) : 0)) : NULL;

    if (!op)
        return no_memory(cuda);
    op->call = *call;
    if (call->scalar) {
        op->scalar = *call->scalar;
        op->call.scalar = &op->scalar;
    }
    if (call->tables) {
        const rd_tables_t *t = call->tables;
        op->tables = (rd_tables_t){keep(op, 0, t->in_counts, n), keep(op, 1, t->in_displs, n),
                                   keep(op, 2, t->out_counts, n), keep(op, 3, t->out_displs, n)};
        op->call.tables = &op->tables;
    }
    if (part->last)
        part->last->next = op;
    else
        part->first = op;
    part->last = op;
    return RONDO_SUCCESS;
}

rondo_result_t rd_cuda_record_message(rd_cuda_t *cuda, const rd_cuda_message_t *message)
{
    part_t *part = part_of(cuda);
    rd_cuda_message_t *m = part ? malloc(sizeof *m) : NULL;

    if (!m)
        return no_memory(cuda);
    *m = *message;
    if (part->message_last)
        part->message_last->next = m;
    else
        part->message_first = m;
    part->message_last = m;
    return RONDO_SUCCESS;
}

rondo_result_t rd_cuda_record_access(rd_cuda_t *cuda, rd_cuda_access_op_t *op)
{
    part_t *part = part_of(cuda);

    if (!part) {
        free(op);
        return no_memory(cuda);
    }
    op->next = NULL;
    if (part->access_last)
        part->access_last->next = op;
    else
        part->access_first = op;
    part->access_last = op;
    return RONDO_SUCCESS;
}

static void free_part(part_t *part)
{
    while (part->access_first) {
        rd_cuda_access_op_t *access = part->access_first;
        part->access_first = access->next;
        free(access);
    }
    while (part->first) {
        op_t *op = part->first;
        part->first = op->next;
        free(op);
    }
    while (part->message_first) {
        rd_cuda_message_t *m = part->message_first;
        part->message_first = m->next;
        free(m);
    }
    free(part);
}

void rd_cuda_group_clear(void)
{
    while (parts) {
        part_t *part = parts;
        parts = part->next;
        free_part(part);
    }
}

double rd_cuda_group_estimate(void)
{
    double longest = 0;

    for (const part_t *part = parts; part; part = part->next) {
        rd_fusion_t fusion;

        if (part->message_first || part->access_first)
            return -1;
        rd_fusion_begin(&fusion, part->cuda, true);
        for (const op_t *op = part->first; op; op = op->next)
            (void)rd_fusion_add(&fusion, &op->call);
        (void)rd_fusion_end(&fusion);
        if (fusion.us < 0)
            return -1;
        longest = fusion.us > longest ? fusion.us : longest;
    }
    return longest;
}

/* Checks that sends and receives of a rank with itself are complete within the group. */
static rondo_result_t check_self(const part_t *part)
{
    const rd_cuda_t *cuda = part->cuda;
    const rd_cuda_message_t *s = part->message_first, *r = s;

    for (;;) {
        while (s && !(s->send && s->peer == cuda->k.rank))
            s = s->next;
        while (r && !(!r->send && r->peer == cuda->k.rank))
            r = r->next;
        if (!s && !r)
            return RONDO_SUCCESS;
        if (!s || !r)
            return rd_error(cuda->team->ctx, RONDO_ERR_INVALID_USAGE,
                            "%s to this rank itself has no matching %s in the same group", s ? "a send" : "a recv",
                            s ? "recv" : "send");
        if (s->bytes != r->bytes)
            return rd_error(cuda->team->ctx, RONDO_ERR_INVALID_ARGUMENT,
                            "a rank sends itself %zu bytes and receives %zu: the counts must match", s->bytes,
                            r->bytes);
        s = s->next;
        r = r->next;
    }
}

static rondo_result_t compare(const part_t *part)
{
    rondo_result_t result = RONDO_SUCCESS;

    for (const op_t *op = part->first; op && result == RONDO_SUCCESS; op = op->next)
        result = rd_cuda_compare(part->cuda, &op->call);
    return result;
}

/* From the next one on, up to the first that waits for signals; or all of them. */
static rondo_result_t run_accesses(part_t *part, bool all)
{
    rondo_result_t result = RONDO_SUCCESS;

    for (; part->access_next && result == RONDO_SUCCESS && (all || part->access_next->access != RD_CUDA_AWAIT);
         part->access_next = part->access_next->next)
        result = rd_access_run(part->cuda, part->access_next);
    return result;
}

static rondo_result_t run_calls(part_t *part)
{
    rondo_result_t result = RONDO_SUCCESS;
    rd_fusion_t fusion;

    rd_fusion_begin(&fusion, part->cuda, false);
    for (const op_t *op = part->first; op && result == RONDO_SUCCESS; op = op->next)
        result = rd_fusion_add(&fusion, &op->call);
    if (result == RONDO_SUCCESS)
        result = rd_fusion_end(&fusion);
    if (part->message_first && result == RONDO_SUCCESS) {
        /* The run changes the order of the list: an array of copies keeps it in one piece, so that it can be freed. */
        size_t n = 0, i = 0;
        for (rd_cuda_message_t *m = part->message_first; m; m = m->next)
            n++;
        rd_cuda_message_t *all = malloc(n * sizeof *all);
        if (!all)
            return no_memory(part->cuda);
        for (rd_cuda_message_t *m = part->message_first; m; m = m->next, i++) {
            all[i] = *m;
            all[i].next = i + 1 < n ? &all[i + 1] : NULL;
        }
        result = rd_messages_run(part->cuda, all);
        free(all);
    }
    return result;
}

/* Of all communicators, because their operations may be in one stream. */
static rondo_result_t run_parts(void)
{
    rondo_result_t result = RONDO_SUCCESS;

    for (part_t *part = parts; part && result == RONDO_SUCCESS; part = part->next) {
        part->access_next = part->access_first;
        result = run_accesses(part, false);
    }
    for (part_t *part = parts; part && result == RONDO_SUCCESS; part = part->next)
        result = run_calls(part);
    for (part_t *part = parts; part && result == RONDO_SUCCESS; part = part->next)
        result = run_accesses(part, true);
    return result;
}

static cudaStream_t last_stream(const part_t *part)
{
    if (part->access_last)
        return part->access_last->stream;
    return part->message_first ? part->message_first->stream : part->last->call.stream;
}

/* Records an event behind the last operation of a part, which may be in another stream than the last call, if that had
 * nothing to move; none while the stream is captured, because nobody can wait for it then. */
static rondo_result_t note(rd_cuda_pending_t *pending, const part_t *part)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStream_t stream = last_stream(part);
    cudaEvent_t event;

    cudaError_t error = cudaStreamIsCapturing(stream, &status);
    if (error != cudaSuccess || status != cudaStreamCaptureStatusNone)
        return RONDO_SUCCESS;
    rd_device_before_t before = rd_device_switch(part->cuda->device);
    rondo_result_t result = rd_order_behind(part->cuda, stream);
    if (result != RONDO_SUCCESS) {
        rd_device_back(before, part->cuda->device);
        return result;
    }
    error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error == cudaSuccess && (error = cudaEventRecord(event, stream)) != cudaSuccess)
        (void)cudaEventDestroy(event);
    rd_device_back(before, part->cuda->device);
    if (error != cudaSuccess)
        return rd_cuda_error(part->cuda->team->ctx, error, "an event for a request");
    pending->wait[pending->n].event = event;
    pending->wait[pending->n].device = part->cuda->device;
    pending->wait[pending->n++].ctx = part->cuda->team->ctx;
    return RONDO_SUCCESS;
}

rondo_result_t rd_cuda_group_submit(rd_cuda_pending_t **pending)
{
    rondo_result_t result = RONDO_SUCCESS;
    rd_cuda_pending_t *made = NULL;
    size_t n = 0;

    if (!parts)
        return RONDO_SUCCESS;
    for (const part_t *part = parts; part && result == RONDO_SUCCESS; part = part->next, n++)
        result = check_self(part);
    for (const part_t *part = parts; part && result == RONDO_SUCCESS; part = part->next)
        result = compare(part);
    if (result == RONDO_SUCCESS && pending) {
        made = calloc(1, sizeof *made + n * sizeof made->wait[0]);
        result = made ? RONDO_SUCCESS : no_memory(parts->cuda);
    }
    if (result == RONDO_SUCCESS)
        result = run_parts();
    for (const part_t *part = parts; made && part && result == RONDO_SUCCESS; part = part->next)
        result = note(made, part);
    rd_cuda_group_clear();
    if (pending)
        *pending = made;
    return result;
}

rondo_result_t rd_cuda_pending_test(rd_cuda_pending_t **pending)
{
    rd_cuda_pending_t *p = *pending;
    rondo_result_t result = RONDO_SUCCESS;
    int done = 1;

    for (int i = 0; p && i < p->n; i++) {
        rd_device_guard_t guard = rd_device_enter(p->wait[i].device);
        cudaError_t error = cudaEventQuery(p->wait[i].event);
        rd_device_leave(guard);
        done &= error != cudaErrorNotReady;
        if (error != cudaErrorNotReady && error != cudaSuccess && result == RONDO_SUCCESS)
            result = rd_cuda_error(p->wait[i].ctx, error, "waiting for a request");
    }
    if (!done)
        return RONDO_IN_PROGRESS;
    for (int i = 0; p && i < p->n; i++)
        (void)cudaEventDestroy(p->wait[i].event);
    free(p);
    *pending = NULL;
    return result;
}
