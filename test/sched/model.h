/* The symbolic model: runs the programs of all ranks of one operation on symbols instead of data.
 *
 * A symbol says which contributions an element holds (a sum of random 64-bit names: a missing or doubled one shows) and
 * in which order they were added (a hash that neither commutes nor associates). Connections are inboxes with a given
 * number of slots and sequence numbers; lanes of all ranks advance in an order that a policy and a seed choose, step by
 * step or until they block. What is wrong is told in a sentence: a wrong or missing result, different orders on
 * different ranks, a deadlock, a slot overwritten before it was read, a message left over, a read of what was not
 * written, of a buffer that does not exist, or of an input that was overwritten in place.
 */
#ifndef MODEL_H
#define MODEL_H

#include "sched/visits.h"

typedef enum {
    MODEL_FIFO,       /* in turn, each lane until it blocks */
    MODEL_LIFO,       /* whoever was woken last, until it blocks */
    MODEL_RANDOM,     /* any lane, one step */
    MODEL_STARVE,     /* a quarter of the lanes run only when nobody else can */
    MODEL_STARVE_LOW, /* so do the even lanes */
    MODEL_STARVE_HIGH,
    MODEL_POLICIES
} model_policy_t;

typedef struct model model_t;

typedef struct model_run {
    int credits, passes; /* slots an inbox; slices of the longest chunk */
    int in_place;
    model_policy_t policy;
    uint64_t seed;
    const int *len;   /* slices of each chunk, or of each (sender, receiver) in an all-to-all; NULL: by the seed */
    int early_credit; /* planted: credits return before the slot is read */
    int same_bank;    /* planted: the slot of a message is not advanced */
} model_run_t;

/* The order that the ranks of the next models have; its default is by number. */
extern rd_visits_t model_order;
/* Compiles the programs of all ranks. NULL, and a sentence in *why. */
model_t *model_build(const rd_algo_t *algo, const rd_sched_args_t *args, int fuse, const char **why);
void model_free(model_t *m);
/* NULL if all is right, else what is wrong; the text belongs to the model. */
const char *model_run(model_t *m, const model_run_t *run);

int model_ahead(const model_t *m);           /* messages that a sender was ahead of its receiver, at most, last run */
int model_steps(const model_t *m, int rank); /* in its program */
int model_messages(const model_t *m, int rank); /* that it sends in a pass */
int model_blocks(const model_t *m, int rank);   /* of its longest message */
int model_scratch(const model_t *m, int rank);  /* places */
/* Planted faults, in the program of one rank. Nonzero: there is nothing of the kind in this step. */
int model_drop_step(model_t *m, int rank, int step);
int model_swap_peer(model_t *m, int rank, int step, int by);
int model_split(model_t *m, int rank, int step);

uint64_t model_mix(uint64_t x); /* the hash that everything here uses */
int model_rooted(rd_coll_t coll);
int model_in_blocks(rd_coll_t coll); /* of which a switch has those of a rail in one message */
int model_can_be_in_place(rd_coll_t coll);

#endif
