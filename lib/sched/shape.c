/* Assigns nodes, local ranks and rails: see shape.h. */
#include <stdbool.h>
#include <stdlib.h>

#include "sched/list.h"
#include "sched/shape.h"

static bool rooted(rd_coll_t coll)
{
    return coll == RD_BROADCAST || coll == RD_REDUCE;
}

/* Returns the number of ranks on each node, which the caller frees, or NULL if there is no memory. */
static int *sizes(const rd_shape_t *shape)
{
    int *size = calloc((size_t)shape->nnodes, sizeof(*size));

    for (int r = 0; size && r < shape->nranks; r++)
        size[shape->node[r]]++;
    return size;
}

int rd_nodes_sizes(const rd_shape_t *shape, int *least, int *most)
{
    int *size = sizes(shape);

    if (!size)
        return -1;
    *least = *most = size[0];
    for (int v = 1; v < shape->nnodes; v++) {
        *least = size[v] < *least ? size[v] : *least;
        *most = size[v] > *most ? size[v] : *most;
    }
    free(size);
    return 0;
}

/* Assigns every rank its local rank. `before` is the number of ranks on the root's node that come before the root. */
static void number_ranks(rd_nodes_t *g, const rd_sched_args_t *args, const int *size, int *seen, int before)
{
    const int *node = args->shape->node;

    for (int r = 0; r < args->shape->nranks; r++) {
        int v = node[r], local_rank = seen[v]++;

        if (rooted(args->coll) && v == node[args->root])
            local_rank = rd_mod(local_rank - before, size[v]);
        if (local_rank < g->rails)
            g->rail[v * g->rails + local_rank] = r;
        if (v == g->node)
            g->local[local_rank] = r;
        if (r == args->rank)
            g->local_rank = local_rank;
    }
}

rd_nodes_t *rd_nodes_create(const rd_sched_args_t *args, int rails)
{
    const rd_shape_t *shape = args->shape;
    int *size = sizes(shape), *seen = calloc((size_t)shape->nnodes, sizeof(*seen)), least, before = 0;
    rd_nodes_t *g = NULL;

    if (!size || !seen)
        goto free_counts;
    least = size[0];
    for (int v = 1; v < shape->nnodes; v++)
        least = size[v] < least ? size[v] : least;
    rails = rails > 0 && rails < least ? rails : least;
    int locals = size[shape->node[args->rank]];
    g = malloc(sizeof(*g) + ((size_t)shape->nnodes * (size_t)rails + (size_t)locals) * sizeof(int));
    if (!g)
        goto free_counts;
    *g = (rd_nodes_t){shape->nnodes, rails, locals, shape->node[args->rank], 0, (int *)(g + 1), NULL};
    g->local = g->rail + shape->nnodes * rails;
    for (int r = 0; r < args->root; r++)
        before += shape->node[r] == shape->node[args->root];
    number_ranks(g, args, size, seen, before);
free_counts:
    free(seen);
    free(size);
    return g;
}
