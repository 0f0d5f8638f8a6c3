/* Ranks of one communicator that wait for each other in a circle. Each waits for what the next one is to do: the same
 * collective, or the other end of a message. Where none of them has done that by its record, and none can before its
 * own call is over, the program's calls do not meet, and nothing that is under way will help: that is said. Else what
 * one has sent may be late or lost, and the verdict is "unknown". Who has done it is counted, so it does not matter
 * that the records were read one after the other: what had not happened when the last of them was read cannot have
 * happened before. */
#include <stdio.h>

#include "monitor/verdict_int.h"
#include "sched/program.h"

#define HOPS_SAID 3
#define HOP_BYTES 320

/* The events of a rank's calls in its record, from the last one on. */
typedef struct events {
    const rd_reader_t *reader;
    const rd_monitor_comm_t *comm;
    uint64_t next, last; /* `last`: of those that the ring still has */
} events_t;

static events_t events_of(const rd_view_t *view, const rd_view_rank_t *r)
{
    const rd_reader_t *reader = &view->processes[r->process].reader;
    const uint64_t n = rd_reader_events(reader), kept = n < reader->head.nevents ? n : reader->head.nevents;

    return (events_t){reader, &r->comm, n, n - kept};
}

static bool next_event(events_t *e, rd_monitor_event_t *event)
{
    while (e->next > e->last)
        if (rd_reader_event(e->reader, --e->next, event) && event->comm == e->comm->id && event->rank == e->comm->rank)
            return true;
    return false;
}

bool rd_verdict_messages(const rd_view_t *view, const rd_view_rank_t *r, rd_track_t track, int peer, uint64_t *count)
{
    const int kind = track == RD_TRACK_SEND ? RD_MONITOR_SEND : RD_MONITOR_RECV;
    events_t events = events_of(view, r);
    uint64_t behind = r->comm.calls[track].begun + 1; /* the number of the call behind the event's last one */
    rd_monitor_event_t event;

    *count = 0;
    while (behind > 1 && next_event(&events, &event)) {
        if (rd_monitor_one_sided(event.kind)) /* which has a number of one of the tracks, too */
            return false;
        if (event.kind != kind)
            continue;
        const bool last = behind == r->comm.calls[track].begun + 1; /* whose repeats the board says */
        if (!event.number || event.number >= behind || (!last && behind - event.number != event.repeats + 1))
            return false;
        if (event.root == peer)
            *count += behind - event.number;
        behind = event.number;
    }
    return behind == 1;
}

uint64_t rd_verdict_under_way(const rd_monitor_comm_t *comm)
{
    uint64_t sum = 0;

    for (int t = 0; t < RD_TRACKS; t++)
        sum += comm->calls[t].begun - comm->calls[t].ended;
    return sum;
}

bool rd_verdict_held_alone(const rd_view_t *view, const rd_view_rank_t *r, int track)
{
    events_t events = events_of(view, r);
    rd_monitor_event_t call, event;

    if (rd_verdict_under_way(&r->comm) != 1 || !rd_reader_last(events.reader, &r->comm, (rd_track_t)track, &call) ||
        call.flags & RD_MONITOR_GROUPED)
        return false;
    if (track == RD_TRACK_COLLECTIVE ? call.kind >= RD_NUM_COLLS
                                     : call.kind != RD_MONITOR_SEND && call.kind != RD_MONITOR_RECV)
        return false;
    if (!rd_verdict_calls_alone(view, r, call.thread)) /* repetitions have no event */
        return false;
    while (next_event(&events, &event))
        if (event.thread != call.thread)
            return false;
    return true;
}

rd_other_end_t rd_verdict_other_end(const rd_view_t *view, const rd_view_rank_t *r, const rd_view_rank_t *peer,
                                    int track)
{
    const rd_track_t other = track == RD_TRACK_SEND ? RD_TRACK_RECV : RD_TRACK_SEND;
    uint64_t wanted, done;

    if (!rd_verdict_messages(view, r, (rd_track_t)track, peer->comm.rank, &wanted) ||
        !rd_verdict_messages(view, peer, other, r->comm.rank, &done))
        return RD_END_UNKNOWN;
    return done < wanted ? RD_END_OWED : RD_END_CALLED;
}

/* Is `next` still to do what the rank waits for it to do? */
static bool is_owed(const rd_view_t *view, const rd_view_rank_t *r, const rd_view_rank_t *next, int track)
{
    if (!rd_verdict_held_alone(view, r, track))
        return false;
    if (track == RD_TRACK_COLLECTIVE)
        return next->comm.calls[RD_TRACK_COLLECTIVE].begun < r->comm.calls[RD_TRACK_COLLECTIVE].begun;
    return rd_verdict_other_end(view, r, next, track) == RD_END_OWED;
}

/* Returns the length of what it has written. */
static size_t hop_text(const rd_view_t *view, const rd_view_rank_t *r, int next, bool owed, char text[HOP_BYTES])
{
    static const char *const undone[RD_TRACKS] = {"has not called", "does not receive", "has not sent"};
    const int track = rd_view_inside(&r->comm);
    char who[64], call[200];

    rd_view_rank_text(view, r, who, sizeof who);
    rd_view_call_text(view, r, track, call, sizeof call);
    if (owed)
        return (size_t)snprintf(text, HOP_BYTES, "%s waits in %s, which rank %d %s", who, call, next, undone[track]);
    return (size_t)snprintf(text, HOP_BYTES, "%s waits in %s for rank %d", who, call, next);
}

void rd_verdict_circle(const rd_view_t *view, const rd_view_comm_t *c, const rd_view_rank_t *on,
                       rd_monitor_verdict_t *v)
{
    const rd_view_rank_t *first = on, *r, *next;
    char text[(HOPS_SAID + 1) * HOP_BYTES] = "";
    bool owed = true;
    size_t used = 0;
    int ranks = 0;

    for (r = on; (r = rd_view_rank_of(c, rd_view_waits_for(&r->comm))) != on;)
        first = r->comm.rank < first->comm.rank ? r : first; /* so that all say the same */
    for (r = first; ranks == 0 || r != first; r = next, ranks++) {
        next = rd_view_rank_of(c, rd_view_waits_for(&r->comm));
        owed = owed && is_owed(view, r, next, rd_view_inside(&r->comm));
    }
    for (int i = 0; i < ranks && i < HOPS_SAID; i++, r = next) {
        next = rd_view_rank_of(c, rd_view_waits_for(&r->comm));
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", i ? "; " : "");
        used += hop_text(view, r, next->comm.rank, owed, text + used);
    }
    if (ranks > HOPS_SAID)
        snprintf(text + used, sizeof text - used, "; and so on, %d ranks in all", ranks);
    v->circle = owed && v->status == RD_VERDICT_NONE;
    if (owed)
        rd_verdict_say(v, RD_VERDICT_BLAMED, -1, "ranks wait for each other in calls that do not meet: %s", text);
    else
        rd_verdict_say(v, RD_VERDICT_UNKNOWN, -1, "unknown: ranks wait for each other in a circle: %s", text);
}
