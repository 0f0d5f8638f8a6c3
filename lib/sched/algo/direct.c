/* direct: every block goes directly from the rank that has it to the ranks that need it.
 *
 *     allgather, rank 0 of 4          reduce_scatter, rank 0          alltoall, round k
 *         IN 0 ──▶ 1, 2, 3                IN 1 ──▶ 1                      IN r+k ──▶ r+k
 *         OUT 1 ◀── 1                     IN 2 ──▶ 2                      OUT r-k ◀── r-k
 *         OUT 2 ◀── 2                     IN 3 ──▶ 3
 *         OUT 3 ◀── 3                     OUT 0 ◀── IN 0 + 1 + 2 + 3
 *
 *                     steps     bytes sent by a rank      cost (N bytes: the whole of the operation)
 *     allgather       1 round   (n-1)/n N                 alpha (n-1) + beta N (n-1)/n
 *     reduce_scatter  1         (n-1)/n N                 alpha (n-1) + (beta + gamma) N (n-1)/n
 *     alltoall        1         (n-1)/n N                 alpha (n-1) + beta N (n-1)/n
 *     broadcast       1         (n-1) N at the root       alpha (n-1) + beta N (n-1)
 *     reduce          1         N, not at the root        alpha (n-1) + (beta + gamma) N (n-1) at the root
 *     gather          1         N/n, not at the root      (alpha + beta N/n) (n-1) at the root
 *     scatter         1         N/n (n-1) at the root     (alpha + beta N/n) (n-1) at the root
 *     barrier         1         n-1 messages of a byte    alpha (n-1)
 *
 * A rank visits its peers in order from its own number on, so that no two ranks begin with the same peer. Sums are made
 * in the order of the ranks. Grouped sends and receives run an all-to-all, too. Each of its messages has a lane of its
 * own, because only the two ranks at its ends know how long it is, and whether it exists at all.
 */
#include "sched/algo/algos.h"

static void allgather(rd_steps_t *s, int n, int me)
{
    rd_fan_t fan;

    rd_fan_begin(&fan, s, rd_in(me), me);
    for (int k = 1; k < n; k++)
        rd_fan_add(&fan, (me + k) % n);
    rd_fan_end(&fan);
    rd_step_copy(s, rd_out(me), rd_in(me), me);
    for (int k = 1; k < n; k++)
        rd_step_recv(s, rd_out((me + n - k) % n), (me + n - k) % n, (me + n - k) % n);
}

static void reduce_scatter(rd_steps_t *s, int n, int me)
{
    rd_sum_t sum;

    for (int k = 1; k < n; k++)
        rd_step_send(s, rd_in((me + k) % n), (me + k) % n, (me + k) % n);
    rd_sum_begin(&sum, s, me, 0);
    for (int r = 0; r < n; r++)
        rd_sum_add(&sum, r == me ? rd_in(me) : rd_peer(r));
    rd_sum_end(&sum, rd_out(me));
}

static void broadcast(rd_steps_t *s, int n, int me, int root)
{
    rd_fan_t fan;

    if (me != root) {
        rd_step_recv(s, rd_out(0), 0, root);
        return;
    }
    rd_fan_begin(&fan, s, rd_in(0), 0);
    for (int k = 1; k < n; k++)
        rd_fan_add(&fan, (me + k) % n);
    rd_fan_end(&fan);
    rd_step_copy(s, rd_out(0), rd_in(0), 0);
}

static void reduce(rd_steps_t *s, int n, int me, int root)
{
    rd_sum_t sum;

    if (me != root) {
        rd_step_send(s, rd_in(0), 0, root);
        return;
    }
    rd_sum_begin(&sum, s, 0, 0);
    for (int r = 0; r < n; r++)
        rd_sum_add(&sum, r == me ? rd_in(0) : rd_peer(r));
    rd_sum_end(&sum, rd_out(0));
}

static void gather(rd_steps_t *s, int n, int me, int root)
{
    if (me != root) {
        rd_step_send(s, rd_in(me), me, root);
        return;
    }
    rd_step_copy(s, rd_out(me), rd_in(me), me);
    for (int k = 1; k < n; k++)
        rd_step_recv(s, rd_out((me + k) % n), (me + k) % n, (me + k) % n);
}

static void scatter(rd_steps_t *s, int n, int me, int root)
{
    if (me != root) {
        rd_step_recv(s, rd_out(me), me, root);
        return;
    }
    for (int k = 1; k < n; k++)
        rd_step_send(s, rd_in((me + k) % n), (me + k) % n, (me + k) % n);
    rd_step_copy(s, rd_out(me), rd_in(me), me);
}

static void alltoall(rd_steps_t *s, int n, int me)
{
    rd_steps_lane(s, RD_CHANNEL_P2P);
    rd_step_copy(s, rd_out(me), rd_in(me), me);
    for (int k = 1; k < n; k++) {
        int to = (me + k) % n, from = (me + n - k) % n;

        rd_steps_lane(s, RD_CHANNEL_P2P);
        rd_step_send(s, rd_in(to), to, to);
        rd_steps_lane(s, RD_CHANNEL_P2P);
        rd_step_recv(s, rd_out(from), from, from);
    }
}

static void barrier(rd_steps_t *s, int n, int me)
{
    rd_fan_t fan;

    rd_fan_begin(&fan, s, rd_tmp(0), 0);
    for (int k = 1; k < n; k++)
        rd_fan_add(&fan, (me + k) % n);
    rd_fan_end(&fan);
    for (int k = 1; k < n; k++)
        rd_step_recv(s, rd_tmp(1), 0, (me + n - k) % n);
}

static int chunks(const rd_sched_args_t *args)
{
    switch (args->coll) {
    case RD_BROADCAST:
    case RD_REDUCE:
    case RD_BARRIER:
        return 1;
    default:
        return args->shape->nranks;
    }
}

static void emit_lane(rd_steps_t *s, const rd_sched_args_t *args)
{
    int n = args->shape->nranks;

    rd_steps_lane(s, 0);
    switch (args->coll) {
    case RD_ALLGATHER:
        allgather(s, n, args->rank);
        break;
    case RD_REDUCE_SCATTER:
        reduce_scatter(s, n, args->rank);
        break;
    case RD_BROADCAST:
        broadcast(s, n, args->rank, args->root);
        break;
    case RD_REDUCE:
        reduce(s, n, args->rank, args->root);
        break;
    case RD_GATHER:
        gather(s, n, args->rank, args->root);
        break;
    case RD_SCATTER:
        scatter(s, n, args->rank, args->root);
        break;
    default:
        barrier(s, n, args->rank);
        break;
    }
}

static rd_steps_t *emit(const rd_sched_args_t *args)
{
    rd_steps_t *s = rd_steps_create(chunks(args));

    if (!s)
        return NULL;
    if (args->coll == RD_ALLTOALL)
        alltoall(s, args->shape->nranks, args->rank);
    else
        emit_lane(s, args);
    return s;
}

/* ---- what it costs ---- */

/* The root sends a message to every other rank, or receives one from it. */
static int rooted_work(const rd_count_t *c, rd_work_t *w)
{
    double m = c->m, n = c->n;

    w->messages = m;
    w->link = m;
    w->leave = n - c->local;
    switch (c->coll) {
    case RD_BROADCAST:
        w->chunks = 1;
        w->received = 1;
        w->received_all = m;
        w->moved = rd_work_fan(m);
        w->moved_all = w->moved + m;
        rd_work_once(w, m, 1, 1);
        return 0;
    case RD_REDUCE:
        w->chunks = 1;
        w->received = w->received_all = m;
        w->moved = rd_work_sum(c->n, 1);
        w->summed = w->summed_all = m;
        w->moved_all = w->moved + m;
        return 0;
    case RD_GATHER:
    case RD_SCATTER:
        w->received = (c->coll == RD_GATHER ? m : 1) / n;
        w->received_all = m / n;
        w->moved = 1;
        w->moved_all = 1 + m / n;
        w->link = m / n;
        w->leave = (n - c->local) / n;
        return 0;
    default:
        return -1;
    }
}

static int work(const rd_count_t *c, rd_work_t *w)
{
    double m = c->m, n = c->n;

    w->chunks = c->n;
    w->hops = w->again = 1;
    w->messages = 2 * m;
    w->link = m / n;
    w->leave = rd_work_spread(c, 1 / n);
    switch (c->coll) {
    case RD_ALLGATHER:
        rd_work_alike(w, c->n, m / n, (rd_work_fan(m) + 1 + m) / n, 0);
        rd_work_once(w, m, 1 / n, n);
        return 0;
    case RD_REDUCE_SCATTER:
        rd_work_alike(w, c->n, m / n, (m + rd_work_sum(c->n, 1)) / n, m / n);
        return 0;
    case RD_ALLTOALL:
        rd_work_alike(w, c->n, m / n, (1 + 2 * m) / n, 0);
        return 0;
    case RD_BARRIER:
        w->chunks = 1;
        rd_work_alike(w, c->n, m, rd_work_fan(m) + m, 0);
        rd_work_once(w, m, 1, n);
        w->link = m;
        w->leave = 0;
        return 0;
    default:
        return rooted_work(c, w);
    }
}

const rd_algo_t rd_algo_direct = {
    .name = "direct",
    .colls = 1u << RD_ALLGATHER | 1u << RD_REDUCE_SCATTER | 1u << RD_BROADCAST | 1u << RD_REDUCE | 1u << RD_GATHER |
             1u << RD_SCATTER | 1u << RD_ALLTOALL | 1u << RD_BARRIER,
    .excluded = rd_sched_any,
    .emit = emit,
    .work = work,
    .near = RD_PEERS_ALL,
    .stays = 1u << RD_BROADCAST | 1u << RD_ALLGATHER | 1u << RD_REDUCE_SCATTER | 1u << RD_REDUCE | 1u << RD_ALLTOALL |
             1u << RD_GATHER | 1u << RD_SCATTER,
    .board = 1u << RD_BROADCAST | 1u << RD_ALLGATHER | 1u << RD_REDUCE_SCATTER | 1u << RD_SCATTER | 1u << RD_BARRIER,
};
