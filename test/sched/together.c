/* Blocks that go together as one message: the operations of every algorithm that lets them, on the symbolic model, with
 * as many blocks in a message as there are and with few. A rank sends as many messages as the card counts, no message
 * has more blocks than may go together, and partial sums take as many places as that allows, however many ranks there
 * are. Faults planted in the parts of messages are found.
 *
 * A sample of 2 to 1024 ranks; `test/sched/together FIRST LAST` checks every number from FIRST to LAST. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sched/model.h"

#define PLANTED_MOST 12 /* ranks of the programs that faults are planted in */

static long runs, planted, caught;
static int failures;

static void failed(const rd_algo_t *algo, const rd_sched_args_t *args, const model_run_t *run, const char *what)
{
    fprintf(stderr, "%s %s, %d ranks, together %d, credits %d, in place %d, policy %d, seed %llu: %s\n", algo->name,
            rd_coll_name(args->coll), args->shape->nranks, args->together, run->credits, run->in_place, run->policy,
            (unsigned long long)run->seed, what);
    if (++failures > 20)
        exit(1);
}

/* Partial sums wait in every dimension below the first ones, for as many blocks as go together. */
static int most_scratch(int n, int together)
{
    int levels = 2;

    for (int a = together; a < n; a *= 2)
        levels++;
    return (together < n ? together : n) * levels + 2;
}

static void check_program(model_t *m, const rd_algo_t *algo, const rd_sched_args_t *args, const model_run_t *run)
{
    rd_count_t c = rd_count(args->coll, args->shape->nranks, args->shape->nranks, 1, args->param);
    rd_work_t work = {.chunks = 1};
    int most = 0;
    char text[128];

    c.together = args->together;
    if (rd_algo_work(algo, &c, &work) != 0)
        failed(algo, args, run, "no formula");
    for (int r = 0; r < args->shape->nranks; r++) {
        int scratch = model_scratch(m, r), messages = model_messages(m, r);
        most = messages > most ? messages : most;
        if (model_blocks(m, r) > args->together)
            failed(algo, args, run, "a message has more blocks than may go together");
        if (scratch > most_scratch(args->shape->nranks, args->together)) {
            snprintf(text, sizeof text, "%d places of scratch, and not %d", scratch,
                     most_scratch(args->shape->nranks, args->together));
            failed(algo, args, run, text);
        }
    }
    if (fabs(2 * most - work.messages) > 0.01) {
        snprintf(text, sizeof text, "a rank sends %d messages, its card says %g", most, work.messages / 2);
        failed(algo, args, run, text);
    }
}

static void check(const rd_algo_t *algo, const rd_sched_args_t *args, uint64_t seed)
{
    int fuse = (int)(seed % 2), n = args->shape->nranks;
    model_run_t run = {.credits = 1 + fuse, .passes = n > 300 ? 1 : 2, .seed = seed};
    const char *why = NULL;
    model_t *m = model_build(algo, args, fuse, &why);

    run.in_place = model_can_be_in_place(args->coll) && seed / 2 % 2;
    run.policy = (model_policy_t)(model_mix(seed) % MODEL_POLICIES);
    if (m) {
        check_program(m, algo, args, &run);
        why = model_run(m, &run);
        model_free(m);
    }
    runs++;
    if (why)
        failed(algo, args, &run, why);
}

/* All blocks that there are, which takes log2 n messages; a few; and some number in between. */
static void check_size(const rd_algo_t *algo, int n)
{
    rd_shape_t shape = {n, 1, NULL};
    uint64_t seed = model_mix((uint64_t)n);
    const int together[] = {n, 2 + (int)(seed % 15), 2 + (int)(seed / 16 % (uint64_t)n)};

    for (int coll = 0; coll < RD_NUM_COLLS; coll++)
        for (int i = 0; i < (n > 300 ? 2 : 3); i++) {
            rd_sched_args_t args = {&shape, (rd_coll_t)coll, 0, 0, 0, together[i]};
            if (algo->colls >> coll & 1)
                check(algo, &args, seed++);
        }
}

/* The fault is found, in some order of the lanes. */
static void plant(const rd_algo_t *algo, const rd_sched_args_t *args, int rank, int step, int kind)
{
    static const char *const kinds[] = {"dropped block", "message cut in two", "swapped peer"};
    static int lengths[PLANTED_MOST * PLANTED_MOST];
    const char *why = NULL;
    model_t *m = model_build(algo, args, 1, &why);
    int shown = 0, rc;

    if (!m)
        exit(1);
    for (int i = 0; i < PLANTED_MOST * PLANTED_MOST; i++)
        lengths[i] = 1;
    rc = kind == 0   ? model_drop_step(m, rank, step)
         : kind == 1 ? model_split(m, rank, step)
                     : model_swap_peer(m, rank, step, 1);
    for (int i = 0; rc == 0 && i < MODEL_POLICIES && !shown; i++) {
        model_run_t run = {.credits = 2, .passes = 1, .len = lengths, .policy = (model_policy_t)i};
        shown = model_run(m, &run) != NULL;
    }
    planted += rc == 0;
    caught += shown;
    if (rc == 0 && !shown)
        printf("MISSED: %s, %s %s, %d ranks, together %d, rank %d, step %d\n", kinds[kind], algo->name,
               rd_coll_name(args->coll), args->shape->nranks, args->together, rank, step);
    model_free(m);
}

static void plant_all(const rd_algo_t *algo, const rd_shape_t *shape)
{
    int n = shape->nranks;

    for (int coll = 0; coll < RD_NUM_COLLS; coll++) {
        rd_sched_args_t args = {shape, (rd_coll_t)coll, 0, 0, 0, n};
        const char *why;
        model_t *m = algo->colls >> coll & 1 ? model_build(algo, &args, 1, &why) : NULL;
        for (int rank = 0; m && rank < n; rank += 3)
            for (int step = 0; step < model_steps(m, rank); step++)
                for (int kind = 0; kind < 3; kind++)
                    plant(algo, &args, rank, step, kind);
        if (m)
            model_free(m);
    }
}

int main(int argc, char **argv)
{
    static const int sample[] = {33,  48,  63,  64,  65,  96,  100, 127, 128, 129,
                                 200, 255, 256, 257, 300, 511, 513, 777, 1024};
    static const int node[] = {0, 0, 1, 1, 2, 2};
    const rd_shape_t on_nodes = {6, 3, node};
    int first = argc > 2 ? atoi(argv[1]) : 2, last = argc > 2 ? atoi(argv[2]) : 32;

    alarm(argc > 2 ? 0 : 300);
    for (int a = 0; rd_algos[a]; a++) {
        if (!rd_algos[a]->joins)
            continue;
        if (rd_algos[a]->near == RD_PEERS_COUNTED) { /* test/sched/hier has their operations */
            plant_all(rd_algos[a], &on_nodes);
            continue;
        }
        for (int n = first; n <= last; n++)
            check_size(rd_algos[a], n);
        for (size_t i = 0; argc <= 2 && i < sizeof sample / sizeof *sample; i++)
            if (sample[i] <= (rd_algos[a]->relays ? 129 : 1024)) /* n^2 log n blocks are moved */
                check_size(rd_algos[a], sample[i]);
        for (int n = 5; argc <= 2 && n <= PLANTED_MOST; n += 7)
            plant_all(rd_algos[a], &(rd_shape_t){n, 1, NULL});
    }
    printf("%ld runs, %d failures; %ld faults planted, %ld found\n", runs, failures, planted, caught);
    return failures > 0 || caught != planted || runs == 0;
}
