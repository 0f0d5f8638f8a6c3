/* The cards' `board`: in these operations every rank sends one value of each chunk at most, in one lane, in an
 * allgather its own chunk alone, and in a scatter the root alone, what is not its own; and rd_steps_once leaves exactly
 * one message of each such value, so that a message is found by its sender and its chunk's number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sched/algo.h"
#include "sched/list.h"

#define RANKS_MOST 20

static int failures;

static void fail(const rd_algo_t *algo, const rd_sched_args_t *args, const char *what, int chunk)
{
    failures++;
    printf("%s %s, %d ranks, root %d, rank %d, chunk %d: %s\n", algo->name, rd_coll_name(args->coll),
           args->shape->nranks, args->root, args->rank, chunk, what);
}

static bool same(rd_end_t a, rd_end_t b)
{
    return a.where == b.where && a.index == b.index;
}

/* The value of a chunk that was sent: where it lay. It must not be written again. */
typedef struct sent {
    bool any;
    rd_end_t from;
} sent_t;

static void look(const rd_algo_t *algo, const rd_sched_args_t *args, const rd_step_t *step, sent_t *sent)
{
    bool sends = false;

    for (int k = 0; k < step->ndst; k++) {
        for (int c = 0; c < RANKS_MOST; c++)
            if (sent[c].any && step->dst[k].where != RD_PEER && same(step->dst[k], sent[c].from))
                sent[c].from = (rd_end_t){RD_PEER, -1}; /* overwritten: it may not be sent once more */
        sends |= step->dst[k].where == RD_PEER;
    }
    if (!sends)
        return;
    if (args->coll == RD_ALLGATHER && step->chunk != args->rank)
        fail(algo, args, "another rank's block is sent", step->chunk);
    if (args->coll == RD_SCATTER && (args->rank != args->root || step->chunk == args->root))
        fail(algo, args, "the root's own block is sent, or by another rank", step->chunk);
    if (step->nsrc != 1 || step->src[0].where == RD_PEER) {
        if (sent[step->chunk].any)
            fail(algo, args, "a second value is sent", step->chunk);
    } else if (sent[step->chunk].any && !same(sent[step->chunk].from, step->src[0])) {
        fail(algo, args, "another value is sent", step->chunk);
    }
    sent[step->chunk] = (sent_t){true, step->src[0]};
}

static void count_once(const rd_algo_t *algo, const rd_sched_args_t *args, rd_steps_t *s, const sent_t *sent)
{
    int messages[RANKS_MOST] = {0};

    if (rd_steps_once(s) != 0) {
        fail(algo, args, s->error, -1);
        return;
    }
    for (int i = s->lanes[0].first; i < s->lanes[0].first + s->lanes[0].count; i++)
        for (int k = 0; k < s->steps[i].ndst; k++)
            messages[s->steps[i].chunk] += s->steps[i].dst[k].where == RD_PEER;
    for (int c = 0; c < s->nchunks; c++)
        if (messages[c] != sent[c].any)
            fail(algo, args, "not written once", c);
}

static void rank_check(const rd_algo_t *algo, const rd_sched_args_t *args)
{
    rd_steps_t *s = algo->emit(args);
    sent_t sent[RANKS_MOST];

    memset(sent, 0, sizeof sent);
    if (!s || rd_steps_expand(s) != 0)
        exit(1);
    if (s->nlanes != 1)
        fail(algo, args, "several lanes", -1);
    for (int i = s->lanes[0].first; i < s->lanes[0].first + s->lanes[0].count; i++)
        look(algo, args, &s->steps[i], sent);
    count_once(algo, args, s, sent);
    rd_steps_free(s);
}

int main(void)
{
    int cards = 0;

    alarm(60);
    for (int a = 0; rd_algos[a]; a++)
        for (int coll = 0; coll < RD_NUM_COLLS; coll++) {
            if (!(rd_algos[a]->board >> coll & 1))
                continue;
            cards++;
            for (int n = 2; n <= RANKS_MOST; n++) {
                const rd_shape_t shape = {n, 1, NULL};
                for (int rank = 0; rank < n; rank++)
                    for (int root = 0; root < n; root += 3) {
                        const rd_sched_args_t args = {
                            .shape = &shape, .coll = (rd_coll_t)coll, .rank = rank, .root = root};
                        rank_check(rd_algos[a], &args);
                    }
            }
        }
    printf("once: %d operations of cards, %d failures\n", cards, failures);
    return failures || !cards;
}
