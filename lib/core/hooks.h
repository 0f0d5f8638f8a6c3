/* Functions of the program's that are called when something has happened: rondo_hook. Whoever finds it posts it, and
 * the monitor thread calls them, so no call waits for a hook. */
#ifndef RD_CORE_HOOKS_H
#define RD_CORE_HOOKS_H

#include "core/comm.h"

bool rd_hooks_wanted(int kind); /* has anybody asked for it? */
/* Posts that something has happened to a communicator that the user has; `text` says what. Costs a load where nobody
 * has asked for that kind. Any thread; waits for nobody. */
void rd_hooks_post(int kind, rondo_comm_t comm, rondo_result_t result, const char *text);

void rd_hooks_turn(void);   /* for the monitor thread */
void rd_hooks_forget(void); /* in a forked child */

#endif
