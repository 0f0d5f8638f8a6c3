/* The records of other processes of this node, which this one holds so that they outlive them. */
#ifndef RD_MONITOR_HELD_H
#define RD_MONITOR_HELD_H

#include "monitor/view.h"

/* Takes over a descriptor that another process has passed; one of a record that is held already is closed. Returns a
 * number for rd_held_drop, or -1 if it is not held: it is no record, or there is no memory. */
int rd_held_take(int fd);
void rd_held_drop(int held);
/* Copies the descriptors of all records that are held from the `from`-th on, at most `most`. Returns their number. They
 * stay open while the caller holds rd_record_lock. */
int rd_held_list(int from, int *fds, int most);
/* The process's rank by its launcher's variables, and how many there are; -1: they say nothing, or it is not held. */
void rd_held_job_rank(int held, int *rank, int *size);
/* Adds this process's own record and all that it holds. Of a view that has some, copies of files are read again, and
 * those that are held no more are left out. Returns false if there is no memory. */
bool rd_held_view(rd_view_t *view);
/* The same before a further look, which only copies need. */
bool rd_held_again(rd_view_t *view);
/* Adds this process's own record alone. Returns false if it has none, or there is no memory. */
bool rd_held_own(rd_view_t *view);
void rd_held_forget(void); /* in a forked child, whose descriptors have been closed */

#endif
