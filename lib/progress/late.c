/* See late.h. */
#include "progress/late.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/held.h"
#include "monitor/verdict.h"
#include "progress/queue.h"

#define CLOCK_MS 20 /* by which the coarse clock may be wrong */
#define LEAD_MS 500 /* from the first look to the second, or half of the wait if that is less */

/* ---- by the waits that ranks of the node tell each other ---- */

/* Returns the rank that `rank` has lately waited for; -1: it does not wait, or it is on another node, and that is
 * unknown. */
static int waits_itself(rd_queue_t *q, int rank, uint32_t now, uint32_t lately)
{
    rd_control_t *control = rank < 0 ? NULL : q->controls[rank];
    uint64_t waits = control ? atomic_load_explicit(&control->waits, memory_order_relaxed) : 0;

    return waits && now - (uint32_t)(waits >> 32) <= lately ? (int)(uint32_t)waits - 1 : -1;
}

/* Returns the rank that is late: it is at the end of the chain of ranks that wait for each other. Lanes wait for
 * several ranks, and each rank names one of them. If the chain is a circle, a rank of this node is returned that does
 * not wait. */
static int late_one(rd_queue_t *q, int peer)
{
    int64_t patience = q->timeout_ms > 0 ? q->timeout_ms : RD_LATE_MS;
    uint32_t now = (uint32_t)rd_clock_ms(), lately = patience < INT32_MAX ? (uint32_t)patience / 2 : INT32_MAX;
    int late = peer;

    for (int hops = 0; hops < q->team->nranks && late != q->team->rank; hops++) {
        int next = waits_itself(q, late, now, lately);
        if (next < 0)
            return late;
        late = next;
    }
    for (int r = 0; r < q->team->nranks; r++) {
        if (r != q->team->rank && q->controls[r] && waits_itself(q, r, now, lately) < 0)
            return r;
    }
    return peer;
}

/* ---- by the records ---- */

static void forget(rd_late_t *s)
{
    if (s->view)
        rd_view_free(s->view);
    free(s->view);
    s->view = NULL;
    s->looked = false;
}

static void look(rd_queue_t *q)
{
    rd_view_t *view = calloc(1, sizeof *view);

    q->late.view = view;
    if (view && !(rd_held_view(view) && rd_view_look(view, 0)))
        forget(&q->late);
}

/* Looks again. Returns false if there is nothing to say. */
static bool judge(rd_queue_t *q, rd_monitor_verdict_t *verdict)
{
    rd_view_t *view = q->late.view;
    const rd_seat_t *seat = q->team->seat;

    if (!view || !seat || !seat->record || !rd_view_look(view, 0))
        return false;
    const rd_view_comm_t *comm = rd_view_comm_of(view->comms, view->ncomms, seat->board->id);
    if (!comm)
        return false;
    rd_verdict_judge(view, comm, verdict);
    return verdict->status != RD_VERDICT_NONE;
}

static int64_t look_ms(int64_t due_ms)
{
    return due_ms - (due_ms < 2 * LEAD_MS ? due_ms / 2 : LEAD_MS);
}

/* One rank of the node says it: the first that is about to, until it looks for the next time. */
static bool claim(const rd_queue_t *q, int64_t now_ms)
{
    _Atomic int64_t *until = &rd_queue_first(q)->late_until_ms;
    int64_t claimed = atomic_load(until), next = q->wait.began_ms + look_ms(2 * q->late.due_ms);

    return claimed <= now_ms && atomic_compare_exchange_strong(until, &claimed, next - CLOCK_MS);
}

static void say(rd_queue_t *q, int peer)
{
    double seconds = (double)q->late.due_ms / 1000;
    rd_monitor_verdict_t v;

    if (judge(q, &v)) {
        rd_log(q->team->ctx, RD_LOG_WARN, "a call waits for %g s: %s (RONDO_STALL_MS; `rondo-ras who` says it again)",
               seconds, v.text);
        return;
    }
    int late = late_one(q, peer);
    rd_log(q->team->ctx, RD_LOG_WARN,
           "a call waits for %g s: for rank %d (%s), which has not come or is slow (RONDO_STALL_MS)", seconds, late,
           rd_health_whois(q->health, late));
}

void rd_late_check(rd_queue_t *q, int peer, int64_t now_ms)
{
    rd_late_t *s = &q->late;
    int64_t waited = now_ms - q->wait.began_ms, limit = q->wait.timeout_ms;

    if (s->wait_ms != q->wait.began_ms) {
        forget(s);
        s->wait_ms = q->wait.began_ms;
        s->due_ms = q->team->env->stall_ms;
    }
    bool last = !s->due_ms || (limit > 0 && limit <= s->due_ms);
    int64_t due = last ? limit : s->due_ms;
    if (due <= 0 || waited < look_ms(due))
        return;
    if (!s->looked && (last || claim(q, now_ms)))
        look(q);
    s->looked = true;
    if (last || waited < due)
        return;
    if (s->view)
        say(q, peer);
    forget(s);
    s->due_ms *= 2;
}

/* ---- the time limit ---- */

static rondo_result_t too_late(rd_queue_t *q, int peer, const char *known)
{
    int late = late_one(q, peer);
    const char *whois = rd_health_whois(q->health, late);
    const char *perhaps = late >= 0 && !q->controls[late] ? ", or waits for another one itself" : "";

    if (late == peer)
        return rd_health_fail(q->health, RONDO_ERR_TIMEOUT, peer,
                              "waited longer than %lld ms for rank %d (%s): it is alive but late or stopped%s%s; see "
                              "RONDO_TIMEOUT_MS",
                              (long long)q->timeout_ms, peer, whois, perhaps, known);
    return rd_health_fail(
        q->health, RONDO_ERR_TIMEOUT, late,
        "waited longer than %lld ms: rank %d (%s) is alive but late or stopped%s, and rank %d (%s), which "
        "this rank waits for, waits as well%s; see RONDO_TIMEOUT_MS",
        (long long)q->timeout_ms, late, whois, perhaps, peer, rd_health_whois(q->health, peer), known);
}

rondo_result_t rd_late_timeout(rd_queue_t *q, int peer)
{
    rd_monitor_verdict_t v;

    if (!rd_queue_says(q) && rd_queue_news(q))
        return rd_health_check(q->health);
    if (!judge(q, &v))
        return too_late(q, peer, "");
    if (v.status == RD_VERDICT_UNKNOWN)
        return too_late(q, peer, "");
    return rd_health_fail(q->health, RONDO_ERR_TIMEOUT, v.rank >= 0 ? v.rank : peer,
                          "waited longer than %lld ms: %s; see RONDO_TIMEOUT_MS", (long long)q->timeout_ms, v.text);
}

void rd_late_end(rd_queue_t *q)
{
    forget(&q->late);
}
