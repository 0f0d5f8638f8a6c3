/* Which threads are inside a communicator, and how long it lives.
 *
 * A call marks that its thread is inside. A thread that ends the communicator (above all an abort from another thread)
 * waits until no thread is inside, and only then takes the modules down. The struct itself outlives them: groups and
 * requests hold a reference, and the last few communicators that were ended are kept, so that a call which another
 * thread was just about to make still finds a struct that says so. */
#ifndef RD_CORE_LIFETIME_H
#define RD_CORE_LIFETIME_H

#include <stdbool.h>

#include "core/comm.h"

/* The slow paths of the two functions below, for a communicator that has failed or has something outstanding, with
 * which waits in other communicators help (base/outstanding.h). */
rondo_result_t rd_comm_enter_slowly(rondo_comm_t comm);
rondo_result_t rd_comm_leave_slowly(rondo_comm_t comm, rondo_result_t result);

/* Marks that this thread is inside. Returns the health. Whatever that is, rd_comm_leave must follow; but if
 * rd_comm_gone, there are no modules any more, and no other thread uses what is left of the communicator's tasks. The
 * mark is a plain store: the thread that ends the communicator issues the barrier for both sides
 * (base/process_barrier.h), because that is rare and a call is not. */
static inline rondo_result_t rd_comm_enter(rondo_comm_t comm)
{
    atomic_store_explicit(&comm->inside, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect((rd_stop_get(&comm->health.stop) | rd_outstanding_listed(&comm->queue.outstanding)) == 0, 1))
        return RONDO_SUCCESS;
    return rd_comm_enter_slowly(comm);
}

/* Returns `result`. If the communicator has failed, its error is reported again, the other ranks of the node are
 * notified, and what was posted is taken back: from here on the user's buffers are the user's. */
static inline rondo_result_t rd_comm_leave(rondo_comm_t comm, rondo_result_t result)
{
    if (__builtin_expect((result | rd_outstanding_listed(&comm->queue.outstanding)) != 0, 0))
        return rd_comm_leave_slowly(comm, result);
    atomic_store_explicit(&comm->inside, 0, memory_order_release);
    return RONDO_SUCCESS;
}

/* While a thread that is inside waits elsewhere (for sockets, for files), `pause` lets waits make progress for
 * what is outstanding here, too, and answers ranks of other nodes that ask what this one calls; `resume` ends that. */
void rd_comm_pause(rondo_comm_t comm);
void rd_comm_resume(rondo_comm_t comm);

static inline bool rd_comm_gone(rondo_comm_t comm)
{
    return atomic_load_explicit(&comm->gone, memory_order_acquire);
}

/* For a query, which any thread may make concurrently with a call. Returns true if the modules stay until
 * rd_comm_query_leave. */
bool rd_comm_query_enter(rondo_comm_t comm);
void rd_comm_query_leave(rondo_comm_t comm);
/* The same for a call that can say nothing without the modules. Returns RONDO_SUCCESS, and rd_comm_query_leave must
 * follow, or the error of `call`: another thread has aborted the communicator since the call began. */
rondo_result_t rd_comm_query(rondo_comm_t comm, const char *call);

/* After a failure: notifies the other ranks of the node, and takes back what was posted. The caller is inside, or no
 * thread is. */
void rd_comm_cancel(rondo_comm_t comm);

/* To be called when the stop word is set: waits until all threads that were inside before have left. */
void rd_comm_empty(rondo_comm_t comm);
/* Closes the communicator to new calls and waits until no thread is inside. Returns false if another thread has done so
 * before, and the modules are gone. */
bool rd_comm_close(rondo_comm_t comm);
/* To be called when the modules have been taken down: lets threads that wait in rd_comm_close go on, and gives the
 * user's reference back. */
void rd_comm_closed(rondo_comm_t comm);

void rd_comm_retain(rondo_comm_t comm); /* takes one more reference to the struct */
void rd_comm_release(rondo_comm_t comm);

#endif
