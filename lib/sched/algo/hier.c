/* hier: a flat schedule between the nodes, with a direct exchange inside each node before and after it. These are the
 * phases of sched/phases.h, fused into steps, chunk by chunk.
 *
 *     allreduce, 2 nodes of 3 ranks:      0     1     2     |     3     4     5
 *
 *       bring    parts to their rails      a ◀── a ◀── a    |  the same        (shared memory)
 *       outer    along each rail           a ◀───────────── | ──▶ a            (network; ring, rd, pat, two trees)
 *       spread   parts to all ranks        a ──▶ a ──▶ a    |  the same        (shared memory)
 *
 * The outer schedule, which is the rail's phase, is that of a flat algorithm (ring.c, rd.c, ...) for as many ranks as
 * there are nodes. Rail j, the local ranks j of all nodes, takes each of its steps for part j of the
 * step's chunk. The phases inside the node handle one chunk at a time. Those before the rail's phase are inserted where
 * a step first reads a chunk of IN, as one exchange. Those after it are inserted where a step has written a chunk of
 * OUT, but after the sends that forward this chunk. All ranks of a node walk the same outer schedule in the same order,
 * so if it is free of deadlock between the nodes, the whole is.
 *
 *     allreduce          each rail has N/rails; ranks without a rail (on uneven nodes) contribute and receive
 *     broadcast          the root is on rail 0; reduce is the mirror image
 *     allgather          a rank sends its own block along its rail, and the blocks that it receives to the ranks of
 *                        its node; reduce_scatter is the mirror image; both need equally many ranks on every node
 *     barrier            the first rank of each node acts for all of it
 *
 *                        on the network, by each rail                       in the node
 *     hier_ring          as ring of `nodes` ranks, N/rails                  2 hops, N (1 - 1/rails) each way
 *     hier_tree          as tree, one tree for each rail                    2 hops, N each way
 *     hier_rd            as rd                                              as hier_ring
 *     hier_binomial      as binomial                                        as hier_ring
 *     hier_pat, _direct  as pat, direct                                     as hier_ring
 *
 * `param` is the number of rails: 1 for short data, where the number of messages matters; 0, which stands for as many
 * as possible, for long data, where the number of bytes matters.
 */
#include <stdlib.h>

#include "sched/algo/algos.h"
#include "sched/algo/hier_work.h"
#include "sched/phases.h"
#include "sched/shape.h"

/* Names of scratch: a partial sum of many sources, then the node's sum of each outer chunk, then the scratch of the
 * outer schedule. */
enum { CARRY, SUMS };

typedef struct walk {
    rd_nodes_t *g;
    const rd_steps_t *outer;
    rd_steps_t *s;
    rd_coll_t coll;
    bool each;           /* every rail has a part of every outer chunk; otherwise outer chunk c belongs to rail c */
    bool at_root;        /* this is a broadcast, and this is the root's node */
    rd_phases_t *phases; /* of an outer chunk: one list for all rails, or one for each */
    int nphases;
    char *brought; /* for each outer chunk: the phases before the rail's have been inserted */
    int *late;     /* the outer chunks that are still to be spread: one, or those of one message */
    int nlate;
} walk_t;

/* ---- phases of an outer chunk: their elements are chunks, that is, parts of a vector, or blocks in rank order */

/* Returns what this rank does on its rail, or NULL if it has no part of the outer chunk. */
static const rd_phase_t *on_rail(const walk_t *w, int c)
{
    const rd_phases_t *p = &w->phases[c % w->nphases];
    const rd_phase_t *last = p->behind > 0 ? &p->list[p->behind - 1] : NULL;

    return last && last->scope == RD_SCOPE_RAIL ? last : NULL;
}

/* Returns the phases inside the node before the rail's phase, or behind it. Of a list with one phase for each node's
 * blocks, it is the one for the outer chunk's node. */
static const rd_phase_t *phases_inside(const walk_t *w, int c, bool behind, size_t *n)
{
    const rd_phases_t *p = &w->phases[c % w->nphases];
    const rd_phase_t *first = p->list + (behind ? p->behind : 0);

    *n = behind ? p->count - p->behind : p->behind - (on_rail(w, c) != NULL);
    if (*n == 0 || first->node < 0)
        return first;
    *n = 1;
    return first + c;
}

/* Returns the chunk of the whole schedule that is element `at` of outer chunk c. */
static int chunk_of(const walk_t *w, int c, size_t at)
{
    switch (w->coll) {
    case RD_BARRIER:
        return 0;
    case RD_ALLGATHER:
        return (int)at;
    default:
        return (w->each ? c * w->g->rails : c) + (int)at;
    }
}

/* Returns the chunk that is this rank's part of outer chunk c, on its rail. */
static int own_chunk(const walk_t *w, const rd_phase_t *rail, int c)
{
    return chunk_of(w, c, rail->tabled ? rail->tables.out_displs[c] : rail->to.at);
}

static rd_end_t end_of(const walk_t *w, int c, rd_spot_t spot)
{
    if (spot.where == RD_TMP)
        return rd_tmp(SUMS + c);
    return spot.where == RD_IN ? rd_in(chunk_of(w, c, spot.at)) : rd_out(chunk_of(w, c, spot.at));
}

/* ---- inside the node: consecutive phases become one direct exchange ---- */

/* Returns true for the root of a broadcast, which receives nothing. */
static bool has_all(const walk_t *w, int local_rank)
{
    return w->at_root && local_rank == 0;
}

/* Sends to the other ranks of the node, one after the other. Data that goes to several of them in a row is sent by one
 * step. */
static void give(walk_t *w, int c, const rd_phase_t *phases, size_t n)
{
    const rd_nodes_t *g = w->g;
    rd_fan_t fan = {.n = 0};
    rd_spot_t spot;

    for (int k = 1; k < g->locals; k++) {
        int q = (g->local_rank + k) % g->locals;

        for (size_t i = 0; i < n; i++) {
            if (has_all(w, q) || rd_phase_given(&phases[i], g->local_rank, q, &spot) == 0)
                continue;
            rd_end_t src = end_of(w, c, spot);
            if (fan.n > 0 && (fan.src.where != src.where || fan.src.index != src.index))
                rd_fan_end(&fan);
            if (fan.n == 0)
                rd_fan_begin(&fan, w->s, src, chunk_of(w, c, spot.at));
            rd_fan_add(&fan, g->local[q]);
        }
    }
    rd_fan_end(&fan);
}

/* Sums the contributions of all ranks of the node, this rank's among them. */
static void take_sum(walk_t *w, int c, const rd_phase_t *f)
{
    const rd_nodes_t *g = w->g;
    rd_spot_t own, to;
    rd_sum_t sum;

    (void)rd_phase_given(f, g->local_rank, g->local_rank, &own);
    (void)rd_phase_taken(f, g->local_rank, g->local_rank, &to);
    rd_sum_begin(&sum, w->s, chunk_of(w, c, own.at), CARRY);
    for (int p = 0; p < g->locals; p++)
        rd_sum_add(&sum, p == g->local_rank ? end_of(w, c, own) : rd_peer(g->local[p]));
    rd_sum_end(&sum, end_of(w, c, to));
}

static void take(walk_t *w, int c, const rd_phase_t *f)
{
    const rd_nodes_t *g = w->g;
    rd_spot_t spot;

    if (rd_coll_reduces(f->coll)) {
        if (rd_phase_taken(f, g->local_rank, g->local_rank, &spot) > 0)
            take_sum(w, c, f);
        return;
    }
    for (int p = 0; p < g->locals; p++)
        if (p != g->local_rank && rd_phase_taken(f, g->local_rank, p, &spot) > 0)
            rd_step_recv(w->s, end_of(w, c, spot), chunk_of(w, c, spot.at), g->local[p]);
}

static void exchange(walk_t *w, int c, bool behind)
{
    size_t n;
    const rd_phase_t *phases = phases_inside(w, c, behind, &n);

    give(w, c, phases, n);
    for (size_t i = 0; i < n && !has_all(w, w->g->local_rank); i++)
        take(w, c, &phases[i]);
}

/* The root copies all parts that it sends to its own output. */
static void keep(walk_t *w, int c)
{
    rd_spot_t spot;
    size_t n;
    const rd_phase_t *f = phases_inside(w, c, false, &n);

    for (int p = 0; n > 0 && p < w->g->locals; p++)
        if (rd_phase_given(f, w->g->local_rank, p, &spot) > 0)
            rd_step_copy(w->s, rd_out(chunk_of(w, c, spot.at)), end_of(w, c, spot), chunk_of(w, c, spot.at));
}

static void spread(walk_t *w)
{
    int n = w->nlate;

    w->nlate = 0;
    for (int i = 0; i < n; i++)
        exchange(w, w->late[i], true);
}

static void spread_later(walk_t *w, int c)
{
    if (w->nlate == 1 && w->late[0] == c)
        return;
    spread(w);
    w->late[w->nlate++] = c;
}

static void bring(walk_t *w, int c)
{
    if (w->brought[c])
        return;
    w->brought[c] = 1;
    spread(w);
    exchange(w, c, false);
    if (w->at_root)
        spread_later(w, c);
}

/* ---- between the nodes: the rail's phase, as steps of the outer schedule ---- */

static rd_end_t mapped(const walk_t *w, const rd_phase_t *rail, rd_end_t end)
{
    const rd_nodes_t *g = w->g;

    switch (end.where) {
    case RD_PEER:
        return rd_peer(g->rail[end.index * g->rails + g->local_rank]);
    case RD_TMP:
        return rd_tmp(SUMS + w->outer->nchunks + end.index);
    case RD_OUT:
        return rd_out(own_chunk(w, rail, end.index));
    default:
        if (rail->from.where == RD_TMP)
            return rd_tmp(SUMS + end.index);
        end.where = rail->from.where;
        end.index = own_chunk(w, rail, end.index);
        return end;
    }
}

static int find(const rd_end_t *ends, int n, rd_where_t where)
{
    for (int k = 0; k < n; k++)
        if (ends[k].where == (int32_t)where)
            return k;
    return -1;
}

/* This rank's part of an outer step, on its rail. */
static void take_on_rail(walk_t *w, const rd_phase_t *rail, const rd_step_t *step)
{
    rd_end_t src[RD_MAX_ENDS], dst[RD_MAX_ENDS];

    for (int k = 0; k < step->nsrc; k++)
        src[k] = mapped(w, rail, step->src[k]);
    for (int k = 0; k < step->ndst; k++)
        dst[k] = mapped(w, rail, step->dst[k]);
    rd_step(w->s, own_chunk(w, rail, step->chunk), step->nsrc, src, step->ndst, dst);
    rd_step_part(w->s, step->part);
}

/* A message of several blocks. Nothing may come between its parts: what they read is brought before the first, and what
 * they have written is spread behind the last. Returns the number of steps. */
static int take_message(walk_t *w, const rd_step_t *first)
{
    int n = 1, out;

    while (first[n - 1].part == RD_PART_MORE)
        n++;
    for (int i = 0, in; i < n; i++)
        if ((in = find(first[i].src, first[i].nsrc, RD_IN)) >= 0)
            bring(w, first[i].src[in].index);
    if (find(first->src, first->nsrc, RD_PEER) >= 0)
        spread(w);
    for (int i = 0; i < n; i++) {
        const rd_phase_t *rail = on_rail(w, first[i].chunk);
        if (rail)
            take_on_rail(w, rail, &first[i]);
        if ((out = find(first[i].dst, first[i].ndst, RD_OUT)) >= 0)
            w->late[w->nlate++] = first[i].dst[out].index;
    }
    return n;
}

static void take_step(walk_t *w, const rd_step_t *step)
{
    int c = step->chunk, in = find(step->src, step->nsrc, RD_IN), out = find(step->dst, step->ndst, RD_OUT);
    const rd_phase_t *rail = on_rail(w, c);

    if (in >= 0)
        bring(w, step->src[in].index);
    if (find(step->src, step->nsrc, RD_PEER) >= 0)
        spread(w);
    if (w->at_root && in >= 0 && out >= 0) {
        keep(w, c);
        return;
    }
    if (rail)
        take_on_rail(w, rail, step);
    if (out >= 0)
        spread_later(w, step->dst[out].index);
}

/* The schedule of a barrier reads and writes no chunk, so its phases inside the node come first and last. */
static void walk_lane(walk_t *w, rd_lane_t lane)
{
    rd_steps_lane(w->s, lane.channel);
    w->nlate = 0;
    if (w->coll == RD_BARRIER)
        exchange(w, 0, false);
    for (int i = lane.first; i < lane.first + lane.count;) {
        const rd_step_t *step = &w->outer->steps[i];
        if (step->part != RD_ALONE) {
            i += take_message(w, step);
            continue;
        }
        take_step(w, step);
        i++;
    }
    if (w->coll == RD_BARRIER)
        spread_later(w, 0);
    spread(w);
}

/* Returns -1 if there is no memory. */
static int make_phases(walk_t *w, const rd_sched_args_t *args)
{
    const rd_nodes_t *g = w->g;
    rd_hier_t h = {.node_of = args->shape->node,
                   .nranks = args->shape->nranks,
                   .nnodes = g->nodes,
                   .local = g->local,
                   .locals = g->locals,
                   .rank = args->rank,
                   .node = g->node,
                   .local_rank = g->local_rank,
                   .rails = g->rails,
                   .alike = w->coll == RD_ALLGATHER, /* which `excluded` ensures; the other operations do not read it */
                   .coll = w->coll,
                   .root = args->root,
                   .count = 1,
                   .fused = true,
                   .element = 1};

    if (w->each && w->coll != RD_ALLGATHER && w->coll != RD_BARRIER)
        h.count = (size_t)g->rails;
    w->nphases = w->each ? 1 : g->rails;
    w->phases = calloc((size_t)w->nphases, sizeof(*w->phases));
    for (int j = 0; w->phases && j < w->nphases; j++) {
        h.rest_rail = j;
        if (rd_hier_phases(&h, &w->phases[j]) != 0)
            return -1;
    }
    return w->phases ? 0 : -1;
}

static void free_walk(walk_t *w)
{
    for (int j = 0; w->phases && j < w->nphases; j++)
        rd_phases_free(&w->phases[j]);
    free(w->phases);
    free(w->brought);
    free(w->late);
    free(w->g);
}

static int parts(const walk_t *w, int nranks)
{
    if (w->coll == RD_ALLGATHER)
        return nranks;
    return w->each && w->coll != RD_BARRIER ? w->outer->nchunks * w->g->rails : w->outer->nchunks;
}

static rd_steps_t *compose(const rd_sched_args_t *args, const rd_algo_t *outer, int rails, int each)
{
    walk_t w = {.g = rd_nodes_create(args, rails), .coll = args->coll, .each = each};
    rd_steps_t *between = NULL;

    if (!w.g)
        return NULL;
    const rd_shape_t shape = {w.g->nodes, 1, NULL};
    const rd_sched_args_t nodes = {&shape, args->coll, w.g->node, args->shape->node[args->root], 0, args->together};
    w.at_root = args->coll == RD_BROADCAST && nodes.root == w.g->node;
    w.outer = between = outer->emit(&nodes);
    if (!between || rd_steps_expand(between) != 0)
        goto free_all;
    w.s = rd_steps_create(parts(&w, args->shape->nranks));
    w.brought = calloc((size_t)between->nchunks, 1);
    w.late = calloc((size_t)between->nchunks, sizeof *w.late);
    if (w.s && (!w.brought || !w.late || make_phases(&w, args) != 0))
        w.s->error = "no memory for the schedule";
    for (int l = 0; w.s && !w.s->error && l < between->nlanes; l++)
        walk_lane(&w, between->lanes[l]);
free_all:
    rd_steps_free(between);
    free_walk(&w);
    return w.s;
}

/* Emits the schedule of `outer` for the nodes, on `rails` rails (0: as many as possible), with the phases inside the
 * nodes before and after it. `each`: every rail has a part of every chunk of `outer`; else chunk c is rail c's. Reduce
 * and reduce_scatter are the mirror images of broadcast and allgather. */
static rd_steps_t *whole_emit(const rd_sched_args_t *args, const rd_algo_t *outer, int rails, int each)
{
    rd_sched_args_t image = *args;

    image.coll = args->coll == RD_REDUCE ? RD_BROADCAST : RD_ALLGATHER;
    switch (args->coll) {
    case RD_REDUCE:
        return rd_mirror(compose(&image, outer, rails, each));
    case RD_REDUCE_SCATTER:
        return rd_mirror(compose(&image, outer, 0, each));
    case RD_ALLGATHER:
        return compose(args, outer, 0, each);
    case RD_BARRIER:
        return compose(args, outer, 1, each);
    default:
        return compose(args, outer, rails, each);
    }
}

static const char *excluded(const rd_sched_args_t *args)
{
    int least, most;

    if (args->shape->nnodes < 2)
        return "needs more than one node";
    if (!args->shape->node || rd_nodes_sizes(args->shape, &least, &most) != 0)
        return "needs to know the node of each rank";
    if (most == 1)
        return "needs a node with several ranks";
    if (least != most && (args->coll == RD_ALLGATHER || args->coll == RD_REDUCE_SCATTER))
        return "needs as many ranks on every node";
    return NULL;
}

static rd_steps_t *over_ring(const rd_sched_args_t *args)
{
    return whole_emit(args, &rd_algo_ring, args->param, 1);
}

/* Each rail has one tree, so that the phases up and down, which are lanes of their own, share no connection. */
static rd_steps_t *over_tree(const rd_sched_args_t *args)
{
    return whole_emit(args, &rd_algo_tree, args->param == 1 ? 1 : 2, 0);
}

static rd_steps_t *over_rd(const rd_sched_args_t *args)
{
    return whole_emit(args, &rd_algo_rd, args->param, 1);
}

static rd_steps_t *over_binomial(const rd_sched_args_t *args)
{
    return whole_emit(args, &rd_algo_binomial, args->param, 1);
}

static rd_steps_t *over_pat(const rd_sched_args_t *args)
{
    return whole_emit(args, &rd_algo_pat, args->param, 1);
}

static rd_steps_t *over_direct(const rd_sched_args_t *args)
{
    return whole_emit(args, &rd_algo_direct, args->param, 1);
}

/* ---- what they cost ---- */

static int ring_work(const rd_count_t *c, rd_work_t *w)
{
    return rd_hier_work(c, &rd_algo_ring, 0, w);
}

static int tree_work(const rd_count_t *c, rd_work_t *w)
{
    return rd_hier_work(c, &rd_algo_tree, 1, w);
}

static int rd_work(const rd_count_t *c, rd_work_t *w)
{
    return rd_hier_work(c, &rd_algo_rd, 0, w);
}

static int binomial_work(const rd_count_t *c, rd_work_t *w)
{
    return rd_hier_work(c, &rd_algo_binomial, 0, w);
}

static int pat_work(const rd_count_t *c, rd_work_t *w)
{
    return rd_hier_work(c, &rd_algo_pat, 0, w);
}

static int direct_work(const rd_count_t *c, rd_work_t *w)
{
    return rd_hier_work(c, &rd_algo_direct, 0, w);
}

#define BLOCKS (1u << RD_ALLGATHER | 1u << RD_REDUCE_SCATTER)
#define ROOTED (1u << RD_BROADCAST | 1u << RD_REDUCE)
#define ALL (1u << RD_ALLREDUCE)

/* The fields of a card: the schedule between the nodes, the operations, and the number of values of `param`. */
#define HIER(between, of, most)                                                                                        \
    .colls = (of), .excluded = excluded, .emit = over_##between, .params = (most), .work = between##_work,             \
    .near = RD_PEERS_COUNTED

const rd_algo_t rd_algo_hier_ring = {.name = "hier_ring", HIER(ring, ALL | BLOCKS | ROOTED, 1)};
const rd_algo_t rd_algo_hier_tree = {.name = "hier_tree", HIER(tree, ALL | ROOTED, 1)};
const rd_algo_t rd_algo_hier_rd = {.name = "hier_rd", HIER(rd, ALL | 1u << RD_BARRIER, 1)};
const rd_algo_t rd_algo_hier_binomial = {.name = "hier_binomial", HIER(binomial, ROOTED, 1)};
const rd_algo_t rd_algo_hier_pat = {.name = "hier_pat", HIER(pat, ALL | BLOCKS, 1), .joins = true};
const rd_algo_t rd_algo_hier_direct = {.name = "hier_direct", HIER(direct, BLOCKS, 0)};
