/* A call waits for a rank that has destroyed its communicator, while an operation submitted before it waits for another
 * rank, which takes its time: the call fails with RONDO_ERR_REMOTE and names the one that has left, for messages and
 * for signals. Nothing has a time limit but the test itself. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "util/harness.h"

typedef enum { MESSAGES, SIGNALS, NUM_KINDS } kind_t;
static const char *const kinds[] = {"a recv", "a wait for a signal"};

static struct {
    atomic_int gone, said; /* rank 1 has left; rank 0 has heard of it */
} * seen;

static rondo_result_t post(rondo_comm_t comm, kind_t kind, int peer, int *word)
{
    const rondo_wait_desc_t wait = {.count = 1, .peer = peer, .signal = 0, .context = peer == 1};

    return kind == MESSAGES ? rondo_recv(word, 1, RONDO_INT32, peer, comm, NULL)
                            : rondo_wait_signal(1, &wait, comm, NULL);
}

static void asks(test_rank_t *t, rondo_comm_t comm, kind_t kind)
{
    rondo_request_t request = NULL;
    int words[2];

    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, post(comm, kind, 2, &words[0]));
    TEST_OK(t, comm, rondo_group_submit(&request));
    while (!atomic_load(&seen->gone))
        sched_yield();
    if (TEST_GIVES(t, comm, RONDO_ERR_REMOTE, post(comm, kind, 1, &words[1])))
        TEST_TRUE(t, strstr(rondo_last_error(comm), "rank 1 (") != NULL);
    TEST_GIVES(t, comm, RONDO_ERR_REMOTE, rondo_request_wait(&request));
    atomic_store(&seen->said, 1);
}

static void body(test_rank_t *t, void *arg)
{
    const kind_t kind = *(kind_t *)arg;
    rondo_config_t config = test_host_config();
    rondo_window_t window;

    config.contexts = 2;
    rondo_comm_t comm = test_comm(t, &config);
    test_note(t, "%s from a rank that has left", kinds[kind]);
    if (kind == SIGNALS)
        TEST_OK(t, comm, rondo_window_create(comm, NULL, 64, &window, 0));
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    if (t->rank == 0)
        asks(t, comm, kind);
    if (t->rank == 1) {
        TEST_OK(t, comm, rondo_comm_destroy(comm));
        atomic_store(&seen->gone, 1);
    }
    while (!atomic_load(&seen->said))
        sched_yield();
    if (t->rank != 1)
        rondo_comm_abort(comm);
}

int main(void)
{
    int bad = 0;

    test_begin("left_other", 60);
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED)
        return 1;
    for (kind_t kind = 0; kind < NUM_KINDS; kind++) {
        memset(seen, 0, sizeof *seen);
        bad += test_run(TEST_PROCESSES, 3, 30, body, &kind);
    }
    munmap(seen, sizeof *seen);
    return bad != 0;
}
