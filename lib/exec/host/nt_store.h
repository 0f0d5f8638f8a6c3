/* Writing a message into a slot: plainly, or past the caches, whichever is faster for the reader's core.
 *
 * A plain store into a slot must first take the line back from the cache of the reader, which has read the slot's last
 * message. If both cores share a cache, that is fast, and the reader then finds the message there. If they do not, the
 * line makes two journeys, each of which is waited for, and it is several times faster to send the message to memory
 * (host_copy.h). Which is the case depends on the two ranks, not on the machine: processors have several caches of the
 * last level, and under a hypervisor a core may be another one from one second to the next. So the writer measures it:
 * now and then it times the first part of a plain write, and writes the next messages past the caches if that was slow.
 * The reader need not know, and the bytes are the same either way. */
#ifndef RD_EXEC_HOST_NT_STORE_H
#define RD_EXEC_HOST_NT_STORE_H

#include <stdbool.h>

#include "plan/plan.h"

#define RD_NT_STORE_LEAST 4096 /* bytes of a message: shorter ones are always written plainly */

static inline bool rd_nt_store_concerns(const rd_plan_t *plan, const rd_send_t *s, size_t bytes)
{
    return plan->nt_store != RD_NT_STORE_NEVER && bytes >= RD_NT_STORE_LEAST && !s->mirrored;
}

/* Returns true if the next message is written plainly and not measured. */
static inline bool rd_nt_store_plain(const rd_plan_t *plan, const rd_send_t *s)
{
    return plan->nt_store == RD_NT_STORE_ADAPT && s->nt_left < 0;
}

/* Counts a message that the caller has written plainly itself. */
static inline void rd_nt_store_passed(rd_send_t *s)
{
    s->nt_left++;
}

/* Writes a message for which rd_nt_store_concerns is true, or a part of one; `to` begins a line. */
void rd_nt_store_write(const rd_plan_t *plan, rd_send_t *s, char *to, const char *from, size_t bytes);

#endif
