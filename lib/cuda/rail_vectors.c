/* Vectors by rails: each rank of a node that is of one has a part, and what is left over goes with the last one's. See
 * rail.c. */
#include "rail.h"

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

/* Inside a node, parts of its ranks that are of a rail: all of them, or tables say it. */
static rondo_result_t inside(rd_cuda_t *cuda, const rd_call_t *call, rd_coll_t coll, int root, size_t count,
                             const void *in, void *out)
{
    const size_t none[RD_KRANKS] = {0};
    size_t parts[RD_KRANKS] = {0}, one[RD_KRANKS] = {0};
    int rails = cuda->stage->rails, rank = cuda->inner->k.rank;
    rd_tables_t tables = {NULL, NULL, NULL, NULL};
    rd_call_t part = *call;

    if (rails == cuda->inner->k.nranks)
        return rd_rail_inside(cuda, call, coll, root, count, in, out);
    for (int p = 0; p < rails; p++)
        parts[p] = count;
    one[root] = parts[rank];
    if (coll == RD_REDUCE_SCATTER)
        tables.in_counts = parts;
    else if (coll == RD_ALLGATHER)
        tables.out_counts = parts;
    else /* RD_SCATTER */
        tables = (rd_tables_t){rank == root ? parts : none, NULL, one, NULL};
    part.ask.coll = coll == RD_SCATTER ? RD_ALLTOALL : coll;
    part.tables = &tables;
    part.in = in;
    part.out = out;
    part.aside = 0;
    return rd_cuda_run(cuda->inner, &part);
}

/* Every rank has its part of the result, the last one the rest: now all have all. */
static rondo_result_t spread(rd_cuda_t *cuda, const rd_call_t *call, const cut_t *c)
{
    rondo_result_t result = inside(cuda, call, RD_ALLGATHER, 0, c->part, c->own, call->out);

    return result == RONDO_SUCCESS
               ? rd_rail_inside(cuda, call, RD_BROADCAST, cuda->stage->rails - 1, c->rest, c->tail, c->tail)
               : result;
}

rondo_result_t rd_rail_allreduce(rd_cuda_t *cuda, const rd_call_t *call)
{
    const cut_t c = cut(cuda, call);
    size_t at = (size_t)(c.tail - (char *)call->out);
    rondo_result_t result = inside(cuda, call, RD_REDUCE_SCATTER, 0, c.part, call->in, c.own);

    if (result == RONDO_SUCCESS)
        result = rd_rail_inside(cuda, call, RD_ALLREDUCE, 0, c.rest, (const char *)call->in + at, c.tail);
    if (result == RONDO_SUCCESS)
        result = rd_rail_between(cuda, call, 0, c.mine, c.own, c.own);
    return result == RONDO_SUCCESS ? spread(cuda, call, &c) : result;
}

rondo_result_t rd_rail_broadcast(rd_cuda_t *cuda, const rd_call_t *call)
{
    const rd_node_t *node = &cuda->comm->node;
    int root = call->ask.root, place = rd_rail_place(node, root);
    const cut_t c = cut(cuda, call);
    size_t at = (size_t)(c.tail - (char *)call->out);
    rondo_result_t result = RONDO_SUCCESS;

    if (node->node_of[root] == node->node_of[cuda->comm->rank]) {
        result = inside(cuda, call, RD_SCATTER, place, c.part, call->in, c.own);
        if (result == RONDO_SUCCESS)
            result = rd_rail_inside(cuda, call, RD_BROADCAST, place, c.rest, (const char *)call->in + at, c.tail);
    }
    if (result == RONDO_SUCCESS)
        result = rd_rail_between(cuda, call, node->node_of[root], c.mine, c.own, c.own);
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
    int root = call->ask.root, place = rd_rail_place(node, root), rests = cuda->inner->k.rank == place;
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
