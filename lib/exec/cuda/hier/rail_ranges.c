/* Allgather and reduce-scatter where nodes have different numbers of ranks, counted node by node, and blocks lie one
 * behind the other: a node's blocks are one range of what all ranks have, and each rail carries a part of every node's.
 * See rail.c.
 *
 *   allgather       inside each node, whose ranks all have its range then
 *                   each rail's part of it to the rail's other ranks
 *                   for each other node, inside: who has a part of its range gives it to all
 *   reduce_scatter  for each node's range, inside: its sum, in parts of rails, in scratch
 *                   reduce-scatter on the rail
 *                   inside, from parts to blocks; slices of all ranges, one after the other, as scratch has room
 */
#include <stdlib.h>

#include "exec/cuda/hier/rail.h"

/* Elements. */
typedef struct ranges {
    size_t *memory;         /* of all that follow */
    size_t *at, *length;    /* of each node's range */
    size_t *part_at, *part; /* of this rank's part of each, if it has a rail; what is left over is the last one's */
} ranges_t;

static size_t block_of(const rd_call_t *call, int r)
{
    const rd_tables_t *t = call->tables;

    return !t ? call->ask.count : t->out_counts ? t->out_counts[r] : t->in_counts[r];
}

/* Of a reduce-scatter by tables blocks always lie so. */
static int is_packed(const rd_cuda_t *cuda, const rd_call_t *call)
{
    const size_t *displs = call->tables ? call->tables->out_displs : NULL;
    size_t sum = 0;

    for (int r = 0; displs && r < cuda->team->nranks; sum += block_of(call, r++))
        if (displs[r] != sum && block_of(call, r))
            return 0;
    return 1;
}

int rd_rail_has_ranges(const rd_cuda_t *cuda, const rd_call_t *call)
{
    return !rd_rail_alike(cuda) && cuda->stage->ordered && is_packed(cuda, call);
}

static rondo_result_t ranges_find(const rd_cuda_t *cuda, const rd_call_t *call, ranges_t *g)
{
    const rd_team_t *team = cuda->team;
    size_t nodes = (size_t)team->node->nnodes, sum = 0, *memory = calloc(4 * nodes, sizeof *memory);

    if (!memory)
        return rd_error(team->who, RONDO_ERR_NO_MEMORY, "no memory for an operation of %zu nodes", nodes);
    *g = (ranges_t){memory, memory, memory + nodes, memory + 2 * nodes, memory + 3 * nodes};
    for (int r = 0; r < team->nranks; r++)
        g->length[team->node->node_of[r]] += block_of(call, r);
    for (size_t m = 0; m < nodes; sum += g->length[m++])
        g->at[m] = sum;
    return RONDO_SUCCESS;
}

/* This rank's part of so many elements. */
static size_t part_of(const rd_cuda_t *cuda, size_t length)
{
    size_t rails = (size_t)cuda->stage->rails, place = (size_t)cuda->team->node->self;

    return place < rails ? length / rails + (place == rails - 1 ? length % rails : 0) : 0;
}

/* ---- allgather */

static rondo_result_t gather_inside(rd_cuda_t *cuda, const rd_call_t *call, char *range)
{
    const rd_team_t *team = cuda->team;
    rd_call_t part = *call;

    if (!call->tables)
        return rd_rail_inside(cuda, call, RD_ALLGATHER, 0, call->ask.count, call->in, range);
    const rd_tables_t tables = {NULL, NULL, call->tables->out_counts + team->node->local[0], NULL};
    part.tables = &tables;
    part.ask.count = block_of(call, team->rank);
    part.out = range;
    return rd_cuda_run(cuda->inner, &part);
}

static rondo_result_t allgather(rd_cuda_t *cuda, const rd_call_t *call, const ranges_t *g)
{
    const rd_node_t *node = cuda->team->node;
    size_t element = rondo_type_size(call->ask.type), rails = (size_t)cuda->stage->rails;
    int own = node->node_of[cuda->team->rank];
    const rd_tables_t tables = {NULL, NULL, g->part, g->part_at};
    char *out = call->out;
    rd_call_t rail = *call;
    rondo_result_t result = gather_inside(cuda, call, out + g->at[own] * element);

    for (int m = 0; m < node->nnodes; m++) {
        g->part_at[m] = g->at[m] + (size_t)node->self * (g->length[m] / rails);
        g->part[m] = part_of(cuda, g->length[m]);
    }
    rail.tables = &tables;
    rail.in = out + g->part_at[own] * element;
    if (result == RONDO_SUCCESS && node->self < cuda->stage->rails)
        result = rd_stage_run(cuda->stage, RD_CARRIER_RAIL, &rail);
    for (int m = 0; m < node->nnodes && node->nlocal > 1 && result == RONDO_SUCCESS; m++)
        if (m != own)
            result = rd_rail_spread(cuda, call, g->length[m] / rails, g->length[m] % rails, out + g->at[m] * element);
    return result;
}

rondo_result_t rd_rail_ranges_allgather(rd_cuda_t *cuda, const rd_call_t *call)
{
    ranges_t g = {NULL, NULL, NULL, NULL, NULL};
    rondo_result_t result = ranges_find(cuda, call, &g);

    if (result == RONDO_SUCCESS)
        result = allgather(cuda, call, &g);
    free(g.memory);
    return result;
}

/* ---- reduce-scatter */

#define ALIGN 128

static size_t bytes_of(const rd_cuda_t *cuda, const rd_call_t *call)
{
    return rondo_type_size(call->ask.type) * call->ask.count * (call->tables ? 1 : (size_t)cuda->team->nranks);
}

size_t rd_rail_range_bytes(const rd_cuda_t *cuda, const rd_call_t *call)
{
    return bytes_of(cuda, call) / (size_t)cuda->team->node->nnodes;
}

size_t rd_rail_ranges_pieces(const rd_cuda_t *cuda, const rd_call_t *call)
{
    size_t room = rd_window_scratch_bytes(cuda->inner),
           lost = (ALIGN + RD_RAIL_REST) * (size_t)cuda->team->node->nnodes;

    return lost < room ? bytes_of(cuda, call) / (size_t)cuda->stage->rails / (room - lost) + 1 : 0;
}

/* Where the slice of so many pieces' number k begins in a range. */
static size_t slice_begin(size_t length, size_t k, size_t pieces)
{
    return length / pieces * k + length % pieces * k / pieces;
}

/* The blocks of the node's ranks that are in this slice, and what of this rank's own lies before it. */
static rondo_result_t deliver(rd_cuda_t *cuda, const rd_call_t *call, size_t begin, size_t end, const char *own,
                              char *out)
{
    const rd_node_t *node = cuda->team->node;
    size_t begins[RD_KRANKS + 1], sum = 0, before = 0;

    for (int i = 0; i <= node->nlocal; i++) {
        size_t block = i < node->nlocal ? block_of(call, node->local[i]) : 0;
        begins[i] = sum < begin ? 0 : sum < end ? sum - begin : end - begin;
        if (i == node->self && sum < begin)
            before = begin - sum < block ? begin - sum : block;
        sum += block;
    }
    return rd_rail_deliver(cuda, call, end - begin, begins, own, out + before * rondo_type_size(call->ask.type));
}

static rondo_result_t reduce_scatter_slice(rd_cuda_t *cuda, const rd_call_t *call, const ranges_t *g, size_t k,
                                           size_t pieces, char *out)
{
    const rd_node_t *node = cuda->team->node;
    size_t element = rondo_type_size(call->ask.type), rails = (size_t)cuda->stage->rails, sum = 0, used = 0;
    size_t own = (size_t)node->node_of[cuda->team->rank], own_begin = slice_begin(g->length[own], k, pieces);
    const rd_tables_t tables = {g->part, g->part_at, NULL, NULL};
    char *scratch = rd_window_scratch(cuda->inner);
    rd_call_t rail = *call;
    rondo_result_t result = RONDO_SUCCESS;

    for (size_t m = 0; m < (size_t)node->nnodes && result == RONDO_SUCCESS; m++) {
        size_t begin = slice_begin(g->length[m], k, pieces), length = slice_begin(g->length[m], k + 1, pieces) - begin;
        g->part_at[m] = used / element;
        g->part[m] = part_of(cuda, length);
        sum += g->part[m];
        result = rd_rail_sum(cuda, call, length / rails, length % rails, (int)rails - 1,
                             (const char *)call->in + (g->at[m] + begin) * element, scratch + used);
        used = (used + g->part[m] * element + ALIGN - 1) / ALIGN * ALIGN;
    }
    rail.tables = &tables;
    if (result == RONDO_SUCCESS)
        result = rd_rail_between(cuda, &rail, 0, sum, scratch, scratch + g->part_at[own] * element);
    return result == RONDO_SUCCESS ? deliver(cuda, call, own_begin, slice_begin(g->length[own], k + 1, pieces),
                                             scratch + g->part_at[own] * element, out)
                                   : result;
}

/* An output over the input's first blocks, of which later slices have more, is made in the own block. */
static rondo_result_t reduce_scatter(rd_cuda_t *cuda, const rd_call_t *call, const ranges_t *g)
{
    size_t pieces = rd_rail_ranges_pieces(cuda, call), own = 0;
    char *out = call->out;
    rondo_result_t result = RONDO_SUCCESS;

    for (int r = 0; call->aside && r < cuda->team->rank; r++)
        own += block_of(call, r) * rondo_type_size(call->ask.type);
    for (size_t k = 0; k < pieces && result == RONDO_SUCCESS; k++)
        result = reduce_scatter_slice(cuda, call, g, k, pieces, out + own);
    return result == RONDO_SUCCESS ? rd_cuda_copy_over(cuda, out, out + own, call->aside, call->stream) : result;
}

rondo_result_t rd_rail_ranges_reduce_scatter(rd_cuda_t *cuda, const rd_call_t *call)
{
    ranges_t g = {NULL, NULL, NULL, NULL, NULL};
    rondo_result_t result = ranges_find(cuda, call, &g);

    if (result == RONDO_SUCCESS)
        result = reduce_scatter(cuda, call, &g);
    free(g.memory);
    return result;
}
