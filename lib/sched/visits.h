/* The order of a machine: at which place each rank stands when neighbours are to be near each other. A ring, a chain
 * and a tree join the ranks of neighbouring places, so that they cross from node to node, and from NUMA node to NUMA
 * node, as seldom as possible. Algorithms know nothing of it: they count ranks as if by places, and their steps are
 * renamed. */
#ifndef RD_SCHED_VISITS_H
#define RD_SCHED_VISITS_H

#include "sched/algo.h"
#include "sched/program.h"

typedef struct rd_visits {
    const int *rank;  /* at each place; NULL: every rank's place is its number */
    const int *visit; /* of each rank */
} rd_visits_t;

/* algo->emit, for a rank at its place in the order if the algorithm follows it. The result is in numbers of ranks. */
rd_steps_t *rd_visits_emit(const rd_algo_t *algo, const rd_sched_args_t *args, const rd_visits_t *order);

#endif
