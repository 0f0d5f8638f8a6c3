/* The growing list of steps that schedules emit. Errors stay in the list until rd_compile reports them, so that a
 * schedule reads as the algorithm and nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/list.h"

rd_steps_t *rd_steps_create(int nchunks)
{
    rd_steps_t *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->nchunks = nchunks;
    if (nchunks < 1)
        s->error = "a schedule without chunks";
    return s;
}

void rd_steps_free(rd_steps_t *s)
{
    if (!s)
        return;
    free(s->lanes);
    free(s->steps);
    free(s);
}

/* Doubles the room for elements of `size` bytes. Returns NULL if there is no memory; the array is then unchanged. */
static void *grow(void *array, int *room, size_t size, int least)
{
    int more = *room > 0 ? 2 * *room : least;
    void *bigger = realloc(array, (size_t)more * size);

    if (bigger)
        *room = more;
    return bigger;
}

void rd_steps_lane(rd_steps_t *s, int channel)
{
    if (s->error)
        return;
    if (channel < 0 || channel >= RD_CHANNELS) {
        s->error = "a lane on a channel that does not exist";
        return;
    }
    if (s->nlanes == s->lane_room) {
        rd_lane_t *lanes = grow(s->lanes, &s->lane_room, sizeof(*lanes), 4);

        if (!lanes) {
            s->error = "no memory for the schedule";
            return;
        }
        s->lanes = lanes;
    }
    s->lanes[s->nlanes++] = (rd_lane_t){s->nsteps, 0, channel};
}

rd_step_t *rd_steps_append(rd_steps_t *s)
{
    rd_step_t *step;

    if (s->error)
        return NULL;
    if (s->nlanes == 0) {
        s->error = "a step before the first lane";
        return NULL;
    }
    if (s->nsteps == s->step_room) {
        rd_step_t *steps = grow(s->steps, &s->step_room, sizeof(*steps), 16);

        if (!steps) {
            s->error = "no memory for the schedule";
            return NULL;
        }
        s->steps = steps;
    }
    step = &s->steps[s->nsteps++];
    s->lanes[s->nlanes - 1].count++;
    step->chunk = step->nsrc = step->ndst = 0;
    step->repeat = 1;
    step->stride = 0;
    step->part = RD_ALONE;
    return step;
}

void rd_step(rd_steps_t *s, int chunk, int nsrc, const rd_end_t *src, int ndst, const rd_end_t *dst)
{
    rd_step_t *step;

    if (s->error)
        return;
    if (nsrc < 1 || nsrc > RD_MAX_ENDS || ndst < 1 || ndst > RD_MAX_ENDS) {
        s->error = "a step with no or too many ends";
        return;
    }
    if (chunk < 0 || chunk >= s->nchunks) {
        s->error = "a step over a chunk that does not exist";
        return;
    }
    step = rd_steps_append(s);
    if (!step)
        return;
    step->chunk = chunk;
    step->nsrc = (int16_t)nsrc;
    step->ndst = (int16_t)ndst;
    memcpy(step->src, src, (size_t)nsrc * sizeof(*src));
    memcpy(step->dst, dst, (size_t)ndst * sizeof(*dst));
}

void rd_step_repeat(rd_steps_t *s, int repeat, int stride)
{
    if (s->error)
        return;
    if (s->nlanes == 0 || s->lanes[s->nlanes - 1].count == 0 || repeat < 1) {
        s->error = "a repeat of nothing";
        return;
    }
    s->steps[s->nsteps - 1].repeat = repeat;
    s->steps[s->nsteps - 1].stride = rd_mod(stride, s->nchunks);
}

void rd_step_part(rd_steps_t *s, rd_message_part_t part)
{
    if (s->error)
        return;
    if (s->nlanes == 0 || s->lanes[s->nlanes - 1].count == 0) {
        s->error = "a part of nothing";
        return;
    }
    s->steps[s->nsteps - 1].part = part;
}

void rd_step_send(rd_steps_t *s, rd_end_t src, int chunk, int peer)
{
    rd_end_t dst = rd_peer(peer);

    rd_step(s, chunk, 1, &src, 1, &dst);
}

void rd_step_recv(rd_steps_t *s, rd_end_t dst, int chunk, int peer)
{
    rd_end_t src = rd_peer(peer);

    rd_step(s, chunk, 1, &src, 1, &dst);
}

void rd_step_copy(rd_steps_t *s, rd_end_t dst, rd_end_t src, int chunk)
{
    rd_step(s, chunk, 1, &src, 1, &dst);
}

static void advance(rd_end_t *end, int by, int nchunks)
{
    if (end->where != RD_PEER)
        end->index = rd_mod(end->index + by, nchunks);
}

/* Returns the i-th occurrence of a step with repeats, as a step that runs once. */
static rd_step_t occurrence(const rd_step_t *step, int i, int nchunks)
{
    rd_step_t one = *step;
    int by = (int)((int64_t)i * step->stride % nchunks);

    one.repeat = 1;
    one.stride = 0;
    if (by == 0)
        return one;
    one.chunk = rd_mod(one.chunk + by, nchunks);
    for (int k = 0; k < one.nsrc; k++)
        advance(&one.src[k], by, nchunks);
    for (int k = 0; k < one.ndst; k++)
        advance(&one.dst[k], by, nchunks);
    return one;
}

int rd_steps_expand(rd_steps_t *s)
{
    rd_step_t *all;
    size_t total = 0;
    int at = 0;

    for (int i = 0; i < s->nsteps; i++)
        total += (size_t)s->steps[i].repeat;
    if (s->error)
        return -1;
    if (total == (size_t)s->nsteps)
        return 0;
    all = malloc(total * sizeof(*all));
    if (!all) {
        s->error = "no memory for the schedule";
        return -1;
    }
    for (int l = 0; l < s->nlanes; l++) {
        int first = at;

        for (int i = s->lanes[l].first; i < s->lanes[l].first + s->lanes[l].count; i++)
            for (int k = 0; k < s->steps[i].repeat; k++)
                all[at++] = occurrence(&s->steps[i], k, s->nchunks);
        s->lanes[l].first = first;
        s->lanes[l].count = at - first;
    }
    free(s->steps);
    s->steps = all;
    s->nsteps = s->step_room = at;
    return 0;
}

void rd_sum_begin(rd_sum_t *sum, rd_steps_t *s, int chunk, int tmp)
{
    sum->s = s;
    sum->chunk = chunk;
    sum->tmp = tmp;
    sum->n = 0;
}

void rd_sum_room(rd_sum_t *sum)
{
    rd_end_t acc = rd_tmp(sum->tmp);

    if (sum->n < RD_MAX_ENDS)
        return;
    rd_step(sum->s, sum->chunk, sum->n, sum->src, 1, &acc);
    sum->src[0] = acc;
    sum->n = 1;
}

void rd_sum_add(rd_sum_t *sum, rd_end_t src)
{
    rd_sum_room(sum);
    sum->src[sum->n++] = src;
}

void rd_sum_end(rd_sum_t *sum, rd_end_t dst)
{
    rd_step(sum->s, sum->chunk, sum->n, sum->src, 1, &dst);
}

void rd_fan_begin(rd_fan_t *fan, rd_steps_t *s, rd_end_t src, int chunk)
{
    fan->s = s;
    fan->chunk = chunk;
    fan->n = 0;
    fan->src = src;
}

void rd_fan_add(rd_fan_t *fan, int peer)
{
    if (fan->n == RD_MAX_ENDS - 1)
        rd_fan_end(fan);
    fan->dst[fan->n++] = rd_peer(peer);
}

void rd_fan_end(rd_fan_t *fan)
{
    if (fan->n > 0)
        rd_step(fan->s, fan->chunk, 1, &fan->src, fan->n, fan->dst);
    fan->n = 0;
}
