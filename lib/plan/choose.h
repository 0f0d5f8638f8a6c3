/* The choice on host memory: which algorithm, protocol and message size serve an operation.
 *
 * The choice is a pure function of its arguments, on which all ranks agreed when the communicator was made: so every
 * rank chooses the same without communication. Nothing is measured here. If RONDO_ALGO or RONDO_PROTO force a choice,
 * it is taken, or refused with the reason; there is no fallback.
 */
#ifndef RD_PLAN_CHOOSE_H
#define RD_PLAN_CHOOSE_H

#include "cost/model.h"
#include "plan/candidates.h"

typedef struct rd_choose_args {
    rd_coll_t coll;
    /* allreduce, reduce, broadcast: the vector. allgather, reduce_scatter, gather, scatter, alltoall: the blocks of all
     * ranks together, nranks times one block (v-operations: the sum of the counts). barrier: ignored. */
    size_t bytes;
    size_t longest; /* v-operations whose counts all ranks know: bytes of the longest block; 0: blocks are alike */
    size_t type_size;
    int root;      /* 0 where there is none */
    bool unforced; /* RONDO_ALGO and RONDO_PROTO do not apply to this operation */
    bool uneven; /* not every rank knows all lengths (gatherv, scatterv, alltoallv): the choice then ignores `bytes` */
    const rd_shape_t *shape;
    const rd_env_t *env;
    int local;                 /* ranks on the fullest node */
    int cores;                 /* cores that the ranks of a machine may use: the fewest of any machine, at least 1 */
    int sharing;               /* ranks on the fullest machine, if one machine plays several nodes; 0: as `local` */
    const rd_prices_t *prices; /* NULL: the first of the built-in ones */
    size_t slot_bytes;
    size_t long_bytes;          /* bytes of a slot between nodes; 0: as `slot_bytes` */
    int slots;                  /* slots of a connection */
    size_t switch_bytes;        /* of the longest message that a switch adds, in this reduction; 0: none does */
    bool cma;                   /* ranks of a node may read each other's memory */
    rd_tuned_t *tuned;          /* who has a say in the choice; NULL: nobody */
    rd_tuner_call_t tuned_call; /* and for what it is asked */
    bool widened; /* partial results are of a wider type than the user's, and so have no place in the output */
} rd_choose_args_t;

/* Puts the cheapest candidate into `*best`. `all`, if not NULL, has room for *nall entries and gets every candidate,
 * the best first and the excluded ones last; *nall is then their number. Returns RONDO_ERR_UNSUPPORTED, with the
 * reason as the error text, if a forced choice cannot serve, and RONDO_ERR_INVALID_ARGUMENT if it names nothing that
 * exists. */
rondo_result_t rd_choose(const rd_choose_args_t *args, rd_choice_t *best, rd_choice_t *all, int *nall,
                         rd_log_ctx_t *ctx);

/* Checks that RONDO_ALGO names operations and algorithms that exist; called when a communicator is made. rd_choose
 * checks it again. */
rondo_result_t rd_choose_check(const rd_env_t *env, rd_log_ctx_t *ctx);

/* Returns the bytes of the longest message of a pair that goes by lines: at most RONDO_LL_MAX, and less if an exchange
 * between two ranks is cheaper by slots from there on. `prices` may be NULL, as above. */
size_t rd_choose_ll_most(const rd_env_t *env, const rd_prices_t *prices);

/* The same for a message of a send or a receive, which goes from user memory to user memory by way of its lines alone.
 */
size_t rd_choose_ll_most_alone(const rd_env_t *env, const rd_prices_t *prices);

/* Returns the bytes from which on a message to a rank that takes one from each rank of its node goes by CMA. There the
 * taker's core copies everything; by slots its peers' cores, where they have some of their own, do half of that.
 * SIZE_MAX: never. A protocol that is forced is taken or refused as it is, whatever this says. `node`: the ranks of the
 * fullest node, as a machine of their own. */
size_t rd_choose_to_one_least(const rd_env_t *env, const rd_cost_env_t *node);
/* Returns the bytes of the longest such message by CMA that its sender writes into the taker's buffer
 * (transport/cma/room.h); 0: the taker reads. Ranks that share cores would only wait for one another once more; but
 * they write where RONDO_PROTO forces CMA. */
size_t rd_choose_put_most(const rd_env_t *env, const rd_cost_env_t *node);

/* A message of a pair. */
typedef struct rd_message_args {
    const rd_env_t *env;
    bool here;      /* both ranks are on one node */
    bool cma;       /* and may read each other's memory */
    size_t ll_most; /* the result of rd_choose_ll_most */
    size_t bytes;
    size_t slot_bytes;
} rd_message_args_t;

/* Finds the protocol and the slice of one message of a pair, for grouped sends and receives and all-to-all. They depend
 * on the pair and the length alone, so that both ends agree. A protocol that RONDO_PROTO forces is taken or refused. */
rondo_result_t rd_choose_message(const rd_message_args_t *args, rd_proto_t *proto, size_t *slice, rd_log_ctx_t *ctx);

#endif
