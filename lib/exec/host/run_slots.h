/* Walks a flat plan (plan/flat.h) by slots, whose messages are short and stay on the node. */
#ifndef RD_EXEC_HOST_RUN_SLOTS_H
#define RD_EXEC_HOST_RUN_SLOTS_H

#include "exec/host/run.h"

/* As rd_flat_advance. */
bool rd_slots_advance(rd_run_t *run);

#endif
