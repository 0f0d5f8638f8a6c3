/* Tasks, chains and the loops that wait: see queue.h. */
#include "progress/queue.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fpenv.h"
#include "exec/host/run_flat.h"
#include "progress/unlike.h"

#define POLLS 8 /* polls of the network in a row, some 300 ns each */

/* One turn of a thread that waits in another communicator, or for sockets in this one. What fails here stays with this
 * communicator and its requests: the thread's last error is that of its own call. */
static bool turn(rd_outstanding_t *entry)
{
    rd_queue_t *q = (rd_queue_t *)(void *)((char *)entry - offsetof(rd_queue_t, outstanding));
    bool idle = !q->active && !rd_queue_serves(q) && !rd_queue_busy(q);
    char text[RD_ERROR_BYTES];
    int moved = 0;

    if ((idle && !q->elsewhere) || (!q->active && rd_health_check(q->health) != RONDO_SUCCESS))
        return false;
    snprintf(text, sizeof text, "%s", rd_thread_error());
    if ((!idle && rd_queue_advance(q, &moved) != RONDO_SUCCESS) ||
        (q->elsewhere && rd_unlike_answer(q, &moved) != RONDO_SUCCESS)) /* others ask what this rank calls */
        rd_thread_error_set(text);
    else if (moved)
        rd_queue_moved(q);
    return moved;
}

rondo_result_t rd_queue_create(rd_queue_t *q, const rd_team_t *team, rd_planner_t *planner, const rd_conns_t *conns,
                               rd_transport_t *net)
{
    memset(q, 0, sizeof *q);
    q->team = team;
    q->health = team->health;
    q->planner = planner;
    q->net = net;
    q->polled = rd_transport_polled(net);
    q->self = conns->self;
    q->controls = conns->controls;
    q->spin = team->spin;
    q->spin_us = team->spin_us;
    q->spin_yield = team->spin_yield;
    atomic_init(&q->timeout_ms, team->timeout_ms);
    rd_limit_init(&q->limit, -1);
    if (planner && team->env->monitor && team->nranks > 1)
        q->signing.called = &conns->self->called;
    rd_outstanding_init(&q->outstanding, turn);
    q->tails = calloc(1 + 2 * (size_t)team->nranks, sizeof(rd_task_t *));
    if (!q->tails)
        return rd_error(team->ctx, RONDO_ERR_NO_MEMORY, "no memory for the queue of %d ranks", team->nranks);
    rd_deadlock_join(q);
    return RONDO_SUCCESS;
}

void rd_queue_free(rd_queue_t *q)
{
    rd_deadlock_leave(q);
    rd_late_forget(q);
    free(q->answered.called);
    for (rd_task_t *t; (t = q->spent) != NULL; free(t))
        q->spent = t->next;
    free(q->run.lanes);
    free(q->spare);
    free(q->scratch);
    free(q->tails);
    /* All but `outstanding`, which a thread reads that enters in this moment: rd_comm_enter. */
    memset(q, 0, offsetof(rd_queue_t, outstanding));
    memset(&q->elsewhere, 0, sizeof *q - offsetof(rd_queue_t, elsewhere));
}

rondo_result_t rd_queue_lanes(rd_queue_t *q, rd_run_t *run, const rd_plan_t *plan)
{
    int lanes = plan->program->nlanes;

    run->seat = q->team->seat;
    if (lanes <= run->room)
        return RONDO_SUCCESS;
    rd_lane_run_t *more = realloc(run->lanes, (size_t)lanes * sizeof *more);
    if (!more)
        return rd_error(q->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for %d lanes", lanes);
    run->lanes = more;
    run->room = lanes;
    return RONDO_SUCCESS;
}

/* Only one collective runs at a time, so it has the scratch to itself. If a later one needs more, that is kept beside
 * the scratch until then, because the one that runs must keep its own. */
static rondo_result_t reserve(rd_queue_t *q, size_t bytes)
{
    if (bytes <= q->scratch_bytes || bytes <= q->spare_bytes)
        return RONDO_SUCCESS;
    char *more = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!more)
        return rd_error(q->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for %zu bytes of scratch", bytes);
    memset(more, 0, bytes);
    free(q->spare);
    q->spare = more;
    q->spare_bytes = bytes;
    return RONDO_SUCCESS;
}

/* Puts reserved scratch into use. Called when no collective runs. */
static void take_spare(rd_queue_t *q, size_t bytes)
{
    if (bytes <= q->scratch_bytes)
        return;
    free(q->scratch);
    q->scratch = q->spare;
    q->scratch_bytes = q->spare_bytes;
    q->spare = NULL;
    q->spare_bytes = 0;
}

static void start(rd_queue_t *q, rd_task_t *t)
{
    t->next = NULL;
    if (q->active)
        q->last->next = t;
    else
        q->active = t;
    q->last = t;
    if (t->chain == &q->tails[RD_CHAIN_COLLECTIVE])
        take_spare(q, rd_plan_scratch(t->plan));
    rd_run_begin(&t->run, t->plan, t->in, t->out, q->scratch, t->sign);
    if (t->has_more)
        rd_profile_task_runs(t->more.shown);
    if (t->run.open && t->plan->flat && rd_task_is_send(t)) /* it need not wait for the rest of its group */
        rd_flat_advance(&t->run);
}

rondo_result_t rd_queue_prepare(rd_queue_t *q, rd_task_t *t)
{
    return rd_task_is_message(t) ? RONDO_SUCCESS : reserve(q, rd_plan_scratch(t->plan));
}

void rd_queue_add(rd_queue_t *q, rd_task_t *t)
{
    rd_task_t *tail = *t->chain;

    *t->chain = t;
    if (tail)
        tail->after = t;
    else
        start(q, t);
}

static void wait_begin(rd_queue_t *q, int spin)
{
    rd_wait_begin(&q->wait, &q->health->stop, spin, rd_queue_limit(q));
    q->wait.spin_us = q->spin_us;
    q->paused_ms = 0;
}

void rd_queue_wait_begin(rd_queue_t *q)
{
    wait_begin(q, q->spin);
}

rondo_result_t rd_queue_submit(rd_queue_t *q, rd_task_t *t, rd_completion_t *completion)
{
    rondo_result_t result = rd_queue_prepare(q, t);

    if (result != RONDO_SUCCESS) {
        rd_task_free(q, t);
        return result;
    }
    if (!q->active) {
        rd_queue_wait_begin(q);
        q->wait.slow = 1; /* a proxy's turn polls the network */
        q->wait.alone = 1;
    }
    atomic_fetch_add(&completion->pending, 1);
    t->completion = completion;
    rd_queue_add(q, t);
    return RONDO_SUCCESS;
}

/* The record says that the call of a task has ended. */
static void note_end(rd_queue_t *q, const rd_task_t *t, rondo_result_t result)
{
    if (t->has_more && t->more.hashed && result == RONDO_SUCCESS)
        rd_hashed_note(t->more.hashed, q->team->seat, t->entry);
    if (t->recorded)
        rd_monitor_end(q->team->seat, t->track, t->entry, (int)result);
    if (t->has_more)
        rd_profile_task_end(t->more.shown);
}

/* What a task that is over has yet to do, before the next one of its chain begins. */
static rondo_result_t finish_more(rd_task_t *t)
{
    if (t->more.bounce)
        memcpy(t->more.result, t->more.bounce, t->more.result_bytes);
    return t->more.on_done ? t->more.on_done(t) : RONDO_SUCCESS;
}

/* Takes a finished task off the list and starts the next one of its chain. */
static rondo_result_t retire(rd_queue_t *q, rd_task_t *before, rd_task_t *t)
{
    if (before)
        before->next = t->next;
    else
        q->active = t->next;
    if (q->last == t)
        q->last = before;
    if (*t->chain == t)
        *t->chain = NULL;
    const rondo_result_t result = t->has_more ? finish_more(t) : RONDO_SUCCESS;
    note_end(q, t, result);
    if (t->after)
        start(q, t->after); /* after an error it only gets flushed with the others */
    if (t->completion)
        atomic_fetch_sub(&t->completion->pending, 1);
    rd_task_free(q, t);
    return result;
}

/* An operation failed because of something that `peer` holds: its memory could not be read, or is not what was
 * expected. When a rank dies, or gives up because another one died, its memory disappears before the news of it
 * arrives; the news says more, so it is waited for. */
static rondo_result_t failed(rd_queue_t *q, rondo_result_t result, int peer, const rd_lengths_t *lengths)
{
    const struct timespec millisecond = {0, 1000000};
    const char *whois = rd_health_whois(q->health, peer);

    for (int i = 0; i < 300 && result == RONDO_ERR_REMOTE && rd_health_poll(q->health) == RONDO_SUCCESS; i++)
        nanosleep(&millisecond, NULL);
    if (rd_health_check(q->health) != RONDO_SUCCESS)
        return rd_health_check(q->health);
    if (result == RONDO_ERR_REMOTE)
        return rd_health_fail(q->health, result, peer,
                              "the memory of rank %d (%s) cannot be read any more: it died or failed", peer, whois);
    if (result == RONDO_ERR_MISMATCH && lengths->sent == UINT64_MAX && rd_unlike_wait(q, peer) != RONDO_SUCCESS)
        return rd_health_check(q->health);
    if (result == RONDO_ERR_MISMATCH && rd_lengths_differ(lengths) && lengths->sent != UINT64_MAX)
        return rd_health_lengths(q->health, lengths);
    if (result == RONDO_ERR_MISMATCH)
        return rd_health_fail(q->health, result, peer, "rank %d (%s) calls another operation than rank %d%s", peer,
                              whois, q->team->rank,
                              q->team->env->check ? "" : ": RONDO_CHECK=1 says in which call they differ");
    return rd_health_fail(q->health, result, -1, "an operation failed: %s", rondo_result_string(result));
}

/* Returns the message because of which the run has ended with RONDO_ERR_MISMATCH. */
static rd_lengths_t lengths_of(const rd_queue_t *q, const rd_run_t *run)
{
    if (run->result != RONDO_ERR_MISMATCH)
        return (rd_lengths_t){0};
    return (rd_lengths_t){run->waits_for, q->team->rank, run->sent, run->wanted};
}

static int zcopies(rd_queue_t *q)
{
    return q->net->zcopy_pending;
}

rondo_result_t rd_queue_tasks(rd_queue_t *q, int *moved)
{
    rondo_result_t result = rd_health_poll(q->health);
    rd_task_t *before = NULL;
    rd_lengths_t lengths = {0};
    int peer = -1;

    for (rd_task_t *t = q->active, *next; t && result == RONDO_SUCCESS; t = next) {
        *moved |= t->run.open ? rd_run_advance(&t->run) : !zcopies(q);
        if (t->followers && !t->run.open && t->run.result == RONDO_SUCCESS)
            rd_queue_followers(q, t);
        result = t->run.result;
        peer = t->run.waits_for;
        next = t->next;
        if (result != RONDO_SUCCESS)
            lengths = lengths_of(q, &t->run);
        /* The next one of its chain may write to memory that it still shares by zero-copy. */
        if (t->run.open || result != RONDO_SUCCESS || zcopies(q)) {
            before = t;
            continue;
        }
        result = retire(q, before, t);
        next = before ? before->next : q->active;
    }
    if (result != RONDO_SUCCESS) {
        result = failed(q, result, peer, &lengths);
        rd_queue_flush(q, result);
    }
    return result;
}

bool rd_queue_busy(rd_queue_t *q)
{
    return q->active || (q->side && q->side->busy(q->side)) || !rd_transport_idle(q->net);
}

bool rd_queue_has(const rd_queue_t *q, rd_track_t track, uint64_t number)
{
    for (const rd_task_t *first = q->active; first; first = first->next)
        for (const rd_task_t *t = first; t; t = t->after)
            if (t->recorded && t->track == track && number - t->number <= (uint64_t)rd_task_following(t))
                return true;
    return false;
}

rondo_result_t rd_queue_advance(rd_queue_t *q, int *moved)
{
    rondo_result_t result = rd_queue_tasks(q, moved);

    if (q->side && result == RONDO_SUCCESS && (result = q->side->turn(q->side, moved)) != RONDO_SUCCESS)
        rd_queue_flush(q, result);
    if (result == RONDO_SUCCESS && rd_queue_busy(q))
        *moved |= rd_transport_progress(q->net);
    return result;
}

void rd_queue_flush(rd_queue_t *q, rondo_result_t code)
{
    rd_transport_cancel(q->net);
    if (q->side)
        q->side->flush(q->side, code);
    while (q->active) {
        rd_task_t *t = q->active;
        q->active = t->next;
        while (t) {
            rd_task_t *after = t->after;
            do {
                note_end(q, t, code);
            } while (rd_task_next(t));
            if (t->completion) {
                rd_completion_fail(t->completion, code);
                atomic_fetch_sub(&t->completion->pending, 1);
            }
            if (*t->chain == t)
                *t->chain = NULL;
            rd_task_free(q, t);
            t = after;
        }
    }
    q->last = NULL;
}

rondo_result_t rd_queue_drained(rd_queue_t *q)
{
    rondo_result_t result = RONDO_SUCCESS;
    int moved = 0;

    if (rd_queue_busy(q))
        result = rd_queue_advance(q, &moved);
    rd_outstanding_turn();
    if (result == RONDO_SUCCESS && rd_queue_busy(q) && !moved)
        result = rd_health_poll(q->health);
    if (result == RONDO_SUCCESS && rd_queue_busy(q) && !moved)
        result = rd_queue_peer_left(q);
    if (result != RONDO_SUCCESS)
        rd_queue_flush(q, result);
    return result == RONDO_SUCCESS && rd_queue_busy(q) ? RONDO_IN_PROGRESS : result;
}

/* What follows a turn of a wait that gave `result`. Returns that, or why the wait is over. */
static inline rondo_result_t after_turn(rd_queue_t *q, rondo_result_t result, int moved)
{
    if (moved)
        rd_queue_moved(q);
    else if (result == RONDO_SUCCESS)
        result = rd_queue_backoff(q);
    return result;
}

static rondo_result_t turn_or_wait(rd_queue_t *q)
{
    int moved = 0;
    rondo_result_t result = rd_queue_advance(q, &moved);

    return after_turn(q, result, moved);
}

rondo_result_t rd_queue_drain(rd_queue_t *q)
{
    rondo_result_t result = RONDO_SUCCESS;

    rd_queue_wait_begin(q);
    while (result == RONDO_SUCCESS && rd_queue_busy(q))
        result = turn_or_wait(q);
    if (result != RONDO_SUCCESS)
        rd_queue_flush(q, result);
    return result;
}

static bool remote(rd_queue_t *q, int peer)
{
    return peer >= 0 && !q->controls[peer];
}

/* For the paces of links (monitor/pace.h). */
static void quiet(rd_queue_t *q, bool is)
{
    if (q->team->seat)
        q->team->seat->quiet = is;
}

/* Polls the network several times in a row. The less is done between two polls, the sooner a message is found; anything
 * else that may end the wait is seen a few polls later. A rank that shares its core gives it away after each poll. */
static int poll_network(rd_queue_t *q, const rd_run_t *run)
{
    int moved = rd_transport_progress(q->net);

    for (int n = 1; n < POLLS && !moved && q->spin && remote(q, run->waits_for); n++)
        moved = rd_transport_progress(q->net);
    quiet(q, !moved);
    return moved;
}

/* The loop that follows the first miss of a blocking call. */
static rondo_result_t run_on(rd_queue_t *q, rd_run_t *run)
{
    rondo_result_t result = run->result;

    wait_begin(q, q->polled ? (q->spin + POLLS - 1) / POLLS : q->spin);
    q->wait.slow = q->polled;
    if (q->polled)
        quiet(q, false);
    while (result == RONDO_SUCCESS && run->open) {
        int moved = rd_run_advance(run);
        result = run->result;
        if (q->polled && run->open && result == RONDO_SUCCESS) /* polling the network is a system call */
            moved |= poll_network(q, run);
        if ((q->active || q->side) && result == RONDO_SUCCESS)
            result = rd_queue_advance(q, &moved);
        result = after_turn(q, result, moved);
    }
    while (result == RONDO_SUCCESS && !rd_transport_idle(q->net)) {
        int moved = rd_transport_progress(q->net);
        if (q->active || q->side) /* else they would be judged by where they stood before */
            result = rd_queue_advance(q, &moved);
        result = after_turn(q, result, moved);
    }
    if (result != RONDO_SUCCESS) {
        const rd_lengths_t lengths = lengths_of(q, run);
        result = failed(q, result, run->waits_for, &lengths);
        rd_queue_flush(q, result);
    }
    return result;
}

/* Waits until what a submitted group left in the chain is over, because it comes first. */
static rondo_result_t wait_turn(rd_queue_t *q, int chain)
{
    rondo_result_t result = RONDO_SUCCESS;

    rd_queue_wait_begin(q);
    while (result == RONDO_SUCCESS && q->tails[chain])
        result = turn_or_wait(q);
    return result;
}

/* Returns true if the rank that is waited for runs on another core, according to what it said when it last waited
 * itself. */
static bool elsewhere(rd_queue_t *q, const rd_run_t *run, int core)
{
    rd_control_t *control = q->controls[run->waits_for];

    return control && atomic_load_explicit(&control->core, memory_order_relaxed) != core;
}

/* A short exchange is over sooner than one pause: so where every rank has a core of its own, poll at once. Where two
 * ranks share a core, a rank on this very core that is waited for must get the core now. But in an exchange of all
 * ranks with all, a rank that runs on another core is about to send, and a few polls are cheaper than giving the core
 * away and getting it back. A rank that only sends, or only receives, may be far ahead or behind. Slots are left to
 * run_on, which pauses: a poll takes the line away from its sender, which stores to it twice. */
static void poll_flat(rd_queue_t *q, rd_run_t *run)
{
    int core;

    if (run->plan->flat_by == RD_PROTO_SIMPLE)
        return;
    if (q->spin) {
        for (int polls = RD_FLAT_POLLS; polls && run->open; polls--)
            rd_flat_advance(run);
        return;
    }
    if (!q->spin_yield || !run->plan->program->nsends || !run->plan->program->nrecvs)
        return;
    core = sched_getcpu();
    if (atomic_load_explicit(&q->self->core, memory_order_relaxed) != core)
        atomic_store_explicit(&q->self->core, core, memory_order_relaxed);
    for (int polls = q->spin_yield; polls && run->open && elsewhere(q, run, core); polls--)
        rd_flat_advance(run);
}

rondo_result_t rd_queue_run(rd_queue_t *q, rd_plan_t *plan, int chain, const void *in, void *out)
{
    rd_run_t *run = &q->run;
    rondo_result_t result = RONDO_SUCCESS;

    if (plan->one_message && !q->tails[chain] && !q->polled && rd_queue_message(q, plan, in, out)) {
        rd_plan_put(plan);
        return RONDO_SUCCESS;
    }
    if (q->tails[chain])
        result = wait_turn(q, chain);
    if (result == RONDO_SUCCESS && !plan->flat && plan->program->nlanes > run->room)
        result = rd_queue_lanes(q, run, plan);
    if (result == RONDO_SUCCESS && chain == RD_CHAIN_COLLECTIVE && rd_plan_scratch(plan) > q->scratch_bytes) {
        result = reserve(q, rd_plan_scratch(plan));
        if (result == RONDO_SUCCESS)
            take_spare(q, rd_plan_scratch(plan));
    }
    if (result == RONDO_SUCCESS) {
        rd_run_begin(run, plan, in, out, q->scratch, chain == RD_CHAIN_COLLECTIVE ? rd_sign_now(&q->signing) : 0);
        uint64_t program = rd_rounding_begin();
        if (run->open)
            rd_run_advance(run);
        if (run->open && plan->flat && (!plan->one_message || q->polled))
            poll_flat(q, run);
        rd_rounding_end(program);
        if (run->open || run->result != RONDO_SUCCESS || q->polled)
            result = run_on(q, run);
    }
    rd_plan_put(plan);
    return result;
}

rondo_result_t rd_queue_repeat(rd_queue_t *q, rd_plan_t *plan, const void *in, void *out, uint64_t sign)
{
    if (q->tails[RD_CHAIN_COLLECTIVE] || q->polled) {
        plan->users++;
        return rd_queue_run(q, plan, RD_CHAIN_COLLECTIVE, in, out);
    }
    rd_run_begin(&q->run, plan, in, out, q->scratch, sign);
    uint64_t program = rd_rounding_begin(); /* once for all polls */
    if (!plan->flat && q->run.open)
        rd_run_advance(&q->run);
    else if (plan->flat && (rd_flat_advance(&q->run), q->run.open))
        poll_flat(q, &q->run);
    rd_rounding_end(program);
    return q->run.open || q->run.result != RONDO_SUCCESS ? run_on(q, &q->run) : RONDO_SUCCESS;
}
