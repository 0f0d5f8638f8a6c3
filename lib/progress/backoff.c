/* The clock of waits, and what follows a turn in which nothing has moved: finds the rank that is waited for, and checks
 * whether it has left. */
#include "progress/queue.h"
#include "progress/unlike.h"

#include <time.h>

#define SEEK_MS 1000           /* a rank is told when another one has waited for it this long */
#define AWAY_MS 10             /* between two tests so much counts as waiting */
#define ON_WAIT_PAUSES 64      /* pauses between two calls of on_wait */
#define ON_WAIT_YIELDS 8       /* yields between two */
#define MISMATCH_MISSES 100000 /* in a row, until a rank no longer looks for a mismatch that another rank has found */

void rd_queue_moved(rd_queue_t *q)
{
    rd_wait_progress(&q->wait);
    q->peer_left = 0;
    if (q->deadlock.said)
        rd_deadlock_moved(q);
}

void rd_queue_wait_pause(rd_queue_t *q)
{
    q->paused_ms = q->wait.began_ms ? rd_clock_ms() : 0;
}

void rd_queue_wait_resume(rd_queue_t *q)
{
    int64_t away = q->paused_ms ? rd_clock_ms() - q->paused_ms - AWAY_MS : 0;

    q->paused_ms = 0;
    if (away <= 0)
        return;
    if (q->late.wait_ms == q->wait.began_ms) /* it stays the same wait */
        q->late.wait_ms += away;
    q->wait.began_ms += away;
    q->wait.named_ms += away;
}

/* Returns the rank that the blocking call waits for, or else the first active task, or with which a finished task still
 * shares zero-copy memory; -1: no particular rank. */
static int waited_for(rd_queue_t *q)
{
    if (q->run.open && q->run.waits_for >= 0)
        return q->run.waits_for;
    for (rd_task_t *t = q->active; t; t = t->next) {
        if (t->run.open && t->run.waits_for >= 0)
            return t->run.waits_for;
    }
    if (q->run.open)
        return -1;
    if (q->side && q->side->waits_for(q->side) >= 0)
        return q->side->waits_for(q->side);
    int peer = rd_transport_gdr_peer(q->net);
    return peer >= 0 ? peer : rd_transport_zcopy_peer(q->net);
}

/* Returns a rank of another node that one of the runs waits for; -1: none does. */
static int waited_far(const rd_queue_t *q)
{
    for (const rd_task_t *t = q->active; t; t = t->next) {
        if (t->run.open && t->run.waits_far >= 0)
            return t->run.waits_far;
    }
    return q->run.open ? q->run.waits_far : -1;
}

/* Returns how a rank has left: RONDO_SUCCESS in order, or RONDO_ERR_MISMATCH. RONDO_IN_PROGRESS: it has not left.
 * `net`: by which its farewell comes from another node. */
static rondo_result_t farewell(const rd_queue_t *q, rd_transport_t *net, int peer)
{
    rd_control_t *control = peer < 0 ? NULL : q->controls[peer];

    if (control)
        return atomic_load_explicit(&control->left, memory_order_acquire) ? RONDO_SUCCESS : RONDO_IN_PROGRESS;
    return peer >= 0 ? rd_transport_farewell(net, peer) : RONDO_IN_PROGRESS;
}

/* Finds a rank that has left, of all for which something of this rank waits, and sets *how to how it has left. What
 * another task waits for may be long in coming, so the one that is waited for first does not stand for all. */
static int who_left(rd_queue_t *q, rondo_result_t *how)
{
    int peer = q->run.open ? q->run.waits_for : -1;

    *how = farewell(q, q->net, peer);
    for (const rd_task_t *t = q->active; t && *how == RONDO_IN_PROGRESS; t = t->next)
        if (t->run.open)
            *how = farewell(q, q->net, peer = t->run.waits_for);
    if (*how == RONDO_IN_PROGRESS && q->side)
        *how = farewell(q, q->side->net ? q->side->net : q->net, peer = q->side->waits_for(q->side));
    if (*how == RONDO_IN_PROGRESS && !q->run.open && !q->active && (!q->side || peer < 0))
        *how = farewell(q, q->net, peer = waited_for(q));
    return peer;
}

/* It may still be on its way to a thread of this process, which gets no core as long as this one polls. */
bool rd_queue_news(rd_queue_t *q, int ms)
{
    const struct timespec millisecond = {0, 1000000};

    for (int i = 0; i < ms && rd_health_poll(q->health) == RONDO_SUCCESS; i++)
        nanosleep(&millisecond, NULL);
    return rd_health_check(q->health) != RONDO_SUCCESS;
}

/* What a rank has sent was there before it left: so one more poll is due before the wait is given up. */
rondo_result_t rd_queue_peer_left(rd_queue_t *q)
{
    rondo_result_t left;
    int peer = who_left(q, &left);
    int mismatch = left == RONDO_ERR_MISMATCH || rd_health_noticed(q->health) == RONDO_ERR_MISMATCH;

    if (!mismatch && left != RONDO_SUCCESS) {
        q->peer_left = 0;
        return RONDO_SUCCESS;
    }
    if (++q->peer_left < (mismatch ? MISMATCH_MISSES : 3))
        return RONDO_SUCCESS;
    if (!mismatch && rd_unlike_wait(q, -1) != RONDO_SUCCESS)
        return rd_health_check(q->health);
    if (mismatch && rd_queue_news(q, RD_QUEUE_NEWS_MS))
        return rd_health_check(q->health);
    if (mismatch)
        return rd_health_fail(q->health, RONDO_ERR_MISMATCH, peer,
                              "another rank has found that ranks do not call the same operations, and says which");
    return rd_health_fail(
        q->health, RONDO_ERR_REMOTE, peer,
        "rank %d (%s) has destroyed its communicator, but rank %d (%s) still waits for it: all ranks must "
        "call the same operations",
        peer, rd_health_whois(q->health, peer), q->team->rank, rd_health_whois(q->health, q->team->rank));
}

/* Finds the step at which the one run that waits has stopped, from 1 on, and how many it has; -1: several run, or it
 * has no steps. */
static void step_of(const rd_queue_t *q, int64_t *step, int64_t *steps)
{
    const rd_run_t *run = q->active ? &q->active->run : &q->run;

    *step = *steps = -1;
    if ((q->active && (q->active->next || q->run.open)) || !run->open || run->plan->board.board)
        return;
    if (run->plan->flat) {
        *step = run->flat + 1;
        *steps = run->plan->nflat;
        return;
    }
    for (int lane = 0; lane < run->plan->program->nlanes; lane++) {
        const rd_lane_run_t *at = &run->lanes[lane];
        if (!at->passes)
            continue;
        *step = at->step - at->first + 1;
        *steps = at->end - at->first;
        return;
    }
}

static void say_wait(rd_queue_t *q, int64_t now)
{
    int peer = waited_for(q);
    uint64_t at = (uint64_t)(uint32_t)now << 32;
    const int64_t half = q->wait.timeout_ms / 2; /* by then, lest the time limit comes before the answer */

    atomic_store_explicit(&q->self->waits_far, at | (uint32_t)(waited_far(q) + 1), memory_order_relaxed);
    atomic_store_explicit(&q->self->waits, at | (uint32_t)(peer + 1), memory_order_relaxed);
    if (q->team->seat) {
        int64_t step, steps;
        step_of(q, &step, &steps);
        rd_monitor_wait(q->team->seat, peer, q->wait.began_ms, now, step, steps);
    }
    if (peer >= 0 && now - q->wait.began_ms >= SEEK_MS)
        rd_transport_seek(q->net, peer);
    if (now - q->wait.began_ms >= (half > 0 && half < SEEK_MS ? half : SEEK_MS))
        rd_unlike_ask(q, peer, now);
}

/* The caller's function may yield itself, and where ranks share cores each yield gives the turn to another rank: so it
 * is not called after every yield, and after pauses, which are shorter, less often still. */
static void call_on_wait(rd_queue_t *q)
{
    int every = q->wait.misses >= q->wait.spin ? ON_WAIT_YIELDS : ON_WAIT_PAUSES;

    if (++q->waited % every == 0)
        q->on_wait(q->on_wait_data);
}

static rondo_result_t has_failed(rd_queue_t *q, rondo_result_t result)
{
    if (result == RONDO_ERR_MISMATCH && q->deadlock.said)
        rd_deadlock_heard(q);
    return result;
}

/* The limit may have been extended while the wait went on. */
static bool goes_on(rd_queue_t *q)
{
    int64_t ms = rd_queue_limit(q);

    if (ms == q->wait.timeout_ms || (ms && rd_clock_ms() - q->wait.began_ms >= ms)) {
        if (!atomic_load_explicit(&q->reports, memory_order_relaxed))
            return false;
        rd_late_report(q, waited_for(q));
        ms = 0;
    }
    q->wait.timeout_ms = ms;
    rd_late_forget(q);
    return true;
}

rondo_result_t rd_queue_backoff(rd_queue_t *q)
{
    rondo_result_t result = rd_health_poll(q->health);

    if (result == RONDO_SUCCESS)
        result = rd_queue_peer_left(q);
    if (result != RONDO_SUCCESS)
        return has_failed(q, result);
    result = rd_wait_backoff(&q->wait);
    if (result == RONDO_ERR_TIMEOUT && goes_on(q))
        result = RONDO_SUCCESS;
    if (q->on_wait)
        call_on_wait(q);
    if (q->wait.clock_ms) {
        say_wait(q, q->wait.clock_ms);
        rd_late_check(q, waited_for(q), q->wait.clock_ms);
        if (result == RONDO_SUCCESS)
            result = rd_unlike_check(q, q->wait.clock_ms);
        if (q->deadlock.listed && result == RONDO_SUCCESS)
            result = rd_deadlock_check(q, waited_for(q), q->wait.clock_ms);
        q->wait.clock_ms = 0;
    }
    if (result == RONDO_SUCCESS || result == RONDO_IN_PROGRESS) /* a minute has passed */
        return RONDO_SUCCESS;
    return has_failed(q, result == RONDO_ERR_TIMEOUT ? rd_late_timeout(q, waited_for(q)) : rd_health_check(q->health));
}
