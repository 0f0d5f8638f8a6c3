/* rondo_hook: what happens is told in its order, by another thread, to those who have asked for that kind; a hook that
 * calls rondo is refused; one that does not come back holds up nobody, and what it misses is counted; and when it has
 * been taken back it is not called any more. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/harness.h"

#define MANY 300 /* more than may wait */

static char dir[64];
static struct {
    _Atomic int stalled; /* rank 0 has been told */
} * shared;

/* What a process has been told. */
static rondo_event_t told[MANY];
static _Atomic int ntold;
static pthread_t caller;    /* the thread of the hooks */
static _Atomic int awaited; /* a stall is: on a busy machine there are others */
static rondo_comm_t used;
static rondo_result_t refused[5];

static void note(const rondo_event_t *event, void *arg)
{
    int n = atomic_load(&ntold);

    caller = pthread_self();
    if (n < MANY)
        told[n] = *event;
    *(int *)arg += 1;
    atomic_store(&ntold, n + 1);
}

static void note_stall(const rondo_event_t *event, void *arg)
{
    if (!atomic_exchange(&awaited, 0))
        return;
    note(event, arg);
    atomic_store(&shared->stalled, 1);
}

static void call_rondo(const rondo_event_t *event, void *arg)
{
    uint64_t handle;
    int one = 1, sum;
    rondo_comm_t comm;

    refused[0] = rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, used, NULL);
    refused[1] = rondo_group_start();
    refused[2] = rondo_hook(RONDO_HOOK_FAILED, note, arg, &handle);
    refused[3] = rondo_unhook(1);
    refused[4] = rondo_comm_create_all(&comm, 1, NULL, NULL);
    note(event, arg);
}

static void expect(test_rank_t *t, int i, int kind, const char *comm, const char *text)
{
    for (int ms = 0; ms < 20000 && atomic_load(&ntold) <= i; ms++)
        usleep(1000);
    if (atomic_load(&ntold) <= i || told[i].kind != kind || strcmp(told[i].comm, comm) != 0 ||
        !strstr(told[i].text, text))
        test_fail(t, "event %d of %d: kind %d of '%s': %s", i, atomic_load(&ntold), told[i].kind, told[i].comm,
                  told[i].text);
}

static rondo_result_t add_up(rondo_comm_t comm)
{
    int one = 1, sum;

    return rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
}

static void body(test_rank_t *t, void *arg)
{
    static const rondo_hook_fn functions[RONDO_HOOK_COMPLETED] = {note, note_stall, call_rondo, note, note};
    rondo_config_t config = RONDO_CONFIG_INIT;
    uint64_t handles[RONDO_HOOK_COMPLETED];
    int counts[RONDO_HOOK_COMPLETED] = {0};

    (void)arg;
    for (int kind = 0; kind < RONDO_HOOK_COMPLETED; kind++)
        TEST_OK(t, NULL, rondo_hook(kind, functions[kind], &counts[kind], &handles[kind]));
    config.name = "hooked";
    config.stall_ms = 200;
    used = test_comm(t, &config);
    expect(t, 0, RONDO_HOOK_COMM_MADE, "hooked", "");
    TEST_TRUE(t, told[0].rank == t->rank && told[0].nranks == 2 && told[0].size == sizeof told[0]);
    TEST_OK(t, used, add_up(used));
    TEST_OK(t, used, add_up(used));
    if (t->rank == 0) {
        test_note(t, "a dump, whose hook calls rondo");
        TEST_OK(t, used, rondo_dump(NULL, 0));
        expect(t, 1, RONDO_HOOK_DUMPED, "", dir);
        for (int i = 0; i < 5; i++)
            TEST_TRUE(t, refused[i] == RONDO_ERR_INVALID_USAGE);
        TEST_TRUE(t, unlink(told[1].text) == 0 && !pthread_equal(caller, pthread_self()));
        test_note(t, "a stall");
        atomic_store(&awaited, 1);
        TEST_OK(t, used, add_up(used));
        expect(t, 2, RONDO_HOOK_STALLED, "hooked", "a call waits for ");
    } else {
        while (!atomic_load(&shared->stalled))
            usleep(1000);
        TEST_OK(t, used, add_up(used));
    }
    test_note(t, "a failure");
    test_barrier(t);
    int before = atomic_load(&ntold);
    if (t->rank == 1) {
        rondo_comm_abort(used);
        expect(t, before, RONDO_HOOK_COMM_ENDED, "hooked", "");
        TEST_TRUE(t, told[before].result == RONDO_ERR_ABORTED);
    } else {
        TEST_GIVES(t, used, RONDO_ERR_REMOTE, add_up(used));
        TEST_GIVES(t, used, RONDO_ERR_REMOTE, add_up(used)); /* which is no news */
        rondo_comm_abort(used);
        expect(t, before, RONDO_HOOK_FAILED, "hooked", "rank 1 ");
        expect(t, before + 1, RONDO_HOOK_COMM_ENDED, "hooked", "");
        TEST_TRUE(t, told[before].result == RONDO_ERR_REMOTE && counts[RONDO_HOOK_FAILED] == 1);
    }
    for (int kind = 0; kind < RONDO_HOOK_COMPLETED; kind++)
        TEST_OK(t, NULL, rondo_unhook(handles[kind]));
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_unhook(handles[0]));
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_hook(RONDO_NUM_HOOKS, note, NULL, &handles[0]));
}

/* ---- one that does not come back ---- */

static sem_t gate, inside;

static void hang(const rondo_event_t *event, void *arg)
{
    if (*(int *)arg == 0) {
        sem_post(&inside);
        while (sem_wait(&gate) != 0)
            continue;
    }
    note(event, arg);
}

static void *let_it(void *arg)
{
    (void)arg;
    usleep(20000);
    sem_post(&gate);
    return NULL;
}

static void stuck(test_rank_t *t, void *arg)
{
    uint64_t handle;
    rondo_comm_t comm;
    pthread_t thread;
    int calls = 0;

    (void)arg;
    sem_init(&gate, 0, 0);
    sem_init(&inside, 0, 0);
    test_note(t, "a hook that hangs");
    TEST_OK(t, NULL, rondo_hook(RONDO_HOOK_COMM_MADE, hang, &calls, &handle));
    for (int i = 0; i < MANY; i++) {
        TEST_OK(t, NULL, rondo_comm_create_all(&comm, 1, NULL, NULL));
        TEST_OK(t, comm, rondo_comm_destroy(comm));
        if (i == 0)
            while (sem_wait(&inside) != 0)
                continue;
    }
    TEST_TRUE(t, atomic_load(&ntold) == 0);
    sem_post(&gate);
    for (int ms = 0; ms < 20000 && atomic_load(&ntold) < 257; ms++)
        usleep(1000);
    usleep(10000);
    TEST_TRUE(t, atomic_load(&ntold) == 257); /* the first, and those that could wait */
    TEST_OK(t, NULL, rondo_unhook(handle));
    test_note(t, "one that is taken back while it runs");
    calls = 0;
    TEST_OK(t, NULL, rondo_hook(RONDO_HOOK_COMM_MADE, hang, &calls, &handle));
    TEST_OK(t, NULL, rondo_comm_create_all(&comm, 1, NULL, NULL));
    while (sem_wait(&inside) != 0)
        continue;
    pthread_create(&thread, NULL, let_it, NULL);
    TEST_OK(t, NULL, rondo_unhook(handle));
    TEST_TRUE(t, calls == 1);
    pthread_join(thread, NULL);
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

int main(void)
{
    int bad = 0;

    test_begin("hooks", 90);
    strcpy(dir, "/tmp/rondo-hooks-XXXXXX");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!mkdtemp(dir) || shared == MAP_FAILED)
        return 1;
    setenv("RONDO_DUMP_DIR", dir, 1);
    setenv("RONDO_DUMP", "none", 1);
    bad |= test_run(TEST_PROCESSES, 2, 60, body, NULL) != 0;
    bad |= test_run(TEST_PROCESSES, 1, 60, stuck, NULL) != 0;
    if (rmdir(dir) != 0) {
        printf("something is left in %s\n", dir);
        bad = 1;
    }
    return bad;
}
