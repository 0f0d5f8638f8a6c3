/* See own.h. */
#include "monitor/own.h"

#include <string.h>

#include "base/wait.h"
#include "monitor/process_int.h"

/* Of a board that no record has: its words, one by one, and what has ended before what has begun. */
static void copy_board(rd_monitor_comm_t *to, rd_monitor_comm_t *board)
{
    for (int track = 0; track < RD_TRACKS; track++) {
        to->calls[track].ended = atomic_load_explicit(&board->calls[track].ended, memory_order_acquire);
        to->calls[track].begun = atomic_load_explicit(&board->calls[track].begun, memory_order_relaxed);
        to->calls[track].bytes = atomic_load_explicit(&board->calls[track].bytes, memory_order_relaxed);
    }
    to->waits_for = -1;
}

bool rd_own_look(rd_own_t *own, const rd_seat_t *seat)
{
    const rd_record_t *record = seat->record;

    memset(own, 0, sizeof *own);
    own->view = (rd_view_t){.processes = &own->process, .nprocesses = 1};
    own->process.now_ns = (uint64_t)rd_clock_ns();
    if (!record) {
        copy_board(&own->rank.comm, seat->board);
        return true;
    }
    own->process.now_ticks = rd_ticks_now(record->clock);
    own->rank.entry = rd_seat_entry(seat);
    return !rd_reader_memory(&own->process.reader, record->head, record->bytes) &&
           rd_reader_comm(&own->process.reader, own->rank.entry, &own->rank.comm);
}
