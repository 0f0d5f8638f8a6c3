/* The candidates for an operation. They are listed in the same way for every executor: each algorithm that it runs, by
 * each of its protocols, with each length of slice that is worth a price. An executor brings its limits and its prices;
 * RONDO_ALGO and RONDO_PROTO are read here.
 */
#ifndef RD_PLAN_CANDIDATES_H
#define RD_PLAN_CANDIDATES_H

#include <stdbool.h>

#include "base/env.h"
#include "base/proto.h"
#include "sched/algo.h"
#include "plan/tuner.h"

#define RD_CHOICES_MOST 256

typedef struct rd_choice {
    const rd_algo_t *algo;
    int param; /* rd_sched_args_t.param */
    rd_proto_t proto;
    int together;         /* rd_sched_args_t.together */
    size_t slice;         /* most bytes of one block of a message. Host: a multiple of 64, at most a slot */
    double us;            /* predicted time; 0 where excluded */
    bool wanted_name;     /* it serves only if RONDO_ALGO names it, never for its price */
    const char *excluded; /* NULL, or why it cannot serve */
} rd_choice_t;

typedef struct rd_choices {
    rd_choice_t entry[RD_CHOICES_MOST]; /* the best first, the excluded ones last */
    int count;
} rd_choices_t;

/* The algorithms and the protocol that RONDO_ALGO and RONDO_PROTO force for an operation. */
typedef struct rd_forced {
    const char *algo; /* the words of a list (base/word_list.h), not terminated; NULL: none is forced */
    size_t length;
    bool except;     /* all algorithms but these */
    unsigned protos; /* the protocols that are allowed: bits 1u << rd_proto_t; 0: none is forced */
} rd_forced_t;

typedef struct rd_executor {
    bool gpus;       /* it runs the `device` entry of a card; 0: the card's entries for host memory */
    unsigned protos; /* the protocols that it has: bits 1u << rd_proto_t */
    /* Returns why the candidate cannot serve, or NULL if it can. */
    const char *(*excluded)(const void *limits, const rd_choice_t *choice);
    /* Adds the candidate with its price, once or for each length of slice. */
    void (*price)(const void *limits, rd_choice_t choice, rd_choices_t *to);
} rd_executor_t;

rd_forced_t rd_forced(const rd_env_t *env, rd_coll_t coll);
/* The protocols that RONDO_PROTO allows for messages of pairs, which its list for all operations says; 0: none is
 * forced. */
unsigned rd_forced_message_protos(const rd_env_t *env);
/* Returns true if the algorithm is among the names, whether these are forced or excluded. */
bool rd_forced_names(const rd_forced_t *forced, const rd_algo_t *algo);
static inline bool rd_forced_allows(const rd_forced_t *forced, const rd_algo_t *algo)
{
    return !forced->algo || rd_forced_names(forced, algo) != forced->except;
}

/* Of a CUDA communicator between nodes (forced_between.c). rd_forced_between makes the settings of its net
 * communicators, which follow what is forced where they can. rd_forced_serves_between returns true if they can for this
 * operation, or if nothing is forced for it. */
void rd_forced_between(const rd_env_t *env, rd_env_t *net);
bool rd_forced_serves_between(const rd_env_t *env, rd_coll_t coll);

/* Returns what applies where `env`, which is forced where it can serve, cannot: other settings, or *none, which is
 * filled. */
const rd_env_t *rd_forced_otherwise(const rd_env_t *env, rd_env_t *none);

/* Fills in all candidates for an operation. `local`: ranks on the fullest node. `args`: those of any rank, without
 * `param`. */
void rd_candidates(const rd_executor_t *executor, const void *limits, const rd_sched_args_t *args, int local,
                   const rd_forced_t *forced, rd_choices_t *choices);
void rd_candidates_add(rd_choices_t *to, const rd_choice_t *choice);
/* Returns the first candidate that may be chosen, or NULL if there is none. */
const rd_choice_t *rd_candidates_best(const rd_choices_t *choices, const rd_forced_t *forced);
/* If no candidate can serve: returns the one whose reason concerns what is forced, or NULL. */
const rd_choice_t *rd_candidates_reason(const rd_choices_t *choices, const rd_forced_t *forced);

/* Checks that RONDO_ALGO and RONDO_PROTO name operations, and algorithms and protocols that the executor has. */
rondo_result_t rd_names_check(const rd_env_t *env, const rd_executor_t *executor, rd_log_ctx_t *ctx);

#endif
