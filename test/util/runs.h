/* The command line of a test that runs one body with several numbers of ranks, as processes and as threads: which of
 * these runs there are to be. Each prints a line of its own. */
#ifndef TEST_RUNS_H
#define TEST_RUNS_H

#include "util/harness.h"

typedef struct test_runs {
    const char *name; /* of the test */
    uint64_t seed;
    int ranks;                        /* 0: every number that the test has */
    unsigned kinds;                   /* bits 1 << test_kind_t; processes alone where nodes are played */
    int (*nodes)(const char *layout); /* plays nodes as "2+1", returns their ranks, or 0; NULL: the test cannot */
} test_runs_t;

#define TEST_ALL_KINDS (1u << TEST_PROCESSES | 1u << TEST_THREADS)

/* For the table of getopt_long. What it returns for them goes to test_runs_option, which returns false if it is another
 * option, or if its value is wrong. */
#define TEST_RUNS_OPTIONS                                                                                              \
    {"seed", 1, NULL, 's'}, {"ranks", 1, NULL, 'n'}, {"kind", 1, NULL, 'k'},                                           \
    {                                                                                                                  \
        "nodes", 1, NULL, 'd'                                                                                          \
    }
bool test_runs_option(test_runs_t *r, int option);

/* Is that one of the runs? Without --ranks every number of ranks is. */
bool test_runs_has(const test_runs_t *r, int nranks, test_kind_t kind);
/* Runs `body` as test_run does, and prints what has become of it and how long it took. */
int test_runs_run(const test_runs_t *r, int nranks, test_kind_t kind, int seconds, test_body_fn body, void *arg);

#endif
