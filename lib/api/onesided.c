/* The public entries of one-sided operations: each refuses what is wrong, and passes the rest to core/rma_calls.c,
 * which looks at windows, for those go with a communicator that another thread aborts. The contracts are in rondo.h. */
#include "api/args.h"
#include "core/limits.h"
#include "core/rma_calls.h"
#include "core/submit.h"
#include "core/cuda_windows.h"

#define BAD RONDO_ERR_INVALID_ARGUMENT

static rondo_result_t check_flags(rd_at_t at, unsigned flags)
{
    return flags ? rd_error(&at.comm->ctx, BAD, "%s: flags is %#x, and must be 0", at.call, flags) : RONDO_SUCCESS;
}

static rondo_result_t check_number(rd_at_t at, const char *what, int value, int most)
{
    if (value >= 0 && value < most)
        return RONDO_SUCCESS;
    return rd_error(&at.comm->ctx, BAD, "%s: %s is %d, and the communicator has 0 to %d: see config.%ss", at.call, what,
                    value, most - 1, what);
}

/* What every call needs but those that make windows. */
static rondo_result_t check_call(rd_at_t at, int peer, int context, unsigned flags)
{
    rondo_result_t result = check_flags(at, flags);

    if (result == RONDO_SUCCESS && peer != RONDO_PEER_ALL)
        result = rd_args_rank(at, "peer", peer);
    if (result == RONDO_SUCCESS)
        result = check_number(at, "context", context, at.comm->contexts);
    return result;
}

/* A put or a get: sets the bytes. */
static rondo_result_t check_access(rd_at_t at, rd_rma_op_t *op, size_t count, rondo_type_t type)
{
    rondo_result_t result = rd_args_rank(at, "peer", op->peer);

    if (result != RONDO_SUCCESS)
        return result;
    if (count > rd_args_most(type))
        return rd_error(&at.comm->ctx, BAD, "%s: count is %zu, more than memory can hold (a negative number?)", at.call,
                        count);
    op->bytes = count * rondo_type_size(type);
    if (!op->local && op->bytes)
        return rd_error(&at.comm->ctx, BAD, "%s: buffer is NULL, but %zu bytes are needed", at.call, op->bytes);
    return RONDO_SUCCESS;
}

static rondo_result_t finish(rd_at_t at, rd_rma_op_t *op, rondo_stream_t stream, rondo_result_t result)
{
    if (result != RONDO_SUCCESS)
        return rd_message_refused(result);
    return rd_call_rma(at.comm, op, at.call, stream);
}

rondo_result_t rondo_window_create(rondo_comm_t comm, void *buffer, size_t bytes, rondo_window_t *window,
                                   unsigned flags)
{
    const rd_at_t at = {"rondo_window_create", comm};
    rondo_result_t result = rd_args_start(at, RONDO_INT8, NULL);

    if (result == RONDO_SUCCESS)
        result = rd_group_refuse(comm, at.call);
    if (result == RONDO_SUCCESS)
        result = check_flags(at, flags);
    if (result == RONDO_SUCCESS && !window)
        result = rd_error(&comm->ctx, BAD, "%s: window is NULL", at.call);
    if (result == RONDO_SUCCESS && bytes > rd_args_most(RONDO_INT8))
        result = rd_error(&comm->ctx, BAD, "%s: bytes is %zu, more than memory can hold (a negative number?)", at.call,
                          bytes);
    if (result != RONDO_SUCCESS)
        return rd_limit_drop(result);
    return rd_comm_on_device(at.comm) ? rd_comm_cuda_window_create(comm, buffer, bytes, window)
                                      : rd_comm_window_create(comm, buffer, bytes, window);
}

rondo_result_t rondo_window_destroy(rondo_comm_t comm, rondo_window_t window)
{
    const rd_at_t at = {"rondo_window_destroy", comm};
    rondo_result_t result = rd_args_start(at, RONDO_INT8, NULL);

    if (result == RONDO_SUCCESS)
        result = rd_group_refuse(comm, at.call);
    if (result != RONDO_SUCCESS)
        return rd_limit_drop(result);
    return rd_comm_on_device(at.comm) ? rd_comm_cuda_window_destroy(comm, window)
                                      : rd_comm_window_destroy(comm, window);
}

rondo_result_t rondo_window_buffer(rondo_comm_t comm, rondo_window_t window, void **buffer)
{
    const rd_at_t at = {"rondo_window_buffer", comm};
    rondo_result_t result = rd_args_start(at, RONDO_INT8, NULL);

    if (result != RONDO_SUCCESS)
        return result;
    if (!buffer)
        return rd_error(&comm->ctx, BAD, "%s: buffer is NULL", at.call);
    return rd_comm_on_device(at.comm) ? rd_comm_cuda_window_buffer(comm, window, buffer)
                                      : rd_comm_window_buffer(comm, window, buffer);
}

rondo_result_t rondo_put(const void *buffer, size_t count, rondo_type_t type, int peer, rondo_window_t window,
                         size_t offset, int context, unsigned flags, rondo_comm_t comm, rondo_stream_t stream)
{
    const rd_at_t at = {"rondo_put", comm};
    rd_rma_op_t op = {.kind = RD_RMA_PUT,
                      .peer = peer,
                      .context = context,
                      .window = window,
                      .offset = offset,
                      .local = (char *)(uintptr_t)buffer};
    rondo_result_t result = rd_args_start(at, type, stream);

    if (result == RONDO_SUCCESS && (result = check_call(at, peer, context, flags)) == RONDO_SUCCESS)
        result = check_access(at, &op, count, type);
    return finish(at, &op, stream, result);
}

rondo_result_t rondo_put_signal(const void *buffer, size_t count, rondo_type_t type, int peer, rondo_window_t window,
                                size_t offset, int signal, int context, unsigned flags, rondo_comm_t comm,
                                rondo_stream_t stream)
{
    const rd_at_t at = {"rondo_put_signal", comm};
    rd_rma_op_t op = {.kind = RD_RMA_PUT,
                      .signals = true,
                      .peer = peer,
                      .context = context,
                      .signal = signal,
                      .window = window,
                      .offset = offset,
                      .local = (char *)(uintptr_t)buffer};
    rondo_result_t result = rd_args_start(at, type, stream);

    if (result == RONDO_SUCCESS && (result = check_call(at, peer, context, flags)) == RONDO_SUCCESS &&
        (result = check_number(at, "signal", signal, comm->signals)) == RONDO_SUCCESS)
        result = check_access(at, &op, count, type);
    return finish(at, &op, stream, result);
}

rondo_result_t rondo_signal(int peer, int signal, int context, unsigned flags, rondo_comm_t comm, rondo_stream_t stream)
{
    const rd_at_t at = {"rondo_signal", comm};
    rd_rma_op_t op = {.kind = RD_RMA_SIGNAL, .signals = true, .peer = peer, .context = context, .signal = signal};
    rondo_result_t result = rd_args_start(at, RONDO_INT8, stream);

    if (result == RONDO_SUCCESS && (result = check_call(at, peer, context, flags)) == RONDO_SUCCESS &&
        (result = rd_args_rank(at, "peer", peer)) == RONDO_SUCCESS)
        result = check_number(at, "signal", signal, comm->signals);
    return finish(at, &op, stream, result);
}

/* Also of no use: an entry that waits for nothing is allowed, one for less than nothing is not. */
static rondo_result_t check_waits(rd_at_t at, int nwaits, const rondo_wait_desc_t *waits)
{
    rondo_result_t result = RONDO_SUCCESS;

    if (nwaits < 0 || (nwaits && !waits))
        return rd_error(&at.comm->ctx, BAD, nwaits < 0 ? "%s: nwaits is negative" : "%s: waits is NULL", at.call);
    for (int i = 0; i < nwaits && result == RONDO_SUCCESS; i++) {
        if (waits[i].count < 0)
            return rd_error(&at.comm->ctx, BAD, "%s: waits[%d].count is %d, less than 0", at.call, i, waits[i].count);
        result = check_call(at, waits[i].peer, waits[i].context, 0);
        if (result == RONDO_SUCCESS && (result = rd_args_rank(at, "peer", waits[i].peer)) == RONDO_SUCCESS)
            result = check_number(at, "signal", waits[i].signal, at.comm->signals);
    }
    return result;
}

rondo_result_t rondo_wait_signal(int nwaits, const rondo_wait_desc_t *waits, rondo_comm_t comm, rondo_stream_t stream)
{
    const rd_at_t at = {"rondo_wait_signal", comm};
    rd_rma_op_t op = {.kind = RD_RMA_WAIT, .peer = RONDO_PEER_ALL, .waits = waits, .nwaits = nwaits};
    rondo_result_t result = rd_args_start(at, RONDO_INT8, stream);

    if (result == RONDO_SUCCESS)
        result = check_waits(at, nwaits, waits);
    if (result == RONDO_SUCCESS && nwaits == 0)
        return RONDO_SUCCESS;
    if (result == RONDO_SUCCESS)
        op.context = waits[0].context;
    return finish(at, &op, stream, result);
}

rondo_result_t rondo_get(void *buffer, size_t count, rondo_type_t type, int peer, rondo_window_t window, size_t offset,
                         int context, unsigned flags, rondo_comm_t comm, rondo_stream_t stream)
{
    const rd_at_t at = {"rondo_get", comm};
    rd_rma_op_t op = {
        .kind = RD_RMA_GET, .peer = peer, .context = context, .window = window, .offset = offset, .local = buffer};
    rondo_result_t result = rd_args_start(at, type, stream);

    if (result == RONDO_SUCCESS && (result = check_call(at, peer, context, flags)) == RONDO_SUCCESS)
        result = check_access(at, &op, count, type);
    return finish(at, &op, stream, result);
}

static rondo_result_t order(rd_at_t at, rd_rma_kind_t kind, int peer, int context, rondo_stream_t stream)
{
    rd_rma_op_t op = {.kind = kind, .peer = peer, .context = context};
    rondo_result_t result = rd_args_start(at, RONDO_INT8, stream);

    if (result == RONDO_SUCCESS)
        result = check_call(at, peer, context, 0);
    return finish(at, &op, stream, result);
}

rondo_result_t rondo_flush(int peer, int context, rondo_comm_t comm, rondo_stream_t stream)
{
    return order((rd_at_t){"rondo_flush", comm}, RD_RMA_FLUSH, peer, context, stream);
}

rondo_result_t rondo_fence(int peer, int context, rondo_comm_t comm, rondo_stream_t stream)
{
    return order((rd_at_t){"rondo_fence", comm}, RD_RMA_FENCE, peer, context, stream);
}
