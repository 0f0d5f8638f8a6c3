/* Phases that move blocks of ranks: allgather and reduce_scatter on nodes with equally many ranks, and alltoall, gather
 * and scatter. See sched/phases.h. */
#include "sched/algo/hier_phases.h"

/* ---- allgather */

/* The length and the offset of each rank's block, node by node and local rank by local rank; and those of this rank's
 * rail. */
typedef struct rank_blocks {
    size_t *count, *at;
    size_t *rail_count, *rail_at;
} rank_blocks_t;

static int rank_blocks_find(const rd_hier_t *h, rd_phases_t *p, rank_blocks_t *l)
{
    const size_t *counts = h->tables ? h->tables->out_counts : NULL;
    const size_t *displs = h->tables ? h->tables->out_displs : NULL;
    size_t ranks = (size_t)h->nranks, nodes = (size_t)h->nnodes, sum = 0;
    size_t *seen = rd_phases_table(p, 2 * ranks + 3 * nodes); /* ranks of each node so far; the other arrays follow */

    if (!seen)
        return -1;
    *l = (rank_blocks_t){seen + 3 * nodes, seen + 3 * nodes + ranks, seen + nodes, seen + 2 * nodes};
    for (size_t r = 0; r < ranks; r++) {
        size_t m = (size_t)h->node_of[r], local_rank = seen[m]++, i = m * (size_t)h->locals + local_rank;
        l->count[i] = counts ? counts[r] : h->count;
        l->at[i] = displs ? displs[r] : sum;
        sum += l->count[i];
        if (local_rank == (size_t)h->local_rank) {
            l->rail_count[m] = l->count[i];
            l->rail_at[m] = l->at[i];
        }
    }
    return 0;
}

/* Distributes the blocks of node m inside this node. */
static void allgather_of(const rd_hier_t *h, rd_phases_t *p, const rank_blocks_t *l, size_t m)
{
    size_t n = (size_t)h->locals;
    const size_t *counts = l->count + m * n, *at = l->at + m * n;
    rd_spot_t own = rd_spot(RD_OUT, l->rail_at[m]);
    size_t before = p->count;

    if (!h->tables && at[n - 1] == at[0] + (n - 1) * h->count) /* side by side */
        rd_phases_node(h, p, RD_ALLGATHER, 0, h->count, own, rd_spot(RD_OUT, at[0]));
    else
        rd_phases_tabled(p, RD_SCOPE_NODE, RD_ALLGATHER, l->rail_count[m], own, rd_spot(RD_OUT, 0),
                         (rd_tables_t){NULL, NULL, counts, at});
    if (p->count > before)
        p->list[before].node = (int)m;
}

void rd_phases_allgather(const rd_hier_t *h, rd_phases_t *p)
{
    rank_blocks_t l = {NULL, NULL, NULL, NULL};

    if (rank_blocks_find(h, p, &l) != 0)
        return;
    rd_phases_tabled(p, RD_SCOPE_RAIL, RD_ALLGATHER, h->count, rd_spot(RD_IN, 0), rd_spot(RD_OUT, 0),
                     (rd_tables_t){NULL, NULL, l.rail_count, l.rail_at});
    p->behind = p->count;
    for (size_t m = 0; m < (size_t)h->nnodes; m++)
        allgather_of(h, p, &l, m);
}

/* ---- reduce_scatter */

/* Scratch holds one piece for each node. */
size_t rd_hier_block_piece(const rd_hier_t *h)
{
    size_t room = h->scratch / (size_t)h->nnodes / RD_HIER_ALIGN * RD_HIER_ALIGN / h->element;

    return h->count < room ? h->count : room;
}

/* Reduces `count` elements of every block, from element `at` on. */
static void reduce_scatter_piece(const rd_hier_t *h, rd_phases_t *p, size_t at, size_t count)
{
    size_t node = (size_t)h->locals * h->count;
    rd_phase_t phase = {.scope = RD_SCOPE_NODE, .coll = RD_REDUCE_SCATTER, .count = count, .gap = h->count - count};

    phase.from.where = RD_IN;
    phase.to.where = RD_TMP;
    for (int m = 0; m < h->nnodes; m++) {
        phase.node = m;
        phase.from.at = (size_t)m * node + at;
        phase.to.at = (size_t)m * count;
        rd_phases_add(p, &phase);
    }
    rd_phases_rail(p, RD_REDUCE_SCATTER, 0, count, rd_spot(RD_TMP, 0), rd_spot(RD_OUT, at));
}

/* In place, a piece of the output lies over the same piece of one of the input's blocks, which has been read. */
void rd_phases_reduce_scatter(const rd_hier_t *h, rd_phases_t *p)
{
    size_t piece = rd_hier_block_piece(h);

    for (size_t at = 0; at < h->count && !p->failed; at += piece)
        reduce_scatter_piece(h, p, at, piece < h->count - at ? piece : h->count - at);
}

/* ---- alltoall, gather and scatter */

/* Rows of a table of n ranks: counts and displacements of what is sent to each, and of what is received from each. */
#define ROWS 4

static rd_tables_t tables_of(const size_t *rows, size_t n)
{
    return (rd_tables_t){rows, rows + n, rows + 2 * n, rows + 3 * n};
}

/* Without tables: returns true if this rank sends a block to rank r (side 0), or receives one from it (side 1). */
static bool exchanges(const rd_hier_t *h, int side, int r)
{
    bool one = h->coll == (side ? RD_SCATTER : RD_GATHER); /* each rank exchanges a block with the root only */

    return h->coll == RD_ALLTOALL || h->root == (one ? r : h->rank);
}

/* Fills in the rows for all ranks, whether or not the call has tables. */
static void rows_fill(const rd_hier_t *h, size_t *rows)
{
    const rd_tables_t none = {NULL, NULL, NULL, NULL}, *t = h->tables ? h->tables : &none;
    const size_t *const counts[2] = {t->in_counts, t->out_counts}, *const displs[2] = {t->in_displs, t->out_displs};
    size_t n = (size_t)h->nranks;

    for (int side = 0; side < 2; side++) {
        size_t *count = rows + 2 * (size_t)side * n, *at = count + n, sum = 0;
        for (int r = 0; r < h->nranks; r++) {
            size_t some = exchanges(h, side, r) ? h->count : 0;
            count[r] = counts[side] ? counts[side][r] : some;
            at[r] = displs[side] ? displs[side][r] : sum;
            sum += count[r];
        }
    }
}

/* Moves the entries of this node's ranks from the table of all ranks to a table of their own. */
static void rows_take(const rd_hier_t *h, size_t *rows, size_t *near)
{
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < h->locals; i++) {
            size_t *entry = &rows[(size_t)row * (size_t)h->nranks + (size_t)h->local[i]];
            near[row * h->locals + i] = *entry;
            *entry = row % 2 ? *entry : 0;
        }
}

/* If the node's ranks have consecutive numbers, so do their blocks, and the phase needs no table. */
static void exchange_inside(const rd_hier_t *h, rd_phases_t *p, const rd_tables_t *own)
{
    if (h->coll != RD_ALLTOALL && h->node_of[h->root] != h->node)
        return;
    if (!h->tables && h->local[h->locals - 1] == h->local[0] + h->locals - 1) {
        rd_phases_node(h, p, h->coll, h->root_local_rank, h->count, rd_spot(RD_IN, own->in_displs[0]),
                       rd_spot(RD_OUT, own->out_displs[0]));
        return;
    }
    rd_phases_tabled(p, RD_SCOPE_NODE, RD_ALLTOALL, h->count, rd_spot(RD_IN, 0), rd_spot(RD_OUT, 0), *own);
}

/* The phase between nodes comes first, because that is where RONDO_CHECK finds calls that differ between ranks, as far
 * as this rank takes part in it. */
void rd_phases_exchange(const rd_hier_t *h, rd_phases_t *p)
{
    size_t n = (size_t)h->nranks, local = (size_t)h->locals;
    size_t *rows = rd_phases_table(p, ROWS * (n + local));

    if (!rows)
        return;
    const rd_tables_t others = tables_of(rows, n), own = tables_of(rows + ROWS * n, local);
    rows_fill(h, rows);
    rows_take(h, rows, rows + ROWS * n);
    rd_phases_tabled(p, RD_SCOPE_ALL, RD_ALLTOALL, h->count, rd_spot(RD_IN, 0), rd_spot(RD_OUT, 0), others);
    exchange_inside(h, p, &own);
}
