/* copy: copy engines move blocks out of registered buffers, or out of memory in the windows into which they are put
 * first, between barriers of all ranks. It exists on GPUs only.
 *
 * It is the direct exchange, except for a broadcast among more than two ranks: there the root gives each rank a part,
 * and then every rank gives its part to all others. Only the barriers take a multiprocessor (exec/cuda/copy_engine.c,
 * exec/cuda/copy_staging.c). The algorithm is never chosen for its price alone.
 */
#include "sched/algo/algos.h"

static int work(const rd_count_t *c, rd_work_t *w)
{
    int result = rd_algo_direct.work(c, w);

    if (c->coll == RD_BROADCAST)
        w->link = c->n == 2 ? 1 : 2 * c->m / c->n;
    return result;
}

const rd_algo_t rd_algo_copy = {
    .name = "copy",
    .work = work,
    .near = RD_PEERS_ALL,
    .device = {.kernel = RD_KERNEL_COPY,
               .colls =
                   1u << RD_BROADCAST | 1u << RD_ALLGATHER | 1u << RD_ALLTOALL | 1u << RD_GATHER | 1u << RD_SCATTER},
};
