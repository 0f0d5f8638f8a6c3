/* Collectives that move blocks by copy engines: they need multiprocessors only for a moment. This file reads them out
 * of registered buffers; copy_staging.c does out of memory in the window, where they are put first.
 *
 * Ranks meet, each copies its output from the peers' registered buffers into its own, and they meet again
 * (kernels/barrier.cuh): the first meeting says that the data to be read is there, the second one that it has been
 * read. All of it lies in the caller's stream, or beside it, kernels and copies alike, so a graph captures it as it is.
 *
 * The host has to know where a peer's buffer is, but a call exchanges no messages: so the caller promises that the
 * buffers of all ranks lie at the same offset of the same registration. If two ranks differ, the first meeting detects
 * it. Where no rank's buffer is registered, RONDO_CTA_POLICY has the blocks staged, and RONDO_CUDA_COPY alone has the
 * call refused.
 *
 * Copies cannot be called back: one that is enqueued behind a failed meeting is made all the same. That is why each
 * rank reads and none writes into another one's memory: the data that it gets then is not right, but it lies in the
 * output of an operation that has failed. The memory of a peer that is gone stays mapped here until the registration is
 * closed.
 *
 *   allgather   out of `send`; in place out of each rank's block of `recv`
 *   alltoall    out of `send`
 *   broadcast   out of `recv`, where the root puts it first: the others do not know its `send`. With more than two
 *               ranks each copies a part from the root, and after a further meeting the other parts from the ranks that
 *               have them
 *   gather,     always staged: a rank that is not the root knows but one of the root's buffers, and a root in place has
 *   scatter     no other
 */
#include <string.h>

#include "exec/cuda/copy_engine.h"
#include "sched/algo/algos.h"

#define STAGING (-1) /* in place of a registration's number */

/* Returns where the data that is read begins on this rank, and its length. */
static const char *source(rd_copies_t *c, size_t *length)
{
    const rd_call_t *call = c->call;
    size_t n = (size_t)c->cuda->k.nranks, rank = (size_t)c->cuda->k.rank;

    c->in_place = call->in == (call->desc.coll == RD_ALLGATHER ? (char *)call->out + rank * c->bytes : call->out);
    *length = c->bytes;
    if (call->desc.coll == RD_BROADCAST)
        return call->out;
    if (call->desc.coll == RD_ALLGATHER && !c->in_place)
        return call->in;
    *length *= n;
    return call->desc.coll == RD_ALLGATHER ? call->out : call->in;
}

static rondo_result_t find(rd_copies_t *c, int *number)
{
    static const char *const wanted = "RONDO_CUDA_COPY or RONDO_ALGO=copy want it at the same place of the same "
                                      "registered buffer (rondo_comm_register) on all ranks";
    const char *name = rd_coll_name(c->call->desc.coll);
    rd_log_ctx_t *ctx = c->cuda->team->ctx;
    size_t length;
    const char *from = source(c, &length), *what = from == c->call->out ? "recv" : "send";

    *number = STAGING;
    if (rd_copies_way(c->cuda, c->call) == RD_COPIES_STAGING)
        return RONDO_SUCCESS;
    c->where = rd_registered_find(c->cuda, from, length, number, &c->offset);
    if (!c->where)
        return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT, "%s of %zu bytes: %s (%p, %zu bytes) is not registered: %s",
                        name, c->bytes, what, (const void *)from, length, wanted);
    for (int r = 0; r < c->cuda->k.nranks; r++) {
        if (c->offset > c->where->bytes[r] || length > c->where->bytes[r] - c->offset)
            return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                            "%s of %zu bytes: %s (%p, %zu bytes) is registered, but rank %d has registered %llu bytes "
                            "alone: %s",
                            name, c->bytes, what, (const void *)from, length, r, (unsigned long long)c->where->bytes[r],
                            wanted);
    }
    return RONDO_SUCCESS;
}

/* Sets what must be alike on all ranks. In a broadcast, and where blocks are staged, each rank may be in place or not.
 */
static void set_mark(rd_copies_t *c, int number)
{
    const rd_coll_desc_t *desc = &c->call->desc;
    const bool rooted = desc->coll == RD_BROADCAST || desc->coll == RD_GATHER || desc->coll == RD_SCATTER;
    uint32_t how = rooted ? (uint32_t)desc->root : desc->coll == RD_ALLGATHER && c->where ? (uint32_t)c->in_place : 0;
    uint64_t offset = c->offset, bytes = c->bytes;
    const uint32_t mark[8] = {
        (uint32_t)desc->coll,   how, (uint32_t)number, (uint32_t)offset, (uint32_t)(offset >> 32), (uint32_t)bytes,
        (uint32_t)(bytes >> 32)};

    c->barrier.comm = c->cuda->k;
    memcpy(c->barrier.barrier.mark, mark, sizeof mark);
}

static void take(rd_copies_t *c, cudaError_t error)
{
    if (error != cudaSuccess)
        c->result = rd_cuda_error(c->cuda->team->ctx, error, "an operation by copy engines");
}

void rd_copies_barrier(rd_copies_t *c, bool behind)
{
    const rd_klaunch_t launch = {.kernel = RD_KERNEL_COPY, .blocks = 1, .threads = 32 * (uint32_t)c->cuda->k.nranks};

    c->barrier.barrier.behind = (uint32_t)behind;
    c->barrier.barrier.mark[7]++; /* number of the meeting within the operation */
    if (c->result == RONDO_SUCCESS)
        take(c, (cudaError_t)rd_kernel_launch(&launch, &c->barrier, c->call->stream, NULL, true));
}

void rd_copies_copy(rd_copies_t *c, void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    if (c->result == RONDO_SUCCESS && to != from && bytes)
        take(c, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

/* Copies `bytes` bytes from offset `at` of the peer's part in the operation. */
static void cma(rd_copies_t *c, int peer, size_t at, void *to, size_t bytes)
{
    rd_copies_copy(c, to, (const char *)(uintptr_t)(c->where->base[peer] + c->offset + at), bytes, c->call->stream);
}

bool rd_copies_fork(rd_copies_t *c, cudaStream_t beside, rd_fork_t *fork)
{
    if (c->result == RONDO_SUCCESS)
        c->result = rd_order_fork(c->cuda, c->call->stream, beside, fork);
    return c->result == RONDO_SUCCESS;
}

static void keep_first(rd_copies_t *c, rondo_result_t result)
{
    if (c->result == RONDO_SUCCESS)
        c->result = result;
}

void rd_copies_forked(rd_copies_t *c, rd_fork_t *fork)
{
    keep_first(c, rd_order_forked(c->cuda, fork));
}

void rd_copies_joined(rd_copies_t *c, rd_fork_t *fork)
{
    keep_first(c, rd_order_joined(c->cuda, fork));
}

int rd_copies_behind(const rd_copies_t *c, int i)
{
    return (c->cuda->k.rank + i) % c->cuda->k.nranks;
}

/* Allgather and all-to-all. */
static void from_peers(rd_copies_t *c)
{
    size_t rank = (size_t)c->cuda->k.rank, bytes = c->bytes;
    int all = c->call->desc.coll == RD_ALLTOALL;

    for (int i = 1; i < c->cuda->k.nranks; i++) {
        size_t peer = (size_t)rd_copies_behind(c, i);
        cma(c, (int)peer, (all ? rank : c->in_place ? peer : 0) * bytes, (char *)c->call->out + peer * bytes, bytes);
    }
}

/* The rank's own block, which comes from this GPU's memory, is copied while the others come over the links. */
static void blocks(rd_copies_t *c)
{
    size_t at = (size_t)c->cuda->k.rank * c->bytes;
    const char *own = (const char *)c->call->in + (c->call->desc.coll == RD_ALLTOALL ? at : 0);
    rd_fork_t fork;

    rd_copies_barrier(c, false);
    if (c->in_place) {
        from_peers(c);
    } else if (rd_copies_fork(c, rd_registered_stream(c->cuda), &fork)) {
        rd_copies_copy(c, (char *)c->call->out + at, own, c->bytes, fork.beside);
        rd_copies_forked(c, &fork);
        from_peers(c);
        rd_copies_joined(c, &fork);
    }
    rd_copies_barrier(c, true);
}

void rd_copies_part(size_t bytes, int n, int i, size_t *at, size_t *part)
{
    size_t each = (size_t)rd_kchunk(bytes, (uint32_t)n);

    *at = (size_t)i * each < bytes ? (size_t)i * each : bytes;
    *part = bytes - *at < each ? bytes - *at : each;
}

static void broadcast(rd_copies_t *c)
{
    int root = c->call->desc.root, rank = c->cuda->k.rank, n = c->cuda->k.nranks;
    char *out = c->call->out;
    size_t at, bytes;

    if (rank == root)
        rd_copies_copy(c, out, c->call->in, c->bytes, c->call->stream);
    rd_copies_barrier(c, false);
    if (n == 2 && rank != root)
        cma(c, root, 0, out, c->bytes);
    rd_copies_part(c->bytes, n, rank, &at, &bytes);
    if (n > 2 && rank != root)
        cma(c, root, at, out + at, bytes);
    if (n > 2)
        rd_copies_barrier(c, true);
    for (int i = 1; i < n && n > 2 && rank != root; i++) {
        rd_copies_part(c->bytes, n, rd_copies_behind(c, i), &at, &bytes);
        cma(c, rd_copies_behind(c, i), at, out + at, bytes);
    }
    rd_copies_barrier(c, true);
}

/* ---- the choice ---- */

static rd_copies_t copies_of(rd_cuda_t *cuda, const rd_call_t *call)
{
    return (rd_copies_t){.cuda = cuda, .call = call, .bytes = call->desc.count * rondo_type_size(call->desc.type)};
}

/* Returns true if what is read lies in a registered buffer that is long enough on every rank. */
static bool registered(rd_cuda_t *cuda, const rd_call_t *call)
{
    rd_copies_t c = copies_of(cuda, call);
    size_t length;
    int number;
    const char *from = source(&c, &length);
    const rd_kregistered_t *where = rd_registered_find(cuda, from, length, &number, &c.offset);

    for (int r = 0; where && r < cuda->k.nranks; r++) {
        if (c.offset > where->bytes[r] || length > where->bytes[r] - c.offset)
            return false;
    }
    return where != NULL;
}

rd_copies_way_t rd_copies_way(rd_cuda_t *cuda, const rd_call_t *call)
{
    if (!(rd_algo_copy.device.colls & 1u << call->desc.coll))
        return RD_COPIES_NONE;
    if (rd_copies_staging_only(call->desc.coll))
        return RD_COPIES_STAGING;
    if (rd_cuda_policy(cuda, call) != RONDO_CTA_POLICY_DEFAULT)
        return registered(cuda, call) ? RD_COPIES_REGISTERED : RD_COPIES_STAGING;
    return cuda->windows && !registered(cuda, call) ? RD_COPIES_NONE : RD_COPIES_REGISTERED;
}

rondo_result_t rd_copies_collective(rd_cuda_t *cuda, const rd_call_t *call)
{
    rd_copies_t c = copies_of(cuda, call);
    int number;
    rondo_result_t result = find(&c, &number);

    if (result != RONDO_SUCCESS)
        return result;
    set_mark(&c, number);
    rd_device_before_t before = rd_device_switch(cuda->device);
    c.result = rd_order_before(cuda, call->stream);
    if (c.result == RONDO_SUCCESS)
        c.result = rd_order_launched(cuda, call->stream);
    if (number == STAGING)
        rd_copies_staging(&c);
    else if (call->desc.coll == RD_BROADCAST)
        broadcast(&c);
    else
        blocks(&c);
    /* Even after an error: what is enqueued must be over before anything is closed. */
    result = rd_order_after(cuda, call->stream);
    rd_device_back(before, cuda->device);
    return c.result == RONDO_SUCCESS ? result : c.result;
}
