/* Runs plans by boards (transport/shm/board.h): the walk of a flat plan by lines, and the slots of one step of run.c.
 */
#ifndef RD_EXEC_HOST_RUN_BOARD_H
#define RD_EXEC_HOST_RUN_BOARD_H

#include "exec/host/run.h"

/* As rd_flat_advance. */
bool rd_board_advance(rd_run_t *run);

/* Returns true if all messages that the step reads have come, and the one that it writes has room. */
bool rd_board_ready(rd_run_t *run, const rd_step_t *step, rd_board_slot_t slot);

#endif
