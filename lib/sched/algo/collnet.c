/* collnet: the switches between the nodes do the work. Each node sends them what it has, one rank or several ranks of
 * it, and what comes back is the result. Before and after that a direct exchange inside each node, as in hier.c:
 *
 *     allreduce, 2 nodes of 3 ranks:      0     1     2     |     3     4     5
 *
 *       bring    parts to their rails      a ◀── a ◀── a    |  the same        (shared memory)
 *       up       along each rail           a ──────▶ switch | ◀────── b        (network)
 *       down                               s ◀────── switch | ──────▶ s
 *       spread   parts to all ranks        s ──▶ s ──▶ s    |  the same        (shared memory)
 *
 *     collnet_chain      one rail: the first rank of each node is its head, and has the whole vector
 *     collnet_direct     as many rails as possible: every local rank is the head of a part
 *
 *                        up, by each head             what the switch sends back        down
 *     allreduce          the node's sum               the sum                           to all ranks
 *     reduce             the node's sum               the sum                           to the root; others drop it
 *     broadcast          the root's node: its part;   that part                         to all ranks but the root
 *                        the others: nothing
 *     allgather          its own block                the blocks of its rail, as one    to all ranks of the node
 *     reduce_scatter     the node's sums of all       the sum of its own block          -
 *                        blocks of its rail, as one
 *
 * Every head sends and receives in every operation, because that is how a switch counts. On the network there are two
 * hops, whatever the number of nodes; N bytes leave each node and come to it in an allreduce, half of what a ring
 * takes, and no more in any other. Going up and coming down are two lanes, so that one slice goes up while the one
 * before comes down. A rank that waits for the switch waits for the head on the node behind its own
 * (transport/switch.h).
 *
 * The order of a sum is the switch's. It serves a type and an operator if it says so itself, on all ranks. Blocks must
 * be equally long, and every rank has a rail there: so they go by collnet_direct, on nodes with equally many ranks.
 */
#include <stdlib.h>

#include "sched/algo/algos.h"
#include "sched/list.h"
#include "sched/shape.h"

/* Names of scratch: a partial sum of many sources; what passes by, or nothing; then the sums of a rail's blocks. */
enum { CARRY, PASSING, SUMS };

typedef struct star {
    rd_steps_t *s;
    const rd_nodes_t *g;
    rd_coll_t coll;
    int rank, root, hub; /* `hub`: the switch, as a peer */
    bool at_root;        /* this node is the root's */
    bool is_head;
} star_t;

static bool is_root(const star_t *t)
{
    return t->rank == t->root;
}

/* ---- inside the node */

/* Sends part q, or the block of head q on node v, to each other head q of this node. */
static void give(const star_t *t, int v)
{
    const rd_nodes_t *g = t->g;

    for (int k = 1; k < g->locals; k++) {
        int q = (g->local_rank + k) % g->locals, c = v < 0 ? q : g->rail[v * g->rails + q];
        if (q < g->rails)
            rd_step_send(t->s, rd_in(c), c, g->local[q]);
    }
}

/* Adds up what all ranks of the node have of chunk c. */
static void take_sum(const star_t *t, int c, rd_end_t to)
{
    const rd_nodes_t *g = t->g;
    rd_sum_t sum;

    rd_sum_begin(&sum, t->s, c, CARRY);
    for (int p = 0; p < g->locals; p++)
        rd_sum_add(&sum, p == g->local_rank ? rd_in(c) : rd_peer(g->local[p]));
    rd_sum_end(&sum, to);
}

/* Sends a value to the other ranks of the node; `but`: not to this one. */
static void spread(const star_t *t, rd_end_t value, int c, int but)
{
    const rd_nodes_t *g = t->g;
    rd_fan_t fan;

    rd_fan_begin(&fan, t->s, value, c);
    for (int k = 1; k < g->locals; k++) {
        int to = g->local[(g->local_rank + k) % g->locals];
        if (to != but)
            rd_fan_add(&fan, to);
    }
    rd_fan_end(&fan);
}

/* Receives the parts that the other heads of the node have. */
static void take_parts(const star_t *t)
{
    for (int q = 0; q < t->g->rails; q++)
        if (q != t->g->local_rank)
            rd_step_recv(t->s, rd_out(q), q, t->g->local[q]);
}

/* ---- a vector, of which each rail has a part */

static void up_sums(const star_t *t)
{
    give(t, -1);
    if (t->is_head)
        take_sum(t, t->g->local_rank, rd_peer(t->hub));
}

/* A head on another node than the root's has nothing to send: what is in its message does not count. */
static void up_from_root(const star_t *t)
{
    const int part = t->g->local_rank;

    if (is_root(t)) {
        give(t, -1);
        for (int c = 0; c < t->g->rails; c++)
            rd_step_copy(t->s, rd_out(c), rd_in(c), c);
    }
    if (!t->is_head)
        return;
    if (t->at_root && !is_root(t))
        rd_step_recv(t->s, rd_tmp(PASSING), part, t->root);
    rd_step_send(t->s, is_root(t) ? rd_in(part) : rd_tmp(PASSING), part, t->hub);
}

static void down_to_all(const star_t *t)
{
    const int part = t->g->local_rank, but = t->coll == RD_BROADCAST ? t->root : -1;
    const rd_end_t value = but == t->rank ? rd_tmp(PASSING) : rd_out(part);

    if (t->is_head) {
        rd_step_recv(t->s, value, part, t->hub);
        spread(t, value, part, but);
    }
    if (but != t->rank)
        take_parts(t);
}

static void down_to_root(const star_t *t)
{
    const int part = t->g->local_rank;

    if (t->is_head)
        rd_step_recv(t->s, is_root(t) ? rd_out(part) : rd_tmp(PASSING), part, t->hub);
    if (t->is_head && t->at_root && !is_root(t))
        rd_step_send(t->s, rd_tmp(PASSING), part, t->root);
    if (is_root(t))
        take_parts(t);
}

/* ---- blocks, of which each rail has those of its ranks: one message has all of them */

static int block_of(const star_t *t, int v)
{
    return t->g->rail[v * t->g->rails + t->g->local_rank];
}

static rd_message_part_t part_of(const star_t *t, int v)
{
    return v + 1 < t->g->nodes ? RD_PART_MORE : RD_PART_LAST;
}

static void up_block_sums(const star_t *t)
{
    const rd_nodes_t *g = t->g;

    for (int v = 0; v < g->nodes && g->locals > 1; v++) {
        give(t, v);
        take_sum(t, block_of(t, v), rd_tmp(SUMS + v));
    }
    for (int v = 0; v < g->nodes; v++) {
        rd_step_send(t->s, g->locals > 1 ? rd_tmp(SUMS + v) : rd_in(block_of(t, v)), block_of(t, v), t->hub);
        rd_step_part(t->s, part_of(t, v));
    }
}

static void down_blocks(const star_t *t)
{
    const rd_nodes_t *g = t->g;

    for (int v = 0; v < g->nodes; v++) {
        rd_step_recv(t->s, rd_out(block_of(t, v)), block_of(t, v), t->hub);
        rd_step_part(t->s, part_of(t, v));
    }
    for (int v = 0; v < g->nodes; v++) {
        spread(t, rd_out(block_of(t, v)), block_of(t, v), -1);
        for (int p = 0; p < g->locals; p++) {
            int c = g->rail[v * g->rails + p];
            if (p != g->local_rank)
                rd_step_recv(t->s, rd_out(c), c, g->local[p]);
        }
    }
}

/* ---- the steps of a rank */

static void up(const star_t *t)
{
    if (t->coll == RD_BROADCAST)
        up_from_root(t);
    else if (t->coll == RD_ALLGATHER)
        rd_step_send(t->s, rd_in(t->rank), t->rank, t->hub);
    else if (t->coll == RD_REDUCE_SCATTER)
        up_block_sums(t);
    else
        up_sums(t);
}

static void down(const star_t *t)
{
    if (t->coll == RD_REDUCE)
        down_to_root(t);
    else if (t->coll == RD_ALLGATHER)
        down_blocks(t);
    else if (t->coll == RD_REDUCE_SCATTER)
        rd_step_recv(t->s, rd_out(t->rank), t->rank, t->hub);
    else
        down_to_all(t);
}

static bool in_blocks(rd_coll_t coll)
{
    return coll == RD_ALLGATHER || coll == RD_REDUCE_SCATTER;
}

static rd_steps_t *emit(const rd_sched_args_t *args, int rails)
{
    const rd_shape_t *shape = args->shape;
    rd_sched_args_t unrooted = *args; /* heads are the first ranks of a node, whoever is the root */

    unrooted.coll = RD_ALLREDUCE;
    rd_nodes_t *g = rd_nodes_create(&unrooted, rails);
    if (!g)
        return NULL;
    star_t t = {.s = rd_steps_create(in_blocks(args->coll) ? shape->nranks : g->rails),
                .g = g,
                .coll = args->coll,
                .rank = args->rank,
                .root = args->root,
                .hub = rd_switch_of(shape),
                .at_root = shape->node[args->root] == g->node,
                .is_head = g->local_rank < g->rails};
    if (t.s) {
        rd_steps_lane(t.s, 0);
        up(&t);
        rd_steps_lane(t.s, 1);
        down(&t);
    }
    free(g);
    return t.s;
}

static rd_steps_t *chain_emit(const rd_sched_args_t *args)
{
    return emit(args, 1);
}

static rd_steps_t *direct_emit(const rd_sched_args_t *args)
{
    return emit(args, 0);
}

/* ---- where they serve */

static const char *chain_excluded(const rd_sched_args_t *args)
{
    if (args->shape->nnodes < 2)
        return "needs more than one node";
    return args->shape->node ? NULL : "needs to know the node of each rank";
}

static const char *direct_excluded(const rd_sched_args_t *args)
{
    const char *why = chain_excluded(args);
    int least, most;

    if (why)
        return why;
    if (rd_nodes_sizes(args->shape, &least, &most) != 0)
        return "needs to know the node of each rank";
    if (in_blocks(args->coll))
        return least == most ? NULL : "needs as many ranks on every node";
    return least < 2 ? "needs several ranks on every node" : NULL;
}

/* ---- what they cost: a switch is taken to be as fast as another rank at the end of a link */

/* A vector of which each of `rails` heads of a node has a part. All heads wait for all, so that no rank is calls ahead
 * of another, as the root of another broadcast may be. */
static void vector_work(const rd_count_t *c, double rails, rd_work_t *w)
{
    const double l = c->local, v = c->nnodes, others = l - 1, heads = rails - 1, part = 1 / rails;
    const double out = l > 1 ? rd_work_fan(others) + 0.5 : 1; /* what has come goes to the output and to all others */
    const bool all = c->coll == RD_ALLREDUCE, sums = c->coll != RD_BROADCAST, spreads = c->coll != RD_REDUCE;
    const double up = sums ? others + rd_work_sum((int)l, 1) : 1, down = spreads ? out + others : 1;

    w->chunks = (int)rails;
    w->near_hops = l > 1 ? (all || rails > 1 ? 2 : 1) : 0;
    w->hops = 2 + w->near_hops;
    w->again = 1 + (all ? w->near_hops : 0);
    w->fill = 1 + (all ? 0 : w->near_hops);
    w->near_messages = (sums ? others + heads : 0) + (spreads ? others : 0) + heads;
    w->messages = 2 + w->near_messages;
    w->least = 1;
    w->near_received = part * ((sums ? others : heads > 0) + heads);
    w->received = part + w->near_received;
    w->moved = part * (sums ? heads + rd_work_sum((int)l, 1) : 1) + part * ((spreads ? out : 1) + heads);
    w->summed = sums ? others * part : 0;
    w->received_all = v * (1 + (sums ? others : 0) + (spreads ? others : 0)) + (spreads ? 0 : heads * part);
    w->moved_all = v * (up + down) + (spreads ? 0 : heads * part);
    w->summed_all = v * w->summed * rails;
    w->leave = 1;
    w->link = 1;
    w->mutual = !all;
}

/* Blocks, of ranks that each have a message up and one down. What a switch that only adds needs besides is counted, as
 * if it were always so: an allgather's message is zeros but for one block. */
static void blocks_work(const rd_count_t *c, rd_work_t *w)
{
    const double v = c->nnodes, l = c->local, n = v * l, others = l - 1, reduces = c->coll == RD_REDUCE_SCATTER;

    w->chunks = (int)n;
    w->hops = 2 + (l > 1);
    w->again = 1 + (l > 1);
    w->fill = 1;
    w->near_hops = l > 1;
    w->near_messages = 2 * v * others;
    w->messages = 2 + w->near_messages;
    w->near_received = others / l;
    const double sums = l > 1 ? others + rd_work_sum((int)l, 1) + 1 : 1; /* of each of v blocks: given, summed, sent */
    const double moved = reduces ? v * sums + 1 : 1 + v / 2 + v * (1 + (l > 1 ? rd_work_fan(others) : 0) + others);
    rd_work_alike(w, (int)n, w->near_received + (reduces ? 1 / n : 1 / l), moved / n, reduces ? others / l : 0);
    w->leave = 1;
    w->link = 1;
}

static int work_on(const rd_count_t *c, int rails, rd_work_t *w)
{
    if (c->nnodes < 2)
        return -1;
    if (in_blocks(c->coll))
        blocks_work(c, w);
    else
        vector_work(c, rails, w);
    return 0;
}

static int chain_work(const rd_count_t *c, rd_work_t *w)
{
    return work_on(c, 1, w);
}

static int direct_work(const rd_count_t *c, rd_work_t *w)
{
    return work_on(c, c->local, w);
}

#define VECTORS (1u << RD_ALLREDUCE | 1u << RD_REDUCE | 1u << RD_BROADCAST)
#define BLOCKS (1u << RD_ALLGATHER | 1u << RD_REDUCE_SCATTER)

const rd_algo_t rd_algo_collnet_direct = {.name = "collnet_direct",
                                          .colls = VECTORS | BLOCKS,
                                          .excluded = direct_excluded,
                                          .emit = direct_emit,
                                          .work = direct_work,
                                          .near = RD_PEERS_COUNTED,
                                          .switched = true,
                                          .nccl = "CollNetDirect"};
const rd_algo_t rd_algo_collnet_chain = {.name = "collnet_chain",
                                         .colls = VECTORS,
                                         .excluded = chain_excluded,
                                         .emit = chain_emit,
                                         .work = chain_work,
                                         .near = RD_PEERS_COUNTED,
                                         .switched = true,
                                         .nccl = "CollNetChain"};
