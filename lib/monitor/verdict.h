/* Who holds a communicator up: a verdict on what two looks at the records and at the kernel's word on the processes
 * show, and "unknown" where that is not enough to name a rank.
 *
 * The first that holds is said: a rank is dead, is stopped; a rank has left; a rank is late, which is in no call of the
 * communicator and made none between the looks, while another one waited all the time for it, or for one that waits for
 * it; a rank is slow, which comes late again and again (verdict_slow.c). It is not a verdict on ranks of other nodes,
 * of which there is no record here. */
#ifndef RD_MONITOR_VERDICT_H
#define RD_MONITOR_VERDICT_H

#include "monitor/view.h"

/* As rondo-ras returns them. */
enum { RD_VERDICT_NONE = 0, RD_VERDICT_LATE = 3, RD_VERDICT_BLAMED = 4, RD_VERDICT_UNKNOWN = 5, RD_VERDICT_SLOW = 6 };

#define RD_VERDICT_MS 700     /* between the two looks: a rank that makes a call meanwhile is not late */
#define RD_VERDICT_BYTES 1536 /* three ranks in a circle, with hosts, communicators and calls of long names */

/* Where the waits of this node lead on to another one in a communicator: a rank's collective of that number waits for a
 * rank without a record here. */
typedef struct rd_verdict_hop {
    uint64_t comm, number; /* comm: 0: there is none */
    int64_t waits_for;
} rd_verdict_hop_t;

typedef struct rd_monitor_verdict {
    int status;  /* RD_VERDICT_NONE: nothing is wrong */
    int rank;    /* that is named; -1: none, or more than one: the ends of a link, ranks that wait in a circle */
    bool failed; /* the text is the sentence of a call that has failed */
    bool circle; /* ranks wait for each other, each for what none of them can do: nothing under way will help */
    int next;    /* a rank without a record here, which is on another node, that the waits lead to; -1: none */
    rd_verdict_hop_t hop; /* of one that is late: to where its waits in other communicators lead */
    char text[RD_VERDICT_BYTES], also[RD_VERDICT_BYTES]; /* also: another finding; "": there is none */
} rd_monitor_verdict_t;

/* Judges a communicator of the view's last look. */
void rd_verdict_judge(const rd_view_t *view, const rd_view_comm_t *comm, rd_monitor_verdict_t *verdict);
/* Judges what holds one rank up, by the last look alone: for a rank of another node that waits for it in its collective
 * of that number; 0: in a message. */
void rd_verdict_of(const rd_view_t *view, const rd_view_comm_t *comm, int rank, uint64_t number,
                   rd_monitor_verdict_t *verdict);
/* The rank `about`, which has no record here and is waited for in the collective of that number, is late and held: its
 * node has found the hop, and says `text` of it. Does it lead back to who waits for that rank here? Returns true with a
 * verdict if it does, by two looks. */
bool rd_verdict_closes(const rd_view_t *view, const rd_view_comm_t *comm, int about, uint64_t number,
                       const rd_verdict_hop_t *hop, const char *text, rd_monitor_verdict_t *verdict);
/* Copies a sentence to where there may be less room for it: one that is cut ends with "...". */
void rd_verdict_copy(char *text, size_t bytes, const char *sentence);
/* Does a verdict of this status name a rank? */
static inline bool rd_verdict_names(int status)
{
    return status == RD_VERDICT_LATE || status == RD_VERDICT_BLAMED || status == RD_VERDICT_SLOW;
}
/* Returns whichever status counts more. */
int rd_verdict_worse(int one, int other);

#endif
