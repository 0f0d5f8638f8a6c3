/* What the tests of net plugins and of CollNet plugins share. */
#ifndef TEST_NETPLUGIN_TRIAL_H
#define TEST_NETPLUGIN_TRIAL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"
#include "util/start_with.h"

#define TRIAL_FOLDER 3000

/* The folder of the plugins that this build has made; the program starts anew so that they are found there by name. */
static void trial_start(char folder[TRIAL_FOLDER], char **argv)
{
    const char *build = getenv("top_builddir");

    snprintf(folder, TRIAL_FOLDER, "%s/.libs", build ? build : ".");
    start_with(folder, argv);
}

/* An allreduce of `count` float32, whose result is compared. */
static void trial_sum(test_rank_t *t, rondo_comm_t comm, float *in, float *out, size_t count)
{
    size_t wrong = 0;

    for (size_t i = 0; i < count; i++)
        in[i] = (float)(i % 1000);
    TEST_OK(t, comm, rondo_allreduce(in, out, count, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    for (size_t i = 0; i < count; i++)
        wrong += out[i] != (float)t->nranks * in[i];
    TEST_TRUE(t, wrong == 0);
}

/* Fails unless the communicator's last error has `word`. */
static void trial_says(test_rank_t *t, rondo_comm_t comm, const char *word)
{
    if (!strstr(rondo_last_error(comm), word))
        test_fail(t, "the sentence is: %s", rondo_last_error(comm));
}

#endif
