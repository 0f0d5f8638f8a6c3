/* The executor for flat plans: see plan/flat.h. */
#ifndef RD_EXEC_HOST_RUN_FLAT_H
#define RD_EXEC_HOST_RUN_FLAT_H

#include <stdbool.h>

#include "exec/host/run.h"
#include "transport/shm/ll.h"

/* Like rd_run_advance, for a run whose plan is flat. But it does not notice a message of another length than is
 * expected, which a caller that polls for a short time need not know. */
bool rd_flat_advance(rd_run_t *run);
/* Ends the run if such a message has come. The run is open. */
void rd_flat_check(rd_run_t *run);

/* Sends or takes what a plan of one message is about, without a run. Returns false if there is no space for it yet, or
 * it has not come; then the user's buffer may hold a part of it. */
static inline bool rd_flat_message(const rd_plan_t *plan, const void *in, void *out)
{
    const rd_flat_step_t *q = plan->flat;

    if (q->dst[0].where == RD_PEER) {
        if (!rd_ll_may_send(q->dst[0].send, q->lines))
            return false;
        rd_ll_send(q->dst[0].send, in, q->bytes, q->tag);
        return true;
    }
    if (!rd_ll_peek(q->src[0].recv, out, q->bytes, q->tag))
        return false;
    rd_ll_consume(q->src[0].recv, q->bytes);
    return true;
}

#endif
