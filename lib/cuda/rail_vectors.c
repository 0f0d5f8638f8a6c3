/* Vectors by rails: each rank of a node has a part, and what is left over goes with the last rank's. See rail.c. */
#include "rail.h"

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
    rondo_result_t result = rd_rail_inside(cuda, call, RD_ALLGATHER, 0, c->part, c->own, call->out);

    return result == RONDO_SUCCESS
               ? rd_rail_inside(cuda, call, RD_BROADCAST, cuda->inner->k.nranks - 1, c->rest, c->tail, c->tail)
               : result;
}

rondo_result_t rd_rail_allreduce(rd_cuda_t *cuda, const rd_call_t *call)
{
    const cut_t c = cut(cuda, call);
    size_t at = (size_t)(c.tail - (char *)call->out);
    rondo_result_t result = rd_rail_inside(cuda, call, RD_REDUCE_SCATTER, 0, c.part, call->in, c.own);

    if (result == RONDO_SUCCESS)
        result = rd_rail_inside(cuda, call, RD_ALLREDUCE, 0, c.rest, (const char *)call->in + at, c.tail);
    if (result == RONDO_SUCCESS)
        result = rd_rail_between(cuda, call, 0, c.part + (c.last ? c.rest : 0), c.own, c.own);
    return result == RONDO_SUCCESS ? spread(cuda, call, &c) : result;
}

static int place_of(const rd_node_t *node, int rank)
{
    int place = 0;

    for (int r = 0; r < rank; r++)
        place += node->node_of[r] == node->node_of[rank];
    return place;
}

rondo_result_t rd_rail_broadcast(rd_cuda_t *cuda, const rd_call_t *call)
{
    const rd_node_t *node = &cuda->comm->node;
    int root = call->ask.root, place = place_of(node, root);
    const cut_t c = cut(cuda, call);
    size_t at = (size_t)(c.tail - (char *)call->out);
    rondo_result_t result = RONDO_SUCCESS;

    if (node->node_of[root] == node->node_of[cuda->comm->rank]) {
        result = rd_rail_inside(cuda, call, RD_SCATTER, place, c.part, call->in, c.own);
        if (result == RONDO_SUCCESS)
            result = rd_rail_inside(cuda, call, RD_BROADCAST, place, c.rest, (const char *)call->in + at, c.tail);
    }
    if (result == RONDO_SUCCESS)
        result = rd_rail_between(cuda, call, node->node_of[root], c.part + (c.last ? c.rest : 0), c.own, c.own);
    return result == RONDO_SUCCESS ? spread(cuda, call, &c) : result;
}

/* ---- reduce, through scratch */

#define REST 256 /* bytes of what is left over, at most: less than an element of each rank */

_Static_assert(RD_KRANKS * 16 <= REST, "elements have 16 bytes at most");

/* Nothing but the root's output is written, so parts lie in scratch; of the root's place with what is left over. */
static rondo_result_t reduce_piece(rd_cuda_t *cuda, const rd_call_t *call, size_t first, size_t count)
{
    const rd_node_t *node = &cuda->comm->node;
    size_t element = rondo_type_size(call->ask.type), n = (size_t)cuda->inner->k.nranks, room;
    size_t part = count / n, rest = count % n, at = n * part * element;
    int root = call->ask.root, place = place_of(node, root), rests = cuda->inner->k.rank == place;
    char *own = rd_window_scratch(cuda->inner, &room), *tail = own + part * element;
    char *out = root == cuda->comm->rank ? (char *)call->out + first * element : NULL;
    const char *in = (const char *)call->in + first * element;
    rondo_result_t result = rd_rail_inside(cuda, call, RD_REDUCE_SCATTER, 0, part, in, own);

    if (result == RONDO_SUCCESS)
        result = rd_rail_inside(cuda, call, RD_REDUCE, place, rest, in + at, rests ? tail : NULL);
    if (result == RONDO_SUCCESS)
        result = rd_rail_between(cuda, call, node->node_of[root], part + (rests ? rest : 0), own, own);
    if (result == RONDO_SUCCESS && node->node_of[root] == node->node_of[cuda->comm->rank])
        result = rd_rail_inside(cuda, call, RD_GATHER, place, part, own, out);
    return result == RONDO_SUCCESS && out ? rd_cuda_copy(cuda, out + at, tail, rest * element, call->stream) : result;
}

size_t rd_rail_reduce_piece(const rd_cuda_t *cuda, const rd_call_t *call)
{
    size_t room;

    (void)rd_window_scratch(cuda->inner, &room);
    return (room - REST) / 128 * 128 / rondo_type_size(call->ask.type) * (size_t)cuda->inner->k.nranks;
}

rondo_result_t rd_rail_reduce(rd_cuda_t *cuda, const rd_call_t *call)
{
    return rd_rail_pieces(cuda, call, rd_rail_reduce_piece(cuda, call), reduce_piece);
}
