/* Declarations that the makers of phases share: see sched/phases.h. */
#ifndef RD_SCHED_ALGO_HIER_PHASES_H
#define RD_SCHED_ALGO_HIER_PHASES_H

#include "sched/phases.h"

/* A vector that is cut into one part for each rail; the parts are followed by the rest. All fields are in elements. */
typedef struct rd_cut {
    size_t part, rest;
    int rest_rail; /* the rail that has the rest besides its part */
    size_t mine;   /* this rank's part, with the rest if that belongs to it */
} rd_cut_t;

rd_cut_t rd_cut(const rd_hier_t *h, size_t count, int rest_rail);

/* Append a phase of that scope, unless it has no elements. A fused node of one rank has no phases that sum. */
void rd_phases_node(const rd_hier_t *h, rd_phases_t *p, rd_coll_t coll, int root, size_t count, rd_spot_t from,
                    rd_spot_t to);
void rd_phases_rail(rd_phases_t *p, rd_coll_t coll, int root, size_t count, rd_spot_t from, rd_spot_t to);
/* Appends a phase with tables, also if it has no elements. The tables belong to `p` or to the caller. Returns NULL if
 * there is no memory. */
rd_phase_t *rd_phases_tabled(rd_phases_t *p, rd_scope_t scope, rd_coll_t coll, size_t count, rd_spot_t from,
                             rd_spot_t to, rd_tables_t tables);
void rd_phases_self(rd_phases_t *p, size_t count, rd_spot_t from, rd_spot_t to);

/* Appends the phases that make the node's sum of the vector at `from`: each rail's part goes to `to` of its rank,
 * followed by the rest. Where there are ranks without a rail, the rest belongs to the last rail. */
void rd_phases_sum(const rd_hier_t *h, rd_phases_t *p, const rd_cut_t *c, rd_spot_t from, rd_spot_t to);
/* Appends, for one rail after the other, the broadcast of its part of the vector at `at` to all ranks of the node. */
void rd_phases_spread_each(const rd_hier_t *h, rd_phases_t *p, const rd_cut_t *c, rd_spot_t at);
/* Appends the phase that brings a vector, whose parts lie at `from` of their ranks (the last one with the rest), to the
 * blocks of the node's ranks: the block of local rank i lies between begins[i] and begins[i + 1], and goes to `to` of
 * its rank. */
void rd_phases_deliver(const rd_hier_t *h, rd_phases_t *p, size_t count, const size_t *begins, rd_spot_t from,
                       rd_spot_t to);

/* Scratch is allocated in multiples of this many bytes. */
#define RD_HIER_ALIGN 128

/* hier_vectors.c. rd_phases_reduce_at reduces the vector at `from` to `to` of the root. */
void rd_phases_allreduce(const rd_hier_t *h, rd_phases_t *p);
void rd_phases_broadcast(const rd_hier_t *h, rd_phases_t *p);
size_t rd_hier_reduce_piece(const rd_hier_t *h); /* elements */
void rd_phases_reduce_at(const rd_hier_t *h, rd_phases_t *p, rd_spot_t from, rd_spot_t to);

/* hier_blocks.c. The first three are for nodes with equally many ranks. */
void rd_phases_allgather(const rd_hier_t *h, rd_phases_t *p);
size_t rd_hier_block_piece(const rd_hier_t *h); /* elements of a block that are reduced at a time */
void rd_phases_reduce_scatter(const rd_hier_t *h, rd_phases_t *p);
/* Alltoall, gather and scatter, with and without tables, on any nodes. */
void rd_phases_exchange(const rd_hier_t *h, rd_phases_t *p);

/* hier_ranges.c, for nodes that differ, where a node's blocks are one range. */
bool rd_hier_has_ranges(const rd_hier_t *h);
size_t rd_hier_all_bytes(const rd_hier_t *h);    /* of the blocks of all ranks */
size_t rd_hier_range_pieces(const rd_hier_t *h); /* of a reduce_scatter; 0: scratch is too short for so many nodes */
void rd_phases_allgather_ranges(const rd_hier_t *h, rd_phases_t *p);
void rd_phases_reduce_scatter_ranges(const rd_hier_t *h, rd_phases_t *p);

#endif
