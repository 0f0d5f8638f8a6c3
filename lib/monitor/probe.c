/* See probe.h. */
#include "monitor/probe.h"

#include <stdio.h>
#include <string.h>

#include "monitor/verdict_int.h"
#include "sched/program.h"

#define WAITS 4096   /* of one probe: more than there are ranks in most circles */
#define WAITS_SAID 3 /* the others are counted */

static const char in_order[] =
    "ranks wait for each other in different communicators, which they must call in one order: ";
static const char meet[] = "ranks wait for each other in calls that do not meet: ";

static void add_text(rd_probe_t *p, const char *more)
{
    const size_t used = strlen(p->text);

    rd_verdict_copy(p->text + used, sizeof p->text - used, more);
}

static void say_wait(const rd_view_t *view, const rd_view_rank_t *r, rd_probe_t *p)
{
    char who[64], call[200], text[RD_ERROR_BYTES];

    if (p->waits > WAITS_SAID)
        return;
    rd_view_rank_text(view, r, who, sizeof who);
    rd_view_call_text(view, r, p->at.track, call, sizeof call);
    if (p->waits == 1)
        snprintf(text, sizeof text, "%s waits in '%.30s' in %s for rank %d", who, r->comm.name, call, p->at.peer);
    else
        snprintf(text, sizeof text, ", which waits as %s of '%.30s' in %s for rank %d", who, r->comm.name, call,
                 p->at.peer);
    add_text(p, text);
}

/* What the rank waits for. `alone`: the call holds not only its thread, but all that makes calls of it there. */
static bool find_wait(const rd_view_t *view, const rd_view_rank_t *r, bool alone, rd_probe_wait_t *wait)
{
    const int track = rd_view_inside(&r->comm), peer = rd_view_waits_for(&r->comm);

    if (track < 0 || peer < 0 || !(alone ? rd_verdict_held_alone(view, r, track) : rd_verdict_held(view, r)))
        return false;
    *wait = (rd_probe_wait_t){.comm = r->comm.id,
                              .number = r->comm.calls[RD_TRACK_COLLECTIVE].begun,
                              .waiter = r->comm.rank,
                              .peer = peer,
                              .track = track};
    return track == RD_TRACK_COLLECTIVE || rd_verdict_messages(view, r, (rd_track_t)track, peer, &wait->number);
}

/* Is the rank still to make that call? */
static bool owes(const rd_view_t *view, const rd_view_rank_t *r, const rd_probe_wait_t *wait)
{
    const rd_track_t other = wait->track == RD_TRACK_SEND ? RD_TRACK_RECV : RD_TRACK_SEND;
    uint64_t done = r->comm.calls[RD_TRACK_COLLECTIVE].begun;

    if (wait->track != RD_TRACK_COLLECTIVE && !rd_verdict_messages(view, r, other, wait->waiter, &done))
        return false;
    return done < wait->number;
}

/* Is the rank in that call itself, which nobody can end before all have begun it? Then who waits there for this rank
 * waits for whom this one waits for. */
static bool is_in_it(const rd_view_t *view, const rd_view_rank_t *r, const rd_probe_wait_t *wait)
{
    rd_monitor_event_t event;

    if (wait->track != RD_TRACK_COLLECTIVE || rd_view_inside(&r->comm) != RD_TRACK_COLLECTIVE ||
        r->comm.calls[RD_TRACK_COLLECTIVE].begun != wait->number ||
        !rd_reader_last(&view->processes[r->process].reader, &r->comm, RD_TRACK_COLLECTIVE, &event) ||
        event.flags & RD_MONITOR_TABLES) /* blocks may be empty */
        return false;
    return event.kind == RD_BARRIER || event.kind == RD_ALLREDUCE || event.kind == RD_ALLGATHER ||
           event.kind == RD_REDUCE_SCATTER || event.kind == RD_ALLTOALL;
}

bool rd_probe_begin(const rd_view_t *view, uint64_t comm, int rank, rd_probe_t *p)
{
    const rd_view_comm_t *c = rd_view_comm_of(view->comms, view->ncomms, comm);
    const rd_view_rank_t *r = c ? rd_view_rank_of(c, rank) : NULL;

    memset(p, 0, sizeof *p);
    if (!r || !find_wait(view, r, false, &p->at))
        return false;
    p->origin = p->at;
    p->waits = 1;
    say_wait(view, r, p);
    return true;
}

static bool is_back(const rd_probe_t *p)
{
    return p->at.comm == p->origin.comm && p->at.waiter == p->origin.waiter && p->at.number == p->origin.number &&
           p->at.track == p->origin.track;
}

rd_probe_step_t rd_probe_follow(const rd_view_t *view, rd_probe_t *p)
{
    const rd_view_comm_t *c = rd_view_comm_of(view->comms, view->ncomms, p->at.comm);
    const rd_view_rank_t *r = c ? rd_view_rank_of(c, p->at.peer) : NULL;

    if (!r || p->waits <= 0 || p->waits >= WAITS)
        return RD_PROBE_ENDS;
    const bool inside = rd_view_inside(&r->comm) >= 0, same = is_in_it(view, r, &p->at);
    if (!same && !owes(view, r, &p->at))
        return RD_PROBE_ENDS;
    if (!inside && !rd_verdict_elsewhere(view, c, r, &r))
        return RD_PROBE_ENDS;
    if (!find_wait(view, r, inside && !same, &p->at))
        return RD_PROBE_ENDS;
    p->several |= p->at.comm != p->origin.comm;
    if (!is_back(p)) {
        p->waits++;
        say_wait(view, r, p);
        return RD_PROBE_GOES_ON;
    }
    return RD_PROBE_IS_BACK;
}

void rd_probe_text(const rd_probe_t *p, char *text, size_t bytes)
{
    char more[48] = "", all[sizeof in_order + sizeof p->text + sizeof more];

    if (p->waits > WAITS_SAID)
        snprintf(more, sizeof more, "; and so on, %d ranks in all", (int)p->waits);
    snprintf(all, sizeof all, "%s%s%s", p->several ? in_order : meet, p->text, more);
    rd_verdict_copy(text, bytes, all);
}
