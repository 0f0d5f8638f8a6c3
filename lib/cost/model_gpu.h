/* The cost model between the GPUs of a node: the time of an operation by an algorithm's kernel and a protocol.
 *
 *     T = alpha + hop hops beside link / rate + pass (passes - 1)
 *
 * Hops and `link` are counted by the algorithm's card (sched/work.h). The predicted times serve to rank the candidates;
 * they are no promise.
 */
#ifndef RD_COST_MODEL_GPU_H
#define RD_COST_MODEL_GPU_H

#include "cost/prices.h"

/* What the ranks agreed on at creation. */
typedef struct rd_cost_gpus {
    int nranks;
    bool host_windows;         /* not all GPUs reach each other, so messages go through pinned host memory */
    double gbps;               /* data-sheet rate, each way, of the slowest link between two GPUs; 0: unknown */
    const rd_prices_t *prices; /* NULL: the first of the built-in ones */
} rd_cost_gpus_t;

/* Returns the price from the tables, scaled to the rate of the links here. */
rd_gpu_price_t rd_cost_gpu_price(const rd_cost_gpus_t *gpus, const rd_algo_t *algo, rd_proto_t proto);
/* Returns microseconds. `bytes` are those of one rank's message, as the kernels count them: of the whole, or of a
 * block. `part` is the part of the rate that is reached: less than 1 if fewer channels move slices than were measured.
 */
double rd_cost_gpu_us(const rd_cost_gpus_t *gpus, rd_coll_t coll, const rd_algo_t *algo, rd_proto_t proto,
                      uint64_t bytes, uint32_t passes, double part);
/* Returns the microseconds that it takes to stage blocks of `bytes` bytes for copy engines in `turns` turns, beyond
 * what rd_cost_gpu_us says of these; `each`: one block for each peer. */
double rd_cost_staging_us(uint32_t nranks, bool each, uint64_t bytes, uint32_t turns);

#endif
