/* libfabric is loaded when a communicator of several nodes is to go by it. A process that does not find it then gets an
 * error that says what to install, and so do the others; ranks on one node need none. Nor does a rank whose libfabric
 * has no provider that serves, and ranks that have different ones go by one that all have. The test stands between
 * rondo and the loader. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

#define RANKS 3

static bool missing;

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    return __real_dlopen(missing && name && strstr(name, "libfabric") ? "libfabric.so.none" : name, flags);
}

typedef struct trial {
    int nodes;
    unsigned without;           /* a bit for each rank that has no libfabric, */
    unsigned limited;           /* and for each that has `only` */
    const char *only;           /* providers, as FI_PROVIDER names them */
    const char *provider;       /* RONDO_OFI_PROVIDER, or NULL */
    rondo_result_t here, there; /* of these ranks, and of the others */
    const char *says_here, *says_there;
} trial_t;

static void body(test_rank_t *t, void *arg)
{
    const trial_t *trial = arg;
    char host[16];
    bool limited = trial->limited >> t->rank & 1;

    missing = trial->without >> t->rank & 1;
    bool own = missing || limited;
    snprintf(host, sizeof host, "host%d", t->rank % trial->nodes);
    if (trial->nodes > 1)
        setenv("RONDO_HOSTID", host, 1);
    if (limited)
        setenv("FI_PROVIDER", trial->only, 1);
    if (trial->provider)
        setenv("RONDO_OFI_PROVIDER", trial->provider, 1);
    rondo_comm_t comm =
        test_comm_gives(t, own ? trial->here : trial->there, own ? trial->says_here : trial->says_there);
    float one = 1, sum = 0;
    if (!comm)
        return;
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, sum == RANKS);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

int main(void)
{
    const rondo_result_t good = RONDO_SUCCESS, no = RONDO_ERR_UNSUPPORTED, remote = RONDO_ERR_REMOTE;
    const trial_t trials[] = {
        {1, 7, 0, NULL, NULL, good, good, "", ""},
        {2, 7, 0, NULL, NULL, no, good, "install it", ""},
        {2, 1, 0, NULL, NULL, no, remote, "install it", "rank 0 ("},
        {3, 4, 0, NULL, NULL, no, remote, "install it", "no transport between nodes"},
        {3, 0, 2, "shm", NULL, no, remote, "has no provider here", "rank 1 ("},
        {3, 0, 2, "tcp,ofi_rxm", NULL, good, good, "", ""}, /* without what newer ones have beside it */
        {2, 0, 7, "tcp,ofi_rxm,net", "nonsense", no, good, "RONDO_OFI_PROVIDER is \"nonsense\"", ""},
        {2, 0, 0, NULL, "shm", good, good, "", ""},
    };
    int bad = 0;

    test_begin("ofi_missing", 90);
    setenv("RONDO_IFACE", "lo", 1);
    setenv("RONDO_TRANSPORT", "ofi", 1);
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        int wrong = test_run(TEST_PROCESSES, RANKS, 20, body, (void *)(uintptr_t)&trials[i]);
        if (wrong)
            printf("ofi_missing: trial %zu went wrong\n", i);
        bad += wrong;
    }
    return bad != 0;
}
