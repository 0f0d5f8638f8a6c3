/* What the files that make phases know of each other: see sched/phases.h. */
#ifndef RD_SCHED_ALGO_HIER_PHASES_H
#define RD_SCHED_ALGO_HIER_PHASES_H

#include "sched/phases.h"

/* A vector in the parts of rails, one behind the other, and what is left over behind them. Elements. */
typedef struct rd_cut {
    size_t part, rest;
    int rest_place; /* the rail that has the rest, too */
    size_t mine;    /* this rank's part, with the rest if that is its */
} rd_cut_t;

rd_cut_t rd_cut(const rd_hier_t *h, size_t count, int rest_place);
bool rd_hier_beyond(const rd_hier_t *h); /* this node has ranks without a rail */

/* Phases of these scopes, none without elements. A fused node of one rank sums nothing. */
void rd_phases_node(const rd_hier_t *h, rd_phases_t *p, rd_coll_t coll, int root, size_t count, rd_spot_t from,
                    rd_spot_t to);
void rd_phases_rail(rd_phases_t *p, rd_coll_t coll, int root, size_t count, rd_spot_t from, rd_spot_t to);
/* By tables, which are `p`'s or the caller's; also without elements. NULL: no memory. */
rd_phase_t *rd_phases_tabled(rd_phases_t *p, rd_scope_t scope, rd_coll_t coll, size_t count, rd_spot_t from,
                             rd_spot_t to, rd_tables_t tables);
void rd_phases_self(rd_phases_t *p, size_t count, rd_spot_t from, rd_spot_t to);

/* The node's sum of the vector at `from`: each rail's part, the rest behind it, to `to` of its rank. Where there are
 * ranks without a rail, the rest is the last one's. */
void rd_phases_sum(const rd_hier_t *h, rd_phases_t *p, const rd_cut_t *c, rd_spot_t from, rd_spot_t to);
/* One rail's part of the vector at `at` after the other, from its rank to all. */
void rd_phases_spread_each(const rd_hier_t *h, rd_phases_t *p, const rd_cut_t *c, rd_spot_t at);
/* A vector in parts, the last one with the rest, each at `from` of its rank, to blocks of the node's ranks: that of
 * place i lies between begins[i] and begins[i + 1], and goes to its `to`. */
void rd_phases_deliver(const rd_hier_t *h, rd_phases_t *p, size_t count, const size_t *begins, rd_spot_t from,
                       rd_spot_t to);

/* Scratch is dealt out in multiples of this. Bytes. */
#define RD_HIER_ALIGN 128

/* hier_vectors.c. `reduce`: of a vector at `from`, to `to` of the root. */
void rd_phases_allreduce(const rd_hier_t *h, rd_phases_t *p);
void rd_phases_broadcast(const rd_hier_t *h, rd_phases_t *p);
size_t rd_hier_reduce_piece(const rd_hier_t *h); /* elements */
void rd_phases_reduce_at(const rd_hier_t *h, rd_phases_t *p, rd_spot_t from, rd_spot_t to);

/* hier_blocks.c: where nodes are alike. */
void rd_phases_allgather(const rd_hier_t *h, rd_phases_t *p);
size_t rd_hier_block_piece(const rd_hier_t *h); /* of a block that is reduced, elements */
void rd_phases_reduce_scatter(const rd_hier_t *h, rd_phases_t *p);
/* Alltoall, gather and scatter, and all with tables, anywhere. */
void rd_phases_exchange(const rd_hier_t *h, rd_phases_t *p);

/* hier_ranges.c: where nodes differ, and a node's blocks are one range. */
bool rd_hier_has_ranges(const rd_hier_t *h);
size_t rd_hier_all_bytes(const rd_hier_t *h);    /* of the blocks of all ranks */
size_t rd_hier_range_pieces(const rd_hier_t *h); /* of a reduce_scatter; 0: scratch is too short for so many nodes */
void rd_phases_allgather_ranges(const rd_hier_t *h, rd_phases_t *p);
void rd_phases_reduce_scatter_ranges(const rd_hier_t *h, rd_phases_t *p);

#endif
