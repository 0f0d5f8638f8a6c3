/* A rank that is slow: nobody stands still, and all wait for one that comes late again and again.
 *
 * It is found by how long each rank has waited in collectives lately (periods.h). Whoever is late waits for nobody, and
 * everybody waits for him. To say so of a rank, all of this must hold, over the last eight seconds or, for programs
 * that call seldom, over the last three minutes:
 *
 *   - every other rank with a record here waited, and the one that waited least of them still waited for half of the
 *     time longer than this one (MARGIN), in each half of the span, and in CALLS calls at least. So a rank that has up
 *     to twice as much to do as the others is never named, nor are two that are slow at once, nor one that was late
 *     once;
 *   - whom the others have waited for leads to it, over any number of ranks, from nobody elsewhere, and from half of
 *     them for certain;
 *   - it is not late because it waits itself: in messages, or in another communicator;
 *   - it is outside of calls: in one of the two looks, and in most of some quick ones. A root that copies for all waits
 *     for nobody either, but works inside;
 *   - nor is it late because it got no core: without the time that it was ready to run and had none, it would still be
 *     busy for twice as long as any of the others, and that time is not nearly all (STARVED). */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/wait.h"
#include "monitor/periods.h"
#include "monitor/verdict_int.h"

#define MARGIN 0.5
#define ELSEWHERE 0.125 /* of the time, in which it may wait in other calls */
#define STARVED 0.85    /* of the time between two looks, which is short: what is left of it says little */
#define CALLS 5
#define LEAST 3     /* periods of a span */
#define SAMPLES 9   /* looks at a rank */
#define SAMPLE_MS 3 /* between two of them */

/* Of one communicator. */
typedef struct slow {
    const rd_view_t *view;
    const rd_view_comm_t *c;
    rd_ago_t span;
    const rd_view_rank_t *rank;   /* the one that has waited least */
    const rd_view_rank_t *second; /* of the others */
    double waited, others;        /* the parts of the time that those two have waited */
    rd_waits_t second_waits;
} slow_t;

int64_t rd_verdict_clock(const rd_view_t *view, const rd_view_rank_t *r)
{
    const rd_view_process_t *p = &view->processes[r->process];

    return p->past || p->now_ns ? (int64_t)(p->now_ns / 1000000) : rd_clock_ms();
}

/* The part of a span that a rank has waited in calls of its communicator. */
static double part(const rd_view_t *view, const rd_view_rank_t *r, rd_ago_t span, rd_waits_t *w)
{
    int64_t now = rd_verdict_clock(view, r), ms = rd_span_ms(span, &r->comm, now);

    rd_periods_read(&r->comm, span, now, w);
    return ms <= 0 ? 0 : w->ms < (uint64_t)ms ? (double)w->ms / (double)ms : 1; /* a wait counts where it is noted */
}

/* Finds who has waited least. Returns false if one of the ranks is no more there. */
static bool find_least(slow_t *s)
{
    rd_waits_t w;

    s->rank = s->second = NULL;
    for (int i = 0; i < s->c->nranks; i++) {
        const rd_view_rank_t *r = &s->c->ranks[i];
        if (r->comm.state != RD_MONITOR_ALIVE || r->comm.device >= 0 || rd_view_gone(s->view, r))
            return false;
        double waited = part(s->view, r, s->span, &w);
        if (!s->rank || waited < s->waited) {
            s->second = s->rank;
            s->others = s->waited;
            s->rank = r;
            s->waited = waited;
        } else if (!s->second || waited < s->others) {
            s->second = r;
            s->others = waited;
        }
    }
    if (s->second)
        part(s->view, s->second, s->span, &s->second_waits);
    return s->second;
}

/* Does the same rank hold up the others in a part of the span? */
static bool holds_in(const slow_t *s, rd_ago_t span, double margin, uint64_t calls)
{
    rd_waits_t w;
    double own = part(s->view, s->rank, span, &w);

    for (int i = 0; i < s->c->nranks; i++) {
        const rd_view_rank_t *r = &s->c->ranks[i];
        if (r != s->rank && (part(s->view, r, span, &w) < own + margin || w.late < calls))
            return false;
    }
    return true;
}

/* Where do the waits of `from` lead? 1: to the slow one; 0: nowhere in particular; -1: elsewhere. */
static int leads(const slow_t *s, const rd_view_rank_t *from)
{
    rd_waits_t w;

    for (int hops = 0; from && hops < s->c->nranks; hops++) {
        part(s->view, from, s->span, &w);
        if (w.peer < 0)
            return 0;
        if (w.peer == s->rank->comm.rank)
            return 1;
        from = rd_view_rank_of(s->c, w.peer);
    }
    return -1;
}

static bool all_lead_to_it(const slow_t *s)
{
    int certain = 0;

    for (int i = 0; i < s->c->nranks; i++) {
        int way = &s->c->ranks[i] == s->rank ? 0 : leads(s, &s->c->ranks[i]);
        if (way < 0)
            return false;
        certain += way;
    }
    return 2 * certain >= s->c->nranks - 1 && certain > 0;
}

/* The ranks of its process in other communicators, of which nobody knows which thread has called them, are all its own
 * here. */
static bool waits_elsewhere(const slow_t *s)
{
    rd_waits_t w;
    double sum = 0;

    for (int i = 0; i < s->view->ncomms; i++)
        for (int k = 0; k < s->view->comms[i].nranks; k++) {
            const rd_view_rank_t *r = &s->view->comms[i].ranks[k];
            int64_t ms = rd_span_ms(s->span, &s->rank->comm, rd_verdict_clock(s->view, r));
            if (r->process != s->rank->process || (s->view->comms[i].id == s->c->id && r != s->rank))
                continue;
            part(s->view, r, s->span, &w);
            sum += ms ? (double)(w.message_ms + (r == s->rank ? 0 : w.ms)) / (double)ms : 0;
        }
    return sum > ELSEWHERE;
}

static bool was_queued(const slow_t *s)
{
    double queued = s->view->processes[s->rank->process].queued, busy = 1 - s->waited - queued;

    return queued > STARVED || busy < 2 * (1 - s->others);
}

/* A copy of a record does not change any more: there the two looks are all. */
static bool is_outside(const slow_t *s)
{
    const rd_view_comm_t *then = rd_view_comm_of(s->view->before, s->view->nbefore, s->c->id);
    const rd_view_rank_t *was = rd_verdict_before(then, s->rank->comm.rank);
    const rd_reader_t *reader = &s->view->processes[s->rank->process].reader;
    const struct timespec pause = {0, SAMPLE_MS * 1000000};
    rd_monitor_comm_t now;
    int tries = 0, outside = 0;

    if (rd_view_inside(&s->rank->comm) >= 0 && (!was || rd_view_inside(&was->comm) >= 0))
        return false;
    for (; tries < SAMPLES && reader->mapped && !s->view->hurried && rd_reader_comm(reader, s->rank->entry, &now);
         tries++) {
        outside += rd_view_inside(&now) < 0;
        nanosleep(&pause, NULL);
    }
    return !tries || 2 * outside > tries;
}

/* Looks at the span from `periods` ago on. */
static bool judge_span(slow_t *s, bool longs, int periods)
{
    const rd_monitor_comm_t *any = &s->c->ranks[0].comm;
    int64_t period = 1 << (longs ? RD_PERIOD_LONG_SHIFT : RD_PERIOD_SHORT_SHIFT),
            now = rd_verdict_clock(s->view, s->c->ranks);
    int64_t lived = (now - (int64_t)(any->made_ns / 1000000)) / period;

    if (lived < LEAST)
        return false;
    if (lived < periods - 1)
        periods = (int)lived + 1;
    s->span = (rd_ago_t){longs, periods - 1, 0};
    const rd_ago_t older = {longs, periods - 1, periods / 2}, newer = {longs, periods / 2 - 1, 0};
    return find_least(s) && s->others - s->waited >= MARGIN && holds_in(s, s->span, MARGIN, CALLS) &&
           holds_in(s, older, MARGIN, 2) && holds_in(s, newer, MARGIN, 2) && all_lead_to_it(s) && !waits_elsewhere(s) &&
           !was_queued(s) && is_outside(s);
}

/* Returns for how many seconds it has been so, as far as the periods go back. */
static double since(const slow_t *s)
{
    int64_t ms = rd_span_ms(s->span, &s->rank->comm, rd_verdict_clock(s->view, s->rank));

    for (int ago = 1; ago < RD_PERIODS_LONG; ago++) {
        const rd_ago_t span = {true, ago, 0}, alone = {true, ago, ago};
        int64_t more = rd_span_ms(span, &s->rank->comm, rd_verdict_clock(s->view, s->rank));
        if (!rd_span_ms(alone, &s->rank->comm, rd_verdict_clock(s->view, s->rank)) || !holds_in(s, alone, MARGIN, 1))
            break;
        ms = more > ms ? more : ms;
    }
    return (double)ms / 1000;
}

/* "it came late to 41 of the last 47 collectives, by 34 ms on average, for 12 s by now" */
static void say_how(const slow_t *s, char *text, size_t bytes)
{
    const rd_waits_t *w = &s->second_waits;
    int64_t ms = rd_span_ms(s->span, &s->rank->comm, rd_verdict_clock(s->view, s->rank));
    double late = (s->others - s->waited) * (double)ms / (double)w->late;

    snprintf(text, bytes, "it came late to %llu of the last %llu collectives, by %.3g ms on average, since %.3g s",
             (unsigned long long)w->late, (unsigned long long)w->calls, late, since(s));
}

static void add(const slow_t *s, rd_monitor_verdict_t *v)
{
    const rd_view_process_t *p = &s->view->processes[s->rank->process];
    char who[64], how[160], text[RD_VERDICT_BYTES];
    size_t n = strlen(v->text);

    say_how(s, how, sizeof how);
    if (v->status == RD_VERDICT_LATE && v->rank == s->rank->comm.rank) {
        snprintf(v->text + n, sizeof v->text - n, "; that is not the first time: %s", how);
        return;
    }
    rd_view_rank_text(s->view, s->rank, who, sizeof who);
    snprintf(text, sizeof text, "%s is slow: %s; the others wait for it for %.0f %% of the time%s", who, how,
             100 * s->others, rd_verdict_doing(p));
    rd_verdict_say_slow(v, s->rank->comm.rank, text);
}

void rd_verdict_say_slow(rd_monitor_verdict_t *v, int rank, const char *text)
{
    if (v->status == RD_VERDICT_UNKNOWN && v->next < 0) { /* else ranks of another node may know why */
        memcpy(v->also, v->text, sizeof v->also);
        v->status = RD_VERDICT_NONE;
        v->next = -1;
    }
    rd_verdict_say(v, RD_VERDICT_SLOW, rank, "%s", text);
}

void rd_verdict_slow(const rd_view_t *view, const rd_view_comm_t *c, rd_monitor_verdict_t *v)
{
    slow_t s = {.view = view, .c = c};

    if (c->nranks > 1 && (judge_span(&s, false, 8) || judge_span(&s, true, RD_PERIODS_LONG)))
        add(&s, v);
}
