/* The checker checked: faults planted in right programs and in the inboxes are all caught.
 *
 *   a dropped step, a swapped peer    in the program of one rank: every step of small communicators, some of larger
 * ones an early credit                   a slot counts as free before it is read a bank reused                     a
 * message goes into the slot of the one before
 *
 * The last two show only where a sender can be further ahead of its receiver than the slots allow, which the model
 * tells: ranks that exchange may keep each other in step, and then there is nothing to overwrite.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sched/model.h"

#define PASSES 4

enum { DROP, SWAP, CREDIT, BANK, KINDS };

static const char *const kind_names[KINDS] = {"dropped step", "swapped peer", "early credit", "bank reused"};
static long planted[KINDS], caught[KINDS];
static int in_step, verbose;

static int lengths[64 * 64];

/* Nonzero if one of the orders shows that something is wrong. */
static int shows(model_t *m, const model_run_t *like, int tries)
{
    for (int i = 0; i < tries * MODEL_POLICIES; i++) {
        model_run_t run = *like;

        run.policy = (model_policy_t)(i % MODEL_POLICIES);
        run.seed = (uint64_t)i;
        if (model_run(m, &run) != NULL)
            return 1;
    }
    return 0;
}

static void count(int kind, int seen, const rd_algo_t *algo, const rd_sched_args_t *args, int fuse, int rank, int step)
{
    planted[kind]++;
    caught[kind] += seen;
    if (!seen || verbose)
        printf("%s: %s in %s %s, %d ranks, root %d, fuse %d, rank %d, step %d\n", seen ? "caught" : "MISSED",
               kind_names[kind], algo->name, rd_coll_name(args->coll), args->shape->nranks, args->root, fuse, rank,
               step);
}

static model_t *build(const rd_algo_t *algo, const rd_sched_args_t *args, int fuse)
{
    const char *why;
    model_t *m = model_build(algo, args, fuse, &why);

    if (m == NULL) {
        printf("%s %s: %s\n", algo->name, rd_coll_name(args->coll), why);
        exit(1);
    }
    return m;
}

/* Drops, and then swaps, one step of a fresh set of programs. */
static void plant_in_program(const rd_algo_t *algo, const rd_sched_args_t *args, int fuse, int rank, int step)
{
    model_run_t run = {.credits = 1 + fuse, .passes = args->coll == RD_BARRIER ? 1 : PASSES, .len = lengths};
    int by = 1 + (step + rank) % (args->shape->nranks - 1);

    for (int kind = DROP; kind <= SWAP; kind++) {
        model_t *m = build(algo, args, fuse);
        int rc = kind == DROP ? model_drop_step(m, rank, step) : model_swap_peer(m, rank, step, by);

        if (rc == 0)
            count(kind, shows(m, &run, 1), algo, args, fuse, rank, step);
        model_free(m);
    }
}

/* How far a sender can be ahead, given `credits` slots. */
static int reach(model_t *m, int credits, const rd_algo_t *algo, const rd_sched_args_t *args)
{
    int most = 0;

    for (int i = 0; i < 20 * MODEL_POLICIES; i++) {
        model_run_t run = {.credits = credits, .passes = PASSES, .len = lengths, .seed = (uint64_t)i};
        const char *what;

        run.policy = (model_policy_t)(i % MODEL_POLICIES);
        what = model_run(m, &run);
        if (what != NULL) {
            printf("%s %s, %d ranks: wrong without a fault: %s\n", algo->name, rd_coll_name(args->coll),
                   args->shape->nranks, what);
            exit(1);
        }
        if (model_ahead(m) > most)
            most = model_ahead(m);
    }
    return most;
}

static void plant_in_inbox(const rd_algo_t *algo, const rd_sched_args_t *args, int fuse)
{
    model_run_t early = {.credits = 1 + fuse, .passes = PASSES, .len = lengths, .early_credit = 1};
    model_run_t reused = {.credits = 1 + fuse, .passes = PASSES, .len = lengths, .same_bank = 1};
    model_t *m;

    if (args->coll == RD_BARRIER) /* a message a connection */
        return;
    m = build(algo, args, fuse);
    if (reach(m, 2 + fuse, algo, args) == 2 + fuse)
        count(CREDIT, shows(m, &early, 20), algo, args, fuse, -1, -1);
    else
        in_step++;
    if (fuse == 1 && reach(m, 2, algo, args) == 2)
        count(BANK, shows(m, &reused, 20), algo, args, fuse, -1, -1);
    model_free(m);
}

static void plant(const rd_algo_t *algo, const rd_sched_args_t *args)
{
    int n = args->shape->nranks;

    for (int fuse = 0; fuse < 2; fuse++) {
        model_t *m = build(algo, args, fuse);
        int stride = n <= 5 ? 1 : 7; /* of all the steps of all ranks, every seventh */
        int at = args->root;

        for (int rank = 0; rank < n; rank++)
            for (int step = 0; step < model_steps(m, rank); step++)
                if (at++ % stride == 0)
                    plant_in_program(algo, args, fuse, rank, step);
        model_free(m);
        plant_in_inbox(algo, args, fuse);
    }
}

static void plant_all(const rd_shape_t *shape)
{
    for (int a = 0; rd_algos[a] != NULL; a++)
        for (int coll = 0; coll < RD_NUM_COLLS; coll++) {
            rd_sched_args_t args = {shape, (rd_coll_t)coll, 0, 0, 0, 0};

            if (model_rooted(args.coll))
                args.root = (shape->nranks - 1) / 2;
            if ((rd_algos[a]->colls >> coll & 1) && rd_algos[a]->excluded(&args) == NULL &&
                (shape->nnodes == 1 || rd_algos[a]->switched || strncmp(rd_algos[a]->name, "hier", 4) == 0))
                plant(rd_algos[a], &args);
        }
}

int main(int argc, char **argv)
{
    static const int sizes[] = {2, 3, 4, 5, 8, 11};
    static const int even[] = {0, 0, 1, 1, 2, 2}, uneven[] = {0, 0, 0, 1, 1, 2, 2, 2};
    const rd_shape_t on_nodes[] = {{4, 2, even}, {6, 3, even}, {8, 3, uneven}};
    int failed = 0;

    (void)argv;
    verbose = argc > 1;
    alarm(300);
    for (int i = 0; i < 64 * 64; i++)
        lengths[i] = PASSES;
    for (int i = 0; i < (int)(sizeof(sizes) / sizeof(sizes[0])); i++)
        plant_all(&(rd_shape_t){sizes[i], 1, NULL});
    for (int i = 0; i < (int)(sizeof(on_nodes) / sizeof(on_nodes[0])); i++)
        plant_all(&on_nodes[i]);
    for (int kind = 0; kind < KINDS; kind++) {
        printf("%s: %ld planted, %ld caught\n", kind_names[kind], planted[kind], caught[kind]);
        failed |= caught[kind] != planted[kind] || planted[kind] == 0;
    }
    printf("no early credit possible, the ranks keep in step: %d\n", in_step);
    return failed;
}
