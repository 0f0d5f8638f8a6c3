/* A limit on processes (`ulimit -u`) that leaves a rank no thread for UCX, or one but not the next: creation fails on
 * that rank with a sentence that names the limit, the other rank hears of it at its creation or its first operation,
 * and no process ends. The limit does not count for root, so the rank becomes another user, who has no process.
 *
 * Likewise where a rank's stacks are so small (`ulimit -s`) that the C library starts no thread; both say so. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/harness.h"

#define NOBODY 60000 /* and some thousand users after it */
#define ENOUGH 100
#define STACK 16384 /* the least that the C library lets a program set; its own part alone is more, as a rule */

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

static void *nothing(void *arg)
{
    return arg;
}

/* Returns true if the C library starts no thread for that. */
static bool small_stacks(void)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    int error = pthread_attr_setstacksize(&attributes, STACK);
    if (error == 0)
        error = pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
    if (error == 0)
        error = pthread_create(&thread, NULL, nothing, NULL);
    if (error == 0)
        pthread_join(thread, NULL);
    return error == EINVAL;
}

/* Another C library may have so little of its own on a stack that a thread starts. */
static bool would_refuse(void)
{
    int status;
    pid_t child = fork();

    if (child == 0)
        _exit(small_stacks());
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static void body_small(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;

    (void)arg;
    test_play_node(t, 2);
    test_id(t, &id);
    test_barrier(t); /* the rendezvous' thread has begun */
    if (t->rank == 1)
        TEST_TRUE(t, small_stacks());
    rondo_result_t result = rondo_comm_create(&comm, t->nranks, &id, t->rank, &config);
    test_result(t, NULL, result, t->rank == 1 ? RONDO_ERR_SYSTEM : RONDO_ERR_REMOTE, "creation");
    test_sentence(t, "a stack of 16 KiB is too small for a thread (raise `ulimit -s`)");
}

int main(void)
{
    static const int limits[] = {1, 2, 3, 4, ENOUGH};
    int bad = 0;

    test_begin("ucx_thread_limit", 60);
    setenv("RONDO_IFACE", "lo", 1);
    if (would_refuse())
        bad += test_run(TEST_PROCESSES, 2, 20, body_small, NULL) != 0;
    if (geteuid() != 0) {
        printf("ucx_thread_limit: not root: left out\n");
        return bad ? 1 : TEST_SKIPPED;
    }
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        bad += test_run(TEST_PROCESSES, 2, 20, body, (void *)&limits[i]);
    return bad != 0;
}
