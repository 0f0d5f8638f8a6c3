/* UCX is loaded when the first communicator of several nodes is made. A process that does not find it then gets an
 * error that says what to install, and so do the others; ranks on one node need none. The test stands between rondo and
 * the loader. */
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
    return __real_dlopen(missing && name && strstr(name, "libucp") ? "libucp.so.none" : name, flags);
}

typedef struct trial {
    int nodes;
    unsigned without; /* a bit for each rank that has no UCX */
} trial_t;

static void body(test_rank_t *t, void *arg)
{
    const trial_t *trial = arg;
    char host[16];
    bool own = trial->without >> t->rank & 1;
    rondo_result_t want = trial->nodes == 1 ? RONDO_SUCCESS : own ? RONDO_ERR_UNSUPPORTED : RONDO_ERR_REMOTE;

    missing = own;
    snprintf(host, sizeof host, "host%d", t->rank % trial->nodes);
    if (trial->nodes > 1)
        setenv("RONDO_HOSTID", host, 1);
    rondo_comm_t comm = test_comm_gives(t, want, own ? "install it" : "no transport between nodes");
    if (comm)
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

int main(void)
{
    static const trial_t trials[] = {{1, 7}, {2, 7}, {2, 1}, {3, 4}};
    int bad = 0;

    test_begin("ucx_missing", 60);
    setenv("RONDO_IFACE", "lo", 1);
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++)
        bad += test_run(TEST_PROCESSES, RANKS, 20, body, (void *)&trials[i]);
    return bad != 0;
}
