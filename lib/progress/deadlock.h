/* RONDO_CHECK=1: finds ranks of one node that wait for each other in different communicators, because they call these
 * in different orders. No comparison of signatures finds that: the calls never meet.
 *
 * A thread that has waited for a while says so to the other ranks of its node, in the control of each communicator that
 * it was the last to call: for whom it waits, since when, and that it still did a moment ago. A rank that waits follows
 * these records from the rank that it waits for. If they lead round, and there was a time at which all of them waited
 * and had seen everything that the others had sent before, then none of them will ever go on.
 *
 * Threads and not processes are followed: a thread that waits in one communicator may be waited for in others by the
 * program's design, if another thread calls those. What a rank of another node waits for is not known. */
#ifndef RD_PROGRESS_DEADLOCK_H
#define RD_PROGRESS_DEADLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "transport/conns.h"

struct rd_queue;

typedef struct rd_deadlock {
    struct rd_queue *next; /* of those of this process */
    bool listed;
    bool said;                   /* this wait is known to the other ranks */
    bool warned;                 /* that a rank of another node is waited for */
    uint64_t caller;             /* the thread that called last */
    uint64_t awaited;            /* the thread that was waited for when it was said last */
    int64_t since_ms;            /* when `awaited` last changed */
    int64_t checked_ms;          /* when the records were last looked at */
    char call[RD_WAITING_BYTES]; /* "rank 1 of comm0 (host:pid) waits in allreduce number 3" */
} rd_deadlock_t;

void rd_deadlock_join(struct rd_queue *queue);
void rd_deadlock_leave(struct rd_queue *queue);
/* This thread calls an operation. A negative number is not said. */
void rd_deadlock_call(struct rd_queue *queue, const char *name, int64_t number);
/* Something has moved: this thread does not wait any more. */
void rd_deadlock_moved(struct rd_queue *queue);
/* Looks for a circle, now and then. `peer` is waited for, and `now` is the clock. If there is one, the communicator
 * fails with RONDO_ERR_MISMATCH. */
rondo_result_t rd_deadlock_check(struct rd_queue *queue, int peer, int64_t now);
/* The communicator has failed with RONDO_ERR_MISMATCH while this thread waited. If another rank has found a circle, the
 * news go on to those that wait for this thread, which may share no communicator with the finder. */
void rd_deadlock_heard(struct rd_queue *queue);

#endif
