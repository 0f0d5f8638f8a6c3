/* The cost model counts what the programs do: messages, bytes moved and summed, and messages that wait for one another,
 * of every algorithm and operation; and its times are finite and do not fall as bytes grow.
 */
#include "cost/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS_MOST 17

static int failures;

/* What the programs of all ranks do in one pass, in chunks. */
typedef struct counted {
    int nchunks;
    double messages, received, link, moved, summed, received_all, moved_all, summed_all, hops;
} counted_t;

/* How far each lane of each rank has come, and the messages under way: unbounded, in order. */
typedef struct lane_state {
    int step, done_of_step;
    int clock; /* messages that the lane has waited for, one after another */
} lane_state_t;

typedef struct queue {
    int *depth; /* clock of each message */
    int sent, taken, most;
} queue_t;

static rd_program_t *programs[RANKS_MOST];
static queue_t queues[RANKS_MOST][RANKS_MOST][RD_CHANNELS];

static void queue_put(queue_t *q, int depth)
{
    if (q->sent == q->most) {
        q->most = q->most ? 2 * q->most : 16;
        q->depth = realloc(q->depth, (size_t)q->most * sizeof *q->depth);
        if (!q->depth)
            exit(1);
    }
    q->depth[q->sent++] = depth;
}

/* Runs one repetition of the lane's step if its messages are there. */
static int lane_advance(const rd_program_t *p, int rank, int lane, lane_state_t *s)
{
    const rd_step_t *step;

    if (s->step == p->lanes[lane].count)
        return 0;
    step = &p->steps[p->lanes[lane].first + s->step];
    for (int i = 0; i < step->nsrc; i++) {
        if (step->src[i].where == RD_PEER) {
            const rd_link_t *l = &p->recvs[step->src[i].index];
            queue_t *q = &queues[l->peer][rank][l->channel];
            if (q->taken == q->sent)
                return 0;
        }
    }
    /* Of the parts of a message, the last one is taken to be the message. */
    for (int i = 0; i < step->nsrc && step->part != RD_PART_MORE; i++) {
        if (step->src[i].where == RD_PEER) {
            const rd_link_t *l = &p->recvs[step->src[i].index];
            queue_t *q = &queues[l->peer][rank][l->channel];
            int depth = q->depth[q->taken++];
            s->clock = depth > s->clock ? depth : s->clock;
        }
    }
    for (int i = 0; i < step->ndst && step->part != RD_PART_MORE; i++) {
        if (step->dst[i].where == RD_PEER) {
            const rd_link_t *l = &p->sends[step->dst[i].index];
            queue_put(&queues[rank][l->peer][l->channel], s->clock + 1);
        }
    }
    if (++s->done_of_step == step->repeat) {
        s->done_of_step = 0;
        s->step++;
    }
    return 1;
}

static int hops(int n)
{
    lane_state_t *lanes[RANKS_MOST];
    int moved = 1, most = 0;

    for (int r = 0; r < n; r++)
        lanes[r] = calloc((size_t)programs[r]->nlanes + 1, sizeof *lanes[r]);
    while (moved) {
        moved = 0;
        for (int r = 0; r < n; r++)
            for (int l = 0; l < programs[r]->nlanes; l++)
                while (lane_advance(programs[r], r, l, &lanes[r][l]))
                    moved = 1;
    }
    for (int r = 0; r < n; r++) {
        for (int l = 0; l < programs[r]->nlanes; l++)
            most = lanes[r][l].clock > most ? lanes[r][l].clock : most;
        free(lanes[r]);
    }
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            for (int c = 0; c < RD_CHANNELS; c++)
                queues[a][b][c].sent = queues[a][b][c].taken = 0;
    return most;
}

/* `in_place`: copies from input to output are none. */
static void count_rank(const rd_program_t *p, int in_place, counted_t *c)
{
    double messages = 0, received = 0, sent = 0, moved = 0, summed = 0;

    for (int i = 0; i < p->nsteps; i++) {
        const rd_step_t *s = &p->steps[i];
        int from = 0, to = 0, ends = s->part == RD_PART_MORE ? 0 : 1;

        if (in_place && s->nsrc == 1 && s->ndst == 1 && s->src[0].where == RD_IN && s->dst[0].where == RD_OUT)
            continue;
        for (int k = 0; k < s->nsrc; k++)
            from += s->src[k].where == RD_PEER;
        received += (double)from * s->repeat;
        for (int k = 0; k < s->ndst; k++)
            to += s->dst[k].where == RD_PEER;
        sent += (double)to * s->repeat;
        messages += (double)(from + to) * s->repeat * ends;
        moved += (s->nsrc + s->ndst) / 2.0 * s->repeat;
        summed += (s->nsrc - 1.0) * s->repeat;
    }
    c->messages = fmax(c->messages, messages);
    c->moved = fmax(c->moved, moved);
    c->summed = fmax(c->summed, summed);
    c->received = fmax(c->received, received);
    c->link = fmax(c->link, fmax(sent, received));
    c->received_all += received;
    c->moved_all += moved;
    c->summed_all += summed;
}

/* 0, or -1: the algorithm cannot serve. */
static int count(const rd_algo_t *algo, rd_coll_t coll, int n, int nodes, int param, int together, counted_t *c)
{
    int node[RANKS_MOST];
    rd_shape_t shape = {n, nodes, nodes > 1 ? node : NULL};
    int made = 0, result = 0;

    memset(c, 0, sizeof *c);
    for (int r = 0; r < n; r++)
        node[r] = r * nodes / n;
    for (; made < n && result == 0; made++) {
        rd_sched_args_t args = {&shape, coll, made, 0, param, together};
        const char *why = NULL;
        rd_steps_t *steps;

        if (!(algo->colls & 1u << coll) || algo->excluded(&args)) {
            result = -1;
            break;
        }
        steps = algo->emit(&args);
        if (!steps || rd_compile(steps, 1, &programs[made], &why) != 0) {
            printf("%s %s does not compile: %s\n", algo->name, rd_coll_name(coll), why ? why : "no memory");
            exit(1);
        }
        rd_steps_free(steps);
        count_rank(programs[made], coll == RD_BROADCAST, c);
        c->nchunks = programs[made]->nchunks;
    }
    if (result == 0 && !algo->switched) /* nobody plays the switch */
        c->hops = hops(n);
    for (int r = 0; r < made; r++)
        rd_program_free(programs[r]);
    return result;
}

static void expect(const char *what, double got, double want, double tolerance, const char *algo, rd_coll_t coll, int n)
{
    if (fabs(got - want) <= tolerance * want + 1e-9)
        return;
    failures++;
    printf("%s %s of %d ranks: the programs have %s %g, the model %g\n", algo, rd_coll_name(coll), n, what, want, got);
}

/* Exact where a step takes all peers, near where sums are split. */
static void counts(const rd_algo_t *algo, rd_coll_t coll, int n, int together)
{
    rd_cost_env_t env = {n, 1, n, n, 0, NULL, together};
    double near = n <= 8 ? 0 : 0.15, k;
    double fused = together > 1 ? 0.2 : near; /* a block that is left over moves on in one step */
    counted_t c;
    rd_work_t w;

    if (count(algo, coll, n, 1, 0, together, &c) != 0)
        return;
    if (rd_cost_work(&env, coll, algo->name, 0, &w) != 0) {
        failures++;
        printf("%s %s has no formula\n", algo->name, rd_coll_name(coll));
        return;
    }
    if (n == 1)
        return;
    k = c.nchunks;
    expect("chunks", w.chunks, k, 0, algo->name, coll, n);
    expect("hops", w.hops, c.hops, 0, algo->name, coll, n);
    expect("messages", w.messages, c.messages, near, algo->name, coll, n);
    expect("bytes moved", w.moved, c.moved / k, fused, algo->name, coll, n);
    expect("bytes summed", w.summed, c.summed / k, near, algo->name, coll, n);
    expect("bytes received", w.received, c.received / k, near, algo->name, coll, n);
    if (coll != RD_BARRIER) /* a tree of three ranks is priced as one of more */
        expect("bytes sent, or received,", w.link, c.link / k, n == 3 ? 0.34 : near, algo->name, coll, n);
    expect("bytes received by all", w.received_all, c.received_all / k, near, algo->name, coll, n);
    expect("bytes moved by all", w.moved_all, c.moved_all / k, fused, algo->name, coll, n);
    expect("bytes summed by all", w.summed_all, c.summed_all / k, near, algo->name, coll, n);
}

/* Of hierarchical ones: the fusing at the seams, and which rank is busiest, are not counted to the last message. */
static void counts_on_nodes(const rd_algo_t *algo, rd_coll_t coll, int nodes, int local, int param, int together)
{
    int n = nodes * local;
    rd_cost_env_t env = {n, nodes, local, n, n, NULL, together};
    counted_t c;
    rd_work_t w;
    double k;

    if (count(algo, coll, n, nodes, param, together, &c) != 0)
        return;
    if (rd_cost_work(&env, coll, algo->name, param, &w) != 0) {
        failures++;
        printf("%s %s has no formula on %d nodes\n", algo->name, rd_coll_name(coll), nodes);
        return;
    }
    k = c.nchunks;
    expect("chunks", w.chunks, k, 0, algo->name, coll, n);
    if (!algo->switched)
        expect("hops", w.hops, c.hops, 0.35, algo->name, coll, n);
    expect("messages", w.messages, c.messages, 0.35, algo->name, coll, n);
    expect("bytes moved", w.moved, c.moved / k, 0.35, algo->name, coll, n);
    expect("bytes summed", w.summed, c.summed / k, 0.35, algo->name, coll, n);
    expect("bytes received", w.received, c.received / k, 0.35, algo->name, coll, n);
    expect("bytes received by all", w.received_all, c.received_all / k, 0.1, algo->name, coll, n);
    expect("bytes moved by all", w.moved_all, c.moved_all / k, 0.25, algo->name, coll, n);
    expect("bytes summed by all", w.summed_all, c.summed_all / k, 0.1, algo->name, coll, n);
    if (w.near_hops > w.hops || w.near_messages > w.messages || w.near_received > w.received) {
        failures++;
        printf("%s %s: more stays on a node than there is\n", algo->name, rd_coll_name(coll));
    }
}

static void times(const rd_algo_t *algo, rd_coll_t coll, const rd_cost_env_t *env)
{
    for (int proto = 0; proto < RD_NUM_PROTOS; proto++) {
        for (size_t slice = 1024; slice <= 1 << 20; slice *= 32) {
            double last = 0;

            for (size_t bytes = 0; bytes <= (size_t)1 << 34; bytes = bytes ? bytes + bytes / 3 + 1 : 1) {
                double us = rd_cost_us(env, coll, algo->name, 0, (rd_proto_t)proto, bytes, slice);

                if (us < 0) /* does not serve */
                    return;
                if (!isfinite(us) || us <= 0 || us < last * 0.999999) {
                    failures++;
                    printf("%s %s of %zu bytes, %d ranks, slices of %zu: %g us after %g\n", algo->name,
                           rd_coll_name(coll), bytes, env->nranks, slice, us, last);
                    return;
                }
                last = us;
            }
        }
    }
}

/* What 512 more bytes cost by a table in which nothing but the start of a message costs anything. */
static double start_of(rd_coll_t coll)
{
    rd_prices_t prices = {.overlap = 0.25};
    const rd_cost_env_t env = {2, 1, 2, 2, 0, &prices, 0};

    prices.of[RD_PRICE_SHM][RD_PROTO_LL].start = 1;
    return rd_cost_us(&env, coll, "direct", 0, RD_PROTO_LL, 1024, 1024) -
           rd_cost_us(&env, coll, "direct", 0, RD_PROTO_LL, 512, 512);
}

/* Nobody waits for what flows one way: of the start `overlap` is left. An end counts half: an exchange has two. */
static void starts(void)
{
    if (start_of(RD_ALLTOALL) != 512.0 / 2 || start_of(RD_BROADCAST) != 512.0 / 2 / 4) {
        failures++;
        printf("a start costs %g in an exchange, %g one way\n", start_of(RD_ALLTOALL), start_of(RD_BROADCAST));
    }
}

int main(void)
{
    static const rd_cost_env_t envs[] = {{1, 1, 1, 2, 0, NULL, 0},       {2, 1, 2, 2, 0, NULL, 0},
                                         {4, 1, 4, 2, 0, NULL, 0},       {4, 2, 2, 2, 4, NULL, 0},
                                         {7, 1, 7, 64, 0, NULL, 0},      {64, 1, 64, 2, 0, NULL, 0},
                                         {1024, 16, 64, 64, 0, NULL, 0}, {5, 2, 3, 1, 0, NULL, 0}};
    rd_cost_env_t two = {2, 1, 2, 2, 0, NULL, 0};
    rd_work_t w;

    alarm(60);
    for (const rd_algo_t *const *algo = rd_algos; *algo; algo++) {
        for (int coll = 0; coll < RD_NUM_COLLS; coll++) {
            for (int n = 1; n <= RANKS_MOST; n++)
                for (int together = 0; together <= ((*algo)->joins ? n : 0); together++)
                    counts(*algo, (rd_coll_t)coll, n, together);
            for (int nodes = 2; nodes <= 8; nodes++)
                for (int local = 2; nodes * local <= RANKS_MOST; local++)
                    for (int param = 0; param <= (*algo)->params; param++)
                        for (int together = 0; together <= ((*algo)->joins ? nodes : 0); together++)
                            if (strncmp((*algo)->name, "hier", 4) == 0 || (*algo)->switched)
                                counts_on_nodes(*algo, (rd_coll_t)coll, nodes, local, param, together);
            for (size_t e = 0; e < sizeof envs / sizeof envs[0]; e++)
                for (int table = 0; rd_prices_builtin(table); table++) {
                    rd_cost_env_t env = envs[e];

                    env.prices = rd_prices_builtin(table);
                    times(*algo, (rd_coll_t)coll, &env);
                }
        }
    }
    starts();
    if (rd_cost_work(&two, RD_ALLREDUCE, "nonsense", 0, &w) == 0) {
        failures++;
        printf("an unknown algorithm has a formula\n");
    }
    for (int a = 0; a < RANKS_MOST; a++)
        for (int b = 0; b < RANKS_MOST; b++)
            for (int c = 0; c < RD_CHANNELS; c++)
                free(queues[a][b][c].depth);
    return failures != 0;
}
