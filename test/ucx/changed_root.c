/* A process changes its root, to a folder with neither /proc nor /sys, while it has a communicator of two nodes. UCX's
 * tcp reads files there: as a worker is made, which fails, and as connections end, where it ends the process if it
 * cannot. So a split says on all ranks what cannot be read; and the rank lives when it destroys the communicator after
 * the other one has.
 *
 * When the first of three leaves, UCX can no longer receive on the rank that has changed its root. That rank waits for
 * something of the third, and hears that, and so does the third. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/harness.h"

#define MOVES 0 /* the rank that changes its root */

static void body(test_rank_t *t, void *arg)
{
    const char *root = arg;
    int one = 1, sum = 0;

    if (t->rank == MOVES && geteuid() != 0 && unshare(CLONE_NEWUSER) != 0)
        test_stop(t, "no namespace of users, in which a root may be changed");
    rondo_comm_t comm = test_comm_on(t, 2), next = NULL;
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    if (t->rank == MOVES && (chroot(root) != 0 || chdir("/") != 0))
        test_stop(t, "cannot change the root");
    test_barrier(t);
    TEST_GIVES(t, comm, t->rank == MOVES ? RONDO_ERR_SYSTEM : RONDO_ERR_REMOTE,
               rondo_comm_split(comm, 0, 0, &next, NULL));
    test_sentence(t, "this process cannot read /sys/class/net");
    if (t->rank != MOVES)
        TEST_OK(t, comm, rondo_comm_destroy(comm));
    test_barrier(t);
    if (t->rank == MOVES)
        TEST_OK(t, comm, rondo_comm_destroy(comm));
}

static void left_body(test_rank_t *t, void *arg)
{
    const char *root = arg;
    int one = 1, sum = 0;

    if (t->rank == MOVES && geteuid() != 0 && unshare(CLONE_NEWUSER) != 0)
        test_stop(t, "no namespace of users, in which a root may be changed");
    rondo_comm_t comm = test_comm_on(t, 3);
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    if (t->rank == MOVES && (chroot(root) != 0 || chdir("/") != 0))
        test_stop(t, "cannot change the root");
    test_barrier(t);
    if (t->rank == 1)
        TEST_OK(t, comm, rondo_comm_destroy(comm));
    else if (t->rank == MOVES)
        TEST_GIVES(t, comm, RONDO_ERR_SYSTEM, rondo_recv(&one, 1, RONDO_INT32, 2, comm, NULL));
    else /* rank 0 sends nothing */
        TEST_GIVES(t, comm, RONDO_ERR_REMOTE, rondo_recv(&one, 1, RONDO_INT32, MOVES, comm, NULL));
    if (t->rank != 1)
        test_sentence(t, "can no longer read /proc/net/route");
    test_barrier(t);
    if (t->rank != 1)
        rondo_comm_abort(comm);
}

static int may_change(void)
{
    pid_t child = geteuid() == 0 ? -1 : fork();
    int status = 0;

    if (child == 0)
        _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
    return child < 0 || (waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    char root[] = "/tmp/rondo-root-XXXXXX";

    test_begin("changed_root", 60);
    if (!test_has_network() || !may_change() || !mkdtemp(root))
        return TEST_SKIPPED;
    int bad = test_run(TEST_PROCESSES, 2, 40, body, root);
    bad += test_run(TEST_PROCESSES, 3, 40, left_body, root);
    rmdir(root);
    return bad != 0;
}
