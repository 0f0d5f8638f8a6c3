/* The inside of the list of steps: steps.c builds it, mirror.c and compose.c transform it, compile.c reads it. A
 * schedule uses step.h, and from here only the two helpers for steps wider than RD_MAX_ENDS.
 */
#ifndef RD_SCHED_LIST_H
#define RD_SCHED_LIST_H

#include "sched/program.h"

struct rd_steps {
    int nchunks;
    int nlanes, lane_room;
    int nsteps, step_room;
    rd_lane_t *lanes; /* first, count, channel: lanes lie one after the other in steps[] */
    rd_step_t *steps;
    const char *error; /* the first emit error; every later emit does nothing */
};

/* Appends a step to the last lane and returns it for filling in (chunk 0, no ends, repeat 1), or NULL after an error.
 * The pointer is valid until the next step is appended. */
rd_step_t *rd_steps_append(rd_steps_t *s);
/* Replaces every step with repeats by its occurrences. Returns 0, or -1 with s->error set. */
int rd_steps_expand(rd_steps_t *s);

static inline int rd_mod(int a, int n)
{
    int m = a % n;

    return m < 0 ? m + n : m;
}

/* A sum of any number of sources, in the order in which they are added. It is a chain of steps that carries the partial
 * sum in scratch `tmp`, never in OUT (which may be the memory of a contribution that is still to be read). */
typedef struct rd_sum {
    rd_steps_t *s;
    int chunk, tmp, n;
    rd_end_t src[RD_MAX_ENDS];
} rd_sum_t;

void rd_sum_begin(rd_sum_t *sum, rd_steps_t *s, int chunk, int tmp);
void rd_sum_room(rd_sum_t *sum); /* makes room for one more source, which rd_sum_add does first */
void rd_sum_add(rd_sum_t *sum, rd_end_t src);
void rd_sum_end(rd_sum_t *sum, rd_end_t dst);

/* Sends one value to any number of peers, at most RD_MAX_ENDS - 1 in a step: one end is left for the OUT of a fused
 * step. */
typedef struct rd_fan {
    rd_steps_t *s;
    int chunk, n;
    rd_end_t src, dst[RD_MAX_ENDS - 1];
} rd_fan_t;

void rd_fan_begin(rd_fan_t *fan, rd_steps_t *s, rd_end_t src, int chunk);
void rd_fan_add(rd_fan_t *fan, int peer);
void rd_fan_end(rd_fan_t *fan);

#endif
