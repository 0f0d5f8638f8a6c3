/* Walks the list of a flat plan (plan/flat.h): the step of run.c with LL messages, and nothing left to work out. */
#include "exec/host/run_flat.h"

#include "exec/host/flat_walk.h"
#include "exec/host/host_copy.h"
#include "exec/host/run_board.h"
#include "exec/host/run_slots.h"
#include "transport/announce.h"

/* Returns true if the step was done. */
static inline bool step(rd_run_t *run, const rd_flat_step_t *q)
{
    const rd_plan_t *plan = run->plan;
    _Alignas(64) char message[RD_MAX_ENDS][RD_LL_MOST];
    _Alignas(64) char sum[RD_LL_MOST];
    const char *src[RD_MAX_ENDS];

    src[0] = NULL; /* all of them would be as many stores at each call */

    for (int i = 0; i < q->ndst; i++) {
        if (q->dst[i].where == RD_PEER && !rd_ll_may_send(q->dst[i].send, q->lines)) {
            run->waits_for = q->dst[i].send->peer;
            return false;
        }
    }
    for (int i = 0; i < q->nsrc; i++) {
        src[i] = q->src[i].where == RD_PEER ? message[i] : rd_flat_address(run, &q->src[i]);
        if (q->src[i].where == RD_PEER && !rd_ll_peek(q->src[i].recv, message[i], q->bytes, run->sign + q->tag)) {
            run->waits_for = q->src[i].recv->peer;
            return false;
        }
        if (q->src[i].where == RD_IN && plan->reducer.load)
            src[i] = rd_flat_load(run, q, src[i]);
    }
    const char *from = rd_flat_value(run, q, src, sum);
    for (int i = 0; i < q->ndst; i++) {
        if (q->dst[i].where == RD_PEER)
            rd_ll_send(q->dst[i].send, from, q->bytes, run->sign + q->tag);
        else if (rd_flat_address(run, &q->dst[i]) != from)
            rd_copy(rd_flat_address(run, &q->dst[i]), from, q->bytes);
    }
    for (int i = 0; i < q->nsrc; i++) {
        if (q->src[i].where == RD_PEER)
            rd_ll_consume(q->src[i].recv, q->bytes);
    }
    return true;
}

bool rd_flat_advance(rd_run_t *run)
{
    const rd_plan_t *plan = run->plan;
    int first = run->flat;

    if (plan->flat_by != RD_PROTO_LL)
        return plan->flat_by == RD_PROTO_SIMPLE ? rd_slots_advance(run) : rd_board_advance(run);
    while (run->flat < plan->nflat && step(run, &plan->flat[run->flat]))
        run->flat++;
    run->open = run->flat < plan->nflat;
    return run->flat != first || !run->open;
}

void rd_flat_check(rd_run_t *run)
{
    const rd_flat_step_t *q = &run->plan->flat[run->flat];
    uint64_t sent;

    for (int i = 0; i < q->nsrc && q->tag; i++) {
        if (q->src[i].where == RD_PEER && rd_announce_other(q->src[i].recv, run->sign, q->tag, &sent))
            rd_run_mismatch(run, q->src[i].recv, sent, q->bytes);
    }
}
