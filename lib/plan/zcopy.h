/* Zero-copy sends from the user's memory: between nodes a message need not be copied into a slot before it is sent if
 * its bytes do not change until the operation is over. The input does not change if the output lies elsewhere; the
 * output, and an input that shares its memory, do not if no later step writes that chunk.
 */
#ifndef RD_PLAN_ZCOPY_H
#define RD_PLAN_ZCOPY_H

#include <stdbool.h>

#define RD_ZCOPY_IN 1 /* in place too */
#define RD_ZCOPY_OUT 2

struct rd_plan;

/* Fills in plan->zcopy. Leaves it NULL if there is no memory for it, or if it would take too long to compute. */
void rd_zcopy_plan(struct rd_plan *plan);
/* Returns true if input and output may share memory. Chunk offsets count from `in` and `out`. */
bool rd_zcopy_overlap(const struct rd_plan *plan, const char *in, const char *out);

#endif
