/* What a test that plays a communicator to its liveness leaves undone: nothing is heard or told through the memory of a
 * node, no question is answered, and nobody loses patience. */
#ifndef SILENT_OPS_H
#define SILENT_OPS_H

#include "transport/liveness.h"

static void silent(void *arg)
{
    (void)arg;
}

static void silent_answer(void *arg, const rd_boot_question_t *question)
{
    (void)arg;
    (void)question;
}

static void silent_patience(void *arg, const rd_boot_claim_t *claim)
{
    (void)arg;
    (void)claim;
}

#define SILENT_OPS silent, silent, silent_answer, silent_patience /* behind has_left and has_failed */

#endif
