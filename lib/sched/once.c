/* Makes every rank write a chunk's value once, for all its receivers: for protocols by which a message lies where all
 * of them read it. Of the ends of a step that are peers one is left, and of the steps that send the same chunk again
 * none. The card says for which operations that is right (rd_algo_t.board).
 */
#include <stdlib.h>

#include "sched/list.h"

/* Removes the ends that are peers, but for the first one if the chunk has not been sent. */
static void keep_one(rd_step_t *step, unsigned char *sent)
{
    int kept = 0;

    for (int i = 0; i < step->ndst; i++) {
        if (step->dst[i].where == RD_PEER && sent[step->chunk])
            continue;
        if (step->dst[i].where == RD_PEER)
            sent[step->chunk] = 1;
        step->dst[kept++] = step->dst[i];
    }
    step->ndst = (int16_t)kept;
}

int rd_steps_once(rd_steps_t *s)
{
    unsigned char *sent;

    if (rd_steps_expand(s) != 0)
        return -1;
    sent = calloc((size_t)s->nchunks + 1, 1);
    if (!sent) {
        s->error = "no memory for the schedule";
        return -1;
    }
    for (int l = 0; l < s->nlanes; l++) {
        int first = s->lanes[l].first, kept = first;
        for (int i = first; i < first + s->lanes[l].count; i++) {
            rd_step_t step = s->steps[i];
            keep_one(&step, sent);
            if (step.ndst > 0)
                s->steps[kept++] = step;
        }
        s->lanes[l].count = kept - first;
    }
    free(sent);
    return 0;
}
