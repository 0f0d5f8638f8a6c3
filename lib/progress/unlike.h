/* Ranks that do not call the same: how that is said, and how a rank that waits finds it (monitor/called.h).
 *
 * A message of another call is never taken, so whoever should take it waits. A rank that has waited for about a
 * millisecond looks at what the ranks of its node have called lately: if two have different signatures for the call of
 * one number, the first such number is where they parted. The larger part of the ranks is taken to be right, if it is
 * so large that those who have not come yet cannot outnumber it; a rank waits for them for a moment. Else both sides
 * are named, and neither is blamed. One rank of the node says it; the others hear its sentence.
 *
 * Ranks of other nodes are asked what they have called when a message of another call has come from there, when ranks
 * of this node differ, and when a wait has become long; they answer as soon as they wait, too. The process of the one
 * that this rank waits for is asked after a second, too, or after half of a time limit that is less than two, and again
 * at the time limit: its liveness thread answers (boot/ask.c). */
#ifndef RD_PROGRESS_UNLIKE_H
#define RD_PROGRESS_UNLIKE_H

#include "progress/queue.h"

/* What a rank has called. */
typedef struct rd_signature {
    uint64_t sequence, count;
    uint64_t counts; /* of allgatherv and reduce_scatterv, whose counts every rank knows: a hash of them */
    uint64_t tag, bytes;
    uint64_t tuned; /* what was chosen (plan/tuner.h); 0: no tuner has a say in it */
    int32_t type, op, root;
    char name[20]; /* of the operation */
} rd_signature_t;

#define RD_UNLIKE_TUNED "choice"

typedef struct rd_unlike {
    const char *field; /* in which the two differ; "choice": in what a tuner has chosen, and in nothing else */
    int ranks[2];
    rd_signature_t calls[2];
    int others; /* more ranks that call what the first one calls, where these are right; else 0 */
} rd_unlike_t;

/* Fails the communicator with RONDO_ERR_MISMATCH and the sentence, for which the second rank is to blame. */
rondo_result_t rd_unlike_say(const rd_team_t *team, const rd_unlike_t *found);

/* Asks the ranks of other nodes, in a large communicator only `peer`, what they have called. */
void rd_unlike_ask(rd_queue_t *queue, int peer, int64_t now_ms);

/* For a rank that waits, each time it has read the clock: fails the communicator if ranks of its node do not call the
 * same. */
rondo_result_t rd_unlike_check(rd_queue_t *queue, int64_t now_ms);
/* The same for a rank that waits for sockets in a call of all ranks: it answers those that ask what it calls. */
rondo_result_t rd_unlike_answer(rd_queue_t *queue, int *moved);
/* The same at once, for a rank whose wait for `peer` is over, or -1 if that has left. It waits only for what tells who
 * is right. */
rondo_result_t rd_unlike_wait(rd_queue_t *queue, int peer);

#endif
