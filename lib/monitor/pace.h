/* How fast long messages come over a link between nodes, within a call: from when the first of several was known not to
 * be here, to when each of those that follow it is taken.
 *
 * That moment is the last but one at which this rank has looked for it in vain, behind a poll of the network that
 * brought nothing at all: it has polled again since. So what lay in the kernel's buffers already does not seem to come
 * fast. What has lain there for a while before it was taken, and a sender that has nothing to send yet, make the pace
 * slower than the link is. So what counts of a link is its best paces (verdict_link.c). The clock is read for messages
 * of RD_PACE_LEAST or more alone, which take far longer. */
#ifndef RD_MONITOR_PACE_H
#define RD_MONITOR_PACE_H

#include <stddef.h>

#include "base/wait.h"
#include "monitor/record.h"

#define RD_PACE_LEAST ((size_t)32 << 10) /* bytes */

/* Of a connection. */
typedef struct rd_pace {
    const void *connection;       /* NULL: the place is free */
    int64_t missed_ns, before_ns; /* when the next message was last looked for, and the time before; 0: it was not */
    int64_t from_ns;              /* the first moment, from which on is measured; 0: there is none */
    uint32_t kb, call;            /* that have come since; the low half of the number of collectives begun */
} rd_pace_t;

void rd_pace_note_taken(rd_pace_t *paces, rd_monitor_comm_t *board, const void *connection, int peer, size_t bytes);

/* A message of `bytes` bytes is looked for, and is not here. `paces`: RD_MONITOR_LINKS, or NULL. */
static inline void rd_pace_missed(rd_pace_t *paces, const void *connection, size_t bytes)
{
    if (!paces || bytes < RD_PACE_LEAST)
        return;
    for (int i = 0; i < RD_MONITOR_LINKS; i++)
        if (paces[i].connection == connection) {
            paces[i].before_ns = paces[i].missed_ns;
            paces[i].missed_ns = rd_clock_ns();
        }
}

/* It is taken. */
static inline void rd_pace_took(rd_pace_t *paces, rd_monitor_comm_t *board, const void *connection, int peer,
                                size_t bytes)
{
    if (bytes >= RD_PACE_LEAST)
        rd_pace_note_taken(paces, board, connection, peer, bytes);
}

/* ---- whoever reads the record ---- */

/* Returns how many paces there are, and in `counts` how many of each class. */
int rd_pace_counts(const rd_monitor_link_t *link, int counts[RD_MONITOR_PACES]);
/* Returns the class that a tenth of the paces reach or pass; -1: there are fewer than `least`, or they are of fewer
 * than that many `periods`. `now_ms`: of the writer's clock; a link of which nothing came lately has none. */
int rd_pace_best(const rd_monitor_link_t *link, int least, int periods, int64_t now_ms);
double rd_pace_of(int class); /* in bytes each second, in the middle of the class */

#endif
