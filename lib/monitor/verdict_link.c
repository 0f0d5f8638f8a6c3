/* A link that is slow: two ranks on different nodes both wait, and what one sends comes to the other at a pace far
 * below what comes over other links.
 *
 * The receiver notes how fast long messages follow each other while it waits for them (pace.h). A sender that waits
 * itself, for whatever it is to send, makes that longer, but no sender makes it shorter than the link does: so what
 * counts is the best tenth of the paces. To say that a link is slow, all of this must hold:
 *
 *   - there are enough paces of it and of at least two others of the communicator, in several periods;
 *   - its best pace is more than four times below the median of the others (in classes of two: RATIO);
 *   - that is not chance: ranks that lack a core have slow paces and quick ones on every link, as it happens. By how
 *     often the others had one of more than twice its best, it would have had EXPECTED of them, and had hardly any;
 *   - both ends wait for BUSY of the time at least, so neither is slow itself, and for each other, or for nobody in
 *     particular: a sender that waits mostly for a third rank has to pass on what comes from there;
 *   - no other link is slow that leads to its sender: or else what comes there is what it has to send;
 *   - nor are all of three or more that lead to its receiver: that would be the receiver, or its host;
 *   - what its sender sends to others is not slow, too: that would be the sender's host, or its network's port. */
#include <stdio.h>

#include "monitor/pace.h"
#include "monitor/periods.h"
#include "monitor/verdict_int.h"

#define RATIO 3 /* classes: of what lies so far apart one is more than four times the other */
#define BUSY 0.25
#define EXPECTED 15
#define LEAST 12 /* paces */
#define PERIODS 3
#define OTHERS 2
#define MOST 1024 /* links that are compared */

typedef struct link {
    const rd_view_rank_t *to;
    const rd_monitor_link_t *paces;
    int from, class;
} link_t;

typedef struct links {
    const rd_view_t *view;
    const rd_view_comm_t *c;
    link_t of[MOST];
    int n;
} links_t;

/* Several channels are one link: the best one counts. */
static void add(links_t *l, link_t link)
{
    for (int i = 0; i < l->n; i++)
        if (l->of[i].to == link.to && l->of[i].from == link.from) {
            if (link.class > l->of[i].class)
                l->of[i] = link;
            return;
        }
    if (l->n < MOST)
        l->of[l->n++] = link;
}

static void gather(links_t *l)
{
    for (int i = 0; i < l->c->nranks; i++) {
        const rd_view_rank_t *r = &l->c->ranks[i];
        for (int k = 0; r->comm.state == RD_MONITOR_ALIVE && k < RD_MONITOR_LINKS; k++) {
            const rd_monitor_link_t *link = &r->comm.links[k];
            int class = link->peer ? rd_pace_best(link, LEAST, PERIODS, rd_verdict_clock(l->view, r)) : -1;
            if (class >= 0 && link->peer <= (uint64_t)r->comm.size)
                add(l, (link_t){r, link, (int)link->peer - 1, class});
        }
    }
}

/* Returns the class that half of the other links reach; -1: there are too few. */
static int median_of_others(const links_t *l, const link_t *but)
{
    int counts[RD_MONITOR_PACES] = {0}, n = 0, above = 0, class = RD_MONITOR_PACES;

    for (int i = 0; i < l->n; i++)
        if (&l->of[i] != but) {
            counts[l->of[i].class]++;
            n++;
        }
    if (n < OTHERS)
        return -1;
    while (class > 0 && 2 * above < n)
        above += counts[--class];
    return class;
}

static bool is_slow(const links_t *l, const link_t *link)
{
    return link->class + RATIO <= median_of_others(l, link);
}

/* Returns how many of a link's paces are of this class or of better ones; *all: how many it has. */
static int paces_from(const link_t *link, int class, int *all)
{
    int counts[RD_MONITOR_PACES], n = 0;

    *all = rd_pace_counts(link->paces, counts);
    for (int i = class; i < RD_MONITOR_PACES; i++)
        n += counts[i];
    return n;
}

static bool may_be_chance(const links_t *l, const link_t *link)
{
    const int above = link->class + 2; /* more than twice its best */
    double part = 0, expected;
    int all;

    for (int i = 0; i < l->n; i++)
        if (&l->of[i] != link) {
            int faster = paces_from(&l->of[i], above, &all);
            part += (double)faster / all / (l->n - 1);
        }
    int faster = paces_from(link, above, &all);
    expected = part * all;
    return expected < EXPECTED || 10 * faster > expected;
}

/* Does something slow come to the sender, or go from it to another rank? */
static bool is_the_senders(const links_t *l, const link_t *link)
{
    for (int i = 0; i < l->n; i++) {
        const link_t *other = &l->of[i];
        bool touches = other->to->comm.rank == link->from || other->from == link->from;
        if (other != link && touches && is_slow(l, other))
            return true;
    }
    return false;
}

static bool is_the_receivers(const links_t *l, const link_t *link)
{
    int into = 0, slow = 0;

    for (int i = 0; i < l->n; i++)
        if (l->of[i].to == link->to) {
            into++;
            slow += is_slow(l, &l->of[i]);
        }
    return into > 2 && slow == into;
}

/* The part of the time that a rank has waited lately; *for_whom: for whom mostly, -1: for nobody in particular. */
static double waited(const rd_view_t *view, const rd_view_rank_t *r, int *for_whom)
{
    const rd_ago_t span = {.from = 7};
    int64_t now = rd_verdict_clock(view, r), ms = rd_span_ms(span, &r->comm, now);
    rd_waits_t w;

    rd_periods_read(&r->comm, span, now, &w);
    *for_whom = w.peer;
    return ms > 0 ? (double)(w.ms + w.message_ms) / (double)ms : 0;
}

/* Do both ends wait, and neither of them for somebody else? A sender that waits for what it has to pass on is as slow
 * as whoever it comes from, over any number of ranks. */
static bool wait_for_each_other(const links_t *l, const link_t *link, const rd_view_rank_t *from)
{
    int sender_for, receiver_for;

    if (waited(l->view, from, &sender_for) < BUSY || waited(l->view, link->to, &receiver_for) < BUSY)
        return false;
    return (sender_for < 0 || sender_for == link->to->comm.rank) && (receiver_for < 0 || receiver_for == link->from);
}

static void say(const links_t *l, const link_t *link, const rd_view_rank_t *from, rd_monitor_verdict_t *v)
{
    char one[64], two[64], text[RD_VERDICT_BYTES];
    int whom;

    rd_view_rank_text(l->view, from, one, sizeof one);
    rd_view_rank_text(l->view, link->to, two, sizeof two);
    snprintf(text, sizeof text,
             "the link from %s to %s is slow: some %.3g MB/s at best, where half of the %d other links have %.3g or "
             "more; both ends wait, for %.0f and %.0f %% of the time",
             one, two, rd_pace_of(link->class) / 1e6, l->n - 1, rd_pace_of(median_of_others(l, link)) / 1e6,
             100 * waited(l->view, from, &whom), 100 * waited(l->view, link->to, &whom));
    rd_verdict_say_slow(v, -1, text); /* neither end is slow */
}

void rd_verdict_link(const rd_view_t *view, const rd_view_comm_t *c, rd_monitor_verdict_t *v)
{
    links_t l = {.view = view, .c = c};

    gather(&l);
    for (int i = 0; i < l.n; i++) {
        const link_t *link = &l.of[i];
        const rd_view_rank_t *from = rd_view_rank_of(c, link->from);
        if (from && is_slow(&l, link) && !may_be_chance(&l, link) && !is_the_senders(&l, link) &&
            !is_the_receivers(&l, link) && wait_for_each_other(&l, link, from))
            say(&l, link, from, v);
    }
}
