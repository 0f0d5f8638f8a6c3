/* See verdict.h. */
#include "monitor/verdict_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define NAMED 6     /* ranks of a list, which goes on with a number */
#define BUSY 3      /* ticks of processor time between two looks, of some 30: the process computes */
#define QUEUED 0.25 /* of the time without a core, though it would run: then it may have got fewer ticks */

static const int order[] = {RD_VERDICT_BLAMED, RD_VERDICT_LATE, RD_VERDICT_SLOW, RD_VERDICT_UNKNOWN,
                            RD_VERDICT_NONE}; /* what counts more comes first */

static int weight_of(int status)
{
    int i = 0;

    while (order[i] != status && order[i] != RD_VERDICT_NONE)
        i++;
    return i;
}

void rd_verdict_say(rd_monitor_verdict_t *v, int status, int rank, const char *format, ...)
{
    char *to = v->status == RD_VERDICT_NONE ? v->text : v->also[0] ? NULL : v->also;
    va_list args;

    if (!to)
        return;
    va_start(args, format);
    if (vsnprintf(to, RD_VERDICT_BYTES, format, args) >= RD_VERDICT_BYTES)
        memcpy(to + RD_VERDICT_BYTES - sizeof "...", "...", sizeof "...");
    va_end(args);
    if (v->status != RD_VERDICT_NONE)
        return;
    v->status = status;
    v->rank = rank;
}

void rd_verdict_copy(char *text, size_t bytes, const char *sentence)
{
    const size_t n = strlen(sentence), kept = n < bytes ? n : bytes - 1;

    memcpy(text, sentence, kept);
    text[kept] = 0;
    if (n >= bytes && bytes >= sizeof "...")
        memcpy(text + bytes - sizeof "...", "...", sizeof "...");
}

/* ---- dead, stopped, left, failed ---- */

/* Of a failure the end of a process is the consequence. */
static bool is_dead(const rd_view_t *view, const rd_view_rank_t *r)
{
    return rd_view_gone(view, r) && r->comm.state == RD_MONITOR_ALIVE;
}

static void say_dead(const rd_view_t *view, const rd_view_rank_t *r, rd_monitor_verdict_t *v)
{
    const int track = rd_view_inside(&r->comm);
    char who[64], where[400];

    rd_view_rank_text(view, r, who, sizeof who);
    rd_view_call_text(view, r, track < 0 ? RD_TRACK_COLLECTIVE : track, where, sizeof where);
    if (r->comm.calls[RD_TRACK_COLLECTIVE].begun == 0 && track < 0)
        rd_verdict_say(v, RD_VERDICT_BLAMED, r->comm.rank,
                       "%s is dead: its process ended before its first collective here", who);
    else
        rd_verdict_say(v, RD_VERDICT_BLAMED, r->comm.rank, "%s is dead: its process ended %s %s", who,
                       track < 0 ? "outside of calls, after" : "in", where);
}

/* All `dead` ones but the first, which a sentence of its own says, in one. */
static void say_others_dead(const rd_view_t *view, const rd_view_comm_t *c, int dead, rd_monitor_verdict_t *v)
{
    char who[64], names[NAMED * (sizeof who + 2)] = "", more[32] = "";
    size_t used = 0;
    int n = 0;

    for (int i = 0; i < c->nranks && n <= NAMED; i++) {
        if (!is_dead(view, &c->ranks[i]) || n++ == 0)
            continue;
        rd_view_rank_text(view, &c->ranks[i], who, sizeof who);
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", who);
    }
    if (dead > n)
        snprintf(more, sizeof more, " and %d more", dead - n);
    rd_verdict_say(v, RD_VERDICT_BLAMED, -1, "%s%s are dead, too", names, more);
}

static void blame_processes(const rd_view_t *view, const rd_view_comm_t *c, rd_monitor_verdict_t *v)
{
    const rd_view_rank_t *last = NULL;
    char who[64], where[400];
    int dead = 0;

    for (int i = 0; i < c->nranks; i++) {
        if (!is_dead(view, &c->ranks[i]))
            continue;
        last = &c->ranks[i];
        if (dead++ == 0)
            say_dead(view, last, v);
    }
    if (dead == 2)
        say_dead(view, last, v);
    else if (dead > 2)
        say_others_dead(view, c, dead, v);
    for (int i = 0; i < c->nranks; i++) {
        const rd_view_rank_t *r = &c->ranks[i];
        if (!rd_view_stopped(view, r) || r->comm.state == RD_MONITOR_ENDED)
            continue;
        rd_view_rank_text(view, r, who, sizeof who);
        rd_view_where_text(view, r, false, where, sizeof where);
        rd_verdict_say(v, RD_VERDICT_BLAMED, r->comm.rank, "%s is stopped, by a signal or a debugger (%s)", who, where);
    }
}

/* Does the failure name somebody, or say who differs from whom? */
static int status_of_failure(int result, int failed_rank)
{
    if (result == RONDO_ERR_MISMATCH)
        return RD_VERDICT_BLAMED;
    if (failed_rank < 0)
        return RD_VERDICT_UNKNOWN;
    return result == RONDO_ERR_TIMEOUT ? RD_VERDICT_LATE : RD_VERDICT_BLAMED;
}

/* Finds the sentence of one that has found the failure out himself, or else of one that has heard of it. */
static const rd_view_rank_t *find_failure(const rd_view_t *view, const rd_view_comm_t *c, rd_monitor_failure_t *failure)
{
    const rd_view_rank_t *found = NULL;
    rd_monitor_failure_t one;

    for (int i = 0; i < c->nranks; i++) {
        const rd_view_rank_t *r = &c->ranks[i];
        if (r->comm.state == RD_MONITOR_ALIVE || /* as it was looked at: it may have failed since */
            !rd_reader_failure(&view->processes[r->process].reader, c->id, r->comm.rank, &one) ||
            (found && (one.heard || !failure->heard)))
            continue;
        found = r;
        *failure = one;
    }
    return found;
}

/* Ranks that have ended their communicator since still have its sentence. */
static void blame_failed(const rd_view_t *view, const rd_view_comm_t *c, rd_monitor_verdict_t *v)
{
    rd_monitor_failure_t failure;
    const rd_view_rank_t *r = find_failure(view, c, &failure);
    char who[64], where[400];

    if (r) {
        int status = status_of_failure(r->comm.result, failure.failed_rank);
        v->failed = v->status == RD_VERDICT_NONE;
        rd_verdict_say(v, status, r->comm.result == RONDO_ERR_MISMATCH ? -1 : failure.failed_rank,
                       "a call has failed%s: %s",
                       status == RD_VERDICT_UNKNOWN ? ", and unknown is whose fault it is" : "", failure.text);
        return;
    }
    for (int i = 0; i < c->nranks; i++) {
        r = &c->ranks[i];
        if (r->comm.state != RD_MONITOR_FAILED)
            continue;
        rd_view_rank_text(view, r, who, sizeof who);
        rd_view_where_text(view, r, false, where, sizeof where);
        rd_verdict_say(v, RD_VERDICT_UNKNOWN, -1,
                       "unknown: the communicator has failed at %s: %s; its error says more (%s)", who,
                       rondo_result_string((rondo_result_t)r->comm.result), where);
        return;
    }
}

/* ---- whom they wait for ---- */

const rd_view_rank_t *rd_verdict_before(const rd_view_comm_t *then, int rank)
{
    return then ? rd_view_rank_of(then, rank) : NULL;
}

bool rd_verdict_still(const rd_view_comm_t *then, const rd_view_rank_t *r)
{
    const rd_view_rank_t *was = rd_verdict_before(then, r->comm.rank);

    return !then || (was && rd_view_begun(&was->comm) == rd_view_begun(&r->comm) &&
                     rd_view_inside(&was->comm) == rd_view_inside(&r->comm));
}

/* At both looks, in the same call. */
static bool is_waiting(const rd_view_comm_t *then, const rd_view_rank_t *r)
{
    const rd_view_rank_t *was = rd_verdict_before(then, r->comm.rank);

    return rd_view_waits_for(&r->comm) >= 0 && was && rd_view_waits_for(&was->comm) >= 0 && rd_verdict_still(then, r);
}

/* Processor time is that of all threads of the process. */
const char *rd_verdict_doing(const rd_view_process_t *p)
{
    const bool one_look =
        !p->ticks_before; /* else one that happens to run at the second look may have slept till then */

    if (one_look ? p->state == 'R' : p->ticks >= p->ticks_before + BUSY)
        return "; its process computes";
    if (p->state == 'R' && p->queued > QUEUED)
        return "; its process waits for a core";
    return p->state == 'S' || p->state == 'R' ? "; its process sleeps"
           : p->state == 'D'                  ? "; its process waits in the kernel"
                                              : "";
}

/* Who is late in the end, for whom this one waits elsewhere. */
static void add_root(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *late, char *text,
                     size_t bytes)
{
    const rd_view_rank_t *root = rd_verdict_root(view, c, late);
    const size_t used = strlen(text);
    char who[64];

    if (!root)
        return;
    rd_view_rank_text(view, root, who, sizeof who);
    snprintf(text + used, bytes - used, "; in the end it waits for %s of '%.40s', which is late", who, root->comm.name);
}

void rd_verdict_late_text(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *late, uint64_t ahead,
                          char *text, size_t bytes)
{
    const rd_view_rank_t *other;
    const rd_view_comm_t *o = rd_verdict_elsewhere(view, c, late, &other);
    char number[RD_VERDICT_NUMBER_BYTES], who[64], last[240], there[240], where[460], many[32] = "";

    rd_view_rank_text(view, late, who, sizeof who);
    rd_view_where_text(view, late, false, last, sizeof last);
    snprintf(where, sizeof where, "%s", rd_verdict_doing(&view->processes[late->process]));
    if (o) {
        rd_view_where_text(view, other, true, there, sizeof there);
        snprintf(where, sizeof where, "; it is in another communicator, '%.40s'%s: %s", other->comm.name,
                 rd_verdict_number_of(o, c, number), there);
        add_root(view, c, late, where, sizeof where);
    }
    if (ahead)
        snprintf(many, sizeof many, ", by %llu call%s", (unsigned long long)ahead, ahead == 1 ? "" : "s");
    snprintf(text, bytes, "%s is late%s: %s%s", who, many, last, where);
}

/* The same communicator's rank of the process that is late in the end, if that is late here, too: it is the cause. */
static const rd_view_rank_t *cause_of(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_comm_t *then,
                                      const rd_view_rank_t *waiter, const rd_view_rank_t *late)
{
    const rd_view_rank_t *root = rd_verdict_root(view, c, late), *found = NULL, *other;

    for (int i = 0; root && i < c->nranks; i++) {
        if (c->ranks[i].process != root->process)
            continue;
        if (found)
            return NULL; /* its threads are ranks */
        found = &c->ranks[i];
    }
    const bool is_late = found && found != late && rd_view_inside(&found->comm) < 0 && rd_verdict_still(then, found) &&
                         rd_view_inside(&waiter->comm) == RD_TRACK_COLLECTIVE &&
                         found->comm.calls[RD_TRACK_COLLECTIVE].begun < waiter->comm.calls[RD_TRACK_COLLECTIVE].begun;
    return is_late && !rd_verdict_elsewhere(view, c, found, &other) ? found : NULL;
}

static void say_outside(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_comm_t *then,
                        const rd_view_rank_t *waiter, const rd_view_rank_t *late, rd_monitor_verdict_t *v)
{
    const rd_view_rank_t *cause;
    char by[64], call[200], over[64], text[RD_VERDICT_BYTES];
    int track = rd_view_inside(&waiter->comm);
    uint64_t ahead = waiter->comm.calls[RD_TRACK_COLLECTIVE].begun - late->comm.calls[RD_TRACK_COLLECTIVE].begun;

    if (rd_verdict_order(view, c, waiter, late, v))
        return;
    rd_view_rank_text(view, waiter, by, sizeof by);
    rd_view_call_text(view, waiter, track, call, sizeof call);
    if (track == RD_TRACK_COLLECTIVE ? (int64_t)ahead <= 0
                                     : rd_verdict_other_end(view, waiter, late, track) == RD_END_CALLED) {
        rd_view_rank_text(view, late, text, 64);
        rd_verdict_say(v, RD_VERDICT_UNKNOWN, -1,
                       "unknown: %s waits in %s since %.1f s for %s, which has made %s and is outside: what it "
                       "sent has not come",
                       by, call, rd_view_waits_since(view, waiter), text,
                       track == RD_TRACK_COLLECTIVE ? "that call" : "the call at the other end");
        return;
    }
    if ((cause = cause_of(view, c, then, waiter, late))) {
        ahead = waiter->comm.calls[RD_TRACK_COLLECTIVE].begun - cause->comm.calls[RD_TRACK_COLLECTIVE].begun;
        rd_verdict_late_text(view, c, cause, ahead, text, sizeof text);
        rd_view_rank_text(view, late, over, sizeof over);
        rd_verdict_say(v, RD_VERDICT_LATE, cause->comm.rank,
                       "%s; %s waits for it in another communicator, and for that one %s in %s since %.1f s", text,
                       over, by, call, rd_view_waits_since(view, waiter));
        return;
    }
    rd_verdict_late_text(view, c, late, track == RD_TRACK_COLLECTIVE && (int64_t)ahead > 0 ? ahead : 0, text,
                         sizeof text);
    rd_verdict_say(v, RD_VERDICT_LATE, late->comm.rank, "%s; %s waits for it in %s since %.1f s", text, by, call,
                   rd_view_waits_since(view, waiter));
}

/* The waits end at `at`: it waits for `peer`, of which there is the record `next`; NULL: there is none here. */
static void say_end(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_comm_t *then,
                    const rd_view_rank_t *at, const rd_view_rank_t *next, rd_monitor_verdict_t *v)
{
    const int peer = rd_view_waits_for(&at->comm);
    char who[64], where[400];

    rd_view_rank_text(view, at, who, sizeof who);
    rd_view_where_text(view, at, true, where, sizeof where);
    if (peer < 0) {
        rd_verdict_say(v, RD_VERDICT_UNKNOWN, -1, "unknown: %s is inside and waits for nobody (%s)", who, where);
    } else if (!next) {
        v->next = peer;
        rd_verdict_say(v, RD_VERDICT_UNKNOWN, -1,
                       "unknown: %s waits for rank %d, of which there is no record on this host (%s)", who, peer,
                       where);
    } else if (next->comm.state == RD_MONITOR_ENDED) {
        rd_verdict_say(v, RD_VERDICT_BLAMED, peer,
                       "rank %d has left: it has destroyed its communicator, and %s waits for it (%s)", peer, who,
                       where);
    } else if (!rd_verdict_still(then, next)) {
        rd_verdict_say(v, RD_VERDICT_UNKNOWN, -1, "unknown: %s waits for rank %d, which makes progress (%s)", who, peer,
                       where);
    } else {
        say_outside(view, c, then, at, next, v);
    }
}

/* Follows whom one rank waits for, as far as the records tell. `walks`: of each rank which walk has been there, so that
 * one that comes to another's way ends there, as it would find the same; NULL: this is the only one. */
static void follow(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_comm_t *then,
                   const rd_view_rank_t *from, int *walks, rd_monitor_verdict_t *v)
{
    const rd_view_rank_t *at = from, *next;
    const int walk = (int)(from - c->ranks) + 1;

    for (int hops = 0; hops <= c->nranks; hops++, at = next) {
        int *was = walks ? &walks[at - c->ranks] : NULL, peer = rd_view_waits_for(&at->comm);
        if (was && *was && *was != walk)
            return;
        if (was)
            *was = walk;
        next = peer < 0 ? NULL : rd_view_rank_of(c, peer);
        if (!next || next->comm.state == RD_MONITOR_ENDED || !rd_verdict_still(then, next) ||
            rd_view_inside(&next->comm) < 0) {
            say_end(view, c, then, at, next, v);
            return;
        }
    }
    rd_verdict_circle(view, c, at, v);
}

/* The sentence on who is late has one rank that waits; and all others? */
static void add_waiters(const rd_view_comm_t *c, const rd_view_comm_t *then, rd_monitor_verdict_t *v)
{
    const size_t n = strlen(v->text);
    int waiting = 0;

    for (int i = 0; i < c->nranks; i++)
        waiting += is_waiting(then, &c->ranks[i]);
    if (v->status == RD_VERDICT_LATE && waiting > 1)
        snprintf(v->text + n, sizeof v->text - n, "; %d ranks wait in all", waiting);
}

/* Follows all that have waited since before the first look; the best founded verdict stands. */
static void blame_waits(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_comm_t *then,
                        rd_monitor_verdict_t *v)
{
    int *walks = calloc((size_t)c->nranks, sizeof *walks); /* without memory it takes longer */

    for (int i = 0; i < c->nranks; i++) {
        rd_monitor_verdict_t one = {.rank = -1, .next = -1};
        if (!is_waiting(then, &c->ranks[i]))
            continue;
        follow(view, c, then, &c->ranks[i], walks, &one);
        if (weight_of(one.status) < weight_of(v->status))
            *v = one;
    }
    free(walks);
    add_waiters(c, then, v);
}

int rd_verdict_worse(int one, int other)
{
    return weight_of(one) < weight_of(other) ? one : other;
}

void rd_verdict_judge(const rd_view_t *view, const rd_view_comm_t *c, rd_monitor_verdict_t *v)
{
    *v = (rd_monitor_verdict_t){.rank = -1, .next = -1};
    blame_processes(view, c, v);
    const rd_view_comm_t *then = rd_view_comm_of(view->before, view->nbefore, c->id);
    if (v->status == RD_VERDICT_NONE && c->ranks[0].comm.device >= 0)
        rd_verdict_kernels(view, c, then, v);
    else if (v->status == RD_VERDICT_NONE)
        blame_waits(view, c, then, v);
    if (v->status == RD_VERDICT_NONE)
        blame_failed(view, c, v);
    rd_verdict_slow(view, c, v);
    rd_verdict_link(view, c, v);
}

void rd_verdict_of(const rd_view_t *view, const rd_view_comm_t *c, int rank, uint64_t number, rd_monitor_verdict_t *v)
{
    const rd_view_rank_t *r = rd_view_rank_of(c, rank);
    char who[64], where[400], text[RD_VERDICT_BYTES];

    *v = (rd_monitor_verdict_t){.rank = -1, .next = -1};
    blame_processes(view, c, v);
    if (v->status != RD_VERDICT_NONE || !r)
        return;
    if (c->ranks[0].comm.device < 0 && rd_view_inside(&r->comm) >= 0) {
        follow(view, c, NULL, r, NULL, v);
        return;
    }
    if (c->ranks[0].comm.device >= 0 && rd_verdict_kernel(view, c, rank, v))
        return;
    uint64_t has = r->comm.calls[RD_TRACK_COLLECTIVE].begun;
    rd_view_rank_text(view, r, who, sizeof who);
    rd_view_where_text(view, r, false, where, sizeof where);
    if (c->ranks[0].comm.device >= 0)
        rd_verdict_say(v, RD_VERDICT_UNKNOWN, -1, "unknown: %s, %s", who, where);
    else if (r->comm.state == RD_MONITOR_ENDED)
        rd_verdict_say(v, RD_VERDICT_BLAMED, rank, "%s has left: it has destroyed its communicator (%s)", who, where);
    else if (number && has >= number)
        rd_verdict_say(v, RD_VERDICT_UNKNOWN, -1, "unknown: %s has made that call, and is %s", who, where);
    else {
        rd_verdict_late_text(view, c, r, number ? number - has : 0, text, sizeof text);
        rd_verdict_say(v, RD_VERDICT_LATE, rank, "%s", text);
        if (number)
            rd_verdict_find_hop(view, c, r, v);
    }
}
