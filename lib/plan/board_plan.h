/* How plans use boards (transport/shm/board.h): whether an operation fits there, and where its messages lie. */
#ifndef RD_PLAN_BOARD_PLAN_H
#define RD_PLAN_BOARD_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/proto.h"
#include "sched/program.h"

struct rd_plan;
struct rd_board;

/* Returns true if the messages of one pass, `bytes` each for `nchunks` chunks, leave half of the ring free. */
bool rd_board_fits(rd_coll_t coll, int nchunks, rd_proto_t proto, size_t bytes);

/* Fills in plan->board. `bytes`: of the longest chunk; `slice`: of a message. */
void rd_board_plan(struct rd_plan *plan, struct rd_board *board, rd_proto_t proto, size_t bytes, size_t slice);

#endif
