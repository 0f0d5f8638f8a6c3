/* The candidates for an operation, the same for every executor: each algorithm that it runs, by each of its protocols,
 * in each length of slice that is worth a price. An executor brings its limits and its prices; what RONDO_ALGO and
 * RONDO_PROTO say is read here.
 */
#ifndef RD_PLAN_CANDIDATES_H
#define RD_PLAN_CANDIDATES_H

#include "base/env.h"
#include "base/proto.h"
#include "sched/algo.h"

#define RD_CHOICES_MOST 256

typedef struct rd_choice {
    const rd_algo_t *algo;
    int param; /* rd_sched_args_t.param */
    rd_proto_t proto;
    size_t slice;         /* bytes of one message at most. Host: a multiple of 64, at most a slot */
    double us;            /* predicted time; 0 where excluded */
    int wanted_name;      /* it may serve, but never for its price */
    const char *excluded; /* NULL, or why it cannot serve */
} rd_choice_t;

typedef struct rd_choices {
    rd_choice_t entry[RD_CHOICES_MOST]; /* the best first, the excluded ones last */
    int count;
} rd_choices_t;

/* What RONDO_ALGO and RONDO_PROTO force for an operation. */
typedef struct rd_forced {
    const char *algo; /* not terminated; NULL: nothing */
    size_t length;
    const char *proto; /* "": nothing */
} rd_forced_t;

typedef struct rd_executor {
    int gpus;        /* it runs what a card's `device` says; 0: what the card says for host memory */
    unsigned protos; /* that it has: 1u << rd_proto_t */
    /* Why the candidate cannot serve, or NULL. */
    const char *(*excluded)(const void *limits, const rd_choice_t *choice);
    /* Adds it with its price, or once for each length of slice. */
    void (*price)(const void *limits, rd_choice_t choice, rd_choices_t *to);
} rd_executor_t;

rd_forced_t rd_forced(const rd_env_t *env, rd_coll_t coll);

/* `local`: ranks on the fullest node. `args`: of any rank, without `param`. */
void rd_candidates(const rd_executor_t *executor, const void *limits, const rd_sched_args_t *args, int local,
                   const rd_forced_t *forced, rd_choices_t *choices);
void rd_candidates_add(rd_choices_t *to, const rd_choice_t *choice);
/* The first that may be chosen, or NULL: none. */
const rd_choice_t *rd_candidates_best(const rd_choices_t *choices, const rd_forced_t *forced);
/* Where none can serve: the one whose reason speaks of what is wanted, or NULL. */
const rd_choice_t *rd_candidates_reason(const rd_choices_t *choices, const rd_forced_t *forced);

/* RONDO_ALGO and RONDO_PROTO must name operations, and algorithms and protocols that the executor has. */
rondo_result_t rd_names_check(const rd_env_t *env, const rd_executor_t *executor, rd_log_ctx_t *ctx);

#endif
