/* The nodes as a hierarchical schedule sees them: which rank of each node serves which rail. Rail j joins the ranks in
 * place j of all nodes; what crosses between nodes goes along the rails alone.
 */
#ifndef RD_SCHED_SHAPE_H
#define RD_SCHED_SHAPE_H

#include "sched/program.h"

typedef struct rd_nodes {
    int nodes;  /* how many */
    int rails;  /* at most as many as the smallest node has ranks */
    int locals; /* ranks on this rank's node */
    int node;   /* this rank's */
    int place;  /* of this rank on its node: ranks in order; of a rooted operation, on the root's node from the root on
                 */
    int *rail;  /* [node * rails + j] */
    int *local; /* [place], of this node */
    /* follows in the same allocation */
} rd_nodes_t;

/* `rails`: as many as wanted, 0: all there can be. NULL: no memory. Freed by free(). */
rd_nodes_t *rd_nodes_create(const rd_sched_args_t *args, int rails);

/* Ranks on the smallest and on the largest node; -1: no memory. */
int rd_nodes_sizes(const rd_shape_t *shape, int *least, int *most);

#endif
