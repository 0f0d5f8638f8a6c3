/* The card of an algorithm: a constant that holds all that rondo knows of it. The planner, the executors, the cost
 * model, the tools and the tests walk the table of cards, and know no algorithm by name. So a new algorithm is one file
 * in sched/algo with its card, and that file's line in sched/algo/local.mk. See "Adding an algorithm" in
 * doc/algorithms.md.
 */
#ifndef RD_SCHED_ALGO_H
#define RD_SCHED_ALGO_H

#include <stdbool.h>

#include "base/kernel.h"
#include "sched/work.h"

/* Which ranks a flat algorithm's messages go to. This decides how many of them stay on a node, if the ranks of a node
 * have consecutive numbers. */
typedef enum {
    RD_PEERS_ALL,        /* from every rank to every rank: a connection to each */
    RD_PEERS_NEIGHBOURS, /* along a ring: one message leaves a node */
    RD_PEERS_HALVING,    /* at distances of powers of two, one after the other: the near messages stay */
    RD_PEERS_AHEAD,      /* the same, but all one way: a node's first rank hears from others in every round */
    RD_PEERS_SPREAD,     /* to log n ranks, which are on other nodes as often as the ranks there are many */
    RD_PEERS_COUNTED     /* `work` itself counts the messages that stay on a node */
} rd_near_peers_t;

/* How the GPUs of a node run the algorithm. Its cost there follows from `work` as well: hops and `link`. */
typedef struct rd_algo_device {
    rd_kernel_t kernel; /* RD_KERNEL_NONE: GPUs do not run it */
    unsigned colls;     /* operations, bits as in rd_algo_t.colls */
    /* PROGRAM: limits of the program of any rank, for any possible number of ranks: */
    int lanes;    /* most lanes: a tile has a warp for each */
    int channels; /* most channels to one rank */
    int scratch;  /* most scratch places */
    int param;    /* rd_sched_args_t.param */
} rd_algo_device_t;

/* The operation fixes the number of chunks and their meaning, so that the chunk map depends on the algorithm only by
 * `nchunks`:
 *   allreduce, reduce, broadcast: chunk c of k is part c of the whole (the algorithm picks k);
 *   allgather, reduce_scatter, gather, scatter: chunk c is rank c's block, k = nranks;
 *   alltoall: IN chunk c goes to rank c, OUT chunk c comes from rank c, k = nranks;
 *   barrier: k = 1, ends are RD_TMP and RD_PEER only.
 * The chunk map handles operations in place (IN and OUT of a chunk may be the same memory). For it, a schedule writes
 * OUT chunk c only after its own last read of IN chunk c, in lane order or by causality across lanes. The schedule
 * copies IN to OUT itself where a rank keeps its own block (the executor skips copies of a chunk onto itself).
 * In a reduction, the steps that read or write OUT chunk c are all in one lane: its partial results may be wider than
 * the user's elements, and are then in scratch, a slice at a time.
 */
typedef struct rd_algo {
    const char *name; /* "ring" */
    unsigned colls;   /* on host memory: bit set of 1u << rd_coll_t. 0: it is for GPUs alone, and has no steps */
    /* Returns NULL if it can serve, else the reason, a phrase such as "needs a power of two of ranks". */
    const char *(*excluded)(const rd_sched_args_t *args);
    rd_steps_t *(*emit)(const rd_sched_args_t *args); /* returns NULL if there is no memory */
    bool joins;                                       /* it lets blocks go as one message: rd_sched_args_t.together */
    /* Alltoall: ranks pass on each other's blocks, which must all be equally long. It is chosen only where blocks
     * go together. Without it each message is that of a pair, and has a lane, a protocol and a slice of its own. */
    bool relays;
    int params; /* number of values of `param` beyond 0, from 1 on, that may be better for some size */
    /* Counts the work of several ranks, into a zeroed *w. Returns 0, or -1 if it has no counts for this operation.
     * NULL: the algorithm is never chosen, but may be forced. */
    int (*work)(const rd_count_t *c, rd_work_t *w);
    rd_near_peers_t near;
    bool ordered; /* its ranks are counted in the order of the machine (sched/visits.h): neighbours exchange most */
    /* Operations, bits as in `colls`, in which every message is read from a buffer that does not change until the
     * operation is over, in place too. RD_PROTO_CMA may serve these: by it a peer reads a buffer some time after it was
     * posted. */
    unsigned stays;
    /* Operations in which a rank sends no more than one value of each chunk in a pass, to whomever, in one lane; in an
     * allgather its own chunk alone. RD_PROTO_BOARD_LL and RD_PROTO_BOARD may serve these: by them a value is written
     * once, and a message is found by its sender and its chunk's number. */
    unsigned board;
    bool switched;    /* it sends to the switch (rd_switch_of): it serves only where there is one for the operation */
    bool board_alone; /* it is chosen for its price by those protocols alone; by others where RONDO_ALGO names it */
    rd_algo_device_t device;
    const char *nccl; /* NCCL's name for it, in upper or lower case; NULL: NCCL has no such algorithm */
} rd_algo_t;

#define RD_ALGOS_MOST 32
extern const rd_algo_t *const rd_algos[];                        /* NULL-terminated; sched/algo/algos.c */
const rd_algo_t *rd_algo_find(const char *name);                 /* returns NULL if there is none */
const rd_algo_t *rd_algo_named(const char *name, size_t length); /* the same for a part of a text */
int rd_algo_number(const rd_algo_t *algo);                       /* returns its index in the table */

static inline bool rd_algo_is_program(const rd_algo_t *algo)
{
    return algo->device.kernel == RD_KERNEL_PROGRAM;
}

#endif
