/* What a plan may send from the user's memory: between nodes a message need not be copied into a slot before it is sent
 * if the bytes stay where they are until the operation is over. The input does, where the output lies elsewhere; the
 * output, and an input that shares its memory, where no later step writes that chunk.
 */
#ifndef RD_PLAN_ZCOPY_H
#define RD_PLAN_ZCOPY_H

#define RD_ZCOPY_IN 1 /* in place too */
#define RD_ZCOPY_OUT 2

struct rd_plan;

/* Fills plan->lends; leaves it NULL where there is no memory for it, or where it would take long to find out. */
void rd_zcopy_plan(struct rd_plan *plan);
/* Nonzero: input and output may share memory. Chunk offsets count from `in` and `out`. */
int rd_zcopy_overlap(const struct rd_plan *plan, const char *in, const char *out);

#endif
