/* The table of operations that run by phases: it has the phases and the length from which they pay off, in one row for
 * each case of the table in sched/phases.h. */
#include "sched/algo/hier_phases.h"

/* ---- conditions of a row */

static bool is_alike(const rd_hier_t *h)
{
    return h->alike;
}

static bool is_uneven(const rd_hier_t *h)
{
    return !h->alike;
}

/* For sums that end in each rank's block, or at one rank. With one rail, a single rank of each node would do all the
 * work, which was slower on nodes of 2, 1 and 3 ranks. */
static bool is_uneven_to_one(const rd_hier_t *h)
{
    return !h->alike && h->rails > 1;
}

static bool has_blocks_in_order(const rd_hier_t *h)
{
    return h->alike && h->ordered && !h->tables;
}

static bool has_ranges_to_sum(const rd_hier_t *h)
{
    return is_uneven_to_one(h) && rd_hier_has_ranges(h) && rd_hier_range_pieces(h) != 0;
}

static bool has_gaps(const rd_hier_t *h)
{
    return h->tables && (h->alike || (is_uneven_to_one(h) && !rd_hier_has_ranges(h)));
}

static bool is_any(const rd_hier_t *h)
{
    (void)h;
    return true;
}

static bool is_fused(const rd_hier_t *h)
{
    return h->fused;
}

/* ---- bytes that the first phase inside a node handles, on average over the nodes */

static size_t bytes_whole(const rd_hier_t *h)
{
    return h->element * h->count;
}

static size_t bytes_of_node(const rd_hier_t *h)
{
    return h->tables ? h->element * h->count / (size_t)h->nnodes : (size_t)h->rails * h->element * h->count;
}

static size_t bytes_of_piece(const rd_hier_t *h)
{
    return (size_t)h->rails * h->element * rd_hier_block_piece(h);
}

static size_t bytes_of_range(const rd_hier_t *h)
{
    return rd_hier_all_bytes(h) / (size_t)h->nnodes;
}

static size_t bytes_of_rank(const rd_hier_t *h)
{
    return h->element * h->count / (size_t)h->nranks;
}

/* In an alltoall with tables no rank knows the lengths of the others, so the choice must not depend on the length.
 * Short blocks of gather and scatter are faster between nodes by a tree of all ranks. */
static size_t bytes_exchanged(const rd_hier_t *h)
{
    if (h->coll != RD_ALLTOALL)
        return h->element * h->count;
    return h->tables ? SIZE_MAX : (size_t)h->rails * h->element * h->count;
}

/* ---- the most phases inside a node, which is the same number on all ranks */

static size_t parts_of(const rd_hier_t *h)
{
    return h->alike ? 1 : (size_t)h->rails;
}

static size_t launches_vector(const rd_hier_t *h)
{
    return 2 * parts_of(h) + 2;
}

static size_t launches_reduce(const rd_hier_t *h)
{
    return (3 + parts_of(h)) * (h->count / rd_hier_reduce_piece(h) + 1);
}

static size_t launches_allgather(const rd_hier_t *h)
{
    return (size_t)h->nnodes * parts_of(h) + 1;
}

static size_t launches_blocks(const rd_hier_t *h)
{
    return ((size_t)h->nnodes + 1) * (h->count / rd_hier_block_piece(h) + 1);
}

static size_t launches_ranges(const rd_hier_t *h)
{
    return ((size_t)h->nnodes * (1 + parts_of(h)) + 2) * rd_hier_range_pieces(h);
}

static size_t launches_each(const rd_hier_t *h)
{
    return (3 + parts_of(h)) * (h->count / rd_hier_reduce_piece(h) + (size_t)h->nranks);
}

/* ---- emitters that are too short for a file of their own, or that need the rows */

static void emit_reduce(const rd_hier_t *h, rd_phases_t *p)
{
    rd_phases_reduce_at(h, p, rd_spot(RD_IN, 0), rd_spot(RD_OUT, 0));
}

static void emit_barrier(const rd_hier_t *h, rd_phases_t *p)
{
    const rd_spot_t word = rd_spot(RD_TMP, 0);

    rd_phases_node(h, p, RD_GATHER, 0, 1, word, word);
    rd_phases_rail(p, RD_BARRIER, 0, h->local_rank == 0, word, word);
    rd_phases_node(h, p, RD_BROADCAST, 0, 1, word, word);
}

/* Reduces to each rank in turn, because blocks differ in length; each reduce runs by phases or by all ranks at once. An
 * output that lies over other ranks' blocks is made in this rank's block of the input, which is no longer needed. */
static void emit_each(const rd_hier_t *h, rd_phases_t *p)
{
    const size_t *counts = h->tables->in_counts;
    size_t at = 0;

    for (int r = 0; r < h->nranks; at += counts[r++]) {
        rd_spot_t from = rd_spot(RD_IN, at), to = rd_spot(RD_OUT, h->bounce && r == h->rank ? at : 0);
        rd_phase_t whole = {RD_SCOPE_ALL, RD_REDUCE, r, -1, counts[r], 0, from, to, false, {NULL, NULL, NULL, NULL}};
        rd_hier_t one = *h;
        one.coll = RD_REDUCE;
        one.root = r;
        one.root_local_rank = rd_local_rank(h->node_of, r);
        one.count = counts[r];
        one.tables = NULL;
        if (rd_hier_serves(&one))
            rd_phases_reduce_at(&one, p, from, to);
        else if (counts[r])
            rd_phases_add(p, &whole);
        if (h->bounce && r == h->rank)
            rd_phases_self(p, counts[r], to, rd_spot(RD_OUT, 0));
    }
}

/* ---- the rows */

typedef struct row {
    unsigned colls;
    bool (*fits)(const rd_hier_t *h);
    /* The operation runs by phases if the first phase inside a node has at least `quarters` / 4 of h->least bytes;
     * where each rail has a launch of its own, this holds for each rail. Phases that sum nothing take a quarter of the
     * time. Sums that end at one rank wait for each other, and sums for each rank in turn wait long (doc/gpu.md). */
    size_t (*bytes)(const rd_hier_t *h);
    unsigned quarters;
    bool by_rails;
    size_t (*launches)(const rd_hier_t *h);
    void (*emit)(const rd_hier_t *h, rd_phases_t *p);
} row_t;

#define OF(coll) (1u << RD_##coll)
#define EXCHANGES (OF(ALLTOALL) | OF(GATHER) | OF(SCATTER))

static const row_t rows[] = {
    {OF(ALLREDUCE), is_alike, bytes_whole, 4, false, launches_vector, rd_phases_allreduce},
    {OF(ALLREDUCE), is_uneven, bytes_whole, 4, true, launches_vector, rd_phases_allreduce},
    {OF(BROADCAST), is_alike, bytes_whole, 1, false, launches_vector, rd_phases_broadcast},
    {OF(BROADCAST), is_uneven, bytes_whole, 1, true, launches_vector, rd_phases_broadcast},
    {OF(REDUCE), is_alike, bytes_whole, 4, false, launches_reduce, emit_reduce},
    {OF(REDUCE), is_uneven_to_one, bytes_whole, 16, true, launches_reduce, emit_reduce},
    {OF(ALLGATHER), is_alike, bytes_of_node, 1, false, launches_allgather, rd_phases_allgather},
    {OF(ALLGATHER), rd_hier_has_ranges, bytes_of_node, 1, true, launches_allgather, rd_phases_allgather_ranges},
    {OF(REDUCE_SCATTER), has_blocks_in_order, bytes_of_piece, 4, false, launches_blocks, rd_phases_reduce_scatter},
    {OF(REDUCE_SCATTER), has_ranges_to_sum, bytes_of_range, 16, true, launches_ranges, rd_phases_reduce_scatter_ranges},
    {OF(REDUCE_SCATTER), has_gaps, bytes_of_rank, 128, true, launches_each, emit_each},
    {EXCHANGES, is_any, bytes_exchanged, 4, false, launches_vector, rd_phases_exchange},
    {OF(BARRIER), is_fused, bytes_whole, 4, false, launches_vector, emit_barrier},
};

static const row_t *row_of(const rd_hier_t *h)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].colls >> h->coll & 1 && rows[i].fits(h))
            return &rows[i];
    return NULL;
}

bool rd_hier_serves(const rd_hier_t *h)
{
    const row_t *row = row_of(h);

    if (!row)
        return false;
    size_t least = h->least * row->quarters / 4 * (row->by_rails ? (size_t)h->rails : 1);
    return row->bytes(h) >= least && row->launches(h) <= h->launches;
}

size_t rd_hier_launches(const rd_hier_t *h)
{
    const row_t *row = row_of(h);

    return row ? row->launches(h) : 0;
}

int rd_hier_phases(const rd_hier_t *h, rd_phases_t *p)
{
    const row_t *row = row_of(h);

    *p = (rd_phases_t){.list = NULL};
    if (row)
        row->emit(h, p);
    return p->failed ? -1 : 0;
}
