/* What an operation does by an algorithm, counted in units that know no machine: hops, messages, bytes. Prices
 * (prices.h) turn the counts into time (model.h).
 */
#ifndef RD_COST_WORK_H
#define RD_COST_WORK_H

#include "cost/prices.h"
#include "sched/program.h"

/* What the ranks agreed on at creation. */
typedef struct rd_cost_env {
    int nranks, nnodes;
    int local;   /* ranks on the fullest node */
    int cores;   /* of a machine, for its ranks, at least 1 */
    int sharing; /* ranks that share these cores: more than `local` where nodes are played on one machine; 0: `local` */
    const rd_prices_t *prices; /* the table that turns counts into time; NULL: the first of the built-in ones */
} rd_cost_env_t;

/* The counts. A pass carries one slice of every chunk; `moved` and `summed` are of the whole operation, as multiples of
 * its bytes (rd_choose_args_t.bytes), a copy counting 1, a step (sources + destinations) / 2. */
typedef struct rd_work {
    int chunks;           /* into which the operation's bytes are cut */
    double hops;          /* messages that wait for one another until the first slice is through */
    double again;         /* the same for each further pass */
    double fill;          /* slices that are moved one after another before the pipeline is full */
    double messages;      /* sent and received by the busiest rank in a pass */
    double received;      /* from other ranks, by the rank that receives most */
    double moved, summed; /* by the busiest rank */
    double received_all, moved_all, summed_all;
    double leave; /* bytes that leave the busiest node */
    /* Of hops, messages and received: what stays on a node. All of them where there is one node only. */
    double near_hops, near_messages, near_received;
    double peers;  /* on other nodes, of one rank, where they are many; 0: a few */
    double joined; /* of `messages`: those that go together with the one before, where they are short */
    double least;  /* the part of `messages` that is left when all but one chunk are empty */
} rd_work_t;

/* 0, or -1: no formula for this algorithm and operation. */
int rd_cost_work(const rd_cost_env_t *env, rd_coll_t coll, const char *algo, int param, rd_work_t *work);

/* Bytes of the longest chunk when `bytes` are cut into `chunks`: whole lines, as the planner cuts. */
size_t rd_cost_chunk(rd_coll_t coll, size_t bytes, int chunks);

#endif
