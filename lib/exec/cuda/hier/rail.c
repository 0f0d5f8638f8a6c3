/* Between nodes that have several ranks: what can be done inside a node goes by the kernels of one node, and between
 * nodes each rank carries its own part, on the rail of those who have its place elsewhere.
 *
 *   allreduce        reduce-scatter inside, allreduce on the rail, allgather inside
 *   reduce           reduce-scatter inside, reduce on the rail, gather inside the root's node: by pieces, in scratch
 *   broadcast        scatter inside the root's node, broadcast on the rail, allgather inside
 *   allgather        allgather on the rail into the places, then inside, for each node's blocks; where nodes differ,
 *                    inside, then on the rail and inside for each other node's (rail_ranges.c)
 *   reduce_scatter   inside, for each node's blocks, then on the rail: by pieces, in scratch; where nodes differ, from
 *                    there inside once more (rail_ranges.c)
 *   reduce_scatterv  a reduce to each rank in turn; where nodes differ, as reduce_scatter if ranks are counted node by
 *                    node
 *   alltoall         blocks of other nodes by the carrier of all ranks, then those of the own one inside
 *   gather, scatter  the same: most ranks have one block
 *
 * What is left over when a vector is cut goes with the last rail's part, of a reduce between nodes that are alike with
 * that of the root's place. Where nothing is said of scratch, all of it stays in the user's buffers. Where nodes
 * differ, ranks that have no partner on the emptiest node have no part between nodes, and where a node has such, its
 * kernels serve one rail's part after the other.
 */
#include "exec/cuda/hier/rail.h"

int rd_rail_alike(const rd_cuda_t *cuda)
{
    return cuda->team->node->fewest == cuda->team->node->most;
}

/* An average of integers is divided once, when all is summed. */
static int divides(const rd_ask_t *ask)
{
    return ask->op == RONDO_AVG && ask->type < RONDO_FLOAT16;
}

/* Each rail carries a part, and all ranks get all. */
static int has_parts(rd_coll_t coll)
{
    return coll == RD_ALLREDUCE || coll == RD_BROADCAST || coll == RD_ALLGATHER;
}

/* Blocks of different lengths that are reduced, each for itself. */
static int reduces_each(const rd_cuda_t *cuda, const rd_call_t *call)
{
    return call->tables && call->ask.coll == RD_REDUCE_SCATTER && !rd_rail_has_ranges(cuda, call);
}

/* Where nodes differ, sums of which a rank has its block, or one rank all. */
static int sums_to_one(const rd_cuda_t *cuda, const rd_call_t *call)
{
    return !rd_rail_alike(cuda) && (call->ask.coll == RD_REDUCE || call->ask.coll == RD_REDUCE_SCATTER);
}

/* Bytes that the first launch inside a node has to do with, on average; of gather and scatter, whose short blocks go
 * quicker between nodes by a tree of all ranks, a block. */
static size_t bytes_inside(const rd_cuda_t *cuda, const rd_call_t *call)
{
    size_t element = rondo_type_size(call->ask.type), blocks = (size_t)cuda->stage->rails * element;

    switch (call->ask.coll) {
    case RD_REDUCE_SCATTER:
        if (rd_rail_has_ranges(cuda, call))
            return rd_rail_range_bytes(cuda, call);
        return reduces_each(cuda, call) ? element * call->ask.count / (size_t)cuda->team->nranks
                                        : blocks * rd_rail_piece(cuda, call);
    case RD_ALLGATHER: /* with tables the count is of all blocks */
        return call->tables ? element * call->ask.count / (size_t)cuda->team->node->nnodes : blocks * call->ask.count;
    case RD_ALLTOALL:
        return blocks * call->ask.count;
    default:
        return element * call->ask.count;
    }
}

/* What is short goes by one launch between all ranks: one inside a node costs some microseconds, in which processors
 * move a short round, and of what is not summed a quarter; and where nodes differ, there is one for each rail. On one
 * H200 that played 2+2, allreduce was quicker so up to 8 KB, broadcast and allgather up to 4 KB; and a reduction for
 * each block, none of which begins before the one ahead is over, where a rail's part was 256 KB long, but not where it
 * was 1 MB. Played 4+2, a reduce was slower so at 64 KB and quicker at 1 MB (doc/performance.md). */
static int is_short(const rd_cuda_t *cuda, const rd_call_t *call)
{
    size_t least = cuda->stage->k.least;

    if (call->ask.coll == RD_BROADCAST || call->ask.coll == RD_ALLGATHER)
        least /= 4;
    if (reduces_each(cuda, call))
        least *= 32 * (size_t)cuda->stage->rails;
    else if (sums_to_one(cuda, call))
        least *= 4 * (size_t)cuda->stage->rails;
    else if (!rd_rail_alike(cuda) && has_parts(call->ask.coll))
        least *= (size_t)cuda->stage->rails;
    return bytes_inside(cuda, call) < least;
}

/* Kernels of a call, at most. */
static size_t launches(const rd_cuda_t *cuda, const rd_call_t *call)
{
    size_t nodes = (size_t)cuda->team->node->nnodes, ranks = (size_t)cuda->team->nranks;
    size_t parts = rd_rail_alike(cuda) ? 1 : (size_t)cuda->stage->rails;

    if (reduces_each(cuda, call))
        return (3 + parts) * (call->ask.count / rd_rail_reduce_piece(cuda, call) + ranks);
    switch (call->ask.coll) {
    case RD_REDUCE:
        return (3 + parts) * (call->ask.count / rd_rail_reduce_piece(cuda, call) + 1);
    case RD_REDUCE_SCATTER:
        if (rd_rail_has_ranges(cuda, call))
            return (nodes * (1 + parts) + 2) * rd_rail_ranges_pieces(cuda, call);
        return (nodes + 1) * (call->ask.count / rd_rail_piece(cuda, call) + 1);
    case RD_ALLGATHER:
        return nodes * parts + 1;
    default:
        return 2 * parts + 2;
    }
}

/* A stream takes some thousand kernels before one has to end, and a thread that calls for several ranks has to come to
 * the last one's. */
#define LAUNCHES_MOST 256

/* Whatever its length. */
static int is_possible(const rd_cuda_t *cuda, const rd_call_t *call)
{
    if (rd_coll_reduces(call->ask.coll) && divides(&call->ask))
        return 0;
    if (sums_to_one(cuda, call) && cuda->stage->rails < 2) /* one rank of each node would work: slower on 2+1+3 */
        return 0;
    switch (call->ask.coll) {
    case RD_ALLREDUCE:
    case RD_BROADCAST:
    case RD_ALLTOALL:
    case RD_GATHER:
    case RD_SCATTER:
    case RD_REDUCE:
        return 1;
    case RD_ALLGATHER:
        return rd_rail_alike(cuda) || rd_rail_has_ranges(cuda, call);
    case RD_REDUCE_SCATTER:
        if (rd_rail_has_ranges(cuda, call))
            return rd_rail_ranges_pieces(cuda, call) != 0;
        return reduces_each(cuda, call) || cuda->stage->ordered;
    default:
        return 0;
    }
}

/* Of an all-to-all by tables nobody knows what the others have, but of an allgather all do. */
int rd_rail_serves(const rd_cuda_t *cuda, const rd_call_t *call)
{
    if (!cuda->inner || !is_possible(cuda, call))
        return 0;
    if (!(call->tables && call->ask.coll == RD_ALLTOALL) && is_short(cuda, call))
        return 0;
    return launches(cuda, call) <= LAUNCHES_MOST;
}

/* ---- parts of an operation */

rondo_result_t rd_rail_inside(rd_cuda_t *cuda, const rd_call_t *call, rd_coll_t coll, int root, size_t count,
                              const void *in, void *out)
{
    rd_call_t part = *call;

    part.ask.coll = coll;
    part.ask.root = root;
    part.ask.count = count;
    part.tables = NULL;
    part.in = in;
    part.out = out;
    part.aside = 0;
    return count ? rd_cuda_run(cuda->inner, &part) : RONDO_SUCCESS;
}

int rd_rail_extra(const rd_cuda_t *cuda)
{
    return cuda->stage->rails < cuda->inner->k.nranks;
}

/* Where there are extra ranks: one part after the other. */
static rondo_result_t sum_each(rd_cuda_t *cuda, const rd_call_t *call, size_t part, size_t rest, const void *in,
                               void *own)
{
    size_t bytes = part * rondo_type_size(call->ask.type);
    int last = cuda->stage->rails - 1;
    rondo_result_t result = RONDO_SUCCESS;

    for (int p = 0; p <= last && result == RONDO_SUCCESS; p++)
        result = rd_rail_inside(cuda, call, RD_REDUCE, p, part + (p == last ? rest : 0),
                                (const char *)in + (size_t)p * bytes, own);
    return result;
}

rondo_result_t rd_rail_sum(rd_cuda_t *cuda, const rd_call_t *call, size_t part, size_t rest, int rests, const void *in,
                           void *own)
{
    size_t bytes = part * rondo_type_size(call->ask.type);

    if (rd_rail_extra(cuda))
        return sum_each(cuda, call, part, rest, in, own);
    rondo_result_t result = rd_rail_inside(cuda, call, RD_REDUCE_SCATTER, 0, part, in, own);
    return result == RONDO_SUCCESS
               ? rd_rail_inside(cuda, call, RD_REDUCE, rests, rest,
                                (const char *)in + (size_t)cuda->stage->rails * bytes, (char *)own + bytes)
               : result;
}

rondo_result_t rd_rail_spread(rd_cuda_t *cuda, const rd_call_t *call, size_t part, size_t rest, void *vector)
{
    size_t bytes = part * rondo_type_size(call->ask.type);
    int last = cuda->stage->rails - 1;
    rondo_result_t result = RONDO_SUCCESS;

    for (int p = 0; p <= last && result == RONDO_SUCCESS; p++) {
        char *at = (char *)vector + (size_t)p * bytes;
        result = rd_rail_inside(cuda, call, RD_BROADCAST, p, part + (p == last ? rest : 0), at, at);
    }
    return result;
}

static size_t common(size_t begin, size_t end, size_t other_begin, size_t other_end)
{
    begin = begin > other_begin ? begin : other_begin;
    end = end < other_end ? end : other_end;
    return begin < end ? end - begin : 0;
}

/* What two ranks share lies behind what either shares with the ranks before the other: so both sides are packed. */
rondo_result_t rd_rail_deliver(rd_cuda_t *cuda, const rd_call_t *call, size_t count, const size_t *begins,
                               const void *own, void *out)
{
    size_t sent[RD_KRANKS], got[RD_KRANKS], part[RD_KRANKS + 1];
    size_t rails = (size_t)cuda->stage->rails, n = (size_t)cuda->inner->k.nranks, self = (size_t)cuda->inner->k.rank;
    const rd_tables_t tables = {sent, NULL, got, NULL};
    rd_call_t exchange = *call;

    for (size_t i = 0; i <= n; i++)
        part[i] = i < rails ? i * (count / rails) : count;
    for (size_t i = 0; i < n; i++) {
        sent[i] = common(part[self], part[self + 1], begins[i], begins[i + 1]);
        got[i] = common(part[i], part[i + 1], begins[self], begins[self + 1]);
    }
    exchange.ask.coll = RD_ALLTOALL;
    exchange.tables = &tables;
    exchange.in = own;
    exchange.out = out;
    exchange.aside = 0;
    return rd_cuda_run(cuda->inner, &exchange);
}

/* AVG of fractions and PREMULSUM are sums by now. */
rondo_result_t rd_rail_between(rd_cuda_t *cuda, const rd_call_t *call, int root, size_t count, const void *in,
                               void *out)
{
    rd_call_t part = *call;

    if (part.ask.op == RONDO_AVG || part.ask.op >= RONDO_NUM_OPS)
        part.ask.op = RONDO_SUM;
    part.ask.root = root;
    part.ask.count = count;
    part.in = in;
    part.out = out;
    return count ? rd_stage_run(cuda->stage, RD_CARRIER_RAIL, &part) : RONDO_SUCCESS;
}

int rd_rail_place(const rd_node_t *node, int rank)
{
    int place = 0;

    for (int r = 0; r < rank; r++)
        place += node->node_of[r] == node->node_of[rank];
    return place;
}

rondo_result_t rd_rail_pieces(rd_cuda_t *cuda, const rd_call_t *call, size_t piece, rd_rail_piece_fn serve)
{
    size_t count = call->ask.count;
    rondo_result_t result = RONDO_SUCCESS;

    for (size_t at = 0; at < count && result == RONDO_SUCCESS; at += piece)
        result = serve(cuda, call, at, piece < count - at ? piece : count - at);
    return result;
}

rondo_result_t rd_rail_run(rd_cuda_t *cuda, const rd_call_t *call)
{
    switch (call->ask.coll) {
    case RD_ALLREDUCE:
        return rd_rail_allreduce(cuda, call);
    case RD_REDUCE:
        return rd_rail_reduce(cuda, call);
    case RD_BROADCAST:
        return rd_rail_broadcast(cuda, call);
    case RD_REDUCE_SCATTER:
        if (rd_rail_has_ranges(cuda, call))
            return rd_rail_ranges_reduce_scatter(cuda, call);
        return reduces_each(cuda, call) ? rd_cuda_reduce_each(cuda, call) : rd_rail_reduce_scatter(cuda, call);
    case RD_ALLGATHER:
        return rd_rail_has_ranges(cuda, call) ? rd_rail_ranges_allgather(cuda, call) : rd_rail_allgather(cuda, call);
    default:
        return rd_rail_exchange(cuda, call);
    }
}
