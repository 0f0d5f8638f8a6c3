/* See stream.h. */
#include "stream.h"

#include <time.h>

#include "copy.h"

#define TRIAL 16384 /* bytes that are timed at most: it costs little where it goes slowly */
#define SLOW 3.5    /* bytes a nanosecond; less is slow. Zen 4: 5 to 9 and more within a shared cache, 1 to 2 across */
#define AGAIN 8     /* messages until the next trial after a quick one: it costs two looks at the clock */
#define LEAST 32    /* after a slow one, and twice as many after each further one */
#define MOST 2048

static double nanoseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The fence waits for the stores: a message of a few KB would otherwise still be in the core's buffer. */
static void try_out(rd_send_t *s, char *to, const char *from, size_t bytes)
{
    double begin = nanoseconds();

    rd_copy(to, from, bytes);
    atomic_thread_fence(memory_order_seq_cst);
    if ((double)bytes >= SLOW * (nanoseconds() - begin)) {
        s->stream_hold = 0;
        s->stream_left = -AGAIN;
        return;
    }
    s->stream_hold = s->stream_hold ? 2 * s->stream_hold : LEAST;
    if (s->stream_hold > MOST)
        s->stream_hold = MOST;
    s->stream_left = s->stream_hold;
}

void rd_stream_write(const rd_plan_t *plan, rd_send_t *s, char *to, const char *from, size_t bytes)
{
    size_t part = 0;

    if (plan->stream == RD_STREAM_ALWAYS) {
        rd_copy_past(to, from, bytes);
        return;
    }
    if (s->stream_left == 0) {
        part = bytes < TRIAL ? bytes : TRIAL;
        try_out(s, to, from, part);
    }
    if (s->stream_left > 0) {
        rd_copy_past(to + part, from + part, bytes - part);
        s->stream_left--;
    } else {
        rd_copy(to + part, from + part, bytes - part);
        s->stream_left++;
    }
}
