/* Compiles a schedule into a program, which one rank's executor runs. These are the passes, in order, lane by lane:
 *
 *   expand   repeats are written out;
 *   fuse     (on request) a receive followed by its use becomes one step:
 *                {OUT c <- peer} {peer' <- OUT c}          becomes  {OUT c, peer' <- peer}
 *                {TMP x <- peer} {OUT c <- IN c + TMP x}   becomes  {OUT c <- IN c + peer}
 *                {OUT c <- a + b} {peer' <- OUT c}         becomes  {OUT c, peer' <- a + b}
 *   prune    scratch that is not read, steps without an effect and copies of a chunk onto itself are removed;
 *   slots    names of scratch that are not live at the same time share a slot, unless they belong to different lanes,
 *            which run independently;
 *   link     a pair (peer, channel) becomes an index into the tables of connections;
 *   fold     consecutive steps that are equal but for a constant stride of their chunk numbers become one repeated
 * step.
 *
 * A fused step waits for its message and for its credits at once. In a cycle of ranks this is free of deadlock if each
 * connection has two credits, but not if it has one. A plain copy from IN to OUT is never fused, because in place it is
 * no work at all. A step never takes two messages from the same connection, nor sends two to it. Steps that make or
 * take one message together (rd_message_part_t) stay as they are: each has no other message.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sched/list.h"

typedef struct work {
    rd_steps_t *s;
    int names;           /* highest scratch name + 1 */
    int peers;           /* highest peer + 1 */
    unsigned char *last; /* for each step, a bit for each source that is the last use of its scratch */
    unsigned char *live; /* for each name: it is read later */
    int32_t *slot;       /* for each name: its slot of scratch, or -1: it has none */
    int32_t *spare;      /* a stack of the free slots of this lane */
    int32_t *link;       /* [direction][channel][peer]: number + 1 */
    int32_t *owner;      /* likewise: lane + 1 */
    rd_link_t *sends, *recvs;
    int nsends, nrecvs, ntmp;
} work_t;

static bool same_end(rd_end_t a, rd_end_t b)
{
    return a.where == b.where && a.index == b.index;
}

static int find_end(const rd_end_t *ends, int n, rd_end_t end)
{
    for (int i = 0; i < n; i++)
        if (same_end(ends[i], end))
            return i;
    return -1;
}

static bool has_peer(const rd_end_t *ends, int n)
{
    for (int i = 0; i < n; i++)
        if (ends[i].where == RD_PEER)
            return true;
    return false;
}

static void measure(work_t *w)
{
    for (int i = 0; i < w->s->nsteps; i++) {
        const rd_step_t *step = &w->s->steps[i];

        for (int k = 0; k < step->nsrc + step->ndst; k++) {
            rd_end_t end = k < step->nsrc ? step->src[k] : step->dst[k - step->nsrc];

            if (end.where == RD_TMP && end.index >= w->names)
                w->names = end.index + 1;
            if (end.where == RD_PEER && end.index >= w->peers)
                w->peers = end.index + 1;
        }
    }
}

/* Allocates one block for all tables, of which those with the strictest alignment come first. */
static int work_alloc(work_t *w)
{
    size_t steps = (size_t)w->s->nsteps, names = (size_t)w->names, links = (size_t)RD_CHANNELS * (size_t)w->peers;
    size_t bytes = 4 * links * sizeof(int32_t) + 2 * links * sizeof(rd_link_t) +
                   (2 * names + RD_MAX_ENDS) * sizeof(int32_t) + names + steps;

    w->link = calloc(1, bytes + 1);
    if (!w->link)
        return -1;
    w->owner = w->link + 2 * links;
    w->sends = (rd_link_t *)(w->owner + 2 * links);
    w->recvs = w->sends + links;
    w->slot = (int32_t *)(w->recvs + links);
    w->spare = w->slot + names;
    w->live =
        (unsigned char *)(w->spare + names + RD_MAX_ENDS); /* a name may be in it twice while a step rewrites it */
    w->last = w->live + names;
    return 0;
}

/* Walks backwards over a lane and marks the last uses of scratch. With `prune` it also removes dead destinations, and
 * marks dead steps by ndst = 0. A step that receives stays, because the message has to be taken. */
static void liveness(work_t *w, rd_lane_t lane, int prune)
{
    memset(w->live, 0, (size_t)w->names);
    for (int i = lane.first + lane.count - 1; i >= lane.first; i--) {
        rd_step_t *step = &w->s->steps[i];
        int receives = has_peer(step->src, step->nsrc), kept = 0;

        for (int k = 0; k < step->ndst; k++) {
            rd_end_t end = step->dst[k];
            int dead = end.where == RD_TMP && !w->live[end.index];

            if (end.where == RD_TMP)
                w->live[end.index] = 0;
            dead |= step->nsrc == 1 && same_end(step->src[0], end);
            if (!prune || !dead)
                step->dst[kept++] = end;
        }
        if (kept == 0 && receives)
            kept = 1; /* dst[0] is dead scratch, to which the message is written */
        step->ndst = (int16_t)kept;
        w->last[i] = 0;
        for (int k = 0; k < step->nsrc && kept > 0; k++) {
            rd_end_t end = step->src[k];

            if (end.where != RD_TMP)
                continue;
            if (!w->live[end.index])
                w->last[i] |= (unsigned char)(1u << k);
            w->live[end.index] = 1;
        }
    }
}

/* After {TMP x <- peer}, a step that reads x for the last time can read the message itself. */
static bool fuse_source(const rd_step_t *a, rd_step_t *b, unsigned char last)
{
    if (a->nsrc != 1 || a->src[0].where != RD_PEER || a->ndst != 1 || a->dst[0].where != RD_TMP || a->chunk != b->chunk)
        return false;
    int k = find_end(b->src, b->nsrc, a->dst[0]);

    if (k < 0 || !(last >> k & 1) || find_end(b->src, b->nsrc, a->src[0]) >= 0)
        return false;
    b->src[k] = a->src[0];
    return true;
}

/* After a step that writes D, a step that only forwards D is dropped, and the first one forwards it. */
static bool fuse_dest(rd_step_t *a, const rd_step_t *b, unsigned char last)
{
    int k, n = a->ndst;

    if (b->nsrc != 1 || b->src[0].where == RD_PEER || a->chunk != b->chunk)
        return false;
    if (a->nsrc == 1 && a->src[0].where == RD_IN)
        return false;
    k = find_end(a->dst, a->ndst, b->src[0]);
    if (k < 0)
        return false;
    for (int i = 0; i < b->ndst; i++)
        if (find_end(a->dst, a->ndst, b->dst[i]) >= 0)
            return false;
    if (b->src[0].where == RD_TMP && (last & 1))
        n--;
    if (n + b->ndst > RD_MAX_ENDS)
        return false;
    if (n < a->ndst)
        memmove(&a->dst[k], &a->dst[k + 1], (size_t)(n - k) * sizeof(a->dst[0]));
    memcpy(&a->dst[n], b->dst, (size_t)b->ndst * sizeof(b->dst[0]));
    a->ndst = (int16_t)(n + b->ndst);
    return true;
}

static bool may_fuse(const rd_step_t *a, const rd_step_t *b)
{
    return a->part == RD_ALONE && b->part == RD_ALONE;
}

/* Fuses a lane in place: steps[first..top) are complete, and the next step is fused with the last one if possible. */
static int fuse_lane(work_t *w, rd_lane_t lane)
{
    rd_step_t *steps = w->s->steps;
    int top = lane.first;

    liveness(w, lane, 0);
    for (int i = lane.first; i < lane.first + lane.count; i++) {
        rd_step_t b = steps[i];
        unsigned char last = w->last[i];

        while (top > lane.first && may_fuse(&steps[top - 1], &b) && fuse_source(&steps[top - 1], &b, last))
            top--;
        if (top > lane.first && may_fuse(&steps[top - 1], &b) && fuse_dest(&steps[top - 1], &b, last))
            continue;
        steps[top++] = b;
    }
    return top - lane.first;
}

/* Assigns slots to names. Destinations get theirs before those of the sources are freed. So a step never writes
 * the scratch that it reads, and an executor may serve its destinations one after the other. */
static void slot_lane(work_t *w, rd_lane_t lane)
{
    int nspare = 0;

    for (int x = 0; x < w->names; x++)
        w->slot[x] = -1;
    for (int i = lane.first; i < lane.first + lane.count; i++) {
        rd_step_t *step = &w->s->steps[i];
        int32_t freed[RD_MAX_ENDS], nfreed = 0;

        for (int k = 0; k < step->nsrc; k++) {
            int x = step->src[k].index;

            if (step->src[k].where != RD_TMP)
                continue;
            if (w->slot[x] < 0) /* read before written: a barrier's byte, whose value means nothing */
                w->slot[x] = nspare > 0 ? w->spare[--nspare] : w->ntmp++;
            step->src[k].index = w->slot[x];
            if (w->last[i] >> k & 1) {
                freed[nfreed++] = w->slot[x];
                w->slot[x] = -1;
            }
        }
        for (int k = 0; k < step->ndst; k++) {
            int x = step->dst[k].index;

            if (step->dst[k].where != RD_TMP)
                continue;
            if (w->slot[x] < 0)
                w->slot[x] = nspare > 0 ? w->spare[--nspare] : w->ntmp++;
            step->dst[k].index = w->slot[x];
        }
        while (nfreed > 0)
            w->spare[nspare++] = freed[--nfreed];
    }
}

/* Returns the number of a connection in its table, or -1 if another lane has it. */
static int link_number(work_t *w, int direction, int channel, int peer, int lane)
{
    int slot = (direction * RD_CHANNELS + channel) * w->peers + peer;
    rd_link_t *table = direction == 0 ? w->sends : w->recvs;
    int *count = direction == 0 ? &w->nsends : &w->nrecvs;

    if (w->link[slot] == 0) {
        table[*count] = (rd_link_t){peer, channel};
        w->link[slot] = ++*count;
        w->owner[slot] = lane + 1;
    }
    return w->owner[slot] == lane + 1 ? w->link[slot] - 1 : -1;
}

static int link_lane(work_t *w, int l)
{
    rd_lane_t lane = w->s->lanes[l];

    for (int i = lane.first; i < lane.first + lane.count; i++) {
        rd_step_t *step = &w->s->steps[i];

        for (int k = 0; k < step->nsrc; k++)
            if (step->src[k].where == RD_PEER &&
                (step->src[k].index = link_number(w, 1, lane.channel, step->src[k].index, l)) < 0)
                return -1;
        for (int k = 0; k < step->ndst; k++)
            if (step->dst[k].where == RD_PEER &&
                (step->dst[k].index = link_number(w, 0, lane.channel, step->dst[k].index, l)) < 0)
                return -1;
    }
    return 0;
}

/* Returns true if `end` is what `was` becomes in the next occurrence of the step. Places of scratch do not advance, so
 * steps with scratch are not folded if there is a stride. */
static bool follows_end(rd_end_t was, rd_end_t end, int stride, int nchunks)
{
    if (was.where != end.where)
        return false;
    if (was.where == RD_PEER)
        return was.index == end.index;
    if (was.where == RD_TMP)
        return stride == 0 && was.index == end.index;
    return (was.index + stride) % nchunks == end.index;
}

static bool follows(const rd_step_t *was, const rd_step_t *next, int stride, int nchunks)
{
    if (was->nsrc != next->nsrc || was->ndst != next->ndst || was->part != next->part ||
        (was->chunk + stride) % nchunks != next->chunk)
        return false;
    for (int k = 0; k < was->nsrc; k++)
        if (!follows_end(was->src[k], next->src[k], stride, nchunks))
            return false;
    for (int k = 0; k < was->ndst; k++)
        if (!follows_end(was->dst[k], next->dst[k], stride, nchunks))
            return false;
    return true;
}

/* Copies a lane's steps to `out`, and folds consecutive equal ones into one. Returns the number of steps. */
static int fold_lane(const rd_steps_t *s, rd_lane_t lane, rd_step_t *out)
{
    const rd_step_t *steps = s->steps;
    int n = 0, end = lane.first + lane.count;

    for (int i = lane.first; i < end;) {
        int run = 1, stride = 0;

        if (i + 1 < end)
            stride = rd_mod(steps[i + 1].chunk - steps[i].chunk, s->nchunks);
        while (i + run < end && follows(&steps[i + run - 1], &steps[i + run], stride, s->nchunks))
            run++;
        out[n] = steps[i];
        out[n].repeat = run;
        out[n++].stride = run > 1 ? stride : 0;
        i += run;
    }
    return n;
}

/* Removes the steps that the liveness pass has marked from a lane. */
static int drop_dead(rd_steps_t *s, rd_lane_t lane, unsigned char *last)
{
    int kept = lane.first;

    for (int i = lane.first; i < lane.first + lane.count; i++) {
        if (s->steps[i].ndst == 0)
            continue;
        if (kept != i)
            s->steps[kept] = s->steps[i];
        last[kept++] = last[i];
    }
    return kept - lane.first;
}

/* Makes the program in one allocation: the struct, then lanes, links and steps. */
static rd_program_t *assemble(const work_t *w)
{
    const rd_steps_t *s = w->s;
    size_t nsteps = 0, lanes = (size_t)s->nlanes * sizeof(rd_lane_t);
    size_t sends = (size_t)w->nsends * sizeof(rd_link_t), recvs = (size_t)w->nrecvs * sizeof(rd_link_t);
    rd_program_t *p;
    rd_lane_t *lane;
    rd_step_t *step;

    for (int l = 0; l < s->nlanes; l++)
        nsteps += (size_t)s->lanes[l].count;
    p = malloc(sizeof(*p) + lanes + sends + recvs + nsteps * sizeof(*step));
    if (!p)
        return NULL;
    lane = (rd_lane_t *)(p + 1);
    step = (rd_step_t *)((char *)lane + lanes + sends + recvs);
    *p = (rd_program_t){s->nchunks, w->ntmp, 0, 0, w->nsends, w->nrecvs, lane, step, NULL, NULL};
    p->sends = (const rd_link_t *)((char *)lane + lanes);
    p->recvs = (const rd_link_t *)((char *)lane + lanes + sends);
    if (sends + recvs > 0) {
        memcpy((char *)lane + lanes, w->sends, sends);
        memcpy((char *)lane + lanes + sends, w->recvs, recvs);
    }
    for (int l = 0; l < s->nlanes; l++) {
        int n = fold_lane(s, s->lanes[l], step + p->nsteps);

        if (n == 0) /* a lane without steps is no lane */
            continue;
        lane[p->nlanes++] = (rd_lane_t){p->nsteps, n, s->lanes[l].channel};
        p->nsteps += n;
    }
    return p;
}

int rd_compile(rd_steps_t *steps, int fuse, rd_program_t **program, const char **why)
{
    work_t w = {.s = steps};
    rd_program_t *p = NULL;

    if (!steps || rd_steps_expand(steps) != 0) {
        *why = steps ? steps->error : "no memory for the schedule";
        return -1;
    }
    *why = "no memory for the program";
    measure(&w);
    if (work_alloc(&w) != 0)
        return -1;
    for (int l = 0; l < steps->nlanes; l++) {
        if (fuse)
            steps->lanes[l].count = fuse_lane(&w, steps->lanes[l]);
        liveness(&w, steps->lanes[l], 1);
        steps->lanes[l].count = drop_dead(steps, steps->lanes[l], w.last);
        slot_lane(&w, steps->lanes[l]);
        if (link_lane(&w, l) != 0) {
            *why = "two lanes of a schedule share a connection";
            goto free_work;
        }
    }
    p = assemble(&w);
free_work:
    free(w.link);
    if (!p)
        return -1;
    *why = NULL;
    *program = p;
    return 0;
}

void rd_program_free(rd_program_t *program)
{
    free(program);
}
