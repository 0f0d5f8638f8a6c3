/* Nodes with different versions of UCX: those that were tried together go on, over tcp alone; all others are refused,
 * by every rank with the same sentence, which names both versions and who has them. A version of the test's choice
 * takes the place of UCX's own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ucx/ucx_load.h"
#include "util/harness.h"

#define RANKS 3

typedef struct trial {
    unsigned minor[RANKS], patch[RANKS]; /* of version 1, by rank */
    const char *transports;
    const char *sentence[2]; /* what a refusal must contain; NULL: it goes on */
} trial_t;

static unsigned own_minor, own_patch;

static void played_version(unsigned *major, unsigned *minor, unsigned *patch)
{
    *major = 1;
    *minor = own_minor;
    *patch = own_patch;
}

void rd_ucx_loaded(rd_ucp_t *ucp)
{
    ucp->get_version = played_version;
}

static void body(test_rank_t *t, void *arg)
{
    const trial_t *trial = arg;
    char host[16];
    int one = 1, sum = 0;

    own_minor = trial->minor[t->rank];
    own_patch = trial->patch[t->rank];
    snprintf(host, sizeof host, "host%d", t->rank > 0); /* ranks 1 and 2 share a node */
    setenv("RONDO_HOSTID", host, 1);
    setenv("RONDO_UCX_TLS", trial->transports, 1);
    test_note(t, "1.%u.%u over %s", own_minor, own_patch, trial->transports);
    rondo_result_t want = trial->sentence[0] ? RONDO_ERR_UNSUPPORTED : RONDO_SUCCESS;
    rondo_comm_t comm = test_comm_gives(t, want, trial->sentence[0]);
    if (trial->sentence[0])
        test_sentence(t, trial->sentence[1]);
    if (!comm)
        return;
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, sum == RANKS);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

int main(void)
{
    static const trial_t trials[] = {
        {{13, 13, 13}, {1, 1, 1}, "tcp,self", {NULL, NULL}},
        {{13, 13, 13}, {0, 1, 2}, "tcp,self", {NULL, NULL}},
        {{13, 22, 17}, {1, 0, 0}, "tcp", {NULL, NULL}},
        {{13, 22, 22}, {1, 0, 0}, "tcp,self", {"has 1.13.1, rank 1 (", "has 1.22.0"}},
        {{22, 22, 12}, {0, 0, 1}, "tcp", {"rank 2 (", "has 1.12.1, rank 0 ("}},
        {{22, 23, 22}, {0, 0, 0}, "tcp", {"has 1.22.0, rank 1 (", "has 1.23.0"}},
    };
    int bad = 0;

    test_begin("net_versions", 60);
    setenv("RONDO_IFACE", "lo", 1);
    setenv("RONDO_UCX_NET_DEVICES", "lo", 1);
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++)
        bad += test_run(TEST_PROCESSES, RANKS, 20, body, (void *)&trials[i]);
    return bad != 0;
}
