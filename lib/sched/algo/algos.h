/* What the algorithm files show to the registry and to each other. */
#ifndef RD_ALGOS_H
#define RD_ALGOS_H

#include "sched/algo.h"
#include "sched/list.h"

extern const rd_algo_t rd_algo_direct;
extern const rd_algo_t rd_algo_oneshot;
extern const rd_algo_t rd_algo_twoshot;
extern const rd_algo_t rd_algo_ring;
extern const rd_algo_t rd_algo_tree;
extern const rd_algo_t rd_algo_pat;
extern const rd_algo_t rd_algo_rd;
extern const rd_algo_t rd_algo_binomial;
extern const rd_algo_t rd_algo_hier_ring;
extern const rd_algo_t rd_algo_hier_tree;
extern const rd_algo_t rd_algo_hier_rd;
extern const rd_algo_t rd_algo_hier_binomial;
extern const rd_algo_t rd_algo_hier_pat;
extern const rd_algo_t rd_algo_hier_direct;

const char *rd_sched_any(const rd_sched_args_t *args); /* `excluded` of an algorithm that always serves */

#endif
