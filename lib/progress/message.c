/* Short messages without a run: most are sent at once, or have come. So nothing that a run needs is set up for them,
 * and what waits becomes a run, or an active task, only then. What ends a wait (an abort, a death, a message of another
 * length, the time limit) is seen there, so the polls here are few. */
#include "exec/host/run_flat.h"
#include "progress/queue.h"

#define SOON_POLLS 100 /* with pauses */

bool rd_queue_message(const rd_queue_t *q, const rd_plan_t *plan, const void *in, void *out)
{
    for (int polls = q->spin ? RD_FLAT_POLLS : 1; polls; polls--)
        if (rd_flat_message(plan, in, out))
            return true;
    return false;
}

/* Returns true if another one is due. The record says that this one is over. */
static inline bool next(rd_queue_t *q, rd_task_t *t)
{
    if (!rd_task_following(t))
        return false;
    rd_monitor_end(q->team->seat, t->track, t->entry, RONDO_SUCCESS);
    return rd_task_next(t);
}

void rd_queue_followers(rd_queue_t *q, rd_task_t *t)
{
    while (next(q, t)) {
        if (rd_flat_message(t->plan, t->in, t->out))
            continue;
        rd_run_begin(&t->run, t->plan, t->in, t->out, NULL, 0);
        return;
    }
}

/* Ends a task that was never added. */
static bool over(rd_queue_t *q, rd_task_t *t)
{
    if (t->recorded)
        rd_monitor_end(q->team->seat, t->track, t->entry, RONDO_SUCCESS);
    rd_task_free(q, t);
    return true;
}

/* Whoever watches a task is told more than its end. */
static bool is_plain(const rd_task_t *t)
{
    return t->plan->one_message && !*t->chain && !t->has_more;
}

bool rd_queue_at_once(rd_queue_t *q, rd_task_t *t)
{
    if (!is_plain(t))
        return false;
    do {
        if (!rd_flat_message(t->plan, t->in, t->out))
            return false;
    } while (next(q, t));
    return over(q, t);
}

bool rd_queue_soon(rd_queue_t *q, rd_task_t *t)
{
    if (!is_plain(t) || q->active || !q->spin)
        return false;
    for (int polls = SOON_POLLS; polls; polls--) {
        rd_wait_pause();
        if (rd_queue_at_once(q, t))
            return true;
    }
    return false;
}
