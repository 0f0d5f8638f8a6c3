/* Who is inside a communicator, and how long it lasts.
 *
 * A call marks that its thread is inside; whoever ends the communicator (an abort from another thread above all) waits
 * until it is not, and only then takes the rooms down. The struct itself outlives them: groups and requests hold a
 * reference, and the last few that were ended are kept, so that a call which another thread was just about to make
 * still finds a struct that says so.
 */
#ifndef RD_CORE_LIFETIME_H
#define RD_CORE_LIFETIME_H

#include "core/comm.h"

/* The slow ways of the two below: the communicator has failed. */
rondo_result_t rd_comm_enter_failed(rondo_comm_t comm);
rondo_result_t rd_comm_leave_failed(rondo_comm_t comm, rondo_result_t result);

/* Marks that this thread is inside. Returns the health. Whatever it is, rd_comm_leave follows; but when
 * rd_comm_gone, there are no rooms any more, and nobody else touches what is left of the communicator's tasks. The mark
 * is a plain store: who ends the communicator issues the barrier for both sides (membarrier), because that is rare and
 * a call is not. */
static inline rondo_result_t rd_comm_enter(rondo_comm_t comm)
{
    atomic_store_explicit(&comm->inside, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(rd_stop_get(&comm->health.stop) == RONDO_SUCCESS, 1))
        return RONDO_SUCCESS;
    return rd_comm_enter_failed(comm);
}

/* Hands `result` through. An error that is the communicator's is said again, the other ranks of the node are told, and
 * what was posted is taken back: from here on the user's buffers are his. */
static inline rondo_result_t rd_comm_leave(rondo_comm_t comm, rondo_result_t result)
{
    if (__builtin_expect(result != RONDO_SUCCESS, 0))
        return rd_comm_leave_failed(comm, result);
    atomic_store_explicit(&comm->inside, 0, memory_order_release);
    return RONDO_SUCCESS;
}

static inline int rd_comm_gone(rondo_comm_t comm)
{
    return atomic_load_explicit(&comm->gone, memory_order_acquire);
}

/* For a question that may come from any thread beside a call: nonzero if the rooms stay until rd_comm_query_leave. */
int rd_comm_query_enter(rondo_comm_t comm);
void rd_comm_query_leave(rondo_comm_t comm);

/* After a failure: tells the others of the node, and takes back what was posted. The caller is inside, or nobody is. */
void rd_comm_cancel(rondo_comm_t comm);

/* The stop word is set: waits until who was inside before has left. */
void rd_comm_empty(rondo_comm_t comm);
/* Shuts the door and waits until nobody is inside. Zero: another thread has done so before, and the rooms are gone. */
int rd_comm_close(rondo_comm_t comm);
/* The rooms are down: who waited at the door goes on. Gives the user's reference back. */
void rd_comm_closed(rondo_comm_t comm);

void rd_comm_retain(rondo_comm_t comm); /* one more reference to the struct */
void rd_comm_release(rondo_comm_t comm);

#endif
