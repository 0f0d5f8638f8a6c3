/* NCCL's one-sided operations on host memory: ping-pong, barrier and all-to-all as its manual has them, in groups and
 * alone, blocking and not; fields of a config; what is wrong is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "nccl/nccl_harness.h"
#include "nccl/signal_calls.h"

#define N 3000

static ncclComm_t comm_of(test_rank_t *t, int blocking, int contexts, int signals)
{
    /* The config of 2.32: fields behind this header's. */
    struct {
        ncclConfig_t known;
        int more[9];
    } config = {.known = NCCL_CONFIG_INITIALIZER};
    int *behind = (int *)(void *)((char *)&config + offsetof(ncclConfig_t, nvlinkCentricSched));
    ncclComm_t comm = NULL;

    for (int i = 1; i <= 9; i++)
        behind[i] = NCCL_CONFIG_UNDEF_INT;
    behind[2] = contexts;
    behind[6] = signals;
    config.known.size = sizeof config;
    config.known.version = 23203;
    config.known.blocking = blocking;
    if (!nccl_result(t, ncclCommInitRankConfig(&comm, t->nranks, nccl_id(t), t->rank, &config.known),
                     blocking ? ncclSuccess : ncclInProgress, "ncclCommInitRankConfig"))
        test_stop(t, "no communicator");
    nccl_result(t, nccl_settled(comm, ncclInProgress), ncclSuccess, "creation");
    return comm;
}

#define DONE(call) nccl_result(t, nccl_settled(comm, call), ncclSuccess, #call)

static void came(test_rank_t *t, ncclComm_t comm, int peer, const int *received, int k)
{
    ncclWaitSignalDesc_t wait = {1, peer, k % 4, k % 2};

    DONE(ncclWaitSignal(1, &wait, comm, NULL));
    for (int i = 0; i < N; i++)
        if (received[10 + i] != 1000 * k + 10 * peer + i) {
            test_fail(t, "ping-pong %d: element %d is %d", k, i, received[10 + i]);
            return;
        }
}

/* The put of either is the other's leave to put again. */
static void ping_pong(test_rank_t *t, ncclComm_t comm, ncclWindow_t window, const int *received)
{
    int peer = 1 - t->rank, sent[N];

    for (int k = 0; t->rank < 2 && k < 20; k++) {
        for (int i = 0; i < N; i++)
            sent[i] = 1000 * k + 10 * t->rank + i;
        if (t->rank == 0)
            came(t, comm, peer, received, k);
        DONE(ncclPutSignal(sent, N, ncclInt, peer, window, 40, k % 4, k % 2, 0, comm, NULL));
        if (t->rank == 1)
            came(t, comm, peer, received, k);
    }
}

static void all_to_all(test_rank_t *t, ncclComm_t comm, ncclWindow_t window, const int *received)
{
    ncclWaitSignalDesc_t waits[8];
    int sent[8];

    DONE(ncclGroupStart());
    for (int r = 0; r < t->nranks; r++) {
        waits[r] = (ncclWaitSignalDesc_t){1, r, 3, 1};
        NCCL_OK(t, ncclSignal(r, 3, 1, 0, comm, NULL));
    }
    DONE(ncclGroupEnd());
    DONE(ncclWaitSignal(t->nranks, waits, comm, NULL)); /* a barrier */
    for (int r = 0; r < t->nranks; r++)
        waits[r] = (ncclWaitSignalDesc_t){1, r, 0, 0};
    DONE(ncclGroupStart());
    for (int r = 0; r < t->nranks; r++) {
        sent[r] = 100 * t->rank + r;
        NCCL_OK(t, ncclPutSignal(&sent[r], 1, ncclInt, r, window, (size_t)t->rank * sizeof(int), 0, 0, 0, comm, NULL));
    }
    NCCL_OK(t, ncclWaitSignal(t->nranks, waits, comm, NULL));
    DONE(ncclGroupEnd());
    for (int r = 0; r < t->nranks; r++)
        TEST_TRUE(t, received[r] == 100 * r + t->rank);
    DONE(ncclAllReduce(sent, sent, 1, ncclInt, ncclSum, comm, NULL));
}

static void wrong(test_rank_t *t, ncclComm_t comm, ncclWindow_t window, void *buffer)
{
    ncclWaitSignalDesc_t beyond = {1, 0, 4, 0};

    NCCL_GIVES(t, ncclInvalidArgument, ncclPutSignal(buffer, 1, ncclInt, 0, NULL, 0, 0, 0, 0, comm, NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclPutSignal(buffer, 1, ncclInt, 0, window, 1u << 20, 0, 0, 0, comm, NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclPutSignal(buffer, 1, ncclNumTypes, 0, window, 0, 0, 0, 0, comm, NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclPutSignal(buffer, 1, ncclInt, 0, window, 0, 0, 2, 0, comm, NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclSignal(t->nranks, 0, 0, 0, comm, NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclSignal(0, 4, 0, 0, comm, NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclSignal(0, 0, 0, 1, comm, NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclWaitSignal(1, &beyond, comm, NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclWaitSignal(1, NULL, comm, NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclWaitSignal(0, &beyond, comm, NULL));
}

static void body(test_rank_t *t, void *arg)
{
    int blocking = *(int *)arg;
    ncclComm_t comm = comm_of(t, blocking, 2, 4);
    ncclWindow_t window = NULL, other = NULL;
    void *buffer = NULL;

    NCCL_OK(t, ncclMemAlloc(&buffer, 65536));
    memset(buffer, 0, 65536);
    if (blocking)
        NCCL_GIVES(t, ncclInvalidUsage, ncclSignal(0, 0, 0, 0, comm, NULL)); /* no window yet */
    test_note(t, "two windows in a group");
    NCCL_OK(t, ncclGroupStart());
    NCCL_OK(t, ncclCommWindowRegister(comm, buffer, 32768, &window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL_OK(t, ncclCommWindowRegister(comm, (char *)buffer + 32768, 32768, &other, NCCL_WIN_COLL_SYMMETRIC));
    DONE(ncclGroupEnd());
    test_note(t, "ping-pong");
    ping_pong(t, comm, window, buffer);
    test_note(t, "all to all");
    all_to_all(t, comm, other, (const int *)(const void *)((char *)buffer + 32768));
    test_note(t, "what is wrong");
    if (blocking)
        wrong(t, comm, window, buffer);
    DONE(ncclCommWindowDeregister(comm, window));
    if (blocking)
        NCCL_GIVES(t, ncclInvalidArgument, ncclPutSignal(buffer, 1, ncclInt, 0, window, 0, 0, 0, 0, comm, NULL));
    NCCL_OK(t, ncclCommDestroy(comm));
    NCCL_OK(t, ncclMemFree(buffer));
}

int main(void)
{
    int bad = 0;

    test_begin("signals", 120);
    nccl_begin();
    for (int blocking = 0; blocking < 2; blocking++) {
        bad += test_run(TEST_PROCESSES, 2, 40, body, &blocking);
        bad += test_run(TEST_PROCESSES, 4, 40, body, &blocking);
        bad += test_run(TEST_THREADS, 3, 40, body, &blocking);
    }
    return bad != 0;
}
