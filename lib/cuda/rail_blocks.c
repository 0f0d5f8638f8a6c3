/* Blocks of all ranks by rails: see rail.c. */
#include "rail.h"

#include <stdlib.h>

/* Each node's block of this place, to where it lies in the whole. */
static rondo_result_t allgather_on_rail(rd_cuda_t *cuda, const rd_call_t *call)
{
    size_t n = (size_t)cuda->inner->k.nranks, rank = (size_t)cuda->inner->k.rank, count = call->ask.count;
    size_t nodes = (size_t)cuda->comm->node.nnodes, *counts = malloc(2 * nodes * sizeof *counts);
    const rd_tables_t tables = {NULL, NULL, counts, counts + nodes};
    rd_call_t rail = *call;

    if (!counts)
        return rd_error(&cuda->comm->who, RONDO_ERR_NO_MEMORY, "no memory for an operation of %zu nodes", nodes);
    for (size_t m = 0; m < nodes; m++) {
        counts[m] = count;
        counts[nodes + m] = (m * n + rank) * count;
    }
    rail.tables = &tables;
    rail.ask.count = count * nodes;
    rondo_result_t result = rd_stage_run(cuda->stage, RD_CARRIER_RAIL, &rail);
    free(counts);
    return result;
}

rondo_result_t rd_rail_allgather(rd_cuda_t *cuda, const rd_call_t *call)
{
    size_t n = (size_t)cuda->inner->k.nranks, rank = (size_t)cuda->inner->k.rank, count = call->ask.count;
    size_t block = count * rondo_type_size(call->ask.type);
    int nodes = cuda->comm->node.nnodes;
    rondo_result_t result = allgather_on_rail(cuda, call);

    for (int m = 0; m < nodes && result == RONDO_SUCCESS; m++) {
        char *all = (char *)call->out + (size_t)m * n * block;
        result = rd_rail_inside(cuda, call, RD_ALLGATHER, 0, count, all + rank * block, all);
    }
    return result;
}
