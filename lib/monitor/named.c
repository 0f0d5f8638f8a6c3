/* See named.h. */
#include "monitor/named.h"

#include <stdio.h>

#include "base/fpenv.h"
#include "base/wait.h"
#include "monitor/history.h"
#include "monitor/process_int.h"
#include "monitor/view.h"

#define TRACK_BITS 2
#define ENTRY_BITS 8

_Static_assert(RD_TRACKS <= 1 << TRACK_BITS && RD_MONITOR_COMMS <= 1 << ENTRY_BITS, "a name has room for them");

/* ---- names ---- */

rondo_work_t rd_name_of(const rd_seat_t *seat, rd_track_t track, uint64_t number)
{
    int entry = rd_seat_entry(seat);

    if (entry < 0 || !number)
        return (rondo_work_t){{0, 0}};
    return (rondo_work_t){{atomic_load_explicit(&seat->board->id, memory_order_relaxed),
                           (number << ENTRY_BITS | (uint64_t)entry) << TRACK_BITS | (uint64_t)track}};
}

rd_track_t rd_named_track(rondo_work_t work)
{
    return (rd_track_t)(work.words[1] & ((1u << TRACK_BITS) - 1));
}

uint64_t rd_named_number(rondo_work_t work)
{
    return work.words[1] >> (ENTRY_BITS + TRACK_BITS);
}

static int entry_of(rondo_work_t work)
{
    return (int)(work.words[1] >> TRACK_BITS & ((1u << ENTRY_BITS) - 1));
}

bool rd_named_of(rondo_work_t work, const rd_seat_t *seat)
{
    return rd_named_number(work) && rd_seat_entry(seat) == entry_of(work) &&
           atomic_load_explicit(&seat->board->id, memory_order_relaxed) == work.words[0];
}

/* ---- what is known ---- */

/* Finds the event of the run that the call belongs to. Runs of a track follow each other in the ring, so it is the last
 * one that has begun by then, unless that is overwritten. */
static bool find_event(const rd_reader_t *reader, const rd_monitor_comm_t *c, rd_track_t track, uint64_t number,
                       rd_monitor_event_t *event)
{
    uint64_t next = rd_reader_events(reader), nevents = reader->head.nevents;

    if (rd_reader_last(reader, c, track, event) && event->number <= number)
        return true;
    for (uint64_t i = next; i > 0 && next - i < nevents; i--)
        if (rd_reader_event(reader, i - 1, event) && event->comm == c->id && event->rank == c->rank &&
            rd_history_track(event->kind) == track && event->number <= number)
            return number - event->number <= event->repeats;
    return false;
}

/* Which of several messages have ended is not known before all have, but for the first of a run. */
static bool is_over(const rd_monitor_comm_t *c, rd_track_t track, uint64_t number, const rd_monitor_event_t *event)
{
    const rd_monitor_calls_t *calls = &c->calls[track];

    if (calls->begun == calls->ended || (event && event->number == number && event->ended))
        return true;
    return track == RD_TRACK_COLLECTIVE && calls->ended >= number;
}

/* Only the last call of a run can have failed and have left the communicator as it was. */
static bool was_refused(const rd_monitor_calls_t *calls, uint64_t number, const rd_monitor_event_t *event, bool last)
{
    uint64_t end = last ? calls->begun : event->number + event->repeats;

    return event->result > RONDO_IN_PROGRESS && number == end;
}

static void judge(const rd_monitor_comm_t *c, rd_track_t track, uint64_t number, const rd_monitor_event_t *event,
                  rondo_work_info_t *info)
{
    const rd_monitor_calls_t *calls = &c->calls[track];
    bool over = is_over(c, track, number, event), last = event && calls->entry && event->stamp >> 8 == calls->entry;

    if (c->failed[track] && over && number >= c->failed[track] >> 8) {
        info->state = RONDO_WORK_FAILED;
        info->result = (rondo_result_t)(c->failed[track] & 0xff);
    } else if (over && event && was_refused(calls, number, event, last)) {
        info->state = RONDO_WORK_FAILED;
        info->result = (rondo_result_t)event->result;
    } else if (c->device >= 0) {
        info->state = RONDO_WORK_ENQUEUED;
    } else if (over) {
        info->state = RONDO_WORK_COMPLETED;
    } else { /* collectives of a communicator wait for each other */
        bool waits = track == RD_TRACK_COLLECTIVE && calls->ended + 1 < number;
        info->state = waits ? RONDO_WORK_ENQUEUED : RONDO_WORK_STARTED;
    }
}

static void fill(const rd_view_process_t *process, const rd_monitor_comm_t *c, rondo_work_t work,
                 rondo_work_info_t *info)
{
    rd_track_t track = rd_named_track(work);
    uint64_t number = rd_named_number(work);
    rd_monitor_event_t event;
    bool known = find_event(&process->reader, c, track, number, &event);

    info->number = number;
    rd_view_number_text(known ? &event : NULL, track, number, info->call, sizeof info->call);
    judge(c, track, number, known ? &event : NULL, info);
    if (known) {
        info->count = event.count;
        info->bytes = event.bytes;
        info->tag = event.tag;
        snprintf(info->algo, sizeof info->algo, "%s", rd_view_algo_name(&event) ? rd_view_algo_name(&event) : "");
        snprintf(info->proto, sizeof info->proto, "%s", rd_view_proto_name(&event) ? rd_view_proto_name(&event) : "");
    }
    if (known && number == event.number) { /* of the others of a run nobody has read a clock */
        info->begun_ns = rd_view_time(process, event.begun);
        info->ended_ns = rd_view_time(process, event.ended);
    }
    if (info->state == RONDO_WORK_STARTED && rd_view_inside(c) == (int)track && rd_view_waits_for(c) >= 0) {
        const rd_view_t view = {.processes = (rd_view_process_t *)(uintptr_t)process, .nprocesses = 1};
        const rd_view_rank_t rank = {.comm = *c};
        info->waits_for = rd_view_waits_for(c);
        info->waits_ms = (int64_t)(1000 * rd_view_waits_since(&view, &rank));
        info->step = c->step;
        info->steps = c->steps;
    }
}

/* The record stays while its lock is held. */
void rd_named_look(rondo_work_t work, rondo_work_info_t *info)
{
    rd_view_process_t process = {.now_ns = (uint64_t)rd_clock_ns()};
    rd_monitor_comm_t comm;
    size_t size = info->size;
    fenv_t program;

    *info = (rondo_work_info_t){.size = size, .state = RONDO_WORK_UNKNOWN, .waits_for = -1, .step = -1, .steps = -1};
    rd_record_lock();
    const rd_record_t *record = rd_record();
    if (record && rd_named_number(work) && rd_named_track(work) < RD_TRACKS &&
        !rd_reader_memory(&process.reader, record->head, record->bytes) &&
        rd_reader_comm(&process.reader, entry_of(work), &comm) && comm.id == work.words[0] &&
        rd_named_number(work) <= comm.calls[rd_named_track(work)].begun) {
        process.now_ticks = rd_ticks_now(record->clock);
        rd_fpenv_begin(&program);
        fill(&process, &comm, work, info);
        rd_fpenv_end(&program);
    }
    rd_record_unlock();
}

bool rd_named_event(const rd_seat_t *seat, rd_track_t track, uint64_t number, rd_monitor_event_t *event)
{
    rd_monitor_comm_t comm;
    rd_reader_t reader;
    bool found = false;

    rd_record_lock();
    const rd_record_t *record = rd_record();
    if (record && !rd_reader_memory(&reader, record->head, record->bytes) &&
        rd_reader_comm(&reader, rd_seat_entry(seat), &comm))
        found = find_event(&reader, &comm, track, number, event);
    rd_record_unlock();
    return found;
}
