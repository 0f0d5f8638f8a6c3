/* The clock of a request does not run on while the program computes: what is submitted, tested and then left alone for
 * twice its limit is not late, nor is it called so. The program's time is a clock of this test, which jumps; the other
 * rank sends when that clock has been read some times behind the jump. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/harness.h"

#define LIMIT_MS 60000
#define READS 50 /* more than it takes until a limit that is over is seen */

typedef enum { WAITED, TESTED, NUM_WAYS } way_t;
static const char *const ways[] = {"waited for", "tested"};

static time_t jump; /* seconds; of rank 0's process */
static struct {
    atomic_int reads; /* of the clock, behind the jump */
} * seen;             /* by both ranks */

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now)
{
    const long error = syscall(SYS_clock_gettime, clock, now);

    now->tv_sec += jump;
    if (jump)
        atomic_fetch_add(&seen->reads, 1);
    return (int)error;
}

static void ask(test_rank_t *t, rondo_comm_t comm, way_t way)
{
    rondo_request_t request = NULL;
    int word = 0, done = 0;

    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_recv(&word, 1, RONDO_INT32, 1, comm, NULL));
    if (!TEST_OK(t, comm, rondo_group_submit(&request)))
        return;
    for (int i = 0; i < 100; i++)
        TEST_OK(t, comm, rondo_request_test(&request, &done));
    jump = 2 * LIMIT_MS / 1000;
    if (way == WAITED)
        TEST_OK(t, comm, rondo_request_wait(&request));
    while (way == TESTED && !done)
        if (!TEST_OK(t, comm, rondo_request_test(&request, &done)))
            break;
    TEST_TRUE(t, word == 17);
}

static void body(test_rank_t *t, void *arg)
{
    const way_t way = *(way_t *)arg;
    rondo_config_t config = test_host_config();
    int word = 17;

    config.timeout_ms = t->rank ? 0 : LIMIT_MS;
    rondo_comm_t comm = test_comm(t, &config);
    test_note(t, "a request that is %s behind a pause", ways[way]);
    if (t->rank == 0) {
        ask(t, comm, way);
    } else {
        while (atomic_load(&seen->reads) < READS)
            sched_yield();
        TEST_OK(t, comm, rondo_send(&word, 1, RONDO_INT32, 0, comm, NULL));
    }
    test_barrier(t);
    rondo_comm_abort(comm);
}

int main(void)
{
    int bad = 0;

    test_begin("request_clock", 60);
    setenv("RONDO_SPIN", "0", 1); /* each miss reads the clock */
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED)
        return 1;
    for (way_t way = 0; way < NUM_WAYS; way++) {
        atomic_store(&seen->reads, 0);
        bad += test_run(TEST_PROCESSES, 2, 30, body, &way);
    }
    munmap(seen, sizeof *seen);
    return bad != 0;
}
