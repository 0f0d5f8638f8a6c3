/* Makes the chunk map, which says where the chunks of an operation lie in the user's buffers. See chunk_map.h. */
#include "plan/chunk_map.h"

#include <stdlib.h>

/* Returns the bytes of a part of a vector of `total` bytes that is cut into `parts` parts. Parts are whole cache lines,
 * unless parts would then be empty that need not be. */
static size_t part_bytes(size_t total, int parts, size_t element)
{
    size_t least = (total + (size_t)parts - 1) / (size_t)parts, line = RD_LINE > element ? RD_LINE : element;

    return least ? (least + line - 1) / line * line : line;
}

void rd_map_uniform(rd_plan_t *plan, int rank, int nranks)
{
    rd_chunks_t *in = &plan->in, *out = &plan->out;
    size_t bytes = plan->desc.count * plan->element;
    ptrdiff_t own = -(ptrdiff_t)((size_t)rank * (bytes >> plan->halvings));

    in->stride = out->stride = bytes;
    in->total = out->total = bytes * (size_t)nranks;
    switch (plan->desc.coll) {
    case RD_ALLREDUCE:
    case RD_REDUCE:
    case RD_BROADCAST:
        in->total = out->total = bytes;
        in->stride = out->stride = part_bytes(bytes, plan->program->nchunks, plan->element);
        break;
    case RD_ALLGATHER:
    case RD_GATHER:
        in->shift = own;
        break;
    case RD_REDUCE_SCATTER:
    case RD_SCATTER:
        out->shift = own;
        break;
    case RD_BARRIER:
        in->stride = out->stride = in->total = out->total = 1;
        break;
    default:
        break;
    }
}

/* Where an empty block lies does not matter, and its displacement may be anything. */
static size_t offset_of(const size_t *counts, const size_t *displs, int i, size_t at, size_t element)
{
    return counts[i] ? (displs ? displs[i] : at) * element : 0;
}

static void fill_side(rd_chunks_t *side, size_t *table, const size_t *counts, const size_t *displs, int n,
                      size_t element)
{
    size_t at = 0;

    side->offset = table;
    side->bytes = table + n;
    for (int i = 0; i < n; i++) {
        table[i] = offset_of(counts, displs, i, at, element);
        table[n + i] = counts[i] * element;
        at += counts[i];
    }
}

rondo_result_t rd_map_tables(rd_plan_t *plan, const rd_tables_t *t, int n, rd_log_ctx_t *ctx)
{
    plan->tables = calloc((size_t)n * 4, sizeof *plan->tables);
    if (!plan->tables)
        return rd_error(ctx, RONDO_ERR_NO_MEMORY, "no memory for the counts of %d ranks", n);
    const size_t *zero = plan->tables + (plan->desc.coll == RD_REDUCE_SCATTER ? 2 * n : 0); /* still all zero */

    if (t->in_counts)
        fill_side(&plan->in, plan->tables, t->in_counts, t->in_displs, n, plan->element);
    if (t->out_counts)
        fill_side(&plan->out, plan->tables + 2 * n, t->out_counts, t->out_displs, n, plan->element);
    if (!t->in_counts)
        plan->in = (rd_chunks_t){zero, plan->out.bytes, 0, 0, 0};
    if (!t->out_counts)
        plan->out = (rd_chunks_t){zero, plan->in.bytes, 0, 0, 0};
    return RONDO_SUCCESS;
}

/* Elements are compared, because bytes of numbers that no memory can hold may be those of others. The size of an
 * element is a power of two. */
static bool side_same(const rd_chunks_t *side, const size_t *counts, const size_t *displs, int n, size_t element)
{
    int shift = __builtin_ctzl(element);
    size_t at = 0;

    for (int i = 0; counts && i < n; i++) {
        if (side->bytes[i] >> shift != counts[i] || side->offset[i] >> shift != offset_of(counts, displs, i, at, 1))
            return false;
        at += counts[i];
    }
    return true;
}

bool rd_map_same(const rd_plan_t *plan, const rd_tables_t *t, int n)
{
    return side_same(&plan->in, t->in_counts, t->in_displs, n, plan->element) &&
           side_same(&plan->out, t->out_counts, t->out_displs, n, plan->element);
}

/* Returns the counts of all ranks' blocks; NULL: they are uniform. */
static const size_t *counts_of(const rd_tables_t *t)
{
    return !t ? NULL : t->out_counts ? t->out_counts : t->in_counts;
}

size_t rd_map_whole(const rd_plan_t *plan, const rd_tables_t *t, int n)
{
    const size_t *counts = counts_of(t);
    size_t sum = 0;

    switch (plan->desc.coll) {
    case RD_BARRIER:
        return 1;
    case RD_ALLREDUCE:
    case RD_REDUCE:
    case RD_BROADCAST:
        return plan->desc.count * plan->element;
    default:
        for (int r = 0; counts && r < n; r++)
            sum += counts[r];
        return (counts ? sum : (size_t)n * plan->desc.count) * plan->element;
    }
}

size_t rd_map_longest(const rd_plan_t *plan, const rd_tables_t *t, int n)
{
    const size_t *counts = counts_of(t);
    size_t most = 0;

    for (int r = 0; counts && plan->desc.coll != RD_ALLTOALL && r < n; r++)
        most = counts[r] > most ? counts[r] : most;
    return most * plan->element;
}
