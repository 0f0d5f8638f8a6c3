/* What rondo_force_next, rondo_resources_next and rondo_launch_event_next have said for this thread's next collective.
 */
#ifndef RD_CORE_FORCE_NEXT_H
#define RD_CORE_FORCE_NEXT_H

#include <stdbool.h>

#include "plan/call.h"

/* Gives it to `call`, which is that collective. `budgets`: the communicator has multiprocessors to divide. */
void rd_force_take(rd_call_t *call, bool budgets);
void rd_force_drop(void); /* that collective is refused: it is not kept for the one after */

#endif
