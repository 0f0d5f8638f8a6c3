/* Collectives that move blocks by copy engines: they need multiprocessors only for a moment, and no memory but the
 * user's.
 *
 * Ranks meet, each copies its output from the peers' registered buffers into its own, and they meet again
 * (kernels/barrier.cuh): the first meeting says that the data to be read is there, the second one that it has been
 * read. All of it lies in the caller's stream, or beside it, kernels and copies alike, so a graph captures it as it is.
 *
 * The host has to know where a peer's buffer is, but a call exchanges no messages: so the caller promises that the
 * buffers of all ranks lie at the same offset of the same registration. A rank whose own buffer is not registered
 * refuses the call; if two ranks differ, the first meeting detects it.
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
 */
#include <string.h>

#include "exec/cuda/cuda_int.h"

typedef struct copies {
    rd_cuda_t *cuda;
    const rd_call_t *call;
    const rd_kregistered_t *where; /* what is read */
    uint64_t offset;
    size_t bytes; /* of a block; broadcast: of the whole */
    int in_place;
    rondo_result_t result; /* the first error: nothing more is enqueued after it */
    rd_kwork_t barrier;
} copies_t;

/* Returns where the data that is read begins on this rank, and its length. */
static const char *source(copies_t *c, size_t *length)
{
    const rd_call_t *call = c->call;
    size_t n = (size_t)c->cuda->k.nranks, rank = (size_t)c->cuda->k.rank;

    c->bytes = call->desc.count * rondo_type_size(call->desc.type);
    c->in_place = call->in == (call->desc.coll == RD_ALLGATHER ? (char *)call->out + rank * c->bytes : call->out);
    *length = c->bytes;
    if (call->desc.coll == RD_BROADCAST)
        return call->out;
    if (call->desc.coll == RD_ALLGATHER && !c->in_place)
        return call->in;
    *length *= n;
    return call->desc.coll == RD_ALLGATHER ? call->out : call->in;
}

static rondo_result_t find(copies_t *c, int *number)
{
    static const char *const wanted = "RONDO_CUDA_COPY or RONDO_ALGO=copy want it at the same place of the same "
                                      "registered buffer (rondo_comm_register) on all ranks";
    const char *name = rd_coll_name(c->call->desc.coll);
    rd_log_ctx_t *ctx = c->cuda->team->ctx;
    size_t length;
    const char *from = source(c, &length), *what = from == c->call->out ? "recv" : "send";

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

/* Sets what must be alike on all ranks. In a broadcast each rank may be in place or not. */
static void set_mark(copies_t *c, int number)
{
    const rd_coll_desc_t *desc = &c->call->desc;
    uint32_t how = desc->coll == RD_BROADCAST   ? (uint32_t)desc->root
                   : desc->coll == RD_ALLGATHER ? (uint32_t)c->in_place
                                                : 0;
    uint64_t offset = c->offset, bytes = c->bytes;
    const uint32_t mark[8] = {
        (uint32_t)desc->coll,   how, (uint32_t)number, (uint32_t)offset, (uint32_t)(offset >> 32), (uint32_t)bytes,
        (uint32_t)(bytes >> 32)};

    c->barrier.comm = c->cuda->k;
    memcpy(c->barrier.barrier.mark, mark, sizeof mark);
}

static void take(copies_t *c, cudaError_t error)
{
    if (error != cudaSuccess)
        c->result = rd_cuda_error(c->cuda->team->ctx, error, "an operation by copy engines");
}

/* Launches a meeting. `behind`: this rank has read since the last meeting. */
static void barrier(copies_t *c, int behind)
{
    const rd_klaunch_t launch = {.kernel = RD_KERNEL_COPY, .blocks = 1, .threads = 32 * (uint32_t)c->cuda->k.nranks};

    c->barrier.barrier.behind = (uint32_t)behind;
    c->barrier.barrier.mark[7]++; /* number of the meeting within the operation */
    if (c->result == RONDO_SUCCESS)
        take(c, (cudaError_t)rd_kernel_launch(&launch, &c->barrier, c->call->stream));
}

static void copy(copies_t *c, void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    if (c->result == RONDO_SUCCESS && to != from && bytes)
        take(c, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

/* Copies `bytes` bytes from offset `at` of the peer's part in the operation. */
static void cma(copies_t *c, int peer, size_t at, void *to, size_t bytes)
{
    copy(c, to, (const char *)(uintptr_t)(c->where->base[peer] + c->offset + at), bytes, c->call->stream);
}

/* Returns the i-th rank behind this one, so that not all ranks read from the same one at once. */
static int behind(const copies_t *c, int i)
{
    return (c->cuda->k.rank + i) % c->cuda->k.nranks;
}

/* Allgather and all-to-all. */
static void from_peers(copies_t *c)
{
    size_t rank = (size_t)c->cuda->k.rank, bytes = c->bytes;
    int all = c->call->desc.coll == RD_ALLTOALL;

    for (int i = 1; i < c->cuda->k.nranks; i++) {
        size_t peer = (size_t)behind(c, i);
        cma(c, (int)peer, (all ? rank : c->in_place ? peer : 0) * bytes, (char *)c->call->out + peer * bytes, bytes);
    }
}

/* The rank's own block, which comes from this GPU's memory, is copied while the others come over the links. */
static void blocks(copies_t *c)
{
    size_t at = (size_t)c->cuda->k.rank * c->bytes;
    const char *own = (const char *)c->call->in + (c->call->desc.coll == RD_ALLTOALL ? at : 0);
    rd_fork_t fork;

    barrier(c, 0);
    if (c->in_place) {
        from_peers(c);
    } else if (c->result == RONDO_SUCCESS) {
        c->result = rd_order_fork(c->cuda, c->call->stream, rd_registered_stream(c->cuda), &fork);
        copy(c, (char *)c->call->out + at, own, c->bytes, fork.beside);
        if (c->result == RONDO_SUCCESS)
            c->result = rd_order_forked(c->cuda, &fork);
        from_peers(c);
        if (c->result == RONDO_SUCCESS)
            c->result = rd_order_joined(c->cuda, &fork);
    }
    barrier(c, 1);
}

static void part_of(const copies_t *c, int rank, size_t *at, size_t *bytes)
{
    size_t n = (size_t)c->cuda->k.nranks, each = (size_t)rd_kchunk(c->bytes, (uint32_t)n);

    *at = (size_t)rank * each < c->bytes ? (size_t)rank * each : c->bytes;
    *bytes = c->bytes - *at < each ? c->bytes - *at : each;
}

static void broadcast(copies_t *c)
{
    int root = c->call->desc.root, rank = c->cuda->k.rank, n = c->cuda->k.nranks;
    char *out = c->call->out;
    size_t at, bytes;

    if (rank == root)
        copy(c, out, c->call->in, c->bytes, c->call->stream);
    barrier(c, 0);
    if (n == 2 && rank != root)
        cma(c, root, 0, out, c->bytes);
    part_of(c, rank, &at, &bytes);
    if (n > 2 && rank != root)
        cma(c, root, at, out + at, bytes);
    if (n > 2)
        barrier(c, 1);
    for (int i = 1; i < n && n > 2 && rank != root; i++) {
        part_of(c, behind(c, i), &at, &bytes);
        cma(c, behind(c, i), at, out + at, bytes);
    }
    barrier(c, 1);
}

bool rd_copies_possible(rd_cuda_t *cuda, const rd_call_t *call)
{
    copies_t c = {.cuda = cuda, .call = call};
    size_t length;
    int number;
    const char *from = source(&c, &length);

    return rd_registered_find(cuda, from, length, &number, &c.offset) != NULL;
}

rondo_result_t rd_copies_collective(rd_cuda_t *cuda, const rd_call_t *call)
{
    copies_t c = {.cuda = cuda, .call = call};
    int number;
    rondo_result_t result = find(&c, &number);

    if (result != RONDO_SUCCESS)
        return result;
    set_mark(&c, number);
    int before = rd_device_switch(cuda->device);
    c.result = rd_order_before(cuda, call->stream);
    if (call->desc.coll == RD_BROADCAST)
        broadcast(&c);
    else
        blocks(&c);
    /* Even after an error: what is enqueued must be over before anything is closed. */
    result = rd_order_after(cuda, call->stream);
    rd_device_back(before, cuda->device);
    return c.result == RONDO_SUCCESS ? result : c.result;
}
