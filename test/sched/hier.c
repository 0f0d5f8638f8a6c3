/* Hierarchical schedules on machines of 2x1 to 64x8 ranks and on uneven ones: every operation, every number of rails,
 * with one credit and with two, in place and not, lanes in an order by the seed; small machines wholly, large ones
 * sampled. And what they are for: a rank sends to the other nodes along its rail alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sched/model.h"

#define RANKS_MOST 512

static long runs;
static int failures;

static void failed(const rd_algo_t *algo, const rd_sched_args_t *args, int fuse, const char *why)
{
    if (++failures > 20)
        return;
    printf("%s %s, %d ranks on %d nodes, root %d, param %d, fuse %d, seed %ld: %s\n", algo->name,
           rd_coll_name(args->coll), args->shape->nranks, args->shape->nnodes, args->root, args->param, fuse, runs,
           why);
}

static void check(const rd_algo_t *algo, const rd_sched_args_t *args, int fuse)
{
    const char *why = NULL;
    model_t *m = model_build(algo, args, fuse, &why);

    for (int i = 0; m != NULL && why == NULL && i < (args->shape->nranks <= 24 ? MODEL_POLICIES : 1); i++) {
        model_run_t run = {.credits = 1 + fuse, .passes = 2, .seed = (uint64_t)runs++};

        run.passes = args->coll == RD_BARRIER || args->shape->nranks > 200 ? 1 : 2 + (int)(run.seed % 2);
        run.policy = (model_policy_t)(model_mix(run.seed) % MODEL_POLICIES);
        run.in_place = model_can_be_in_place(args->coll) && run.seed % 3 == 0;
        why = model_run(m, &run);
    }
    if (why != NULL)
        failed(algo, args, fuse, why);
    if (m != NULL)
        model_free(m);
}

/* Whoever sends out of his node does so to few: the rail's ranks, and of those at most all nodes. */
static void check_rails(const rd_algo_t *algo, const rd_sched_args_t *like)
{
    rd_sched_args_t args = *like;
    int local_rank[RANKS_MOST] = {0};

    for (int r = 0; r < args.shape->nranks; r++)
        for (int q = 0; q < r; q++)
            local_rank[r] += args.shape->node[q] == args.shape->node[r];
    for (args.rank = 0; args.rank < args.shape->nranks; args.rank++) {
        rd_steps_t *s = algo->emit(&args);
        rd_program_t *p;
        const char *why;

        if (rd_compile(s, 1, &p, &why) != 0)
            exit(1);
        for (int i = 0; i < p->nsends; i++) {
            int peer = p->sends[i].peer;

            if (peer == rd_switch_of(args.shape))
                continue;
            if (args.shape->node[peer] != args.shape->node[args.rank] && local_rank[peer] != local_rank[args.rank]) {
                failed(algo, &args, 1, "sends to another node, but not along its rail");
                break;
            }
        }
        rd_steps_free(s);
        rd_program_free(p);
    }
}

static void check_shape(const rd_shape_t *shape, int roots)
{
    int n = shape->nranks, large = n > 100;

    for (int a = 0; rd_algos[a] != NULL; a++)
        for (int coll = 0; coll < RD_NUM_COLLS; coll++) {
            rd_sched_args_t args = {shape, (rd_coll_t)coll, 0, 0, 0, 0};

            if ((strncmp(rd_algos[a]->name, "hier", 4) != 0 && !rd_algos[a]->switched) ||
                !(rd_algos[a]->colls >> coll & 1) || rd_algos[a]->excluded(&args) != NULL)
                continue;
            if (!model_rooted(args.coll))
                check_rails(rd_algos[a], &args);
            for (int k = 0; k < (model_rooted(args.coll) ? roots : 1); k++)
                for (args.param = 0; args.param < (large ? 2 : 4); args.param++) {
                    if (model_rooted(args.coll))
                        args.root = roots == n ? k : (int)(model_mix((uint64_t)(runs + k)) % (uint64_t)n);
                    if (!large || (runs + a) % 2 == 0)
                        check(rd_algos[a], &args, 0);
                    check(rd_algos[a], &args, 1);
                    for (int k = 0; k < 2 && rd_algos[a]->joins; k++) {
                        args.together = k ? 2 + (int)(runs % 5) : n;
                        check(rd_algos[a], &args, (int)(runs % 2));
                    }
                    args.together = 0;
                }
        }
}

/* `by`: ranks are dealt to the nodes one after another, `by` at a time, as far as each node has room. */
static void check_sizes(const int *sizes, int nnodes, int by)
{
    int node[RANKS_MOST], left[64], name[64], n = 0, named = 0;
    rd_shape_t shape = {0, nnodes, node};

    for (int v = 0; v < nnodes; v++) {
        left[v] = sizes[v];
        name[v] = -1;
        shape.nranks += sizes[v];
    }
    for (int v = 0; n < shape.nranks; v = (v + 1) % nnodes)
        for (int k = 0; k < by && left[v] > 0; k++, left[v]--) {
            if (name[v] < 0) /* nodes are numbered by their lowest rank, as rd_node_find does */
                name[v] = named++;
            node[n++] = name[v];
        }
    check_shape(&shape, n <= 12 ? n : n <= 100 ? 3 : 1);
}

int main(void)
{
    static const int grid[][2] = {{2, 1}, {2, 2}, {2, 3}, {2, 8}, {3, 2},  {3, 3},  {4, 1},  {4, 2},  {4, 4},
                                  {5, 3}, {7, 2}, {8, 8}, {9, 1}, {13, 4}, {16, 8}, {31, 2}, {64, 1}, {64, 8}};
    static const int uneven[][6] = {{3, 8, 8, 3},    {3, 3, 8, 8}, {2, 1, 3},         {3, 1, 2, 1},
                                    {4, 2, 5, 3, 4}, {2, 9, 10},   {5, 4, 4, 1, 4, 4}};
    int sizes[64];

    alarm(200);
    for (int i = 0; i < (int)(sizeof grid / sizeof grid[0]); i++) {
        for (int v = 0; v < grid[i][0]; v++)
            sizes[v] = grid[i][1];
        check_sizes(sizes, grid[i][0], grid[i][1]);
        if (grid[i][0] * grid[i][1] < 100)
            check_sizes(sizes, grid[i][0], 1);
    }
    for (int i = 0; i < (int)(sizeof uneven / sizeof uneven[0]); i++)
        for (int by = 1; by <= 10; by += 3)
            check_sizes(uneven[i] + 1, uneven[i][0], by);
    printf("%ld runs, %d failures\n", runs, failures);
    return failures > 0 || runs == 0;
}
