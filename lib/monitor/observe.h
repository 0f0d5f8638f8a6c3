/* Two looks at the records of this node, some time apart: a call that waits for long makes the first one shortly before
 * it has something to say, and the verdict (verdict.h) is by both. */
#ifndef RD_MONITOR_OBSERVE_H
#define RD_MONITOR_OBSERVE_H

#include "monitor/seat.h"
#include "monitor/view.h"

/* The first look, at this process's record and all that it holds (held.h). `hurried`: as in rd_view_t. Returns NULL if
 * there is no memory. */
rd_view_t *rd_observe_begin(bool hurried);
/* Returns what the last look saw of the seat's communicator; NULL: nothing, or the seat has no record. */
const rd_view_comm_t *rd_observe_seen(const rd_view_t *view, const rd_seat_t *seat);
/* Looks again; the same is returned. `view` and `seat` may be NULL. */
const rd_view_comm_t *rd_observe_again(rd_view_t *view, const rd_seat_t *seat);
/* Frees the view, and sets it to NULL. */
void rd_observe_end(rd_view_t **view);

#endif
