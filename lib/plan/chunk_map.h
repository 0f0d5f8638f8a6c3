/* The chunk map translates chunk numbers into bytes of the user's buffers. It is uniform where all blocks are alike,
 * and uses tables for the v-operations.
 */
#ifndef RD_PLAN_CHUNK_MAP_H
#define RD_PLAN_CHUNK_MAP_H

#include <stdbool.h>

#include "plan/plan.h"

/* Fills plan->in and plan->out from plan->desc, plan->element and the program's number of chunks. */
void rd_map_uniform(rd_plan_t *plan, int rank, int nranks);
/* The same from tables. allgatherv has tables for `out`, and its input is one block; reduce_scatterv has tables for
 * `in`, and its output is one block; the other operations have both. */
rondo_result_t rd_map_tables(rd_plan_t *plan, const rd_tables_t *t, int n, rd_log_ctx_t *ctx);
/* Return bytes for the cost model, in elements of the partial results: of the vector, or of the blocks of all ranks;
 * and of the longest block of a v-operation whose counts every rank knows, else 0. */
size_t rd_map_whole(const rd_plan_t *plan, const rd_tables_t *t, int n);
size_t rd_map_longest(const rd_plan_t *plan, const rd_tables_t *t, int n);
/* Returns true if the plan was made for exactly these counts and displacements. */
bool rd_map_same(const rd_plan_t *plan, const rd_tables_t *t, int n);

#endif
