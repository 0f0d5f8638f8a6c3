/* RONDO_HOOK_COMPLETED: each operation that is over is told, in its order, with what it was: calls that repeat the one
 * before, those of groups, and messages. Of communicators that are made without such a hook none is. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"

static rondo_event_t seen[64];
static _Atomic int nseen;

static void note(const rondo_event_t *event, void *arg)
{
    int n = atomic_load(&nseen);

    (void)arg;
    if (n < 64)
        seen[n] = *event;
    atomic_store(&nseen, n + 1);
}

static rondo_result_t add_up(rondo_comm_t comm, size_t count)
{
    static int in[8], out[8];

    return rondo_allreduce(in, out, count, RONDO_INT32, RONDO_SUM, comm, NULL);
}

static void calls(test_rank_t *t, rondo_comm_t comm)
{
    int value = 0;

    for (int i = 0; i < 3; i++)
        TEST_OK(t, comm, add_up(comm, 4));
    TEST_OK(t, comm, rondo_broadcast(&value, &value, 1, RONDO_INT32, 1, comm, NULL));
    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, add_up(comm, 2));
    TEST_OK(t, comm, add_up(comm, 8));
    TEST_OK(t, comm, rondo_group_end());
    TEST_OK(t, comm,
            t->rank == 0 ? rondo_send(&value, 1, RONDO_INT32, 1, comm, NULL)
                         : rondo_recv(&value, 1, RONDO_INT32, 0, comm, NULL));
}

static void body(test_rank_t *t, void *arg)
{
    const char *const texts[] = {"allreduce, collective number 1 (4 int32, sum)",
                                 "allreduce, collective number 2 (4 int32, sum)",
                                 "allreduce, collective number 3 (4 int32, sum)",
                                 "broadcast, collective number 4 (1 int32)",
                                 "allreduce, collective number 5 (2 int32, sum)",
                                 "allreduce, collective number 6 (8 int32, sum)",
                                 t->rank == 0 ? "send, number 1 (4 bytes, rank 1)"
                                              : "recv, number 1 (4 bytes, rank 0)"};
    const int n = (int)(sizeof texts / sizeof texts[0]);
    rondo_config_t config = RONDO_CONFIG_INIT;
    uint64_t hook;

    (void)arg;
    config.name = "before";
    rondo_comm_t before = test_comm(t, &config);
    TEST_OK(t, NULL, rondo_hook(RONDO_HOOK_COMPLETED, note, NULL, &hook));
    config.name = "with";
    rondo_comm_t with = test_comm(t, &config);
    calls(t, before);
    calls(t, with);
    for (int ms = 0; ms < 20000 && atomic_load(&nseen) < n; ms++)
        usleep(1000);
    TEST_OK(t, NULL, rondo_unhook(hook));
    TEST_TRUE(t, atomic_load(&nseen) == n);
    for (int i = 0; i < n; i++)
        if (strcmp(seen[i].text, texts[i]) != 0 || strcmp(seen[i].comm, "with") != 0 || seen[i].result != 0 ||
            seen[i].kind != RONDO_HOOK_COMPLETED)
            test_fail(t, "event %d of '%s' is \"%s\" and not \"%s\"", i, seen[i].comm, seen[i].text, texts[i]);
    calls(t, with);
    test_barrier(t);
    TEST_TRUE(t, atomic_load(&nseen) == n);
    rondo_comm_destroy(with);
    rondo_comm_destroy(before);
}

int main(void)
{
    test_begin("completed", 60);
    return test_run(TEST_PROCESSES, 2, 30, body, NULL) != 0;
}
