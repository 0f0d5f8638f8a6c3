/* Flat plans: the steps of short plans, resolved in advance.
 *
 * Latency-bound codes run a plan of one pass over short messages again and again, and interpreting a step (chunk
 * numbers, sides, lengths) costs as much there as the exchange itself. So the plan keeps its steps with everything
 * resolved but the user's two pointers, and the executor walks that list instead.
 */
#ifndef RD_PLAN_FLAT_H
#define RD_PLAN_FLAT_H

#include "transport/conn.h"
#include "sched/step.h"

#define RD_FLAT_STEPS_MOST 64

typedef struct rd_flat_end {
    rd_where_t where;
    union {
        ptrdiff_t offset; /* RD_IN, RD_OUT: from the user's pointer; RD_TMP: from the beginning of scratch memory */
        rd_send_t *send;  /* RD_PEER destinations */
        rd_recv_t *recv;  /* RD_PEER sources */
    };
} rd_flat_end_t;

typedef struct rd_flat_step {
    int nsrc, ndst;
    uint32_t bytes, lines;
    size_t count; /* elements */
    uint64_t tag; /* of its lines */
    rd_flat_end_t src[RD_MAX_ENDS], dst[RD_MAX_ENDS];
} rd_flat_step_t;

struct rd_plan;

/* Fills in plan->flat if the plan is short. Leaves it NULL otherwise, or if there is no memory for it. */
void rd_flat_plan(struct rd_plan *plan);

#endif
