/* Every function of libnccl.so.2 with wrong arguments: refused with the result that NCCL has for it and a sentence that
 * names the call; the communicator is unharmed. What is not served refuses too, and never says success.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/later.h"
#include "nccl/nccl_harness.h"

static float x[64], y[64];

/* The last error's sentence names the call. */
static void said(test_rank_t *t, const char *call)
{
    char name[64];

    call += *call == 'p';
    snprintf(name, sizeof name, "%.*s", (int)strcspn(call, "("), call);
    if (!strstr(ncclGetLastError(NULL), name))
        test_fail(t, "%s: the sentence is \"%s\"", call, ncclGetLastError(NULL));
}

#define WRONG(want, call)                                                                                              \
    do {                                                                                                               \
        NCCL_GIVES(t, want, call);                                                                                     \
        said(t, #call);                                                                                                \
    } while (0)
#define ARGUMENT(call) WRONG(ncclInvalidArgument, call)
#define USAGE(call) WRONG(ncclInvalidUsage, call)
/* It makes no communicator, and none is left where there was something else. */
#define UNMADE(comm, call)                                                                                             \
    do {                                                                                                               \
        (comm) = (ncclComm_t)(void *)x;                                                                                \
        ARGUMENT(call);                                                                                                \
        TEST_TRUE(t, (comm) == NULL);                                                                                  \
    } while (0)

static void creation(test_rank_t *t)
{
    ncclConfig_t good = NCCL_CONFIG_INITIALIZER, bad;
    ncclUniqueId id, garbage;
    ncclComm_t comm = NULL, both[2] = {NULL, NULL};
    const int twice[2] = {0, 0}, negative[1] = {-1};

    test_note(t, "creation");
    memset(&garbage, 7, sizeof garbage);
    ARGUMENT(ncclGetUniqueId(NULL));
    NCCL_OK(t, ncclGetUniqueId(&id));
    ARGUMENT(ncclCommInitRank(NULL, 1, id, 0));
    UNMADE(comm, ncclCommInitRank(&comm, 0, id, 0));
    UNMADE(comm, ncclCommInitRank(&comm, 2, id, 2));
    UNMADE(comm, ncclCommInitRank(&comm, 2, id, -1));
    NCCL_GIVES(t, ncclInvalidArgument, ncclCommInitRank(&comm, 1, garbage, 0));
    TEST_TRUE(t, strstr(ncclGetLastError(NULL), "unique id") != NULL && comm == NULL);
    ARGUMENT(ncclCommInitRankConfig(NULL, 1, id, 0, &good));
    memset(&bad, 0, sizeof bad);
    UNMADE(comm, ncclCommInitRankConfig(&comm, 1, id, 0, &bad));
    bad = good;
    bad.blocking = 2;
    UNMADE(comm, ncclCommInitRankConfig(&comm, 1, id, 0, &bad));
    bad = good;
    bad.splitShare = -1;
    UNMADE(comm, ncclCommInitRankConfig(&comm, 1, id, 0, &bad));
    bad = good;
    bad.minCTAs = 4;
    bad.maxCTAs = 2;
    UNMADE(comm, ncclCommInitRankConfig(&comm, 1, id, 0, &bad));
    bad = good;
    bad.nChannelsPerNetPeer = 65; /* NCCL has 64 channels */
    UNMADE(comm, ncclCommInitRankConfig(&comm, 1, id, 0, &bad));
    char name[5000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    bad = good;
    bad.blocking = 17; /* no field is of so old a version */
    bad.version = 0;
    bad.size = SIZE_MAX;
    bad.commName = bad.netName = name;
    NCCL_OK(t, ncclCommInitRankConfig(&comm, 1, id, 0, &bad));
    NCCL_OK(t, ncclCommDestroy(comm));
    NCCL_OK(t, ncclGetUniqueId(&id));
    bad.version = UINT32_MAX;
    bad.size = sizeof bad;
    UNMADE(comm, ncclCommInitRankConfig(&comm, 1, id, 0, &bad));
    bad.blocking = 1;
    NCCL_OK(t, ncclCommInitRankConfig(&comm, 1, id, 0, &bad));
    NCCL_OK(t, ncclCommDestroy(comm));
    NCCL_OK(t, ncclGetUniqueId(&id));
    bad = good;
    bad.trafficClass = 4711; /* NCCL leaves it to the network */
    NCCL_OK(t, ncclCommInitRankConfig(&comm, 1, id, 0, &bad));
    NCCL_OK(t, ncclCommDestroy(comm));
    comm = NULL;
    NCCL_OK(t, ncclGetUniqueId(&id));
    ARGUMENT(ncclCommInitRankScalable(&comm, 1, 0, 0, &id, NULL));
    ARGUMENT(ncclCommInitRankScalable(&comm, 1, 0, 2, &id, NULL));
    ARGUMENT(ncclCommInitRankScalable(&comm, 1, 0, 1, NULL, NULL));
    UNMADE(comm, ncclCommInitRankScalable(&comm, 1, 1, 1, &id, NULL));
    ARGUMENT(ncclCommInitAll(NULL, 1, NULL));
    ARGUMENT(ncclCommInitAll(&comm, 0, NULL));
    ARGUMENT(ncclCommInitAll(&comm, 1, negative));
    USAGE(ncclCommInitAll(&comm, 2, twice));
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    NCCL_OK(t, ncclCommInitAll(both, 2, twice));
    unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
    for (int i = 0; i < 2; i++)
        NCCL_OK(t, ncclCommDestroy(both[i]));
    UNMADE(comm, pncclCommGrow(NULL, 2, NULL, 1, &comm, NULL));
    UNMADE(comm, pncclCommGrow(NULL, 2, &id, 2, &comm, NULL));
    UNMADE(comm, pncclCommGrow(NULL, 2, &id, -1, &comm, NULL));
    ARGUMENT(pncclCommGrow(NULL, 2, &id, 1, NULL, NULL));
    TEST_TRUE(t, comm == NULL);
}

static void no_communicator(test_rank_t *t)
{
    static struct {
        char bytes[2048];
    } foreign;
    const ncclComm_t comms[2] = {NULL, (ncclComm_t)(void *)&foreign};
    ncclComm_t made;
    ncclResult_t error;
    ncclRedOp_t op;
    ncclUniqueId id = {{0}};
    ncclWindow_t win;
    void *handle;
    int n;

    test_note(t, "no communicator");
    NCCL_OK(t, ncclCommDestroy(NULL)); /* as in NCCL */
    NCCL_OK(t, ncclCommAbort(NULL));
    NCCL_OK(t, ncclCommFinalize(NULL));
    NCCL_OK(t, ncclCommRevoke(NULL, 0));
    ARGUMENT(ncclCommDestroy(comms[1]));
    ARGUMENT(ncclCommAbort(comms[1]));
    for (int i = 0; i < 2; i++) {
        ncclComm_t c = comms[i];

        ARGUMENT(ncclAllReduce(x, y, 1, ncclFloat, ncclSum, c, NULL));
        ARGUMENT(ncclReduce(x, y, 1, ncclFloat, ncclSum, 0, c, NULL));
        ARGUMENT(ncclBroadcast(x, y, 1, ncclFloat, 0, c, NULL));
        NCCL_GIVES(t, ncclInvalidArgument, ncclBcast(x, 1, ncclFloat, 0, c, NULL));
        ARGUMENT(ncclReduceScatter(x, y, 1, ncclFloat, ncclSum, c, NULL));
        ARGUMENT(ncclAllGather(x, y, 1, ncclFloat, c, NULL));
        ARGUMENT(ncclAlltoAll(x, y, 1, ncclFloat, c, NULL));
        ARGUMENT(ncclGather(x, y, 1, ncclFloat, 0, c, NULL));
        ARGUMENT(ncclScatter(x, y, 1, ncclFloat, 0, c, NULL));
        ARGUMENT(ncclSend(x, 1, ncclFloat, 0, c, NULL));
        ARGUMENT(ncclRecv(x, 1, ncclFloat, 0, c, NULL));
        ARGUMENT(ncclCommCount(c, &n));
        ARGUMENT(ncclCommUserRank(c, &n));
        ARGUMENT(ncclCommCuDevice(c, &n));
        ARGUMENT(ncclCommGetAsyncError(c, &error));
        ARGUMENT(pncclCommGetUniqueId(c, &id));
        if (c)
            ARGUMENT(pncclCommGrow(c, 2, &id, -1, &made, NULL));
        if (c) {
            ARGUMENT(ncclCommFinalize(c));
            ARGUMENT(ncclCommRevoke(c, 0));
        }
        ARGUMENT(ncclCommSplit(c, 0, 0, &made, NULL));
        ARGUMENT(ncclCommShrink(c, NULL, 0, &made, NULL, 0));
        ARGUMENT(ncclCommRegister(c, x, 64, &handle));
        ARGUMENT(ncclCommDeregister(c, x));
        ARGUMENT(ncclCommWindowRegister(c, x, 64, &win, 0));
        ARGUMENT(ncclCommWindowDeregister(c, NULL));
        ARGUMENT(ncclRedOpCreatePreMulSum(&op, x, ncclFloat, ncclScalarHostImmediate, c));
        ARGUMENT(ncclRedOpDestroy((ncclRedOp_t)5, c));
    }
}

static void operations(test_rank_t *t, ncclComm_t comm)
{
    test_note(t, "operations");
    ARGUMENT(ncclAllReduce(x, y, 1, (ncclDataType_t)12, ncclSum, comm, NULL));
    ARGUMENT(ncclAllReduce(x, y, 1, (ncclDataType_t)-1, ncclSum, comm, NULL));
    ARGUMENT(ncclAllReduce(x, y, 1, ncclFloat, (ncclRedOp_t)5, comm, NULL));
    ARGUMENT(ncclAllReduce(x, y, 1, ncclFloat, (ncclRedOp_t)-1, comm, NULL));
    ARGUMENT(ncclAllReduce(NULL, y, 1, ncclFloat, ncclSum, comm, NULL));
    ARGUMENT(ncclAllReduce(x, NULL, 1, ncclFloat, ncclSum, comm, NULL));
    ARGUMENT(ncclReduce(x, y, 1, ncclFloat, ncclSum, 1, comm, NULL));
    ARGUMENT(ncclReduce(x, NULL, 1, ncclFloat, ncclSum, 0, comm, NULL));
    ARGUMENT(ncclBroadcast(x, y, 1, ncclFloat, -1, comm, NULL));
    ARGUMENT(ncclBroadcast(NULL, y, 1, ncclFloat, 0, comm, NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclBcast(NULL, 1, ncclFloat, 0, comm, NULL));
    ARGUMENT(ncclReduceScatter(x, y, 1, ncclFloat, (ncclRedOp_t)9, comm, NULL));
    ARGUMENT(ncclAllGather(x, NULL, 1, ncclFloat, comm, NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclAlltoAll(x, x + 1, 8, ncclFloat, comm, NULL));
    ARGUMENT(ncclGather(x, NULL, 1, ncclFloat, 0, comm, NULL));
    ARGUMENT(ncclScatter(NULL, y, 1, ncclFloat, 0, comm, NULL));
    ARGUMENT(ncclSend(x, 1, ncclFloat, 1, comm, NULL));
    ARGUMENT(ncclSend(NULL, 1, ncclFloat, 0, comm, NULL));
    ARGUMENT(ncclRecv(NULL, 1, ncclFloat, 0, comm, NULL));
    ARGUMENT(ncclRecv(x, 1, ncclFloat, -2, comm, NULL));
    NCCL_GIVES(t, ncclInvalidUsage, ncclSend(x, 1, ncclFloat, 0, comm, NULL)); /* to itself, without its receive */
    NCCL_GIVES(t, ncclInvalidArgument, ncclAllReduce(x, x + 1, 8, ncclFloat, ncclSum, comm, NULL));
    NCCL_GIVES(t, ncclInvalidArgument, ncclAllReduce(x, y, (size_t)-1, ncclFloat, ncclSum, comm, NULL));
}

static void communicators(test_rank_t *t, ncclComm_t comm)
{
    ncclConfig_t bad = NCCL_CONFIG_INITIALIZER;
    ncclComm_t made = NULL;
    int out = 0;

    test_note(t, "communicators");
    ARGUMENT(ncclGetVersion(NULL));
    ARGUMENT(ncclCommCount(comm, NULL));
    ARGUMENT(ncclCommGetAsyncError(comm, NULL));
    ARGUMENT(ncclCommSplit(comm, -2, 0, &made, NULL));
    ARGUMENT(ncclCommSplit(comm, 0, 0, NULL, NULL));
    ARGUMENT(ncclCommShrink(comm, NULL, 1, &made, NULL, 0));
    ARGUMENT(ncclCommShrink(comm, &out, -1, &made, NULL, 0));
    ARGUMENT(ncclCommShrink(comm, &out, 0, &made, NULL, NCCL_SHRINK_ABORT)); /* as in NCCL, nobody is left out */
    ARGUMENT(ncclCommShrink(comm, NULL, 0, &made, NULL, NCCL_SHRINK_DEFAULT));
    ARGUMENT(ncclCommShrink(comm, &out, 1, NULL, NULL, 0));
    ARGUMENT(ncclCommShrink(comm, &out, 1, &made, NULL, 2));
    ARGUMENT(ncclCommShrink(comm, &out, 1, &made, NULL, 0)); /* itself */
    ARGUMENT(ncclCommShrink(comm, &out, 1, &made, NULL, NCCL_SHRINK_ABORT));
    TEST_TRUE(t, made == NULL);
    bad.blocking = 2;
    made = comm;
    ARGUMENT(ncclCommSplit(comm, 0, 0, &made, &bad));
    TEST_TRUE(t, made == NULL);
    made = comm;
    int other = 1; /* none of this communicator */
    ARGUMENT(ncclCommShrink(comm, &other, 1, &made, &bad, 0));
    ARGUMENT(ncclCommShrink(comm, &other, 1, &made, NULL, NCCL_SHRINK_ABORT)); /* it revokes nothing */
    other = -1;
    ARGUMENT(ncclCommShrink(comm, &other, 1, &made, NULL, NCCL_SHRINK_ABORT));
    ARGUMENT(ncclCommRevoke(comm, 1));
}

static void memory(test_rank_t *t, ncclComm_t comm)
{
    uint64_t bytes = 17;
    ncclWindow_t win;
    void *memory;

    test_note(t, "memory");
    ARGUMENT(ncclMemAlloc(NULL, 8));
    NCCL_GIVES(t, ncclSystemError, ncclMemAlloc(&memory, (size_t)-1));
    ARGUMENT(ncclMemFree(x));
    NCCL_OK(t, ncclMemFree(NULL));
    ARGUMENT(ncclCommRegister(comm, NULL, 8, &memory));
    ARGUMENT(ncclCommRegister(comm, x, 8, NULL));
    NCCL_OK(t, ncclCommDeregister(comm, NULL)); /* as in NCCL */
    USAGE(ncclCommDeregister(comm, x));
    ARGUMENT(pncclCommMemStats(comm, ncclStatGpuMemTotal, NULL));
    ARGUMENT(pncclCommMemStats(comm, (ncclCommMemStat_t)4, &bytes));
    ARGUMENT(pncclCommMemStats(NULL, ncclStatGpuMemTotal, &bytes));
    TEST_TRUE(t, bytes == 17);
    NCCL_OK(t, pncclCommMemStats(comm, ncclStatGpuMemTotal, &bytes));
    TEST_TRUE(t, bytes == 0); /* of a GPU there is none */
    ARGUMENT(ncclCommWindowRegister(comm, x, 8, NULL, 0));
    win = (ncclWindow_t)(void *)x;
    ARGUMENT(ncclCommWindowRegister(comm, x, 8, &win, 64));
    TEST_TRUE(t, win == NULL);
    ARGUMENT(ncclCommWindowDeregister(comm, (ncclWindow_t)(void *)x));
    NCCL_OK(t, ncclCommWindowDeregister(comm, NULL)); /* as in NCCL */
}

static void operators(test_rank_t *t, ncclComm_t comm)
{
    ncclRedOp_t op;

    test_note(t, "operators");
    ARGUMENT(ncclRedOpCreatePreMulSum(NULL, x, ncclFloat, ncclScalarHostImmediate, comm));
    ARGUMENT(ncclRedOpCreatePreMulSum(&op, NULL, ncclFloat, ncclScalarHostImmediate, comm));
    ARGUMENT(ncclRedOpCreatePreMulSum(&op, x, (ncclDataType_t)12, ncclScalarHostImmediate, comm));
    ARGUMENT(ncclRedOpCreatePreMulSum(&op, x, ncclFloat, (ncclScalarResidence_t)2, comm));
    ARGUMENT(ncclRedOpDestroy(ncclSum, comm));
    ARGUMENT(ncclRedOpDestroy((ncclRedOp_t)77, comm));
}

static void groups(test_rank_t *t, ncclComm_t comm)
{
    ncclSimInfo_t sim = {0};
    ncclResult_t error;

    test_note(t, "groups");
    USAGE(ncclGroupEnd());
    USAGE(ncclGroupSimulateEnd(NULL));
    USAGE(ncclGroupSimulateEnd(&sim));
    NCCL_OK(t, ncclGroupStart());
    NCCL_OK(t, ncclAllReduce(x, y, 1, ncclFloat, ncclSum, comm, NULL));
    ARGUMENT(ncclGroupSimulateEnd(&sim));
    USAGE(ncclGroupEnd()); /* as in NCCL, that was the end of the group */
    NCCL_OK(t, ncclCommGetAsyncError(comm, &error));
    NCCL_GIVES(t, ncclSuccess, error);
}

/* What rondo-info --nccl lists as not supported, by the list that stands here: a function that becomes served is taken
 * out of it. */
static void refused(test_rank_t *t)
{
    static const char *const names[] = {"SetEncryption",
                                        "DevCommCreate",
                                        "DevCommDestroy",
                                        "CftBarrierCreateRequirement",
                                        "GetCftDeviceLeInfo",
                                        "GetLsaDevicePointer",
                                        "GetLsaMultimemDevicePointer",
                                        "GetMultimemDeviceLeInfo",
                                        "GetMultimemDevicePointer",
                                        "GetPeerDeviceLeInfo",
                                        "GetPeerDevicePointer",
                                        "GinBarrierCreateRequirement",
                                        "GinInboxA2ACreateRequirement",
                                        "GinOutboxCreateRequirement",
                                        "LLA2ACreateRequirement",
                                        "LsaBarrierCreateRequirement"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[64];
        ncclResult_t (*call)(void *, void *, void *, void *, void *, void *);

        for (int twin = 0; twin < 2; twin++) {
            snprintf(name, sizeof name, "%snccl%s", twin ? "p" : "", names[i]);
            test_note(t, "%s", name);
            call = (ncclResult_t(*)(void *, void *, void *, void *, void *, void *))dlsym(RTLD_DEFAULT, name);
            if (!call) {
                test_fail(t, "%s is not there", name);
                continue;
            }
            nccl_result(t, call(x, x, x, x, x, x), ncclInvalidUsage, name);
            said(t, name + twin);
        }
    }
}

/* What a program asks before it lets its own kernels use windows must not say that they may, also in a communicator of
 * one rank, which as a team would be complete. */
static void probes(test_rank_t *t, ncclComm_t comm)
{
    ncclCommProperties_t props = {.size = sizeof props, .magic = NCCL_API_MAGIC, .version = NCCL_VERSION(2, 30, 7)};

    TEST_TRUE(t, pncclTeamLsa(comm).nRanks == 0);
    TEST_TRUE(t, pncclTeamCft(comm, 0).nRanks == 0 && pncclTeamCftMultimem(comm).nRanks == 0);
    TEST_TRUE(t, pncclTeamRankToLsa(comm, pncclTeamWorld(comm), 0) == -1);
    TEST_TRUE(t, pncclTeamWorld(comm).nRanks == t->nranks && pncclTeamWorld(comm).rank == t->rank);
    TEST_TRUE(t, pncclTeamRail(comm).nRanks == t->nranks && pncclTeamRail(comm).rank == t->rank);
    TEST_TRUE(t, pncclTeamRankToWorld(comm, (ncclTeam_t){4, 1, 3}, 3) == t->rank + 6);
    TEST_TRUE(t, pncclTeamRankToWorld(NULL, pncclTeamWorld(comm), 0) == -1 && pncclTeamRail(NULL).nRanks == 0);
    TEST_TRUE(t, pncclLLA2ACalcSlots() == 0);
    NCCL_GIVES(t, ncclInvalidUsage, pncclCommQueryProperties(comm, &props));
    TEST_TRUE(t, !props.deviceApiSupport && props.nLsaTeams == 0 && !props.hostRmaSupport);
    NCCL_GIVES(t, ncclInvalidArgument, pncclCommQueryProperties(NULL, &props));
    ARGUMENT(pncclCommQueryProperties(comm, NULL));
}

/* The texts of results begin as NCCL's, which scripts look for in logs. */
static void words(test_rank_t *t)
{
    static const char *const begin[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress",
                                        "timeout",
                                        "unknown result code"};

    for (int i = 0; i < 12; i++) {
        const char *want = begin[i < 9 ? i : 9], *got = ncclGetErrorString((ncclResult_t)i);
        if (strncmp(got, want, strlen(want)) != 0)
            test_fail(t, "result %d is \"%s\", not \"%s\"", i, got, want);
    }
    TEST_TRUE(t, strcmp(ncclGetErrorString((ncclResult_t)-1), begin[9]) == 0);
}

static void all(test_rank_t *t, void *arg)
{
    ncclComm_t comm = nccl_comm(t);

    (void)arg;
    TEST_TRUE(t, *ncclGetLastError(NULL) == '\0');
    creation(t);
    no_communicator(t);
    TEST_TRUE(t, strstr(ncclGetLastError(comm), "ncclRedOpDestroy") != NULL); /* it has had none of its own */
    operations(t, comm);
    communicators(t, comm);
    memory(t, comm);
    operators(t, comm);
    groups(t, comm);
    refused(t);
    probes(t, comm);
    test_note(t, "the communicator is unharmed");
    x[0] = 3;
    NCCL_OK(t, ncclAllReduce(x, y, 1, ncclFloat, ncclSum, comm, NULL));
    TEST_TRUE(t, y[0] == 3);
    NCCL_OK(t, ncclCommDestroy(comm));
    words(t);
}

int main(void)
{
    test_begin("nccl/wrong", 40);
    setenv("RONDO_DEBUG", "none", 0);
    nccl_begin();
    return test_run(TEST_PROCESSES, 1, 30, all, NULL) != 0;
}
