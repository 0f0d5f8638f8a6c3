/* Liveness: one thread for each process sleeps in epoll on the pidfds and bootstrap sockets of all communicators, and
 * sets a communicator's stop word the moment a peer is gone. It is started with the first communicator and joined with
 * the last. */
#ifndef RD_TRANSPORT_LIVENESS_H
#define RD_TRANSPORT_LIVENESS_H

#include "node/node.h"

#define RD_LIVENESS_MS 300

typedef struct rd_liveness rd_liveness_t;

/* What the liveness asks of a communicator. */
typedef struct rd_liveness_ops {
    /* Distinguishes an orderly leave (from shared memory or the bootstrap's farewell) from a death: a peer that has
     * left may end its process without being called dead. It must be true only after an orderly leave: an abort or a
     * failure is reported by rd_boot_farewell, and that counts whatever this returns. */
    bool (*has_left)(void *arg, int rank);
    /* True once a call has failed on that rank of this node: it may end for that reason. */
    bool (*has_failed)(void *arg, int rank);
    /* Takes in what the ranks of this node have published (rd_health_poll). It is called when one of them is found
     * dead: a rank that ends because of an error has said so before. */
    void (*hear)(void *arg);
    /* Publishes the stop word, which is set, to the ranks of this node: one of them may see this process end, which its
     * program does because of the failure, before it sees what has caused that. */
    void (*tell)(void *arg);
    /* Answers what a rank of another node asks (rd_boot_answer). */
    void (*answer)(void *arg, const rd_boot_question_t *question);
    /* Fails, if nothing has before, because a wait of another rank has lasted too long, and tells all. */
    void (*lose_patience)(void *arg, const rd_boot_claim_t *claim);
} rd_liveness_ops_t;

/* Adds a communicator. */
rondo_result_t rd_liveness_add(rd_liveness_t **liveness, rd_boot_t *boot, const rd_node_t *node, rd_log_ctx_t *ctx,
                               rd_stop_t *stop, const rd_liveness_ops_t *ops, void *arg);
/* From now on the liveness thread calls `on_poll(arg)` every RD_LIVENESS_MS, with the `arg` of rd_liveness_add. */
void rd_liveness_poll(rd_liveness_t *liveness, void (*on_poll)(void *arg));
void rd_liveness_remove(rd_liveness_t *liveness); /* after it returns, nothing of the communicator is used */

/* Returns true if the rank has died for certain: this process has seen it, or one that did has said so. */
bool rd_liveness_died(rd_liveness_t *liveness, int rank);

/* A meeting: a communicator is being made of `members`, some ranks of an existing one, in ascending order. A rank that
 * dies before it has come cannot tell anybody, but the existing communicator observes its process; and one that has
 * left the existing communicator will not come. From rd_liveness_meeting_begin to _end, `stop` is set when a member
 * goes or has gone before, and when another thread of this rank aborts that communicator: the others may have heard
 * of it before they began to meet, and then nobody tells this rank. (No member leaves because it has what it came for:
 * a meeting is over for all before it is so for one.) */
typedef struct rd_meeting {
    struct rd_meeting *next;
    rd_liveness_t *liveness; /* NULL: it has been removed, */
    bool ended;              /* because a thread of this rank has ended the communicator */
    const int *members;
    int nmembers, gone; /* gone: the member that has gone; -1: none */
    int how;            /* as liveness.c has it */
    char whois[80];     /* its host and process */
    rd_log_ctx_t *ctx;
    rd_stop_t *stop; /* NULL: not yet begun */
} rd_meeting_t;

void rd_liveness_meeting(rd_liveness_t *liveness, rd_meeting_t *meeting, const int *members, int nmembers);
void rd_liveness_meeting_begin(rd_meeting_t *meeting, rd_log_ctx_t *ctx, rd_stop_t *stop);
void rd_liveness_meeting_end(rd_meeting_t *meeting); /* also for a meeting that was never begun */

#endif
