/* RONDO_ON_ERROR_REPORT: a call whose time limit is over is said to the hook, with who holds it up, and waits on until
 * the other rank comes, which it does not before; whether the config says so, the environment, or rondo_on_error. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/harness.h"

typedef enum { CONFIG, ENVIRONMENT, CALL, NUM_HOWS } how_t;

static struct {
    _Atomic int reports;
    char text[512];
} * shared;

static void note(const rondo_event_t *event, void *arg)
{
    (void)arg;
    snprintf(shared->text, sizeof shared->text, "%s", event->text);
    atomic_fetch_add(&shared->reports, 1);
}

static rondo_result_t add_up(rondo_comm_t comm)
{
    int one = 1, sum;

    return rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
}

static void body(test_rank_t *t, void *arg)
{
    how_t how = *(how_t *)arg;
    rondo_config_t config = RONDO_CONFIG_INIT;
    uint64_t hook;

    test_note(t, "how %d", (int)how);
    config.timeout_ms = 300;
    config.stall_ms = 0;
    config.on_error = how == CONFIG ? RONDO_ON_ERROR_REPORT : -1;
    rondo_comm_t comm = test_comm(t, &config);
    if (how == CALL)
        TEST_OK(t, comm, rondo_on_error(comm, RONDO_ON_ERROR_REPORT));
    TEST_OK(t, comm, add_up(comm));
    if (t->rank == 0)
        TEST_OK(t, comm, rondo_hook(RONDO_HOOK_STALLED, note, NULL, &hook));
    test_barrier(t);
    for (int turn = 1; turn < 3; turn++) {
        if (t->rank == 1)
            while (atomic_load(&shared->reports) < turn)
                usleep(1000);
        TEST_OK(t, comm, add_up(comm));
    }
    test_barrier(t);
    TEST_TRUE(t, atomic_load(&shared->reports) == 2 && strstr(shared->text, "its time limit is over") &&
                     strstr(shared->text, "a call waits for 0.3 s: ") && strstr(shared->text, "rank 1 ("));
    if (t->rank == 0)
        TEST_OK(t, comm, rondo_unhook(hook));
    rondo_comm_destroy(comm);
}

int main(void)
{
    int bad = 0;

    test_begin("report", 60);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (how_t how = 0; how < NUM_HOWS; how++) {
        atomic_store(&shared->reports, 0);
        setenv("RONDO_ON_ERROR", how == ENVIRONMENT ? "report" : "return", 1);
        bad |= test_run(TEST_PROCESSES, 2, 20, body, &how) != 0;
    }
    return bad;
}
