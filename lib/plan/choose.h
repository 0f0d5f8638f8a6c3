/* The choice on host memory: which algorithm, protocol and message size serve an operation.
 *
 * A pure function of its arguments, and its arguments are what all ranks agreed on when the communicator was made: so
 * every rank chooses the same, without a word exchanged. Nothing here measures. What RONDO_ALGO or RONDO_PROTO force is
 * taken, or refused with the reason; it never falls back.
 */
#ifndef RD_PLAN_CHOOSE_H
#define RD_PLAN_CHOOSE_H

#include "cost/prices.h"
#include "plan/candidates.h"

typedef struct rd_choose_args {
    rd_coll_t coll;
    /* allreduce, reduce, broadcast: the vector. allgather, reduce_scatter, gather, scatter, alltoall: the blocks of all
     * ranks together, nranks times one block (v-operations: the sum of the counts). barrier: ignored. */
    size_t bytes;
    size_t longest; /* v-operations whose counts all ranks know: bytes of the longest block; 0: all are alike */
    size_t type_size;
    int root;     /* 0 where there is none */
    int unforced; /* RONDO_ALGO and RONDO_PROTO do not speak of it */
    int uneven;   /* not every rank knows all lengths (gatherv, scatterv, alltoallv): the choice then ignores `bytes` */
    const rd_shape_t *shape;
    const rd_env_t *env;
    int local;                 /* ranks on the fullest node */
    int cores;                 /* cores that the ranks of a machine may use: the fewest of any machine, at least 1 */
    int sharing;               /* ranks on the fullest machine, where nodes are played on one; 0: as `local` */
    const rd_prices_t *prices; /* NULL: the first of the built-in ones */
    size_t slot_bytes;
    size_t long_bytes; /* of a slot between nodes; 0: as `slot_bytes` */
    int slots;         /* slots a connection */
    int cma;           /* ranks of a node may read each other's memory */
} rd_choose_args_t;

/* The cheapest goes to `*best`. `all`, if not NULL, holds *nall entries on entry and gets every candidate, the best
 * first, the excluded ones last; *nall is then their number. RONDO_ERR_UNSUPPORTED, with the sentence, when what is
 * forced cannot serve; RONDO_ERR_INVALID_ARGUMENT when it names nothing. */
rondo_result_t rd_choose(const rd_choose_args_t *args, rd_choice_t *best, rd_choice_t *all, int *nall,
                         rd_log_ctx_t *ctx);

/* RONDO_ALGO must name operations and algorithms that exist: worth asking when a communicator is made. rd_choose asks
 * again. */
rondo_result_t rd_choose_check(const rd_env_t *env, rd_log_ctx_t *ctx);

/* The longest message of a pair that goes by lines: RONDO_LL_MAX at most, and only where an exchange between two is not
 * cheaper by slots. `prices` may be NULL, as above. */
size_t rd_choose_ll_most(const rd_env_t *env, const rd_prices_t *prices);

/* Protocol and slice of one message of a pair, which grouped sends and receives and all-to-all use: of the pair and the
 * length alone, so that both ends agree. `here`: both are on one node; `pull`: and may read each other's memory;
 * `ll_most`: as above, asked for once. What RONDO_PROTO forces is taken or refused. */
rondo_result_t rd_choose_message(const rd_env_t *env, int here, int cma, size_t ll_most, size_t bytes,
                                 size_t slot_bytes, rd_proto_t *proto, size_t *slice, rd_log_ctx_t *ctx);

#endif
