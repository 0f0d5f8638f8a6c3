/* See plan.h. */
#include "fault/plan.h"

#include <stdio.h>
#include <string.h>

const char *const kind_names[NUM_KINDS] = {"kill", "stop", "late", "abort", "birth", "second", "limit"};
const char *const limit_names[NUM_LIMITS] = {"memory", "file size", "descriptors"};
const char *const stage_names[NUM_STAGES] = {"creation", "an operation", "shrink"};
const char *const way_names[NUM_WAYS] = {"signal", "child", "exec", "core"};
const char *const work_names[NUM_WORKS] = {"calls", "groups", "submits", "splits", "shrinks", "grows"};
const char *const place_names[NUM_PLACES] = {"on one node", "on nodes in turns", "on nodes in blocks",
                                             "alone on its node"};

int plan_fits(void)
{
    int n = 0;

    while (rd_algos[n])
        n++;
    return n < PLAN_MOST_ALGOS;
}

/* About half of the operations by an algorithm of those that have them, and half of the trials by one protocol. */
static void draw_forced(plan_t *p, uint64_t *random)
{
    static const char *const protos[] = {"ll", "simple", "cma"};
    int forced = (int)test_below(random, 4), coll, a, n;

    for (coll = 0; coll < RD_NUM_COLLS; coll++) {
        const rd_algo_t *has[PLAN_MOST_ALGOS];
        for (a = n = 0; rd_algos[a]; a++) /* those over several nodes are called hier_... */
            if (rd_algos[a]->colls & 1u << coll && (p->nnodes > 1 || strncmp(rd_algos[a]->name, "hier", 4) != 0))
                has[n++] = rd_algos[a];
        a = (int)test_below(random, (unsigned)n);
        if (forced && test_below(random, 3))
            p->algo[coll] = has[a];
    }
    if (test_below(random, 2))
        p->proto = protos[test_below(random, p->nnodes > 1 ? 1 : 3)];
    if (p->nnodes > 1 && p->proto)
        p->proto = "simple";
    p->narrow = test_below(random, 5) == 0;
}

static int draw_of(unsigned set, int n, uint64_t *random)
{
    int drawn;

    do
        drawn = (int)test_below(random, (unsigned)n);
    while (!(set & 1u << drawn));
    return drawn;
}

static void draw_place(plan_t *p, int nnodes, uint64_t *random)
{
    int drawn = (int)test_below(random, 3);

    p->nnodes = nnodes ? nnodes : 1 + (int)test_below(random, 3);
    if (p->kind == LIMIT && nnodes == 0) /* UCX ends a process that finds no memory or descriptors */
        p->nnodes = 1;
    p->place = p->nnodes == 1 ? TOGETHER : (place_t)(IN_TURNS + drawn);
}

/* What it happens to, and how: only a death has ways, a rank that is stopped in a split is waited for as long as a
 * creation is, and an abort of the first communicator does not concern one that grows. */
static void draw_manner(plan_t *p, const plan_choice_t *choice, uint64_t *random)
{
    unsigned works = choice->works, ways = choice->ways & ~(choice->cores ? 0 : 1u << BY_CORE);

    p->way = (way_t)draw_of(ways ? ways : 1u << BY_SIGNAL, NUM_WAYS, random);
    if (p->kind != KILL)
        p->way = BY_SIGNAL;
    if (p->kind == STOP)
        works &= ~(1u << SPLITS | 1u << SHRINKS);
    if (p->kind != KILL)
        works &= ~(1u << GROWS);
    p->work = (work_t)draw_of(works ? works : 1u << CALLS, NUM_WORKS, random);
    if (p->kind == LIMIT)
        p->work = CALLS;
}

void plan_draw(plan_t *p, uint64_t seed, const plan_choice_t *choice)
{
    uint64_t random = seed;
    int most = choice->most;

    p->seed = test_random(&random);
    p->kind = (kind_t)draw_of(choice->kinds, NUM_KINDS, &random);
    if (p->kind == STOP && choice->kinds != 1u << STOP && test_below(&random, 3)) /* it takes the whole timeout */
        p->kind = (kind_t)draw_of(choice->kinds & ~(1u << STOP), NUM_KINDS, &random);
    if (most > 6 && test_below(&random, 8)) /* many ranks are slow on few cores */
        most = 6;
    draw_place(p, choice->nnodes, &random);
    draw_manner(p, choice, &random);
    p->nranks = 2 + (int)test_below(&random, (unsigned)most - 1);
    if (p->kind == SECOND && p->nranks < 3)
        p->nranks = 3;
    p->victim = (int)test_below(&random, (unsigned)p->nranks);
    p->second = (p->victim + 1 + (int)test_below(&random, (unsigned)p->nranks - 1)) % p->nranks;
    p->delay_us = (int)test_below(&random, test_below(&random, 3) ? 20000 : 2000);
    p->again_us = (int)test_below(&random, test_below(&random, 3) ? 5000 + 1000u * (unsigned)p->nranks : 500);
    if (p->kind == LATE)
        p->delay_us *= 3;
    if (p->work == SPLITS || p->work == SHRINKS || p->work == GROWS)
        p->delay_us *= 2; /* one takes longer than a call */
    p->resume_early = (int)test_below(&random, 2);
    p->operations = 10 + (int)test_below(&random, 40);
    p->limit = (limit_t)test_below(&random, NUM_LIMITS);
    p->stage = (stage_t)test_below(&random, NUM_STAGES);
    p->room = p->limit == DESCRIPTORS ? (long)test_below(&random, 24)
                                      : (long)test_below(&random, 1u << (6 + test_below(&random, 20)));
    if (p->kind == LIMIT && p->stage == IN_OPERATION && test_below(&random, 3))
        p->room = 0; /* an operation asks for little */
    draw_forced(p, &random);
    p->slow = p->kind != SECOND || test_below(&random, 16) ? -1 : (int)test_below(&random, (unsigned)p->nranks);
    p->unnamed = (p->kind == KILL || p->kind == ABORT || p->kind == SECOND) && test_below(&random, 2);
}

int plan_node_of(const plan_t *p, int rank)
{
    switch (p->place) {
    case IN_TURNS:
        return rank % p->nnodes;
    case IN_BLOCKS:
        return rank * p->nnodes / p->nranks;
    case ALONE: /* with more than two nodes, the others in turns */
        return rank == p->victim ? 0 : 1 + rank % (p->nnodes - 1);
    default:
        return 0;
    }
}

void plan_describe(const plan_t *p, uint64_t seed, const char *verdict)
{
    int coll;

    printf("trials: seed %llu: %s of rank %d of %d after %d us", (unsigned long long)seed, kind_names[p->kind],
           p->victim, p->nranks, p->delay_us);
    if (p->kind == KILL)
        printf(", by %s", way_names[p->way]);
    printf(", in %s, %s (%d)", work_names[p->work], place_names[p->place], p->nnodes);
    if (p->kind == SECOND)
        printf(", rank %d %d us after shrink began, rank %d slow", p->second, p->again_us, p->slow);
    if (p->kind == LIMIT)
        printf(", %ld left of %s in %s", p->room, limit_names[p->limit], stage_names[p->stage]);
    for (coll = 0; coll < RD_NUM_COLLS; coll++)
        if (p->algo[coll])
            printf(" %s=%s", rd_coll_name((rd_coll_t)coll), p->algo[coll]->name);
    printf("%s%s%s%s: %s\n", p->unnamed ? " to survivors" : "", p->proto ? " " : "", p->proto ? p->proto : "",
           p->narrow ? " narrow" : "", verdict);
}

unsigned plan_parse(const char *text, const char *const *names, int n)
{
    unsigned set = 0;

    for (int i = 0; i < n; i++)
        if (strstr(text, names[i]))
            set |= 1u << i;
    return set;
}
