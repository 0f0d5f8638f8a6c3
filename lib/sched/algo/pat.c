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
 * The distant dimensions are completed first, until a rank has a blocks; then the a subtrees below these are walked
 * together, depth first. It works for any n. What moves at a time goes to one rank and comes from one rank, so it may
 * go as one message: between nodes, of short blocks, as many as fit a slot (`together`), and a follows from that. With
 * short blocks that is all of them, in log n messages; the longer the blocks, the fewer dimensions are completed first.
 * Reduce_scatter is the mirror image and holds about a log(n/a) partial sums in scratch, each as long as a block, so
 * that all of them fit log(n/a) slots, whatever n is; allreduce joins both.
 *
 *                     messages               bytes sent by a rank   cost
 *     allgather       log a + n/a - 1        (n-1)/n N              alpha (log a + n/a - 1) + beta N (n-1)/n
 *     reduce_scatter  the same               the same               beta + gamma for beta
 *     allreduce       twice                  twice                  the sum
 *
 * Where each block goes alone, because blocks are long or all ranks are on a node, there are n - 1 messages, and
 * `param`, rounded down to a power of two, is the a of their order and of the scratch alone.
 *
 * In each step a rank sends before it receives, and all ranks are at the same step, so one credit suffices. Jeaugey:
 * "PAT: a new algorithm for all-gather and reduce-scatter operations at scale", arXiv 2506.20252.
 */
#include "sched/algo/algos.h"

#define DEFAULT_AGGREGATION 32

typedef struct pat {
    rd_steps_t *s;
    int n, me;
    int together; /* most blocks of a message */
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

/* The step just made is that of block k of a message of `blocks`. */
static void part(pat_t *p, int k, int blocks)
{
    if (blocks > 1)
        rd_step_part(p->s, k + 1 < blocks ? RD_PART_MORE : RD_PART_LAST);
}

/* Moves the offsets first, first + by, ... of one d, in as few messages as may be. */
static void move(pat_t *p, int first, int by)
{
    int left = first < p->n ? (p->n - 1 - first) / by + 1 : 0, blocks;

    for (int j = first; left > 0; j += blocks * by, left -= blocks) {
        blocks = left < p->together ? left : p->together;
        for (int k = 0; k < blocks; k++) {
            give(p, j + k * by);
            part(p, k, blocks);
        }
        copy_own(p);
        for (int k = 0; k < blocks; k++) {
            take(p, j + k * by);
            part(p, k, blocks);
        }
    }
}

/* Returns the d of the last dimension that is completed before the subtrees below it are walked: the least with which
 * no message has more blocks than may go together. If each goes alone, it leaves `param` blocks to walk together. */
static int lowest(int n, int together, int param)
{
    int low = 1, aggregation = param > 0 ? param : DEFAULT_AGGREGATION;

    if (together > 1) {
        while ((n - 1 + (low > 1 ? low : 2) - 1) / (low > 1 ? low : 2) > together)
            low *= 2;
        return low;
    }
    while (low < n)
        low *= 2;
    for (int a = 1; low > 1 && 2 * a <= aggregation; a *= 2)
        low /= 2;
    return low;
}

static rd_steps_t *allgather(const rd_sched_args_t *args)
{
    pat_t p = {NULL, args->shape->nranks, args->rank, args->together > 1 ? args->together : 1, 0};
    int low = lowest(p.n, p.together, args->param), d = 1;

    p.s = rd_steps_create(p.n);
    if (!p.s)
        return NULL;
    rd_steps_lane(p.s, 0);
    while (2 * d < p.n)
        d *= 2;
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
        return rd_mirror(allgather(args));
    default:
        return rd_join(rd_mirror(allgather(args)), allgather(args));
    }
}

/* ---- what it costs ---- */

/* Returns the messages that a rank sends for an allgather: one for each dimension that is completed, and one for each
 * walk below these. */
static double sent(const rd_count_t *c)
{
    int low = lowest(c->n, c->together, c->param);

    if (c->together <= 1)
        return c->m;
    return c->rounds - rd_work_rounds(low) + low - 1;
}

/* Each block takes log n hops, but a rank waits for the messages one after the other. */
static int work(const rd_count_t *c, rd_work_t *w)
{
    double m = c->m, n = c->n, messages = sent(c);

    w->chunks = c->n;
    w->hops = w->again = messages;
    w->messages = 2 * messages;
    w->blocks = messages > 0 ? m / messages : 1;
    w->link = m / n;
    w->leave = rd_work_spread(c, 1 / n);
    w->least = messages > c->rounds ? c->rounds / messages : 1;
    switch (c->coll) {
    case RD_ALLGATHER:
        rd_work_alike(w, c->n, m / n, (1 + 2 * m) / n, 0);
        return 0;
    case RD_REDUCE_SCATTER:
        rd_work_alike(w, c->n, m / n, 2.5 * m / n, m / n);
        return 0;
    case RD_ALLREDUCE:
        w->hops = w->again = 2 * messages;
        w->messages = 4 * messages;
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
    .joins = true,
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
