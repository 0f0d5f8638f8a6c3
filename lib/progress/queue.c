/* Tasks, chains and the loops that wait: see queue.h. */
#include "progress/queue.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/signature.h"
#include "core/comm.h"
#include "exec/host/run_flat.h"

#define LOOKS 8         /* at the network, some 300 ns each */
#define QUICK_POLLS 500 /* a few microseconds */
#define SPENT_MOST 64   /* tasks whose memory is kept */

rondo_result_t rd_queue_create(rd_queue_t *q, rondo_comm_t comm)
{
    memset(q, 0, sizeof *q);
    q->tails = calloc(1 + 2 * (size_t)comm->nranks, sizeof(rd_task_t *));
    if (!q->tails)
        return rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory for the queue of %d ranks", comm->nranks);
    return RONDO_SUCCESS;
}

void rd_queue_free(rd_queue_t *q)
{
    while (q->spent) {
        rd_task_t *t = q->spent;
        q->spent = t->next;
        free(t);
    }
    free(q->run.lanes);
    free(q->spare);
    free(q->scratch);
    free(q->tails);
    memset(q, 0, sizeof *q);
}

static rondo_result_t lanes_room(rondo_comm_t comm, rd_run_t *run, const rd_plan_t *plan)
{
    int lanes = plan->program->nlanes;

    if (lanes <= run->room)
        return RONDO_SUCCESS;
    rd_lane_run_t *more = realloc(run->lanes, (size_t)lanes * sizeof *more);
    if (!more)
        return rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory for %d lanes", lanes);
    run->lanes = more;
    run->room = lanes;
    return RONDO_SUCCESS;
}

/* Only one collective runs at a time, so it may have the scratch to itself. What a later one needs more waits beside
 * it: the one that runs must keep its own. */
static rondo_result_t reserve(rondo_comm_t comm, size_t bytes)
{
    rd_queue_t *q = &comm->queue;

    if (bytes <= q->scratch_bytes || bytes <= q->spare_bytes)
        return RONDO_SUCCESS;
    char *more = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!more)
        return rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory for %zu bytes of scratch", bytes);
    memset(more, 0, bytes);
    free(q->spare);
    q->spare = more;
    q->spare_bytes = bytes;
    return RONDO_SUCCESS;
}

/* Reserved scratch comes into use. No collective runs. */
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

rondo_result_t rd_task_create(rondo_comm_t comm, rd_plan_t *plan, int chain, const void *in, void *out,
                              rd_task_t **task)
{
    rd_queue_t *q = &comm->queue;
    rd_task_t *t = q->spent;

    if (t) {
        q->spent = t->next;
        q->nspent--;
    } else if (!(t = malloc(sizeof *t))) {
        rd_plan_put(plan);
        return rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory for a task");
    }
    *t = (rd_task_t){.comm = comm, .plan = plan, .chain = &q->tails[chain], .in = in, .out = out};
    rondo_result_t result = plan->quick ? RONDO_SUCCESS : lanes_room(comm, &t->run, plan);
    if (result != RONDO_SUCCESS) {
        rd_task_free(comm, t);
        return result;
    }
    *task = t;
    return RONDO_SUCCESS;
}

void rd_task_free(rondo_comm_t comm, rd_task_t *t)
{
    rd_queue_t *q = comm ? &comm->queue : NULL;

    rd_check_free(t->check);
    free(t->aside);
    rd_plan_put(t->plan);
    free(t->run.lanes);
    if (q && q->nspent < SPENT_MOST) {
        t->next = q->spent;
        q->spent = t;
        q->nspent++;
    } else {
        free(t);
    }
}

static void start(rondo_comm_t comm, rd_task_t *t)
{
    rd_queue_t *q = &comm->queue;

    t->next = NULL;
    if (q->active)
        q->last->next = t;
    else
        q->active = t;
    q->last = t;
    if (t->chain == &q->tails[RD_CHAIN_COLLECTIVE])
        take_spare(q, rd_plan_scratch(t->plan));
    rd_run_begin(&t->run, t->plan, t->in, t->out, q->scratch);
}

rondo_result_t rd_queue_prepare(rondo_comm_t comm, rd_task_t *t)
{
    int collective = t->chain == &comm->queue.tails[RD_CHAIN_COLLECTIVE];

    return collective ? reserve(comm, rd_plan_scratch(t->plan)) : RONDO_SUCCESS;
}

void rd_queue_add(rondo_comm_t comm, rd_task_t *t)
{
    rd_task_t *tail = *t->chain;

    *t->chain = t;
    if (tail)
        tail->after = t;
    else
        start(comm, t);
}

/* Takes a finished task off the list and starts the next of its chain. */
static rondo_result_t retire(rondo_comm_t comm, rd_task_t *before, rd_task_t *t)
{
    rd_queue_t *q = &comm->queue;
    rondo_result_t result = RONDO_SUCCESS;

    if (before)
        before->next = t->next;
    else
        q->active = t->next;
    if (q->last == t)
        q->last = before;
    if (*t->chain == t)
        *t->chain = NULL;
    if (t->aside)
        memcpy(t->result, t->aside, t->result_bytes);
    if (t->check)
        result = rd_check_compare(comm, t->check);
    if (t->after)
        start(comm, t->after); /* after an error only to be flushed with the others */
    if (t->request)
        atomic_fetch_sub(&t->request->pending, 1);
    rd_task_free(comm, t);
    return result;
}

/* An operation failed by itself, at what `peer` holds: its memory could not be read, or is not what was expected. When
 * a rank dies, or gives up because another one died, its memory goes before the news of it comes: the news knows more.
 */
static rondo_result_t failed(rondo_comm_t comm, rondo_result_t result, int peer)
{
    const struct timespec millisecond = {0, 1000000};
    const char *whois = peer >= 0 && peer < comm->nranks ? rd_boot_whois(comm->boot, peer) : "?";

    for (int i = 0; i < 300 && result == RONDO_ERR_REMOTE && rd_health_poll(&comm->health) == RONDO_SUCCESS; i++)
        nanosleep(&millisecond, NULL);
    if (rd_health_check(&comm->health) != RONDO_SUCCESS)
        return rd_health_check(&comm->health);
    if (result == RONDO_ERR_REMOTE)
        return rd_health_fail(&comm->health, result, peer, "the memory of rank %d (%s) cannot be read any more: it died or failed",
                            peer, whois);
    if (result == RONDO_ERR_MISMATCH)
        return rd_health_fail(&comm->health, result, peer,
                            "rank %d (%s) sends another number of bytes than this rank expects: RONDO_CHECK=1 says in "
                            "which call they differ",
                            peer, whois);
    return rd_health_fail(&comm->health, result, -1, "an operation failed: %s", rondo_result_string(result));
}

static int lent(rondo_comm_t comm)
{
    return comm->net && rd_net_lent(comm->net);
}

rondo_result_t rd_queue_tasks(rondo_comm_t comm, int *moved)
{
    rd_queue_t *q = &comm->queue;
    rondo_result_t result = rd_health_poll(&comm->health);
    rd_task_t *before = NULL;
    int peer = -1;

    for (rd_task_t *t = q->active, *next; t && result == RONDO_SUCCESS; t = next) {
        *moved |= t->run.open ? rd_run_advance(&t->run) : !lent(comm);
        result = t->run.result;
        peer = t->run.waits_for;
        next = t->next;
        /* What it has lent may lie where the next of its chain writes. */
        if (t->run.open || result != RONDO_SUCCESS || lent(comm)) {
            before = t;
            continue;
        }
        result = retire(comm, before, t);
        next = before ? before->next : q->active;
    }
    if (result != RONDO_SUCCESS) {
        result = failed(comm, result, peer);
        rd_queue_flush(comm, result);
    }
    return result;
}

static int busy(rondo_comm_t comm)
{
    return comm->queue.active || (comm->net && !rd_net_idle(comm->net));
}

rondo_result_t rd_queue_advance(rondo_comm_t comm, int *moved)
{
    rondo_result_t result = rd_queue_tasks(comm, moved);

    if (comm->net && result == RONDO_SUCCESS && busy(comm))
        *moved |= rd_net_progress(comm->net);
    return result;
}

void rd_queue_flush(rondo_comm_t comm, rondo_result_t code)
{
    rd_queue_t *q = &comm->queue;

    if (comm->net)
        rd_net_take_back(comm->net);
    while (q->active) {
        rd_task_t *t = q->active;
        q->active = t->next;
        while (t) {
            rd_task_t *after = t->after;
            if (t->request) {
                rd_request_fail(t->request, code);
                atomic_fetch_sub(&t->request->pending, 1);
            }
            if (*t->chain == t)
                *t->chain = NULL;
            rd_task_free(comm, t);
            t = after;
        }
    }
    q->last = NULL;
}

void rd_queue_moved(rondo_comm_t comm)
{
    rd_wait_progress(&comm->queue.wait);
    comm->queue.deserted = 0;
}

rondo_result_t rd_queue_drained(rondo_comm_t comm)
{
    rondo_result_t result = RONDO_SUCCESS;
    int moved = 0;

    if (busy(comm))
        result = rd_queue_advance(comm, &moved);
    if (result == RONDO_SUCCESS && busy(comm) && !moved)
        result = rd_health_poll(&comm->health);
    if (result == RONDO_SUCCESS && busy(comm) && !moved)
        result = rd_queue_deserted(comm);
    if (result != RONDO_SUCCESS)
        rd_queue_flush(comm, result);
    return result == RONDO_SUCCESS && busy(comm) ? RONDO_IN_PROGRESS : result;
}

rondo_result_t rd_queue_drain(rondo_comm_t comm)
{
    rondo_result_t result = RONDO_SUCCESS;
    int moved;

    rd_wait_begin(&comm->queue.wait, &comm->health.stop, comm->spin, comm->timeout_ms);
    while (result == RONDO_SUCCESS && busy(comm)) {
        moved = 0;
        result = rd_queue_advance(comm, &moved);
        if (moved)
            rd_queue_moved(comm);
        else if (result == RONDO_SUCCESS)
            result = rd_queue_miss(comm);
    }
    if (result != RONDO_SUCCESS)
        rd_queue_flush(comm, result);
    return result;
}

static int remote(rondo_comm_t comm, int peer)
{
    return peer >= 0 && !comm->conns.controls[peer];
}

/* A message of another node is found the sooner the less is done between two looks: what else may end the wait is seen
 * a few looks later. Who shares his core gives it away after each. */
static int look(rondo_comm_t comm, const rd_run_t *run)
{
    int moved = rd_net_progress(comm->net);

    for (int n = 1; n < LOOKS && !moved && comm->spin && remote(comm, run->waits_for); n++)
        moved = rd_net_progress(comm->net);
    return moved;
}

/* The loop behind the first miss of a blocking call. */
static rondo_result_t run_on(rondo_comm_t comm, rd_run_t *run)
{
    rondo_result_t result = run->result;

    rd_wait_begin(&comm->queue.wait, &comm->health.stop, comm->net ? (comm->spin + LOOKS - 1) / LOOKS : comm->spin,
                  comm->timeout_ms);
    comm->queue.wait.slow = comm->net != NULL;
    while (result == RONDO_SUCCESS && run->open) {
        int moved = rd_run_advance(run);
        result = run->result;
        if (comm->net && run->open && result == RONDO_SUCCESS) /* a look at the network is a call of the system */
            moved |= look(comm, run);
        if (comm->queue.active && result == RONDO_SUCCESS)
            result = rd_queue_advance(comm, &moved);
        if (moved)
            rd_queue_moved(comm);
        else if (result == RONDO_SUCCESS)
            result = rd_queue_miss(comm);
    }
    while (result == RONDO_SUCCESS && comm->net && !rd_net_idle(comm->net)) {
        if (!rd_net_progress(comm->net))
            result = rd_queue_miss(comm);
    }
    if (result != RONDO_SUCCESS) {
        result = failed(comm, result, run->waits_for);
        rd_queue_flush(comm, result);
    }
    return result;
}

/* What a submitted group left behind in the chain comes first. */
static rondo_result_t wait_turn(rondo_comm_t comm, int chain)
{
    rondo_result_t result = RONDO_SUCCESS;
    int moved;

    rd_wait_begin(&comm->queue.wait, &comm->health.stop, comm->spin, comm->timeout_ms);
    while (result == RONDO_SUCCESS && comm->queue.tails[chain]) {
        moved = 0;
        result = rd_queue_advance(comm, &moved);
        if (moved)
            rd_queue_moved(comm);
        else if (result == RONDO_SUCCESS)
            result = rd_queue_miss(comm);
    }
    return result;
}

/* Who is waited for runs on another core, as he said when he last waited himself. */
static int elsewhere(rondo_comm_t comm, const rd_run_t *run, int core)
{
    rd_control_t *control = comm->conns.controls[run->waits_for];

    return control && atomic_load_explicit(&control->core, memory_order_relaxed) != core;
}

/* A short exchange is over sooner than one pause: so where there is a core for every rank, poll at once. Where two
 * share one, who is waited for on this very core must get it now; but in an exchange of all with all, who runs on
 * another is about to send, and a few polls are cheaper than giving the core away and getting it back. One who is only
 * sent to, or only sends, may be far ahead or behind. */
static void poll_quick(rondo_comm_t comm, rd_run_t *run)
{
    int core;

    if (comm->spin) {
        for (int polls = QUICK_POLLS; polls && run->open; polls--)
            rd_quick_advance(run);
        return;
    }
    if (!comm->moments || !run->plan->program->nsends || !run->plan->program->nrecvs)
        return;
    core = sched_getcpu();
    if (atomic_load_explicit(&comm->conns.self->core, memory_order_relaxed) != core)
        atomic_store_explicit(&comm->conns.self->core, core, memory_order_relaxed);
    for (int polls = comm->moments; polls && run->open && elsewhere(comm, run, core); polls--)
        rd_quick_advance(run);
}

rondo_result_t rd_queue_run(rondo_comm_t comm, rd_plan_t *plan, int chain, const void *in, void *out)
{
    rd_queue_t *q = &comm->queue;
    rd_run_t *run = &q->run;
    rondo_result_t result = RONDO_SUCCESS;

    if (q->tails[chain])
        result = wait_turn(comm, chain);
    if (result == RONDO_SUCCESS && !plan->quick && plan->program->nlanes > run->room)
        result = lanes_room(comm, run, plan);
    if (result == RONDO_SUCCESS && chain == RD_CHAIN_COLLECTIVE && rd_plan_scratch(plan) > q->scratch_bytes) {
        result = reserve(comm, rd_plan_scratch(plan));
        if (result == RONDO_SUCCESS)
            take_spare(q, rd_plan_scratch(plan));
    }
    if (result == RONDO_SUCCESS) {
        rd_run_begin(run, plan, in, out, q->scratch);
        if (run->open)
            rd_run_advance(run);
        if (run->open && plan->quick)
            poll_quick(comm, run);
        if (run->open || run->result != RONDO_SUCCESS || comm->net)
            result = run_on(comm, run);
    }
    rd_plan_put(plan);
    return result;
}

rondo_result_t rd_queue_repeat(rondo_comm_t comm, rd_plan_t *plan, const void *in, void *out)
{
    rd_queue_t *q = &comm->queue;

    if (q->tails[RD_CHAIN_COLLECTIVE] || comm->net) {
        plan->users++;
        return rd_queue_run(comm, plan, RD_CHAIN_COLLECTIVE, in, out);
    }
    rd_run_begin(&q->run, plan, in, out, q->scratch);
    rd_quick_advance(&q->run);
    if (q->run.open)
        poll_quick(comm, &q->run);
    return q->run.open || q->run.result != RONDO_SUCCESS ? run_on(comm, &q->run) : RONDO_SUCCESS;
}
