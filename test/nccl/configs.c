/* ncclConfig_t of older and newer callers: what they lack has its default, what they have besides is left alone, and
 * the padding behind an old one is not read as a field. A config's name stands in the communicator's messages, and what
 * a config leaves open is not its parent's.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nccl/later.h"
#include "nccl/nccl_harness.h"

/* The struct as a caller of another version has it: `size` bytes, `set` of them as the initialiser fills them, then
 * `rest`. */
typedef struct caller {
    const char *name;
    unsigned version;
    size_t size, set;
    int rest; /* of every byte after `set` */
} caller_t;

static ncclResult_t make(test_rank_t *t, const caller_t *c, ncclComm_t *comm)
{
    static char bytes[4096];
    const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    memset(bytes, c->rest, sizeof bytes);
    memcpy(bytes, &config, c->set < sizeof config ? c->set : sizeof config);
    for (size_t i = sizeof config / sizeof(int); i < c->set / sizeof(int); i++)
        ((int *)(void *)bytes)[i] = NCCL_CONFIG_UNDEF_INT;
    ((ncclConfig_t *)(void *)bytes)->size = c->size;
    ((ncclConfig_t *)(void *)bytes)->version = c->version;
    return ncclCommInitRankConfig(comm, t->nranks, nccl_id(t), t->rank, (ncclConfig_t *)(void *)bytes);
}

static void callers(test_rank_t *t, void *arg)
{
    static const caller_t all[] = {
        {"2.14", 21400, 24, 20, 0x55},     /* ends after `blocking`; the rest of the size is padding */
        {"2.17", 21700, 40, 40, 0x55},     /* to netName */
        {"2.18", 21800, 48, 44, 0x55},     /* to splitShare */
        {"2.27", 22700, 72, 72, 0x55},     /* to nvlsCTAs */
        {"2.28", 22809, 80, 80, 0x55},     /* this header's */
        {"2.30", 23007, 96, 96, 0x55},     /* four fields more */
        {"2.32", 23203, 120, 116, 0x55},   /* five more, and padding */
        {"later", 29900, 4000, 116, 0x55}, /* what nobody knows yet */
        {"short", 22809, 40, 40, 0x55},    /* says that it is new, and ends early */
    };
    char label[64];

    (void)arg;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        ncclComm_t comm = NULL;
        int count = 0;

        snprintf(label, sizeof label, "a config of %s", all[i].name);
        test_note(t, "%s", label);
        if (!nccl_result(t, make(t, &all[i], &comm), ncclSuccess, label))
            continue;
        NCCL_OK(t, ncclCommCount(comm, &count));
        TEST_TRUE(t, count == t->nranks);
        NCCL_OK(t, ncclCommDestroy(comm));
    }
    /* A field within the size and of the version is read: garbage there is refused. */
    const caller_t wrong = {"a bad field", 21700, 40, 20, 0x80};
    ncclComm_t comm = NULL;
    NCCL_GIVES(t, ncclInvalidArgument, make(t, &wrong, &comm));
    const caller_t newer = {"a bad field of 2.30", 23007, 96, 80, 0x55};
    NCCL_GIVES(t, ncclInvalidArgument, make(t, &newer, &comm));
    const caller_t padding = {"2.30's padding, of 2.28", 22809, 96, 80, 0x55};
    NCCL_OK(t, make(t, &padding, &comm));
    NCCL_OK(t, ncclCommDestroy(comm));
}

/* NCCL's log says what a config sets in these words, and PyTorch's tests look for them. */
static void log_has(test_rank_t *t, const char *path)
{
    static const char *const words[] = {"Max CTAs 32",          "Min CTAs 1",
                                        "CGA cluster size 4",   "Split share 1",
                                        "Using network Socket", "config->trafficClass: Traffic class 3"};
    char text[1 << 16]; /* ranks may be threads */
    FILE *file = fopen(path, "r");

    TEST_TRUE(t, file != NULL);
    if (!file)
        return;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strstr(text, words[i]))
            test_fail(t, "the log lacks \"%s\"", words[i]);
}

static void fields(test_rank_t *t, void *arg)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL;
    float one = 1, sum = 0;

    config.blocking = 1;
    config.cgaClusterSize = 4;
    config.minCTAs = 1;
    config.maxCTAs = 32;
    config.netName = "Socket";
    config.splitShare = 1;
    config.trafficClass = 3;
    config.commName = "the-name-of-it";
    config.collnetEnable = 1;
    config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
    config.shrinkShare = 0;
    config.nvlsCTAs = 16;
    config.nChannelsPerNetPeer = 2;
    config.nvlinkCentricSched = 1;
    test_note(t, "every field");
    if (!NCCL_OK(t, ncclCommInitRankConfig(&comm, t->nranks, nccl_id(t), t->rank, &config)))
        return;
    log_has(t, arg);
    NCCL_OK(t, ncclAllReduce(&one, &sum, 1, ncclFloat, ncclSum, comm, NULL));
    TEST_TRUE(t, sum == (float)t->nranks);
    NCCL_OK(t, ncclCommDestroy(comm));
}

/* Ranks that differ in what has an effect make no communicator, and the sentence names it: so a field that is not read
 * is found without a GPU. A variable stands above the config, and the most above the least. */
static void differ(test_rank_t *t, void *arg)
{
    static const struct {
        size_t field; /* an int */
        const char *variable, *named;
    } all[] = {{offsetof(ncclConfig_t, minCTAs), "NCCL_MIN_CTAS", "in RONDO_CUDA_BLOCKS_LEAST:"},
               {offsetof(ncclConfig_t, maxCTAs), "NCCL_MAX_CTAS", "in RONDO_CUDA_BLOCKS:"},
               {offsetof(ncclConfig_t, nChannelsPerNetPeer), "NCCL_NCHANNELS_PER_NET_PEER", "in RONDO_PROXY_THREADS:"}};

    (void)arg;
    for (size_t i = 0; i < 2 * sizeof all / sizeof all[0]; i++) {
        const int number = 2 + t->rank, set = i % 2;
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        ncclComm_t comm = NULL;

        memcpy((char *)&config + all[i / 2].field, &number, sizeof number);
        if (set)
            setenv(all[i / 2].variable, "3", 1);
        test_note(t, "%s, %s", all[i / 2].variable, set ? "set" : "not set");
        ncclResult_t result = ncclCommInitRankConfig(&comm, t->nranks, nccl_id(t), t->rank, &config);
        nccl_result(t, result, set ? ncclSuccess : ncclInvalidUsage, all[i / 2].named);
        if (!set && !strstr(ncclGetLastError(NULL), all[i / 2].named))
            test_fail(t, "the sentence is \"%s\"", ncclGetLastError(NULL));
        if (set) {
            NCCL_OK(t, ncclCommDestroy(comm));
            unsetenv(all[i / 2].variable);
        }
    }
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL;

    test_note(t, "more than there may be");
    config.minCTAs = config.maxCTAs = 4711;
    config.nChannelsPerNetPeer = 64;
    setenv("NCCL_MAX_CTAS", "8", 1); /* less than minCTAs */
    setenv("NCCL_MIN_CTAS", "0", 1); /* no number of these */
    NCCL_OK(t, ncclCommInitRankConfig(&comm, t->nranks, nccl_id(t), t->rank, &config));
    NCCL_OK(t, ncclCommDestroy(comm));
}

/* One number over the communicator: the call is as blocking as it. */
static void blocks(test_rank_t *t, ncclComm_t comm, int blocking)
{
    int32_t one = 1, sum = 0;
    ncclResult_t result = ncclAllReduce(&one, &sum, 1, ncclInt, ncclSum, comm, NULL);

    nccl_result(t, result, blocking ? ncclSuccess : ncclInProgress, "ncclAllReduce");
    NCCL_OK(t, nccl_settled(comm, result));
    NCCL_OK(t, ncclCommDestroy(comm));
}

/* Without a config a new communicator is as its parent; what a config leaves open has its default. Whether a split or a
 * shrink waits is its parent's, whether a grow does is the new one's. */
static void derived(test_rank_t *t, void *arg)
{
    const int parent = *(int *)arg;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = NULL, made = NULL;
    ncclUniqueId id;

    config.blocking = parent;
    ncclResult_t result = ncclCommInitRankConfig(&comm, t->nranks, nccl_id(t), t->rank, &config);
    NCCL_OK(t, nccl_settled(comm, result));
    for (int way = 0; way < 3; way++) {
        const int blocking = way == 0 ? parent : way == 1 ? 1 : !parent;
        ncclConfig_t *given = way == 0 ? NULL : &config;

        test_note(t, "of a parent with blocking %d, %s", parent, way == 0 ? "no config" : "a config");
        config.blocking = way == 1 ? NCCL_CONFIG_UNDEF_INT : !parent;
        result = ncclCommSplit(comm, 0, 0, &made, given);
        nccl_result(t, result, parent ? ncclSuccess : ncclInProgress, "ncclCommSplit");
        NCCL_OK(t, nccl_settled(comm, result));
        blocks(t, made, blocking);
        if (t->rank == 0) { /* without the other */
            int other = 1;

            result = ncclCommShrink(comm, &other, 1, &made, given, NCCL_SHRINK_DEFAULT);
            nccl_result(t, result, parent ? ncclSuccess : ncclInProgress, "ncclCommShrink");
            NCCL_OK(t, nccl_settled(comm, result));
            blocks(t, made, blocking);
        }

        ncclComm_t member = NULL;
        memset(&id, 0, sizeof id);
        NCCL_OK(t, nccl_settled(comm, ncclCommSplit(comm, t->rank ? NCCL_SPLIT_NOCOLOR : 0, 0, &member, NULL)));
        if (member)
            NCCL_OK(t, pncclCommGetUniqueId(member, &id));
        NCCL_OK(t, nccl_settled(comm, ncclAllReduce(&id, &id, sizeof id, ncclUint8, ncclSum, comm, NULL)));
        if (!given)
            config.blocking = parent; /* a new rank has no parent */
        result = pncclCommGrow(member, 2, member ? NULL : &id, member ? -1 : 1, &made, member ? given : &config);
        nccl_result(t, result, blocking ? ncclSuccess : ncclInProgress, "ncclCommGrow");
        NCCL_OK(t, nccl_settled(made, result));
        blocks(t, made, blocking);
        if (member)
            NCCL_OK(t, ncclCommDestroy(member));
    }
    NCCL_OK(t, ncclCommDestroy(comm));
}

int main(void)
{
    char path[] = "/tmp/rondo-configs-XXXXXX";
    int bad = 0, file = mkstemp(path), no = 0, yes = 1;

    test_begin("nccl/configs", 60);
    setenv("RONDO_DEBUG", "none", 0);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_FILE", path, 1);
    nccl_begin();
    bad += file < 0;
    bad += test_run(TEST_PROCESSES, 1, 30, callers, NULL);
    bad += test_run(TEST_THREADS, 2, 30, fields, path);
    bad += test_run(TEST_PROCESSES, 2, 30, differ, NULL);
    bad += test_run(TEST_PROCESSES, 2, 30, derived, &yes);
    bad += test_run(TEST_PROCESSES, 2, 30, derived, &no);
    (void)unlink(path);
    return bad != 0;
}
