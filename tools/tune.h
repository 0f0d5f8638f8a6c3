/* The parts of rondo-tune. */
#ifndef RD_TUNE_H
#define RD_TUNE_H

#include <stdbool.h>
#include <stdio.h>

#include "cost/model.h"
#include "exec/cuda/cuda.h"

/* One time that was measured, and what the cost model must be asked to predict it. */
typedef struct tune_time {
    rd_cost_env_t env; /* but for the prices */
    rd_coll_t coll;
    char algo[16];
    rd_proto_t proto;
    size_t bytes, slice;
    double us;
} tune_time_t;

/* By which factor a prediction is typically off, and by which one what is chosen is slower than the best that was
 * measured for the same operation and size. 1: not at all. */
typedef struct tune_miss {
    double time, choice;
} tune_miss_t;

/* Changes the prices of shared memory until the model's choices and predictions are as good as can be. What the times
 * say nothing about stays as it was. Sorts the times. */
void tune_fit(rd_prices_t *prices, tune_time_t *times, int count);
tune_miss_t tune_miss(const rd_prices_t *prices, const tune_time_t *times, int count); /* sorted by tune_fit */

int tune_by_question(const void *x, const void *y); /* for qsort: times of one number of ranks, operation and size */

double tune_predict(const rd_prices_t *prices, const tune_time_t *t); /* microseconds */

/* What prices say of the times of one number of ranks, operation and size. */
typedef struct tune_answer {
    const tune_time_t *chosen, *best; /* the cheapest as predicted, and as measured */
    double predicted;                 /* microseconds, of the chosen one */
    double error;                     /* sum over the times of |log(predicted / measured)| */
} tune_answer_t;

/* Answers for the times that begin at `first`, sorted by tune_by_question. Returns where the next ones begin. */
int tune_answer(tune_answer_t *a, const rd_prices_t *prices, const tune_time_t *times, int first, int count);

/* Prints, for each operation and size, what these prices choose, beside the best that was measured. Sorts the times.
 * Returns whether they are good here: predictions near, and no choice much slower than the best. */
bool tune_check(const rd_prices_t *prices, tune_time_t *times, int count, FILE *out);

/* Writes times and what these prices predict, or reads them: tune_times.c. Reading returns the number of times, at most
 * `most`, or -1 after saying that the file cannot be read; writing returns 0, or nonzero if it cannot be written. */
int tune_times_write(const char *file, const tune_time_t *times, int count, const rd_prices_t *prices);
int tune_times_read(const char *file, tune_time_t *times, int most);

/* What is measured between GPUs: tune_cuda.c. */
typedef struct tune_cuda {
    const char *perf; /* rondo-perf */
    const int *ranks; /* numbers of GPUs */
    int nranks, rounds, flat;
} tune_cuda_t;

/* Changes the prices between GPUs, on a machine where the way between them is to be the new measure. The number of
 * times; 0: nothing could be measured. */
int tune_cuda(rd_prices_t *prices, const tune_cuda_t *what, const rd_env_t *env);

#endif
