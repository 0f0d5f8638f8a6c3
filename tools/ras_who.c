/* rondo-ras who: the verdict. It says what the records and the kernel show, looked at twice, and "unknown" where that
 * is not enough to name a rank. */
#include <rondo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ras.h"

#define LOOK_MS 300 /* between the two looks: a rank that makes a call meanwhile is not late */
#define SAY 512

typedef struct verdict {
    int status; /* RAS_NONE: nothing is wrong */
    char text[SAY], also[SAY];
} verdict_t;

static const int order[] = {RAS_BLAMED, RAS_LATE, RAS_UNKNOWN, RAS_NONE}; /* what counts more comes first */

static int place_in_order(int status)
{
    int i = 0;

    while (order[i] != status && order[i] != RAS_NONE)
        i++;
    return i;
}

__attribute__((format(printf, 3, 4))) static void say(verdict_t *v, int status, const char *format, ...)
{
    char *to = v->status == RAS_NONE ? v->text : v->also[0] ? NULL : v->also;
    va_list args;

    if (!to)
        return;
    va_start(args, format);
    vsnprintf(to, SAY, format, args);
    va_end(args);
    if (v->status == RAS_NONE)
        v->status = status;
}

/* ---- dead, stopped, left, failed ---- */

static void blame_processes(const ras_view_t *view, const ras_comm_t *c, verdict_t *v)
{
    char who[64], where[400];

    for (int i = 0; i < c->nranks; i++) {
        const ras_rank_t *r = &c->ranks[i];
        if (!ras_gone(view, r) || r->comm.state == RD_MONITOR_ENDED)
            continue;
        int track = ras_inside(&r->comm);
        ras_rank_text(view, r, who, sizeof who);
        ras_call_text(view, r, track < 0 ? RD_TRACK_COLLECTIVE : track, where, sizeof where);
        if (r->comm.calls[RD_TRACK_COLLECTIVE].begun == 0 && track < 0)
            say(v, RAS_BLAMED, "%s is dead: its process ended before its first collective here", who);
        else
            say(v, RAS_BLAMED, "%s is dead: its process ended %s %s", who, track < 0 ? "outside of calls, after" : "in",
                where);
    }
    for (int i = 0; i < c->nranks; i++) {
        const ras_rank_t *r = &c->ranks[i];
        if (!ras_stopped(view, r) || r->comm.state == RD_MONITOR_ENDED)
            continue;
        ras_rank_text(view, r, who, sizeof who);
        ras_where_text(view, r, false, where, sizeof where);
        say(v, RAS_BLAMED, "%s is stopped, by a signal or a debugger (%s)", who, where);
    }
}

static void blame_failed(const ras_view_t *view, const ras_comm_t *c, verdict_t *v)
{
    char who[64], where[400];

    for (int i = 0; i < c->nranks; i++) {
        const ras_rank_t *r = &c->ranks[i];
        if (r->comm.state != RD_MONITOR_FAILED || ras_gone(view, r))
            continue;
        ras_rank_text(view, r, who, sizeof who);
        ras_where_text(view, r, false, where, sizeof where);
        say(v, RAS_UNKNOWN, "unknown: the communicator has failed at %s: %s; its error says more (%s)", who,
            rondo_result_string((rondo_result_t)r->comm.result), where);
        return;
    }
}

/* ---- whom they wait for ---- */

/* The same rank as the first look had it; NULL: it was not there. */
static const ras_rank_t *before(const ras_comm_t *then, int rank)
{
    return then ? ras_rank_of(then, rank) : NULL;
}

/* Has made no progress between the two looks. */
static bool still(const ras_comm_t *then, const ras_rank_t *r)
{
    const ras_rank_t *was = before(then, r->comm.rank);

    return was && ras_begun(&was->comm) == ras_begun(&r->comm) && ras_inside(&was->comm) == ras_inside(&r->comm);
}

/* Another communicator in whose call the process of `r` is. */
static const ras_rank_t *elsewhere(const ras_view_t *view, const ras_comm_t *c, const ras_rank_t *r)
{
    for (int i = 0; i < view->ncomms; i++) {
        const ras_comm_t *other = &view->comms[i];
        for (int k = 0; other->id != c->id && k < other->nranks; k++)
            if (other->ranks[k].process == r->process && ras_inside(&other->ranks[k].comm) >= 0)
                return &other->ranks[k];
    }
    return NULL;
}

static void say_outside(const ras_view_t *view, const ras_comm_t *c, const ras_rank_t *waiter, const ras_rank_t *late,
                        verdict_t *v)
{
    const ras_rank_t *other = elsewhere(view, c, late);
    char who[64], by[64], call[200], last[300], doing[300] = "";
    char state = view->processes[late->process].state;
    int track = ras_inside(&waiter->comm);
    uint64_t ahead = waiter->comm.calls[RD_TRACK_COLLECTIVE].begun, has = late->comm.calls[RD_TRACK_COLLECTIVE].begun;

    ras_rank_text(view, late, who, sizeof who);
    ras_rank_text(view, waiter, by, sizeof by);
    ras_call_text(view, waiter, track, call, sizeof call);
    ras_where_text(view, late, false, last, sizeof last);
    if (other) {
        char there[200];
        ras_where_text(view, other, true, there, sizeof there);
        snprintf(doing, sizeof doing, "; it is in another communicator, '%.40s': %s", other->comm.name, there);
    } else if (state == 'R') {
        snprintf(doing, sizeof doing, "; its process computes");
    } else if (state == 'S' || state == 'D') {
        snprintf(doing, sizeof doing, "; its process %s", state == 'S' ? "sleeps" : "waits in the kernel");
    }
    if (track == RD_TRACK_COLLECTIVE && ahead > has)
        say(v, RAS_LATE, "%s is late, by %llu call%s: %s%s; %s waits for it in %s since %.1f s", who,
            (unsigned long long)(ahead - has), ahead - has == 1 ? "" : "s", last, doing, by, call,
            ras_waits_since(&waiter->comm));
    else
        say(v, RAS_LATE, "%s is late: %s%s; %s waits for it in %s since %.1f s", who, last, doing, by, call,
            ras_waits_since(&waiter->comm));
}

/* Follows whom one rank waits for, as far as the records tell. */
static void follow(const ras_view_t *view, const ras_comm_t *c, const ras_comm_t *then, const ras_rank_t *from,
                   verdict_t *v)
{
    const ras_rank_t *at = from, *next;
    char who[64], where[400];

    for (int hops = 0; hops <= c->nranks; hops++, at = next) {
        int peer = ras_waits_for(&at->comm);
        ras_rank_text(view, at, who, sizeof who);
        ras_where_text(view, at, true, where, sizeof where);
        if (peer < 0) {
            say(v, RAS_UNKNOWN, "unknown: %s is inside and waits for nobody (%s)", who, where);
            return;
        }
        next = ras_rank_of(c, peer);
        if (!next) {
            say(v, RAS_UNKNOWN, "unknown: %s waits for rank %d, of which there is no record on this host (%s)", who,
                peer, where);
            return;
        }
        if (next->comm.state == RD_MONITOR_ENDED) {
            say(v, RAS_BLAMED, "rank %d has left: it has destroyed its communicator, and %s waits for it (%s)", peer,
                who, where);
            return;
        }
        if (!still(then, next)) {
            say(v, RAS_UNKNOWN, "unknown: %s waits for rank %d, which makes progress (%s)", who, peer, where);
            return;
        }
        if (ras_inside(&next->comm) < 0) {
            say_outside(view, c, at, next, v);
            return;
        }
    }
    ras_rank_text(view, from, who, sizeof who);
    ras_where_text(view, from, true, where, sizeof where);
    say(v, RAS_UNKNOWN, "unknown: ranks wait for each other in a circle, with %s among them (%s)", who, where);
}

/* Follows all that have waited since before the first look; the best founded verdict stands. */
static void blame_waits(const ras_view_t *view, const ras_comm_t *c, const ras_comm_t *then, verdict_t *v)
{
    for (int i = 0; i < c->nranks; i++) {
        const ras_rank_t *r = &c->ranks[i], *was = before(then, r->comm.rank);
        verdict_t one = {0};
        if (ras_waits_for(&r->comm) < 0 || !was || ras_waits_for(&was->comm) < 0 || !still(then, r))
            continue;
        follow(view, c, then, r, &one);
        if (place_in_order(one.status) < place_in_order(v->status))
            *v = one;
    }
}

/* ---- all communicators ---- */

static const ras_comm_t *comm_then(const ras_comm_t *then, int nthen, uint64_t id)
{
    for (int i = 0; i < nthen; i++)
        if (then[i].id == id)
            return &then[i];
    return NULL;
}

static void judge(const ras_view_t *view, const ras_comm_t *c, const ras_comm_t *then, verdict_t *v)
{
    blame_processes(view, c, v);
    if (v->status == RAS_NONE && c->ranks[0].comm.device < 0)
        blame_waits(view, c, then, v);
    if (v->status == RAS_NONE)
        blame_failed(view, c, v);
}

static int finish(const ras_view_t *view, const ras_comm_t *then, int nthen, bool json)
{
    int worst = RAS_NONE;

    if (json)
        printf("[");
    for (int i = 0, said = 0; i < view->ncomms; i++) {
        const ras_comm_t *c = &view->comms[i];
        verdict_t v = {0};
        judge(view, c, comm_then(then, nthen, c->id), &v);
        worst = place_in_order(v.status) < place_in_order(worst) ? v.status : worst;
        if (v.status == RAS_NONE)
            continue;
        if (json) {
            printf("%s\n  {\"communicator\": ", said++ ? "," : "");
            ras_print_json(c->ranks[0].comm.name);
            printf(", \"id\": \"%016llx\", \"status\": %d, \"verdict\": ", (unsigned long long)c->id, v.status);
            ras_print_json(v.text);
            printf("}");
            continue;
        }
        printf("'%s': %s\n", c->ranks[0].comm.name, v.text);
        if (v.also[0])
            printf("    also: %s\n", v.also);
    }
    if (json)
        printf("]\n");
    else if (worst == RAS_NONE)
        printf("nobody is waited for: %d communicator%s on this host\n", view->ncomms, view->ncomms == 1 ? "" : "s");
    return worst;
}

int ras_who(ras_view_t *view, const ras_options_t *options)
{
    const struct timespec between = {0, LOOK_MS * 1000000L};
    ras_comm_t *then = view->comms; /* kept beside the second look */
    int nthen = view->ncomms, status;

    view->comms = NULL;
    view->ncomms = 0;
    nanosleep(&between, NULL);
    bool looked = ras_look(view, options);
    status = looked ? finish(view, then, nthen, options->json) : RAS_NOTHING;
    ras_free_comms(then, nthen);
    return status;
}
