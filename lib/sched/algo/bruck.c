/* bruck, hier_bruck: an all-to-all in log n rounds, in which ranks pass on each other's blocks.
 *
 *     A block for the rank i ahead goes there by the bits of i: in the round of bit d it moves d ranks, if i has the
 *     bit. So all blocks of a round that a rank has move the same way, and may be one message. Of 6 ranks:
 *
 *         d = 1:  1 3 5   to the next rank          1 has arrived, 3 and 5 are on their way
 *         d = 2:  2 3     to the rank 2 ahead       both have arrived
 *         d = 4:  4 5     to the rank 4 ahead       likewise
 *
 * A block that is on its way waits in the output, in the place of the block that comes the same distance: that one
 * takes its place in the round in which it leaves, or in a later one. So there is no scratch, whatever n is. It works
 * for any n, if all blocks are equally long.
 *
 * hier_bruck does the same among v nodes of l ranks, along rails (sched/shape.h), which need as many ranks on every
 * node. First a rank gives each rank of its node the blocks for the rail that this one is on; then the ranks of a rail
 * pass on bundles of l blocks, one from each rank of a node to one rank, as above are passed on blocks. A bundle waits
 * where its blocks belong that come the same distance. With `param` 1 each bundle goes to its node directly.
 *
 *                     messages                       bytes sent by a rank         cost
 *     bruck           log n                          about N log n / 2            alpha log n + beta N log n / 2
 *     hier_bruck      l-1 on the node, log v         N on the node, N log v / 2   alpha (l-1 + log v) + ...
 *     hier_bruck:1    l-1 on the node, v-1           N on the node, N             alpha (l-1 + v-1) + ...
 *
 * It pays for short blocks, which go together, as many as fit a slot (`together`): then a round takes a message or a
 * few. Where each goes alone there are more messages than `direct` has, and none of the use. What goes together is
 * sent before it is received, and all ranks are at the same step, so one credit suffices.
 *
 * The blocks of a round are walked in the order that leaves fewer steps when they are folded: all with the same lower
 * bits, or all with the same upper ones. Bruck et al.: "Efficient algorithms for all-to-all communications in
 * multiport message-passing systems", IEEE TPDS 8 (1997).
 */
#include <stdlib.h>

#include "sched/algo/algos.h"
#include "sched/shape.h"

#define RANKS_MOST 16384 /* of more ranks the steps are too many to be compiled: n log n of them */

/* A bundle is what a node's ranks have for one rank; without nodes it is a block, and a rank is its own node. */
typedef struct bruck {
    rd_steps_t *s;
    const rd_nodes_t *g; /* NULL: without nodes */
    int n, me;           /* number of nodes, and this rank's */
    int locals, local;   /* ranks on a node, and this rank's number among them */
    int d;               /* of the round */
    int together;        /* most blocks of a message */
    int copied; /* this rank's own block is in OUT: it is copied behind the first send, which nobody waits for then */
} bruck_t;

/* A block of the bundle that comes from, or goes to, the node i away: that of local rank l. */
typedef struct block {
    int i, l;
} block_t;

/* Returns how many distances below n have the bit d. */
static int bundles_of(int n, int d)
{
    int rest = n % (2 * d) - d;

    return n / (2 * d) * d + (rest > 0 ? rest : 0);
}

static int rank_of(const bruck_t *b, int node, int local)
{
    node = rd_mod(node, b->n);
    return b->g ? b->g->rail[node * b->g->rails + local] : node;
}

/* Returns the distance behind i in the round's order. */
static int behind(const bruck_t *b, int i)
{
    int d = b->d;

    if (d < b->n / (2 * d)) {
        i += 2 * d;
        return i < b->n ? i : d + i % d + 1;
    }
    i++;
    return i & d ? i : i + d;
}

static block_t next_block(const bruck_t *b, block_t at)
{
    if (++at.l < b->locals)
        return at;
    return (block_t){behind(b, at.i), 0};
}

static void copy_own(bruck_t *b)
{
    int me = rank_of(b, b->me, b->local);

    if (!b->copied)
        rd_step_copy(b->s, rd_out(me), rd_in(me), me);
    b->copied = 1;
}

/* ---- along the rail ---- */

static void give(bruck_t *b, block_t at)
{
    int to = rank_of(b, b->me + b->d, b->local), goes = rank_of(b, b->me + at.i, b->local);
    int waits = rank_of(b, b->me - at.i, at.l);

    if (at.l == b->local && at.i % b->d == 0)
        rd_step_send(b->s, rd_in(goes), goes, to);
    else
        rd_step_send(b->s, rd_out(waits), waits, to);
}

static void take(bruck_t *b, block_t at)
{
    int waits = rank_of(b, b->me - at.i, at.l);

    rd_step_recv(b->s, rd_out(waits), waits, rank_of(b, b->me - b->d, b->local));
}

/* ---- on the node: the blocks for local rank l's rail, or from this rank ---- */

static void hand(bruck_t *b, block_t at)
{
    int goes = rank_of(b, b->me + at.i, at.l);

    rd_step_send(b->s, rd_in(goes), goes, rank_of(b, b->me, at.l));
}

static void get(bruck_t *b, block_t at)
{
    int waits = rank_of(b, b->me - at.i, at.l);

    rd_step_recv(b->s, rd_out(waits), waits, rank_of(b, b->me, at.l));
}

static block_t next_node(const bruck_t *b, block_t at)
{
    (void)b;
    return (block_t){at.i + 1, at.l};
}

/* ---- messages ---- */

/* Moves the blocks of one message. Returns the block behind the last. */
static block_t move(bruck_t *b, void (*one)(bruck_t *, block_t), block_t (*next)(const bruck_t *, block_t), block_t at,
                    int blocks)
{
    for (int k = 0; k < blocks; k++, at = next(b, at)) {
        one(b, at);
        if (blocks > 1)
            rd_step_part(b->s, k + 1 < blocks ? RD_PART_MORE : RD_PART_LAST);
    }
    return at;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static void run_round(bruck_t *b)
{
    block_t at = {b->d, 0};
    int blocks;

    for (int left = bundles_of(b->n, b->d) * b->locals; left > 0; left -= blocks) {
        blocks = least(left, b->together);
        (void)move(b, give, next_block, at, blocks);
        copy_own(b);
        at = move(b, take, next_block, at, blocks);
    }
}

/* A message to and from each rank of the node; then the next ones, if the blocks do not fit one. */
static void on_node(bruck_t *b)
{
    for (int at = 0; at < b->n && b->locals > 1; at += b->together) {
        int blocks = least(b->n - at, b->together);
        for (int k = 1; k < b->locals; k++)
            (void)move(b, hand, next_node, (block_t){at, (b->local + k) % b->locals}, blocks);
        copy_own(b);
        for (int k = 1; k < b->locals; k++)
            (void)move(b, get, next_node, (block_t){at, rd_mod(b->local - k, b->locals)}, blocks);
    }
}

/* Likewise to and from the ranks of the rail, without passing on. */
static void directly(bruck_t *b)
{
    for (int at = 0; at < b->locals; at += b->together) {
        int blocks = least(b->locals - at, b->together);
        for (b->d = 1; b->d < b->n; b->d++)
            (void)move(b, give, next_block, (block_t){b->d, at}, blocks);
        for (b->d = 1; b->d < b->n; b->d++)
            (void)move(b, take, next_block, (block_t){b->d, at}, blocks);
    }
}

static rd_steps_t *emit_bundles(bruck_t *b, const rd_sched_args_t *args, bool passed_on)
{
    b->together = args->together > 1 ? args->together : 1;
    b->s = rd_steps_create(args->shape->nranks);
    if (!b->s)
        return NULL;
    rd_steps_lane(b->s, 0);
    on_node(b);
    for (b->d = 1; b->d < b->n && passed_on; b->d *= 2)
        run_round(b);
    if (!passed_on)
        directly(b);
    copy_own(b); /* for a single rank, which sends nothing */
    return b->s;
}

static rd_steps_t *emit(const rd_sched_args_t *args)
{
    bruck_t b = {.n = args->shape->nranks, .me = args->rank, .locals = 1};

    return emit_bundles(&b, args, true);
}

static rd_steps_t *emit_on_nodes(const rd_sched_args_t *args)
{
    rd_nodes_t *g = rd_nodes_create(args, 0);
    rd_steps_t *s;

    if (!g)
        return NULL;
    bruck_t b = {.g = g, .n = g->nodes, .me = g->node, .locals = g->rails, .local = g->local_rank};
    s = emit_bundles(&b, args, args->param == 0);
    free(g);
    return s;
}

static const char *excluded(const rd_sched_args_t *args)
{
    return args->shape->nranks > RANKS_MOST ? "needs at most 16384 ranks: its steps would be too many" : NULL;
}

static const char *excluded_on_nodes(const rd_sched_args_t *args)
{
    int few, many;

    if (args->shape->nnodes < 2)
        return "needs more than one node";
    if (!args->shape->node || rd_nodes_sizes(args->shape, &few, &many) != 0)
        return "needs to know the node of each rank";
    if (many == 1)
        return "needs a node with several ranks";
    if (few != many)
        return "needs as many ranks on every node";
    return args->param == 0 ? excluded(args) : NULL;
}

/* ---- what they cost ---- */

typedef struct sent {
    double blocks, messages;
} sent_t;

/* What a rank sends along its rail, of bundles of `locals` blocks. */
static sent_t sent_round(int n, int d, int locals, int together)
{
    int blocks = bundles_of(n, d) * locals;

    return (sent_t){blocks, (blocks + together - 1) / together};
}

static void fill(const rd_count_t *c, sent_t sent, rd_work_t *w)
{
    w->chunks = c->n;
    w->messages = 2 * sent.messages;
    w->blocks = sent.blocks / sent.messages;
    w->link = sent.blocks / c->n;
    rd_work_alike(w, c->n, sent.blocks / c->n, (1 + 2 * sent.blocks) / c->n, 0);
}

/* A round's messages wait for those of the round before, and for one another. A node's last d ranks send to others in
 * the round of d, or all of them. */
static int work(const rd_count_t *c, rd_work_t *w)
{
    sent_t sent = {0, 0};

    for (int d = 1; d < c->n; d *= 2) {
        sent_t some = sent_round(c->n, d, 1, c->together > 1 ? c->together : 1);
        sent.blocks += some.blocks;
        sent.messages += some.messages;
        w->leave += c->nnodes > 1 ? some.blocks / c->n * least(c->local, least(d, c->n - d)) : 0;
    }
    w->hops = w->again = sent.messages;
    fill(c, sent, w);
    return 0;
}

/* On the node and directly a rank sends to all before it waits: that is a hop for each message to one of them. */
static int work_on_nodes(const rd_count_t *c, rd_work_t *w)
{
    int v = c->nnodes, l = c->local, together = c->together > 1 ? c->together : 1;
    double each = (v + together - 1) / together;
    sent_t sent = {0, 0};

    if (v < 2 || l < 2)
        return -1;
    for (int d = 1; d < v && c->param == 0; d *= 2) {
        sent_t some = sent_round(v, d, l, together);
        sent.blocks += some.blocks;
        sent.messages += some.messages;
    }
    w->hops = sent.messages;
    if (c->param > 0) {
        w->hops = (l + together - 1) / together;
        sent = (sent_t){(v - 1.0) * l, (v - 1.0) * w->hops};
        w->peers = v - 1;
    }
    w->leave = l * sent.blocks / c->n;
    w->near_hops = each;
    w->hops += each;
    w->again = w->hops;
    w->near_messages = 2 * (l - 1) * each;
    w->near_received = (l - 1.0) * v / c->n;
    sent.messages += (l - 1) * each;
    sent.blocks += (l - 1.0) * v;
    fill(c, sent, w);
    return 0;
}

const rd_algo_t rd_algo_bruck = {
    .name = "bruck",
    .colls = 1u << RD_ALLTOALL,
    .excluded = excluded,
    .emit = emit,
    .joins = true,
    .relays = true,
    .work = work,
    .near = RD_PEERS_AHEAD,
};

const rd_algo_t rd_algo_hier_bruck = {
    .name = "hier_bruck",
    .colls = 1u << RD_ALLTOALL,
    .excluded = excluded_on_nodes,
    .emit = emit_on_nodes,
    .joins = true,
    .relays = true,
    .params = 1,
    .work = work_on_nodes,
    .near = RD_PEERS_COUNTED,
};
