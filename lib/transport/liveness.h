/* The watch: one thread a process that sleeps in epoll on pidfds and bootstrap sockets of all communicators and sets a
 * communicator's stop word the moment a peer is gone. Started with the first communicator, joined with the last. */
#ifndef RD_TRANSPORT_LIVENESS_H
#define RD_TRANSPORT_LIVENESS_H

#include "node/node.h"

#define RD_LIVENESS_MS 300

typedef struct rd_liveness rd_liveness_t;

/* `left[rank]` (shared memory or the bootstrap's farewell) tells an orderly leave from a death: a peer that has set it
 * may end its process without being called dead. To be set by an orderly leave only: an abort or a failure is told by
 * rd_boot_farewell, and that counts whatever has_left says. */
rondo_result_t rd_liveness_add(rd_liveness_t **liveness, rd_boot_t *boot, const rd_node_t *node, rd_log_ctx_t *ctx,
                               rd_stop_t *stop, int (*has_left)(void *arg, int rank), void *arg);
/* From now on `look(arg)` is called every RD_LIVENESS_MS, with what rd_liveness_add was given, by the watch's thread.
 */
void rd_liveness_poll(rd_liveness_t *liveness, void (*look)(void *arg));
void rd_liveness_remove(rd_liveness_t *liveness); /* after it returns nothing of the communicator is touched */

/* A communicator that is being made of some of a watched one's ranks, `members`, ascending. Who dies before it has come
 * can tell nobody; but its process is watched here. From rd_liveness_meeting_begin to _end, `stop` is set when a member
 * dies or has died before. */
typedef struct rd_meeting {
    struct rd_meeting *next;
    rd_liveness_t *liveness; /* NULL: has been removed */
    const int *members;
    int nmembers, died; /* died: which of them, -1: none */
    rd_log_ctx_t *ctx;
    rd_stop_t *stop; /* NULL: not yet begun */
} rd_meeting_t;

void rd_liveness_meeting(rd_liveness_t *liveness, rd_meeting_t *meeting, const int *members, int nmembers);
void rd_liveness_meeting_begin(rd_meeting_t *meeting, rd_log_ctx_t *ctx, rd_stop_t *stop);
void rd_liveness_meeting_end(rd_meeting_t *meeting); /* also of one that was never begun */

#endif
