/* Writing a message into a slot: plain, or past the caches, as the way to the reader asks for.
 *
 * A plain store into a slot must first take the line back from the cache of the reader, who has read the slot's last
 * message. Where both cores share a cache that is quick, and the reader then finds the message there. Where they do
 * not, the line makes two journeys, each waited for, and it is several times quicker to send the message to memory
 * (copy.h). Which of the two holds is between two ranks, not of a machine: processors have several caches of the last
 * level, and under a hypervisor a core may be another one from one second to the next. So the writer tries it out: now
 * and then he takes the time of the first part of a plain write, and writes the next messages past the caches if that
 * was slow. The reader need not know, and the bytes are the same either way.
 */
#ifndef RD_EXEC_HOST_NT_STORE_H
#define RD_EXEC_HOST_NT_STORE_H

#include <stdbool.h>

#include "plan/plan.h"

#define RD_NT_STORE_LEAST 4096 /* bytes of a message: shorter ones are always written plainly */

static inline bool rd_nt_store_concerns(const rd_plan_t *plan, const rd_send_t *s, size_t bytes)
{
    return plan->nt_store != RD_NT_STORE_NEVER && bytes >= RD_NT_STORE_LEAST && !s->mirrored;
}

/* True: the next message is written plainly, and nothing is to be found out by it. */
static inline bool rd_nt_store_plain(const rd_plan_t *plan, const rd_send_t *s)
{
    return plan->nt_store == RD_NT_STORE_ADAPT && s->nt_left < 0;
}

/* Counts a message that the caller has written plainly by himself. */
static inline void rd_nt_store_passed(rd_send_t *s)
{
    s->nt_left++;
}

/* A message that it concerns, or a part of one: `to` begins a line. */
void rd_nt_store_write(const rd_plan_t *plan, rd_send_t *s, char *to, const char *from, size_t bytes);

#endif
