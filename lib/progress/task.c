/* Tasks: how they are made and freed. See queue.h. */
#include <stdlib.h>

#include "progress/queue.h"

#define SPENT_MOST 64 /* tasks whose memory is kept */

/* Sets what every task has, and nothing else: to clear the whole struct takes a short group longer. */
static inline void task_init(rd_task_t *t, rd_queue_t *q, rd_plan_t *plan, const void *in, void *out)
{
    t->next = t->after = NULL;
    t->queue = q;
    t->plan = plan;
    t->in = in;
    t->out = out;
    t->completion = NULL;
    t->run.lanes = NULL;
    t->run.room = 0;
    t->run.seat = NULL;
    t->run.open = 0;
    t->run.result = RONDO_SUCCESS;
    t->sign = t->entry = t->number = 0;
    t->has_more = t->recorded = false;
}

rondo_result_t rd_task_create(rd_queue_t *q, rd_plan_t *plan, int chain, const void *in, void *out, rd_task_t **task)
{
    rd_task_t *t = q->spent;

    if (t) {
        q->spent = t->next;
        q->nspent--;
    } else if (!(t = malloc(sizeof *t))) {
        rd_plan_put(plan);
        return rd_error(q->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for a task");
    }
    task_init(t, q, plan, in, out);
    t->chain = &q->tails[chain];
    rondo_result_t result = plan->flat ? RONDO_SUCCESS : rd_queue_lanes(q, &t->run, plan);
    if (result != RONDO_SUCCESS) {
        rd_task_free(q, t);
        return result;
    }
    *task = t;
    return RONDO_SUCCESS;
}

static void free_more(rd_task_more_t *more)
{
    free(more->record);
    rd_profile_task_free(more->shown);
    free(more->hashed);
    free(more->bounce);
}

void rd_task_free(rd_queue_t *q, rd_task_t *t)
{
    if (t->has_more)
        free_more(&t->more);
    rd_plan_put(t->plan);
    if (t->run.lanes)
        free(t->run.lanes);
    if (q && q->nspent < SPENT_MOST) {
        t->next = q->spent;
        q->spent = t;
        q->nspent++;
    } else {
        free(t);
    }
}
