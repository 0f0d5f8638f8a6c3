/* A plan is what one launch of an operation runs: a program bound to the communicator's connections, the protocol, the
 * slice, and the chunk map that turns a chunk number into bytes of the user's buffers. It is plain data, but for its
 * pointers to connections. It holds no sequence number, so it may run any number of times.
 */
#ifndef RD_PLAN_PLAN_H
#define RD_PLAN_PLAN_H

#include "transport/conns.h"
#include "transport/shm/board.h"
#include "base/reducer.h"
#include "plan/zcopy.h"
#include "plan/flat.h"
#include "cost/prices.h"
#include "plan/tuner.h"
#include "base/proto.h"
#include "sched/program.h"

/* Where the chunks of one side, input or output, lie; all numbers are bytes. */
typedef struct rd_chunks {
    const size_t *offset, *bytes; /* tables of nchunks entries, or NULL: uniform */
    size_t stride, total;         /* uniform: chunk c at c * stride, at most stride long, all within total */
    ptrdiff_t shift; /* added to the user's pointer, for a buffer that holds only one of the chunks: of its elements */
} rd_chunks_t;

static inline size_t rd_chunk_bytes(const rd_chunks_t *c, int chunk)
{
    if (c->bytes)
        return c->bytes[chunk];
    size_t offset = (size_t)chunk * c->stride;
    if (offset >= c->total)
        return 0;
    return c->total - offset < c->stride ? c->total - offset : c->stride;
}

static inline size_t rd_chunk_offset(const rd_chunks_t *c, int chunk)
{
    return c->offset ? c->offset[chunk] : (size_t)chunk * c->stride;
}

/* The user's operation, as far as the plan depends on it. */
typedef struct rd_coll_desc {
    rd_coll_t coll;
    rondo_type_t type;
    rondo_op_t op;  /* 0 where the operation reduces nothing */
    int root;       /* 0 where there is none */
    size_t count;   /* elements of the whole message, or of one block where each rank has one */
    bool to_one;    /* an all-to-all in which one rank takes a message from every other one: gatherv */
    uint8_t forced; /* what this call forces for itself: a number of plan/force.h; 0: nothing */
    size_t own;     /* nonzero: an internal exchange, to which RONDO_ALGO and RONDO_PROTO do not apply */
} rd_coll_desc_t;

/* Where the length of a message is said that does not carry it in the tag of its lines: transport/announce.h. */
typedef enum rd_announced {
    RD_NOT_ANNOUNCED,
    RD_ANNOUNCED_AHEAD,  /* by something that goes ahead of it */
    RD_ANNOUNCED_IN_SLOT /* beside the count that publishes its first slot */
} rd_announced_t;

/* How one lane runs. All lanes of a collective run alike; each lane of an all-to-all runs as its one message needs. */
typedef struct rd_lane_plan {
    size_t passes;
    size_t slice; /* most bytes that a message carries; a multiple of the element */
    rd_proto_t proto;
    bool put; /* by CMA, and senders write into the receiver's buffer: transport/cma/room.h */
    /* A lane that is one message of a pair, whose two ends may give different lengths (transport/announce.h): the
     * length travels in the `tag` of its lines, or is `announced`. Else both are 0. */
    size_t whole; /* bytes of the message */
    uint64_t tag;
    rd_announced_t announced;
} rd_lane_plan_t;

typedef struct rd_plan {
    rd_coll_desc_t desc;
    uint64_t key;                /* of `desc`: plan.c */
    const rd_program_t *program; /* owned by the planner, or by the plan (`own_program`) */
    rd_program_t *own_program;
    const char *algo;
    int algo_number;   /* in rd_algos; -1: it is none of them, as of a message */
    uint64_t tuned;    /* what was chosen, as tuner.h writes it, if there is a tuner or the call forces it; else 0 */
    double us;         /* the cost model's prediction; 0: there is none, as for a message */
    size_t slice;      /* the longest slice of all lanes: the stride of scratch places */
    size_t element;    /* bytes, of partial results: all numbers of bytes here count in such elements */
    unsigned halvings; /* log2 of `element` over the bytes of the user's elements: see `store` of a reducer */
    rd_nt_store_t nt_store; /* how slots are written */
    rd_chunks_t in, out;
    rd_reducer_t reducer;
    size_t finish_offset, finish_bytes; /* the range of the output that reducer.finish is applied to */
    rd_send_t **sends;                  /* program->sends, bound */
    rd_recv_t **recvs;
    rd_lane_plan_t *lanes;
    rd_flat_step_t *flat; /* steps resolved in advance, or NULL: exec/host/run_flat.h */
    rd_proto_t flat_by;   /* lines, lines of boards, or slots */
    int nflat;
    bool one_message;           /* `flat` is one message of a send or a receive, and no more: exec/host/run_flat.h */
    rd_board_plan_t board;      /* where its messages lie, if they do on boards */
    struct rd_collnet *collnet; /* the switch that its messages go to; NULL: none do. What it adds: */
    rondo_type_t switch_type;
    rondo_op_t switch_op;
    int switch_root;            /* the root's node */
    unsigned char *zcopy;       /* flags of each step of the program: zcopy.h; NULL: all ranks share the node */
    size_t reach_in, reach_out; /* bytes, of the two sides */
    bool posts;                 /* some lane posts its buffers for peers to read: the run ends when they have */
    size_t *tables;             /* memory behind in and out's tables */
    int users;                  /* runs in flight, plus one for the cache */
} rd_plan_t;

struct rd_planner;
typedef struct rd_planner rd_planner_t;

/* What a planner knows of its communicator. The ranks have agreed on it at creation, so that all plan alike. */
typedef struct rd_planner_args {
    int rank, nranks;
    const rd_node_t *node;
    int cores;   /* cores that the ranks of a machine may use: the fewest of any machine */
    int sharing; /* ranks on the fullest machine, which may play several nodes */
    rd_conns_t *conns;
    const rd_env_t *env;
    const rd_prices_t *prices;
    rd_log_ctx_t *ctx;
    rd_reducer_init_fn init_reducer; /* of the executor that runs the plans */
    rd_tuned_t *tuned;               /* the communicator's tuner; NULL: it has none */
} rd_planner_args_t;

rondo_result_t rd_planner_create(rd_planner_t **planner, const rd_planner_args_t *args);
void rd_planner_free(rd_planner_t *planner);

/* Finds the plan for an operation in the cache, or makes it. `custom`: the reducer of an op that the user has made
 * (premulsum), or NULL. The caller gives the plan back by rd_plan_put. */
rondo_result_t rd_plan_get(rd_planner_t *planner, const rd_coll_desc_t *desc, const rd_tables_t *tables,
                           const rd_reducer_t *custom, rd_plan_t **plan);
/* The same for one message to a peer (`send`) or from it. Protocol and slice depend on (pair, bytes) alone. */
rondo_result_t rd_plan_get_p2p(rd_planner_t *planner, int peer, int send, size_t bytes, rd_plan_t **plan);
void rd_plan_put(rd_plan_t *plan);
size_t rd_plan_scratch(const rd_plan_t *plan); /* bytes */
/* Prints one line at RONDO_DEBUG=info, which rank 0 alone does, and all of the plan at plan. */
void rd_plan_print(const rd_plan_t *plan, int rank, rd_log_ctx_t *ctx);

#endif
