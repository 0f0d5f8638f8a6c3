/* binomial: a single binomial tree, for short messages.
 *
 *              0               ranks are numbered from the root on; the parent of v is v without its lowest bit, so the
 *            / | \             subtree of v is v .. v + lowbit(v) - 1
 *           4  2  1
 *          /|  |               broadcast: a parent sends to the largest subtree first; reduce is the mirror image
 *         6 5  3               scatter: a parent sends the blocks of a subtree from the last to the first, and an inner
 *         |                    rank forwards those of other ranks; gather: the reverse, from the first to the last
 *         7
 *
 *                  rounds    messages at the root, bytes         cost
 *     broadcast    log n     log n, N log n                      (alpha + beta N) log n
 *     reduce       log n     log n, N each                       (alpha + (beta + gamma) N) log n
 *     scatter      log n     n-1, (n-1)/n N                      alpha (log n + n-1) + beta N (n-1)/n
 *     gather       log n     n-1, (n-1)/n N                      the same
 *
 * A message is one block, so in gather and scatter the root has as many messages as without a tree. But it has log n
 * connections instead of n-1.
 */
#include "sched/algo/algos.h"

/* Returns one more than the last number in the subtree of v. */
static int subtree_end(int v, int n)
{
    int end = v + (v & -v);

    return v == 0 || end > n ? n : end;
}

/* Returns the child of v in whose subtree j lies. */
static int child_toward(int v, int j)
{
    int d = 1;

    while (2 * d <= j - v)
        d *= 2;
    return v + d;
}

static void broadcast(rd_steps_t *s, int n, int v, int root)
{
    int size = 1;
    rd_fan_t fan;

    if (v != 0)
        rd_step_recv(s, rd_out(0), 0, (v - (v & -v) + root) % n);
    while (v + size < subtree_end(v, n))
        size *= 2;
    rd_fan_begin(&fan, s, v == 0 ? rd_in(0) : rd_out(0), 0);
    for (int d = size / 2; d > 0; d /= 2)
        if (v + d < n)
            rd_fan_add(&fan, (v + d + root) % n);
    rd_fan_end(&fan);
    if (v == 0)
        rd_step_copy(s, rd_out(0), rd_in(0), 0);
}

static void scatter(rd_steps_t *s, int n, int v, int root)
{
    int me = (v + root) % n, parent = (v - (v & -v) + root) % n;

    for (int j = subtree_end(v, n) - 1; j > v; j--) {
        int c = (j + root) % n;

        if (v != 0)
            rd_step_recv(s, rd_tmp(0), c, parent);
        rd_step_send(s, v == 0 ? rd_in(c) : rd_tmp(0), c, (child_toward(v, j) + root) % n);
    }
    if (v == 0)
        rd_step_copy(s, rd_out(me), rd_in(me), me);
    else
        rd_step_recv(s, rd_out(me), me, parent);
}

static void gather(rd_steps_t *s, int n, int v, int root)
{
    int me = (v + root) % n, parent = (v - (v & -v) + root) % n;

    if (v == 0)
        rd_step_copy(s, rd_out(me), rd_in(me), me);
    else
        rd_step_send(s, rd_in(me), me, parent);
    for (int j = v + 1; j < subtree_end(v, n); j++) {
        int c = (j + root) % n;

        rd_step_recv(s, v == 0 ? rd_out(c) : rd_tmp(0), c, (child_toward(v, j) + root) % n);
        if (v != 0)
            rd_step_send(s, rd_tmp(0), c, parent);
    }
}

static rd_steps_t *emit(const rd_sched_args_t *args)
{
    int n = args->shape->nranks, v = rd_mod(args->rank - args->root, n);
    rd_steps_t *s = rd_steps_create(args->coll == RD_BROADCAST || args->coll == RD_REDUCE ? 1 : n);

    if (!s)
        return NULL;
    rd_steps_lane(s, 0);
    switch (args->coll) {
    case RD_SCATTER:
        scatter(s, n, v, args->root);
        return s;
    case RD_GATHER:
        gather(s, n, v, args->root);
        return s;
    case RD_BROADCAST:
        broadcast(s, n, v, args->root);
        return s;
    default:
        broadcast(s, n, v, args->root);
        return rd_mirror(s);
    }
}

/* ---- what it costs ---- */

/* Returns the sum, over all ranks, of the hops from a rank to the root: the number of ones in all binary numbers below
 * n. */
static double hops_to_root(int n)
{
    double all = 0;

    for (int v = 1; v < n; v++)
        all += __builtin_popcount((unsigned)v);
    return all;
}

/* Returns the number of ranks in the largest subtree below the root. */
static double subtree(const rd_count_t *c)
{
    int half = 1 << ((int)c->rounds - 1);

    return c->n - half > half / 2 ? c->n - half : half / 2;
}

static int work(const rd_count_t *c, rd_work_t *w)
{
    w->chunks = 1;
    w->hops = c->rounds_down;
    w->again = 1;
    w->fill = w->hops - 1;
    w->messages = w->link = c->rounds;
    w->leave = c->nnodes;
    switch (c->coll) {
    case RD_BROADCAST:
        w->received = 1;
        w->received_all = c->m;
        w->moved = rd_work_fan(c->rounds);
        w->moved_all = 1.5 * c->n - 1;
        return 0;
    case RD_REDUCE:
        w->received = c->rounds;
        w->received_all = c->m;
        w->moved = rd_work_sum((int)c->rounds + 1, 1);
        w->moved_all = 1.5 * c->m + 1;
        w->summed = c->rounds;
        w->summed_all = c->m;
        return 0;
    case RD_GATHER:
    case RD_SCATTER:
        w->chunks = c->n;
        w->messages = c->m;
        w->link = c->m / c->n;
        w->moved = 1;
        w->moved_all = 1 + hops_to_root(c->n) / c->n;
        w->received = (c->coll == RD_GATHER ? c->m : subtree(c)) / c->n;
        w->received_all = hops_to_root(c->n) / c->n;
        w->leave = (double)(c->n - c->local) / c->n;
        return 0;
    default:
        return -1;
    }
}

const rd_algo_t rd_algo_binomial = {
    .name = "binomial",
    .colls = 1u << RD_BROADCAST | 1u << RD_REDUCE | 1u << RD_GATHER | 1u << RD_SCATTER,
    .excluded = rd_sched_any,
    .emit = emit,
    .work = work,
    .near = RD_PEERS_HALVING,
    .stays = 1u << RD_BROADCAST,
    .device = {.kernel = RD_KERNEL_PROGRAM,
               .colls = 1u << RD_REDUCE | 1u << RD_BROADCAST | 1u << RD_GATHER | 1u << RD_SCATTER,
               .lanes = 1,
               .channels = 1},
};
