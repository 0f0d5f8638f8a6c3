/* What the algorithms between nodes cost: see hier.c, whose steps are counted. */
#include "sched/algo/hier_work.h"

#include <math.h>

/* The work of the algorithm between the nodes, and what the direct exchange inside them adds to it. `rails` ranks of
 * each node have a part of the whole each. */
typedef struct layers {
    double nodes, local, rails;
    double part;   /* the part of the whole that one rail serves */
    double share;  /* the share of the outer algorithm's work that one rail does */
    double pieces; /* number of chunks of one rail */
} layers_t;

static void inside_allreduce(const layers_t *y, rd_work_t *w)
{
    double l = y->local, others = (y->rails - 1) * y->part;
    /* What goes together is brought and spread in turn, if each rail has a part of it. */
    double hops = w->blocks > 1 && y->rails > 1 ? 2 * (y->nodes + 1) - w->hops : 2;

    w->hops += hops;
    w->again += hops;
    w->near_hops = hops;
    w->near_messages = 2 * y->pieces * (l - 1 + y->rails - 1);
    w->near_received = (l - 1) * y->part + others;
    w->moved += 2 * others + (rd_work_sum((int)l, 1) + rd_work_fan(l - 1)) * y->part;
    w->summed += (l - 1) * y->part;
    w->received_all += 2 * y->nodes * (l - 1);
    w->moved_all += y->nodes * (2 * (l - 1) + rd_work_sum((int)l, 1) + rd_work_fan(l - 1));
    w->summed_all += y->nodes * (l - 1);
}

static void inside_rooted(const layers_t *y, int reduces, rd_work_t *w)
{
    double l = y->local, others = (y->rails - 1) * y->part, hops = y->rails > 1 ? 2 : 1;
    double handed = reduces ? (l - 1) / 2 : rd_work_fan(l - 1); /* these sources join the outer algorithm's sum */

    w->hops += hops;
    w->fill += hops;
    w->near_hops = hops;
    w->near_messages = y->pieces * (l - 1 + y->rails - 1);
    w->near_received = reduces ? (l - 1) * y->part + others : others;
    w->moved += others + handed * y->part;
    w->received_all += y->nodes * (l - 1);
    w->moved_all += y->nodes * (handed + l - 1);
    if (reduces) {
        w->summed += (l - 1) * y->part + others;
        w->summed_all += y->nodes * (l - 1);
    }
}

static void inside_blocks(const layers_t *y, int reduces, rd_work_t *w)
{
    double l = y->local, n = y->nodes * l, handed = reduces ? (l - 1) / 2 : rd_work_fan(l - 1);
    /* Blocks that arrive together are forwarded in turn: all that a network sends at once, or those of one message
     * while the next one is under way. */
    double rounds_in = w->blocks > 1 ? y->nodes - w->hops : w->hops > 1 ? 1 : y->nodes - 1;

    w->chunks = (int)n;
    w->hops += rounds_in;
    w->again += rounds_in;
    w->near_hops = rounds_in;
    w->near_messages = y->nodes * 2 * (l - 1);
    w->near_received = (l - 1) / l;
    w->moved += (l - 1 + handed) / l;
    w->received_all = n * (w->received + w->near_received);
    w->moved_all = n * w->moved;
    if (reduces) {
        w->summed += (l - 1) / l;
        w->summed_all = n * w->summed;
    }
}

static void inside_barrier(const layers_t *y, rd_work_t *w)
{
    w->hops += 2;
    w->again += 2;
    w->near_hops = 2;
    w->near_messages = 2 * (y->local - 1);
    w->near_received = y->local - 1;
    w->received_all += 2 * y->nodes * (y->local - 1);
    w->moved_all += 3 * y->nodes * (y->local - 1);
    w->moved += 2 * (y->local - 1);
}

int rd_hier_work(const rd_count_t *c, const rd_algo_t *between, int trees, rd_work_t *w)
{
    int whole = c->coll == RD_ALLGATHER || c->coll == RD_REDUCE_SCATTER, most = trees && !whole ? 2 : c->local;
    rd_count_t outer = rd_count(c->coll, c->nnodes, c->nnodes, 1, c->param);
    layers_t y = {
        .nodes = c->nnodes, .local = c->local, .rails = c->param > 0 && !whole && c->param < most ? c->param : most};

    if (c->nnodes < 2 || c->local < 2)
        return -1;
    if (c->coll == RD_BARRIER)
        y.rails = 1;
    outer.together = c->together;
    if (between->work(&outer, w) != 0)
        return -1;
    y.part = 1 / y.rails;
    /* With two trees on two rails, a rank is at most an inner node of its rail's tree, and is not in the other tree. */
    y.share = trees ? (y.rails > 1 ? 0.75 : 1) : y.part;
    y.pieces = w->chunks / (trees ? y.rails : 1);
    w->least = fmax(w->least, 1 / y.pieces);
    w->peers = between->near == RD_PEERS_ALL ? outer.m : 0;
    w->chunks = trees ? w->chunks : w->chunks * (int)y.rails;
    w->messages *= trees ? y.share : 1;
    w->received *= y.share;
    w->moved *= y.share;
    w->summed *= y.share;
    if (c->coll == RD_ALLREDUCE)
        inside_allreduce(&y, w);
    else if (c->coll == RD_BARRIER)
        inside_barrier(&y, w);
    else if (whole)
        inside_blocks(&y, c->coll == RD_REDUCE_SCATTER, w);
    else
        inside_rooted(&y, c->coll == RD_REDUCE, w);
    w->messages += w->near_messages;
    w->received += w->near_received;
    return 0;
}
