/* Between nodes, messages go out of the user's memory, short ones out of slots. Sockets so short that they cannot hold
 * one, and a reader who comes late, keep that memory lent for long, and slots in use:
 *
 *   chain    a group's first operation lends a buffer that its second one writes: what was lent must arrive as it was
 *   ahead    short messages of all lengths are sent on while those before them still lie in their slots
 *   given up a call ends by its timeout while its buffer is lent: the buffer is the user's again, and whoever comes
 *            later gets an error or the right bytes
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "util/harness.h"

#define RANKS 3
#define COUNT 120000 /* eight messages: two operations fit into the slots of a connection */
#define BYTES (COUNT * sizeof(int32_t))
#define ROUNDS 4
#define AHEAD 450 /* messages */

static void rest(int ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static rondo_comm_t create(test_rank_t *t, int64_t timeout_ms, int *unsupported)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;
    char host[32];

    snprintf(host, sizeof host, "played%d", t->rank);
    setenv("RONDO_HOSTID", host, 1);
    setenv("RONDO_ALGO", "direct", 1); /* rank 2 sends to rank 1 itself */
    setenv("UCX_TCP_SNDBUF", "64k", 1);
    setenv("UCX_TCP_RCVBUF", "64k", 1);
    config.device = RONDO_DEVICE_HOST;
    config.timeout_ms = timeout_ms;
    test_id(t, &id);
    rondo_result_t result = rondo_comm_create(&comm, t->nranks, &id, t->rank, &config);
    if (result == RONDO_ERR_UNSUPPORTED) { /* built without UCX */
        *unsupported = 1;
        return NULL;
    }
    TEST_OK(t, NULL, result);
    return result == RONDO_SUCCESS ? comm : NULL;
}

static int32_t value(int rank, int round, size_t i)
{
    return (int32_t)(i * 7 + (size_t)rank * 1000003 + (size_t)round * 17);
}

/* Rank 1 sends to rank 0, which comes late: in one group, as a call waits until its messages are on their way. */
static void ahead(test_rank_t *t, rondo_comm_t comm, int round, int32_t *all)
{
    size_t at = 0, wrong = 0;

    for (size_t i = 0; i < COUNT; i++)
        all[i] = t->rank == 1 ? value(1, round, i) : 0;
    test_barrier(t);
    if (t->rank == 0)
        rest(20);
    TEST_OK(t, comm, rondo_group_start());
    for (size_t n = 0; n < AHEAD && t->rank < 2; n++) {
        size_t count = 1 + n * 97 % 512; /* what is longer is lent, and waited for */
        TEST_OK(t, comm,
                t->rank == 1 ? rondo_send(all + at, count, RONDO_INT32, 0, comm, NULL)
                             : rondo_recv(all + at, count, RONDO_INT32, 1, comm, NULL));
        at += count;
    }
    TEST_OK(t, comm, rondo_group_end());
    for (size_t i = 0; i < at; i++)
        wrong += all[i] != value(1, round, i);
    if (wrong)
        test_fail(t, "round %d: %zu elements of short messages are wrong", round, wrong);
}

/* Rank 1 lends `mine` to rank 0, which comes late, and gets the broadcast of rank 2 into it meanwhile. */
static void chain(test_rank_t *t, rondo_comm_t comm, int round, int32_t *mine, int32_t *all)
{
    for (size_t i = 0; i < COUNT; i++)
        mine[i] = value(t->rank, round, i);
    memset(all, 0, RANKS * BYTES);
    int32_t *second = t->rank == 2 ? all : mine;
    for (size_t i = 0; i < COUNT && t->rank == 2; i++)
        second[i] = value(9, round, i);
    test_barrier(t);
    if (t->rank == 0)
        rest(20);
    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_gather(mine, all, COUNT, RONDO_INT32, 0, comm, NULL));
    TEST_OK(t, comm, rondo_broadcast(second, second, COUNT, RONDO_INT32, 2, comm, NULL));
    TEST_OK(t, comm, rondo_group_end());
    int wrong = 0;
    for (size_t i = 0; i < COUNT; i++) {
        wrong += second[i] != value(9, round, i);
        for (int r = 0; r < RANKS && t->rank == 0; r++)
            wrong += all[(size_t)r * COUNT + i] != value(r, round, i);
    }
    if (wrong)
        test_fail(t, "round %d: %d elements are wrong", round, wrong);
}

/* Rank 1 gives up and leaves before rank 0 comes. UCX's tcp would end its process if it looked at the network only
 * after rank 0 had taken what is on its way and left in its turn: doc/architecture.md. */
static void cancelled(test_rank_t *t, rondo_comm_t comm, int32_t *mine, int32_t *all)
{
    rondo_result_t result;

    for (size_t i = 0; i < COUNT; i++)
        mine[i] = value(t->rank, 0, i);
    if (t->rank == 1) {
        result = rondo_gather(mine, all, COUNT, RONDO_INT32, 0, comm, NULL);
        if (result != RONDO_SUCCESS) /* sockets longer than was asked for hold it all */
            test_result(t, comm, result, RONDO_ERR_TIMEOUT, "a gather whose root does not come");
        memset(mine, 0x5a, BYTES);
        munmap(mine, BYTES);
        rondo_comm_destroy(comm);
    }
    test_barrier(t);
    if (t->rank != 0)
        return;
    result = rondo_gather(mine, all, COUNT, RONDO_INT32, 0, comm, NULL);
    for (size_t i = 0; i < COUNT && result == RONDO_SUCCESS; i++) {
        if (all[COUNT + i] != value(1, 0, i))
            test_stop(t, "element %zu of rank 1, which gave up, is wrong, and no error was given", i);
    }
}

static void body(test_rank_t *t, void *arg)
{
    int32_t *mine = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int32_t *all = malloc(RANKS * BYTES);
    int *unsupported = arg;

    if (mine == MAP_FAILED || !all)
        test_stop(t, "no memory");
    test_note(t, "create");
    rondo_comm_t comm = create(t, 0, unsupported);
    if (!comm)
        return;
    for (int round = 0; round < ROUNDS; round++) {
        test_note(t, "chain, round %d", round);
        chain(t, comm, round, mine, all);
        test_note(t, "ahead, round %d", round);
        ahead(t, comm, round, all);
    }
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    test_note(t, "given up");
    comm = create(t, 300, unsupported);
    if (!comm)
        return;
    cancelled(t, comm, mine, all);
    if (t->rank != 1)
        rondo_comm_destroy(comm); /* after a failure it may say so */
    free(all);
}

int main(void)
{
    int *unsupported = mmap(NULL, sizeof *unsupported, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    test_begin("nodes_zcopy", 60);
    if (unsupported == MAP_FAILED)
        return 1;
    int bad = test_run(TEST_PROCESSES, RANKS, 40, body, unsupported);
    if (!bad && *unsupported) {
        printf("nodes_zcopy: skipped: the library is built without a network transport\n");
        return TEST_SKIPPED;
    }
    return bad != 0;
}
