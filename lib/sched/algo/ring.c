/* ring: each rank exchanges data with its two neighbours only.
 *
 *         0 ──▶ 1          allgather: blocks travel to the right; rank r sends its own, then forwards what comes
 *         ▲     │          reduce_scatter: its mirror image, in which partial sums travel to the left
 *         │     ▼          allreduce: both, joined
 *         3 ◀── 2          broadcast: a chain from the root; slices of the message follow each other
 *                          reduce: its mirror image
 *
 *                     steps             bytes sent by a rank   cost
 *     allgather       n-1               (n-1)/n N              (alpha + beta N/n) (n-1)
 *     reduce_scatter  n-1               (n-1)/n N              (alpha + (beta + gamma) N/n) (n-1)
 *     allreduce       2(n-1)            2 (n-1)/n N            2 alpha (n-1) + (2 beta + gamma) N (n-1)/n
 *     broadcast       n-2+slices        N                      alpha (n-2+slices) + beta N (1 + (n-2)/slices)
 *     reduce          n-2+slices        N                      the same, beta + gamma for beta
 *
 * A rank sends the fewest bytes possible, and only to its neighbour, at a latency that grows with n. As a block travels
 * around the ring to its owner, each rank adds its contribution once, so all ranks see the same bits. Fused and folded,
 * a rank's program has five steps for any n, as long as the ring follows the numbers of the ranks; that of an allreduce
 * has them in any order (sched/visits.h), because its chunks have no owners.
 */
#include "sched/algo/algos.h"

/* The order of the ring: all ranks of a node, then those of the next node. So each node has one incoming and one
 * outgoing connection, however ranks are numbered. */
static int next_of(const rd_shape_t *shape, int rank)
{
    int n = shape->nranks, at = rank + 1;

    if (!shape->node || shape->nnodes < 2)
        return at % n;
    while (at < n && shape->node[at] != shape->node[rank])
        at++;
    if (at < n)
        return at;
    for (at = 0; shape->node[at] != (shape->node[rank] + 1) % shape->nnodes; at++)
        continue;
    return at;
}

static int prev_of(const rd_shape_t *shape, int rank)
{
    int n = shape->nranks, at = rank - 1;

    if (!shape->node || shape->nnodes < 2)
        return (at + n) % n;
    while (at >= 0 && shape->node[at] != shape->node[rank])
        at--;
    if (at >= 0)
        return at;
    for (at = n - 1; (shape->node[at] + 1) % shape->nnodes != shape->node[rank]; at--)
        continue;
    return at;
}

static rd_steps_t *allgather(const rd_sched_args_t *args)
{
    int n = args->shape->nranks, me = args->rank, c = me;
    int next = next_of(args->shape, me), prev = prev_of(args->shape, me);
    rd_steps_t *s = rd_steps_create(n);

    if (!s)
        return NULL;
    rd_steps_lane(s, 0);
    if (n > 1)
        rd_step_send(s, rd_in(me), me, next);
    rd_step_copy(s, rd_out(me), rd_in(me), me);
    for (int k = 1; k < n; k++) {
        c = prev_of(args->shape, c);
        rd_step_recv(s, rd_out(c), c, prev);
        if (k < n - 1)
            rd_step_send(s, rd_out(c), c, next);
    }
    return s;
}

static rd_steps_t *broadcast(const rd_sched_args_t *args)
{
    int me = args->rank, next = next_of(args->shape, me);
    rd_steps_t *s = rd_steps_create(1);

    if (!s)
        return NULL;
    rd_steps_lane(s, 0);
    if (me != args->root)
        rd_step_recv(s, rd_out(0), 0, prev_of(args->shape, me));
    if (next != args->root)
        rd_step_send(s, me == args->root ? rd_in(0) : rd_out(0), 0, next);
    if (me == args->root)
        rd_step_copy(s, rd_out(0), rd_in(0), 0);
    return s;
}

static rd_steps_t *emit(const rd_sched_args_t *args)
{
    switch (args->coll) {
    case RD_ALLGATHER:
        return allgather(args);
    case RD_REDUCE_SCATTER:
        return rd_mirror(allgather(args));
    case RD_ALLREDUCE:
        return rd_join(rd_mirror(allgather(args)), allgather(args));
    case RD_BROADCAST:
        return broadcast(args);
    default:
        return rd_mirror(broadcast(args));
    }
}

/* ---- what it costs ---- */

/* A chain from the root, or to it. */
static int rooted_work(const rd_count_t *c, rd_work_t *w)
{
    double m = c->m;

    w->chunks = 1;
    w->hops = m;
    w->again = 1;
    w->fill = m - 1;
    w->received = 1;
    w->received_all = m;
    w->messages = m > 1 ? 2 : 1;
    w->leave = w->link = 1;
    switch (c->coll) {
    case RD_BROADCAST:
        w->moved = c->n > 2 ? 1.5 : 1;
        w->moved_all = 1 + 1.5 * (m - 1) + 1;
        return 0;
    case RD_REDUCE:
        w->moved = 1.5;
        w->summed = 1;
        w->summed_all = m;
        w->moved_all = 1 + 1.5 * m;
        return 0;
    default:
        return -1;
    }
}

static int work(const rd_count_t *c, rd_work_t *w)
{
    double m = c->m, n = c->n;

    w->chunks = c->n;
    w->hops = w->again = m;
    w->messages = 2 * m;
    w->leave = w->link = m / n;
    switch (c->coll) {
    case RD_ALLGATHER:
        rd_work_alike(w, c->n, m / n, (2 + 1.5 * (m - 1) + 1) / n, 0);
        return 0;
    case RD_REDUCE_SCATTER:
        rd_work_alike(w, c->n, m / n, (1 + 1.5 * m) / n, m / n);
        return 0;
    case RD_ALLREDUCE:
        w->hops = w->again = 2 * m;
        w->messages = 4 * m;
        w->leave = w->link = 2 * m / n;
        rd_work_alike(w, c->n, 2 * m / n, (1 + 1.5 * (m - 1) + 2 + 1.5 * (m - 1) + 1) / n, m / n);
        return 0;
    default:
        return rooted_work(c, w);
    }
}

const rd_algo_t rd_algo_ring = {
    .name = "ring",
    .colls = 1u << RD_ALLGATHER | 1u << RD_REDUCE_SCATTER | 1u << RD_ALLREDUCE | 1u << RD_BROADCAST | 1u << RD_REDUCE,
    .excluded = rd_sched_any,
    .emit = emit,
    .work = work,
    .near = RD_PEERS_NEIGHBOURS,
    .ordered = true,
    .device = {.kernel = RD_KERNEL_RING, .colls = 1u << RD_ALLREDUCE | 1u << RD_REDUCE_SCATTER | 1u << RD_ALLGATHER},
    .nccl = "Ring",
};
