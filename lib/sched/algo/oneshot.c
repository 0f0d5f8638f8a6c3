/* oneshot: every rank sends its whole input to all others and sums all inputs itself.
 *
 *     rank 1 of 4:   IN ──▶ 2, 3, 0
 *                    OUT ◀── 0 + IN + 2 + 3
 *
 * It has one hop; each rank sends (n-1) N bytes; the cost is alpha (n-1) + (beta + gamma) N (n-1). It is the fastest
 * algorithm as long as alpha dominates. A rank visits its peers in order from its own number on. It sums all inputs,
 * its own among them, in the order of the ranks, so every rank gets the same bits.
 */
#include "sched/algo/algos.h"

static rd_steps_t *emit(const rd_sched_args_t *args)
{
    int n = args->shape->nranks, me = args->rank;
    rd_steps_t *s = rd_steps_create(1);
    rd_fan_t fan;
    rd_sum_t sum;

    if (!s)
        return NULL;
    rd_steps_lane(s, 0);
    rd_fan_begin(&fan, s, rd_in(0), 0);
    for (int k = 1; k < n; k++)
        rd_fan_add(&fan, (me + k) % n);
    rd_fan_end(&fan);
    rd_sum_begin(&sum, s, 0, 0);
    for (int r = 0; r < n; r++)
        rd_sum_add(&sum, r == me ? rd_in(0) : rd_peer(r));
    rd_sum_end(&sum, rd_out(0));
    return s;
}

/* ---- what it costs ---- */

/* GPUs run every operation by this algorithm: all but allreduce are the direct exchange. */
static int work(const rd_count_t *c, rd_work_t *w)
{
    if (c->coll != RD_ALLREDUCE)
        return rd_algo_direct.work(c, w);
    w->chunks = 1;
    w->hops = w->again = 1;
    w->messages = 2 * c->m;
    rd_work_alike(w, c->n, c->m, rd_work_fan(c->m) + rd_work_sum(c->n, 1), c->m);
    rd_work_once(w, c->m, 1, c->n);
    w->link = c->m;
    w->leave = rd_work_spread(c, 1);
    return 0;
}

const rd_algo_t rd_algo_oneshot = {
    .name = "oneshot",
    .colls = 1u << RD_ALLREDUCE,
    .excluded = rd_sched_any,
    .emit = emit,
    .work = work,
    .near = RD_PEERS_ALL,
    .board = 1u << RD_ALLREDUCE,
    .device = {.kernel = RD_KERNEL_ONESHOT,
               .colls = 1u << RD_ALLREDUCE | 1u << RD_REDUCE | 1u << RD_REDUCE_SCATTER | 1u << RD_ALLGATHER |
                        1u << RD_BROADCAST | 1u << RD_ALLTOALL | 1u << RD_GATHER | 1u << RD_SCATTER},
};
