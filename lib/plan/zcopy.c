/* Finds the messages that may be sent from the user's memory: see zcopy.h. Slices do not overlap, so no pass writes
 * bytes that another pass has sent, and it is enough to check one pass. */
#include "plan/zcopy.h"

#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

#define STEPS_MOST 65536 /* counted with repetitions: only the program of a large machine has more */

static int steps_in_all(const rd_program_t *program)
{
    int64_t steps = 0;

    for (int s = 0; s < program->nsteps; s++)
        steps += program->steps[s].repeat;
    return steps <= STEPS_MOST ? (int)steps : -1;
}

/* For each chunk, the number of writes to OUT that are still to come: of all writes, and of those that change the input
 * if the operation is in place. */
typedef struct left {
    int *out, *in_place;
} left_t;

/* Returns true if the step copies a chunk of IN to the same chunk of OUT, which changes nothing in place. */
static bool copies_own(const rd_step_t *step, const rd_end_t *dst)
{
    return step->nsrc == 1 && step->src[0].where == RD_IN && step->src[0].index == dst->index;
}

/* Adds `by` to what one repetition of the step writes. */
static void count_writes(const rd_program_t *program, const rd_step_t *step, int shift, const left_t *left, int by)
{
    for (int i = 0; i < step->ndst; i++) {
        int chunk = (step->dst[i].index + shift) % program->nchunks;

        if (step->dst[i].where != RD_OUT)
            continue;
        left->out[chunk] += by;
        left->in_place[chunk] += copies_own(step, &step->dst[i]) ? 0 : by;
    }
}

static int next_shift(const rd_program_t *program, const rd_step_t *step, int shift)
{
    return (shift + step->stride + program->nchunks) % program->nchunks;
}

static void judge(rd_plan_t *plan, int s, const left_t *left)
{
    const rd_program_t *program = plan->program;
    const rd_step_t *step = &program->steps[s];
    const rd_end_t *value = step->nsrc == 1 ? &step->src[0] : &step->dst[0];
    int zcopy = value->where == RD_IN ? RD_ZCOPY_IN : value->where == RD_OUT ? RD_ZCOPY_OUT : 0;

    for (int k = 0, shift = 0; k < step->repeat; k++, shift = next_shift(program, step, shift)) {
        count_writes(program, step, shift, left, -1);
        if (zcopy && (zcopy == RD_ZCOPY_IN ? left->in_place : left->out)[(value->index + shift) % program->nchunks])
            zcopy = 0;
    }
    plan->zcopy[s] = (unsigned char)zcopy;
}

/* Returns the bytes from the user's pointer to the end of the last chunk. */
static size_t reach(const rd_chunks_t *side, int nchunks)
{
    size_t most = side->total;

    for (int c = 0; side->bytes && c < nchunks; c++) {
        size_t end = side->bytes[c] ? rd_chunk_offset(side, c) + side->bytes[c] : 0;
        most = end > most ? end : most;
    }
    return most;
}

void rd_zcopy_plan(rd_plan_t *plan)
{
    const rd_program_t *program = plan->program;
    size_t chunks = (size_t)program->nchunks;
    int *counts;

    if (program->nchunks < 1 || program->nsteps < 1 || steps_in_all(program) < 0)
        return;
    plan->zcopy = calloc((size_t)program->nsteps, 1);
    counts = calloc(4 * chunks, sizeof(*counts));
    if (!plan->zcopy || !counts) {
        free(counts);
        free(plan->zcopy);
        plan->zcopy = NULL;
        return;
    }
    const left_t total = {counts, counts + chunks}, left = {counts + 2 * chunks, counts + 3 * chunks};
    for (int s = 0; s < program->nsteps; s++) {
        const rd_step_t *step = &program->steps[s];
        for (int k = 0, shift = 0; k < step->repeat; k++, shift = next_shift(program, step, shift))
            count_writes(program, step, shift, &total, 1);
    }
    for (int l = 0; l < program->nlanes; l++) {
        const rd_lane_t *lane = &program->lanes[l];
        memcpy(left.out, total.out, 2 * chunks * sizeof(*counts));
        for (int s = lane->first; s < lane->first + lane->count; s++)
            judge(plan, s, &left);
    }
    free(counts);
    plan->reach_in = reach(&plan->in, program->nchunks);
    plan->reach_out = reach(&plan->out, program->nchunks);
}

bool rd_zcopy_overlap(const rd_plan_t *plan, const char *in, const char *out)
{
    return (uintptr_t)in < (uintptr_t)out + plan->reach_out && (uintptr_t)out < (uintptr_t)in + plan->reach_in;
}
