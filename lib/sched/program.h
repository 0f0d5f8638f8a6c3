/* A program is a schedule compiled for one rank. It is plain data, which the executors, the checker and the simulator
 * read.
 *
 * The compiler (compile.c) turns peers into connection numbers, fuses a receive into scratch or output with the send or
 * reduction that follows it (only on request: with one credit on a connection the steps must stay separate, or a ring
 * of fused steps would wait for itself), drops dead steps, assigns places to scratch names by their live ranges, and
 * folds equal neighbours into repeats.
 */
#ifndef RD_SCHED_PROGRAM_H
#define RD_SCHED_PROGRAM_H

#include <stdbool.h>

#include "sched/step.h"

typedef struct rd_link {
    int32_t peer;    /* rank in the communicator; behind the last one: the switch */
    int32_t channel; /* 0..RD_CHANNELS-1 */
} rd_link_t;

typedef struct rd_lane {
    int32_t first, count; /* its steps */
    int32_t channel;
} rd_lane_t;

/* In a program an RD_PEER source has an index into recvs[], an RD_PEER destination has one into sends[]. */
typedef struct rd_program {
    int32_t nchunks;
    int32_t ntmp; /* scratch places, of one slice each */
    int32_t nlanes, nsteps, nsends, nrecvs;
    const rd_lane_t *lanes;
    const rd_step_t *steps; /* `repeat` and `stride` in use */
    const rd_link_t *sends, *recvs;
    /* the arrays follow in the same allocation */
} rd_program_t;

typedef enum {
    RD_ALLREDUCE,
    RD_REDUCE,
    RD_BROADCAST,
    RD_ALLGATHER,      /* also allgatherv: the chunk map differs */
    RD_REDUCE_SCATTER, /* also reduce_scatterv */
    RD_ALLTOALL,       /* also alltoallv, and grouped send/recv: rounds over channel RD_CHANNEL_P2P */
    RD_GATHER,
    RD_SCATTER,
    RD_BARRIER, /* no chunks of data: one-byte messages in scratch */
    RD_NUM_COLLS
} rd_coll_t;

static inline bool rd_coll_reduces(rd_coll_t coll)
{
    return coll == RD_ALLREDUCE || coll == RD_REDUCE || coll == RD_REDUCE_SCATTER;
}

const char *rd_coll_name(rd_coll_t coll);
int rd_coll_parse(const char *name, rd_coll_t *coll); /* returns 0, or -1 if no operation has the name */
/* Returns the collective of that name, also with counts by rank ("gatherv"): then *tables is true. RD_NUM_COLLS: none.
 */
int rd_coll_named(const char *name, bool *tables);

/* Counts and displacements of the v-operations, in elements; NULL: uniform. */
typedef struct rd_tables {
    const size_t *in_counts, *in_displs, *out_counts, *out_displs;
} rd_tables_t;

/* All that a schedule may depend on. */
typedef struct rd_shape {
    int nranks;
    int nnodes;
    const int *node; /* node of each rank, 0..nnodes-1, each with a rank; or NULL: all on one */
} rd_shape_t;

/* The peer behind the last rank is the switch, where a network has one that adds (rd_algo_t.switched). On each rail
 * (phases.h) it takes a message of each node's rank, and sends their sum back to each of them. It has a connection to
 * and from each of these ranks, whatever the channel. */
static inline int rd_switch_of(const rd_shape_t *shape)
{
    return shape->nranks;
}

typedef struct rd_sched_args {
    const rd_shape_t *shape;
    rd_coll_t coll;
    int rank, root;
    int param;    /* the algorithm's small integer: a tree's fan-out, an order of blocks; 0: its default */
    int together; /* the most blocks that may go as one message (rd_message_part_t); 0 or 1: each goes alone */
} rd_sched_args_t;

/* Compiles. Returns 0, or -1 if there is no memory or the schedule had an emit error, which `*why` then names. `fuse`:
 * see above. `steps` may be NULL (no memory); it is changed, and the caller still has to free it. */
int rd_compile(rd_steps_t *steps, int fuse, rd_program_t **program, const char **why);
/* Before rd_compile, for a protocol by which a value that goes to several peers is written once: see once.c. Returns 0,
 * or -1 with an emit error set. */
int rd_steps_once(rd_steps_t *steps);
void rd_program_free(rd_program_t *program);
void rd_program_print(const rd_program_t *program, int rank, void (*line)(void *arg, const char *text), void *arg);

/* Derived schedules: mirror.c. The mirror runs the steps backwards with every arrow reversed: allgather becomes
 * reduce_scatter, broadcast becomes reduce. A value that is forwarded becomes a value that is reduced; partial sums
 * that must wait live in scratch. The order of a sum depends on the schedule alone. Frees `steps`. */
rd_steps_t *rd_mirror(rd_steps_t *steps);
rd_steps_t *rd_join(rd_steps_t *first, rd_steps_t *second); /* one after the other, lane by lane; frees both */

#endif
