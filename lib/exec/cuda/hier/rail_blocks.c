/* Blocks of all ranks by rails: see rail.c. */
#include "exec/cuda/hier/rail.h"

#include <stdlib.h>

/* ---- allgather */

/* How long each rank's block is and where it lies, node by node; and those of this rank's rail. Elements. */
typedef struct places {
    size_t *count, *at, *rail_count, *rail_at;
    size_t *seen; /* ranks of each node; the memory of all */
} places_t;

static rondo_result_t places_find(const rd_cuda_t *cuda, const rd_call_t *call, places_t *p)
{
    const rd_node_t *node = cuda->team->node;
    const size_t *counts = call->tables ? call->tables->out_counts : NULL;
    const size_t *displs = call->tables ? call->tables->out_displs : NULL;
    size_t ranks = (size_t)cuda->team->nranks, nodes = (size_t)node->nnodes, sum = 0;
    size_t *seen = calloc(2 * ranks + 3 * nodes, sizeof *seen);

    if (!seen)
        return rd_error(cuda->team->who, RONDO_ERR_NO_MEMORY, "no memory for an operation of %zu ranks", ranks);
    *p = (places_t){seen + 3 * nodes, seen + 3 * nodes + ranks, seen + nodes, seen + 2 * nodes, seen};
    for (size_t r = 0; r < ranks; r++) {
        size_t m = (size_t)node->node_of[r], place = seen[m]++, i = m * (size_t)node->nlocal + place;
        p->count[i] = counts ? counts[r] : call->ask.count;
        p->at[i] = displs ? displs[r] : sum;
        sum += p->count[i];
        if (place == (size_t)node->self) {
            p->rail_count[m] = p->count[i];
            p->rail_at[m] = p->at[i];
        }
    }
    return RONDO_SUCCESS;
}

/* Blocks of node m, to its places here. */
static rondo_result_t allgather_of(rd_cuda_t *cuda, const rd_call_t *call, const places_t *p, size_t m)
{
    size_t n = (size_t)cuda->inner->k.nranks, count = call->ask.count, element = rondo_type_size(call->ask.type);
    const size_t *counts = p->count + m * n, *at = p->at + m * n;
    const rd_tables_t tables = {NULL, NULL, counts, at};
    const char *own = (char *)call->out + p->rail_at[m] * element;
    rd_call_t part = *call;

    if (!call->tables && at[n - 1] == at[0] + (n - 1) * count)
        return rd_rail_inside(cuda, call, RD_ALLGATHER, 0, count, own, (char *)call->out + at[0] * element);
    part.tables = &tables;
    part.in = own;
    return rd_cuda_run(cuda->inner, &part);
}

rondo_result_t rd_rail_allgather(rd_cuda_t *cuda, const rd_call_t *call)
{
    rd_call_t rail = *call;
    places_t p = {NULL, NULL, NULL, NULL, NULL};
    rondo_result_t result = places_find(cuda, call, &p);

    if (result != RONDO_SUCCESS)
        return result;
    const rd_tables_t tables = {NULL, NULL, p.rail_count, p.rail_at};
    rail.tables = &tables;
    result = rd_stage_run(cuda->stage, RD_CARRIER_RAIL, &rail);
    for (int m = 0; m < cuda->team->node->nnodes && result == RONDO_SUCCESS; m++)
        result = allgather_of(cuda, call, &p, (size_t)m);
    free(p.seen);
    return result;
}

/* ---- reduce-scatter */

/* The scratch holds one of each node. */
size_t rd_rail_piece(const rd_cuda_t *cuda, const rd_call_t *call)
{
    size_t room = rd_window_scratch_bytes(cuda->inner) / (size_t)cuda->team->node->nnodes;

    room = room / 128 * 128 / rondo_type_size(call->ask.type);
    return call->ask.count < room ? call->ask.count : room;
}

/* Elements `at` on of every block. */
static rondo_result_t reduce_scatter_piece(rd_cuda_t *cuda, const rd_call_t *call, size_t at, size_t count)
{
    size_t element = rondo_type_size(call->ask.type), n = (size_t)cuda->inner->k.nranks;
    size_t block = call->ask.count * element, bytes = count * element;
    char *scratch = rd_window_scratch(cuda->inner);
    rondo_result_t result = RONDO_SUCCESS;
    rd_call_t part = *call;

    part.ask.count = count;
    part.in = (const char *)call->in + at * element;
    part.out = scratch;
    for (int m = 0; m < cuda->team->node->nnodes && result == RONDO_SUCCESS; m++) {
        result = rd_cuda_reduce_scatter(cuda->inner, &part, block - bytes);
        part.in = (const char *)part.in + n * block;
        part.out = (char *)part.out + bytes;
    }
    return result == RONDO_SUCCESS ? rd_rail_between(cuda, call, 0, count, scratch, (char *)call->out + at * element)
                                   : result;
}

/* In place a piece of the output lies over the same piece of one of the input's blocks, which has been read. */
rondo_result_t rd_rail_reduce_scatter(rd_cuda_t *cuda, const rd_call_t *call)
{
    return rd_rail_pieces(cuda, call, rd_rail_piece(cuda, call), reduce_scatter_piece);
}

/* ---- all-to-all, gather and scatter */

/* Rows of a table of n ranks: how much is sent to each and from where, how much comes from each and where to. */
#define ROWS 4

static rd_tables_t tables_of(const size_t *rows, size_t n)
{
    return (rd_tables_t){rows, rows + n, rows + 2 * n, rows + 3 * n};
}

/* Does this rank, where nothing is tabled, send rank r a block (side 0), or get one? */
static int exchanges(const rd_cuda_t *cuda, const rd_ask_t *ask, int side, size_t r)
{
    int one = ask->coll == (side ? RD_SCATTER : RD_GATHER); /* of each rank: the root's */

    return ask->coll == RD_ALLTOALL || ask->root == (one ? (int)r : cuda->team->rank);
}

/* Of all ranks, whatever the call has. */
static void rows_fill(const rd_cuda_t *cuda, size_t *rows, size_t n, const rd_call_t *call)
{
    const rd_tables_t none = {NULL, NULL, NULL, NULL}, *t = call->tables ? call->tables : &none;
    const size_t *const counts[2] = {t->in_counts, t->out_counts}, *const displs[2] = {t->in_displs, t->out_displs};

    for (int side = 0; side < 2; side++) {
        size_t *count = rows + 2 * (size_t)side * n, *at = count + n, sum = 0;
        for (size_t r = 0; r < n; r++) {
            size_t some = exchanges(cuda, &call->ask, side, r) ? call->ask.count : 0;
            count[r] = counts[side] ? counts[side][r] : some;
            at[r] = displs[side] ? displs[side][r] : sum;
            sum += count[r];
        }
    }
}

/* The node's own ranks' entries, which go elsewhere. */
static void rows_take(size_t *rows, size_t n, const rd_node_t *node, size_t *near)
{
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < node->nlocal; i++) {
            size_t *entry = &rows[(size_t)row * n + (size_t)node->local[i]];
            near[row * node->nlocal + i] = *entry;
            *entry = row % 2 ? *entry : 0;
        }
}

/* Ranks that lie side by side find their blocks so, too, and then need no table. */
static rondo_result_t exchange_inside(rd_cuda_t *cuda, const rd_call_t *call, const rd_tables_t *tables)
{
    const rd_node_t *node = cuda->team->node;
    size_t element = rondo_type_size(call->ask.type);
    int root = call->ask.root;
    rd_call_t part = *call;

    if (call->ask.coll != RD_ALLTOALL && node->node_of[root] != node->node_of[cuda->team->rank])
        return RONDO_SUCCESS;
    if (!call->tables && node->local[node->nlocal - 1] == node->local[0] + node->nlocal - 1)
        return rd_rail_inside(cuda, call, call->ask.coll, rd_rail_place(node, root), call->ask.count,
                              (const char *)call->in + tables->in_displs[0] * element,
                              (char *)call->out + tables->out_displs[0] * element);
    part.ask.coll = RD_ALLTOALL;
    part.tables = tables;
    return rd_cuda_run(cuda->inner, &part);
}

/* Between nodes first: should ranks differ, RONDO_CHECK finds it there, as far as this rank has a part in that. */
rondo_result_t rd_rail_exchange(rd_cuda_t *cuda, const rd_call_t *call)
{
    size_t n = (size_t)cuda->team->nranks, local = (size_t)cuda->inner->k.nranks;
    size_t *rows = malloc(ROWS * (n + local) * sizeof *rows), *near = rows + ROWS * n;
    const rd_tables_t others = tables_of(rows, n), own = tables_of(near, local);
    rd_call_t part = *call;

    if (!rows)
        return rd_error(cuda->team->who, RONDO_ERR_NO_MEMORY, "no memory for an operation of %zu ranks", n);
    rows_fill(cuda, rows, n, call);
    rows_take(rows, n, cuda->team->node, near);
    part.ask.coll = RD_ALLTOALL;
    part.tables = &others;
    rondo_result_t result = rd_stage_run(cuda->stage, RD_CARRIER_ALL, &part);
    if (result == RONDO_SUCCESS)
        result = exchange_inside(cuda, call, &own);
    free(rows);
    return result;
}
