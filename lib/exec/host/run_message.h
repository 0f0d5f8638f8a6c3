/* Messages of several blocks: rd_message_part_t in sched/step.h.
 */
#ifndef RD_EXEC_HOST_RUN_MESSAGE_H
#define RD_EXEC_HOST_RUN_MESSAGE_H

#include "exec/host/run.h"

/* The lane stands at the first part of a message. Makes and posts the message, or takes it, and moves the lane behind
 * its last part; all at once, or, where a slot is not free or the message has not come, nothing. Returns true if it is
 * done or run->result says why it failed. */
bool rd_run_message(rd_run_t *run, rd_lane_run_t *lane);

#endif
