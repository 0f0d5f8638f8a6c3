/* rd: recursive doubling for small allreduces, dissemination for the barrier.
 *
 *     allreduce of 5:   0+1   2   3   4        p = 4 is the largest power of two; the first 2(n-p) ranks pair up and
 *                        |    |   |   |        the lower rank of a pair takes part for both
 *                       (0    1) (2   3)       in round k, numbers that differ in bit k exchange their sums,
 *                       (0)  (1) (2) (3)  ..   and both add lower + upper
 *                        |                     the result goes back to the upper ranks of the pairs
 *                        1
 *
 *     barrier, round k: send to rank + 2^k, receive from rank - 2^k.
 *
 *                  steps                                  bytes sent by a rank    cost
 *     allreduce    log p (+ 2 if n is not a power of 2)   N log p                 (alpha + (beta + gamma) N) log p
 *     barrier      ceil(log n)                            log n messages          alpha log n
 *
 * The sum is made in the order of the ranks on both sides of an exchange, so all ranks get the same bits although each
 * makes its own sum. A partial sum is rounded to the user's type before either side uses it.
 */
#include "sched/algo/algos.h"

enum { SUM, HEARD }; /* names of scratch */

static int floor_power(int n)
{
    int p = 1;

    while (2 * p <= n)
        p *= 2;
    return p;
}

/* Returns the rank that has number v, if there are `extra` pairs. */
static int player(int v, int extra)
{
    return v < extra ? 2 * v : v + extra;
}

static void doubling(rd_steps_t *s, int v, int p, int extra, rd_end_t mine)
{
    for (int bit = 1; bit < p; bit *= 2) {
        int peer = player(v ^ bit, extra);
        rd_sum_t sum;

        rd_step_send(s, mine, 0, peer);
        rd_step_recv(s, rd_tmp(HEARD), 0, peer);
        rd_sum_begin(&sum, s, 0, SUM);
        rd_sum_add(&sum, v & bit ? rd_tmp(HEARD) : mine);
        rd_sum_add(&sum, v & bit ? mine : rd_tmp(HEARD));
        mine = 2 * bit < p ? rd_tmp(SUM) : rd_out(0);
        rd_sum_end(&sum, mine);
    }
}

static void allreduce(rd_steps_t *s, int n, int me)
{
    int p = floor_power(n), extra = n - p;
    rd_sum_t sum;

    if (n == 1) {
        rd_step_copy(s, rd_out(0), rd_in(0), 0);
    } else if (me >= 2 * extra) {
        doubling(s, me - extra, p, extra, rd_in(0));
    } else if (me % 2 == 1) {
        rd_step_send(s, rd_in(0), 0, me - 1);
        rd_step_recv(s, rd_out(0), 0, me - 1);
    } else {
        rd_step_recv(s, rd_tmp(HEARD), 0, me + 1);
        rd_sum_begin(&sum, s, 0, SUM);
        rd_sum_add(&sum, rd_in(0));
        rd_sum_add(&sum, rd_tmp(HEARD));
        rd_sum_end(&sum, rd_tmp(SUM));
        doubling(s, me / 2, p, extra, rd_tmp(SUM));
        rd_step_send(s, rd_out(0), 0, me + 1);
    }
}

static void barrier(rd_steps_t *s, int n, int me)
{
    for (int d = 1; d < n; d *= 2) {
        rd_step_send(s, rd_tmp(0), 0, (me + d) % n);
        rd_step_recv(s, rd_tmp(0), 0, rd_mod(me - d, n));
    }
}

static rd_steps_t *emit(const rd_sched_args_t *args)
{
    rd_steps_t *s = rd_steps_create(1);

    if (!s)
        return NULL;
    rd_steps_lane(s, 0);
    if (args->coll == RD_BARRIER)
        barrier(s, args->shape->nranks, args->rank);
    else
        allreduce(s, args->shape->nranks, args->rank);
    return s;
}

/* ---- what it costs ---- */

/* Recursive doubling among the largest power of two of ranks, some of which take part for another rank, too. */
static int work(const rd_count_t *c, rd_work_t *w)
{
    double l = c->rounds_down, players = (double)(1 << (int)l), rest = c->n - players, extra = rest > 0;

    w->chunks = 1;
    switch (c->coll) {
    case RD_ALLREDUCE:
        /* With few pairs, the delays before and after the exchange are not on the same critical path. */
        w->hops = w->again = l + extra + (2 * rest > players);
        w->messages = 2 * (l + extra);
        w->moved = 0.5 + 2 * l + 1.5 * extra;
        w->moved_all = players * (0.5 + 2 * l) + 3.5 * rest;
        w->summed = l + extra;
        w->summed_all = players * l + rest;
        w->received = l + extra;
        w->received_all = players * l + 2 * rest;
        w->leave = c->local * l;
        w->link = w->received;
        return 0;
    case RD_BARRIER:
        w->hops = w->again = c->rounds;
        w->messages = 2 * c->rounds;
        rd_work_alike(w, c->n, c->rounds, c->rounds + 1, 0);
        return 0;
    default:
        return -1;
    }
}

const rd_algo_t rd_algo_rd = {
    .name = "rd",
    .colls = 1u << RD_ALLREDUCE | 1u << RD_BARRIER,
    .excluded = rd_sched_any,
    .emit = emit,
    .work = work,
    .near = RD_PEERS_HALVING,
    .device = {.kernel = RD_KERNEL_PROGRAM, .colls = 1u << RD_ALLREDUCE, .lanes = 1, .channels = 1, .scratch = 2},
};
