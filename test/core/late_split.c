/* A rank does not come to a split, and the others wait no longer than RONDO_CREATE_TIMEOUT_MS. The exchange goes by
 * rounds, so some of them wait for a rank that waits itself: none of these is blamed. The last rank has the least
 * patience, and so says it first, in its second round. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/harness.h"

#define RANKS 4
#define LATE 2

static atomic_int *ended; /* so many ranks have heard of it */

static void body(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    setenv("RONDO_CREATE_TIMEOUT_MS", t->rank == RANKS - 1 ? "5000" : "60000", 1);
    rondo_comm_t comm = test_comm(t, &config), part = NULL;

    (void)arg;
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_note(t, "a split to which rank %d does not come", LATE);
    if (t->rank != LATE) {
        const rondo_result_t result = rondo_comm_split(comm, 0, 0, &part, NULL);
        const char *text = rondo_last_error(NULL);
        TEST_TRUE(t, result == RONDO_ERR_TIMEOUT && strstr(text, "did not take part in an exchange") != NULL);
        if (!strstr(text, "one of the 2 ranks from rank 1 ("))
            test_fail(t, "rank %d did not come: \"%s\"", LATE, text);
        atomic_fetch_add(ended, 1);
    }
    while (atomic_load(ended) < RANKS - 1)
        sched_yield();
    rondo_comm_abort(comm);
}

int main(void)
{
    test_begin("late_split", 30);
    ended = mmap(NULL, sizeof *ended, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ended == MAP_FAILED)
        return 1;
    return test_run(TEST_PROCESSES, RANKS, 20, body, NULL) != 0;
}
