/* Every schedule of every collective on the symbolic model: 2 to 64 ranks (or `sched_check FIRST LAST`), all roots,
 * one credit without fusing and two with it, chunks of one to three slices, lanes in adversarial orders, in place and
 * not. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sched/model.h"

static long runs;
static int failures;

static void check_runs(model_t *m, const rd_algo_t *algo, const rd_sched_args_t *args, int fuse)
{
    int n = args->shape->nranks, place = model_can_be_in_place(args->coll);
    int policies = n <= 8 ? MODEL_POLICIES : n <= 32 ? 3 : 2;

    for (int i = 0; i < policies * (1 + place); i++) {
        model_run_t run = {.credits = 1 + fuse, .passes = args->coll == RD_BARRIER ? 1 : 3};
        const char *what;

        run.in_place = place && i % 2;
        run.seed = (uint64_t)(runs * 7 + 1);
        run.policy = n <= 8 ? i / (1 + place) : (int)(model_mix((uint64_t)runs) % MODEL_POLICIES);
        what = model_run(m, &run);
        runs++;
        if (what == NULL || ++failures > 20)
            continue;
        fprintf(stderr, "%s %s, %d ranks, root %d, param %d, fuse %d, in place %d, policy %d, seed %llu: %s\n",
                algo->name, rd_coll_name(args->coll), n, args->root, args->param, fuse, run.in_place, run.policy,
                (unsigned long long)run.seed, what);
    }
}

/* With one credit and with two; and with few ranks so, too, with blocks that go together: test/sched/together has more.
 */
static void check_args(const rd_algo_t *algo, rd_sched_args_t *args)
{
    if (algo->excluded(args) != NULL)
        return;
    int kinds = args->shape->nranks <= 16 ? 4 : 2;
    for (int kind = 0; kind < kinds; kind++) {
        const char *why = NULL;
        int fuse = kind % 2;

        args->together = kind > 1 ? 2 + (args->param * 7 + args->shape->nranks) % 19 : 0;
        model_t *m = model_build(algo, args, fuse, &why);

        if (m == NULL) {
            fprintf(stderr, "%s %s, %d ranks, root %d: %s\n", algo->name, rd_coll_name(args->coll), args->shape->nranks,
                    args->root, why);
            failures++;
            return;
        }
        check_runs(m, algo, args, fuse);
        model_free(m);
    }
}

/* Whether a plan or a GPU may ask for this value, by the card. What pat does with others is checked as well: it takes
 * any. */
static bool takes(const rd_algo_t *algo, int param)
{
    return param <= algo->params || param == algo->device.param || algo == rd_algo_find("pat");
}

static void check_algo(const rd_algo_t *algo, int n)
{
    rd_shape_t shape = {n, 1, NULL};
    rd_sched_args_t args = {&shape, 0, 0, 0, 0, 0};

    for (int coll = 0; coll < RD_NUM_COLLS; coll++) {
        if (!(algo->colls >> coll & 1))
            continue;
        args.coll = (rd_coll_t)coll;
        for (args.root = 0; args.root < (model_rooted(args.coll) ? n : 1); args.root++)
            for (args.param = 0; args.param <= 8; args.param++)
                if (takes(algo, args.param))
                    check_args(algo, &args);
    }
}

int main(int argc, char **argv)
{
    int first = argc > 2 ? atoi(argv[1]) : 1, last = argc > 2 ? atoi(argv[2]) : 64;

    alarm(300);
    for (int n = first; n <= last; n++)
        for (int a = 0; rd_algos[a] != NULL; a++)
            check_algo(rd_algos[a], n);
    printf("%ld runs, %d failures\n", runs, failures);
    return failures > 0;
}
