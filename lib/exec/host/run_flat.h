/* The executor for flat plans: see plan/flat.h. */
#ifndef RD_EXEC_HOST_RUN_FLAT_H
#define RD_EXEC_HOST_RUN_FLAT_H

#include <stdbool.h>

#include "exec/host/run.h"

/* Like rd_run_advance, for a run whose plan is flat. But it does not notice a message of another length than is
 * expected, which a caller that polls for a short time need not know. */
bool rd_flat_advance(rd_run_t *run);
/* Ends the run if such a message has come. The run is open. */
void rd_flat_check(rd_run_t *run);

#endif
