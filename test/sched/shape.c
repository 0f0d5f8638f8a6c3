/* Ranks on several nodes, numbered in any way: schedules that look at the shape are right for it, and a ring crosses
 * into and out of each node once. The same in any order of the ranks (sched/visits.h): in that of the nodes a ring
 * crosses as often. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sched/model.h"

static int failures;
static long runs;

/* Nodes are numbered by their lowest rank, as rd_node_find does. */
static int place_ranks(int kind, int n, int *node)
{
    int raw[64], nnodes = 0;

    for (int r = 0; r < n; r++) {
        raw[r] = kind == 0   ? r % 2
                 : kind == 1 ? r / 3
                 : kind == 2 ? r % 3
                             : (int)(model_mix((uint64_t)(kind * 64 + r)) % 4);
        node[r] = -1;
        for (int q = 0; q < r && node[r] < 0; q++)
            if (raw[q] == raw[r])
                node[r] = node[q];
        if (node[r] < 0)
            node[r] = nnodes++;
    }
    return nnodes;
}

static void check(const rd_algo_t *algo, const rd_sched_args_t *args, int fuse)
{
    model_run_t run = {.credits = 1 + fuse, .passes = args->coll == RD_BARRIER ? 1 : 2, .seed = (uint64_t)runs++};
    const char *why = NULL;
    model_t *m = model_build(algo, args, fuse, &why);

    run.policy = (model_policy_t)(run.seed % MODEL_POLICIES);
    if (m != NULL)
        why = model_run(m, &run);
    if (why != NULL) {
        printf("%s %s, %d ranks on %d nodes, root %d: %s\n", algo->name, rd_coll_name(args->coll), args->shape->nranks,
               args->shape->nnodes, args->root, why);
        failures++;
    }
    if (m != NULL)
        model_free(m);
}

static void count_crossings(const rd_sched_args_t *like, const rd_visits_t *order)
{
    rd_sched_args_t args = *like;
    int crossings = 0;

    for (args.rank = 0; args.rank < args.shape->nranks; args.rank++) {
        rd_steps_t *s = rd_visits_emit(rd_algo_find("ring"), &args, order);
        rd_program_t *p;
        const char *why;

        if (rd_compile(s, 1, &p, &why) != 0)
            exit(1);
        for (int i = 0; i < p->nsends; i++)
            crossings += args.shape->node[p->sends[i].peer] != args.shape->node[args.rank];
        rd_steps_free(s);
        rd_program_free(p);
    }
    if (crossings != (args.shape->nnodes > 1 ? args.shape->nnodes : 0)) {
        printf("ring, %d ranks on %d nodes: %d connections between nodes\n", args.shape->nranks, args.shape->nnodes,
               crossings);
        failures++;
    }
}

static void check_all(rd_sched_args_t *args, int kind)
{
    int n = args->shape->nranks;

    for (int a = 0; rd_algos[a] != NULL; a++)
        for (int c = 0; c < RD_NUM_COLLS; c++)
            for (int fuse = 0; fuse < 2; fuse++) {
                args->coll = (rd_coll_t)c;
                args->together = fuse ? 2 + kind : 0;
                args->root = model_rooted(args->coll) ? (kind * 5 + fuse) % n : 0;
                if ((rd_algos[a]->colls >> c & 1) && rd_algos[a]->excluded(args) == NULL &&
                    (!model_order.rank || rd_algos[a]->ordered))
                    check(rd_algos[a], args, fuse);
            }
}

/* Kind 0: node by node, backwards inside each; others: any order. */
static void order_make(const rd_shape_t *shape, int kind, int *rank, int *place)
{
    int n = shape->nranks, at = 0;

    for (int v = 0; v < shape->nnodes; v++)
        for (int r = n - 1; r >= 0; r--)
            if (shape->node[r] == v)
                rank[at++] = r;
    for (int i = n - 1; i > 0 && kind > 0; i--) {
        int k = (int)(model_mix((uint64_t)(kind * 997 + n * 31 + i)) % (uint64_t)(i + 1)), swap = rank[i];
        rank[i] = rank[k];
        rank[k] = swap;
    }
    for (int i = 0; i < n; i++)
        place[rank[i]] = i;
}

int main(void)
{
    int node[64], rank[64], place[64];

    alarm(120);
    for (int n = 1; n <= 16; n++)
        for (int kind = 0; kind < 8; kind++) {
            rd_shape_t shape = {n, place_ranks(kind, n, node), node};
            rd_sched_args_t args = {&shape, RD_ALLGATHER, 0, 0, 0, 0};
            const rd_visits_t by_number = {NULL, NULL};

            count_crossings(&args, &by_number);
            model_order = by_number;
            check_all(&args, kind);
            for (int other = 0; other < 2; other++) {
                order_make(&shape, other ? kind + 1 : 0, rank, place);
                model_order = (rd_visits_t){rank, place};
                args = (rd_sched_args_t){&shape, RD_ALLGATHER, 0, 0, 0, 0};
                if (!other)
                    count_crossings(&args, &model_order);
                check_all(&args, kind);
            }
        }
    printf("%ld runs, %d failures\n", runs, failures);
    return failures > 0;
}
