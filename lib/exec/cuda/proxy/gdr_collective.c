/* Collectives between nodes whose data goes from GPU to GPU: messages by GDR (gdr.c) from and to the users' buffers,
 * and sums by the GPU. No byte passes through the host's memory. The ranks of the net communicator are on different
 * nodes: all ranks, one a node, or those of a rail.
 *
 * An operation has two hops. In the first, every rank sends each other rank that rank's chunk, and a kernel sums what
 * comes (kernels/sum.cuh). In the second, every rank sends its chunk, which is whole now, to all:
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
 * What comes to be summed must fit into scratch, so a long operation has pieces. The first hop of a piece and the
 * second hop of the piece before it are one launch of messages. A launch waits for its messages, so what follows it in
 * the stream may overwrite what they have read, and add up what they have written. Who cuts differently from its peers
 * is found out as with any message: lengths differ. */
#include <stdlib.h>

#include "exec/cuda/proxy/proxy.h"
#include "plan/candidates.h"

#define GRAIN 256       /* bytes that chunks are multiples of, but the last */
#define RAIL_PIECES 64u /* on a rail, at most: a stream takes some thousand launches, see hier_run.c */

typedef struct direct {
    rd_cuda_t *cuda;
    const rd_call_t *call;
    int n, rank;     /* as the net communicator counts */
    const int *rail; /* the communicator's rank of each; NULL: the same */
    int only;        /* the one rank that has a chunk, all of a piece; -1: all have one */
    size_t element, count;
    size_t each, pieces; /* elements of a piece: of the vector, or of every block */
    char *scratch;
    size_t slot; /* bytes of scratch for each rank's part of a piece; this rank's own is for its sum */
    rd_cuda_message_t *messages;
    size_t used;
} direct_t;

typedef struct range {
    size_t at, n; /* elements of the whole */
} range_t;

/* ---- how it is cut ---- */

/* Returns what rank p sums in a piece, or has of it after the first hop. */
static range_t chunk(const direct_t *d, size_t piece, int p)
{
    size_t begin = piece * d->each, left = d->count - begin, n = left < d->each ? left : d->each;
    size_t grain = GRAIN / d->element, share;
    rd_coll_t coll = d->call->desc.coll;

    if (coll == RD_REDUCE_SCATTER || coll == RD_ALLGATHER)
        return (range_t){(size_t)p * d->count + begin, n};
    if (d->only >= 0)
        return (range_t){begin, p == d->only ? n : 0};
    share = ((n + (size_t)d->n - 1) / (size_t)d->n + grain - 1) / grain * grain;
    size_t from = (size_t)p * share < n ? (size_t)p * share : n;
    return (range_t){begin + from, n - from < share ? n - from : share};
}

static int sole_owner(const direct_t *d)
{
    if (d->n > 2)
        return -1;
    return d->call->desc.coll == RD_REDUCE      ? d->call->desc.root
           : d->call->desc.coll == RD_BROADCAST ? 1 - d->call->desc.root
                                                : -1;
}

static void cut(direct_t *d)
{
    size_t grain = GRAIN / d->element, most = d->slot / GRAIN * grain;
    rd_coll_t coll = d->call->desc.coll;

    if (coll != RD_REDUCE_SCATTER && d->only < 0)
        most *= (size_t)d->n;
    if (coll == RD_ALLGATHER || (coll == RD_BROADCAST && d->only >= 0)) /* nothing goes through scratch */
        most = d->count;
    d->pieces = (d->count + most - 1) / most;
    d->each = ((d->count + d->pieces - 1) / d->pieces + grain - 1) / grain * grain;
    d->pieces = (d->count + d->each - 1) / d->each;
}

/* ---- what is sent ---- */

static const char *input(const direct_t *d, size_t at)
{
    return (const char *)d->call->in + at * d->element;
}

static char *output(const direct_t *d, size_t at)
{
    return (char *)d->call->out + at * d->element;
}

/* Returns where the part that rank p sends for this rank's sum lies; p = d->rank: where a sum may lie that belongs to
 * the root. */
static char *slot_of(const direct_t *d, int p)
{
    int index = p == d->rank ? d->n - 1 : p - (p > d->rank);

    return d->scratch + (size_t)index * d->slot;
}

static void message(direct_t *d, int send, int p, const void *buffer, size_t n)
{
    rd_cuda_message_t *m = &d->messages[d->used];

    if (!n)
        return;
    *m = (rd_cuda_message_t){.buffer = (void *)(uintptr_t)buffer,
                             .bytes = n * d->element,
                             .stream = d->call->stream,
                             .send = (int16_t)send,
                             .peer = (int16_t)(d->rail ? d->rail[p] : p),
                             .coll = true};
    if (d->used++)
        m[-1].next = m;
}

/* The messages of the first hop with rank p. */
static void scatter(direct_t *d, size_t piece, int p)
{
    range_t theirs = chunk(d, piece, p), own = chunk(d, piece, d->rank);
    const rd_coll_desc_t *desc = &d->call->desc;

    if (desc->coll == RD_ALLGATHER)
        return;
    if (desc->coll != RD_BROADCAST || d->rank == desc->root)
        message(d, 1, p, input(d, theirs.at), theirs.n);
    if (desc->coll != RD_BROADCAST)
        message(d, 0, p, slot_of(d, p), own.n);
    else if (p == desc->root)
        message(d, 0, p, output(d, own.at), own.n);
}

/* The messages of the second hop with rank p. */
static void gather(direct_t *d, size_t piece, int p)
{
    range_t theirs = chunk(d, piece, p), own = chunk(d, piece, d->rank);
    const rd_coll_desc_t *desc = &d->call->desc;
    const bool at_root = d->rank == desc->root, to_root = p == desc->root;

    switch (desc->coll) {
    case RD_ALLREDUCE:
        message(d, 1, p, output(d, own.at), own.n);
        message(d, 0, p, output(d, theirs.at), theirs.n);
        break;
    case RD_ALLGATHER:
        message(d, 1, p, input(d, own.at - (size_t)d->rank * d->count), own.n);
        message(d, 0, p, output(d, theirs.at), theirs.n);
        break;
    case RD_REDUCE:
        if (to_root)
            message(d, 1, p, slot_of(d, d->rank), own.n);
        if (at_root)
            message(d, 0, p, output(d, theirs.at), theirs.n);
        break;
    case RD_BROADCAST:
        if (!to_root)
            message(d, 1, p, at_root ? input(d, own.at) : output(d, own.at), own.n);
        if (!at_root)
            message(d, 0, p, output(d, theirs.at), theirs.n);
        break;
    default: /* reduce_scatter is over */
        break;
    }
}

/* ---- what is summed ---- */

static rondo_result_t sum(const direct_t *d, size_t piece)
{
    const rd_coll_desc_t *desc = &d->call->desc;
    range_t own = chunk(d, piece, d->rank);
    rd_klaunch_t launch = {.kernel = RD_KERNEL_SUM, .coll = RD_ALLREDUCE};
    rd_kwork_t work;
    rd_ksummed_t *s = &work.summed;

    if (!rd_coll_reduces(desc->coll) || !own.n)
        return RONDO_SUCCESS;
    s->reduce = (rd_kreduce_t){.in = input(d, own.at), .count = own.n, .coll = RD_ALLREDUCE, .passes = 1, .tiles = 1};
    rd_cuda_op(d->cuda, d->call, &s->reduce);
    s->reduce.out = desc->coll == RD_REDUCE_SCATTER                    ? output(d, piece * d->each)
                    : desc->coll == RD_REDUCE && d->rank != desc->root ? slot_of(d, d->rank)
                                                                       : output(d, own.at);
    s->others = d->scratch;
    s->stride = d->slot;
    s->n = (uint32_t)d->n;
    s->own = (uint32_t)d->rank;
    launch.type = s->reduce.type;
    launch.op = s->reduce.op;
    launch.narrow = s->reduce.narrow;
    rd_cuda_spread(d->cuda, &launch, own.n * rondo_type_size((rondo_type_t)s->reduce.type));
    work.comm = d->cuda->k;
    return rd_cuda_launch(d->cuda, &launch, &work, d->call->stream);
}

static rondo_result_t run(direct_t *d)
{
    rondo_result_t result = RONDO_SUCCESS;

    for (size_t i = 0; i <= d->pieces && result == RONDO_SUCCESS; i++) {
        d->used = 0;
        for (int k = 1; k < d->n; k++) {
            int p = (d->rank + k) % d->n;
            if (i < d->pieces)
                scatter(d, i, p);
            if (i > 0)
                gather(d, i - 1, p);
        }
        if (d->used) {
            d->messages[d->used - 1].next = NULL;
            result = rd_messages_run(d->cuda, d->messages);
        }
        if (i < d->pieces && result == RONDO_SUCCESS)
            result = sum(d, i);
    }
    return result;
}

/* ---- the entry ---- */

/* What this rank has already, and the others only send around. */
static rondo_result_t keep(const direct_t *d)
{
    const rd_call_t *call = d->call;
    size_t bytes = d->count * d->element;

    if (call->desc.coll == RD_BROADCAST && d->rank == call->desc.root)
        return rd_cuda_copy(d->cuda, call->out, call->in, bytes, call->stream);
    if (call->desc.coll == RD_ALLGATHER)
        return rd_cuda_copy(d->cuda, (char *)call->out + (size_t)d->rank * bytes, call->in, bytes, call->stream);
    return RONDO_SUCCESS;
}

static direct_t direct(const rd_proxy_path_t *s, int net_comm, const rd_call_t *call)
{
    const rd_net_comm_t *by = &s->net_comms[net_comm];
    direct_t d = {.cuda = s->cuda,
                  .call = call,
                  .n = by->nranks,
                  .rank = by->rank,
                  .rail = net_comm == RD_NET_COMM_RAIL ? s->rail : NULL,
                  .element = rondo_type_size(call->desc.type),
                  .count = call->desc.count,
                  .scratch = s->area->scratch,
                  .slot = s->area->scratch_bytes / (size_t)by->nranks / GRAIN * GRAIN};

    d.only = sole_owner(&d);
    return d;
}

/* Returns true if nothing is forced for the operation, which goes by GDR if its messages have `bytes` bytes. Each hop
 * costs as much as staging `gdr_coll_min` bytes does. A contribution is scaled by who sums it, so a scalar must be the
 * same on all ranks, as that of AVG is. With RONDO_CHECK proxies hold data back until calls have been compared, which
 * they do not with messages. */
static bool by_gdr(const rd_proxy_path_t *s, const rd_call_t *call, size_t bytes, size_t hops)
{
    const rd_forced_t forced = rd_forced(s->cuda->team->env, call->desc.coll);

    return s->gdr_coll_min && !s->signatures && bytes >= hops * s->gdr_coll_min && !call->tables && !forced.algo &&
           !forced.protos && (!rd_coll_reduces(call->desc.coll) || call->desc.op < RONDO_NUM_OPS);
}

/* Returns true if the call's messages are long enough. */
static bool is_long(const rd_proxy_path_t *s, size_t n, const rd_call_t *call)
{
    size_t bytes = call->desc.count * rondo_type_size(call->desc.type);

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

bool rd_gdr_serves(const rd_proxy_path_t *s, int net_comm, const rd_call_t *call)
{
    size_t n = (size_t)s->net_comms[net_comm].nranks;
    const rd_team_t *team = s->cuda->team;

    if (n < 2 || n > s->area->scratch_bytes / GRAIN || !is_long(s, n, call))
        return false;
    if (net_comm != RD_NET_COMM_RAIL)
        return team->nranks == team->node->nnodes;
    direct_t d = direct(s, net_comm, call);
    cut(&d);
    return d.pieces <= RAIL_PIECES;
}

rondo_result_t rd_gdr_collective(rd_proxy_path_t *s, int net_comm, const rd_call_t *call)
{
    direct_t d = direct(s, net_comm, call);
    rondo_result_t result;

    cut(&d);
    if (!(d.messages = calloc(4 * (size_t)d.n, sizeof *d.messages)))
        return rd_error(s->cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for messages to %d ranks", d.n);
    if (rd_log_enabled(RD_LOG_TRACE))
        rd_log(s->cuda->team->ctx, RD_LOG_TRACE, "%s of %zu elements among %d ranks: by GDR, in %zu pieces of %zu",
               rd_coll_name(call->desc.coll), d.count, d.n, d.pieces, d.each);
    result = keep(&d);
    if (result == RONDO_SUCCESS)
        result = run(&d);
    free(d.messages);
    return result;
}

/* ---- blocks of each rank's own: messages of all ranks, also within the nodes ---- */

bool rd_gdr_moves(const rd_proxy_path_t *s, const rd_call_t *call)
{
    rd_coll_t coll = call->desc.coll;

    return (coll == RD_ALLTOALL || coll == RD_GATHER || coll == RD_SCATTER) && s->cuda->k.nranks <= RD_KRANKS &&
           by_gdr(s, call, call->desc.count * rondo_type_size(call->desc.type), 1);
}
