/* Phases of allgather and reduce_scatter on nodes with different numbers of ranks, where ranks are numbered node by
 * node and their blocks are contiguous: then the blocks of a node are one range of the whole vector, and each rail has
 * a part of every range. See sched/phases.h. */
#include "sched/algo/hier_phases.h"

/* All lengths and offsets are in elements. */
typedef struct ranges {
    size_t *at, *length;    /* of each node's range */
    size_t *part_at, *part; /* of this rank's part of each range, if it has a rail; the last rail has the rest, too */
} ranges_t;

static size_t block_of(const rd_hier_t *h, int r)
{
    const rd_tables_t *t = h->tables;

    return !t ? h->count : t->out_counts ? t->out_counts[r] : t->in_counts[r];
}

/* Returns true if blocks are contiguous, which they always are in a reduce_scatter with tables. */
static bool is_packed(const rd_hier_t *h)
{
    const size_t *displs = h->tables ? h->tables->out_displs : NULL;
    size_t sum = 0;

    for (int r = 0; displs && r < h->nranks; sum += block_of(h, r++))
        if (displs[r] != sum && block_of(h, r))
            return false;
    return true;
}

bool rd_hier_has_ranges(const rd_hier_t *h)
{
    return !h->alike && h->ordered && is_packed(h);
}

static int ranges_find(const rd_hier_t *h, rd_phases_t *p, ranges_t *g)
{
    size_t nodes = (size_t)h->nnodes, sum = 0, *memory = rd_phases_table(p, 2 * nodes);

    if (!memory)
        return -1;
    *g = (ranges_t){memory, memory + nodes, NULL, NULL};
    for (int r = 0; r < h->nranks; r++)
        g->length[h->node_of[r]] += block_of(h, r);
    for (size_t m = 0; m < nodes; sum += g->length[m++])
        g->at[m] = sum;
    return 0;
}

/* Makes the tables for a rail's phase, which keeps them. */
static int parts_make(const rd_hier_t *h, rd_phases_t *p, ranges_t *g)
{
    size_t nodes = (size_t)h->nnodes;

    if (!(g->part_at = rd_phases_table(p, 2 * nodes)))
        return -1;
    g->part = g->part_at + nodes;
    return 0;
}

static rd_cut_t cut_range(const rd_hier_t *h, size_t length)
{
    return rd_cut(h, length, h->rails - 1);
}

/* ---- allgather */

static void gather_inside(const rd_hier_t *h, rd_phases_t *p, rd_spot_t range)
{
    const rd_spot_t in = rd_spot(RD_IN, 0);

    if (!h->tables)
        rd_phases_node(h, p, RD_ALLGATHER, 0, h->count, in, range);
    else
        rd_phases_tabled(p, RD_SCOPE_NODE, RD_ALLGATHER, block_of(h, h->rank), in, range,
                         (rd_tables_t){NULL, NULL, h->tables->out_counts + h->local[0], NULL});
}

void rd_phases_allgather_ranges(const rd_hier_t *h, rd_phases_t *p)
{
    ranges_t g;

    if (ranges_find(h, p, &g) != 0 || parts_make(h, p, &g) != 0)
        return;
    for (int m = 0; m < h->nnodes; m++) {
        const rd_cut_t c = cut_range(h, g.length[m]);
        g.part_at[m] = g.at[m] + (size_t)h->local_rank * c.part;
        g.part[m] = c.mine;
    }
    gather_inside(h, p, rd_spot(RD_OUT, g.at[h->node]));
    if (h->local_rank < h->rails)
        rd_phases_tabled(p, RD_SCOPE_RAIL, RD_ALLGATHER, h->count, rd_spot(RD_OUT, g.part_at[h->node]),
                         rd_spot(RD_OUT, 0), (rd_tables_t){NULL, NULL, g.part, g.part_at});
    for (int m = 0; m < h->nnodes && h->locals > 1; m++) {
        const rd_cut_t c = cut_range(h, g.length[m]);
        if (m != h->node)
            rd_phases_spread_each(h, p, &c, rd_spot(RD_OUT, g.at[m]));
    }
}

/* ---- reduce_scatter: it handles one slice of every range at a time, so that scratch has room for the parts */

size_t rd_hier_all_bytes(const rd_hier_t *h)
{
    return h->element * h->count * (h->tables ? 1 : (size_t)h->nranks);
}

size_t rd_hier_range_pieces(const rd_hier_t *h)
{
    size_t lost = (RD_HIER_ALIGN + RD_HIER_REST) * (size_t)h->nnodes;

    return lost < h->scratch ? rd_hier_all_bytes(h) / (size_t)h->rails / (h->scratch - lost) + 1 : 0;
}

/* Returns where slice k of `pieces` begins in a range of `length`. */
static size_t slice_begin(size_t length, size_t k, size_t pieces)
{
    return length / pieces * k + length % pieces * k / pieces;
}

/* Distributes the blocks of the node's ranks that lie in this slice. `before` is the part of this rank's block that
 * lies in earlier slices. */
static void deliver(const rd_hier_t *h, rd_phases_t *p, size_t begin, size_t end, rd_spot_t own, rd_spot_t out)
{
    size_t *begins = rd_phases_table(p, (size_t)h->locals + 1), sum = 0, before = 0;

    if (!begins)
        return;
    for (int i = 0; i <= h->locals; i++) {
        size_t block = i < h->locals ? block_of(h, h->local[i]) : 0;
        begins[i] = sum < begin ? 0 : sum < end ? sum - begin : end - begin;
        if (i == h->local_rank && sum < begin)
            before = begin - sum < block ? begin - sum : block;
        sum += block;
    }
    rd_phases_deliver(h, p, end - begin, begins, own, rd_spot_plus(out, before));
}

static void reduce_scatter_slice(const rd_hier_t *h, rd_phases_t *p, ranges_t *g, size_t k, size_t pieces,
                                 rd_spot_t out)
{
    size_t own_begin = slice_begin(g->length[h->node], k, pieces);
    size_t own_end = slice_begin(g->length[h->node], k + 1, pieces);
    size_t align = RD_HIER_ALIGN / h->element, sum = 0, used = 0;

    if (parts_make(h, p, g) != 0)
        return;
    for (int m = 0; m < h->nnodes; m++) {
        size_t begin = slice_begin(g->length[m], k, pieces);
        const rd_cut_t c = cut_range(h, slice_begin(g->length[m], k + 1, pieces) - begin);
        g->part_at[m] = used;
        g->part[m] = c.mine;
        sum += c.mine;
        rd_phases_sum(h, p, &c, rd_spot(RD_IN, g->at[m] + begin), rd_spot(RD_TMP, used));
        used = (used + c.mine + align - 1) / align * align;
    }
    rd_spot_t own = rd_spot(RD_TMP, g->part_at[h->node]);
    if (sum)
        rd_phases_tabled(p, RD_SCOPE_RAIL, RD_REDUCE_SCATTER, sum, rd_spot(RD_TMP, 0), own,
                         (rd_tables_t){g->part, g->part_at, NULL, NULL});
    deliver(h, p, own_begin, own_end, own, out);
}

/* An output that lies over the input's first blocks, which later slices still read, is made in this rank's block. */
void rd_phases_reduce_scatter_ranges(const rd_hier_t *h, rd_phases_t *p)
{
    size_t pieces = rd_hier_range_pieces(h), before = 0;
    ranges_t g;

    if (ranges_find(h, p, &g) != 0)
        return;
    for (int r = 0; h->bounce && r < h->rank; r++)
        before += block_of(h, r);
    for (size_t k = 0; k < pieces && !p->failed; k++)
        reduce_scatter_slice(h, p, &g, k, pieces, rd_spot(RD_OUT, before));
    if (h->bounce)
        rd_phases_self(p, block_of(h, h->rank), rd_spot(RD_OUT, before), rd_spot(RD_OUT, 0));
}
