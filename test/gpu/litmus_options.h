/* What the programs that check orders of stores are asked for, and each check by processes and by threads. */
#ifndef TEST_GPU_LITMUS_OPTIONS_H
#define TEST_GPU_LITMUS_OPTIONS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

typedef struct {
    uint64_t seed;
    int ranks; /* at most */
    unsigned rounds, words;
} litmus_options_t;

/* Returns -1 if there is an option that is not known, or a number that is not allowed. */
static inline int litmus_options(litmus_options_t *o, int argc, char **argv, uint64_t least_ranks, uint64_t most_ranks)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const uint64_t number = strtoull(argv[i + 1], NULL, 0);
        if (!strcmp(argv[i], "--seed"))
            o->seed = number;
        else if (!strcmp(argv[i], "--ranks") && number >= least_ranks && number <= most_ranks)
            o->ranks = (int)number;
        else if (!strcmp(argv[i], "--rounds") && number > 0)
            o->rounds = (unsigned)number;
        else if (!strcmp(argv[i], "--words") && number > 0)
            o->words = (unsigned)number;
        else
            return -1;
    }
    return argc % 2 ? 0 : -1;
}

/* Runs a body by processes and, if asked, by threads, until one is wrong. */
static inline int litmus_kinds(const char *name, const char *what, uint64_t seed, int ranks, test_body_fn body,
                               void *arg, bool threads)
{
    int bad = 0;

    for (int kind = TEST_PROCESSES; kind <= (threads ? TEST_THREADS : TEST_PROCESSES) && bad == 0; kind++) {
        bad = test_run((test_kind_t)kind, ranks, 240, body, arg);
        printf("%s: %s, %d %s, seed %llu: %s\n", name, what, ranks, test_kind_name((test_kind_t)kind),
               (unsigned long long)seed, bad ? "WRONG" : "right");
    }
    return bad;
}

#endif
