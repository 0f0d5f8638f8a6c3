/* Communicators of 65 to 1024 ranks, sampled: some sizes beside powers of two and some between, some roots, an order of
 * lanes by the seed. Algorithms whose programs grow with the square of the ranks take a smaller sample. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sched/model.h"

static long runs;
static int failures;

static void check(const rd_algo_t *algo, const rd_sched_args_t *args, int fuse, uint64_t seed)
{
    model_run_t run = {.credits = 1 + fuse, .passes = args->coll == RD_BARRIER ? 1 : 2, .seed = seed};
    const char *why = NULL;
    model_t *m = model_build(algo, args, fuse, &why);

    if (args->shape->nranks > 300)
        run.passes = 1;
    run.in_place = model_can_be_in_place(args->coll) && seed % 2;
    run.policy = (model_policy_t)(model_mix(seed) % MODEL_POLICIES);
    if (m != NULL)
        why = model_run(m, &run);
    runs++;
    if (why != NULL) {
        failures++;
        fprintf(stderr, "%s %s, %d ranks, root %d, fuse %d, in place %d, policy %d, seed %llu: %s\n", algo->name,
                rd_coll_name(args->coll), args->shape->nranks, args->root, fuse, run.in_place, run.policy,
                (unsigned long long)seed, why);
    }
    if (m != NULL)
        model_free(m);
}

/* Whether all programs together have about n^2 steps. */
static int grows(const rd_algo_t *algo, rd_coll_t coll)
{
    if (strcmp(algo->name, "tree") == 0 || strcmp(algo->name, "rd") == 0)
        return 0;
    return !model_rooted(coll);
}

static void check_size(int n, uint64_t seed)
{
    rd_shape_t shape = {n, 1, NULL};

    for (int a = 0; rd_algos[a] != NULL; a++)
        for (int coll = 0; coll < RD_NUM_COLLS; coll++) {
            rd_sched_args_t args = {&shape, (rd_coll_t)coll, 0, 0, 0, 0};
            int fuse = (int)(model_mix(seed + (uint64_t)(a * RD_NUM_COLLS + coll)) % 2);

            if (!(rd_algos[a]->colls >> coll & 1) || rd_algos[a]->excluded(&args) != NULL)
                continue;
            if (model_rooted(args.coll))
                args.root = (int)(model_mix(seed) % (uint64_t)n);
            check(rd_algos[a], &args, fuse, seed);
            if (n < 300 || !grows(rd_algos[a], args.coll))
                check(rd_algos[a], &args, !fuse, seed + 1);
        }
}

int main(int argc, char **argv)
{
    static const int sizes[] = {65, 96, 127, 128, 129, 200, 255, 256, 257, 511, 512, 600, 777, 1000, 1023, 1024};
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;

    alarm(300);
    printf("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < (int)(sizeof(sizes) / sizeof(sizes[0])); i++)
        if (sizes[i] < 600 || (uint64_t)(i - 11) == seed % 4 || sizes[i] == 1024)
            check_size(sizes[i], seed * 1000 + (uint64_t)i);
    printf("%ld runs, %d failures\n", runs, failures);
    return failures > 0;
}
