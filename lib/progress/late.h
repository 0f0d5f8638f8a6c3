/* A wait that lasts: who holds it up is said in the log after RONDO_STALL_MS, and again after twice, four times and
 * eight times as long, by one rank of the node; and in the error, when the time limit is over.
 *
 * It is the verdict that `rondo-ras who` would give (monitor/verdict.h), on two looks at the records of the node's
 * processes: the first one is made shortly before it is due. Ranks that wait for each other in a circle, of which it is
 * known that nothing will end it, are named after a second. Where the waits lead to a rank of another node, of which
 * there is no record here, its process and another one of its node are asked meanwhile (boot/ask.c), and then the next
 * node, if the waits go on there. A circle that no node sees is found by a probe, which goes round it
 * (monitor/probe.h). */
#ifndef RD_PROGRESS_LATE_H
#define RD_PROGRESS_LATE_H

#include <stdbool.h>
#include <stdint.h>

#include "node/team.h"

#define RD_LATE_HOPS 32 /* nodes that are asked one after the other: a ring of 32 ranks, each alone on its node */

struct rd_monitor_verdict;
struct rd_queue;
struct rd_view;

typedef struct rd_late {
    int64_t wait_ms;      /* when the wait began that the rest is about */
    int64_t due_ms;       /* so long the wait lasts when the next line is due; 0: none ever is */
    bool early;           /* which is one on a circle alone */
    bool looked;          /* for what is due next */
    struct rd_view *view; /* of the first look; NULL: another rank of the node says it, or there is no memory */
    int asked;            /* the rank of another node that was asked about, plus one; 0: none was */
    int64_t asked_ms;     /* when */
    int hops;             /* from one to the next */
    bool probed;          /* a probe was sent (monitor/probe.h) */
} rd_late_t;

/* For a rank that waits for `peer` (-1: no particular rank), each time it has read the clock. */
void rd_late_check(struct rd_queue *queue, int peer, int64_t now_ms);
/* The time limit is over: the communicator fails with RONDO_ERR_TIMEOUT and the verdict, or with what else has failed
 * meanwhile. All ranks say the same, also where limits are over at the same time. */
rondo_result_t rd_late_timeout(struct rd_queue *queue, int peer);
/* The same, but it is said in the log, and nothing fails. */
void rd_late_report(struct rd_queue *queue, int peer);
/* Forgets what was seen: the limit is another one now, or the queue ends. */
void rd_late_forget(struct rd_queue *queue);

/* Asks what holds a rank of another node up, which `team`'s rank waits for. It has a seat. */
void rd_late_ask(const rd_team_t *team, rd_questioner_t by, int about);
/* Does the answer lead back to this node, so that ranks wait for each other in a circle? Returns true with a verdict if
 * it does, by the view. */
bool rd_late_closes(const rd_team_t *team, const struct rd_view *view, int about, const rd_boot_answer_t *answer,
                    struct rd_monitor_verdict *verdict);

/* Sends a probe to whom `team`'s rank waits for. Returns false if that is not known, or has done its part. */
bool rd_late_probe(const rd_team_t *team, rd_questioner_t by);

#endif
