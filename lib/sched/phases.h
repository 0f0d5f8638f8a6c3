/* Phases: an operation on several nodes is made of collectives of smaller scopes, one after the other.
 *
 *     allreduce, 2 nodes of 3 ranks:      0     1     2     |     3     4     5
 *
 *       node   reduce_scatter             a ◀── a ◀── a    |  b ◀── b ◀── b
 *       rail   allreduce                  a ◀───────────── | ──▶ b                the ranks of one rail
 *       node   allgather                  s ──▶ s ──▶ s    |  s ──▶ s ──▶ s
 *
 * A *rail* joins the ranks that have the same local rank on their nodes. The number of rails, R, is the number of ranks
 * on the emptiest node. On a fuller node the ranks behind the first R have no rail, and kernels or steps reduce to, or
 * broadcast from, one rail's rank after the other. "Sum" makes the node's sum in R parts: by a reduce_scatter, and a
 * reduce of the rest when R does not divide the count; or by R reduces. "Spread" is its opposite: an allgather and a
 * broadcast, or R broadcasts.
 *
 *     operation         nodes           before the rail's            on the rail             behind it
 *
 *     allreduce         any             node: sum                    allreduce               node: spread
 *     broadcast         any             root's node: scatter (1)     broadcast               node: spread
 *     reduce, in pieces alike           node: sum                    reduce                  root's node: gather
 *                       uneven          node: sum                    reduce                  root's node: alltoallv
 *     allgather(v)      alike                                        allgatherv              node: allgather, for each
 *                                                                                            node's blocks
 *                       uneven (2)      node: allgather              allgatherv of parts     node: spread, for each
 *                                                                    of each node's blocks   other node's blocks
 *     reduce_scatter,   alike (3)       node: reduce_scatter, for    reduce_scatter
 *     in pieces                         each node's blocks
 *       (and v)         uneven (2)      node: sum, for each          reduce_scatterv of      node: alltoallv, from
 *                                       node's blocks                parts                   parts to blocks
 *     reduce_scatterv   else            a reduce to each rank in turn
 *     alltoall(v),      any             all ranks: alltoallv of      -                       node: the operation, for
 *     gather, scatter                   other nodes' blocks                                  its own blocks
 *     barrier           any, fused      node: gather of words        barrier                 node: broadcast of a word
 *
 *     (1) where there are ranks without a rail, one broadcast sends everything to all ranks of the root's node, and
 *         there is no spread; but fused steps give each rail its part, because the root's processor does that copying
 *     (2) if ranks are counted node by node, and blocks lie one behind the other: a node's blocks are one range
 *     (3) if ranks are counted node by node
 *
 * Two executors run phases. The host fuses them into steps (sched/algo/hier.c), and there a vector has one chunk for
 * each rail. CUDA runs them one after the other (exec/cuda/hier/hier_run.c): those of a node by the node's kernels,
 * those of a rail and of all ranks by proxies. Both get the list of one rank, which is a pure function of rd_hier_t.
 */
#ifndef RD_SCHED_PHASES_H
#define RD_SCHED_PHASES_H

#include <stdbool.h>

#include "sched/program.h"

typedef enum {
    RD_SCOPE_NODE, /* this rank's node; `root` is a local rank */
    RD_SCOPE_RAIL, /* this rank's rail; `root` is a node */
    RD_SCOPE_ALL,  /* every rank */
    RD_SCOPE_SELF  /* this rank alone: a copy, of ranges that may overlap */
} rd_scope_t;

/* An element of the input, the output, or the operation's scratch (RD_IN, RD_OUT, RD_TMP). */
typedef struct rd_spot {
    rd_where_t where;
    size_t at;
} rd_spot_t;

typedef struct rd_phase {
    rd_scope_t scope;
    rd_coll_t coll;
    int root;
    int node;     /* the phase moves the blocks of this node; -1: of all nodes */
    size_t count; /* elements: as in rd_coll_desc_t */
    size_t gap;   /* reduce_scatter: elements between a block of the input and the next */
    rd_spot_t from, to;
    bool tabled;
    rd_tables_t tables; /* if `tabled`: of the scope's ranks */
} rd_phase_t;

/* One rank's list, and the memory of its tables. */
typedef struct rd_phases {
    rd_phase_t *list;
    size_t count, room;
    size_t behind; /* the first phase behind the last one on a rail, also where this rank has no rail */
    struct rd_phase_table *tables;
    bool failed; /* for lack of memory */
} rd_phases_t;

/* The arguments that phases are a function of. */
typedef struct rd_hier {
    /* The machine, and this rank in it. */
    const int *node_of; /* of each rank */
    int nranks, nnodes;
    const int *local; /* the ranks of this node by local rank */
    int locals;
    int rank, node, local_rank;
    int rails;
    bool alike;   /* all nodes have equally many ranks */
    bool ordered; /* ranks are counted node by node */

    /* The operation. */
    rd_coll_t coll;
    int root, root_local_rank; /* on its node */
    size_t count; /* elements of the whole, of a block, or with tables of all that the tables have in common */
    const rd_tables_t *tables;
    bool bounce; /* a reduce_scatter's output lies over its input's first blocks, and not over this rank's */

    /* The executor. */
    bool fused;      /* it makes steps of phases: a node's sums go to scratch, and the root reads its input in place */
    int rest_rail;   /* fused: the rail that gets the rest; otherwise the phases decide */
    size_t element;  /* bytes */
    size_t scratch;  /* bytes of scratch that a piece of an operation may have: the same on all ranks */
    size_t least;    /* bytes from which a phase inside a node is worth its launch, for an allreduce */
    size_t launches; /* most phases inside a node */
} rd_hier_t;

/* The rest of a vector that is cut in the parts of rails has fewer bytes than this, in scratch: it is less than an
 * element of 16 bytes for each of 16 ranks, the most that a node may have if an operation has scratch. */
#define RD_HIER_REST 256

/* Returns the local rank of a rank: its number on its node, where ranks are in order. */
int rd_local_rank(const int *node_of, int rank);

/* Returns true if the operation runs by phases. All ranks get the same answer: it depends on nothing that differs
 * between them. */
bool rd_hier_serves(const rd_hier_t *h);
/* Returns the most phases inside a node that the operation has on any rank. */
size_t rd_hier_launches(const rd_hier_t *h);
/* Lists the phases of this rank in order, without some that would do nothing. Returns 0, or -1 if there is no memory.
 * The caller frees the list in either case. */
int rd_hier_phases(const rd_hier_t *h, rd_phases_t *phases);
void rd_phases_free(rd_phases_t *phases);

/* Return the elements that the rank in place `self` of the phase's scope sends to the rank in place `to`, and receives
 * from the rank in place `from`; either may be itself. *spot is where they lie in this rank's memory. */
size_t rd_phase_given(const rd_phase_t *phase, int self, int to, rd_spot_t *spot);
size_t rd_phase_taken(const rd_phase_t *phase, int self, int from, rd_spot_t *spot);

/* For the makers of phases (sched/algo/hier_*.c): appends a phase, or makes a table of n zeros, and returns it, or NULL
 * if there is no memory. */
rd_phase_t *rd_phases_add(rd_phases_t *phases, const rd_phase_t *phase);
size_t *rd_phases_table(rd_phases_t *phases, size_t n);

static inline rd_spot_t rd_spot(rd_where_t where, size_t at)
{
    rd_spot_t spot = {where, at};

    return spot;
}

/* Returns the spot `by` elements further on. */
static inline rd_spot_t rd_spot_plus(rd_spot_t spot, size_t by)
{
    spot.at += by;
    return spot;
}

#endif
