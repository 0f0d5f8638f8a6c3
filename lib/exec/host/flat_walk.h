/* What the walks of a flat plan (plan/flat.h) share: where local ends lie, how a contribution is scaled, and, by lines
 * of connections and of boards, how a step's value is made. */
#ifndef RD_EXEC_HOST_FLAT_WALK_H
#define RD_EXEC_HOST_FLAT_WALK_H

#include "exec/host/run.h"

static inline char *rd_flat_address(const rd_run_t *run, const rd_flat_end_t *e)
{
    const char *base = e->where == RD_IN ? run->in : e->where == RD_OUT ? run->out : run->tmp;
    return (char *)(uintptr_t)base + e->offset;
}

/* Returns a contribution as it enters the sum: scaled, behind the scratch, if the operation scales. */
static inline const char *rd_flat_load(const rd_run_t *run, const rd_flat_step_t *q, const char *source)
{
    const rd_plan_t *plan = run->plan;
    char *copy = run->tmp + (size_t)plan->program->ntmp * plan->slice;

    plan->reducer.load(copy, source, q->count, plan->reducer.arg);
    return copy;
}

/* Returns the step's value: the one source where it lies, or the sum of all, which is made in the first destination or,
 * where that is a message, in `sum`. */
static inline const char *rd_flat_value(const rd_run_t *run, const rd_flat_step_t *q, const char *const *src, char *sum)
{
    const rd_plan_t *plan = run->plan;

    if (q->nsrc <= 1)
        return src[0];
    char *first = q->dst[0].where == RD_PEER ? sum : rd_flat_address(run, &q->dst[0]);
    plan->reducer.reduce(first, (const void *const *)src, q->nsrc, q->count, plan->reducer.arg);
    return first;
}

#endif
