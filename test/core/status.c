/* rondo_comm_status: the calls that a rank has made, of each kind, equal ones in a row too; the one that it is in, and
 * whom it waits for there, as another thread sees it. With a record, and the counts without one. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/harness.h"

#define TIMES 5

static _Atomic int *seen; /* shared: rank 0 was seen waiting */

static rondo_status_t ask(test_rank_t *t, rondo_comm_t comm)
{
    rondo_status_t status = {.size = sizeof status};

    TEST_OK(t, comm, rondo_comm_status(comm, &status));
    return status;
}

static void sum(test_rank_t *t, rondo_comm_t comm, size_t count)
{
    int in[64] = {0}, out[64];

    TEST_OK(t, comm, rondo_allreduce(in, out, count, RONDO_INT32, RONDO_SUM, comm, NULL));
}

static void message(test_rank_t *t, rondo_comm_t comm)
{
    int value = 0;

    if (t->rank == 0)
        TEST_OK(t, comm, rondo_send(&value, 1, RONDO_INT32, 1, comm, NULL));
    else
        TEST_OK(t, comm, rondo_recv(&value, 1, RONDO_INT32, 0, comm, NULL));
}

static void counts(test_rank_t *t, rondo_comm_t comm, int record)
{
    rondo_status_t s = ask(t, comm);

    TEST_TRUE(t, s.collectives == 0 && s.collectives_ended == 0 && s.sends == 0 && s.recvs == 0 && s.bytes == 0);
    TEST_TRUE(t, s.waits_for == -1 && s.waits_ms == 0 && s.call[0] == 0);
    for (int i = 0; i < TIMES; i++)
        sum(t, comm, 7);
    sum(t, comm, 8);
    message(t, comm);
    s = ask(t, comm);
    TEST_TRUE(t, s.collectives == TIMES + 1 && s.collectives_ended == TIMES + 1);
    TEST_TRUE(t, s.sends == (t->rank == 0) && s.sends_ended == s.sends);
    TEST_TRUE(t, s.recvs == (t->rank == 1) && s.recvs_ended == s.recvs);
    TEST_TRUE(t, !record || s.bytes == TIMES * 28 + 32 + 4);
    TEST_TRUE(t, strstr(s.call, record ? "allreduce, collective number 6 (8 int32, sum)" : "collective number 6"));
    TEST_TRUE(t, s.waits_for == -1 && s.waits_ms == 0);
}

/* A smaller status is an older caller's: nothing behind it is touched. */
static void older(test_rank_t *t, rondo_comm_t comm)
{
    rondo_status_t status;

    memset(&status, 0x55, sizeof status);
    status.size = offsetof(rondo_status_t, waits_for);
    TEST_OK(t, comm, rondo_comm_status(comm, &status));
    TEST_TRUE(t, status.collectives == TIMES + 1 && status.waits_for == 0x55555555 && status.call[0] == 0x55);
}

typedef struct {
    test_rank_t *t;
    rondo_comm_t comm;
} watch_t;

static void *watch(void *arg)
{
    const watch_t *w = arg;

    for (;;) {
        rondo_status_t s = ask(w->t, w->comm);
        if (s.collectives == TIMES + 2 && s.collectives_ended == TIMES + 1 && s.waits_for == 1 &&
            strcmp(s.call, "allreduce, collective number 7 (3 int32, sum)") == 0)
            break;
        usleep(1000);
    }
    atomic_store(seen, 1);
    return NULL;
}

/* Rank 1 does not come before a thread of rank 0 has seen that it is waited for; or the test is out of time. */
static void waits(test_rank_t *t, rondo_comm_t comm)
{
    watch_t w = {t, comm};
    pthread_t thread;

    if (t->rank == 0 && pthread_create(&thread, NULL, watch, &w) != 0)
        test_stop(t, "no thread");
    while (t->rank == 1 && !atomic_load(seen))
        usleep(1000);
    sum(t, comm, 3);
    if (t->rank == 0)
        pthread_join(thread, NULL);
}

static void body(test_rank_t *t, void *arg)
{
    int record = *(int *)arg;

    setenv("RONDO_MONITOR", record ? "1" : "0", 1);
    rondo_comm_t comm = test_comm(t, NULL);
    counts(t, comm, record);
    older(t, comm);
    if (record)
        waits(t, comm);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

int main(void)
{
    int bad = 0;

    test_begin("status", 60);
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED)
        return 1;
    for (int record = 0; record < 2; record++)
        bad |= test_run(TEST_PROCESSES, 2, 25, body, &record) != 0;
    return bad;
}
