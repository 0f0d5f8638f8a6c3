/* RONDO_CHECK=1: before every collective the ranks exchange signatures, which say what each rank has called, and
 * compare them. This file declares the record and its comparison, which are the same everywhere, and three ways to
 * bring the records together:
 *
 *   a task    on a host communicator: an allgather by its own programs, in front of the collective
 *   a ring    on a CUDA communicator of one node: in the node's shared memory, compared by the rank that comes later
 *   a record  on a CUDA communicator on the proxy path: a kernel before the collective's has a proxy compare it, by a
 *             task on a net communicator, each time that it runs */
#ifndef RD_PROGRESS_SIGNATURE_H
#define RD_PROGRESS_SIGNATURE_H

#include <stdbool.h>

#include "plan/call.h"
#include "progress/queue.h"
#include "progress/unlike.h"

/* Returns a hash of the counts that every rank knows, each times `factor`; 0: there are none. The counts of an
 * all-to-all's blocks are known to pairs alone, which compare them (transport/announce.h). */
uint64_t rd_signature_counts(const rd_call_t *call, int nranks, size_t factor);

/* ---- a task ---- */

/* Exchanges and compares at once, for a blocking call. `tuned`: what was chosen for it, if a tuner has a say in that
 * (plan/tuner.h), else 0. *sequence counts the communicator's operations. As everywhere
 * here, a difference fails the communicator; RONDO_ERR_MISMATCH then names the ranks and the field in which they
 * differ. */
rondo_result_t rd_signature_exchange(rd_queue_t *queue, const rd_call_t *call, uint64_t tuned, uint64_t *sequence);
/* Creates a task that does the same, to be added in front of the collective's task. */
rondo_result_t rd_signature_task(rd_queue_t *queue, const rd_call_t *call, uint64_t tuned, rd_task_t **task);
/* Gives the task its sequence number if it is such a task. Called when its group begins, because a group may also be
 * refused. */
void rd_signature_number(rd_task_t *task, uint64_t *sequence);

/* ---- a ring ---- */

typedef struct rd_signature_ring rd_signature_ring_t;

size_t rd_signature_ring_bytes(void); /* at the end of each rank's segment of the node's shared memory */
/* *ring may stay NULL without an error: then there is nobody to compare with. */
rondo_result_t rd_signature_ring_create(rd_signature_ring_t **ring, const rd_team_t *team);
void rd_signature_ring_free(rd_signature_ring_t *ring);
/* Records a call, and compares it with those of other ranks that have come before. */
rondo_result_t rd_signature_ring_call(rd_signature_ring_t *ring, const rd_call_t *call, bool captured);
/* Compares with what has come since. Any thread may call it. */
void rd_signature_ring_poll(rd_signature_ring_t *ring);

/* ---- a record ---- */

void rd_signature_fill(rd_signature_t *signature, const rd_call_t *call, const rd_team_t *team);
/* For the thread that makes the progress of `queue`: submits a task that exchanges and compares the ranks' records.
 * *sequence counts them. */
rondo_result_t rd_signature_compare(rd_queue_t *queue, const rd_signature_t *own, uint64_t *sequence,
                                    rd_completion_t *completion);

#endif
