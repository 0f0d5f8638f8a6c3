/* Vectors by rails: each rank of a node that is of one has a part, and what is left over goes with the last one's. See
 * rail.c. */
#include "exec/cuda/hier/rail.h"

/* A vector in the parts of rails, and what is left over behind them. */
typedef struct cut {
    size_t part, rest; /* elements */
    char *own, *tail;
    size_t mine; /* elements of this rank's part and, if it is the last rail's, of the rest */
} cut_t;

static cut_t cut(const rd_cuda_t *cuda, const rd_call_t *call)
{
    size_t element = rondo_type_size(call->ask.type), n = (size_t)cuda->stage->rails, part = call->ask.count / n;
    size_t place = (size_t)cuda->inner->k.rank;
    cut_t c = {part, call->ask.count % n, (char *)call->out + place * part * element,
               (char *)call->out + n * part * element, place < n ? part : 0};

    c.mine += place == n - 1 ? c.rest : 0;
    return c;
}

/* Now all are to have all. */
static rondo_result_t spread(rd_cuda_t *cuda, const rd_call_t *call, const cut_t *c)
{
    if (rd_rail_extra(cuda))
        return rd_rail_spread(cuda, call, c->part, c->rest, call->out);
    rondo_result_t result = rd_rail_inside(cuda, call, RD_ALLGATHER, 0, c->part, c->own, call->out);
    return result == RONDO_SUCCESS
               ? rd_rail_inside(cuda, call, RD_BROADCAST, cuda->stage->rails - 1, c->rest, c->tail, c->tail)
               : result;
}

rondo_result_t rd_rail_allreduce(rd_cuda_t *cuda, const rd_call_t *call)
{
    const cut_t c = cut(cuda, call);
    rondo_result_t result = rd_rail_sum(cuda, call, c.part, c.rest, cuda->stage->rails - 1, call->in, c.own);

    if (result == RONDO_SUCCESS)
        result = rd_rail_between(cuda, call, 0, c.mine, c.own, c.own);
    return result == RONDO_SUCCESS ? spread(cuda, call, &c) : result;
}

/* On the root's node: parts, or if there are ranks without a rail, everything to all. */
static rondo_result_t broadcast_in(rd_cuda_t *cuda, const rd_call_t *call, const cut_t *c)
{
    int place = rd_rail_place(cuda->team->node, call->ask.root);
    size_t at = (size_t)(c->tail - (char *)call->out);

    if (rd_rail_extra(cuda))
        return rd_rail_inside(cuda, call, RD_BROADCAST, place, call->ask.count, call->in, call->out);
    rondo_result_t result = rd_rail_inside(cuda, call, RD_SCATTER, place, c->part, call->in, c->own);
    return result == RONDO_SUCCESS
               ? rd_rail_inside(cuda, call, RD_BROADCAST, place, c->rest, (const char *)call->in + at, c->tail)
               : result;
}

rondo_result_t rd_rail_broadcast(rd_cuda_t *cuda, const rd_call_t *call)
{
    const int *node_of = cuda->team->node->node_of;
    int node = node_of[call->ask.root], here = node == node_of[cuda->team->rank];
    const cut_t c = cut(cuda, call);
    rondo_result_t result = here ? broadcast_in(cuda, call, &c) : RONDO_SUCCESS;

    if (result == RONDO_SUCCESS)
        result = rd_rail_between(cuda, call, node, c.mine, c.own, c.own);
    return result == RONDO_SUCCESS && !(here && rd_rail_extra(cuda)) ? spread(cuda, call, &c) : result;
}

/* ---- reduce, through scratch */

/* On the root's node, where nodes differ. */
static rondo_result_t deliver(rd_cuda_t *cuda, const rd_call_t *call, int place, size_t count, const void *own,
                              void *out)
{
    size_t begins[RD_KRANKS + 1];

    for (int i = 0; i <= cuda->inner->k.nranks; i++)
        begins[i] = i > place ? count : 0;
    return rd_rail_deliver(cuda, call, count, begins, own, out);
}

/* On the root's node, where nodes are alike: what is left over is at the root. */
static rondo_result_t gather(rd_cuda_t *cuda, const rd_call_t *call, int place, size_t count, const char *own,
                             char *out)
{
    size_t element = rondo_type_size(call->ask.type), n = (size_t)cuda->inner->k.nranks, part = count / n;
    rondo_result_t result = rd_rail_inside(cuda, call, RD_GATHER, place, part, own, out);

    return result == RONDO_SUCCESS && out
               ? rd_cuda_copy(cuda, out + n * part * element, own + part * element, count % n * element, call->stream)
               : result;
}

/* Nothing but the root's output is written, so parts lie in scratch. */
static rondo_result_t reduce_piece(rd_cuda_t *cuda, const rd_call_t *call, size_t first, size_t count)
{
    const rd_node_t *node = cuda->team->node;
    size_t element = rondo_type_size(call->ask.type), n = (size_t)cuda->stage->rails;
    int root = call->ask.root, place = rd_rail_place(node, root), alike = rd_rail_alike(cuda);
    int rests = alike ? place : cuda->stage->rails - 1;
    size_t mine = node->self < cuda->stage->rails ? count / n + (node->self == rests ? count % n : 0) : 0;
    char *own = rd_window_scratch(cuda->inner), *out = NULL;
    rondo_result_t result =
        rd_rail_sum(cuda, call, count / n, count % n, rests, (const char *)call->in + first * element, own);

    if (root == cuda->team->rank)
        out = (char *)call->out + first * element;
    if (result == RONDO_SUCCESS)
        result = rd_rail_between(cuda, call, node->node_of[root], mine, own, own);
    if (result != RONDO_SUCCESS || node->node_of[root] != node->node_of[cuda->team->rank])
        return result;
    return alike ? gather(cuda, call, place, count, own, out) : deliver(cuda, call, place, count, own, out);
}

size_t rd_rail_reduce_piece(const rd_cuda_t *cuda, const rd_call_t *call)
{
    size_t room = rd_window_scratch_bytes(cuda->inner);

    return (room - RD_RAIL_REST) / 128 * 128 / rondo_type_size(call->ask.type) * (size_t)cuda->stage->rails;
}

rondo_result_t rd_rail_reduce(rd_cuda_t *cuda, const rd_call_t *call)
{
    return rd_rail_pieces(cuda, call, rd_rail_reduce_piece(cuda, call), reduce_piece);
}
