/* pat: parallel aggregated trees, which is Bruck's algorithm with its dimensions reversed and its buffers bounded.
 *
 *     Block b reaches rank b + j along the binomial tree over offsets j, in which a parent is j without its lowest bit:
 *
 *              0                      distant ranks come first, when there is little to send, near ones last
 *            / | \
 *           4  2  1                   d = 4:  send own                  get offset 4
 *          /|  |                      d = 2:  send own, 4               get 2, 6
 *         6 5  3                      d = 1:  send own, 4, 2, 6         get 1, 5, 3, 7
 *         |
 *         7                           all ranks walk the same offsets in the same order: n trees in parallel
 *
 * `param` is the aggregation a, rounded down to a power of two. The distant dimensions are completed first, until a
 * rank has a blocks; then the a subtrees below these are walked together, depth first. It works for any n.
 * Reduce_scatter is the mirror image and holds about a log(n/a) partial sums in scratch; allreduce joins both.
 *
 *                     rounds   bytes sent by a rank   cost
 *     allgather       n - 1    (n-1)/n N              alpha (n - 1) + beta N (n-1)/n
 *     reduce_scatter  n - 1    the same               beta + gamma for beta
 *     allreduce       2n - 2   twice                  the sum
 *
 * Each block is a message of its own, so the aggregation decides the order of the blocks and the scratch alone, and
 * does not save messages: with blocks that go together there would be log a + n/a - 1 rounds. Only between nodes do the
 * two blocks of a step that moves two go as one message.
 *
 * In each step a rank sends before it receives, and all ranks are at the same step, so one credit suffices, or two
 * where a step moves two blocks. Jeaugey: "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
 * arXiv 2506.20252.
 */
#include "sched/algo/algos.h"

#define DEFAULT_AGGREGATION 32

typedef struct pat {
    rd_steps_t *s;
    int n, me;
    int pairs;  /* a step moves two blocks */
    int copied; /* this rank's block is in OUT: it is copied after the first send, so that no rank waits for the copy */
} pat_t;

static void copy_own(pat_t *p)
{
    if (!p->copied)
        rd_step_copy(p->s, rd_out(p->me), rd_in(p->me), p->me);
    p->copied = 1;
}

/* Offset j moves: this rank sends the block for the rank d above, */
static void give(pat_t *p, int j)
{
    int d = j & -j, parent = j - d, out = rd_mod(p->me - parent, p->n);

    rd_step_send(p->s, parent == 0 ? rd_in(p->me) : rd_out(out), out, (p->me + d) % p->n);
}

/* and receives the same offset's block from the rank d below. */
static void take(pat_t *p, int j)
{
    int d = j & -j, in = rd_mod(p->me - j, p->n);

    rd_step_recv(p->s, rd_out(in), in, rd_mod(p->me - d, p->n));
}

/* Moves the offsets first, first + by, ... of one d. They move by twos if there are credits for that, because the
 * network carries two as one message. */
static void move(pat_t *p, int first, int by)
{
    for (int j = first; j < p->n; j += p->pairs ? 2 * by : by) {
        int two = p->pairs && j + by < p->n;

        give(p, j);
        if (two)
            give(p, j + by);
        copy_own(p);
        take(p, j);
        if (two)
            take(p, j + by);
    }
}

static rd_steps_t *allgather(const rd_sched_args_t *args)
{
    pat_t p = {NULL, args->shape->nranks, args->rank, args->pairs, 0};
    int aggregation = args->param > 0 ? args->param : DEFAULT_AGGREGATION, low = 1, d;

    p.s = rd_steps_create(p.n);
    if (!p.s)
        return NULL;
    rd_steps_lane(p.s, 0);
    while (low < p.n)
        low *= 2;
    d = low / 2;
    for (int a = 1; low > 1 && 2 * a <= aggregation; a *= 2)
        low /= 2;
    for (; d >= low; d /= 2)
        move(&p, d, 2 * d);
    for (int i = 1; i < low; i++)
        move(&p, i, low);
    copy_own(&p); /* for a single rank, which sends nothing */
    return p.s;
}

static rd_steps_t *emit(const rd_sched_args_t *args)
{
    switch (args->coll) {
    case RD_ALLGATHER:
        return allgather(args);
    case RD_REDUCE_SCATTER:
        return rd_mirror_of(allgather(args), args);
    default:
        return rd_join(rd_mirror_of(allgather(args), args), allgather(args));
    }
}

/* ---- what it costs ---- */

/* Each block takes log n hops, but a rank waits for the blocks one after the other. */
static int work(const rd_count_t *c, rd_work_t *w)
{
    double m = c->m, n = c->n, twos = 0;

    for (int d = 1; d < c->n && c->pairs; d *= 2)
        twos += (c->n - 1 + d) / (2 * d) / 2;
    w->chunks = c->n;
    w->hops = w->again = m - twos;
    w->messages = 2 * m;
    w->joined = 2 * twos;
    w->link = m / n;
    w->leave = rd_work_spread(c, 1 / n);
    w->least = c->rounds / m;
    switch (c->coll) {
    case RD_ALLGATHER:
        rd_work_alike(w, c->n, m / n, (1 + 2 * m) / n, 0);
        return 0;
    case RD_REDUCE_SCATTER:
        rd_work_alike(w, c->n, m / n, 2.5 * m / n, m / n);
        return 0;
    case RD_ALLREDUCE:
        w->hops = w->again = 2 * (m - twos);
        w->messages = 4 * m;
        w->joined *= 1.5; /* as measured; by a factor of 2, pat would take over from rd too early */
        w->leave *= 2;
        w->link *= 2;
        rd_work_alike(w, c->n, 2 * m / n, (4.5 * m - 0.5) / n, m / n);
        return 0;
    default:
        return -1;
    }
}

const rd_algo_t rd_algo_pat = {
    .name = "pat",
    .colls = 1u << RD_ALLGATHER | 1u << RD_REDUCE_SCATTER | 1u << RD_ALLREDUCE,
    .excluded = rd_sched_any,
    .emit = emit,
    .work = work,
    .near = RD_PEERS_SPREAD,
    .device = {.kernel = RD_KERNEL_PROGRAM,
               .colls = 1u << RD_ALLREDUCE | 1u << RD_REDUCE_SCATTER | 1u << RD_ALLGATHER,
               .lanes = 1,
               .channels = 1,
               .scratch = 5,
               .param = 4 /* partial sums lie in shared memory, which has no room for more */},
    .nccl = "PAT",
};
