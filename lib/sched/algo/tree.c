/* tree: two binary trees, half of the message each, so that the inner ranks of one are leaves of the other.
 *
 *     tree 0, x = 1..7        4                 tree 1 of an even count: mirrored, x -> m+1-x
 *                           /   \                      of an odd one: shifted, x -> x+1
 *                          2     6
 *                         / \   / \             chunk t travels in tree t, on channel t
 *                        1   3 5   7
 *
 * Ranks are numbered in order (left subtree, the rank itself, right subtree): odd numbers are leaves, and the sum of
 * the left subtree, the own contribution and the right subtree keeps the order in which ranks are visited. In an
 * allreduce, each tree spans all n ranks; the phase up the tree and the phase down are lanes of their own, and the top
 * of a tree sums and sends the sum down in one step. In a broadcast, each tree spans the n-1 other ranks, and the root
 * is the parent of both tops; reduce is its mirror image.
 *
 *                  steps                      bytes sent by a rank    cost, S slices of a chunk
 *     broadcast    log n + S                  N (an inner rank)       alpha (log n + S) + beta N (1 + log n / S)
 *     reduce       log n + S                  N/2 a tree              the same, beta + gamma for beta
 *     allreduce    2 log n + S                3/2 N                   alpha (2 log n + S) + (2 beta + gamma) N
 *
 * It has the full bandwidth at a latency of log n. Sanders, Speck, Traff: "Two-tree algorithms for full bandwidth
 * broadcast, reduction and scan", Parallel Computing 35 (2009).
 */
#include "sched/algo/algos.h"

/* A rank's parent and children in one tree over the numbers 1..m; 0: there is none. */
typedef struct tree_rank {
    int up, left, right;
} tree_rank_t;

static tree_rank_t in_order(int m, int x)
{
    int bit = x & -x, up = (x ^ bit) | bit << 1;
    tree_rank_t p = {up <= m ? up : x ^ bit, bit > 1 ? x - bit / 2 : 0, 0};

    for (int b = bit / 2; b > 0 && p.right == 0; b /= 2)
        if (x + b <= m)
            p.right = x + b;
    return p;
}

/* Maps numbers to those of the second tree and back. Mirroring is its own inverse; shifting is by 1 there, and by m-1
 * back. */
static int turn(int m, int x, int by)
{
    if (x == 0)
        return 0;
    return m % 2 == 0 ? m + 1 - x : (x - 1 + by) % m + 1;
}

static tree_rank_t find_node(int m, int x, int tree)
{
    tree_rank_t p;

    if (tree == 0)
        return in_order(m, x);
    p = in_order(m, turn(m, x, 1));
    p = (tree_rank_t){turn(m, p.up, m - 1), turn(m, p.left, m - 1), turn(m, p.right, m - 1)};
    return p;
}

/* Returns the top of a tree. */
static int find_top(int m, int tree)
{
    int top = 1;

    while (2 * top <= m)
        top *= 2;
    return tree == 0 ? top : turn(m, top, m - 1);
}

static void hand_down(rd_steps_t *s, tree_rank_t p, int tree)
{
    rd_fan_t fan;

    rd_fan_begin(&fan, s, rd_out(tree), tree);
    if (p.left > 0)
        rd_fan_add(&fan, p.left - 1);
    if (p.right > 0)
        rd_fan_add(&fan, p.right - 1);
    rd_fan_end(&fan);
}

static rd_steps_t *allreduce(int n, int me)
{
    rd_steps_t *s = rd_steps_create(2);

    for (int tree = 0; tree < 2 && s; tree++) {
        tree_rank_t p = find_node(n, me + 1, tree);
        rd_sum_t sum;

        rd_steps_lane(s, tree);
        rd_sum_begin(&sum, s, tree, 0);
        if (p.left > 0)
            rd_sum_add(&sum, rd_peer(p.left - 1));
        rd_sum_add(&sum, rd_in(tree));
        if (p.right > 0)
            rd_sum_add(&sum, rd_peer(p.right - 1));
        rd_sum_end(&sum, p.up > 0 ? rd_peer(p.up - 1) : rd_out(tree));
        if (p.up > 0) {
            rd_steps_lane(s, tree);
            rd_step_recv(s, rd_out(tree), tree, p.up - 1);
        }
        hand_down(s, p, tree);
    }
    return s;
}

/* The other ranks are numbered from the root on: x is rank - root, modulo n. */
static rd_steps_t *broadcast(int n, int me, int root)
{
    rd_steps_t *s = rd_steps_create(2);
    int m = n - 1, x = rd_mod(me - root, n);

    for (int tree = 0; tree < 2 && s; tree++) {
        tree_rank_t p;

        rd_steps_lane(s, tree);
        if (x == 0) {
            if (m > 0)
                rd_step_send(s, rd_in(tree), tree, (root + find_top(m, tree)) % n);
            rd_step_copy(s, rd_out(tree), rd_in(tree), tree);
            continue;
        }
        p = find_node(m, x, tree);
        rd_step_recv(s, rd_out(tree), tree, (root + p.up) % n);
        p.left = p.left > 0 ? (root + p.left) % n + 1 : 0;
        p.right = p.right > 0 ? (root + p.right) % n + 1 : 0;
        hand_down(s, p, tree);
    }
    return s;
}

static rd_steps_t *emit(const rd_sched_args_t *args)
{
    int n = args->shape->nranks;

    switch (args->coll) {
    case RD_ALLREDUCE:
        return allreduce(n, args->rank);
    case RD_BROADCAST:
        return broadcast(n, args->rank, args->root);
    default:
        return rd_mirror(broadcast(n, args->rank, args->root));
    }
}

/* ---- what it costs ---- */

/* There are two trees, of half the bytes each. A rank is an inner node of one of them, where it has up to two children,
 * and a leaf of the other. With two or three ranks, no rank has two children. */
static int work(const rd_count_t *c, rd_work_t *w)
{
    double children = c->n > 3 ? 2 : c->n > 2 ? 1.5 : 1;

    w->chunks = 2;
    w->again = 1;
    w->leave = 2;
    w->least = c->n > 3 ? 0.75 : 0; /* those of an inner node of the one tree that has data left */
    switch (c->coll) {
    case RD_BROADCAST:
    case RD_REDUCE:
        w->hops = c->rounds;
        w->mutual = c->n > 2;
        w->link = 1;
        w->fill = c->rounds - 1;
        w->messages = 2 * children;
        w->received = 1;
        w->received_all = c->m;
        w->moved = c->coll == RD_REDUCE || c->n > 3 ? 1.5 : c->n > 2 ? 1.25 : 1;
        w->moved_all = 1.5 * c->m + (c->coll == RD_REDUCE ? 1 : 0.5);
        w->summed = c->coll == RD_REDUCE;
        w->summed_all = w->summed * c->m;
        return 0;
    case RD_ALLREDUCE:
        w->hops = 2 * c->rounds_down;
        w->fill = w->hops - 1;
        w->messages = 4 * children;
        w->received = children;
        w->received_all = 2 * c->m;
        w->moved = 1 + children;
        w->summed = c->n > 2 ? 1 : 0.5;
        w->moved_all = 3 * c->m + 1;
        w->summed_all = c->m;
        w->leave = 4;
        w->link = c->n > 2 ? 2 : 1; /* an inner rank of one tree sends up and twice down, and up in the other one */
        return 0;
    default:
        return -1;
    }
}

const rd_algo_t rd_algo_tree = {
    .name = "tree",
    .colls = 1u << RD_ALLREDUCE | 1u << RD_BROADCAST | 1u << RD_REDUCE,
    .excluded = rd_sched_any,
    .emit = emit,
    .work = work,
    .near = RD_PEERS_HALVING,
    .ordered = true,
    .device = {.kernel = RD_KERNEL_PROGRAM,
               .colls = 1u << RD_ALLREDUCE | 1u << RD_REDUCE | 1u << RD_BROADCAST,
               .lanes = 4,
               .channels = 2},
    .nccl = "Tree",
};
