/* Operations whose blocks differ in length, from nothing to many slices: allgatherv, reduce_scatterv, gatherv,
 * scatterv, alltoallv, and grouped sends and receives, which are an all-to-all with most of its messages missing. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sched/model.h"

#define MOST 17 /* slices of the longest block */

static int lengths[64 * 64];
static long runs;
static int failures;

enum { NOTHING, ONE, ONE_LONG, HALF_EMPTY, RAMP, RANDOM, NUM_SKEWS };

static int length(int skew, int i, int count, uint64_t seed)
{
    uint64_t h = model_mix(seed * 8191 + (uint64_t)i);

    switch (skew) {
    case NOTHING:
        return 0;
    case ONE:
        return i == (int)(seed % (uint64_t)count) ? MOST : 0;
    case ONE_LONG:
        return i == (int)(seed % (uint64_t)count) ? MOST : 1;
    case HALF_EMPTY:
        return h % 2 == 0 ? 0 : 1 + (int)(h / 2 % 3);
    case RAMP:
        return i * MOST / count;
    default:
        return (int)(h % (MOST + 1));
    }
}

static void check_runs(model_t *m, const rd_algo_t *algo, const rd_sched_args_t *args, int fuse)
{
    int n = args->shape->nranks, count = args->coll == RD_ALLTOALL ? n * n : n;

    for (int skew = 0; skew < NUM_SKEWS; skew++) {
        model_run_t run = {.credits = 1 + fuse, .passes = MOST, .len = lengths, .seed = (uint64_t)runs++};
        const char *what;

        run.policy = (model_policy_t)(model_mix(run.seed) % MODEL_POLICIES);
        run.in_place = model_can_be_in_place(args->coll) && run.seed % 3 == 0;
        for (int i = 0; i < count; i++)
            lengths[i] = length(skew, i, count, run.seed);
        what = model_run(m, &run);
        if (what == NULL || ++failures > 20)
            continue;
        fprintf(stderr, "%s %s, %d ranks, root %d, fuse %d, in place %d, skew %d, policy %d, seed %llu: %s\n",
                algo->name, rd_coll_name(args->coll), n, args->root, fuse, run.in_place, skew, run.policy,
                (unsigned long long)run.seed, what);
    }
}

static void check_args(const rd_algo_t *algo, const rd_sched_args_t *args)
{
    for (int fuse = 0; fuse < 2; fuse++) {
        const char *why = NULL;
        model_t *m = model_build(algo, args, fuse, &why);

        if (m == NULL) {
            fprintf(stderr, "%s %s: %s\n", algo->name, rd_coll_name(args->coll), why);
            failures++;
            return;
        }
        check_runs(m, algo, args, fuse);
        model_free(m);
    }
}

int main(void)
{
    static const rd_coll_t colls[] = {RD_ALLGATHER, RD_REDUCE_SCATTER, RD_GATHER, RD_SCATTER, RD_ALLTOALL};
    static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 23, 32, 64};

    alarm(300);
    for (int s = 0; s < (int)(sizeof(sizes) / sizeof(sizes[0])); s++)
        for (int c = 0; c < (int)(sizeof(colls) / sizeof(colls[0])); c++)
            for (int a = 0; rd_algos[a] != NULL; a++) {
                rd_shape_t shape = {sizes[s], 1, NULL};
                rd_sched_args_t args = {&shape, colls[c], 0, 0, 0, 0};
                int roots = model_rooted(colls[c]) ? sizes[s] : 1;

                if (!(rd_algos[a]->colls >> colls[c] & 1) || rd_algos[a]->relays ||
                    rd_algos[a]->excluded(&args) != NULL)
                    continue;
                for (args.root = 0; args.root < roots; args.root++)
                    check_args(rd_algos[a], &args);
            }
    printf("%ld runs, %d failures\n", runs, failures);
    return failures > 0;
}
