/* A tuner: somebody outside of the library who has a say in its choices, such as a plugin. When a plan is made, the
 * tuner is shown the candidates with the times that the cost model predicts, and names one of them, or leaves the
 * choice to the model. It is asked once for a plan, never once for a call, and not twice for the same candidates.
 *
 * The model's choices are alike on all ranks because their arguments are; a tuner's answers need not be. So a plan
 * whose communicator has a tuner keeps what was chosen as a word, which is part of the signature of each call
 * (monitor/called.h): messages of ranks that have chosen differently are never taken for each other's, and whoever
 * waits for one finds out whose tuner answers differently (progress/unlike.h). No rank has to ask another one.
 *
 * RONDO_ALGO and RONDO_PROTO come first: what they exclude is no candidate. */
#ifndef RD_PLAN_TUNER_H
#define RD_PLAN_TUNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a tuner is told of a communicator. */
typedef struct rd_tuner_comm {
    uint64_t id; /* the same on all ranks */
    int nranks, nnodes;
    int fewest, most; /* ranks on the emptiest and the fullest node */
} rd_tuner_comm_t;

/* What is to be chosen for. */
typedef struct rd_tuner_call {
    const char *operation; /* "allreduce" */
    size_t bytes;          /* of the vector, or of the blocks of all ranks together, in the caller's type */
} rd_tuner_call_t;

typedef struct rd_tuner_candidate {
    const char *algo, *proto; /* rondo's names */
    const char *nccl;         /* NCCL's name for the algorithm, in upper or lower case; NULL: it has none */
    size_t slice;             /* most bytes of a block of a message */
    double us;                /* as predicted */
} rd_tuner_candidate_t;

/* All functions may be called by several threads, for different communicators. */
typedef struct rd_tuner {
    const char *name; /* for sentences; it must be the same on all ranks */
    /* A communicator begins. Returns false if the tuner has nothing to say to this one. */
    bool (*begin)(const rd_tuner_comm_t *comm, void **context);
    /* Returns the number of the candidate to be taken, or -1: the model's choice. The cheapest comes first. */
    int (*choose)(void *context, const rd_tuner_call_t *call, const rd_tuner_candidate_t *candidates, int count);
    void (*end)(void *context);
} rd_tuner_t;

#define RD_TUNER_ANSWERS 64

/* The tuner of a communicator. */
typedef struct rd_tuned {
    const rd_tuner_t *tuner; /* NULL: it has none */
    void *context;
    bool asked; /* false: it has nothing to say here */
    /* Its last answers; `question` is a hash of the call and the candidates, 0: none. */
    struct {
        uint64_t question;
        int answer;
    } answers[RD_TUNER_ANSWERS];
} rd_tuned_t;

/* The tuner of the communicators that this process makes from now on. `tuner` must last; NULL: none. */
void rd_tuner_set(const rd_tuner_t *tuner);
const rd_tuner_t *rd_tuner_get(void);

struct rd_choice;
struct rd_choices;
struct rd_forced;

/* Returns the candidate that the tuner names, or NULL if the choice is the model's. */
const struct rd_choice *rd_tuner_choice(rd_tuned_t *tuned, const rd_tuner_call_t *call,
                                        const struct rd_choices *choices, const struct rd_forced *forced);

/* The word for a choice, which has the bit RD_TUNER_CHOICE, and its words: "ring by simple, slices of 4096 bytes". A
 * word without that bit is for what a call forces (plan/force.h), and 0 where nobody has a say. */
#define RD_TUNER_TEXT 80
#define RD_TUNER_CHOICE (UINT64_C(1) << 63)
uint64_t rd_tuner_word(const struct rd_choice *choice);
void rd_tuner_describe(uint64_t word, char text[RD_TUNER_TEXT]);

#endif
