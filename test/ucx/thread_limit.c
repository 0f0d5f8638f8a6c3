/* A limit on processes (`ulimit -u`) that leaves a rank no thread for UCX, or one but not the next: creation fails on
 * that rank with a sentence that names the limit, the other rank hears of it at its creation or its first operation,
 * and no process ends. The limit does not count for root, so the rank becomes another user, who has no process. */
#define _GNU_SOURCE
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/harness.h"

#define NOBODY 60000 /* and some thousand users after it */
#define ENOUGH 100

/* Returns 0, or -1 if this process may not become somebody else. */
static int limit(rlim_t processes)
{
    const struct rlimit most = {processes, processes};
    uid_t user = NOBODY + (uid_t)getpid() % 5000;
    if (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0)
        return -1;
    prctl(PR_SET_DUMPABLE, 1); /* its own /proc */
    return setrlimit(RLIMIT_NPROC, &most);
}

static void body(test_rank_t *t, void *arg)
{
    int most = *(int *)arg;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;
    float one = 1, sum = 0;
    char host[16];

    snprintf(host, sizeof host, "host%d", t->rank);
    setenv("RONDO_HOSTID", host, 1);
    config.device = RONDO_DEVICE_HOST;
    test_id(t, &id);
    test_barrier(t);
    if (t->rank == 1 && limit((rlim_t)most) != 0)
        test_stop(t, "this process cannot become another user");
    test_note(t, "limit of %d processes", most);
    rondo_result_t result = rondo_comm_create(&comm, t->nranks, &id, t->rank, &config);
    if (result == RONDO_SUCCESS)
        result = rondo_allreduce(&one, &sum, 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    test_agree(t, result == RONDO_SUCCESS, "success");
    if (most == 1 || most == ENOUGH)
        TEST_TRUE(t, (result == RONDO_SUCCESS) == (most == ENOUGH));
    if (result != RONDO_SUCCESS)
        test_result(t, NULL, result, t->rank == 1 ? RONDO_ERR_SYSTEM : RONDO_ERR_REMOTE, "creation and allreduce");
    if (result != RONDO_SUCCESS && t->rank == 1)
        test_sentence(t, "ulimit -u");
    if (comm)
        rondo_comm_destroy(comm);
}

int main(void)
{
    static const int limits[] = {1, 2, 3, 4, ENOUGH};
    int bad = 0;

    test_begin("ucx_thread_limit", 60);
    setenv("RONDO_IFACE", "lo", 1);
    if (geteuid() != 0) {
        printf("ucx_thread_limit: not root: left out\n");
        return TEST_SKIPPED;
    }
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        bad += test_run(TEST_PROCESSES, 2, 20, body, (void *)&limits[i]);
    return bad != 0;
}
