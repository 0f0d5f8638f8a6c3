/* See nt_store.h. */
#include "exec/host/nt_store.h"
#include "base/wait.h"

#include "exec/host/host_copy.h"

#define TRIAL 16384 /* the most bytes that are timed: this costs little even if the write is slow */
/* In bytes per nanosecond; less is slow. On Zen 4 plain writes move 1 to 2 between cores that share no cache. If they
 * share one, it is over 20 in a ring that is longer than the reader's own cache, but 5 to 9 in a short one, whose lines
 * lie in that cache. Past the caches it is 10 to 15 everywhere; short messages wait for the journey to memory, though.
 */
#define SLOW 3.5
#define SLOW_NEAR 10.0
#define NEAR_LEAST 16384            /* bytes of a message */
#define NEAR_RING ((size_t)1 << 19) /* a ring of messages of this many bytes together is not near any more */
#define AGAIN 8                     /* messages until the next trial after a fast one: a trial reads the clock twice */
#define LEAST 32                    /* messages after a slow trial, and twice as many after each further one */
#define MOST 2048

/* Times a plain write. The fence waits for the stores: a message of a few KB would otherwise still be in the core's
 * buffer. */
static void try_out(rd_send_t *s, char *to, const char *from, size_t bytes, double slow)
{
    int64_t begin = rd_clock_ns();

    rd_copy(to, from, bytes);
    atomic_thread_fence(memory_order_seq_cst);
    if ((double)bytes >= slow * (double)(rd_clock_ns() - begin)) {
        s->nt_hold = 0;
        s->nt_left = -AGAIN;
        return;
    }
    s->nt_hold = s->nt_hold ? 2 * s->nt_hold : LEAST;
    if (s->nt_hold > MOST)
        s->nt_hold = MOST;
    s->nt_left = s->nt_hold;
}

static double slow_for(const rd_send_t *s, size_t bytes)
{
    return bytes >= NEAR_LEAST && (s->slots_mask + 1) * bytes < NEAR_RING ? SLOW_NEAR : SLOW;
}

void rd_nt_store_write(const rd_plan_t *plan, rd_send_t *s, char *to, const char *from, size_t bytes)
{
    size_t part = 0;

    if (plan->nt_store == RD_NT_STORE_ALWAYS) {
        rd_copy_past(to, from, bytes);
        return;
    }
    if (s->nt_left == 0) {
        part = bytes < TRIAL ? bytes : TRIAL;
        try_out(s, to, from, part, slow_for(s, bytes));
    }
    if (s->nt_left > 0) {
        rd_copy_past(to + part, from + part, bytes - part);
        s->nt_left--;
    } else {
        rd_copy(to + part, from + part, bytes - part);
        s->nt_left++;
    }
}
