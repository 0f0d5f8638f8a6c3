/* One turn of a lane: a step with its numbers worked out, and where its ends lie in this rank's memory. Private to the
 * files that interpret programs: run.c and run_message.c. */
#ifndef RD_EXEC_HOST_TURN_H
#define RD_EXEC_HOST_TURN_H

#include "exec/host/run.h"

#define BLOCKED 0
#define STEPPED 1

/* One step with its numbers worked out: `chunk` shifted, `bytes` of this slice. */
typedef struct {
    rd_run_t *run;
    const rd_step_t *step, *next; /* `next`: the lane's next step; NULL: this pass is over */
    int32_t shift;
    size_t start, bytes;
    uint64_t tag;  /* of its lines */
    uint64_t sign; /* the call's */
    bool put;      /* rd_lane_plan_t.put */
} turn_t;

static inline int32_t shifted(const turn_t *t, int32_t chunk)
{
    int32_t at = chunk + t->shift, n = t->run->plan->program->nchunks;
    return at < n ? at : at - n;
}

/* Where results are float32 and the user's elements are narrower, the slice of an output chunk that this pass computes
 * lies in scratch, behind the one that `loaded` uses. */
static inline char *wide_output(const turn_t *t, int32_t chunk)
{
    const rd_plan_t *plan = t->run->plan;
    return t->run->tmp + ((size_t)plan->program->ntmp + 1 + (size_t)chunk) * plan->slice;
}

static inline const char *local_source(const turn_t *t, rd_end_t e)
{
    const rd_plan_t *plan = t->run->plan;

    if (e.where == RD_IN)
        return t->run->in + ((rd_chunk_offset(&plan->in, shifted(t, e.index)) + t->start) >> plan->halvings);
    if (e.where == RD_OUT && plan->halvings)
        return wide_output(t, shifted(t, e.index));
    if (e.where == RD_OUT)
        return t->run->out + rd_chunk_offset(&plan->out, shifted(t, e.index)) + t->start;
    return t->run->tmp + (size_t)e.index * plan->slice;
}

static inline char *local_destination(const turn_t *t, rd_end_t e)
{
    return (char *)local_source(t, e);
}

/* Returns the bytes of the current slice of the step's chunk, by the side of the user's buffer that the step uses. */
static inline size_t slice_bytes(const rd_plan_t *plan, const rd_lane_run_t *lane, int32_t chunk)
{
    size_t bytes = rd_chunk_bytes(lane->step->src[0].where == RD_IN ? &plan->in : &plan->out, chunk);

    if (lane->start >= bytes)
        return 0;
    return bytes - lane->start < lane->plan->slice ? bytes - lane->start : lane->plan->slice;
}

/* AVG and PREMULSUM scale a contribution as it is first read: the scaled copy lies after the scratch. */
static inline const char *loaded(const turn_t *t, const char *source)
{
    const rd_plan_t *plan = t->run->plan;
    char *copy = t->run->tmp + (size_t)plan->program->ntmp * plan->slice;

    plan->reducer.load(copy, source, t->bytes / plan->element, plan->reducer.arg);
    return copy;
}

/* Writes the value to the user's output, too, where the destinations above are scratch: a later step of this pass may
 * yet write it again, since it may be partial. */
static inline void store_narrow(const turn_t *t, const char *value)
{
    const rd_plan_t *plan = t->run->plan;

    for (int i = 0; i < t->step->ndst; i++) {
        rd_end_t e = t->step->dst[i];
        size_t at = e.where == RD_OUT ? rd_chunk_offset(&plan->out, shifted(t, e.index)) + t->start : 0;
        if (e.where == RD_OUT)
            plan->reducer.store(t->run->out + (at >> plan->halvings), value, t->bytes / plan->element);
    }
}

/* Moves the lane to the next repetition, step or pass. */
static inline void next(rd_lane_run_t *lane, int32_t n)
{
    if (++lane->repetition < lane->step->repeat) {
        lane->shift = (lane->shift + lane->step->stride + n) % n;
        return;
    }
    lane->repetition = 0;
    lane->shift = 0;
    if (++lane->step < lane->end)
        return;
    lane->step = lane->first;
    lane->start += lane->plan->slice;
    lane->passes--;
}

#endif
