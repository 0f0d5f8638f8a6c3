/* See completed.h. Operations end in rd_monitor_end, those of groups, too; but for calls that repeat the one before
 * them, which count by themselves (seat.h): so a communicator with such a hook remembers none (shown.h). On devices
 * calls end when they are enqueued, which is not what was asked for. */
#include "core/completed.h"

#include "core/hooks.h"
#include "monitor/view.h"

static rondo_comm_t comm_of(rd_seat_t *seat)
{
    return (rondo_comm_t)(void *)((char *)seat - offsetof(struct rondo_comm, seat));
}

static void ended(rd_seat_t *seat, rd_track_t track, uint64_t entry, int result)
{
    uint64_t number = atomic_load_explicit(&seat->board->calls[track].ended, memory_order_relaxed);
    rd_monitor_event_t event;
    char text[200];
    bool known = rd_seat_call(seat, track, entry, number, &event);

    rd_view_number_text(known ? &event : NULL, track, known && entry ? event.number : number, text, sizeof text);
    rd_hooks_post(RONDO_HOOK_COMPLETED, comm_of(seat), (rondo_result_t)result, text);
}

void rd_completed_begin(rondo_comm_t comm)
{
    if (!comm->internal && !comm->cuda && comm->seat.record && rd_hooks_wanted(RONDO_HOOK_COMPLETED))
        comm->seat.ended = ended;
}
