/* Turns counts into time, by the formula of model.h. */
#include "cost/model.h"

#include <math.h>
#include <stdbool.h>

#define KIB 1024.0
#define PIN (64 * KIB) /* process_vm_readv: 16 pages */

/* Bytes beyond the caches cost more; the change is gradual, so that time never falls as bytes grow. */
static double far_share(const rd_prices_t *t, double bytes)
{
    return bytes <= t->near ? 0 : t->far * (1 - t->near / bytes);
}

/* The bytes left to move when no data goes through slots: the own part, and the sums of fetched data. */
static double cma_moved(const rd_work_t *w, double summed)
{
    double own = w->summed > 0 && w->summed < 1 ? w->summed : 1.0 / w->chunks;

    return own + 0.5 * summed;
}

static double rank_us(const rd_prices_t *t, const rd_price_t *k, double whole, double moved, double received,
                      double summed)
{
    double far = far_share(t, whole);

    return whole * (moved * (k->beta + far) + received * (k->cross + far) + summed * k->gamma);
}

/* Returns true if each rank has a core of its own. */
static bool own_cores(const rd_cost_env_t *env)
{
    return env->sharing <= env->cores;
}

/* The part of the messages that is not empty: vectors are not cut below a line. */
static double live_messages(const rd_cost_env_t *env, rd_coll_t coll, double bytes, const rd_work_t *w)
{
    double lines = bytes > 64 ? bytes / 64 : 1, live = lines < w->chunks ? lines / w->chunks : 1;

    if (coll != RD_ALLREDUCE && coll != RD_REDUCE && coll != RD_BROADCAST)
        return 1;
    /* Where each rank has a core of its own it is the busiest rank that counts, which no cut relieves of its part. */
    return (env->nnodes > 1 || own_cores(env)) && live < w->least ? w->least : live;
}

static bool one_way(rd_coll_t coll)
{
    return coll == RD_BROADCAST || coll == RD_REDUCE || coll == RD_GATHER || coll == RD_SCATTER;
}

/* Returns true if one machine plays several nodes. */
static bool played(const rd_cost_env_t *env)
{
    return env->nnodes > 1 && env->sharing > env->local;
}

/* The waits of one call. */
static double hops_us(const rd_prices_t *t, const rd_cost_env_t *env, rd_coll_t coll, const rd_work_t *w,
                      rd_proto_t proto, double passes, bool mutual)
{
    double contention = (double)env->sharing / env->cores, hops = w->hops + w->again * (passes - 1);
    double near = w->hops > 0 ? hops * w->near_hops / w->hops : 0, far = hops - near;

    if (proto == RD_PROTO_CMA) {
        near += 1;
    } else if (one_way(coll) && !mutual) {
        near *= t->overlap;
        far *= played(env) && contention > 1 ? 0 : t->overlap; /* a waiting rank leaves the core to the sender */
    }
    return near * t->of[RD_PRICE_SHM][proto].alpha + far * t->of[RD_PRICE_NET][proto].alpha +
           (near + far) * (contention > 1 ? contention * t->turn : 0);
}

static double blocks(const rd_work_t *w)
{
    return w->blocks > 0 ? w->blocks : 1;
}

/* Both ends of messages of `bytes`, of the busiest rank in one pass. What a receiver waits for is there already when
 * the sender is calls ahead. */
static double messages_us(const rd_prices_t *t, rd_coll_t coll, const rd_work_t *w, rd_proto_t proto, double bytes)
{
    const rd_price_t *near = &t->of[RD_PRICE_SHM][proto], *far = &t->of[RD_PRICE_NET][proto];
    double once = 0.5 * (one_way(coll) ? t->overlap : 1), head = once * fmin(bytes, 4 * KIB);
    double joined = once * fmin(bytes * blocks(w), 4 * KIB); /* a message of several blocks is not of a node */

    return w->near_messages * (near->message + near->start * head) +
           (w->messages - w->near_messages) * (far->message + far->start * joined);
}

/* The peers that the busiest rank has messages for: each has a connection, which the rank's core must fetch. */
static double contacts(const rd_cost_env_t *env, const rd_algo_t *algo)
{
    switch (algo->near) {
    case RD_PEERS_ALL:
        return env->nranks - 1;
    case RD_PEERS_NEIGHBOURS:
        return fmin(2, env->nranks - 1);
    default:
        return log2(env->nranks);
    }
}

/* What the messages of all ranks cost together, as a multiple of the busiest one's. Between nodes all are counted:
 * there a message is work of the kernel, and the root of a direct exchange has most of it. On one node each rank is
 * taken to have as many as the busiest; its prices were fitted so. */
static double all_messages(const rd_cost_env_t *env, const rd_work_t *w)
{
    if (env->nnodes == 1 || w->messages <= 0 || blocks(w) > 1) /* where blocks go together all ranks do the same */
        return env->nranks;
    return 2 * w->received_all * w->chunks / w->messages;
}

/* On played nodes, where the root has a message for or from everybody: it alone sends, or receives. */
static bool root_alone(const rd_cost_env_t *env, rd_coll_t coll, const rd_work_t *w)
{
    return played(env) && one_way(coll) && w->hops <= 1;
}

static bool root_sends(rd_coll_t coll)
{
    return coll == RD_BROADCAST || coll == RD_SCATTER;
}

/* Nobody tells the senders of a sequence of gathers or reductions to wait: their lines are in the root's reach before
 * it looks. */
static bool senders_ahead(rd_coll_t coll)
{
    return one_way(coll) && !root_sends(coll);
}

/* The busiest rank's messages, as a multiple of as many of which half are sent. On the loopback device a sender does
 * the receiver's part of the kernel's work as well, and a send takes three times as long as a receive. */
static double ends(const rd_cost_env_t *env, rd_coll_t coll, const rd_work_t *w)
{
    if (!root_alone(env, coll, w))
        return 1;
    return root_sends(coll) ? 1.5 : 0.5;
}

/* Bytes that go over the wire behind one another. Played nodes share it; what a root alone receives is all there is. */
static double on_wire(const rd_cost_env_t *env, rd_coll_t coll, const rd_work_t *w)
{
    return root_alone(env, coll, w) && !root_sends(coll) ? w->leave : w->leave * env->sharing / env->local;
}

/* By CMA the peers read the buffer of the rank that sends, and the kernel takes the pages of one process for one reader
 * at a time, PIN bytes at once. Readers of the same bytes wait for each other all the way: n of them take n times as
 * long as one. Readers of different bytes wait for each other at their first pages, and no longer once they are spread.
 * `link` counts the bytes that the busiest buffer gives away. Ranks that share a core do not read at the same time
 * anyway. */
static double one_source_us(const rd_cost_env_t *env, const rd_work_t *w, rd_proto_t proto, const rd_price_t *k,
                            double whole)
{
    const bool alike = w->once_messages > 0;

    if (proto != RD_PROTO_CMA || env->nnodes > 1 || !own_cores(env))
        return 0;
    return w->link * (alike ? whole : fmin(whole, PIN * w->chunks)) * k->cross;
}

/* A board's writer writes a value once for all that read it. */
static void write_once(rd_work_t *w)
{
    double left = w->messages > 0 ? 1 - w->once_messages / w->messages : 1;

    w->messages *= left;
    w->near_messages *= left;
    w->moved -= w->once_moved;
    w->moved_all -= w->once_moved_all;
}

/* The bytes that pass through memory, as a part of the operation's. What the kernel copies from process to process
 * passes it three times: read, fetched because it is stored to, and written back. */
static double in_memory(const rd_work_t *w, rd_proto_t proto, double moved_all)
{
    return (proto == RD_PROTO_CMA ? 3 : 1) * w->received_all + moved_all;
}

/* The bytes that all ranks move share the rate of the machine's memory as soon as the last-level cache does not hold
 * them. */
static double memory_us(const rd_prices_t *t, double bytes)
{
    return bytes <= t->llc ? 0 : t->memory * (bytes - t->llc);
}

/* What the busiest rank stores where other cores read it, as a part of the operation's bytes. */
static double stored(const rd_work_t *w, rd_coll_t coll, rd_proto_t proto)
{
    const double sent = one_way(coll) ? w->messages : w->messages / 2;

    if (proto == RD_PROTO_CMA)
        return 0;
    if (rd_proto_is_board(proto) && sent > w->once_messages)
        return w->link * (1 - w->once_messages / sent);
    return one_way(coll) && !root_sends(coll) ? fmin(w->link, 1) : w->link;
}

static int work_of(const rd_cost_env_t *env, rd_coll_t coll, const rd_algo_t *algo, int param, rd_work_t *work)
{
    rd_count_t count = rd_count(coll, env->nranks, env->nnodes, env->local, param);

    count.together = env->together;
    return rd_algo_work(algo, &count, work);
}

double rd_cost_algo_us(const rd_cost_env_t *like, rd_coll_t coll, const rd_algo_t *algo, int param, rd_proto_t proto,
                       size_t bytes, size_t slice)
{
    rd_cost_env_t full = *like, *env = &full;
    const rd_prices_t *t = env->prices ? env->prices : rd_prices_builtin(0);
    const rd_price_t *k = &t->of[env->nnodes > 1 ? RD_PRICE_NET : RD_PRICE_SHM][proto];
    double whole = (double)bytes, n = env->nranks, moved, moved_all, passes, messages, busiest, shared, us;
    size_t chunk;
    rd_work_t w;

    if (env->sharing < env->local)
        env->sharing = env->local;
    if (proto == RD_PROTO_CMA && rd_cost_puts(env, coll))
        coll = RD_SCATTER;
    if (work_of(env, coll, algo, param, &w) != 0)
        return -1;
    const double store = whole * stored(&w, coll, proto) * k->store;
    if (rd_proto_is_board(proto))
        write_once(&w);
    chunk = rd_work_chunk(coll, bytes, w.chunks);
    passes = chunk > slice && proto != RD_PROTO_CMA ? (double)((chunk + slice - 1) / slice) : 1;
    moved = proto == RD_PROTO_CMA ? cma_moved(&w, w.summed) : w.moved;
    moved_all = proto == RD_PROTO_CMA ? n * cma_moved(&w, w.summed_all / n) : w.moved_all;
    messages = passes * live_messages(env, coll, whole, &w) *
               messages_us(t, coll, &w, proto, (double)(chunk < slice ? chunk : slice));
    busiest = ends(env, coll, &w) * messages + store + rank_us(t, k, whole, moved, w.received, w.summed);
    /* The cores share the work of the machine's ranks, its part of all ranks. */
    shared = (all_messages(env, &w) * messages + rank_us(t, k, whole, moved_all, w.received_all, w.summed_all)) *
             env->sharing / n / env->cores;
    if (!rd_proto_is_board(proto)) /* a board's message has no other connection than its lines */
        busiest += t->contact * contacts(env, algo) * (senders_ahead(coll) ? t->overlap : 1);
    busiest = fmax(busiest, messages + one_source_us(env, &w, proto, k, whole));
    shared = fmax(shared, memory_us(t, whole * in_memory(&w, proto, moved_all) * env->sharing / n));
    /* One lane less than two chunks of a line has no data; but to and from a switch both always have. */
    const bool mutual = w.mutual && (algo->switched || (whole > 64 && own_cores(env)));
    us = t->call + hops_us(t, env, coll, &w, proto, passes, mutual) + (busiest > shared ? busiest : shared);
    const double fill = one_way(coll) && !w.mutual && own_cores(env) ? t->overlap * w.fill : w.fill;
    us += fill * (double)(passes > 1 ? slice : chunk) * (1.5 * k->beta + k->cross);
    if (env->nnodes > 1 && w.peers > t->peers)
        us += (w.peers - t->peers) * t->peer;
    if (env->nnodes > 1)
        us += on_wire(env, coll, &w) * whole * t->wire;
    return us;
}

double rd_cost_us(const rd_cost_env_t *env, rd_coll_t coll, const char *algo, int param, rd_proto_t proto, size_t bytes,
                  size_t slice)
{
    const rd_algo_t *card = rd_algo_find(algo);

    return card ? rd_cost_algo_us(env, coll, card, param, proto, bytes, slice) : -1;
}

int rd_cost_work(const rd_cost_env_t *env, rd_coll_t coll, const char *algo, int param, rd_work_t *work)
{
    const rd_algo_t *card = rd_algo_find(algo);

    return card ? work_of(env, coll, card, param, work) : -1;
}
