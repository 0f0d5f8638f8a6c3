/* Ranks whose settings differ make no communicator: all say which one, and what it is at whom. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

#define RANKS 3

typedef struct {
    const char *name, *value; /* of a variable */
    int rank;                 /* that has it set */
    const char *sentence;     /* what all say, but for the hosts' names */
} trial_t;

/* Nonzero: `text` has the parts of `sentence` between its %s in this order. */
static int fits(const char *text, const char *sentence)
{
    char parts[160], *part = parts, *rest;

    snprintf(parts, sizeof parts, "%s", sentence);
    for (; text && part; part = rest) {
        if ((rest = strstr(part, "%s")) != NULL) {
            *rest = 0;
            rest += 2;
        }
        if ((text = strstr(text, part)) != NULL)
            text += strlen(part);
    }
    return text != NULL;
}

static void body(test_rank_t *t, void *arg)
{
    const trial_t *trial = arg;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;

    if (trial->rank == t->rank)
        setenv(trial->name, trial->value, 1);
    config.device = RONDO_DEVICE_HOST;
    test_id(t, &id);
    rondo_result_t result = rondo_comm_create(&comm, t->nranks, &id, t->rank, &config);
    test_result(t, NULL, result, RONDO_ERR_INVALID_USAGE, "rondo_comm_create");
    if (!fits(rondo_last_error(NULL), trial->sentence))
        test_fail(t, "it says: %s", rondo_last_error(NULL));
}

int main(void)
{
    trial_t trials[] = {
        {"RONDO_P2P", "0", 1, "ranks differ in RONDO_P2P: rank 0 (%s) has 1, rank 1 (%s) has 0"},
        {"RONDO_SLOT_BYTES", "64K", 2, "ranks differ in RONDO_SLOT_BYTES: rank 0 (%s) has 0, rank 2 (%s) has 64K"},
        {"RONDO_ALGO", "ring", 0, "ranks differ in RONDO_ALGO: rank 0 (%s) has 'ring', rank 1 (%s) has ''"},
        {"RONDO_TUNE", "zen", 1, "ranks differ in the prices of RONDO_TUNE (0: not set): rank 0 (%s) has 0, rank 1 ("}};
    int bad = 0;

    test_begin("agree", 60);
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        int wrong = test_run(TEST_PROCESSES, RANKS, 30, body, &trials[i]);
        printf("agree: %s=%s at rank %d: %s\n", trials[i].name, trials[i].value, trials[i].rank,
               wrong ? "WRONG" : "right");
        bad += wrong;
    }
    return bad != 0;
}
