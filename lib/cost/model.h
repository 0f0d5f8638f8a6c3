/* The cost model: what an operation takes by an algorithm and a protocol, in microseconds, by formula.
 *
 * Everything that an algorithm costs is counted first, in units that know no machine (sched/work.h: hops,
 * messages, bytes); a table of measured prices (prices.h) turns the counts into time:
 *
 *     T = call + alpha (hops + again (passes - 1)) + message messages passes
 *       + start (the first 4 KiB of each) + beta moved + cross received + gamma summed + the slices that fill a
 * pipeline
 *
 * On a node the ranks' cores do all the moving, so beta counts every byte that a core reads and writes, cross what it
 * must fetch from another core's cache besides, and where ranks outnumber cores, the work of all of them shares the
 * cores, and a hop costs the round through the scheduler that lets each of them run. Rooted operations flow one way:
 * nobody waits for an answer, so one call's hops, and the start of its messages, overlap with the next call's
 * (`overlap`), but for CMA, whose senders wait until they have been read: a hop more. CMA copies what is received
 * once, from memory to memory; the moves into and out of slots that `moved` counts do not take place.
 */
#ifndef RD_COST_MODEL_H
#define RD_COST_MODEL_H

#include "cost/prices.h"
#include "sched/algo.h"

/* What the ranks agreed on at creation. */
typedef struct rd_cost_env {
    int nranks, nnodes;
    int local;   /* ranks on the fullest node */
    int cores;   /* of a machine, for its ranks, at least 1 */
    int sharing; /* ranks that share these cores: more than `local` where nodes are played on one machine; 0: `local` */
    const rd_prices_t *prices; /* the table that turns counts into time; NULL: the first of the built-in ones */
} rd_cost_env_t;

/* Microseconds; negative: no formula. `slice`: bytes of a message at most. */
double rd_cost_algo_us(const rd_cost_env_t *env, rd_coll_t coll, const rd_algo_t *algo, int param, rd_proto_t proto,
                       size_t bytes, size_t slice);

/* The same of the algorithm of this name: negative, too, where there is none. */
double rd_cost_us(const rd_cost_env_t *env, rd_coll_t coll, const char *algo, int param, rd_proto_t proto, size_t bytes,
                  size_t slice);
/* Its counts: 0, or -1: no formula for this algorithm and operation. */
int rd_cost_work(const rd_cost_env_t *env, rd_coll_t coll, const char *algo, int param, rd_work_t *work);

#endif
