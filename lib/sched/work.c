/* The part of the counting that all algorithms share: see work.h. */
#include "sched/work.h"

#include <string.h>

#include "sched/algo.h"

double rd_work_rounds(int n)
{
    int l = 0;

    while (1 << l < n)
        l++;
    return l;
}

double rd_work_fan(double m)
{
    return (m + (double)(((int)m + RD_MAX_ENDS - 1) / RD_MAX_ENDS)) / 2;
}

double rd_work_sum(int n, double d)
{
    int more = n > RD_MAX_ENDS ? (n - 2) / (RD_MAX_ENDS - 1) : 0;

    return (n + d) / 2 + more;
}

void rd_work_once(rd_work_t *w, double m, double part, double ranks)
{
    w->once_messages = m - 1;
    w->once_moved = (rd_work_fan(m) - 1) * part;
    w->once_moved_all = ranks * w->once_moved;
}

void rd_work_alike(rd_work_t *w, int n, double received, double moved, double summed)
{
    w->received = received;
    w->received_all = n * received;
    w->moved = moved;
    w->summed = summed;
    w->moved_all = n * moved;
    w->summed_all = n * summed;
}

double rd_work_spread(const rd_count_t *c, double each)
{
    return c->local * (double)(c->n - c->local) * each;
}

rd_count_t rd_count(rd_coll_t coll, int nranks, int nnodes, int local, int param)
{
    rd_count_t c = {.coll = coll, .n = nranks, .nnodes = nnodes, .local = local, .param = param};

    c.m = nranks - 1;
    c.rounds = rd_work_rounds(nranks);
    c.rounds_down = nranks & (nranks - 1) ? c.rounds - 1 : c.rounds;
    return c;
}

/* Sets the part of the work that stays on a node, for ranks that are numbered node by node. */
static void stay_near(const rd_count_t *c, rd_near_peers_t near, rd_work_t *w)
{
    double nodes = c->nnodes, local = c->local, here = (local - 1) / c->m;

    if (near == RD_PEERS_ALL)
        w->peers = c->n - local;
    if (c->nnodes == 1) {
        here = 1;
        w->near_hops = w->hops;
    } else if (near == RD_PEERS_NEIGHBOURS) {
        w->near_hops = w->hops * (c->n - nodes) / c->m;
        here = local > 1 ? 0.5 : 0;
    } else if (near == RD_PEERS_HALVING) {
        here = 1 - rd_work_rounds((int)nodes) / c->rounds;
        w->near_hops = w->hops * here;
    } else if (near == RD_PEERS_AHEAD) {
        here = rd_work_rounds((int)local) / (2 * c->rounds);
    } else if (near == RD_PEERS_SPREAD) {
        w->near_hops = w->hops * here;
    }
    w->near_messages = w->messages * here;
    w->near_received = w->received * here;
}

int rd_algo_work(const rd_algo_t *algo, const rd_count_t *c, rd_work_t *work)
{
    rd_work_t w;

    if (!algo->work)
        return -1;
    memset(&w, 0, sizeof w);
    if (algo->near == RD_PEERS_COUNTED) {
        if (algo->work(c, &w) != 0)
            return -1;
    } else if (c->n == 1) { /* a single rank copies its data at most */
        w.chunks = 1;
        w.moved = w.moved_all = c->coll == RD_BARRIER ? 0 : 1;
    } else {
        if (algo->work(c, &w) != 0)
            return -1;
        stay_near(c, algo->near, &w);
    }
    *work = w;
    return 0;
}

size_t rd_work_chunk(rd_coll_t coll, size_t bytes, int chunks)
{
    size_t chunk = (bytes + (size_t)chunks - 1) / (size_t)chunks;

    if (coll == RD_BARRIER)
        return 1;
    if (coll == RD_ALLREDUCE || coll == RD_REDUCE || coll == RD_BROADCAST)
        return chunk < bytes ? (chunk + 63) / 64 * 64 : chunk;
    return chunk;
}
