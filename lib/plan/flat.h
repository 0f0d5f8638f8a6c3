/* Short plans, resolved ahead.
 *
 * A plan of one pass over short messages is run over and over by latency-bound codes, and there the work
 * of finding out what a step means (chunk numbers, sides, lengths) costs as much as the exchange itself. So the plan
 * keeps its steps with everything worked out but the user's two pointers, and the executor walks that list instead.
 */
#ifndef RD_PLAN_FLAT_H
#define RD_PLAN_FLAT_H

#include "transport/conn.h"
#include "sched/step.h"

#define RD_FLAT_STEPS_MOST 64

typedef struct rd_flat_end {
    rd_where_t where;
    union {
        ptrdiff_t offset; /* RD_IN, RD_OUT: from the user's pointer; RD_TMP: from the scratch */
        rd_send_t *send;  /* RD_PEER destinations */
        rd_recv_t *recv;  /* RD_PEER sources */
    };
} rd_flat_end_t;

typedef struct rd_flat_step {
    int nsrc, ndst;
    uint32_t bytes, lines;
    size_t count; /* elements */
    rd_flat_end_t src[RD_MAX_ENDS], dst[RD_MAX_ENDS];
} rd_flat_step_t;

struct rd_plan;

/* Fills plan->quick where the plan is short; leaves it NULL otherwise, or where there is no memory for it. */
void rd_flat_plan(struct rd_plan *plan);

#endif
