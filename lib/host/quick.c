/* Short plans: see quick.h. The step is the one of run.c with LL messages. */
#include "quick.h"

#include <stdlib.h>

#include "copy.h"
#include "ll.h"
#include "run.h"

static void resolve(const rd_plan_t *plan, int32_t shift, rd_end_t e, int source, rd_quick_end_t *end)
{
    int32_t chunk = (e.index + shift) % plan->program->nchunks;

    end->where = (rd_where_t)e.where;
    switch (end->where) {
    case RD_IN:
        end->offset = (ptrdiff_t)rd_chunk_offset(&plan->in, chunk);
        break;
    case RD_OUT:
        end->offset = (ptrdiff_t)rd_chunk_offset(&plan->out, chunk);
        break;
    case RD_TMP:
        end->offset = (ptrdiff_t)((size_t)e.index * plan->slice);
        break;
    case RD_PEER:
        if (source)
            end->recv = plan->recvs[e.index];
        else
            end->send = plan->sends[e.index];
        break;
    }
}

static size_t resolve_step(const rd_plan_t *plan, const rd_step_t *step, int32_t shift, rd_quick_step_t *q)
{
    int32_t chunk = (step->chunk + shift) % plan->program->nchunks;
    size_t bytes = rd_chunk_bytes(step->src[0].where == RD_IN ? &plan->in : &plan->out, chunk);

    *q = (rd_quick_step_t){step->nsrc, step->ndst, (uint32_t)bytes, rd_ll_lines(bytes), bytes / plan->element,
                           {{0}},      {{0}}};
    for (int i = 0; i < step->nsrc; i++)
        resolve(plan, shift, step->src[i], 1, &q->src[i]);
    for (int i = 0; i < step->ndst; i++)
        resolve(plan, shift, step->dst[i], 0, &q->dst[i]);
    return bytes;
}

void rd_quick_plan(rd_plan_t *plan)
{
    const rd_program_t *program = plan->program;
    int steps = 0;

    if (program->nlanes != 1 || plan->lanes[0].passes != 1 || plan->lanes[0].proto != RD_PROTO_LL || plan->finish_bytes)
        return;
    for (int s = 0; s < program->nsteps; s++)
        steps += program->steps[s].repeat;
    if (steps > RD_QUICK_STEPS_MOST)
        return;
    plan->quick = calloc((size_t)steps + 1, sizeof *plan->quick);
    if (!plan->quick)
        return;
    for (int s = 0; s < program->nsteps; s++) {
        const rd_step_t *step = &program->steps[s];
        for (int k = 0, shift = 0; k < step->repeat; k++) {
            plan->nquick += resolve_step(plan, step, shift, &plan->quick[plan->nquick]) != 0;
            shift = (shift + step->stride + program->nchunks) % program->nchunks;
        }
    }
}

static inline char *place(const rd_run_t *run, const rd_quick_end_t *e)
{
    const char *base = e->where == RD_IN ? run->in : e->where == RD_OUT ? run->out : run->tmp;
    return (char *)(uintptr_t)base + e->offset;
}

static const char *load(const rd_run_t *run, const rd_quick_step_t *q, const char *source)
{
    const rd_plan_t *plan = run->plan;
    char *copy = run->tmp + (size_t)plan->program->ntmp * plan->slice;

    plan->reducer.load(copy, source, q->count, plan->reducer.arg);
    return copy;
}

/* Nonzero if the step was done. */
static inline int step(rd_run_t *run, const rd_quick_step_t *q)
{
    const rd_plan_t *plan = run->plan;
    _Alignas(64) char message[RD_MAX_ENDS][RD_LL_MOST];
    _Alignas(64) char sum[RD_LL_MOST];
    const char *src[RD_MAX_ENDS] = {NULL};

    for (int i = 0; i < q->ndst; i++) {
        if (q->dst[i].where == RD_PEER && !rd_ll_may_send(q->dst[i].send, q->lines)) {
            run->waits_for = q->dst[i].send->peer;
            return 0;
        }
    }
    for (int i = 0; i < q->nsrc; i++) {
        src[i] = q->src[i].where == RD_PEER ? message[i] : place(run, &q->src[i]);
        if (q->src[i].where == RD_PEER && !rd_ll_peek(q->src[i].recv, message[i], q->bytes)) {
            run->waits_for = q->src[i].recv->peer;
            return 0;
        }
        if (q->src[i].where == RD_IN && plan->reducer.load)
            src[i] = load(run, q, src[i]);
    }
    const char *from = src[0];
    if (q->nsrc > 1) {
        char *first = q->dst[0].where == RD_PEER ? sum : place(run, &q->dst[0]);
        plan->reducer.reduce(first, (const void *const *)src, q->nsrc, q->count, plan->reducer.arg);
        from = first;
    }
    for (int i = 0; i < q->ndst; i++) {
        if (q->dst[i].where == RD_PEER)
            rd_ll_send(q->dst[i].send, from, q->bytes);
        else if (place(run, &q->dst[i]) != from)
            rd_copy(place(run, &q->dst[i]), from, q->bytes);
    }
    for (int i = 0; i < q->nsrc; i++) {
        if (q->src[i].where == RD_PEER)
            rd_ll_consume(q->src[i].recv, q->bytes);
    }
    return 1;
}

int rd_quick_advance(rd_run_t *run)
{
    const rd_plan_t *plan = run->plan;
    int first = run->quick;

    while (run->quick < plan->nquick && step(run, &plan->quick[run->quick]))
        run->quick++;
    run->open = run->quick < plan->nquick;
    return run->quick != first || !run->open;
}
