/* The communicators of this process that programs know of: for what concerns all of them, and for threads of the
 * library's own that look at each. */
#ifndef RD_CORE_LIVING_H
#define RD_CORE_LIVING_H

#include "core/comm.h"

/* To be called when a communicator is published, and when it is closed, which it need not have been published for. */
void rd_living_add(rondo_comm_t comm);
void rd_living_remove(rondo_comm_t comm);

/* Returns the first one for which `is` says so, with a reference that is the caller's, or NULL. */
rondo_comm_t rd_living_find(bool (*is)(rondo_comm_t comm, const void *arg), const void *arg);

/* Calls `call` for each of them in turn, the oldest last, without holding the list, so that it may wait. One that ends
 * meanwhile may still be called for. */
void rd_living_each(void (*call)(rondo_comm_t comm, void *arg), void *arg);

/* Around a fork. The child has none. */
void rd_living_lock(void);
void rd_living_unlock(void);
void rd_living_forget(void);

#endif
