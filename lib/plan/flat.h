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
/* Bytes of a message by slots. Measured: an allreduce of 1 KB or more takes longer by the short walk. */
#define RD_FLAT_SLOT_MOST 512

typedef struct rd_flat_end {
    rd_where_t where;
    int32_t peer; /* on a board: the sender */
    union {
        ptrdiff_t offset; /* RD_IN, RD_OUT: from the user's pointer; RD_TMP: from the beginning of scratch memory */
        rd_send_t *send;  /* RD_PEER destinations */
        rd_recv_t *recv;  /* RD_PEER sources */
        char *board;      /* the same by boards: the sender's */
    };
} rd_flat_end_t;

typedef struct rd_flat_step {
    int nsrc, ndst;
    uint32_t bytes, lines;
    size_t count;  /* elements */
    uint64_t tag;  /* of its lines */
    uint32_t at;   /* the message's lines on its sender's board, counted from where the operation begins */
    uint32_t from; /* of messages that are packed there: the first byte */
    rd_flat_end_t src[RD_MAX_ENDS], dst[RD_MAX_ENDS];
} rd_flat_step_t;

struct rd_plan;

/* Fills in plan->flat and plan->flat_by if the plan is short. Leaves plan->flat NULL otherwise, or if there is no
 * memory for it. A plan by lines of boards is always flat, however long: it returns -1 if there is no memory for that,
 * else 0.
 */
int rd_flat_plan(struct rd_plan *plan);

#endif
