/* chain: from rank to rank, the ring open at the root, slice after slice.
 *
 * On host memory that is what ring does for a broadcast or a reduction. Between GPUs it has a kernel of its own,
 * because nothing comes back: it goes through fifos, and knows no epochs (kernels/chain.cuh, kernels/proto_simple.cuh).
 */
#include "sched/algo/algos.h"

static int work(const rd_count_t *c, rd_work_t *w)
{
    return rd_algo_ring.work(c, w);
}

const rd_algo_t rd_algo_chain = {
    .name = "chain",
    .work = work,
    .near = RD_PEERS_NEIGHBOURS,
    .device = {.kernel = RD_KERNEL_CHAIN, .colls = 1u << RD_REDUCE | 1u << RD_BROADCAST},
    .nccl = "Ring", /* of an operation with a root */
};
