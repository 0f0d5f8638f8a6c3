/* What the steps of a schedule make of what all ranks have, worked out on the host: each rank's program as lib/sched
 * compiles it, unfused, messages in queues without end. */
#ifndef TEST_SIM_SCHEDULE_H
#define TEST_SIM_SCHEDULE_H

#include <stddef.h>

#include "exec/host/reduce.h"
#include "sched/algo.h"

#define SCHEDULE_RANKS 16

typedef struct schedule {
    const rd_algo_t *algo;
    rd_coll_t coll;
    int n, root, param;
    size_t bytes, element;       /* of the whole, or of a block */
    const rd_reducer_t *reducer; /* NULL: nothing is summed */
    int at_once;                 /* a step's sum is rounded once; else after each source */
    char *in[SCHEDULE_RANKS], *out[SCHEDULE_RANKS]; /* contributions: scaled already */
} schedule_t;

/* 0, or -1: it does not compile, or nobody can go on. */
int schedule_run(const schedule_t *s);

#endif
