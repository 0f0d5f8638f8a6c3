/* The chunk map: from chunk numbers to bytes of the user's buffers. Uniform where all blocks are alike, by table for
 * the v-operations.
 */
#ifndef RD_PLAN_CHUNK_MAP_H
#define RD_PLAN_CHUNK_MAP_H

#include "plan/plan.h"

/* Fills plan->in and plan->out from plan->ask, plan->element and the program's number of chunks. */
void rd_map_uniform(rd_plan_t *plan, int rank, int nranks);
/* allgatherv: `out` tables, the input is one block. reduce_scatterv: `in` tables, the output is one block. Else both.
 */
rondo_result_t rd_map_tables(rd_plan_t *plan, const rd_tables_t *t, int n, rd_log_ctx_t *ctx);
/* Was the plan made for these very counts and displacements? */
int rd_map_same(const rd_plan_t *plan, const rd_tables_t *t, int n);

#endif
