/* A plan: what one launch of one operation runs. A program bound to the communicator's connections, the protocol, the
 * slice, and the chunk map that turns a chunk number into bytes of the user's buffers. Plain data, but for pointers to
 * connections; it holds no sequence number, so it may run any number of times.
 */
#ifndef RD_PLAN_PLAN_H
#define RD_PLAN_PLAN_H

#include "transport/conns.h"
#include "base/reducer.h"
#include "plan/zcopy.h"
#include "plan/flat.h"
#include "cost/prices.h"
#include "base/proto.h"
#include "sched/program.h"

/* Where the chunks of one side, input or output, lie; all in bytes. */
typedef struct rd_chunks {
    const size_t *offset, *bytes; /* tables of nchunks entries, or NULL: uniform */
    size_t stride, total;         /* uniform: chunk c at c * stride, at most stride long, all within total */
    ptrdiff_t shift;              /* added to the user's pointer: a buffer that holds one chunk alone starts there */
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

/* What the user asked, as far as it decides the plan. */
typedef struct rd_coll_desc {
    rd_coll_t coll;
    rondo_type_t type;
    rondo_op_t op; /* 0 where the operation reduces nothing */
    int root;      /* 0 where there is none */
    size_t count;  /* elements: the whole message; of one block where each rank has one */
    size_t own;    /* nonzero: an exchange of rondo's own, which RONDO_ALGO and RONDO_PROTO do not speak of */
} rd_coll_desc_t;

/* How one lane goes. All lanes of a collective go alike; of an all-to-all each as its one message asks. */
typedef struct rd_lane_plan {
    size_t passes;
    size_t slice; /* bytes that a message carries at most; a multiple of the element */
    rd_proto_t proto;
} rd_lane_plan_t;

typedef struct rd_plan {
    rd_coll_desc_t desc;
    uint64_t key;                /* of the ask: plan.c */
    const rd_program_t *program; /* owned by the planner, or by the plan (`own_program`) */
    rd_program_t *own_program;
    const char *algo;
    double us;              /* the cost model's prediction; 0: none, as for a message */
    size_t slice;           /* the longest of all lanes: the stride of scratch places */
    size_t element;         /* bytes */
    rd_nt_store_t nt_store; /* how slots are written */
    rd_chunks_t in, out;
    rd_reducer_t reducer;
    size_t finish_offset, finish_bytes; /* of the output: what reducer.finish is applied to */
    rd_send_t **sends;                  /* program->sends, bound */
    rd_recv_t **recvs;
    rd_lane_plan_t *lanes;
    rd_flat_step_t *flat; /* steps resolved ahead, or NULL: exec/host/run_flat.h */
    int nquick;
    unsigned char *zcopy;       /* of each step of the program: zcopy.h; NULL: all ranks share the node */
    size_t reach_in, reach_out; /* bytes, of the two sides */
    int posts;                  /* some lane posts its buffers for peers to read: the run is over when they have */
    size_t *tables;             /* memory behind in and out's tables */
    int users;                  /* runs in flight, plus the cache */
} rd_plan_t;

struct rd_planner;
typedef struct rd_planner rd_planner_t;

/* What a planner knows of its communicator: all of it agreed on at creation, so that every rank plans alike. */
typedef struct rd_planner_args {
    int rank, nranks;
    const rd_node_t *node;
    int cores;   /* that the ranks of a machine may use: the fewest of any machine */
    int sharing; /* ranks on the fullest machine: nodes may be played */
    rd_conns_t *conns;
    const rd_env_t *env;
    const rd_prices_t *prices;
    rd_log_ctx_t *ctx;
    rd_reducer_init_fn init_reducer; /* of the executor that runs the plans */
} rd_planner_args_t;

rondo_result_t rd_planner_create(rd_planner_t **planner, const rd_planner_args_t *args);
void rd_planner_free(rd_planner_t *planner);

/* The plan for an ask, from the cache or made now. `custom`: a reducer of the user's own op (premulsum), or NULL. The
 * caller gives it back by rd_plan_put. */
rondo_result_t rd_plan_get(rd_planner_t *planner, const rd_coll_desc_t *desc, const rd_tables_t *tables,
                           const rd_reducer_t *custom, rd_plan_t **plan);
/* One message to or from a peer, `send` or receive. Protocol and slice depend on (pair, bytes) alone. */
rondo_result_t rd_plan_get_p2p(rd_planner_t *planner, int peer, int send, size_t bytes, rd_plan_t **plan);
void rd_plan_put(rd_plan_t *plan);
size_t rd_plan_scratch(const rd_plan_t *plan);                    /* bytes */
void rd_plan_print(rd_planner_t *planner, const rd_plan_t *plan); /* a line at RONDO_DEBUG=info, all of it at plan */

#endif
