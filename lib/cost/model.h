/* The cost model: formulas for the time, in microseconds, of an operation by an algorithm and a protocol.
 *
 * Everything that an algorithm costs is counted first, in units that know no machine (sched/work.h: hops,
 * messages, bytes); a table of measured prices (prices.h) turns the counts into time:
 *
 *     T = call + alpha (hops + again (passes - 1)) + message messages passes
 *       + start (the first 4 KiB of each) + beta moved + cross received + store stored + gamma summed
 *       + the slices that fill a pipeline
 *
 * Where each rank has a core of its own, the busiest rank sets the time. There `contact` is paid for each peer that it
 * has messages for (a root that only receives pays little of it: its senders are calls ahead); a line that it stores
 * where others read it has to be fetched back from them first (`store`); and by CMA the kernel lets one reader at a
 * time take the pages of a process, so that readers of one buffer wait for each other. Where ranks share cores, those
 * costs are hidden behind the work of other ranks. The bytes of all ranks of a machine, beyond what its caches hold,
 * take at least what its memory needs for them (`memory`).
 *
 * On a node the ranks' cores move all data. So beta is paid for every byte that a core reads and writes, and cross, in
 * addition, for every byte that it fetches from another core's cache. Where ranks outnumber cores, the work of all of
 * them shares the cores, and a hop costs a round through the scheduler that lets each of them run. Rooted operations
 * flow one way: no rank waits for an answer, so one call's hops, and the start of its messages, overlap with the next
 * call's (`overlap`). By CMA they do not: its senders wait until peers have read their buffers, which is one more hop.
 * CMA copies received data once, from memory to memory, without the moves into and out of slots that `moved` counts. In
 * a gather its senders, if each has a core of its own, write into the root's memory, as they read from it in a scatter,
 * so both cost the same.
 */
#ifndef RD_COST_MODEL_H
#define RD_COST_MODEL_H

#include "cost/prices.h"
#include "sched/algo.h"

/* What the ranks agreed on at creation. */
typedef struct rd_cost_env {
    int nranks, nnodes;
    int local;   /* ranks on the fullest node */
    int cores;   /* cores of a machine that its ranks may use, at least 1 */
    int sharing; /* ranks that share these cores: more than `local` if one machine plays several nodes; 0: `local` */
    const rd_prices_t *prices; /* the table that turns counts into time; NULL: the first of the built-in ones */
    int together;              /* rd_sched_args_t.together */
} rd_cost_env_t;

/* Returns true if by CMA the senders of this operation write, each with a core of its own, because one rank would have
 * to read what all others send. */
static inline bool rd_cost_puts(const rd_cost_env_t *env, rd_coll_t coll)
{
    return coll == RD_GATHER && env->nranks > 2 && env->sharing <= env->cores;
}

/* Returns microseconds, or a negative number if there is no formula. `slice`: most bytes of a message. */
double rd_cost_algo_us(const rd_cost_env_t *env, rd_coll_t coll, const rd_algo_t *algo, int param, rd_proto_t proto,
                       size_t bytes, size_t slice);

/* The same for the algorithm of this name; also negative if there is no such algorithm. */
double rd_cost_us(const rd_cost_env_t *env, rd_coll_t coll, const char *algo, int param, rd_proto_t proto, size_t bytes,
                  size_t slice);
/* Fills in its counts. Returns 0, or -1 if there is no formula for this algorithm and operation. */
int rd_cost_work(const rd_cost_env_t *env, rd_coll_t coll, const char *algo, int param, rd_work_t *work);

#endif
