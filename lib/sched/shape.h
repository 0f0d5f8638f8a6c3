/* The nodes for a hierarchical schedule: which rank of each node serves which rail. Rail j joins local ranks j
 * of all nodes; data crosses between nodes along the rails alone.
 */
#ifndef RD_SCHED_SHAPE_H
#define RD_SCHED_SHAPE_H

#include "sched/program.h"

typedef struct rd_nodes {
    int nodes;      /* number of nodes */
    int rails;      /* at most as many as the smallest node has ranks */
    int locals;     /* ranks on this rank's node */
    int node;       /* this rank's node */
    int local_rank; /* its number among them, in order of ranks; on a root's node counted from the root on */
    int *rail;      /* [node * rails + j] */
    int *local;     /* [local rank], of this node */
    /* the arrays follow in the same allocation */
} rd_nodes_t;

/* Returns the nodes with `rails` rails, or with as many as possible if `rails` is 0; NULL if there is no memory. The
 * caller frees them by free(). */
rd_nodes_t *rd_nodes_create(const rd_sched_args_t *args, int rails);

/* Finds the number of ranks on the smallest and on the largest node. Returns 0, or -1 if there is no memory. */
int rd_nodes_sizes(const rd_shape_t *shape, int *least, int *most);

#endif
