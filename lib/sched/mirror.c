/* The mirror image of a schedule: its steps from the last to the first, with every arrow reversed.
 *
 * Where a rank received chunk c from peer p and sent it on to q1, q2, it now receives partial sums of c from q2, q1,
 * adds its own contribution and sends the sum to p; where a chunk began, its sum ends, in OUT. So allgather becomes
 * reduce_scatter, broadcast becomes reduce, with the same steps, bytes and freedom from deadlock.
 *
 *     allgather       p ──c──▶ OUT c ──c──▶ q1          reduce_scatter    p ◀── IN c + x1 + x2 ◀── x1 = q1
 *                                    ──c──▶ q2                                                ◀── x2 = q2
 *
 * Order of a sum: the own contribution, then the partial sums as they arrive; each sum is made on one rank, so every
 * rank sees the same bits. A partial sum waits in scratch (its chunk's number is the name) and takes in each arrival
 * at once, except that arrivals with nothing of another chunk between them and the departure are summed in one step.
 * Blocks that went as one message arrive as one, from the last to the first: each is added where its chunk's sum waits.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "sched/list.h"

typedef struct chunk_state {
    int first;   /* in the original lane: the first step on this rank that has the chunk, copies excepted */
    int origin;  /* the chunk began on this rank */
    int touched; /* the partial sum is in scratch (else IN still holds the own contribution alone) */
} chunk_state_t;

typedef struct mirror {
    rd_steps_t *out;
    chunk_state_t *state;
    rd_sum_t sum;
    int open; /* the chunk of `sum`, -1: none; its sources are still separate */
    int arrived;
} mirror_t;

static bool peer_source(const rd_step_t *step)
{
    return step->nsrc == 1 && step->src[0].where == RD_PEER;
}

static int peer_dests(const rd_step_t *step)
{
    int n = 0;

    for (int k = 0; k < step->ndst; k++)
        n += step->dst[k].where == RD_PEER;
    return n;
}

/* What can be turned: steps of one source that say where a chunk came from or where it goes. */
static const char *survey(mirror_t *m, const rd_steps_t *from, rd_lane_t lane)
{
    for (int c = 0; c < from->nchunks; c++)
        m->state[c] = (chunk_state_t){-1, 0, 0};
    for (int i = lane.first; i < lane.first + lane.count; i++) {
        const rd_step_t *step = &from->steps[i];
        chunk_state_t *state = &m->state[step->chunk];

        if (step->nsrc != 1)
            return "only a schedule without sums has a mirror image";
        if (!peer_source(step) && step->src[0].where == RD_IN)
            state->origin = 1;
        if (state->first < 0 && (peer_source(step) || peer_dests(step) > 0))
            state->first = i;
    }
    return NULL;
}

/* Where the sum of chunk `c` waits. */
static rd_end_t so_far(const mirror_t *m, int c)
{
    return m->state[c].touched ? rd_tmp(c) : rd_in(c);
}

/* The sum of chunk `c` as far as it has come goes to `dst`. */
static void depart(mirror_t *m, int c, rd_end_t dst)
{
    if (m->open != c) {
        rd_sum_begin(&m->sum, m->out, c, c);
        rd_sum_add(&m->sum, so_far(m, c));
    }
    rd_sum_end(&m->sum, dst);
    m->open = -1;
}

/* Ends a run of arrivals that something else interrupts: the sum goes to scratch. */
static void park(mirror_t *m)
{
    int c = m->open;

    if (c < 0)
        return;
    rd_sum_end(&m->sum, rd_tmp(c));
    m->state[c].touched = 1;
    m->open = -1;
}

/* Arrivals have names beyond the chunks', one for each that may be in one step, so that the compiler can fuse them. */
static void arrive(mirror_t *m, int c, int peer)
{
    rd_end_t x;

    if (m->open != c) {
        park(m);
        rd_sum_begin(&m->sum, m->out, c, c);
        rd_sum_add(&m->sum, so_far(m, c));
        m->open = c;
    }
    rd_sum_room(&m->sum); /* before the receive, which has to be next to the sum that it becomes part of */
    x = rd_tmp(m->out->nchunks + m->arrived++ % RD_MAX_ENDS);
    rd_step_recv(m->out, x, c, peer);
    rd_sum_add(&m->sum, x);
}

/* A part of a message is added to its chunk's sum by the step that takes it, because nothing may come between parts. */
static void arrive_part(mirror_t *m, int c, int peer, rd_message_part_t part)
{
    rd_end_t src[2], sum = rd_tmp(c);

    park(m);
    src[0] = so_far(m, c);
    src[1] = rd_peer(peer);
    rd_step(m->out, c, 2, src, 1, &sum);
    rd_step_part(m->out, part);
    m->state[c].touched = 1;
}

/* Which part of the mirrored message step i moves: the one that was the first ends it. */
static rd_message_part_t part_of(const rd_steps_t *from, rd_lane_t lane, int i)
{
    if (from->steps[i].part == RD_ALONE)
        return RD_ALONE;
    return i > lane.first && from->steps[i - 1].part == RD_PART_MORE ? RD_PART_MORE : RD_PART_LAST;
}

static void mirror_lane(mirror_t *m, const rd_steps_t *from, rd_lane_t lane)
{
    m->open = -1;
    for (int i = lane.first + lane.count - 1; i >= lane.first; i--) {
        const rd_step_t *step = &from->steps[i];
        rd_message_part_t part = part_of(from, lane, i);
        int c = step->chunk;

        for (int k = step->ndst - 1; k >= 0; k--) {
            if (step->dst[k].where == RD_PEER && part != RD_ALONE)
                arrive_part(m, c, step->dst[k].index, part);
            else if (step->dst[k].where == RD_PEER)
                arrive(m, c, step->dst[k].index);
        }
        if (peer_source(step)) {
            if (m->open != c)
                park(m);
            depart(m, c, rd_peer(step->src[0].index));
            rd_step_part(m->out, part);
        } else if (m->state[c].origin && m->state[c].first == i) {
            depart(m, c, rd_out(c));
        } else if (m->state[c].origin && m->state[c].first < 0) {
            rd_step_copy(m->out, rd_out(c), rd_in(c), c); /* nobody else has a part in it */
        }
    }
    park(m);
}

static rd_steps_t *image_of(const rd_steps_t *steps)
{
    mirror_t m = {.open = -1};

    if (!steps)
        return NULL;
    m.out = rd_steps_create(steps->nchunks);
    m.state = calloc((size_t)steps->nchunks, sizeof(*m.state));
    if (!m.out || !m.state)
        goto free_out;
    m.out->error = steps->error;
    for (int i = 0; i < steps->nsteps && !m.out->error; i++)
        if (steps->steps[i].repeat != 1)
            m.out->error = "a schedule with repeats has no mirror image: expand it";
    for (int l = 0; l < steps->nlanes && !m.out->error; l++) {
        m.out->error = survey(&m, steps, steps->lanes[l]);
        rd_steps_lane(m.out, steps->lanes[l].channel);
        mirror_lane(&m, steps, steps->lanes[l]);
    }
    free(m.state);
    return m.out;
free_out:
    rd_steps_free(m.out);
    free(m.state);
    return NULL;
}

rd_steps_t *rd_mirror(rd_steps_t *steps)
{
    rd_steps_t *image = image_of(steps);

    rd_steps_free(steps);
    return image;
}
