/* messages: a message for every pair of ranks that exchanges data, as the sends and receives of a group are.
 *
 * It is the direct exchange between GPUs: messages go as lines through fifos, or, if they are long, as slices
 * (kernels/p2p.cuh, kernels/p2p_slices.cuh). On host memory, direct has a lane for each message.
 */
#include "sched/algo/algos.h"

static int work(const rd_count_t *c, rd_work_t *w)
{
    return rd_algo_direct.work(c, w);
}

const rd_algo_t rd_algo_messages = {
    .name = "messages",
    .work = work,
    .near = RD_PEERS_ALL,
    .device = {.kernel = RD_KERNEL_MESSAGES,
               .colls =
                   1u << RD_BROADCAST | 1u << RD_ALLGATHER | 1u << RD_ALLTOALL | 1u << RD_GATHER | 1u << RD_SCATTER},
};
