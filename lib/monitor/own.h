/* What a process knows of a communicator of its own, out of its own record: as rondo-ras would see it. */
#ifndef RD_MONITOR_OWN_H
#define RD_MONITOR_OWN_H

#include "monitor/seat.h"
#include "monitor/view.h"

typedef struct rd_own {
    rd_view_process_t process;
    rd_view_t view; /* of that process alone */
    rd_view_rank_t rank;
} rd_own_t;

/* Any thread, as long as the seat is not left. Without a record only the counts are known. Returns false if the entry
 * is being written. */
bool rd_own_look(rd_own_t *own, const rd_seat_t *seat);

#endif
