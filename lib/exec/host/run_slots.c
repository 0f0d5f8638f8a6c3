/* See run_slots.h. The walk is that of run_flat.c with slots: of what a step by slots may have to do in run.c, nothing
 * is left that concerns longer messages, several blocks in one, or other nodes. */
#include "exec/host/run_slots.h"

#include "exec/host/flat_walk.h"
#include "exec/host/host_copy.h"
#include "exec/host/nt_store.h"
#include "transport/shm/slots.h"

_Static_assert(RD_FLAT_SLOT_MOST < RD_NT_STORE_LEAST, "short messages are written plainly");

/* Returns true if all messages that the step reads have come, and those that it writes have space. */
static inline bool ready(rd_run_t *run, const rd_flat_step_t *q)
{
    for (int i = 0; i < q->nsrc; i++) {
        if (q->src[i].where == RD_PEER && !rd_slot_arrived(q->src[i].recv, run->sign)) {
            run->waits_for = q->src[i].recv->peer;
            return false;
        }
    }
    for (int i = 0; i < q->ndst; i++) {
        if (q->dst[i].where == RD_PEER && !rd_slot_may_send(q->dst[i].send, q->bytes)) {
            run->waits_for = q->dst[i].send->peer;
            return false;
        }
    }
    return true;
}

static inline char *destination(const rd_run_t *run, const rd_flat_step_t *q, int i)
{
    return q->dst[i].where == RD_PEER ? rd_slot_to_fill(q->dst[i].send, q->bytes) : rd_flat_address(run, &q->dst[i]);
}

/* Makes the step's value in the first destination, or finds it where its one source lies. */
static inline const char *value(rd_run_t *run, const rd_flat_step_t *q, char *first)
{
    const rd_reducer_t *reducer = &run->plan->reducer;
    const char *src[RD_MAX_ENDS];

    src[0] = NULL; /* all of them would be as many stores at each call */
    for (int i = 0; i < q->nsrc; i++) {
        src[i] =
            q->src[i].where == RD_PEER ? rd_slot_to_read(q->src[i].recv, q->bytes) : rd_flat_address(run, &q->src[i]);
        if (q->src[i].where == RD_IN && reducer->load)
            src[i] = rd_flat_load(run, q, src[i]);
    }
    if (q->nsrc == 1)
        return src[0];
    reducer->reduce(first, (const void *const *)src, q->nsrc, q->count, reducer->arg);
    return first;
}

/* A message is published as soon as it is written: this rank alone writes its slot, and may go on reading it. */
static inline void step(rd_run_t *run, const rd_flat_step_t *q)
{
    char *to = destination(run, q, 0);
    const char *from = value(run, q, to);

    for (int i = 0; i < q->ndst; i++) {
        to = destination(run, q, i);
        if (to != from)
            rd_copy(to, from, q->bytes);
        if (q->dst[i].where == RD_PEER)
            rd_slot_publish(q->dst[i].send, run->sign, q->bytes, 0);
    }
    for (int i = 0; i < q->nsrc; i++) {
        if (q->src[i].where == RD_PEER)
            rd_slot_return(q->src[i].recv, q->bytes);
    }
}

bool rd_slots_advance(rd_run_t *run)
{
    const rd_plan_t *plan = run->plan;
    int first = run->flat;

    for (; run->flat < plan->nflat && ready(run, &plan->flat[run->flat]); run->flat++)
        step(run, &plan->flat[run->flat]);
    run->open = run->flat < plan->nflat;
    return run->flat != first || !run->open;
}
