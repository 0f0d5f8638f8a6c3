/* Ranks that wait for each other in different communicators. One waits in its communicator for a call that another rank
 * has not made, as it waits itself, by the same thread as always, in a call of another communicator; and the waits lead
 * back to the first. Each hop binds: the call is owed, and the one that its rank is in instead holds its thread. */
#include <stdio.h>
#include <string.h>

#include "monitor/verdict_int.h"

#define HOPS 4096 /* of a chain of waits: more than a host has ranks */
#define SHOWN 30  /* bytes of a name that a sentence has at least */

/* Are there calls of several threads in the record of a process? */
static bool has_threads(const rd_reader_t *reader)
{
    const uint64_t n = rd_reader_events(reader), kept = n < reader->head.nevents ? n : reader->head.nevents;
    uint64_t thread = 0;
    rd_monitor_event_t event;

    for (uint64_t i = n - kept; i < n; i++) {
        if (!rd_reader_event(reader, i, &event))
            continue;
        if (thread && event.thread != thread)
            return true;
        thread = event.thread;
    }
    return false;
}

bool rd_verdict_calls_alone(const rd_view_t *view, const rd_view_rank_t *r, uint64_t thread)
{
    const rd_reader_t *reader = &view->processes[r->process].reader;
    const uint64_t waited = r->comm.device < 0 ? r->comm.thread : 0;
    bool repeats = false, unknown = false;
    rd_monitor_event_t event;

    for (int t = 0; t < RD_TRACKS; t++) {
        if (!r->comm.calls[t].begun)
            continue;
        if (!rd_reader_last(reader, &r->comm, (rd_track_t)t, &event)) {
            unknown = true; /* the ring has other events by now */
            continue;
        }
        if (event.thread != thread)
            return false;
        repeats |= r->comm.calls[t].begun > event.number;
    }
    if (waited)
        return waited == thread;
    return !unknown && (!repeats || !has_threads(reader));
}

/* Might the first call of a rank be any thread's? Other ranks of its process have threads of their own, and other
 * threads of it have called. */
static bool is_anyones(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *r)
{
    for (int i = 0; i < c->nranks; i++)
        if (c->ranks[i].process == r->process && c->ranks[i].comm.rank != r->comm.rank)
            return true;
    return has_threads(&view->processes[r->process].reader);
}

/* Is the thread that makes all calls of `r`, a rank of `c`, or is to make its first one, inside a call of `other`? */
static bool is_in(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *r, const rd_view_rank_t *other)
{
    const int track = rd_view_inside(&other->comm);
    rd_monitor_event_t event;

    if (other->process != r->process || track < 0 ||
        !rd_reader_last(&view->processes[other->process].reader, &other->comm, (rd_track_t)track, &event))
        return false;
    if (!rd_view_begun(&r->comm) && is_anyones(view, c, r))
        return false;
    const bool waits = other->comm.device < 0 && rd_view_waits_for(&other->comm) >= 0 && other->comm.thread;
    return rd_verdict_calls_alone(view, r, waits ? other->comm.thread : event.thread);
}

/* Has a call failed since then, or the communicator? A call has ended before its communicator is said to have failed.
 */
static bool has_failed(const rd_monitor_comm_t *now, const rd_monitor_comm_t *then)
{
    bool failed = now->state == RD_MONITOR_FAILED;

    for (int t = 0; t < RD_TRACKS; t++)
        failed |= now->failed[t] && !then->failed[t];
    return failed;
}

/* The same rank of a communicator as it was before a call of it failed there, which may have happened because of what
 * is to be found; NULL: none has. */
static const rd_view_rank_t *until_it_failed(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *r,
                                             const rd_view_comm_t **then)
{
    *then = rd_view_comm_of(view->before, view->nbefore, c->id);
    const rd_view_rank_t *was = rd_verdict_before(*then, r->comm.rank);
    return was && has_failed(&r->comm, &was->comm) ? was : NULL;
}

const rd_view_comm_t *rd_verdict_elsewhere(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *r,
                                           const rd_view_rank_t **there)
{
    for (int i = 0; i < view->ncomms; i++) {
        const rd_view_comm_t *other = &view->comms[i], *then;
        for (int k = 0; other->id != c->id && k < other->nranks; k++) {
            *there = &other->ranks[k];
            if (is_in(view, c, r, *there))
                return other;
            *there = until_it_failed(view, other, *there, &then);
            if (*there && is_in(view, c, r, *there))
                return then;
        }
    }
    return NULL;
}

bool rd_verdict_held(const rd_view_t *view, const rd_view_rank_t *r)
{
    const int track = rd_view_inside(&r->comm);
    rd_monitor_event_t call;

    return r->comm.device < 0 && rd_verdict_under_way(&r->comm) == 1 &&
           rd_reader_last(&view->processes[r->process].reader, &r->comm, (rd_track_t)track, &call) &&
           !(call.flags & RD_MONITOR_GROUPED);
}

/* Is `next` still to make the call that the rank waits for in its own? */
static bool is_owed(const rd_view_t *view, const rd_view_rank_t *r, const rd_view_rank_t *next)
{
    const int track = rd_view_inside(&r->comm);

    if (track == RD_TRACK_COLLECTIVE)
        return next->comm.calls[track].begun < r->comm.calls[track].begun;
    return track >= 0 && rd_verdict_other_end(view, r, next, track) == RD_END_OWED;
}

/* Is it the communicator as it was before a call of it failed? */
static bool is_past(const rd_view_t *view, const rd_view_comm_t *c)
{
    return c == rd_view_comm_of(view->before, view->nbefore, c->id);
}

/* Follows what *at waits for in *c, over any number of ranks and communicators, as long as all of it has stood still
 * since the first look. Where it leads to another communicator, a rank is held there by a call, and so does not make
 * the one that is waited for. Returns true when it comes to `to`, and adds to *past whether one of the calls has failed
 * meanwhile. `to` NULL: when it comes to one that waits for a rank without a record here, which is *at then; as that is
 * asked by one look, only calls that are owed count. */
static bool follow(const rd_view_t *view, const rd_view_comm_t **c, const rd_view_rank_t **at, const rd_view_rank_t *to,
                   bool *past)
{
    for (int hops = 0; hops < HOPS; hops++) {
        const rd_view_comm_t *then = rd_view_comm_of(view->before, view->nbefore, (*c)->id);
        const int peer = rd_view_waits_for(&(*at)->comm);
        const rd_view_rank_t *next = rd_view_rank_of(*c, peer);
        if (peer < 0 || !rd_verdict_still(then, *at) || !rd_verdict_held(view, *at))
            return false;
        if (!next)
            return !to;
        if (rd_view_inside(&next->comm) < 0)
            *c = is_owed(view, *at, next) ? rd_verdict_elsewhere(view, *c, next, &next) : NULL;
        else if (!to && !is_owed(view, *at, next))
            return false;
        if (!*c)
            return false;
        *past |= is_past(view, *c);
        if (next == to)
            return true;
        *at = next;
    }
    return false;
}

static bool leads_to(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *at, const rd_view_rank_t *to,
                     bool *past)
{
    *past |= is_past(view, c);
    return follow(view, &c, &at, to, past);
}

const char *rd_verdict_number_of(const rd_view_comm_t *c, const rd_view_comm_t *other,
                                 char text[RD_VERDICT_NUMBER_BYTES])
{
    text[0] = 0;
    if (strncmp(c->ranks[0].comm.name, other->ranks[0].comm.name, SHOWN) == 0)
        snprintf(text, RD_VERDICT_NUMBER_BYTES, " (%016llx)", (unsigned long long)c->id);
    return text;
}

static void say_order(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *waiter,
                      const rd_view_comm_t *o, const rd_view_rank_t *other, rd_monitor_verdict_t *v)
{
    const rd_view_rank_t *next = rd_view_rank_of(o, rd_view_waits_for(&other->comm));
    const rd_view_rank_t *named =
        rd_view_rank_of(c, rd_view_waits_for(&waiter->comm)); /* `other`, by its number here */
    char one[64], two[64], here[200], there[200], back[96] = "", own[RD_VERDICT_NUMBER_BYTES],
                                                  its[RD_VERDICT_NUMBER_BYTES];

    rd_view_rank_text(view, waiter, one, sizeof one);
    rd_view_rank_text(view, named && named->process == other->process ? named : other, two, sizeof two);
    rd_view_call_text(view, waiter, rd_view_inside(&waiter->comm), here, sizeof here);
    rd_view_call_text(view, other, rd_view_inside(&other->comm), there, sizeof there);
    if (next && next->process != waiter->process)
        rd_view_rank_text(view, next, back, sizeof back);
    rd_verdict_say(v, RD_VERDICT_BLAMED, -1,
                   "ranks wait for each other in different communicators, which they must call in one order: %s waits "
                   "in '%.30s'%s in %s for %s, which waits in '%.30s'%s in %s for %s",
                   one, c->ranks[0].comm.name, rd_verdict_number_of(c, o, own), here, two, o->ranks[0].comm.name,
                   rd_verdict_number_of(o, c, its), there, back[0] ? back : "the first");
}

bool rd_verdict_order(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *waiter,
                      const rd_view_rank_t *late, rd_monitor_verdict_t *v)
{
    const rd_view_rank_t *other;
    const rd_view_comm_t *o = rd_verdict_elsewhere(view, c, late, &other);
    bool past = false;

    if (!o || !rd_verdict_held(view, waiter) || !is_owed(view, waiter, late) ||
        !leads_to(view, o, other, waiter, &past))
        return false;
    v->circle = v->status == RD_VERDICT_NONE && !past; /* a call that has failed holds nobody any more */
    say_order(view, c, waiter, o, other, v);
    return true;
}

const rd_view_rank_t *rd_verdict_root(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *late)
{
    const rd_view_rank_t *at = late, *next;

    for (int hops = 0; hops < HOPS; hops++) {
        if (rd_view_inside(&at->comm) < 0) {
            const rd_view_rank_t *there;
            const rd_view_comm_t *o = rd_verdict_elsewhere(view, c, at, &there);
            if (!o)
                return at == late ? NULL : at;
            c = o;
            at = there;
        }
        const rd_view_comm_t *then = rd_view_comm_of(view->before, view->nbefore, c->id);
        next = rd_verdict_held(view, at) ? rd_view_rank_of(c, rd_view_waits_for(&at->comm)) : NULL;
        if (!next || next->comm.state != RD_MONITOR_ALIVE || !rd_verdict_still(then, next) ||
            (rd_view_inside(&next->comm) < 0 && !is_owed(view, at, next)))
            return NULL;
        at = next;
    }
    return NULL;
}

/* ---- from node to node ---- */

void rd_verdict_find_hop(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *late,
                         rd_monitor_verdict_t *v)
{
    const rd_view_rank_t *at;
    bool past = false;

    c = rd_verdict_elsewhere(view, c, late, &at);
    if (c && follow(view, &c, &at, NULL, &past) && rd_view_inside(&at->comm) == RD_TRACK_COLLECTIVE)
        v->hop = (rd_verdict_hop_t){c->id, at->comm.calls[RD_TRACK_COLLECTIVE].begun, rd_view_waits_for(&at->comm)};
}

/* Is the rank that the hop leads to still to make the call, and do the waits of its thread lead to `waiter`? It does
 * not matter whether the hop was seen before this look or behind it: who is held by a call that is owed at the one time
 * is so at all times between the two, as nobody in the circle can make the call that the one before waits for. */
static bool comes_to(const rd_view_t *view, const rd_verdict_hop_t *hop, const rd_view_rank_t *waiter, bool *past)
{
    const rd_view_comm_t *o = rd_view_comm_of(view->comms, view->ncomms, hop->comm);
    const rd_view_rank_t *at = o ? rd_view_rank_of(o, (int)hop->waits_for) : NULL;

    if (!at || at->comm.calls[RD_TRACK_COLLECTIVE].begun >= hop->number)
        return false;
    if (rd_view_inside(&at->comm) < 0)
        o = rd_verdict_elsewhere(view, o, at, &at);
    return o && (at == waiter || leads_to(view, o, at, waiter, past));
}

/* The rank that waits for `about` in that collective, and has since the first look. */
static const rd_view_rank_t *waiter_for(const rd_view_t *view, const rd_view_comm_t *c, int about, uint64_t number)
{
    const rd_view_comm_t *then = rd_view_comm_of(view->before, view->nbefore, c->id);

    for (int i = 0; i < c->nranks; i++) {
        const rd_view_rank_t *r = &c->ranks[i];
        if (rd_view_waits_for(&r->comm) == about && rd_view_inside(&r->comm) == RD_TRACK_COLLECTIVE &&
            r->comm.calls[RD_TRACK_COLLECTIVE].begun == number && rd_verdict_still(then, r) && rd_verdict_held(view, r))
            return r;
    }
    return NULL;
}

bool rd_verdict_closes(const rd_view_t *view, const rd_view_comm_t *c, int about, uint64_t number,
                       const rd_verdict_hop_t *hop, const char *text, rd_monitor_verdict_t *v)
{
    const rd_view_rank_t *waiter = hop->comm ? waiter_for(view, c, about, number) : NULL;
    char one[64], call[200];
    bool past = false;

    if (!waiter || !comes_to(view, hop, waiter, &past))
        return false;
    *v = (rd_monitor_verdict_t){.rank = -1, .next = -1, .circle = !past};
    rd_view_rank_text(view, waiter, one, sizeof one);
    rd_view_call_text(view, waiter, RD_TRACK_COLLECTIVE, call, sizeof call);
    rd_verdict_say(v, RD_VERDICT_BLAMED, -1,
                   "ranks wait for each other in different communicators, which they must call in one order: %s waits "
                   "in '%.30s' in %s for rank %d, and that in the end for the first: %s",
                   one, c->ranks[0].comm.name, call, about, text);
    return true;
}
