/* twoshot: a direct reduce_scatter joined with a direct allgather.
 *
 *     rank 0 of 4:   IN 1 ──▶ 1, IN 2 ──▶ 2, IN 3 ──▶ 3
 *                    OUT 0, 1, 2, 3 ◀── IN 0 + 1 + 2 + 3        (one step, which sends the sum to all ranks)
 *                    OUT 1 ◀── 1, OUT 2 ◀── 2, OUT 3 ◀── 3
 *
 * It has two hops; each rank sends 2 (n-1)/n N bytes, which is the minimum; the cost is 2 alpha (n-1) + (2 beta +
 * gamma) N (n-1)/n.
 */
#include "sched/algo/algos.h"

static rd_steps_t *emit(const rd_sched_args_t *args)
{
    rd_sched_args_t half = *args;
    rd_steps_t *first, *second;

    half.coll = RD_REDUCE_SCATTER;
    first = rd_algo_direct.emit(&half);
    half.coll = RD_ALLGATHER;
    second = rd_algo_direct.emit(&half);
    return rd_join(first, second);
}

/* ---- what it costs ---- */

/* Between GPUs, each rank but the root has a part of the whole, which every rank sends and receives once. */
static int rooted_work(const rd_count_t *c, rd_work_t *w)
{
    if (c->coll != RD_REDUCE && c->coll != RD_BROADCAST)
        return -1;
    w->chunks = c->n - 1;
    w->hops = w->again = 2;
    w->link = 1;
    return 0;
}

static int work(const rd_count_t *c, rd_work_t *w)
{
    double n = c->n;

    if (c->coll != RD_ALLREDUCE)
        return rooted_work(c, w);

    w->chunks = c->n;
    w->hops = w->again = 2;
    w->messages = 4 * c->m;
    w->least = 0.5;
    rd_work_alike(w, c->n, 2 * c->m / n, (c->m + rd_work_sum(c->n, 1 + c->m) + c->m) / n, c->m / n);
    rd_work_once(w, c->m, 1 / n, n);
    w->link = 2 * c->m / n;
    w->leave = rd_work_spread(c, 2 / n);
    return 0;
}

const rd_algo_t rd_algo_twoshot = {
    .name = "twoshot",
    .colls = 1u << RD_ALLREDUCE,
    .excluded = rd_sched_any,
    .emit = emit,
    .work = work,
    .near = RD_PEERS_ALL,
    .stays = 1u << RD_ALLREDUCE,
    .board = 1u << RD_ALLREDUCE,
    .device = {.kernel = RD_KERNEL_TWOSHOT, .colls = 1u << RD_ALLREDUCE | 1u << RD_REDUCE | 1u << RD_BROADCAST},
};
