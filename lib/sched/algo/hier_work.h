/* An algorithm between nodes, with the direct exchange inside them: its steps (hier.c) and its work.
 */
#ifndef RD_SCHED_ALGO_HIER_WORK_H
#define RD_SCHED_ALGO_HIER_WORK_H

#include "sched/algo.h"

/* Emits the schedule of `between` for the nodes, on `rails` rails (0: as many as possible), with the phases inside the
 * nodes before and after it. `each`: every rail has a part of every chunk of `between`; else chunk c is rail c's.
 * Returns NULL if there is no memory. */
rd_steps_t *rd_hier_emit(const rd_sched_args_t *args, const rd_algo_t *between, int rails, int each);
/* Counts the work of `between` on the rails, and that of the direct exchange in the nodes. `trees`: a rail has one
 * tree, and not a part of every chunk. Returns 0, or -1 if there are no counts. */
int rd_hier_work(const rd_count_t *c, const rd_algo_t *between, int trees, rd_work_t *w);

#endif
