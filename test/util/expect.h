/* What a test of the bootstrap's parts expects: each thing that is not so is said and counted, and the test goes on. */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdio.h>

static const char *now; /* what is tried */
static int failures;

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("FAILED: %s: %s (%s, line %d)\n", now, #condition, __FILE__, __LINE__);                             \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)

#endif
