/* star: an allreduce by way of rank 0, which sums what all others send and sends them the sum.
 *
 *     1, 2, 3 ──▶ 0:  OUT ◀── IN + 1 + 2 + 3  ──▶ 1, 2, 3
 *
 * No part of the library: test/sched/new_algorithm.sh adds it, and it is all that is added.
 *
 *                  steps     bytes through the root     cost
 *     allreduce    2         (n-1) N each way           2 alpha + (2 beta + gamma) N (n-1)
 */
#include "sched/algo/algos.h"

static rd_steps_t *emit(const rd_sched_args_t *args)
{
    int n = args->shape->nranks;
    rd_steps_t *s = rd_steps_create(1);
    rd_sum_t sum;
    rd_fan_t fan;

    if (s == NULL)
        return NULL;
    rd_steps_lane(s, 0);
    if (args->rank != 0) {
        rd_step_send(s, rd_in(0), 0, 0);
        rd_step_recv(s, rd_out(0), 0, 0);
        return s;
    }
    rd_sum_begin(&sum, s, 0, 0);
    rd_sum_add(&sum, rd_in(0));
    for (int r = 1; r < n; r++)
        rd_sum_add(&sum, rd_peer(r));
    rd_sum_end(&sum, rd_out(0));
    rd_fan_begin(&fan, s, rd_out(0), 0);
    for (int r = 1; r < n; r++)
        rd_fan_add(&fan, r);
    rd_fan_end(&fan);
    return s;
}

/* ---- what it costs ---- */

static int work(const rd_count_t *c, rd_work_t *w)
{
    double m = c->m;

    w->chunks = 1;
    w->hops = w->again = 2;
    w->messages = 2 * m;
    w->received = w->link = m;
    w->received_all = 2 * m;
    w->moved = rd_work_sum(c->n, 1 + m); /* the sum goes to all as it is made */
    w->moved_all = w->moved + 2 * m;
    w->summed = w->summed_all = m;
    w->leave = c->n - c->local;
    return 0;
}

const rd_algo_t rd_algo_star = {
    .name = "star",
    .colls = 1u << RD_ALLREDUCE,
    .excluded = rd_sched_any,
    .emit = emit,
    .work = work,
    .near = RD_PEERS_ALL,
    .device = {.kernel = RD_KERNEL_PROGRAM, .colls = 1u << RD_ALLREDUCE, .lanes = 1, .channels = 1, .scratch = 1},
};
