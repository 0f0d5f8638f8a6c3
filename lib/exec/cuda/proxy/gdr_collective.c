/* Collectives between nodes whose data goes from GPU to GPU: messages by GDR (gdr.c) from and to the users' buffers,
 * and sums by the GPU. No byte passes through the host's memory. The ranks of the net communicator are on different
 * nodes: all ranks, one a node, or those of a rail.
 *
 * An operation has two hops. In the first, every rank sends each other rank that rank's chunk, and the kernel sums what
 * comes. In the second, every rank sends its chunk, which is whole now, to all:
 *
 *                      first hop                                second hop
 *     reduce_scatter   a block to each, into scratch; sum
 *     allreduce        a chunk to each, into scratch; sum       own chunk to all
 *     reduce           the same                                 own chunk to the root
 *     broadcast        root: a chunk to each                    own chunk to all but the root
 *     allgather                                                 own block to all
 *
 * So each rank sends and receives what a ring does, in two hops instead of its 2n - 2, which all links of a network
 * carry at once. (Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005), section 4, uses such halves; here they are direct.)
 * Between two ranks, a reduce or a broadcast has one chunk and one hop.
 *
 * Pieces let the second hop and the sums of one piece overlap the first hop of the next ones. All are one launch
 * (kernels/gdr.cuh), which also copies what a rank has already; kernels/gdr.h has the order of the messages. Who cuts
 * differently from its peers is found out as with any message: lengths differ. */
#include "exec/cuda/proxy/proxy.h"
#include "kernels/gdr.h"
#include "plan/candidates.h"
#include "plan/force.h"

#define GRAIN 256  /* bytes that chunks are multiples of, but the last */
#define BLOCKS 64u /* of a launch: they sum faster than a network sends, and wait for it most of the time */

/* A chunk's bytes in a piece. A message takes some 30 us to be announced and acknowledged, in which a fast network
 * carries some 8 MB; and of a piece the sum of the last one is not hidden. With 4 MB, 64 MB on two H200 took 1.1 times
 * as long as in one piece, and 256 MB 1.2 times as long as with 16 MB (doc/notebook/gpu.md). */
#define PIECE ((size_t)16 << 20)

typedef struct direct {
    rd_proxy_path_t *path;
    const rd_call_t *call;
    rd_kgdr_t *k;
} direct_t;

/* ---- how it is cut ---- */

static uint32_t sole_owner(const rd_kgdr_t *k)
{
    if (k->n > 2)
        return RD_KGDR_ALL;
    return k->coll == RD_REDUCE ? k->root : k->coll == RD_BROADCAST ? 1 - k->root : RD_KGDR_ALL;
}

/* Returns the elements of the longest block, or of the vector. */
static size_t longest(const rd_kgdr_t *k)
{
    size_t most = k->tabled ? 0 : k->count;

    for (uint32_t p = 0; k->tabled && p < k->n; p++)
        most = k->block[p].bytes > most ? k->block[p].bytes : most;
    return most;
}

static void cut(rd_kgdr_t *k)
{
    const bool shares = k->coll != RD_REDUCE_SCATTER && k->coll != RD_ALLGATHER && k->only == RD_KGDR_ALL;
    const size_t count = longest(k), parts = shares ? k->n : 1;
    size_t most = PIECE;

    if ((k->reduces || shares) && most > k->slot) /* nothing of a broadcast goes there, but its pieces are as long */
        most = k->slot;
    most = most / GRAIN * GRAIN / k->element * parts;
    if (k->coll == RD_ALLGATHER || (k->coll == RD_BROADCAST && !shares)) /* one hop, and no sum */
        most = count;
    size_t pieces = (count + most - 1) / most;
    k->grain = GRAIN / k->element;
    /* A multiple of what all ranks' chunks are: so whose chunk of a piece is empty has none in later ones either. */
    const uint64_t multiple = (uint64_t)k->grain * parts;
    k->each = ((count + pieces - 1) / pieces + multiple - 1) / multiple * multiple;
    k->pieces = (uint32_t)((count + k->each - 1) / k->each);
}

/* ---- where it lies ---- */

static void set_blocks(rd_kgdr_t *k, const rd_tables_t *t)
{
    size_t at = 0;

    for (uint32_t p = 0; p < k->n; p++) {
        k->block[p] = (rd_kpart_t){t->out_displs ? t->out_displs[p] : at, t->out_counts[p]};
        at += t->out_counts[p];
    }
}

size_t rd_gdr_slot_bytes(const rd_proxy_path_t *s, size_t n)
{
    return s->gdr_scratch / RD_KGDR_PIECES / (n - 1) / GRAIN * GRAIN;
}

static rd_kgdr_t direct(const rd_proxy_path_t *s, int net_comm, const rd_call_t *call)
{
    const rd_net_comm_t *by = &s->net_comms[net_comm];
    rd_kgdr_t k = {.coll = (uint32_t)call->desc.coll,
                   .root = (uint32_t)call->desc.root,
                   .n = (uint32_t)by->nranks,
                   .rank = (uint32_t)by->rank,
                   .element = (uint32_t)rondo_type_size(call->desc.type),
                   .count = call->desc.count,
                   .reduces = rd_coll_reduces(call->desc.coll),
                   .railed = net_comm == RD_NET_COMM_RAIL,
                   .tabled = call->tables != NULL,
                   .scratch = s->area->scratch};

    k.slot = rd_gdr_slot_bytes(s, k.n);
    k.only = sole_owner(&k);
    if (k.tabled)
        set_blocks(&k, call->tables);
    cut(&k);
    return k;
}

/* Returns where this rank's own chunk begins, in bytes of the whole. */
static uint64_t own_at(const rd_kgdr_t *k)
{
    return rd_kgdr_chunk(k, 0, k->rank).at * k->element;
}

/* Returns the bytes of the vector, or of this rank's block. */
static size_t own_bytes(const rd_kgdr_t *k)
{
    return (k->tabled ? k->block[k->rank].bytes : k->count) * k->element;
}

/* Returns the address of the whole's first element, where a buffer has this rank's block alone. */
static uint64_t block_of(const rd_kgdr_t *k, const void *buffer)
{
    return (uint64_t)(uintptr_t)buffer - own_at(k);
}

/* What this rank has already, and the others only send around, is copied. */
static void set_buffers(rd_kgdr_t *k, const rd_call_t *call)
{
    const uint64_t in = (uint64_t)(uintptr_t)call->in, out = (uint64_t)(uintptr_t)call->out;
    const bool at_root = k->rank == k->root;

    k->in = k->from = in;
    k->own = k->out = out;
    if (k->coll == RD_REDUCE_SCATTER)
        k->own = block_of(k, call->out);
    if (k->coll == RD_ALLGATHER)
        k->own = block_of(k, call->in);
    if (k->coll == RD_BROADCAST && at_root)
        k->own = in;
    k->keep = call->in;
    k->kept = call->out;
    if (k->coll == RD_ALLGATHER)
        k->kept += own_at(k);
    if (k->keep != k->kept && (k->coll == RD_ALLGATHER || (k->coll == RD_BROADCAST && at_root)))
        k->copied = own_bytes(k);
}

/* Sets *at, from which `bytes` bytes are sent, to a copy if the memory must not be announced. */
static rondo_result_t announce(const direct_t *d, uint64_t *at, uint64_t offset, size_t bytes)
{
    const rd_cuda_t *cuda = d->path->cuda;
    void *buffer = (void *)(uintptr_t)(*at + offset);
    rd_kmessage_t m = {buffer, bytes | RD_KGDR | (rd_buffer_hosts(cuda, buffer) ? RD_KGDR_HOST : 0)};

    if (!bytes)
        return RONDO_SUCCESS;
    rondo_result_t result = rd_rcache_copy(d->path, &m, d->call->stream);
    *at = (uint64_t)(uintptr_t)m.buffer - offset;
    return result;
}

/* Returns the bytes of the vector, or of all blocks, which are equal where this is asked. */
static size_t span(const rd_kgdr_t *k)
{
    return k->count * k->element * (k->coll == RD_REDUCE_SCATTER ? k->n : 1);
}

/* Has copies made of what is sent from memory that must not be announced; sums are sent from such a copy's place, and
 * copied back from there when the launch is over. */
static rondo_result_t announce_all(const direct_t *d)
{
    rd_kgdr_t *k = d->k;
    const bool at_root = k->rank == k->root, sums = k->coll == RD_ALLREDUCE;
    rondo_result_t result = RONDO_SUCCESS;

    d->path->bounce_used = 0;
    if (k->reduces)
        result = announce(d, &k->from, 0, span(k));
    else if (k->coll == RD_ALLGATHER)
        result = announce(d, &k->own, own_at(k), own_bytes(k));
    else if (at_root)
        result = announce(d, &k->from, 0, span(k));
    if (k->coll == RD_BROADCAST && at_root)
        k->own = k->from;
    if (result == RONDO_SUCCESS && (sums || (k->coll == RD_BROADCAST && !at_root && k->only == RD_KGDR_ALL)))
        result = announce(d, &k->own, 0, span(k));
    return result;
}

/* Behind the launch: puts this rank's own chunk where it belongs, if it was sent from elsewhere. */
static rondo_result_t bring_back(const direct_t *d)
{
    const rd_kgdr_t *k = d->k;
    rondo_result_t result = RONDO_SUCCESS;

    if (k->own == k->out || k->coll == RD_REDUCE_SCATTER || k->coll == RD_ALLGATHER || rd_kgdr_keeps(k) ||
        (k->coll == RD_BROADCAST && k->rank == k->root))
        return RONDO_SUCCESS;
    for (uint32_t piece = 0; piece < k->pieces && result == RONDO_SUCCESS; piece++) {
        const rd_kgdr_range_t own = rd_kgdr_chunk(k, piece, k->rank);
        char *to = (char *)(uintptr_t)k->out + own.at * k->element;
        result = rd_cuda_copy(d->path->cuda, to, rd_kgdr_own(k, piece), own.n * k->element, d->call->stream);
    }
    return result;
}

/* ---- the launch ---- */

static void set_hosted(const direct_t *d)
{
    const uint64_t at[] = {[RD_KGDR_FROM] = d->k->from,
                           [RD_KGDR_OWN] = d->k->own + own_at(d->k),
                           [RD_KGDR_OUT] = d->k->out,
                           [RD_KGDR_SCRATCH] = (uint64_t)(uintptr_t)d->k->scratch};

    for (uint32_t i = 0; i < sizeof at / sizeof at[0]; i++)
        d->k->hosted |= at[i] && rd_buffer_hosts(d->path->cuda, (void *)(uintptr_t)at[i]) ? 1u << i : 0;
}

/* Blocks that sum or copy: as many as a piece has work for. */
static rd_klaunch_t grid(const direct_t *d)
{
    const rd_kgdr_t *k = d->k;
    rd_cuda_t *cuda = d->path->cuda;
    const uint32_t room = cuda->limits.blocks / rd_occupancy_parts(cuda), most = room < BLOCKS ? room : BLOCKS;
    rd_klaunch_t l = {.kernel = RD_KERNEL_GDR,
                      .coll = RD_ALLREDUCE,
                      .type = k->reduce.type,
                      .op = k->reduce.op,
                      .narrow = k->reduce.narrow};
    size_t bytes =
        k->reduces ? rd_kgdr_chunk(k, 0, k->rank).n * rondo_type_size((rondo_type_t)k->reduce.type) : k->copied;

    rd_cuda_spread(cuda, &l, bytes);
    l.blocks = l.blocks + 1 < most ? l.blocks + 1 : most;
    const uint32_t least = bytes ? 2 : 1;
    l.blocks = l.blocks < least ? least : l.blocks;
    return l;
}

static rondo_result_t run(const direct_t *d, rd_kwork_t *work)
{
    rd_kgdr_t *k = d->k;

    k->reduce = (rd_kreduce_t){.coll = RD_ALLREDUCE, .passes = 1, .tiles = 1};
    if (k->reduces)
        rd_cuda_op(d->path->cuda, d->call, &k->reduce);
    else
        k->reduce.type = RONDO_INT32;
    set_hosted(d);
    work->comm = d->path->cuda->k;
    const rd_klaunch_t l = grid(d);
    return rd_proxy_path_gdr(d->path, &l, work, rd_kgdr_triggers(k, 0) + rd_kgdr_triggers(k, 1), d->call->stream);
}

/* ---- the entry ---- */

/* Returns true if nothing is forced for the operation, which goes by GDR if its messages have `bytes` bytes. Each hop
 * costs as much as staging `gdr_coll_min` bytes does. A contribution is scaled by who sums it, so a scalar must be the
 * same on all ranks, as that of AVG is. */
static bool by_gdr(const rd_proxy_path_t *s, const rd_call_t *call, size_t bytes, size_t hops)
{
    rd_env_t own;
    const rd_env_t *env = rd_force_env(s->cuda->team->env, call->desc.forced, &own);
    const rd_forced_t forced = rd_forced(env, call->desc.coll);

    return s->gdr_coll_min && bytes >= hops * s->gdr_coll_min && !forced.algo && !forced.protos &&
           (!rd_coll_reduces(call->desc.coll) || call->desc.op < RONDO_NUM_OPS);
}

/* Returns the bytes of a block, on average. */
static size_t block_bytes(const rd_call_t *call, size_t n)
{
    const size_t *counts = call->tables && call->desc.coll == RD_ALLGATHER ? call->tables->out_counts : NULL;
    size_t sum = 0;

    for (size_t p = 0; counts && p < n; p++)
        sum += counts[p];
    return (counts ? sum / n : call->desc.count) * rondo_type_size(call->desc.type);
}

/* Returns true if the call's messages are long enough. */
static bool is_long(const rd_proxy_path_t *s, size_t n, const rd_call_t *call)
{
    size_t bytes = block_bytes(call, n);

    switch (call->desc.coll) {
    case RD_ALLREDUCE:
        return by_gdr(s, call, bytes / n, 2);
    case RD_REDUCE:
        return n > 2 ? by_gdr(s, call, bytes / n, 2) : by_gdr(s, call, bytes, 1);
    case RD_BROADCAST: /* between two ranks it has one hop, but a staged one lets its root go early */
        return by_gdr(s, call, n > 2 ? bytes / n : bytes, 2);
    case RD_REDUCE_SCATTER:
    case RD_ALLGATHER:
        return by_gdr(s, call, bytes, 1);
    default:
        return false;
    }
}

/* Where there are many ranks, pieces are short: messages of fewer bytes than are worth it would be sent of the longest
 * vector. */
bool rd_gdr_has_room(const rd_proxy_path_t *s, size_t n)
{
    const size_t least = s->gdr_coll_min < GRAIN ? GRAIN : s->gdr_coll_min / GRAIN * GRAIN;

    return rd_gdr_slot_bytes(s, n) >= least;
}

/* Returns true if the kernel takes the call's tables, of which it has room for those of few ranks. */
static bool takes(size_t n, const rd_call_t *call)
{
    return !call->tables || (n <= RD_KRANKS && call->desc.coll == RD_ALLGATHER);
}

bool rd_gdr_serves(const rd_proxy_path_t *s, int net_comm, const rd_call_t *call)
{
    size_t n = (size_t)s->net_comms[net_comm].nranks;
    const rd_team_t *team = s->cuda->team;

    if (n < 2 || (call->desc.coll != RD_ALLGATHER && !rd_gdr_has_room(s, n)) || !takes(n, call) || !is_long(s, n, call))
        return false;
    return net_comm == RD_NET_COMM_RAIL || team->nranks == team->node->nnodes;
}

rondo_result_t rd_gdr_collective(rd_proxy_path_t *s, int net_comm, const rd_call_t *call)
{
    rd_kwork_t work;
    direct_t d = {.path = s, .call = call, .k = &work.gdr};

    *d.k = direct(s, net_comm, call);
    if (rd_log_enabled(RD_LOG_TRACE))
        rd_log(s->cuda->team->ctx, RD_LOG_TRACE, "%s of %zu elements among %u ranks: by GDR, in %u pieces of %llu",
               rd_coll_name(call->desc.coll), longest(d.k), d.k->n, d.k->pieces, (unsigned long long)d.k->each);
    set_buffers(d.k, call);
    rondo_result_t result = announce_all(&d);
    if (result == RONDO_SUCCESS)
        result = run(&d, &work);
    return result == RONDO_SUCCESS ? bring_back(&d) : result;
}

/* ---- blocks of each rank's own: messages of all ranks, also within the nodes ---- */

bool rd_gdr_moves(const rd_proxy_path_t *s, const rd_call_t *call)
{
    rd_coll_t coll = call->desc.coll;

    return (coll == RD_ALLTOALL || coll == RD_GATHER || coll == RD_SCATTER) && s->cuda->k.nranks <= RD_KRANKS &&
           !call->tables && by_gdr(s, call, call->desc.count * rondo_type_size(call->desc.type), 1);
}
