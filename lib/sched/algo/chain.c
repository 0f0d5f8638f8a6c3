/* chain: data moves from rank to rank, slice after slice, along a ring that is open at the root.
 *
 * On host memory, ring does the same for a broadcast or a reduction. Between GPUs the chain has a kernel of its own: as
 * nothing comes back to a rank, data goes through fifos, without epochs (kernels/chain.cuh, kernels/proto_simple.cuh).
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
