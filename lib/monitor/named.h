/* What the record of this process still says of one call, which has a name of 16 bytes: the communicator's number, and
 * the call's own with its track and the communicator's entry in the table. */
#ifndef RD_MONITOR_NAMED_H
#define RD_MONITOR_NAMED_H

#include <rondo.h>
#include <stdbool.h>

#include "monitor/seat.h"

/* Return the name of a call, and what it names. Without a record it is the name of nothing. */
rondo_work_t rd_name_of(const rd_seat_t *seat, rd_track_t track, uint64_t number);
rd_track_t rd_named_track(rondo_work_t work);
uint64_t rd_named_number(rondo_work_t work);
/* Is it a call of this seat? */
bool rd_named_of(rondo_work_t work, const rd_seat_t *seat);

/* Finds the event of a call of this seat. Returns false if that is not known any more. */
bool rd_named_event(const rd_seat_t *seat, rd_track_t track, uint64_t number, rd_monitor_event_t *event);

/* Fills everything of *info but its size. Any thread, at any time. */
void rd_named_look(rondo_work_t work, rondo_work_info_t *info);

#endif
