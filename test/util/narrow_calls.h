/* Hard values of the narrow floating types (narrow.h) through rondo's calls, on host memory or devices. */
#ifndef TEST_NARROW_CALLS_H
#define TEST_NARROW_CALLS_H

#include "util/harness.h"

/* Where buffers are. */
typedef struct narrow_memory {
    void *stream;
    void *(*get)(test_rank_t *t, size_t bytes);
    void (*back)(void *memory);
    void (*copy)(test_rank_t *t, void *to, const void *from, size_t bytes, void *stream); /* and waits */
} narrow_memory_t;

extern const narrow_memory_t narrow_host;

#define NARROW_ALL (-1)

/* Every type, operation and operator, in place and not, each with all of these numbers of elements (NARROW_ALL), or
 * with one of them: `turn` and as many more as there are numbers, less one, make all of it. Returns how many operations
 * were served; that some are refused is a failure unless `may_refuse`. */
int narrow_calls(test_rank_t *t, rondo_comm_t comm, const narrow_memory_t *memory, const size_t *counts, int ncounts,
                 int turn, int may_refuse);

#endif
