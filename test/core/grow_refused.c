/* A rank that gives a creation up before it has come to it says so, and nobody waits for RONDO_CREATE_TIMEOUT_MS:
 *
 *   member      a member that has the id lacks memory in a grow; the id is of another one
 *   new         a new rank lacks it, before it has joined and when it begins to
 *   exit        a member that has the id ends by RONDO_ON_ERROR=exit, as another one has died; the id is the new rank's
 *   exit, new   a new rank ends so because of its config
 *   silent      the members do not agree, and the process of the new rank, which has made the id, is stopped: no member
 *               waits until it can be told, and it is told all the same
 *   ids         one rank of many ids lacks memory: it waits once for all rendezvous that it serves, not for each
 *   bad ids     of several ids some are none: all of them are named
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/harness.h"

#define HANG_S 20
#define CREATE_MS "60000"
#define STATUS 134 /* RONDO_ON_ERROR=exit */
#define IDS 64     /* 0.4 s for each would be more than HANG_S */

static _Thread_local int fails = -1; /* so many times calloc succeeds, and then once not */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return fails >= 0 && fails-- == 0 ? NULL : __real_calloc(n, size);
}

static rondo_comm_t members_comm(test_rank_t *t, int first, int n, int on_error)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;

    config.on_error = on_error;
    test_id(t, &id);
    if (t->rank >= first && !TEST_OK(t, NULL, rondo_comm_create(&comm, n, &id, t->rank - first, &config)))
        test_stop(t, "the members have no communicator");
    return comm;
}

/* Ranks 0 and 1 are members, rank 0 has made the id, and rank 1 alone gives it. */
static void member(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = NULL, made = NULL;
    rondo_unique_id_t id;

    (void)arg;
    test_id(t, &id);
    if (t->rank < 2)
        TEST_OK(t, NULL, rondo_comm_create(&comm, 2, &id, t->rank, &config));
    test_id(t, &id);
    test_note(t, "a member lacks memory");
    if (t->rank == 1)
        fails = 0;
    rondo_result_t result = rondo_comm_grow(comm, 3, t->rank ? &id : NULL, comm ? -1 : 2, &made, comm ? NULL : &config);
    TEST_TRUE(t, fails < 0);
    if (t->rank)
        test_result(t, comm, result, RONDO_ERR_NO_MEMORY, "the grow");
    else
        test_result(t, comm, result, RONDO_ERR_REMOTE, "the grow");
    if (t->rank != 1)
        test_sentence(t, "rank 1 ");
    test_barrier(t); /* the end of the id's maker would be heard, too */
    if (comm)
        rondo_comm_destroy(comm);
}

/* Rank 0 is the only member, rank 2 lacks memory. */
static void newcomer(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = NULL, made = NULL;
    rondo_unique_id_t id;

    test_id(t, &id);
    if (t->rank == 0)
        TEST_OK(t, NULL, rondo_comm_create(&comm, 1, &id, 0, &config));
    test_id(t, &id);
    test_note(t, "a new rank lacks memory, at calloc %d", *(int *)arg);
    if (t->rank == 2)
        fails = *(int *)arg;
    if (TEST_GIVES(t, NULL, RONDO_ERR_NO_MEMORY, rondo_comm_grow(comm, 3, &id, comm ? -1 : t->rank, &made, &config)) &&
        t->rank != 2)
        test_sentence(t, "rank 2 ");
    TEST_TRUE(t, fails < 0);
    test_barrier(t);
    if (comm)
        rondo_comm_destroy(comm);
}

/* The last rank of the test is killed. */
static void must_exit(test_rank_t *t, void (*child)(test_rank_t *t))
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        child(t);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        test_stop(t, "no child");
    if (t->rank == t->nranks - 1)
        TEST_TRUE(t, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    else
        TEST_TRUE(t, WIFEXITED(status) && WEXITSTATUS(status) == (t->rank ? STATUS : 0));
}

/* Rank 0 of the test comes new, and has made the id; the others are the members. */
static void exits_child(test_rank_t *t)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = members_comm(t, 1, 2, RONDO_ON_ERROR_EXIT), made = NULL;
    rondo_unique_id_t id;

    test_id(t, &id);
    test_barrier(t);
    if (t->rank == 2)
        raise(SIGKILL);
    rondo_result_t result = rondo_comm_grow(comm, 3, &id, comm ? -1 : 2, &made, comm ? NULL : &config);
    test_result(t, NULL, result, RONDO_ERR_REMOTE, "the grow");
    test_sentence(t, "rank 1 ");
}

static void exits(test_rank_t *t, void *arg)
{
    (void)arg;
    must_exit(t, exits_child);
}

/* Rank 1 comes new, with a config that is refused. */
static void exits_new(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = NULL, made = NULL;
    rondo_unique_id_t id;
    int status = 0;

    (void)arg;
    test_id(t, &id);
    if (t->rank == 0)
        TEST_OK(t, NULL, rondo_comm_create(&comm, 1, &id, 0, &config));
    test_id(t, &id);
    if (t->rank) {
        pid_t pid = fork();
        config.on_error = RONDO_ON_ERROR_EXIT;
        config.timeout_ms = -5;
        if (pid == 0) {
            (void)rondo_comm_grow(NULL, 2, &id, 1, &made, &config);
            _exit(0);
        }
        TEST_TRUE(t, waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == STATUS);
        return;
    }
    if (TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_grow(comm, 2, &id, -1, &made, &config)))
        test_sentence(t, "-5");
    rondo_comm_destroy(comm);
}

/* Rank 0 comes new, and has made the id; it goes on when the grow has failed on the member that has it. */
static void silent(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = members_comm(t, 1, 2, RONDO_ON_ERROR_RETURN), made = NULL;
    rondo_config_t config = test_host_config();
    _Atomic pid_t *maker = arg;
    rondo_unique_id_t id;

    test_id(t, &id);
    if (t->rank == 0)
        atomic_store(maker, getpid());
    test_barrier(t);
    if (t->rank == 0)
        raise(SIGSTOP);
    while (t->rank && !test_is_stopped(atomic_load(maker)))
        sched_yield();
    test_note(t, "the grow");
    rondo_result_t result = rondo_comm_grow(comm, t->rank == 2 ? 4 : 3, t->rank == 2 ? NULL : &id, comm ? -1 : 2, &made,
                                            comm ? NULL : &config);
    if (t->rank == 1)
        kill(atomic_load(maker), SIGCONT);
    test_result(t, comm, result, RONDO_ERR_INVALID_ARGUMENT, "the grow");
    test_sentence(t, "nranks must be equal");
    test_barrier(t);
    if (comm)
        rondo_comm_destroy(comm);
}

static void ids(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_unique_id_t all[IDS];
    rondo_comm_t made = NULL;

    (void)arg;
    for (int i = 0; i < IDS; i++)
        TEST_OK(t, NULL, rondo_unique_id_create(&all[i]));
    test_note(t, "without memory");
    fails = 0;
    TEST_GIVES(t, NULL, RONDO_ERR_NO_MEMORY, rondo_comm_create_scalable(&made, IDS, all, IDS, 0, &config));
    TEST_TRUE(t, fails < 0);
    for (int i = 0; i < IDS; i++)
        TEST_OK(t, NULL, rondo_unique_id_create(&all[i]));
    test_note(t, "bad ids");
    all[1].bytes[50] ^= 1;
    memset(&all[3], 0, sizeof all[3]);
    if (TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_create_scalable(&made, IDS, all, IDS, 0, &config))) {
        test_sentence(t, "ids[1]: ");
        test_sentence(t, "checksum");
        test_sentence(t, "ids[3]: ");
    }
}

int main(void)
{
    void *shared = mmap(NULL, sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = 0;

    if (shared == MAP_FAILED)
        return TEST_SKIPPED;
    test_begin("grow_refused", 200);
    setenv("RONDO_CREATE_TIMEOUT_MS", CREATE_MS, 1);
    bad += test_run(TEST_PROCESSES, 3, HANG_S, member, NULL);
    for (int at = 0; at < 2; at++)
        bad += test_run(TEST_PROCESSES, 3, HANG_S, newcomer, &at);
    bad += test_run(TEST_PROCESSES, 3, HANG_S, exits, NULL);
    bad += test_run(TEST_PROCESSES, 2, HANG_S, exits_new, NULL);
    bad += test_run(TEST_PROCESSES, 3, HANG_S, silent, shared);
    bad += test_run(TEST_PROCESSES, 1, HANG_S, ids, NULL);
    printf("grow_refused: %s\n", bad ? "WRONG" : "right");
    return bad != 0;
}
