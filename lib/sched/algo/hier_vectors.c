/* Phases of operations on one vector, of which each rail has a part. See sched/phases.h. */
#include "sched/algo/hier_phases.h"

/* ---- phases in general */

rd_cut_t rd_cut(const rd_hier_t *h, size_t count, int rest_rail)
{
    size_t rails = (size_t)h->rails;
    rd_cut_t c = {count / rails, count % rails, rest_rail, 0};

    if (h->local_rank < h->rails)
        c.mine = c.part + (h->local_rank == rest_rail ? c.rest : 0);
    return c;
}

/* Has this node ranks without a rail? */
static bool has_ranks_beyond(const rd_hier_t *h)
{
    return h->rails < h->locals;
}

static void add(rd_phases_t *p, rd_scope_t scope, rd_coll_t coll, int root, size_t count, rd_spot_t from, rd_spot_t to)
{
    rd_phase_t phase = {scope, coll, root, -1, count, 0, from, to, false, {NULL, NULL, NULL, NULL}};

    if (count)
        rd_phases_add(p, &phase);
}

void rd_phases_node(const rd_hier_t *h, rd_phases_t *p, rd_coll_t coll, int root, size_t count, rd_spot_t from,
                    rd_spot_t to)
{
    if (!(h->fused && h->locals == 1 && rd_coll_reduces(coll)))
        add(p, RD_SCOPE_NODE, coll, root, count, from, to);
}

void rd_phases_rail(rd_phases_t *p, rd_coll_t coll, int root, size_t count, rd_spot_t from, rd_spot_t to)
{
    add(p, RD_SCOPE_RAIL, coll, root, count, from, to);
    p->behind = p->count;
}

rd_phase_t *rd_phases_tabled(rd_phases_t *p, rd_scope_t scope, rd_coll_t coll, size_t count, rd_spot_t from,
                             rd_spot_t to, rd_tables_t tables)
{
    rd_phase_t phase = {scope, coll, 0, -1, count, 0, from, to, true, tables};

    return rd_phases_add(p, &phase);
}

void rd_phases_self(rd_phases_t *p, size_t count, rd_spot_t from, rd_spot_t to)
{
    add(p, RD_SCOPE_SELF, RD_BROADCAST, 0, count, from, to);
}

static size_t part_of(const rd_cut_t *c, int local_rank)
{
    return c->part + (local_rank == c->rest_rail ? c->rest : 0);
}

void rd_phases_sum(const rd_hier_t *h, rd_phases_t *p, const rd_cut_t *c, rd_spot_t from, rd_spot_t to)
{
    if (has_ranks_beyond(h)) {
        for (int q = 0; q < h->rails; q++)
            rd_phases_node(h, p, RD_REDUCE, q, part_of(c, q), rd_spot_plus(from, (size_t)q * c->part), to);
        return;
    }
    rd_phases_node(h, p, RD_REDUCE_SCATTER, 0, c->part, from, to);
    rd_phases_node(h, p, RD_REDUCE, c->rest_rail, c->rest, rd_spot_plus(from, (size_t)h->rails * c->part),
                   rd_spot_plus(to, c->part));
}

void rd_phases_spread_each(const rd_hier_t *h, rd_phases_t *p, const rd_cut_t *c, rd_spot_t at)
{
    for (int q = 0; q < h->rails; q++) {
        rd_spot_t part = rd_spot_plus(at, (size_t)q * c->part);
        rd_phases_node(h, p, RD_BROADCAST, q, part_of(c, q), part, part);
    }
}

static size_t common(size_t begin, size_t end, size_t other_begin, size_t other_end)
{
    begin = begin > other_begin ? begin : other_begin;
    end = end < other_end ? end : other_end;
    return begin < end ? end - begin : 0;
}

/* The overlaps of a part with the blocks lie in the order of the ranks, and so do those of a block with the parts. So
 * both sides are packed and need no displacements. */
void rd_phases_deliver(const rd_hier_t *h, rd_phases_t *p, size_t count, const size_t *begins, rd_spot_t from,
                       rd_spot_t to)
{
    size_t rails = (size_t)h->rails, n = (size_t)h->locals, self = (size_t)h->local_rank;
    size_t *sent = rd_phases_table(p, 3 * n + 1), *got, *part;

    if (!sent)
        return;
    got = sent + n;
    part = got + n;
    for (size_t i = 0; i <= n; i++)
        part[i] = i < rails ? i * (count / rails) : count;
    for (size_t i = 0; i < n; i++) {
        sent[i] = common(part[self], part[self + 1], begins[i], begins[i + 1]);
        got[i] = common(part[i], part[i + 1], begins[self], begins[self + 1]);
    }
    rd_phases_tabled(p, RD_SCOPE_NODE, RD_ALLTOALL, 0, from, to, (rd_tables_t){sent, NULL, got, NULL});
}

/* ---- allreduce and broadcast */

static int rest_of(const rd_hier_t *h)
{
    return h->fused ? h->rest_rail : h->rails - 1;
}

/* Distributes the parts of the output inside the node. Each part lies in the output of its rank, except that the root
 * of a fused broadcast, which has local rank 0, reads its part from the input. */
static void spread(const rd_hier_t *h, rd_phases_t *p, const rd_cut_t *c, bool at_root)
{
    const rd_spot_t out = rd_spot(RD_OUT, 0);
    size_t first = p->count;

    if (has_ranks_beyond(h)) {
        rd_phases_spread_each(h, p, c, out);
    } else {
        rd_phases_node(h, p, RD_ALLGATHER, 0, c->part, rd_spot_plus(out, (size_t)h->local_rank * c->part), out);
        rd_spot_t rest = rd_spot_plus(out, (size_t)h->rails * c->part);
        rd_phases_node(h, p, RD_BROADCAST, c->rest_rail, c->rest, rest, rest);
    }
    for (size_t i = first; i < p->count && h->fused && at_root && h->local_rank == 0; i++)
        p->list[i].from.where = RD_IN;
}

void rd_phases_allreduce(const rd_hier_t *h, rd_phases_t *p)
{
    const rd_cut_t c = rd_cut(h, h->count, rest_of(h));
    const rd_spot_t in = rd_spot(RD_IN, 0), own = rd_spot(RD_OUT, (size_t)h->local_rank * c.part);
    rd_spot_t sum = h->fused ? rd_spot(RD_TMP, 0) : own;

    rd_phases_sum(h, p, &c, in, sum);
    rd_phases_rail(p, RD_ALLREDUCE, 0, c.mine, h->fused && h->locals == 1 ? in : sum, own);
    spread(h, p, &c, false);
}

/* Sends each rank that has a rail its part, from the root, as an alltoall with tables. */
static void hand_parts(const rd_hier_t *h, rd_phases_t *p, const rd_cut_t *c, rd_spot_t own)
{
    size_t n = (size_t)h->locals, *sent = rd_phases_table(p, 2 * n), *got;

    if (!sent)
        return;
    got = sent + n;
    for (int q = 0; q < h->rails && h->local_rank == h->root_local_rank; q++)
        sent[q] = part_of(c, q);
    got[h->root_local_rank] = c->mine;
    rd_phases_tabled(p, RD_SCOPE_NODE, RD_ALLTOALL, 0, rd_spot(RD_IN, 0), own, (rd_tables_t){sent, NULL, got, NULL});
}

/* Brings each rail's part to its rank, on the root's node. */
static void hand_out(const rd_hier_t *h, rd_phases_t *p, const rd_cut_t *c, rd_spot_t own)
{
    const rd_spot_t in = rd_spot(RD_IN, 0), out = rd_spot(RD_OUT, 0);
    size_t parts = (size_t)h->rails * c->part;

    if (h->fused) {
        hand_parts(h, p, c, own);
    } else if (has_ranks_beyond(h)) {
        rd_phases_node(h, p, RD_BROADCAST, h->root_local_rank, h->count, in, out);
    } else {
        rd_phases_node(h, p, RD_SCATTER, h->root_local_rank, c->part, in, own);
        rd_phases_node(h, p, RD_BROADCAST, h->root_local_rank, c->rest, rd_spot_plus(in, parts),
                       rd_spot_plus(out, parts));
    }
}

void rd_phases_broadcast(const rd_hier_t *h, rd_phases_t *p)
{
    const rd_cut_t c = rd_cut(h, h->count, rest_of(h));
    int node = h->node_of[h->root];
    bool at_root = node == h->node, has_all = at_root && has_ranks_beyond(h) && !h->fused;
    rd_spot_t own = rd_spot(RD_OUT, (size_t)h->local_rank * c.part), from = own;

    if (at_root)
        hand_out(h, p, &c, own);
    if (at_root && h->fused && h->local_rank == 0)
        from.where = RD_IN;
    rd_phases_rail(p, RD_BROADCAST, node, c.mine, from, own);
    if (!has_all)
        spread(h, p, &c, at_root);
}

/* ---- reduce: only the root's output may be written, so parts lie in scratch, and long vectors are cut into pieces */

size_t rd_hier_reduce_piece(const rd_hier_t *h)
{
    size_t room = (h->scratch - RD_HIER_REST) / RD_HIER_ALIGN * RD_HIER_ALIGN;

    return room / h->element * (size_t)h->rails;
}

/* Brings all parts to the root, on its node, where nodes differ: its block is the whole, the others are empty. */
static void deliver(const rd_hier_t *h, rd_phases_t *p, size_t count, rd_spot_t from, rd_spot_t to)
{
    size_t *begins = rd_phases_table(p, (size_t)h->locals + 1);

    if (!begins)
        return;
    for (int i = h->root_local_rank + 1; i <= h->locals; i++)
        begins[i] = count;
    rd_phases_deliver(h, p, count, begins, from, to);
}

/* The same where nodes have equally many ranks. The rest is in the root's scratch, and is copied from there. */
static void gather(const rd_hier_t *h, rd_phases_t *p, const rd_cut_t *c, rd_spot_t from, rd_spot_t to)
{
    rd_phases_node(h, p, RD_GATHER, h->root_local_rank, c->part, from, to);
    if (h->rank == h->root)
        rd_phases_self(p, c->rest, rd_spot_plus(from, c->part), rd_spot_plus(to, (size_t)h->rails * c->part));
}

static void reduce_piece(const rd_hier_t *h, rd_phases_t *p, size_t count, rd_spot_t from, rd_spot_t to)
{
    const rd_cut_t c = rd_cut(h, count, h->alike ? h->root_local_rank : h->rails - 1);
    const rd_spot_t own = rd_spot(RD_TMP, 0);
    int node = h->node_of[h->root];

    rd_phases_sum(h, p, &c, from, own);
    rd_phases_rail(p, RD_REDUCE, node, c.mine, own, own);
    if (node == h->node && h->alike)
        gather(h, p, &c, own, to);
    else if (node == h->node)
        deliver(h, p, count, own, to);
}

void rd_phases_reduce_at(const rd_hier_t *h, rd_phases_t *p, rd_spot_t from, rd_spot_t to)
{
    size_t piece = rd_hier_reduce_piece(h);

    for (size_t at = 0; at < h->count && !p->failed; at += piece)
        reduce_piece(h, p, piece < h->count - at ? piece : h->count - at, rd_spot_plus(from, at), rd_spot_plus(to, at));
}
