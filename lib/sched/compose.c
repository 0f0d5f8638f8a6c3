/* Joins two schedules, one after the other, lane by lane: reduce_scatter and allgather make allreduce, and so do reduce
 * and broadcast. Where the second one reads the user's input, it reads the output that the first one left instead; its
 * copies of the own block would then be copies onto themselves, and are removed.
 */
#include <stdbool.h>

#include "sched/list.h"

static bool copies_own(const rd_step_t *step)
{
    return step->nsrc == 1 && step->ndst == 1 && step->src[0].where == RD_IN && step->dst[0].where == RD_OUT &&
           step->src[0].index == step->dst[0].index;
}

static void append_lane(rd_steps_t *out, const rd_steps_t *from, rd_lane_t lane, int second)
{
    for (int i = lane.first; i < lane.first + lane.count; i++) {
        rd_step_t *step;

        if (second && copies_own(&from->steps[i])) /* or it would separate a sum from its send */
            continue;
        step = rd_steps_append(out);
        if (!step)
            return;
        *step = from->steps[i];
        for (int k = 0; second && k < step->nsrc; k++)
            if (step->src[k].where == RD_IN)
                step->src[k].where = RD_OUT;
    }
}

rd_steps_t *rd_join(rd_steps_t *first, rd_steps_t *second)
{
    rd_steps_t *out = NULL;

    if (!first || !second)
        goto free_both;
    out = rd_steps_create(first->nchunks);
    if (!out)
        goto free_both;
    out->error = first->error ? first->error : second->error;
    if (!out->error && (first->nchunks != second->nchunks || first->nlanes != second->nlanes))
        out->error = "schedules of different chunks or lanes cannot be joined";
    for (int l = 0; l < first->nlanes && !out->error; l++) {
        rd_steps_lane(out, first->lanes[l].channel);
        append_lane(out, first, first->lanes[l], 0);
        append_lane(out, second, second->lanes[l], 1);
    }
free_both:
    rd_steps_free(first);
    rd_steps_free(second);
    return out;
}
