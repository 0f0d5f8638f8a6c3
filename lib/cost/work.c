/* The counts of each algorithm; see work.h. n ranks, m = n - 1, L the rounds of halving, N the operation's bytes.
 * The counts are those of the compiled programs, fused: test/cost/model.c compares them. The root's copy of its own in a
 * broadcast is not counted: as a rule it is in place. A new algorithm needs one function here; without it it is used
 * only where it is forced.
 *
 *                           hops      moved by the busiest rank      summed
 *     oneshot  allreduce    1         n + 1/2                        m
 *     twoshot  allreduce    2         (3n - 2)/n                     m/n
 *     ring     allreduce    2m        (3n - 2)/n                     m/n
 *     rd       allreduce    L         2.5 L                          L
 *     tree     allreduce    2 L       about 3                        1
 *     direct   broadcast    1         n/2 + 1                        -
 *     ring     broadcast    m         1.5                            -
 *     binomial broadcast    L         L/2 + 1                        -
 */
#include "cost/work.h"

#include <math.h>
#include <string.h>

/* ---- what steps count ---- */

static double rounds(int n)
{
    int l = 0;

    while (1 << l < n)
        l++;
    return l;
}

/* A chunk sent to m peers: one read a step of at most RD_MAX_ENDS stores. */
static double fan(double m)
{
    return (m + (double)(((int)m + RD_MAX_ENDS - 1) / RD_MAX_ENDS)) / 2;
}

/* n sources into d destinations; what a step cannot take goes through a partial sum that is written and read. */
static double sum(int n, double d)
{
    int more = n > RD_MAX_ENDS ? (n - 2) / (RD_MAX_ENDS - 1) : 0;

    return (n + d) / 2 + more;
}

/* Every rank does the same. */
static void alike(rd_work_t *w, int n, double received, double moved, double summed)
{
    w->received = received;
    w->received_all = n * received;
    w->moved = moved;
    w->summed = summed;
    w->moved_all = n * moved;
    w->summed_all = n * summed;
}

/* ---- one function an algorithm ---- */

typedef struct counted {
    const rd_cost_env_t *env;
    rd_coll_t coll;
    int n, param;
    int pairs;                     /* blocks that go the same way move by twos: see sched/algo/pat.c */
    double m, rounds, rounds_down; /* log2 n, rounded up and down */
} counted_t;

/* Each of a node's ranks sends `each` bytes to each rank of other nodes. */
static double spread(const counted_t *c, double each)
{
    return c->env->local * (double)(c->n - c->env->local) * each;
}

static int direct(const counted_t *c, rd_work_t *w)
{
    double m = c->m, n = c->n;

    w->chunks = c->n;
    w->hops = w->again = 1;
    w->messages = 2 * m;
    w->leave = spread(c, 1 / n);
    switch (c->coll) {
    case RD_ALLGATHER:
        alike(w, c->n, m / n, (fan(m) + 1 + m) / n, 0);
        return 0;
    case RD_REDUCE_SCATTER:
        alike(w, c->n, m / n, (m + sum(c->n, 1)) / n, m / n);
        return 0;
    case RD_ALLTOALL:
        alike(w, c->n, m / n, (1 + 2 * m) / n, 0);
        return 0;
    case RD_BARRIER:
        w->chunks = 1;
        alike(w, c->n, m, fan(m) + m, 0);
        w->leave = 0;
        return 0;
    case RD_BROADCAST:
        w->chunks = 1;
        w->received = 1;
        w->received_all = m;
        w->moved = fan(m);
        w->moved_all = w->moved + m;
        w->leave = n - c->env->local;
        break;
    case RD_REDUCE:
        w->chunks = 1;
        w->received = w->received_all = m;
        w->moved = sum(c->n, 1);
        w->summed = w->summed_all = m;
        w->moved_all = w->moved + m;
        w->leave = n - c->env->local;
        break;
    case RD_GATHER:
    case RD_SCATTER:
        w->received = (c->coll == RD_GATHER ? m : 1) / n;
        w->received_all = m / n;
        w->moved = 1;
        w->moved_all = 1 + m / n;
        w->leave = (n - c->env->local) / n;
        break;
    default:
        return -1;
    }
    w->messages = m;
    return 0;
}

static int oneshot(const counted_t *c, rd_work_t *w)
{
    w->chunks = 1;
    w->hops = w->again = 1;
    w->messages = 2 * c->m;
    alike(w, c->n, c->m, fan(c->m) + sum(c->n, 1), c->m);
    w->leave = spread(c, 1);
    return 0;
}

static int twoshot(const counted_t *c, rd_work_t *w)
{
    double n = c->n;

    w->chunks = c->n;
    w->hops = w->again = 2;
    w->messages = 4 * c->m;
    w->least = 0.5;
    alike(w, c->n, 2 * c->m / n, (c->m + sum(c->n, 1 + c->m) + c->m) / n, c->m / n);
    w->leave = spread(c, 2 / n);
    return 0;
}

static int ring(const counted_t *c, rd_work_t *w)
{
    double m = c->m, n = c->n;

    w->chunks = c->n;
    w->hops = w->again = m;
    w->messages = 2 * m;
    w->leave = m / n;
    switch (c->coll) {
    case RD_ALLGATHER:
        alike(w, c->n, m / n, (2 + 1.5 * (m - 1) + 1) / n, 0);
        return 0;
    case RD_REDUCE_SCATTER:
        alike(w, c->n, m / n, (1 + 1.5 * m) / n, m / n);
        return 0;
    case RD_ALLREDUCE:
        w->hops = w->again = 2 * m;
        w->messages = 4 * m;
        w->leave = 2 * m / n;
        alike(w, c->n, 2 * m / n, (1 + 1.5 * (m - 1) + 2 + 1.5 * (m - 1) + 1) / n, m / n);
        return 0;
    case RD_BROADCAST:
        w->moved = c->n > 2 ? 1.5 : 1;
        w->moved_all = 1 + 1.5 * (m - 1) + 1;
        break;
    case RD_REDUCE:
        w->moved = 1.5;
        w->summed = 1;
        w->summed_all = m;
        w->moved_all = 1 + 1.5 * m;
        break;
    default:
        return -1;
    }
    w->chunks = 1;
    w->again = 1;
    w->fill = m - 1;
    w->received = 1;
    w->received_all = m;
    w->messages = m > 1 ? 2 : 1;
    w->leave = 1;
    return 0;
}

/* Two trees, half the bytes each; a rank is inside one of them, where it has up to two children, and a leaf of the
 * other. With two or three ranks nobody has two children. */
static int tree(const counted_t *c, rd_work_t *w)
{
    double children = c->n > 3 ? 2 : c->n > 2 ? 1.5 : 1;

    w->chunks = 2;
    w->again = 1;
    w->leave = 2;
    w->least = c->n > 3 ? 0.75 : 0; /* inside the one tree that is left */
    switch (c->coll) {
    case RD_BROADCAST:
    case RD_REDUCE:
        w->hops = c->rounds;
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
        return 0;
    default:
        return -1;
    }
}

/* Recursive doubling among the largest power of two of ranks, of which some also play for one rank each of the rest. */
static int rd(const counted_t *c, rd_work_t *w)
{
    double l = c->rounds_down, players = (double)(1 << (int)l), rest = c->n - players, extra = rest > 0;

    w->chunks = 1;
    switch (c->coll) {
    case RD_ALLREDUCE:
        /* Few pairs: who plays for two begins late and ends late, but not on the same way. */
        w->hops = w->again = l + extra + (2 * rest > players);
        w->messages = 2 * (l + extra);
        w->moved = 0.5 + 2 * l + 1.5 * extra;
        w->moved_all = players * (0.5 + 2 * l) + 3.5 * rest;
        w->summed = l + extra;
        w->summed_all = players * l + rest;
        w->received = l + extra;
        w->received_all = players * l + 2 * rest;
        w->leave = c->env->local * l;
        return 0;
    case RD_BARRIER:
        w->hops = w->again = c->rounds;
        w->messages = 2 * c->rounds;
        alike(w, c->n, c->rounds, c->rounds + 1, 0);
        return 0;
    default:
        return -1;
    }
}

/* Ranks on the way from each rank to the root, summed over all: the ones in the binary numbers below n. */
static double ways(int n)
{
    double all = 0;

    for (int v = 1; v < n; v++)
        all += __builtin_popcount((unsigned)v);
    return all;
}

/* Ranks below the root's child with the most. */
static double subtree(const counted_t *c)
{
    int half = 1 << ((int)c->rounds - 1);

    return c->n - half > half / 2 ? c->n - half : half / 2;
}

static int binomial(const counted_t *c, rd_work_t *w)
{
    w->chunks = 1;
    w->hops = c->rounds_down;
    w->again = 1;
    w->fill = w->hops - 1;
    w->messages = c->rounds;
    w->leave = c->env->nnodes;
    switch (c->coll) {
    case RD_BROADCAST:
        w->received = 1;
        w->received_all = c->m;
        w->moved = fan(c->rounds);
        w->moved_all = 1.5 * c->n - 1;
        return 0;
    case RD_REDUCE:
        w->received = c->rounds;
        w->received_all = c->m;
        w->moved = sum((int)c->rounds + 1, 1);
        w->moved_all = 1.5 * c->m + 1;
        w->summed = c->rounds;
        w->summed_all = c->m;
        return 0;
    case RD_GATHER:
    case RD_SCATTER:
        w->chunks = c->n;
        w->messages = c->m;
        w->moved = 1;
        w->moved_all = 1 + ways(c->n) / c->n;
        w->received = (c->coll == RD_GATHER ? c->m : subtree(c)) / c->n;
        w->received_all = ways(c->n) / c->n;
        w->leave = (double)(c->n - c->env->local) / c->n;
        return 0;
    default:
        return -1;
    }
}

/* Each block takes log n hops, but a rank waits for the blocks one after another. */
static int pat(const counted_t *c, rd_work_t *w)
{
    double m = c->m, n = c->n, twos = 0;

    for (int d = 1; d < c->n && c->pairs; d *= 2)
        twos += (c->n - 1 + d) / (2 * d) / 2;
    w->chunks = c->n;
    w->hops = w->again = m - twos;
    w->messages = 2 * m;
    w->joined = 2 * twos;
    w->leave = spread(c, 1 / n);
    w->least = c->rounds / m;
    switch (c->coll) {
    case RD_ALLGATHER:
        alike(w, c->n, m / n, (1 + 2 * m) / n, 0);
        return 0;
    case RD_REDUCE_SCATTER:
        alike(w, c->n, m / n, 2.5 * m / n, m / n);
        return 0;
    case RD_ALLREDUCE:
        w->hops = w->again = 2 * (m - twos);
        w->messages = 4 * m;
        w->joined *= 1.5; /* as measured: with twice as many rd would be left too soon */
        w->leave *= 2;
        alike(w, c->n, 2 * m / n, (4.5 * m - 0.5) / n, m / n);
        return 0;
    default:
        return -1;
    }
}

/* ---- several nodes ---- */

/* What of a flat algorithm stays on a node, ranks being numbered node by node. */
static void near_flat(const counted_t *c, const char *algo, rd_work_t *w)
{
    double nodes = c->env->nnodes, local = c->env->local, here = (local - 1) / c->m;

    if (strcmp(algo, "direct") == 0 || strcmp(algo, "oneshot") == 0 || strcmp(algo, "twoshot") == 0)
        w->peers = c->n - local;
    if (c->env->nnodes == 1) {
        here = 1;
        w->near_hops = w->hops;
    } else if (strcmp(algo, "ring") == 0) {
        w->near_hops = w->hops * (c->n - nodes) / c->m;
        here = local > 1 ? 0.5 : 0;
    } else if (strcmp(algo, "rd") == 0 || strcmp(algo, "tree") == 0 || strcmp(algo, "binomial") == 0) {
        here = 1 - rounds((int)nodes) / c->rounds;
        w->near_hops = w->hops * here;
    } else if (strcmp(algo, "pat") == 0) {
        w->near_hops = w->hops * here;
    }
    w->near_messages = w->messages * here;
    w->near_received = w->received * here;
}

/* The algorithm between the nodes, and what the direct exchange inside them adds: `rails` ranks of each node have a
 * part of the whole each. */
typedef struct layers {
    double nodes, local, rails;
    double part;   /* of the whole, that one rail serves */
    double share;  /* of the outer algorithm's work, that one rail does */
    double pieces; /* chunks of one rail */
    rd_work_t outer;
} layers_t;

static void inside_allreduce(const layers_t *y, rd_work_t *w)
{
    double l = y->local, others = (y->rails - 1) * y->part;

    w->hops += 2;
    w->again += 2;
    w->near_hops = 2;
    w->near_messages = 2 * y->pieces * (l - 1 + y->rails - 1);
    w->near_received = (l - 1) * y->part + others;
    w->moved += 2 * others + (sum((int)l, 1) + fan(l - 1)) * y->part;
    w->summed += (l - 1) * y->part;
    w->received_all += 2 * y->nodes * (l - 1);
    w->moved_all += y->nodes * (2 * (l - 1) + sum((int)l, 1) + fan(l - 1));
    w->summed_all += y->nodes * (l - 1);
}

static void inside_rooted(const layers_t *y, int reduces, rd_work_t *w)
{
    double l = y->local, others = (y->rails - 1) * y->part, hops = y->rails > 1 ? 2 : 1;
    double handed = reduces ? (l - 1) / 2 : fan(l - 1); /* a sum's sources join those of the outer algorithm's sum */

    w->hops += hops;
    w->fill += hops;
    w->near_hops = hops;
    w->near_messages = y->pieces * (l - 1 + y->rails - 1);
    w->near_received = reduces ? (l - 1) * y->part + others : others;
    w->moved += others + handed * y->part;
    w->received_all += y->nodes * (l - 1);
    w->moved_all += y->nodes * (handed + l - 1);
    if (reduces) {
        w->summed += (l - 1) * y->part + others;
        w->summed_all += y->nodes * (l - 1);
    }
}

static void inside_blocks(const layers_t *y, int reduces, rd_work_t *w)
{
    double l = y->local, n = y->nodes * l, handed = reduces ? (l - 1) / 2 : fan(l - 1);
    double rounds_in = w->hops > 1 ? 1 : y->nodes - 1; /* where all blocks come at once, they are passed on in turn */

    w->chunks = (int)n;
    w->hops += rounds_in;
    w->again += rounds_in;
    w->near_hops = rounds_in;
    w->near_messages = y->nodes * 2 * (l - 1);
    w->near_received = (l - 1) / l;
    w->moved += (l - 1 + handed) / l;
    w->received_all = n * (w->received + w->near_received);
    w->moved_all = n * w->moved;
    if (reduces) {
        w->summed += (l - 1) / l;
        w->summed_all = n * w->summed;
    }
}

static void inside_barrier(const layers_t *y, rd_work_t *w)
{
    w->hops += 2;
    w->again += 2;
    w->near_hops = 2;
    w->near_messages = 2 * (y->local - 1);
    w->near_received = y->local - 1;
    w->received_all += 2 * y->nodes * (y->local - 1);
    w->moved_all += 3 * y->nodes * (y->local - 1);
    w->moved += 2 * (y->local - 1);
}

static int layered(const counted_t *c, int (*count)(const counted_t *c, rd_work_t *w), int trees, rd_work_t *w)
{
    const rd_cost_env_t nodes = {c->env->nnodes, c->env->nnodes, 1, c->env->cores, 0, c->env->prices};
    int whole = c->coll == RD_ALLGATHER || c->coll == RD_REDUCE_SCATTER, most = trees && !whole ? 2 : c->env->local;
    counted_t outer = *c;
    layers_t y = {
        c->env->nnodes, c->env->local, c->param > 0 && !whole && c->param < most ? c->param : most, 1, 1, 1, {0}};

    if (c->env->nnodes < 2 || c->env->local < 2)
        return -1;
    if (c->coll == RD_BARRIER)
        y.rails = 1;
    outer.env = &nodes;
    outer.n = nodes.nranks;
    outer.m = outer.n - 1;
    outer.rounds = rounds(outer.n);
    outer.rounds_down = outer.n & (outer.n - 1) ? outer.rounds - 1 : outer.rounds;
    if (count(&outer, w) != 0)
        return -1;
    y.part = 1 / y.rails;
    /* Of two trees on two rails, a rail has the inner places of one at most, and no leaf of the other. */
    y.share = trees ? (y.rails > 1 ? 0.75 : 1) : y.part;
    y.pieces = w->chunks / (trees ? y.rails : 1);
    w->least = fmax(w->least, 1 / y.pieces);
    w->peers = count == direct ? outer.m : 0;
    w->chunks = trees ? w->chunks : w->chunks * (int)y.rails;
    w->messages *= trees ? y.share : 1;
    w->received *= y.share;
    w->moved *= y.share;
    w->summed *= y.share;
    if (c->coll == RD_ALLREDUCE)
        inside_allreduce(&y, w);
    else if (c->coll == RD_BARRIER)
        inside_barrier(&y, w);
    else if (whole)
        inside_blocks(&y, c->coll == RD_REDUCE_SCATTER, w);
    else
        inside_rooted(&y, c->coll == RD_REDUCE, w);
    w->messages += w->near_messages;
    w->received += w->near_received;
    return 0;
}

int rd_cost_work(const rd_cost_env_t *env, rd_coll_t coll, const char *algo, int param, rd_work_t *work)
{
    static const struct {
        const char *name;
        int (*count)(const counted_t *c, rd_work_t *w);
        int layered, trees;
    } known[] = {{"direct", direct, 0, 0},     {"oneshot", oneshot, 0, 0},   {"twoshot", twoshot, 0, 0},
                 {"ring", ring, 0, 0},         {"tree", tree, 0, 0},         {"rd", rd, 0, 0},
                 {"binomial", binomial, 0, 0}, {"pat", pat, 0, 0},           {"hier_ring", ring, 1, 0},
                 {"hier_tree", tree, 1, 1},    {"hier_rd", rd, 1, 0},        {"hier_binomial", binomial, 1, 0},
                 {"hier_pat", pat, 1, 0},      {"hier_direct", direct, 1, 0}};
    const int pairs = env->nnodes > 1 && env->local == 1;
    counted_t c = {env, coll, env->nranks, param, pairs, env->nranks - 1, rounds(env->nranks), 0};
    rd_work_t w;

    c.rounds_down = c.n & (c.n - 1) ? c.rounds - 1 : c.rounds;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, algo) != 0)
            continue;
        memset(&w, 0, sizeof w);
        if (known[i].layered) {
            if (layered(&c, known[i].count, known[i].trees, &w) != 0)
                return -1;
        } else if (c.n == 1) { /* a copy at most */
            w.chunks = 1;
            w.moved = w.moved_all = coll == RD_BARRIER ? 0 : 1;
        } else if (known[i].count(&c, &w) != 0) {
            return -1;
        } else {
            near_flat(&c, algo, &w);
        }
        *work = w;
        return 0;
    }
    return -1;
}

size_t rd_cost_chunk(rd_coll_t coll, size_t bytes, int chunks)
{
    size_t chunk = (bytes + (size_t)chunks - 1) / (size_t)chunks;

    if (coll == RD_BARRIER)
        return 1;
    if (coll == RD_ALLREDUCE || coll == RD_REDUCE || coll == RD_BROADCAST)
        return chunk < bytes ? (chunk + 63) / 64 * 64 : chunk;
    return chunk;
}
