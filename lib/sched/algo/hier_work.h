/* The work of an algorithm between nodes, with the direct exchange inside them (hier.c). */
#ifndef RD_SCHED_ALGO_HIER_WORK_H
#define RD_SCHED_ALGO_HIER_WORK_H

#include "sched/algo.h"

/* Counts the work of `between` on the rails, and that of the direct exchange in the nodes. `trees`: a rail has one
 * tree, and not a part of every chunk. Returns 0, or -1 if there are no counts. */
int rd_hier_work(const rd_count_t *c, const rd_algo_t *between, int trees, rd_work_t *w);

#endif
