/* The work of an operation by an algorithm, counted in units that depend on no machine: hops, messages, bytes. Each
 * algorithm counts its own work (rd_algo_t.work); prices (cost/prices.h) turn the counts into time (cost/model.h).
 *
 * The counts are those of the compiled and fused programs; test/cost/model.c compares them. The root's copy of its own
 * block in a broadcast is not counted, because as a rule a broadcast is in place.
 */
#ifndef RD_SCHED_WORK_H
#define RD_SCHED_WORK_H

#include <stdbool.h>

#include "sched/program.h"

/* The operation whose work is counted. */
typedef struct rd_count {
    rd_coll_t coll;
    int n, nnodes;
    int local;                  /* ranks on the fullest node */
    int param;                  /* rd_sched_args_t.param */
    int together;               /* rd_sched_args_t.together */
    double m;                   /* n - 1 */
    double rounds, rounds_down; /* log2 n, rounded up and down */
} rd_count_t;

/* The counts. A pass carries one slice of every chunk. `moved` and `summed` are those of the whole operation, as
 * multiples of its bytes (rd_choose_args_t.bytes): a copy counts 1, a step (sources + destinations) / 2. */
typedef struct rd_work {
    int chunks;           /* number of chunks that the operation's bytes are cut into */
    double hops;          /* messages that wait for one another until the first slice is through */
    double again;         /* the same for each further pass */
    double fill;          /* slices that are moved one after another before the pipeline is full */
    double messages;      /* sent and received by the busiest rank in a pass */
    double received;      /* from other ranks, by the rank that receives most */
    double moved, summed; /* by the busiest rank */
    double received_all, moved_all, summed_all;
    double leave; /* bytes that leave the busiest node */
    double link;  /* bytes that the busiest rank sends, or receives if that is more; of flat algorithms alone */
    /* The part of hops, messages and received that stays on a node: all of it if there is only one node. */
    double near_hops, near_messages, near_received;
    double peers;  /* peers of one rank on other nodes, if they are many; 0: they are few */
    double blocks; /* chunks of which a message carries a slice each, on average; 0: one */
    bool mutual; /* a rank hears from another in one chunk, which hears from it in another one: calls do not overlap */
    /* Of messages, moved and moved_all, what falls away where a value that goes to several peers is written once. */
    double once_messages, once_moved, once_moved_all;
    double least; /* the part of `messages` that is left when all but one chunk are empty */
} rd_work_t;

struct rd_algo;

rd_count_t rd_count(rd_coll_t coll, int nranks, int nnodes, int local, int param);
/* Counts the work. Returns 0, or -1 if the algorithm has no formula, or none for this operation. */
int rd_algo_work(const struct rd_algo *algo, const rd_count_t *c, rd_work_t *work);
/* Returns the bytes of the longest chunk when `bytes` are cut into `chunks`, in whole lines, as the planner cuts them.
 */
size_t rd_work_chunk(rd_coll_t coll, size_t bytes, int chunks);

/* ---- helpers for the counts of algorithms ---- */

/* Returns the number of rounds of halving n. */
double rd_work_rounds(int n);
/* Returns `moved` for a chunk sent to m peers: one read for each step of at most RD_MAX_ENDS stores. */
double rd_work_fan(double m);
/* Returns `moved` for a sum of n sources into d destinations; sources beyond the most of one step are added through a
 * partial sum that is written and read. */
double rd_work_sum(int n, double d);
/* Counts what falls away if a message to m peers, of `part` of the bytes, is written once; `ranks` do that. */
void rd_work_once(rd_work_t *w, double m, double part, double ranks);
/* Sets the counts of received, moved and summed where each of n ranks does the same. */
void rd_work_alike(rd_work_t *w, int n, double received, double moved, double summed);
/* Returns the bytes that leave a node if each of its ranks sends `each` to each rank of other nodes. */
double rd_work_spread(const rd_count_t *c, double each);

#endif
