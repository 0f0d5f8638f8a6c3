/* Allgather where nodes have different numbers of ranks, counted node by node: a node's blocks are one range of the
 * output then, and each rail carries a part of every node's. See rail.c.
 *
 *   allgather inside each node, whose ranks all have its range
 *   each rail's part of it to the rail's other ranks
 *   for each other node, inside: who has a part of its range gives it to all
 */
#include <stdlib.h>

#include "rail.h"

/* Elements. */
typedef struct ranges {
    size_t *memory;         /* of all that follow */
    size_t *at, *length;    /* of each node's range */
    size_t *part_at, *part; /* of this rank's part of each, if it has a rail; what is left over is the last one's */
} ranges_t;

static rondo_result_t ranges_find(const rd_cuda_t *cuda, size_t count, ranges_t *g)
{
    const rondo_comm_t comm = cuda->comm;
    size_t nodes = (size_t)comm->node.nnodes, sum = 0, *memory = calloc(4 * nodes, sizeof *memory);
    size_t rails = (size_t)cuda->stage->rails, place = (size_t)comm->node.self;

    if (!memory)
        return rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory for an operation of %zu nodes", nodes);
    *g = (ranges_t){memory, memory, memory + nodes, memory + 2 * nodes, memory + 3 * nodes};
    for (int r = 0; r < comm->nranks; r++)
        g->length[comm->node.node_of[r]] += count;
    for (size_t m = 0; m < nodes; sum += g->length[m++]) {
        size_t each = g->length[m] / rails;
        g->at[m] = sum;
        g->part_at[m] = sum + place * each;
        g->part[m] = place == rails - 1 ? g->length[m] - place * each : each;
    }
    return RONDO_SUCCESS;
}

/* A range, of which the ranks of rails have a part each. */
static rondo_result_t spread(rd_cuda_t *cuda, const rd_call_t *call, const ranges_t *g, size_t m)
{
    size_t rails = (size_t)cuda->stage->rails, each = g->length[m] / rails;
    char *range = (char *)call->out + g->at[m] * rondo_type_size(call->ask.type);

    return rd_rail_spread(cuda, call, each, g->length[m] % rails, range);
}

static rondo_result_t gather(rd_cuda_t *cuda, const rd_call_t *call, const ranges_t *g)
{
    const rd_node_t *node = &cuda->comm->node;
    int own = node->node_of[cuda->comm->rank];
    size_t element = rondo_type_size(call->ask.type);
    const rd_tables_t tables = {NULL, NULL, g->part, g->part_at};
    rd_call_t rail = *call;
    rondo_result_t result = rd_rail_inside(cuda, call, RD_ALLGATHER, 0, call->ask.count, call->in,
                                           (char *)call->out + g->at[own] * element);

    rail.tables = &tables;
    rail.in = (const char *)call->out + g->part_at[own] * element;
    if (result == RONDO_SUCCESS && node->self < cuda->stage->rails)
        result = rd_stage_run(cuda->stage, RD_CARRIER_RAIL, &rail);
    for (int m = 0; m < node->nnodes && node->nlocal > 1 && result == RONDO_SUCCESS; m++)
        result = m == own ? RONDO_SUCCESS : spread(cuda, call, g, (size_t)m);
    return result;
}

rondo_result_t rd_rail_ranges(rd_cuda_t *cuda, const rd_call_t *call)
{
    ranges_t g = {NULL, NULL, NULL, NULL, NULL};
    rondo_result_t result = ranges_find(cuda, call->ask.count, &g);

    if (result == RONDO_SUCCESS)
        result = gather(cuda, call, &g);
    free(g.memory);
    return result;
}
