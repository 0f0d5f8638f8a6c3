/* Net plugins of NCCL's: which one is loaded, and what is said where one cannot be, fails in one of its calls, never
 * connects, or has no device. Every rank gets an error with a sentence, and nobody hangs. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "netplugin/trial.h"
#include "util/text.h"

#define RANKS 3
#define COUNT 300000 /* long messages, which are announced */

typedef struct trial {
    const char *plugin; /* RONDO_NET_PLUGIN; NULL: none is named */
    const char *nccls;  /* NCCL_NET_PLUGIN */
    const char *how;    /* TEST_NET, of these ranks: */
    unsigned here;
    const char *net; /* RONDO_NET */
    rondo_result_t own, others;
    const char *says_own, *says_others;
} trial_t;

static void body(test_rank_t *t, void *arg)
{
    const trial_t *trial = arg;
    bool own = trial->here >> t->rank & 1;
    static float in[COUNT], out[COUNT];

    test_play_node(t, t->nranks == RANKS ? RANKS : 2);
    if (trial->plugin)
        setenv("RONDO_NET_PLUGIN", trial->plugin, 1);
    if (trial->nccls)
        setenv("NCCL_NET_PLUGIN", trial->nccls, 1);
    if (own && trial->how)
        setenv("TEST_NET", trial->how, 1);
    if (trial->net)
        setenv("RONDO_NET", trial->net, 1);
    setenv("RONDO_CREATE_TIMEOUT_MS", trial->own == RONDO_ERR_TIMEOUT ? "2000" : "15000", 1);
    rondo_comm_t comm =
        test_comm_gives(t, own ? trial->own : trial->others, own ? trial->says_own : trial->says_others);
    if (!comm)
        return;
    trial_sum(t, comm, in, out, COUNT);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* A communicator over nodes of one rank each, whose plugin fails on rank 1 from now on, as `how` says. */
static rondo_comm_t spoiled_comm(test_rank_t *t, int nodes, const char *how)
{
    test_play_node(t, nodes);
    setenv("RONDO_NET_PLUGIN", "test11", 1);
    rondo_comm_t comm = test_comm(t, &(rondo_config_t)RONDO_CONFIG_INIT);
    test_barrier(t); /* all are through with the creation */
    if (t->rank == 1)
        setenv("TEST_NET", how, 1);
    return comm;
}

/* One that fails in the middle: every rank gets an error, from the call or from the next one. */
static void fail_later(test_rank_t *t, void *arg)
{
    static float in[COUNT], out[COUNT];
    rondo_comm_t comm = spoiled_comm(t, RANKS, arg);
    rondo_result_t result = RONDO_SUCCESS;

    for (int i = 0; i < 1000 && result == RONDO_SUCCESS; i++)
        result = rondo_allreduce(in, out, COUNT, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    (void)test_result(t, comm, result, RONDO_ERR_REMOTE, "an allreduce with a plugin that fails");
    if (t->rank == 1)
        trial_says(t, comm, "net plugin test");
    (void)rondo_comm_destroy(comm);
}

/* Rank 1 sends and rank 0 receives: all that comes to rank 1 are credits, one of which is said to be too long. */
static void fail_credited(test_rank_t *t, void *arg)
{
    static float data[COUNT];
    rondo_comm_t comm = spoiled_comm(t, 2, arg);
    rondo_result_t result = RONDO_SUCCESS;

    for (int i = 0; i < 1000 && result == RONDO_SUCCESS; i++)
        result = t->rank == 1 ? rondo_send(data, COUNT, RONDO_FLOAT32, 0, comm, NULL)
                              : rondo_recv(data, COUNT, RONDO_FLOAT32, 1, comm, NULL);
    (void)test_result(t, comm, result, RONDO_ERR_REMOTE, "a message with a plugin that says another length");
    if (t->rank == 1)
        trial_says(t, comm, "a length from test that the message has not");
    (void)rondo_comm_destroy(comm);
}

/* What fails is the rank's own matter: the others hear which rank it is, and why, before it does anything more. */
static void fail_alone(test_rank_t *t, void *arg)
{
    static float in[COUNT], out[COUNT];

    test_play_node(t, *(const int *)arg);
    setenv("RONDO_NET_PLUGIN", "test11", 1);
    rondo_comm_t comm = test_comm(t, &(rondo_config_t)RONDO_CONFIG_INIT);
    test_barrier(t); /* all are through with the creation */
    if (t->rank == 1)
        setenv("TEST_NET", "fail=reg/1", 1);
    TEST_GIVES(t, comm, t->rank == 1 ? RONDO_ERR_SYSTEM : RONDO_ERR_REMOTE,
               rondo_allreduce(in, out, COUNT, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    trial_says(t, comm, "fails: regMr");
    if (t->rank != 1 && strncmp(rondo_last_error(comm), "rank 1 (", 8) != 0)
        test_fail(t, "the sentence does not begin with the rank: %s", rondo_last_error(comm));
    test_barrier(t);
    (void)rondo_comm_destroy(comm);
}

/* Of the plugin's two devices the second one is on the NUMA node of all ranks, and each is alone on its node. */
static void near(test_rank_t *t, void *arg)
{
    char log[64], text[4096] = "";

    test_play_node(t, RANKS);
    snprintf(log, sizeof log, "%s/log%d", (const char *)arg, t->rank);
    setenv("RONDO_NET_PLUGIN", "test9", 1);
    setenv("RONDO_DEBUG", "info", 1);
    setenv("RONDO_DEBUG_FILE", log, 1);
    rondo_comm_t comm = test_comm(t, &(rondo_config_t)RONDO_CONFIG_INIT);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    text_read(log, text, sizeof text);
    if (t->rank == 0 && !strstr(text, ", device 1\n"))
        test_fail(t, "not the near device: %s", text);
}

static void text_write(const char *folder, const char *name, const char *text)
{
    char path[96];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        exit(1);
}

static int near_run(void)
{
    char folder[] = "/tmp/rondo-plugins-XXXXXX", path[64], command[64], text[16];
    unsigned cpu, numa;
    cpu_set_t before, one;

    if (getcpu(&cpu, &numa) != 0 || sched_getaffinity(0, sizeof before, &before) != 0 || !mkdtemp(folder))
        return 1;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    for (int d = 0; d < 2; d++) {
        snprintf(path, sizeof path, "%s/%d", folder, d);
        mkdir(path, 0700);
        snprintf(text, sizeof text, "%u\n", numa + 1 - (unsigned)d);
        text_write(path, "numa_node", text);
    }
    setenv("TEST_NET_FOLDER", folder, 1);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        return 1;
    int bad = test_run(TEST_PROCESSES, RANKS, 20, near, folder);
    unsetenv("TEST_NET_FOLDER");
    (void)sched_setaffinity(0, sizeof before, &before);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return bad + (system(command) != 0);
}

int main(int argc, char **argv)
{
    const rondo_result_t good = RONDO_SUCCESS, no = RONDO_ERR_UNSUPPORTED, remote = RONDO_ERR_REMOTE,
                         system = RONDO_ERR_SYSTEM, late = RONDO_ERR_TIMEOUT;
    char folder[TRIAL_FOLDER], path[TRIAL_FOLDER + 100];
    int bad = 0;

    (void)argc;
    trial_start(folder, argv);
    snprintf(path, sizeof path, "%s/libnccl-net-test9.so", folder);
    const trial_t trials[] = {
        {"test8", NULL, "drained", 7, NULL, good, good, "", ""},
        {path, NULL, "lazy", 2, NULL, good, good, "", ""},
        {NULL, "test10", "strict,drained", 7, NULL, good, good, "", ""},
        {"nosuch,test11", NULL, "strict", 7, "test1", good, good, "", ""},
        {"test8,test9", NULL, "empty8", 7, NULL, good, good, "", ""},
        {"test11", "nosuch", "plain", 7, NULL, good, good, "", ""},
        {"nosuch", NULL, NULL, 7, NULL, no, good, "the net plugin nosuch cannot be loaded", ""},
        {"none", NULL, NULL, 7, NULL, no, good, "there is to be none", ""},
        {NULL, NULL, NULL, 7, NULL, no, good, "libnccl-net.so", ""},
        {"libc.so.6", NULL, NULL, 7, NULL, no, good, "none of ncclNetPlugin_v8 to ncclNetPlugin_v11", ""},
        {"lacking", NULL, NULL, 7, NULL, no, good, "ncclNetPlugin_v10 of lacking lacks a function", ""},
        {"test8", NULL, "empty", 7, NULL, no, good, "finds no device", ""},
        {"test8", NULL, "refuse", 1, NULL, no, remote, "init: internal error (3)", "init: internal error (3)"},
        {"test11", NULL, "refuse", 4, NULL, no, remote, "init: internal error (3)", "init: internal error (3)"},
        {"test8", NULL, "plain", 7, "eth0", RONDO_ERR_INVALID_ARGUMENT, good, "has no device of that name", ""},
        {"test9", NULL, "renamed", 2, NULL, RONDO_ERR_INVALID_USAGE, RONDO_ERR_INVALID_USAGE, "rank 1 (",
         "has another: let RONDO_NET_PLUGIN name the same"},
        {"test9", NULL, "fail=listen/2", 2, NULL, system, remote, "listen: system error (2)", "rank 1 ("},
        {"test9", NULL, "fail=connect/3", 2, NULL, remote, remote, "connect: system error (2)", ""},
        {"test9", NULL, "fail=accept/2", 2, NULL, remote, remote, "accept: system error (2)", ""},
        {"test9", NULL, "fail=reg/2", 2, NULL, system, remote, "regMr", ""},
        {"test9", NULL, "fail=recv/5", 2, NULL, remote, remote, "irecv: system error (2)", ""},
        {"test9", NULL, "fail=send/1", 2, NULL, remote, remote, "isend: system error (2)", ""},
        {"test10", NULL, "never", 7, NULL, late, good, "was not connected by the net plugin test within 2000 ms", ""},
    };

    test_begin("netplugin_plugins", 120);
    unsetenv("RONDO_NET_PLUGIN");
    unsetenv("NCCL_NET_PLUGIN");
    unsetenv("RONDO_NET");
    unsetenv("TEST_NET");
    setenv("RONDO_TRANSPORT", "plugin", 1);
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        int wrong = test_run(TEST_PROCESSES, RANKS, 20, body, (void *)(uintptr_t)&trials[i]);
        if (wrong)
            printf("plugins: trial %zu went wrong\n", i);
        bad += wrong;
    }
    trial_t shared = {"test11", NULL, "plain", 15, "test1", good, good, "", ""}; /* two ranks on each of two nodes */
    bad += test_run(TEST_PROCESSES, 4, 20, body, &shared);
    shared.net = "test1,test0,test1";
    bad += test_run(TEST_PROCESSES, 4, 20, body, &shared);
    const char *const later[] = {"fail=test/1", "fail=send/7", "fail=recv/20", "fail=test/500",
                                 "fail=size/1", "fail=size/2", "fail=size/9",  "fail=longer/1"};
    const char *const credits[] = {"fail=size/1", "fail=longer/1", "fail=longer/3"};
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        bad += test_run(TEST_PROCESSES, RANKS, 20, fail_later, (void *)(uintptr_t)later[i]);
    for (size_t i = 0; i < sizeof credits / sizeof credits[0]; i++)
        bad += test_run(TEST_PROCESSES, 2, 20, fail_credited, (void *)(uintptr_t)credits[i]);
    for (int nodes = 2; nodes <= RANKS; nodes++)
        bad += test_run(TEST_PROCESSES, RANKS, 20, fail_alone, &nodes);
    bad += near_run();
    return bad != 0;
}
