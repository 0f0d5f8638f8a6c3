/* The executor for flat plans: see plan/flat.h. */
#ifndef RD_EXEC_HOST_RUN_FLAT_H
#define RD_EXEC_HOST_RUN_FLAT_H

#include <stdbool.h>

#include "exec/host/run.h"

/* Like rd_run_advance, for a run whose plan is flat. */
bool rd_flat_advance(rd_run_t *run);

#endif
