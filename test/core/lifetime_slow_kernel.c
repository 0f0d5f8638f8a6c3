/* On a busy machine the threads of the kernel that end RCU's grace periods get a core late, and a membarrier that waits
 * for one takes seconds. Here it takes for ever: an abort, a revocation and the end of a communicator that has failed
 * return all the same, whoever is inside, in a process that has joined those that need no grace period, and in one that
 * has not. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/harness.h"

#define COUNT 1000
#define ONE_THREAD 3 /* links of the folder of a process's threads */

static bool stands, refused;
static _Atomic int issued;

static bool single(void)
{
    struct stat threads;

    return stat("/proc/self/task", &threads) == 0 && threads.st_nlink == ONE_THREAD;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list args;
    long arg[6];

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        arg[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_membarrier && stands) {
        while (arg[0] == MEMBARRIER_CMD_GLOBAL || (arg[0] == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED && !single()))
            pause();
        if (refused) {
            errno = EPERM;
            return -1;
        }
    }
    long result = __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
    if (number == SYS_membarrier && result == 0)
        atomic_fetch_add(&issued, 1);
    return result;
}

typedef struct {
    rondo_comm_t comm;
    rondo_result_t (*end)(rondo_comm_t comm);
    _Atomic int begun;
    rondo_result_t result;
} other_t;

static void *end_it(void *arg)
{
    other_t *o = arg;

    while (!atomic_load(&o->begun))
        sched_yield();
    usleep(3000);
    o->result = o->end(o->comm);
    return NULL;
}

/* Another thread ends the communicator while this one is in a call for which rank 0 does not come. */
static void while_inside(test_rank_t *t, rondo_result_t (*end)(rondo_comm_t comm), bool splits)
{
    rondo_comm_t comm = test_comm(t, NULL), half = NULL;
    other_t other = {.comm = comm, .end = end, .result = RONDO_ERR_INTERNAL};
    static float buffer[TEST_MAX_RANKS][COUNT];
    pthread_t thread;

    test_note(t, "%s by another thread during %s", end == rondo_comm_abort ? "an abort" : "a revocation",
              splits ? "a split" : "an allreduce");
    test_barrier(t);
    if (t->rank > 0) {
        if (pthread_create(&thread, NULL, end_it, &other) != 0)
            test_stop(t, "no thread");
        atomic_store(&other.begun, 1);
        rondo_result_t result =
            splits ? rondo_comm_split(comm, 1, 0, &half, NULL)
                   : rondo_allreduce(buffer[t->rank], buffer[t->rank], COUNT, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
        if (result != RONDO_ERR_ABORTED && result != RONDO_ERR_REMOTE)
            test_fail(t, "the call gave %s", rondo_result_string(result));
        pthread_join(thread, NULL);
        TEST_TRUE(t, other.result == RONDO_SUCCESS);
    }
    test_barrier(t);
    if (t->rank == 0 || end == rondo_comm_revoke)
        rondo_comm_destroy(comm);
    test_barrier(t);
}

static void body(test_rank_t *t, void *arg)
{
    const bool *joined = arg;

    for (int splits = 0; splits < 2; splits++) {
        while_inside(t, rondo_comm_abort, splits);
        while_inside(t, rondo_comm_revoke, splits);
    }
    TEST_TRUE(t, (atomic_load(&issued) > 0) == *joined);
}

int main(void)
{
    int bad = 0;

    test_begin("lifetime_slow_kernel", 200);
    long has = __real_syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    bool may = has > 0 && has & MEMBARRIER_CMD_PRIVATE_EXPEDITED && single();
    bool joined = __real_syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
    if (may != joined) {
        printf("lifetime_slow_kernel: FAILED: the process has%s joined the expedited barriers\n", joined ? "" : " not");
        bad = 1;
    }
    atomic_store(&issued, 0);
    stands = true;
    for (int i = 0; i < 2; i++) {
        refused = i == 1;
        joined = joined && !refused;
        for (int kind = TEST_PROCESSES; kind <= TEST_THREADS; kind++)
            bad += test_run((test_kind_t)kind, 3, 20, body, &joined);
    }
    printf("lifetime_slow_kernel: %s\n", bad ? "WRONG" : "right");
    return bad != 0;
}
