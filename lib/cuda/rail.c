/* Between nodes that have equally many ranks: what can be done inside a node goes by the kernels of one node, and
 * between nodes each rank carries its own part, on the rail of those who have its place elsewhere.
 *
 *   allreduce   reduce-scatter inside, allreduce on the rail, allgather inside
 *   broadcast   scatter inside the root's node, broadcast on the rail, allgather inside
 *   allgather   allgather on the rail into the places, then inside, for each node's blocks
 *
 * What is left over when a vector is cut goes with the last rank's part. All of it stays in the user's buffers. The
 * node's ranks are a communicator inside the communicator: a rd_cuda_t of their own, without an order, for it is used
 * in a call's stream alone, between two parts that have one. By its windows messages go, too, between ranks of a node
 * (messages.c).
 */
#include <stdlib.h>
#include <string.h>

#include "stage.h"

/* Multiprocessors that messages by lines may fill beside those to other nodes. On all ranks. */
static int room_for_lines(const rd_cuda_t *cuda)
{
    int room = (int)cuda->limits.blocks - (int)rd_stage_beside_most(cuda->stage);

    return room < 1 ? 1 : room;
}

rondo_result_t rd_rail_create(rd_cuda_t *cuda, int *apart)
{
    rd_cuda_t *in = cuda->inner = calloc(1, sizeof *in);
    rondo_comm_t comm = cuda->comm;

    if (!in || !(in->peers = calloc((size_t)comm->node.nlocal, sizeof *in->peers)))
        return rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory for a CUDA communicator");
    in->comm = comm;
    in->outer = cuda;
    in->device = cuda->device;
    in->key = cuda->key;
    in->k.rank = comm->node.self;
    in->k.nranks = comm->node.nlocal;
    in->limits = cuda->limits;
    in->limits.nranks = (uint32_t)comm->node.nlocal;
    for (int i = 0; i < comm->node.nlocal; i++)
        in->peers[i] = cuda->peers[comm->node.local[i]];
    for (int i = 0; i < RD_CHOSEN; i++)
        in->cache[i].chosen.launch.kind = RD_K_KINDS;
    in->late_ms = cuda->late_ms;
    rd_window_layout(in, &comm->env, room_for_lines(cuda));
    return rd_import_direct(in, apart);
}

void rd_rail_close(rd_cuda_t *cuda)
{
    if (cuda->inner)
        rd_import_close(cuda->inner);
}

void rd_rail_free(rd_cuda_t *cuda, rd_node_t *node, rd_control_t *const *controls)
{
    rd_cuda_t *in = cuda->inner;

    if (!in)
        return;
    rd_import_close(in);
    rd_window_free(in, node, controls);
    cuda->inner = NULL;
    rd_cuda_programs_free(in);
    free(in->peers);
    free(in);
}

/* Ranks are counted node by node. */
static int in_order(const rd_node_t *node, int nranks)
{
    for (int r = 0; r < nranks; r++) {
        if (node->node_of[r] != r / node->nlocal)
            return 0;
    }
    return 1;
}

/* An average of integers is divided once, when all is summed. */
static int divides(const rd_ask_t *ask)
{
    return ask->op == RONDO_AVG && ask->type < RONDO_FLOAT16;
}

int rd_rail_serves(const rd_cuda_t *cuda, const rd_call_t *call)
{
    const rondo_comm_t comm = cuda->comm;

    if (!cuda->inner || call->tables)
        return 0;
    switch (call->ask.coll) {
    case RD_ALLREDUCE:
        return !divides(&call->ask);
    case RD_BROADCAST:
        return 1;
    case RD_ALLGATHER:
        return in_order(&comm->node, comm->nranks);
    default:
        return 0;
    }
}

/* ---- parts of an operation */

static rondo_result_t inside(rd_cuda_t *cuda, const rd_call_t *call, rd_coll_t coll, int root, size_t count,
                             const void *in, void *out)
{
    rd_call_t part = *call;

    part.ask.coll = coll;
    part.ask.root = root;
    part.ask.count = count;
    part.in = in;
    part.out = out;
    part.aside = 0;
    return count ? rd_cuda_run(cuda->inner, &part) : RONDO_SUCCESS;
}

/* What is scaled has been by now: AVG of fractions and PREMULSUM are sums. */
static rondo_result_t on_rail(rd_cuda_t *cuda, const rd_call_t *call, int root, size_t count, void *own)
{
    rd_call_t part = *call;

    if (part.ask.op == RONDO_AVG || part.ask.op >= RONDO_NUM_OPS)
        part.ask.op = RONDO_SUM;
    part.ask.root = root;
    part.ask.count = count;
    part.in = part.out = own;
    return rd_stage_run(cuda->stage, RD_CARRIER_RAIL, &part);
}

/* A vector in the node's ranks' parts, and what is left over behind them. */
typedef struct cut {
    size_t part, rest; /* elements */
    char *own, *tail;
    int last; /* this rank has the rest, too */
} cut_t;

static cut_t cut(const rd_cuda_t *cuda, const rd_call_t *call)
{
    size_t element = rondo_type_size(call->ask.type), n = (size_t)cuda->inner->k.nranks, part = call->ask.count / n;
    int rank = cuda->inner->k.rank;
    cut_t c = {part, call->ask.count % n, (char *)call->out + (size_t)rank * part * element,
               (char *)call->out + n * part * element, rank == (int)n - 1};

    return c;
}

/* Every rank has its part of the result, the last one the rest: now all have all. */
static rondo_result_t spread(rd_cuda_t *cuda, const rd_call_t *call, const cut_t *c)
{
    rondo_result_t result = inside(cuda, call, RD_ALLGATHER, 0, c->part, c->own, call->out);

    return result == RONDO_SUCCESS
               ? inside(cuda, call, RD_BROADCAST, cuda->inner->k.nranks - 1, c->rest, c->tail, c->tail)
               : result;
}

static rondo_result_t allreduce(rd_cuda_t *cuda, const rd_call_t *call)
{
    const cut_t c = cut(cuda, call);
    size_t at = (size_t)(c.tail - (char *)call->out);
    rondo_result_t result = inside(cuda, call, RD_REDUCE_SCATTER, 0, c.part, call->in, c.own);

    if (result == RONDO_SUCCESS)
        result = inside(cuda, call, RD_ALLREDUCE, 0, c.rest, (const char *)call->in + at, c.tail);
    if (result == RONDO_SUCCESS)
        result = on_rail(cuda, call, 0, c.part + (c.last ? c.rest : 0), c.own);
    return result == RONDO_SUCCESS ? spread(cuda, call, &c) : result;
}

static int place_of(const rd_node_t *node, int rank)
{
    int place = 0;

    for (int r = 0; r < rank; r++)
        place += node->node_of[r] == node->node_of[rank];
    return place;
}

static rondo_result_t broadcast(rd_cuda_t *cuda, const rd_call_t *call)
{
    const rd_node_t *node = &cuda->comm->node;
    int root = call->ask.root, place = place_of(node, root);
    const cut_t c = cut(cuda, call);
    size_t at = (size_t)(c.tail - (char *)call->out);
    rondo_result_t result = RONDO_SUCCESS;

    if (node->node_of[root] == node->node_of[cuda->comm->rank]) {
        result = inside(cuda, call, RD_SCATTER, place, c.part, call->in, c.own);
        if (result == RONDO_SUCCESS)
            result = inside(cuda, call, RD_BROADCAST, place, c.rest, (const char *)call->in + at, c.tail);
    }
    if (result == RONDO_SUCCESS)
        result = on_rail(cuda, call, node->node_of[root], c.part + (c.last ? c.rest : 0), c.own);
    return result == RONDO_SUCCESS ? spread(cuda, call, &c) : result;
}

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

static rondo_result_t allgather(rd_cuda_t *cuda, const rd_call_t *call)
{
    size_t n = (size_t)cuda->inner->k.nranks, rank = (size_t)cuda->inner->k.rank, count = call->ask.count;
    size_t block = count * rondo_type_size(call->ask.type);
    int nodes = cuda->comm->node.nnodes;
    rondo_result_t result = allgather_on_rail(cuda, call);

    for (int m = 0; m < nodes && result == RONDO_SUCCESS; m++) {
        char *all = (char *)call->out + (size_t)m * n * block;
        result = inside(cuda, call, RD_ALLGATHER, 0, count, all + rank * block, all);
    }
    return result;
}

rondo_result_t rd_rail_run(rd_cuda_t *cuda, const rd_call_t *call)
{
    if (call->ask.count == 0)
        return RONDO_SUCCESS;
    switch (call->ask.coll) {
    case RD_ALLREDUCE:
        return allreduce(cuda, call);
    case RD_BROADCAST:
        return broadcast(cuda, call);
    default:
        return allgather(cuda, call);
    }
}
