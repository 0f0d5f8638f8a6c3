/* The card of an algorithm: a constant that says all that rondo knows of it. The planner, the executors, the cost
 * model, the tools and the tests walk the table of cards, and know no algorithm by name; so a new one is one file in
 * sched/algo with its card, and that file's line in sched/algo/local.mk. See "Adding an algorithm" in
 * doc/algorithms.md.
 */
#ifndef RD_ALGO_H
#define RD_ALGO_H

#include "base/kernel.h"
#include "sched/work.h"

/* Which ranks a flat algorithm's messages go to, and so how much of them stays on a node whose ranks have numbers in a
 * row. */
typedef enum {
    RD_PEERS_ALL,        /* everybody to everybody: a connection to each rank */
    RD_PEERS_NEIGHBOURS, /* along a ring: one message leaves a node */
    RD_PEERS_HALVING,    /* distances of powers of two, one after the other: the near ones stay */
    RD_PEERS_SPREAD,     /* to log n ranks, as often far as they are many */
    RD_PEERS_COUNTED     /* `work` says itself what stays on a node */
} rd_near_peers_t;

/* How the GPUs of a node run it. What it costs there follows from `work`, too: hops and `link`. */
typedef struct rd_algo_device {
    rd_kernel_t kernel; /* RD_KERNEL_NONE: they do not */
    unsigned colls;     /* operations, bits as in rd_algo_t.colls */
    /* PROGRAM, of the program of any rank of as many as there may be: */
    int lanes;    /* at most: a unit has a warp for each */
    int channels; /* to one rank, at most */
    int scratch;  /* places, at most */
    int param;    /* rd_sched_args_t.param */
} rd_algo_device_t;

/* Number of chunks and their meaning is fixed by the operation, so that the chunk map does not depend on the algorithm
 * beyond `nchunks`:
 *   allreduce, reduce, broadcast: chunk c of k is part c of the whole (the algorithm picks k);
 *   allgather, reduce_scatter, gather, scatter: chunk c is rank c's block, k = nranks;
 *   alltoall: IN chunk c goes to rank c, OUT chunk c comes from rank c, k = nranks;
 *   barrier: k = 1, ends are RD_TMP and RD_PEER only.
 * In place is the chunk map's affair (IN and OUT of a chunk may be the same memory): a schedule writes OUT chunk c
 * only after its own last read of IN chunk c, in lane order or by causality across lanes, and copies IN to OUT itself
 * where a rank keeps its own block (the executor skips copies onto themselves).
 */
typedef struct rd_algo {
    const char *name; /* "ring" */
    unsigned colls;   /* on host memory: bit set of 1u << rd_coll_t. 0: it is for GPUs alone, and has no steps */
    /* NULL if it can serve, else the reason, a phrase such as "needs a power of two of ranks". */
    const char *(*excluded)(const rd_sched_args_t *args);
    rd_steps_t *(*emit)(const rd_sched_args_t *args); /* NULL: no memory */
    int params; /* values of `param` beyond 0, from 1 on, that may be better for some size */
    /* Counts the work of several ranks, into zeros: 0, or -1: not of this operation. NULL: it is never chosen, but may
     * be forced. */
    int (*work)(const rd_count_t *c, rd_work_t *w);
    rd_near_peers_t near;
    /* Operations in which every message is of a buffer that stays as it is until the operation is over, in place too:
     * what RD_PROTO_PULL may serve, by which a peer reads a buffer some time after it was posted. Bits as in `colls`.
     */
    unsigned stays;
    rd_algo_device_t device;
    const char *nccl; /* what NCCL calls it, in any case of letters; NULL: NCCL has none of the kind */
} rd_algo_t;

#define RD_ALGOS_MOST 32
extern const rd_algo_t *const rd_algos[];                        /* NULL-terminated; sched/algo/algos.c */
const rd_algo_t *rd_algo_find(const char *name);                 /* or NULL */
const rd_algo_t *rd_algo_named(const char *name, size_t length); /* the same of a part of a text */
int rd_algo_number(const rd_algo_t *algo);                       /* its place in the table */

static inline int rd_algo_is_program(const rd_algo_t *algo)
{
    return algo->device.kernel == RD_KERNEL_PROGRAM;
}

#endif
