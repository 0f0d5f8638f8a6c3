/* Tasks: how they are made, what follows them, and how they are freed. See queue.h. */
#include <stdlib.h>

#include "progress/queue.h"

#define SPENT_MOST 64 /* tasks whose memory is kept */
#define FOLLOWERS 16  /* room at first */

/* Sets what every task has, and nothing else: to clear the whole struct takes a short group longer. */
static inline void task_init(rd_task_t *t, rd_queue_t *q, rd_plan_t *plan, const void *in, void *out)
{
    t->next = t->after = NULL;
    t->queue = q;
    t->plan = plan;
    t->in = in;
    t->out = out;
    t->completion = NULL;
    t->followers = NULL;
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

/* ---- what follows a task ---- */

bool rd_task_follow(rd_task_t *t, rd_plan_t *plan, void *buffer, int index)
{
    rd_followers_t *f = t->followers;

    if (!f || f->n == f->room) {
        int room = f ? 2 * f->room : FOLLOWERS;
        rd_followers_t *more = realloc(f, sizeof *f + (size_t)room * sizeof f->of[0]);
        if (!more)
            return false;
        if (!f)
            more->n = more->next = 0;
        more->room = room;
        t->followers = f = more;
    }
    f->of[f->n++] = (rd_follower_t){plan, buffer, 0, index};
    return true;
}

bool rd_task_next(rd_task_t *t)
{
    if (!rd_task_following(t))
        return false;
    const rd_follower_t *f = &t->followers->of[t->followers->next++];
    rd_plan_put(t->plan);
    t->plan = f->plan;
    t->in = t->out = f->buffer;
    t->entry = f->entry;
    t->number++;
    return true;
}

/* ---- the end ---- */

static void free_more(rd_task_more_t *more)
{
    free(more->record);
    rd_profile_task_free(more->shown);
    free(more->hashed);
    free(more->bounce);
}

static void free_followers(rd_task_t *t)
{
    while (rd_task_next(t)) {
    }
    free(t->followers);
}

void rd_task_free(rd_queue_t *q, rd_task_t *t)
{
    if (t->has_more)
        free_more(&t->more);
    if (t->followers)
        free_followers(t);
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
