/* See plan_lend.h. Slices do not meet: a pass writes nothing that another one has sent, so one pass tells for all. */
#include "plan_lend.h"

#include <stdlib.h>

#include "plan.h"

#define STEPS_MOST 65536 /* repetitions counted: a program of more is that of a large machine */

static int steps_in_all(const rd_program_t *program)
{
    int64_t steps = 0;

    for (int s = 0; s < program->nsteps; s++)
        steps += program->steps[s].repeat;
    return steps <= STEPS_MOST ? (int)steps : -1;
}

/* Adds `by` to the chunks of OUT that one repetition of the step writes. */
static void count_writes(const rd_program_t *program, const rd_step_t *step, int shift, int *writes, int by)
{
    for (int i = 0; i < step->ndst; i++) {
        if (step->dst[i].where == RD_OUT)
            writes[(step->dst[i].index + shift) % program->nchunks] += by;
    }
}

static int next_shift(const rd_program_t *program, const rd_step_t *step, int shift)
{
    return (shift + step->stride + program->nchunks) % program->nchunks;
}

/* `left`: of each chunk, the writes that are not surely over when this step begins. */
static void judge(rd_plan_t *plan, int s, int *left)
{
    const rd_program_t *program = plan->program;
    const rd_step_t *step = &program->steps[s];
    const rd_end_t *value = step->nsrc == 1 ? &step->src[0] : &step->dst[0];

    plan->lends[s] = RD_LEND_IN | RD_LEND_OUT;
    for (int k = 0, shift = 0; k < step->repeat; k++, shift = next_shift(program, step, shift)) {
        count_writes(program, step, shift, left, -1);
        if (value->where == RD_PEER || value->where == RD_TMP || left[(value->index + shift) % program->nchunks] != 0)
            plan->lends[s] = 0;
    }
}

/* From the user's pointer to the end of the last chunk. */
static size_t reach(const rd_chunks_t *side, int nchunks)
{
    size_t most = side->total;

    for (int c = 0; side->bytes && c < nchunks; c++) {
        size_t end = side->bytes[c] ? rd_chunk_offset(side, c) + side->bytes[c] : 0;
        most = end > most ? end : most;
    }
    return most;
}

void rd_lend_plan(rd_plan_t *plan)
{
    const rd_program_t *program = plan->program;
    int *total, *left;

    if (program->nchunks < 1 || program->nsteps < 1 || steps_in_all(program) < 0)
        return;
    plan->lends = calloc((size_t)program->nsteps, 1);
    total = calloc(2 * (size_t)program->nchunks, sizeof(*total));
    if (!plan->lends || !total) {
        free(total);
        free(plan->lends);
        plan->lends = NULL;
        return;
    }
    left = total + program->nchunks;
    for (int s = 0; s < program->nsteps; s++) {
        const rd_step_t *step = &program->steps[s];
        for (int k = 0, shift = 0; k < step->repeat; k++, shift = next_shift(program, step, shift))
            count_writes(program, step, shift, total, 1);
    }
    for (int l = 0; l < program->nlanes; l++) {
        const rd_lane_t *lane = &program->lanes[l];
        for (int c = 0; c < program->nchunks; c++)
            left[c] = total[c];
        for (int s = lane->first; s < lane->first + lane->count; s++)
            judge(plan, s, left);
    }
    free(total);
    plan->reach_in = reach(&plan->in, program->nchunks);
    plan->reach_out = reach(&plan->out, program->nchunks);
}

int rd_lend_overlap(const rd_plan_t *plan, const char *in, const char *out)
{
    return (uintptr_t)in < (uintptr_t)out + plan->reach_out && (uintptr_t)out < (uintptr_t)in + plan->reach_in;
}
