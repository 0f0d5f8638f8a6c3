/* The cost model between the GPUs of a node: what an operation takes by an algorithm's kernel and a protocol.
 *
 *     T = alpha + hop hops beside link / rate + pass (passes - 1)
 *
 * Hops and `link` are the card's (sched/work.h). Prices rank the candidates; nobody promises them.
 */
#ifndef RD_COST_MODEL_GPU_H
#define RD_COST_MODEL_GPU_H

#include "cost/prices.h"

/* What the ranks agreed on at creation. */
typedef struct rd_cost_gpus {
    int nranks;
    int host_windows;          /* they do not all reach each other: messages go through pinned host memory */
    double gbps;               /* by data sheet, of the slowest way between two of them, each way; 0: unknown */
    const rd_prices_t *prices; /* NULL: the first of the built-in ones */
} rd_cost_gpus_t;

/* What the tables say, at the rate that there is here. */
rd_gpu_price_t rd_cost_gpu_price(const rd_cost_gpus_t *gpus, const rd_algo_t *algo, rd_proto_t proto);
/* Microseconds. `bytes` of one rank's message, as the kernels count them: the whole, or a block. `part` of the rate:
 * less than 1 where fewer channels move slices than were measured. */
double rd_cost_gpu_us(const rd_cost_gpus_t *gpus, rd_coll_t coll, const rd_algo_t *algo, rd_proto_t proto,
                      uint64_t bytes, uint32_t passes, double part);

#endif
