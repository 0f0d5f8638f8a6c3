/* RONDO_CHECK=1: every collective is preceded by an exchange of signatures, which say what each rank has called, and
 * their comparison. The record and its comparison stand here once. Three ways bring the records together:
 *
 *   a task    on a host communicator: an allgather by its own programs, in front of the collective
 *   a ring    on a CUDA communicator of one node: in the node's shared memory, by whoever comes later
 *   a list    on a CUDA communicator of several nodes: calls that a proxy compares by tasks on a net sub-communicator
 */
#ifndef RD_PROGRESS_SIGNATURE_H
#define RD_PROGRESS_SIGNATURE_H

#include "plan/call.h"
#include "progress/queue.h"

/* ---- a task ---- */

/* At once, for a blocking call. *sequence counts the communicator's operations. RONDO_ERR_MISMATCH names the ranks and
 * the field in which they differ, and fails the communicator, as everywhere here. */
rondo_result_t rd_signature_exchange(rd_queue_t *queue, const rd_call_t *call, uint64_t *sequence);
/* The same as a task, which is to be added in front of the collective's. */
rondo_result_t rd_signature_task(rd_queue_t *queue, const rd_call_t *call, rd_task_t **task);
/* If it is such a task, it gets its number when its group begins: a group may also be refused. */
void rd_signature_number(rd_task_t *task, uint64_t *sequence);

/* ---- a ring ---- */

typedef struct rd_signature_ring rd_signature_ring_t;

size_t rd_signature_ring_bytes(void); /* at the end of each rank's segment of the node's shared memory */
/* NULL and no error: there is nobody to compare with. */
rondo_result_t rd_signature_ring_create(rd_signature_ring_t **ring, const rd_team_t *team);
void rd_signature_ring_free(rd_signature_ring_t *ring);
/* Writes down a call, and compares it with those that have come before. */
rondo_result_t rd_signature_ring_call(rd_signature_ring_t *ring, const rd_call_t *call);
/* Compares with what has come since; by any thread. */
void rd_signature_ring_poll(rd_signature_ring_t *ring);

/* ---- a list ---- */

typedef struct rd_signature_list rd_signature_list_t;

rondo_result_t rd_signature_list_create(rd_signature_list_t **list, const rd_team_t *team);
void rd_signature_list_free(rd_signature_list_t *list);
/* By the calling thread: writes down a call; how many there are so far. */
rondo_result_t rd_signature_list_call(rd_signature_list_t *list, const rd_call_t *call);
uint64_t rd_signature_list_calls(const rd_signature_list_t *list);
/* By any proxy: have so many been compared, and were alike? */
int rd_signature_list_compared(const rd_signature_list_t *list, uint64_t calls);
/* By the proxy that makes the progress of `queue`: begins with calls that are written down, and sees which are
 * compared. *taken: those it has begun with now; *more: by now more have been compared. */
rondo_result_t rd_signature_list_turn(rd_signature_list_t *list, rd_queue_t *queue, uint64_t *taken, int *more);

#endif
