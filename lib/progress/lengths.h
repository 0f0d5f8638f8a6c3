/* The lengths of messages between GPUs of a node. Kernels need both ends to know each length and do not compare them;
 * the hosts do. Each rank writes what it sends and receives into rings in the node's shared memory before the launch,
 * and compares it with what the peer has written for the message of the same number. The rank that comes later finds
 * the difference before its kernel starts, so no byte has moved; the other one's kernel is told to leave. Messages of
 * no bytes are none. Captured messages have no number, since a graph may be launched any number of times: a pair and
 * direction in which one was captured is not compared any more. */
#ifndef RD_PROGRESS_LENGTHS_H
#define RD_PROGRESS_LENGTHS_H

#include "node/team.h"

typedef struct rd_lengths_ring rd_lengths_ring_t;

size_t rd_lengths_ring_bytes(void); /* at the end of each rank's segment of the node's shared memory, before the
                                       signatures of RONDO_CHECK=1 */
/* *ring may stay NULL without an error: then there is nobody to compare with. */
rondo_result_t rd_lengths_ring_create(rd_lengths_ring_t **ring, const rd_team_t *team);
void rd_lengths_ring_free(rd_lengths_ring_t *ring);
/* The messages of a group that is about to be launched: begin, then each message, then end, which compares them with
 * what their peers have recorded. All are recorded before any is compared, so that the group waits for its peers' cache
 * lines once. */
void rd_lengths_ring_begin(rd_lengths_ring_t *ring);
void rd_lengths_ring_message(rd_lengths_ring_t *ring, int peer, int send, uint64_t bytes);
rondo_result_t rd_lengths_ring_end(rd_lengths_ring_t *ring);
/* The same for one that is captured: messages of this pair and direction are not recorded any more. */
void rd_lengths_ring_captured(rd_lengths_ring_t *ring, int peer, int send);
/* Compares with what has come since. Any thread may call it; NULL is allowed. */
void rd_lengths_ring_poll(rd_lengths_ring_t *ring);

#endif
