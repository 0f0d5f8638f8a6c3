/* The keeper: a thread that does nothing but hold descriptors, in a table of descriptors of its own.
 *
 * A process made by a bare clone gets a copy of its maker's table. What only the keeper holds is in no other thread's,
 * so no child gets it, and it is closed when the process ends, whatever children live on. The calls are made with
 * liveness's lock held. */
#ifndef RD_TRANSPORT_KEEPER_H
#define RD_TRANSPORT_KEEPER_H

#include <stdbool.h>

/* Hands the descriptor over, under a number that is free: from now on only the keeper has it. Returns false if there
 * can be no keeper here; then the descriptor stays the caller's. */
bool rd_keeper_hold(int number, int fd);
void rd_keeper_drop(int number); /* closes it */
void rd_keeper_end(void);        /* ends the thread, if there is one; all that it holds is closed */
void rd_keeper_forget(void);     /* in a forked child: the thread stayed in the parent */

#endif
