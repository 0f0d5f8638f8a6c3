/* Collectives with a config of their own: right, with and without one; the tag reaches rondo, which compares it between
 * ranks, and so does the selection of algorithms, in the whole of its grammar; configs that cannot be kept to are
 * refused, and neither a tag nor a selection stays for the next call.
 */
#include <stdlib.h>
#include <string.h>

#include "nccl/later.h"
#include "nccl/nccl_harness.h"

static const ncclCollConfig_t plain = {.size = sizeof plain,
                                       .magic = NCCL_API_MAGIC,
                                       .version = 23203,
                                       .minCTAs = NCCL_CONFIG_UNDEF_INT,
                                       .maxCTAs = NCCL_CONFIG_UNDEF_INT,
                                       .nvlsCTAs = NCCL_CONFIG_UNDEF_INT,
                                       .cgaClusterSize = NCCL_CONFIG_UNDEF_INT,
                                       .forceAlgSelection = 1,
                                       .CTAPolicy = NCCL_CONFIG_UNDEF_INT};

static void operations(test_rank_t *t, ncclComm_t comm, const ncclCollConfig_t *config)
{
    int in[2] = {t->rank + 1, 10 * (t->rank + 1)}, out[2] = {0, 0};

    NCCL_OK(t, pncclAllReduceConfig(in, out, 2, ncclInt, ncclSum, comm, NULL, config));
    TEST_TRUE(t, out[0] == 3 && out[1] == 30);
    NCCL_OK(t, pncclReduceConfig(in, out, 2, ncclInt, ncclMax, 1, comm, NULL, config));
    TEST_TRUE(t, t->rank == 0 || (out[0] == 2 && out[1] == 20));
    NCCL_OK(t, pncclBroadcastConfig(in, out, 2, ncclInt, 1, comm, NULL, config));
    TEST_TRUE(t, out[0] == 2 && out[1] == 20);
    NCCL_OK(t, pncclAllGatherConfig(in, out, 1, ncclInt, comm, NULL, config));
    TEST_TRUE(t, out[0] == 1 && out[1] == 2);
    NCCL_OK(t, pncclReduceScatterConfig(in, out, 1, ncclInt, ncclSum, comm, NULL, config));
    TEST_TRUE(t, out[0] == (t->rank ? 30 : 3));
    NCCL_OK(t, pncclAlltoAllConfig(in, out, 1, ncclInt, comm, NULL, config));
    TEST_TRUE(t, out[0] == (t->rank ? 10 : 1) && out[1] == (t->rank ? 20 : 2));
    NCCL_OK(t, pncclGatherConfig(in, out, 1, ncclInt, 0, comm, NULL, config));
    TEST_TRUE(t, t->rank || (out[0] == 1 && out[1] == 2));
    NCCL_OK(t, pncclScatterConfig(in, out, 1, ncclInt, 0, comm, NULL, config));
    TEST_TRUE(t, out[0] == (t->rank ? 10 : 1));
}

static void refuses(test_rank_t *t, ncclComm_t comm, const ncclCollConfig_t *config, ncclResult_t want)
{
    int in = 1, out = 0;

    NCCL_GIVES(t, want, pncclAllReduceConfig(&in, &out, 1, ncclInt, ncclSum, comm, NULL, config));
    TEST_TRUE(t, out == 0 && *ncclGetLastError(NULL));
}

static void wrong(test_rank_t *t, ncclComm_t comm)
{
    ncclCollConfig_t config = plain;

    config.magic = 0;
    refuses(t, comm, &config, ncclInvalidArgument);
    config = plain;
    config.size = 40;
    refuses(t, comm, &config, ncclInvalidArgument);
    config = plain;
    config.minCTAs = -3;
    refuses(t, comm, &config, ncclInvalidArgument);
    config = plain;
    config.forceAlgSelection = 2;
    refuses(t, comm, &config, ncclInvalidArgument);
    config = plain;
    config.launchCompletionEvent = (void *)&config; /* no kernel is launched on host memory */
    refuses(t, comm, &config, ncclInvalidUsage);
    config = plain;
    config.maxCTAs = 0;
    refuses(t, comm, &config, ncclInvalidArgument);
    config.maxCTAs = 2;
    config.minCTAs = 3;
    refuses(t, comm, &config, ncclInvalidArgument);
    config = plain;
    config.CTAPolicy = 4;
    refuses(t, comm, &config, ncclInvalidArgument);
}

/* What each selection forces is seen by calls that only one of the two ranks selects it for: rondo compares them. */
static void selections(test_rank_t *t, ncclComm_t comm)
{
    static const char *const kept[] = {"ring",    "RING_SIMPLE", " Tree , ring", "RING+^RING_LL", "^PAT+^SYMK",
                                       "ring_LL", "Tree_S",      "^tree",        "tree+^tree_ll", "ring,nvls"};
    static const char *const bad[] = {
        "pigeon", "+", "^", "ring+tree", "SIMPLE", "nvls", "RING_LL,TREE_SIMPLE", "ring,pigeon", "RING_LL128+^RING_LL"};
    ncclCollConfig_t config = plain;
    int in = t->rank + 1, out = 0, many[2] = {0};

    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        test_note(t, "algSelection %s", kept[i]);
        config.algSelection = kept[i];
        out = 0;
        NCCL_OK(t, pncclAllReduceConfig(&in, &out, 1, ncclInt, ncclSum, comm, NULL, &config));
        TEST_TRUE(t, out == 3);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        test_note(t, "algSelection %s", bad[i]);
        config.algSelection = bad[i];
        config.forceAlgSelection = 1;
        refuses(t, comm, &config, ncclInvalidArgument);
        config.forceAlgSelection = 0;
        out = 0;
        NCCL_OK(t, pncclAllReduceConfig(&in, &out, 1, ncclInt, ncclSum, comm, NULL, &config));
        TEST_TRUE(t, out == 3);
    }
    test_note(t, "algSelection of a function that has none");
    config = plain;
    config.algSelection = "ring";
    NCCL_GIVES(t, ncclInvalidArgument, pncclAlltoAllConfig(many, many, 1, ncclInt, comm, NULL, &config));
    test_note(t, "in a group");
    NCCL_OK(t, ncclGroupStart());
    NCCL_OK(t, pncclAllReduceConfig(&in, &out, 1, ncclInt, ncclSum, comm, NULL, &config));
    config.algSelection = "tree";
    NCCL_OK(t, pncclAllGatherConfig(&in, many, 1, ncclInt, comm, NULL, NULL));
    NCCL_OK(t, pncclAllReduceConfig(&in, &out, 1, ncclInt, ncclMax, comm, NULL, &config));
    NCCL_OK(t, ncclGroupEnd());
    TEST_TRUE(t, out == 2 && many[0] == 1 && many[1] == 2);
}

/* Ranks that select differently, also by a call of which one selects nothing. */
static void differ(test_rank_t *t, void *arg)
{
    const char *mine[2][2] = {{"RING_SIMPLE", "TREE_SIMPLE"}, {"", "RING_SIMPLE"}};
    ncclComm_t comm = nccl_comm(t);
    ncclCollConfig_t config = plain;
    int in = 1, out = 0;

    config.algSelection = mine[*(int *)arg][t->rank];
    test_note(t, "algSelection %s", config.algSelection);
    NCCL_GIVES(t, ncclInvalidUsage, pncclAllReduceConfig(&in, &out, 1, ncclInt, ncclSum, comm, NULL, &config));
    TEST_TRUE(t, strstr(ncclGetLastError(comm), "force alike") != NULL);
    NCCL_OK(t, ncclCommAbort(comm));
}

static void all(test_rank_t *t, void *arg)
{
    ncclComm_t comm = nccl_comm(t);
    ncclCollConfig_t config = plain;
    int in = 1, out = 0;

    (void)arg;
    operations(t, comm, NULL);
    operations(t, comm, &plain);
    config.maxCTAs = 4;
    config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
    config.algSelection = "ring";
    config.forceAlgSelection = 0;
    config.userProfilerTag = 77;
    operations(t, comm, &config);
    config.size = offsetof(ncclCollConfig_t, launchCompletionEvent); /* 2.31's */
    config.launchCompletionEvent = (void *)&config;
    operations(t, comm, &config);
    wrong(t, comm);
    selections(t, comm);
    test_note(t, "in a group, with a tag for each");
    NCCL_OK(t, ncclGroupStart());
    for (int i = 0; i < 3; i++) {
        config.userProfilerTag = (uint64_t)i;
        NCCL_OK(t, pncclAllReduceConfig(&in, &out, 1, ncclInt, ncclSum, comm, NULL, &config));
    }
    NCCL_OK(t, ncclGroupEnd());
    TEST_TRUE(t, out == 2);
    /* Refused on one rank, it leaves no tag behind for the next call. */
    config = plain;
    config.userProfilerTag = 5;
    if (t->rank == 0)
        NCCL_GIVES(t, ncclInvalidArgument,
                   pncclAllReduceConfig(&in, &out, 1, (ncclDataType_t)99, ncclSum, comm, NULL, &config));
    NCCL_OK(t, ncclAllReduce(&in, &out, 1, ncclInt, ncclSum, comm, NULL));
    test_note(t, "tags that differ are found");
    config.userProfilerTag = (uint64_t)t->rank + 1;
    NCCL_GIVES(t, ncclInvalidUsage, pncclAllReduceConfig(&in, &out, 1, ncclInt, ncclSum, comm, NULL, &config));
    TEST_TRUE(t, strstr(ncclGetLastError(comm), "tag") != NULL);
    NCCL_OK(t, ncclCommAbort(comm));
}

int main(void)
{
    test_begin("nccl/per_call", 20);
    setenv("RONDO_DEBUG", "none", 0);
    nccl_begin();
    int bad = test_run(TEST_PROCESSES, 2, 20, all, NULL) != 0;
    for (int i = 0; i < 2; i++)
        bad |= test_run(TEST_PROCESSES, 2, 20, differ, &i) != 0;
    return bad;
}
