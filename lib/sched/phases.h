/* Phases: an operation on several nodes as collectives of smaller scopes, one after the other.
 *
 *     allreduce, 2 nodes of 3 ranks:      0     1     2     |     3     4     5
 *
 *       node   reduce_scatter             a ◀── a ◀── a    |  b ◀── b ◀── b
 *       rail   allreduce                  a ◀───────────── | ──▶ b                the ranks in one place
 *       node   allgather                  s ──▶ s ──▶ s    |  s ──▶ s ──▶ s
 *
 * A *rail* joins the ranks in one place of all nodes. There are as many as the emptiest node has ranks, R; on a fuller
 * node the ranks behind them have no rail, and kernels or steps reduce to, or broadcast from, one rail's rank after the
 * other. "Sum" is the node's sum in R parts: a reduce_scatter, and a reduce of what is left over when R does not divide
 * the count; or R reduces. "Spread" is its opposite: an allgather and a broadcast, or R broadcasts.
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
 *     (1) where there are ranks without a rail, one broadcast brings everything to all of the root's node, and there
 *         is no spread; but fused steps hand each rail its part, because the root's processor does that copying
 *     (2) if ranks are counted node by node, and blocks lie one behind the other: a node's blocks are one range
 *     (3) if ranks are counted node by node
 *
 * Two executors take them. The host fuses phases into steps (sched/algo/hier.c): there a vector is one chunk for each
 * rail. CUDA runs them one after the other (exec/cuda/hier/hier_run.c): a node's by its kernels, a rail's and those of
 * all by proxies. Both get one rank's list, which is a pure function of what is said in rd_hier_t.
 */
#ifndef RD_SCHED_PHASES_H
#define RD_SCHED_PHASES_H

#include <stdbool.h>

#include "sched/program.h"

typedef enum {
    RD_SCOPE_NODE, /* this rank's node; `root` is a place */
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
    int node;     /* whose blocks it is about; -1: everybody's */
    size_t count; /* elements: as in rd_coll_desc_t */
    size_t gap;   /* reduce_scatter: elements between a block of the input and the next */
    rd_spot_t from, to;
    bool tabled;
    rd_tables_t tables; /* if so: of the scope's ranks */
} rd_phase_t;

/* One rank's list, and the memory of its tables. */
typedef struct rd_phases {
    rd_phase_t *list;
    size_t count, room;
    size_t behind; /* the first one behind the last that a rail has, or would have if this rank were of one */
    struct rd_phase_table *tables;
    bool failed; /* for lack of memory */
} rd_phases_t;

/* What phases are a function of. */
typedef struct rd_hier {
    /* The machine, and this rank in it. */
    const int *node_of; /* of each rank */
    int nranks, nnodes;
    const int *local; /* the ranks of this node by place */
    int locals;
    int rank, node, place;
    int rails;
    bool alike;   /* all nodes have equally many ranks */
    bool ordered; /* ranks are counted node by node */

    /* The operation. */
    rd_coll_t coll;
    int root, root_place; /* on its node */
    size_t count;         /* elements: of the whole, of a block, or with tables of all that they have in common */
    const rd_tables_t *tables;
    bool bounce; /* a reduce_scatter's output lies over its input's first blocks, and not over the own one */

    /* The executor. */
    bool fused;      /* makes steps of them: the node's sums go to scratch, and the root reads its input where it is */
    int rest_place;  /* fused: whose the left-over is; else they decide */
    size_t element;  /* bytes */
    size_t scratch;  /* bytes that a piece of an operation may have there: alike on all ranks */
    size_t least;    /* bytes from which a phase inside a node is worth its launch, for an allreduce */
    size_t launches; /* phases inside a node, at most */
} rd_hier_t;

/* What is left over when a vector is cut in the parts of rails has fewer bytes, in scratch: less than an element of 16
 * bytes of each of 16 ranks, which is as many as a node may have where an operation has scratch. */
#define RD_HIER_REST 256

/* The place of any rank on its node, as ranks are counted. */
int rd_hier_place(const int *node_of, int rank);

/* Is the operation to be done by phases? All ranks say the same: it depends on nothing that differs between them. */
bool rd_hier_serves(const rd_hier_t *h);
/* Phases inside a node that it has on any rank, at most. */
size_t rd_hier_launches(const rd_hier_t *h);
/* The phases of this rank, in order; some may be missing where they would do nothing. 0, or -1: no memory. To be freed
 * in either case. */
int rd_hier_phases(const rd_hier_t *h, rd_phases_t *phases);
void rd_phases_free(rd_phases_t *phases);

/* Elements that the rank in place `self` of the phase's scope gives to that in place `to` (itself, perhaps), and from
 * where; and takes from that in place `from`, and where to. */
size_t rd_phase_given(const rd_phase_t *phase, int self, int to, rd_spot_t *spot);
size_t rd_phase_taken(const rd_phase_t *phase, int self, int from, rd_spot_t *spot);

/* For those who make them (sched/algo/hier_*.c): appends one, and returns it or NULL for lack of memory; a table of so
 * many zeros, likewise. */
rd_phase_t *rd_phases_add(rd_phases_t *phases, const rd_phase_t *phase);
size_t *rd_phases_table(rd_phases_t *phases, size_t n);

static inline rd_spot_t rd_spot(rd_where_t where, size_t at)
{
    rd_spot_t spot = {where, at};

    return spot;
}

/* `by` elements further on. */
static inline rd_spot_t rd_spot_plus(rd_spot_t spot, size_t by)
{
    spot.at += by;
    return spot;
}

#endif
