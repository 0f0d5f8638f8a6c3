/* RONDO_ON_ERROR_EXIT: a call whose communicator has failed ends its process with status 134, whether the config says
 * so, the environment, or rondo_on_error, and in what was split from it; as does a creation that fails. Otherwise the
 * call returns, and so does a wrong argument in any case. Each rank does that in a child, whose status it looks at. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/harness.h"

#define STATUS 134
#define RETURNED 7

typedef struct {
    const char *name;
    enum { RETURNS, CONFIG, ENVIRONMENT, CALL, PROCESS, BOTH, SPLIT, OLDER, CREATION, REPORTS, REVOKES } how;
    int status; /* of rank 0's child */
} case_t;

static rondo_comm_t make(test_rank_t *t, const case_t *c)
{
    rondo_config_t config = RONDO_CONFIG_INIT, older = {.size = offsetof(rondo_config_t, on_error)};
    rondo_comm_t part;

    if (c->how == REPORTS || c->how == REVOKES)
        config.on_error = c->how == REPORTS ? RONDO_ON_ERROR_REPORT : RONDO_ON_ERROR_REVOKE_EXIT;
    else
        config.on_error = c->how == CONFIG || c->how == SPLIT || c->how == OLDER ? RONDO_ON_ERROR_EXIT : -1;
    rondo_comm_t comm = test_comm(t, &config);
    if (c->how == CALL)
        TEST_OK(t, comm, rondo_on_error(comm, RONDO_ON_ERROR_EXIT));
    if (c->how != SPLIT && c->how != OLDER)
        return comm;
    older.device = RONDO_DEVICE_AUTO;
    older.blocking = 1;
    TEST_OK(t, comm, rondo_comm_split(comm, 0, t->rank, &part, c->how == OLDER ? &older : NULL));
    return part;
}

/* Rank 1 dies, and rank 0 makes a call that does not return, or does. */
static void child(test_rank_t *t, const case_t *c)
{
    int one = 1, sum = 0;
    rondo_unique_id_t id = {{0}};
    rondo_comm_t comm = NULL;

    setenv("RONDO_ON_ERROR", c->how == ENVIRONMENT || c->how == BOTH || c->how == CREATION ? "exit" : "return", 1);
    if (c->how == PROCESS || c->how == BOTH)
        TEST_OK(t, NULL, rondo_on_error(NULL, c->how == BOTH ? RONDO_ON_ERROR_RETURN : RONDO_ON_ERROR_EXIT));
    if (c->how == CREATION) {
        (void)rondo_comm_create(&comm, 1, &id, 0, NULL);
        _exit(RETURNED);
    }
    comm = make(t, c);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t); /* rank 0 is out of that one, too */
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_allreduce(&one, NULL, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    if (t->rank == 1)
        raise(SIGKILL);
    TEST_GIVES(t, comm, RONDO_ERR_REMOTE, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    _exit(RETURNED);
}

static void body(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    int status = 0;

    test_note(t, "%s", c->name);
    pid_t pid = fork();
    if (pid == 0)
        child(t, c);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        test_stop(t, "no child");
    if (t->rank == 0 || c->how == CREATION)
        TEST_TRUE(t, WIFEXITED(status) && WEXITSTATUS(status) == c->status);
    else
        TEST_TRUE(t, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static rondo_result_t add_up(rondo_comm_t comm)
{
    int one = 1, sum;

    return rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
}

/* Rank 0 ends because of one communicator, and rank 1, which waits in another one, hears that it has given up, and not
 * that it has died. */
static void revoking_child(test_rank_t *t)
{
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.name = "first";
    config.on_error = t->rank == 0 ? RONDO_ON_ERROR_REVOKE_EXIT : RONDO_ON_ERROR_RETURN;
    rondo_comm_t first = test_comm(t, &config), second;
    config.on_error = RONDO_ON_ERROR_RETURN;
    TEST_OK(t, first, rondo_comm_split(first, 0, t->rank, &second, &config));
    TEST_OK(t, second, add_up(second));
    if (t->rank == 1)
        TEST_OK(t, first, rondo_comm_revoke(first));
    if (t->rank == 0)
        (void)add_up(first);
    TEST_GIVES(t, second, RONDO_ERR_REMOTE, add_up(second));
    TEST_TRUE(t, strstr(rondo_last_error(second), "rank 0 (") && strstr(rondo_last_error(second), "has aborted"));
    _exit(RETURNED);
}

static void revoking(test_rank_t *t, void *arg)
{
    int status = 0;

    (void)arg;
    test_note(t, "another communicator");
    pid_t pid = fork();
    if (pid == 0)
        revoking_child(t);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        test_stop(t, "no child");
    TEST_TRUE(t, WIFEXITED(status) && WEXITSTATUS(status) == (t->rank == 0 ? STATUS : RETURNED));
}

int main(void)
{
    static const case_t cases[] = {{"returns", RETURNS, RETURNED},
                                   {"by the config", CONFIG, STATUS},
                                   {"by the environment", ENVIRONMENT, STATUS},
                                   {"by a call", CALL, STATUS},
                                   {"for the process", PROCESS, STATUS},
                                   {"for the process, and the environment says otherwise", BOTH, RETURNED},
                                   {"by the split", SPLIT, STATUS},
                                   {"by the split of an older caller", OLDER, STATUS},
                                   {"in creation", CREATION, STATUS},
                                   {"reports, and returns what is no time limit", REPORTS, RETURNED},
                                   {"revokes and ends", REVOKES, STATUS}};
    int bad = 0;

    test_begin("on_error", 90);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        bad |= test_run(TEST_PROCESSES, 2, 20, body, (void *)(uintptr_t)&cases[i]) != 0;
    bad |= test_run(TEST_PROCESSES, 2, 20, revoking, NULL) != 0;
    return bad;
}
