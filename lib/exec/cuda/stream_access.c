/* One-sided operations on streams, between the ranks of one node, by windows that all of them have mapped
 * (user_window.c, register.c).
 *
 * A put is a copy into the peer's window, and a get one out of it: by the host's copies, or, if a put is short or a
 * signal goes with it, by a kernel of one block, which is there sooner. Signals and waits for them are kernels
 * (kernels/onesided.cuh). All of it is enqueued in the order of the calls, as every operation of the communicator is,
 * whatever stream it goes to. So of two puts the first one stands before the second one begins, which is all that a
 * fence asks for, and the numbers of signals have one writer.
 *
 * A copy cannot be called back: what is put behind a wait that has failed is put all the same, unless it is short. The
 * memory that it goes to stays mapped here until this rank has closed it. */
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/user.h"

#define BY_KERNEL ((size_t)64 << 10) /* bytes that one block puts, at most */

static rondo_result_t put(rd_cuda_t *cuda, const rd_cuda_access_op_t *op, size_t bytes)
{
    rd_klaunch_t launch = {.kernel = RD_KERNEL_PUT, .blocks = 1};
    const uint32_t most = rd_kernel_threads(RD_KERNEL_PUT, RD_PROTO_LL), warps = (uint32_t)((bytes / 16 + 31) / 32);
    rd_kwork_t work;

    launch.threads = warps == 0 ? 32 : warps * 32 < most ? warps * 32 : most;
    work.comm = cuda->k;
    work.put = (rd_kput_t){.from = op->from,
                           .to = op->to,
                           .bytes = bytes,
                           .peer = (uint32_t)op->peer,
                           .signal = op->signal,
                           .signals = op->signals};
    return rd_cuda_launch(cuda, &launch, &work, op->stream);
}

static rondo_result_t run_put(rd_cuda_t *cuda, const rd_cuda_access_op_t *op)
{
    const bool kernel = cuda->k.nranks > 1 && op->bytes <= BY_KERNEL;
    rondo_result_t result = RONDO_SUCCESS;

    if (!op->bytes && !op->signals)
        return RONDO_SUCCESS;
    if (!kernel)
        result = rd_cuda_copy(cuda, op->to, op->from, op->bytes, op->stream);
    if (result == RONDO_SUCCESS && (kernel || op->signals))
        result = put(cuda, op, kernel ? op->bytes : 0);
    return result;
}

/* Adds an entry to a launch. Returns false if there is no room for it. */
static bool add(rd_kawait_t *await, const struct rd_cuda_awaited *one)
{
    for (uint32_t i = 0; i < await->n; i++) {
        if (await->of[i].peer != one->peer || await->of[i].signal != one->signal)
            continue;
        if (await->of[i].count > INT32_MAX - (uint32_t)one->count)
            return false;
        await->of[i].count += (uint32_t)one->count;
        return true;
    }
    if (await->n == RD_KAWAITED)
        return false;
    await->of[await->n].peer = (uint16_t)one->peer;
    await->of[await->n].signal = (uint16_t)one->signal;
    await->of[await->n++].count = (uint32_t)one->count;
    return true;
}

static rondo_result_t run_await(rd_cuda_t *cuda, const rd_cuda_access_op_t *op)
{
    const rd_klaunch_t launch = {.kernel = RD_KERNEL_AWAIT, .blocks = 1, .threads = RD_KAWAITED};
    rondo_result_t result = RONDO_SUCCESS;
    rd_kwork_t work;

    for (int i = 0; i < op->nwaits && result == RONDO_SUCCESS;) {
        work.comm = cuda->k;
        work.await.n = 0;
        while (i < op->nwaits && add(&work.await, &op->waits[i]))
            i++;
        result = rd_cuda_launch(cuda, &launch, &work, op->stream);
    }
    return result;
}

/* What follows in the stream comes behind all that the communicator has put; the kernel executes a fence. */
static rondo_result_t run_flush(rd_cuda_t *cuda, const rd_cuda_access_op_t *op)
{
    const rd_klaunch_t nothing = {.kernel = RD_KERNEL_NOTHING, .blocks = 1, .threads = 32};
    rd_kwork_t work;

    if (cuda->k.nranks > 1)
        return put(cuda, op, 0);
    work.comm = cuda->k;
    return rd_cuda_launch(cuda, &nothing, &work, op->stream);
}

rondo_result_t rd_access_run(rd_cuda_t *cuda, const rd_cuda_access_op_t *op)
{
    switch (op->access) {
    case RD_CUDA_PUT:
    case RD_CUDA_SIGNAL:
        return run_put(cuda, op);
    case RD_CUDA_GET:
        return rd_cuda_copy(cuda, op->to, op->from, op->bytes, op->stream);
    case RD_CUDA_AWAIT:
        return run_await(cuda, op);
    default:
        return run_flush(cuda, op);
    }
}

/* ---- the entry ---- */

/* The same on all ranks. */
static rondo_result_t check_possible(const rd_cuda_t *cuda, const rd_cuda_onesided_t *op, const char *call)
{
    const rd_team_t *team = cuda->team;

    if (cuda->path)
        return rd_error(team->ctx, RONDO_ERR_UNSUPPORTED,
                        "%s: on GPUs one-sided operations are for %d ranks of one node at most, and there are %d on "
                        "%d: make a communicator for each node (rondo_comm_split), or use rondo_send and rondo_recv",
                        call, RD_KRANKS, team->nranks, team->node->nnodes);
    if (cuda->k.nranks == 1 && (op->signals || op->access == RD_CUDA_AWAIT))
        return rd_error(team->ctx, RONDO_ERR_UNSUPPORTED,
                        "%s: a CUDA communicator of one rank has no signals: what follows in the stream comes behind "
                        "what it has put",
                        call);
    return RONDO_SUCCESS;
}

static rondo_result_t check_signal(const rd_cuda_t *cuda, const char *call, int context, int signal, uint32_t number)
{
    if (number < RD_KSIGNALS)
        return RONDO_SUCCESS;
    return rd_error(cuda->team->ctx, RONDO_ERR_INVALID_ARGUMENT,
                    "%s: signal %d of context %d is number %u of all, and on GPUs a rank has %d for each other one: "
                    "take less in config.signals or config.contexts",
                    call, signal, context, number, RD_KSIGNALS);
}

static rondo_result_t check_part(const rd_cuda_t *cuda, const rd_cuda_onesided_t *op, const char *call)
{
    const uint64_t has = op->window->bytes[op->peer];

    if (op->offset <= has && op->bytes <= has - op->offset)
        return RONDO_SUCCESS;
    return rd_error(cuda->team->ctx, RONDO_ERR_INVALID_ARGUMENT,
                    "%s: %zu bytes at offset %zu leave the part of rank %d, which has %llu bytes", call, op->bytes,
                    op->offset, op->peer, (unsigned long long)has);
}

static rondo_result_t check(rd_cuda_t *cuda, const rd_cuda_onesided_t *op, const char *call)
{
    rondo_result_t result = rd_cuda_check(cuda);

    if (result == RONDO_SUCCESS)
        result = check_possible(cuda, op, call);
    if (result == RONDO_SUCCESS && op->signals)
        result =
            check_signal(cuda, call, op->context, op->signal, (uint32_t)(op->context * op->signals_each + op->signal));
    for (int i = 0; i < op->nwaits && result == RONDO_SUCCESS; i++) {
        const rondo_wait_desc_t *w = &op->waits[i];
        result = check_signal(cuda, call, w->context, w->signal, (uint32_t)(w->context * op->signals_each + w->signal));
    }
    if (result == RONDO_SUCCESS && op->window)
        result = check_part(cuda, op, call);
    if (result == RONDO_SUCCESS && op->window)
        result = rd_buffer_check(cuda, call, "buffer", op->local, op->bytes);
    return result;
}

static void fill(const rd_cuda_onesided_t *op, rd_cuda_access_op_t *to)
{
    char *there = op->window ? op->window->base[op->peer] + op->offset : NULL;

    *to = (rd_cuda_access_op_t){.access = op->access,
                                .from = op->access == RD_CUDA_GET ? there : op->local,
                                .to = op->access == RD_CUDA_GET ? op->local : there,
                                .bytes = op->bytes,
                                .peer = op->peer < 0 ? 0 : op->peer,
                                .signals = op->signals,
                                .signal = (uint32_t)(op->context * op->signals_each + op->signal),
                                .stream = op->stream};
    for (int i = 0; i < op->nwaits; i++) {
        const rondo_wait_desc_t *w = &op->waits[i];
        if (w->count)
            to->waits[to->nwaits++] =
                (struct rd_cuda_awaited){w->peer, w->count, (uint32_t)(w->context * op->signals_each + w->signal)};
    }
}

rondo_result_t rd_cuda_onesided(rd_cuda_t *cuda, const rd_cuda_onesided_t *op, const char *call)
{
    rondo_result_t result = check(cuda, op, call);

    if (result != RONDO_SUCCESS)
        return result;
    rd_cuda_access_op_t *made = malloc(sizeof *made + (size_t)op->nwaits * sizeof made->waits[0]);
    if (!made)
        return rd_error(cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for a one-sided operation");
    fill(op, made);
    if (op->group)
        return rd_cuda_record_access(cuda, made);
    result = rd_access_run(cuda, made);
    free(made);
    return result;
}
