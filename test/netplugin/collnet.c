/* CollNet plugins of NCCL's, by a software switch (switch_plugin.c): what comes out on two and three played nodes by
 * each of the two algorithms, of every operation, for several types, operators and lengths, alone and in groups; that
 * the switch was used for it, and only where it serves; and what is said where there is none, where it fails, and where
 * a rank dies. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netplugin/trial.h"
#include "util/operation.h"

#define COUNT 100000

typedef struct trial {
    const char *plugin; /* RONDO_NET_PLUGIN */
    const char *how;    /* TEST_SWITCH, of these ranks: */
    unsigned here;
    const char *wanted; /* RONDO_COLLNET */
    rondo_result_t own, others;
    const char *says_own, *says_others;
    int sums; /* whether the switch adds float32 in the end: by its price it is chosen on three nodes */
} trial_t;

typedef struct layout {
    int nodes, ranks;
    const char *vectors, *blocks; /* the algorithms that are named; "": none is */
    const char *plugin, *how;
} layout_t;

/* What a rank does until it gets an error. */
typedef struct until {
    do_what_t what;
    const char *algo, *how;
    unsigned victims;
} until_t;

static long counted(const char *plugin, const char *name)
{
    char file[64];

    snprintf(file, sizeof file, "libnccl-net-%s.so", plugin);
    void *library = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    const long *count = library ? dlsym(library, name) : NULL;
    return count ? *count : 0;
}

static long sums(const char *plugin)
{
    return counted(plugin, "test_switch_sums");
}

static long blocks(const char *plugin)
{
    return counted(plugin, "test_switch_blocks");
}

static bool in_blocks(do_what_t what)
{
    return what == DO_ALLGATHER || what == DO_REDUCE_SCATTER;
}

/* ---- what comes out */

static void run_case(test_rank_t *t, rondo_comm_t comm, const do_case_t *c)
{
    char text[200], wrong[256];
    do_call_t call;

    do_text(c, text, sizeof text);
    test_note(t, "%s", text);
    if (do_prepare(&call, c, t->rank, t->nranks) != 0)
        test_stop(t, "no memory");
    if (test_result(t, comm, do_post(&call, comm), RONDO_SUCCESS, text) &&
        do_verify(&call, 1, wrong, sizeof wrong) != 0)
        test_fail(t, "%s", wrong);
    test_agree(t, do_hash(&call), text);
    do_release(&call);
}

static const do_what_t served[] = {DO_ALLREDUCE, DO_REDUCE, DO_BROADCAST, DO_ALLGATHER, DO_REDUCE_SCATTER};

/* Several operations that are under way together, of which each has other values. */
static void run_group(test_rank_t *t, rondo_comm_t comm)
{
    static const size_t counts[] = {3, 40001, 1, 0, 15361};
    do_call_t calls[6];
    char wrong[256];

    test_note(t, "a group");
    for (int i = 0; i < 6; i++) {
        const do_case_t c = {.what = i == 5 ? DO_SHIFT : served[i],
                             .type = i % 2 ? RONDO_FLOAT64 : RONDO_INT32,
                             .op = i == 2 ? RONDO_MAX : RONDO_SUM,
                             .count = i == 5 ? 1000 : counts[i],
                             .root = i == 5,
                             .seed = 70u + (unsigned)i};
        if (do_prepare(&calls[i], &c, t->rank, t->nranks) != 0)
            test_stop(t, "no memory");
    }
    TEST_OK(t, comm, rondo_group_start());
    for (int i = 0; i < 6; i++)
        TEST_OK(t, comm, do_post(&calls[i], comm));
    TEST_OK(t, comm, rondo_group_end());
    for (int i = 0; i < 6; i++) {
        if (do_verify(&calls[i], 1, wrong, sizeof wrong) != 0)
            test_fail(t, "in a group: %s", wrong);
        do_release(&calls[i]);
    }
}

/* One case, which a head takes to the switch, by an allgather or reduce_scatter of its own where the plugin has them.
 */
static void run_switched(test_rank_t *t, rondo_comm_t comm, const layout_t *l, const do_case_t *c)
{
    const int local = t->rank / l->nodes;
    const char *algo = in_blocks(c->what) ? l->blocks : l->vectors;
    const bool is_head = local == 0 || (strstr(algo, "direct") && local < t->nranks / l->nodes);
    const bool whole = local == 0 || in_blocks(c->what) || c->count >= 1000; /* a short vector has parts without data */
    const bool own = in_blocks(c->what) && !strstr(l->how, "adds");
    const long before = sums(l->plugin), before_blocks = blocks(l->plugin);

    run_case(t, comm, c);
    if (sums(l->plugin) > before ? !is_head || c->count == 0 : is_head && c->count > 0 && whole)
        test_fail(t, "%s of %zu: the switch has answered %ld times", do_name(c->what), c->count,
                  sums(l->plugin) - before);
    if ((blocks(l->plugin) > before_blocks) != (is_head && own && c->count > 0))
        test_fail(t, "%s of %zu: the switch has answered %ld times by blocks", do_name(c->what), c->count,
                  blocks(l->plugin) - before_blocks);
}

static void walk(test_rank_t *t, rondo_comm_t comm, const layout_t *l)
{
    static const rondo_type_t types[] = {RONDO_FLOAT32, RONDO_INT8,    RONDO_INT32,
                                         RONDO_UINT64,  RONDO_FLOAT64, RONDO_BFLOAT16};
    static const rondo_op_t ops[] = {RONDO_SUM, RONDO_PROD, RONDO_MIN, RONDO_MAX, RONDO_AVG};
    static const size_t counts[] = {0, 1, 17, 1000, 15359, 15360, 15361, 40001, 262144};
    uint64_t seed = 1;

    for (int what = 0; what < 5; what++)
        for (int type = 0; type < 6; type++)
            for (int op = 0; op < 5; op++)
                for (int k = 0; k < 9; k++) {
                    const do_case_t c = {.what = served[what],
                                         .type = types[type],
                                         .op = ops[op],
                                         .count = in_blocks(served[what]) && k == 8 ? 70000 : counts[k],
                                         .root = do_rooted(served[what]) ? (int)(seed % (unsigned)t->nranks) : 0,
                                         .in_place = (int)(seed % 2),
                                         .send_shift = k == 3 ? 1 : 0,
                                         .seed = seed++};
                    if ((type + op + k) % (what == 0 ? 7 : 13) == what && *(in_blocks(c.what) ? l->blocks : l->vectors))
                        run_switched(t, comm, l, &c);
                }
}

/* Those that it does not add go another way, and so do the others' operations, and blocks of several lengths. */
static void others(test_rank_t *t, rondo_comm_t comm, const char *plugin)
{
    long before = sums(plugin);

    for (int what = 0; what < DO_NUM; what++) {
        const do_case_t c = {.what = (do_what_t)what,
                             .type = RONDO_INT16,
                             .op = RONDO_SUM,
                             .count = 3001,
                             .skew = do_has_counts((do_what_t)what) ? 3 : 0,
                             .seed = 5};
        if (c.what != DO_BROADCAST && c.what != DO_ALLGATHER)
            run_case(t, comm, &c);
    }
    const do_case_t half = {.what = DO_ALLREDUCE, .type = RONDO_FLOAT16, .op = RONDO_SUM, .count = 999, .seed = 6};
    run_case(t, comm, &half);
    const do_case_t bits = {.what = DO_ALLREDUCE, .type = RONDO_INT32, .op = RONDO_BXOR, .count = 999, .seed = 7};
    run_case(t, comm, &bits);
    TEST_TRUE(t, sums(plugin) == before);
}

static void right(test_rank_t *t, void *arg)
{
    const layout_t *l = arg;
    char algo[300] = "";

    test_play_node(t, l->nodes);
    setenv("RONDO_COLLNET", "1", 1);
    setenv("RONDO_NET_PLUGIN", l->plugin, 1);
    setenv("TEST_SWITCH", l->how, 1);
    if (*l->vectors)
        snprintf(algo, sizeof algo, "allreduce=%s,reduce=%s,broadcast=%s", l->vectors, l->vectors, l->vectors);
    if (*l->blocks)
        snprintf(algo + strlen(algo), sizeof algo - strlen(algo), ",allgather=%s,reduce_scatter=%s", l->blocks,
                 l->blocks);
    if (*algo)
        setenv("RONDO_ALGO", algo, 1);
    rondo_comm_t comm = test_comm_gives(t, RONDO_SUCCESS, "");
    if (!comm)
        return;
    if (*algo)
        walk(t, comm, l);
    else
        others(t, comm, l->plugin);
    run_group(t, comm);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* ---- what is said */

static void body(test_rank_t *t, void *arg)
{
    const trial_t *trial = arg;
    bool own = trial->here >> t->rank & 1;
    static float in[COUNT], out[COUNT];

    test_play_node(t, t->nranks / 2);
    setenv("RONDO_NET_PLUGIN", trial->plugin, 1);
    setenv("RONDO_COLLNET", trial->wanted, 1);
    setenv("RONDO_CREATE_TIMEOUT_MS", "3000", 1);
    if (own && trial->how)
        setenv("TEST_SWITCH", trial->how, 1);
    rondo_comm_t comm =
        test_comm_gives(t, own ? trial->own : trial->others, own ? trial->says_own : trial->says_others);
    if (!comm)
        return;
    trial_sum(t, comm, in, out, COUNT);
    if ((sums(trial->plugin) > 0) != (trial->sums != 0))
        test_fail(t, "the switch has added %ld times", sums(trial->plugin));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

static rondo_result_t call(do_what_t what, int nranks, rondo_comm_t comm)
{
    static float in[COUNT], out[COUNT];
    const size_t each = COUNT / (size_t)nranks;

    switch (what) {
    case DO_REDUCE:
        return rondo_reduce(in, out, COUNT, RONDO_FLOAT32, RONDO_SUM, 0, comm, NULL);
    case DO_BROADCAST:
        return rondo_broadcast(in, out, COUNT, RONDO_FLOAT32, 0, comm, NULL);
    case DO_ALLGATHER:
        return rondo_allgather(in, out, each, RONDO_FLOAT32, comm, NULL);
    case DO_REDUCE_SCATTER:
        return rondo_reduce_scatter(in, out, each, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    default:
        return rondo_allreduce(in, out, COUNT, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    }
}

static void name_algo(const until_t *u)
{
    char text[100];

    snprintf(text, sizeof text, "%s=%s", do_name(u->what), u->algo);
    setenv("RONDO_ALGO", text, 1);
}

/* One that fails in the middle: every rank gets an error, from the call or from the next one. */
static void fail_later(test_rank_t *t, void *arg)
{
    const until_t *u = arg;
    rondo_result_t result = RONDO_SUCCESS;

    test_play_node(t, 2);
    setenv("RONDO_NET_PLUGIN", "switch11", 1);
    setenv("RONDO_COLLNET", "1", 1);
    name_algo(u);
    rondo_comm_t comm = test_comm(t, &(rondo_config_t)RONDO_CONFIG_INIT);
    test_barrier(t); /* all are through with the creation */
    if (t->rank == 1)
        setenv("TEST_SWITCH", u->how, 1);
    while (result == RONDO_SUCCESS)
        result = call(u->what, t->nranks, comm);
    (void)test_result(t, comm, result, t->rank == 1 ? RONDO_ERR_SYSTEM : RONDO_ERR_REMOTE,
                      "an operation with a plugin that fails");
    trial_says(t, comm, t->rank == 1 ? "the CollNet plugin switch" : "rank 1 (");
    (void)rondo_comm_destroy(comm);
}

/* A rank dies, or is gone: a head, or one that is none. */
static void die(test_rank_t *t, void *arg)
{
    const until_t *u = arg;
    rondo_result_t result = RONDO_SUCCESS;
    char word[32];

    test_play_node(t, 2);
    setenv("RONDO_NET_PLUGIN", "switch11", 1);
    setenv("RONDO_COLLNET", "1", 1);
    setenv("TEST_SWITCH", u->how, 1);
    name_algo(u);
    rondo_comm_t comm = test_comm(t, &(rondo_config_t)RONDO_CONFIG_INIT);
    test_barrier(t); /* all are through with the creation */
    for (int i = 0; result == RONDO_SUCCESS; i++) {
        if (i == 20 && u->victims >> t->rank & 1)
            raise(SIGKILL);
        result = call(u->what, t->nranks, comm);
    }
    (void)test_result(t, comm, result, RONDO_ERR_REMOTE, "an operation without a rank that has died");
    snprintf(word, sizeof word, "rank %d (", __builtin_ctz(u->victims));
    trial_says(t, comm, word);
    (void)rondo_comm_destroy(comm);
}

/* A rank that does not come: the call ends when the time is over, and says for whom it has waited. */
static void late(test_rank_t *t, void *arg)
{
    static float in[COUNT], out[COUNT];
    rondo_config_t config = test_host_config();

    (void)arg;
    test_play_node(t, 2);
    setenv("RONDO_NET_PLUGIN", "switch11", 1);
    setenv("RONDO_COLLNET", "1", 1);
    setenv("RONDO_ALGO", "allreduce=collnet_chain", 1);
    config.timeout_ms = 3000; /* a rank that waits and has no core for half of that is late */
    rondo_comm_t comm = test_comm(t, &config);
    if (t->rank == 1) {
        rondo_result_t error = RONDO_SUCCESS;
        while (rondo_comm_get_error(comm, &error) == RONDO_SUCCESS && error == RONDO_SUCCESS)
            usleep(1000);
    } else {
        TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT, rondo_allreduce(in, out, COUNT, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
        trial_says(t, comm, "rank 1 (");
    }
    (void)rondo_comm_destroy(comm);
}

static int is_victim_run(int ranks, const until_t *u)
{
    test_director_t d = {.victims = u->victims};

    return test_run_directed(&d, ranks, 30, die, (void *)(uintptr_t)u);
}

static int layouts_run(void)
{
    const layout_t layouts[] = {
        {2, 4, "collnet_chain", "", "switch11", "plain"},
        {2, 4, "collnet_direct", "collnet_direct", "switch8", "lazy"},
        {3, 3, "collnet_chain", "collnet_direct", "switch9", "narrow"},
        {3, 7, "collnet_direct", "", "switch10", "lazy,narrow"},
        {3, 6, "collnet_chain", "collnet_direct", "switch11", "adds,lazy"},
        {2, 2, "collnet_chain", "collnet_direct", "switch8", "adds"},
        {2, 4, "", "", "switch11", "plain"},
    };
    int bad = 0;

    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        int wrong = test_run(TEST_PROCESSES, layouts[i].ranks, 120, right, (void *)(uintptr_t)&layouts[i]);
        if (wrong)
            printf("collnet: layout %zu went wrong\n", i);
        bad += wrong;
    }
    return bad;
}

int main(int argc, char **argv)
{
    const rondo_result_t good = RONDO_SUCCESS, no = RONDO_ERR_UNSUPPORTED, remote = RONDO_ERR_REMOTE,
                         system = RONDO_ERR_SYSTEM, late_result = RONDO_ERR_TIMEOUT;
    char folder[TRIAL_FOLDER];
    int bad = 0;

    (void)argc;
    trial_start(folder, argv);
    const trial_t trials[] = {
        {"switch11", "plain", 63, "1", good, good, "", "", 1},
        {"switch8", "plain", 63, "-1", good, good, "", "", 1},
        {"switch11", "plain", 63, "0", good, good, "", "", 0},
        {"nosuch", NULL, 63, "-1", good, good, "", "", 0},
        {"nosuch", NULL, 63, "1", no, good, "the net plugin nosuch cannot be loaded", "", 0},
        {"libc.so.6", NULL, 63, "1", no, good, "none of ncclCollNetPlugin_v8 to _v11", "", 0},
        {"switch10", "empty", 4, "-1", good, good, "", "", 0},
        {"switch10", "empty", 4, "1", no, no, "has 0 devices here", "rank 2 (", 0},
        {"switch9", "refuse", 2, "1", no, no, "init: internal error (3)", "rank 1 (", 0},
        {"switch9", "device", 8, "-1", good, good, "", "", 0},
        {"switch11", "renamed", 2, "1", no, no, "rank 1 (", "it has the CollNet plugin another", 0},
        {"switch11", "liar", 1, "1", good, good, "", "", 0},
        {"switch11", "few", 1, "1", good, good, "", "", 1},
        {"switch11", "fail=listen/1", 2, "-1", good, good, "", "", 0},
        {"switch11", "fail=connect/1", 2, "1", system, remote, "connect: system error (2)", "rank 1 (", 0},
        {"switch11", "fail=reg/1", 1, "1", system, remote, "regMr", "rank 0 (", 0},
        {"switch11", "stuck", 63, "1", late_result, good, "did not connect the nodes within 3000 ms", "", 0},
        {"switch11", "fail=connect/1", 2, "-1", good, good, "", "", 0},
        {"switch10", "fail=reg/1", 1, "-1", good, good, "", "", 0},
        {"switch9", "stuck", 8, "-1", good, good, "", "", 0},
    };

    test_begin("netplugin_collnet", 400);
    unsetenv("NCCL_NET_PLUGIN");
    unsetenv("RONDO_ALGO");
    unsetenv("TEST_SWITCH");
    bad += layouts_run();
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        int wrong = test_run(TEST_PROCESSES, 6, 20, body, (void *)(uintptr_t)&trials[i]);
        if (wrong)
            printf("collnet: trial %zu went wrong\n", i);
        bad += wrong;
    }
    const until_t later[] = {{DO_ALLREDUCE, "collnet_direct", "fail=test/1", 0},
                             {DO_ALLREDUCE, "collnet_direct", "fail=iallreduce/7", 0},
                             {DO_ALLREDUCE, "collnet_direct", "fail=test/50", 0},
                             {DO_ALLREDUCE, "collnet_direct", "long", 0},
                             {DO_REDUCE, "collnet_chain", "fail=iallreduce/3", 0},
                             {DO_BROADCAST, "collnet_direct", "fail=iallreduce/3", 0},
                             {DO_ALLGATHER, "collnet_direct", "fail=iallgather/3", 0},
                             {DO_ALLGATHER, "collnet_direct", "long", 0},
                             {DO_REDUCE_SCATTER, "collnet_direct", "fail=ireducescatter/3", 0},
                             {DO_REDUCE_SCATTER, "collnet_direct", "long", 0}};
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        bad += test_run(TEST_PROCESSES, 4, 20, fail_later, (void *)(uintptr_t)&later[i]);
    const until_t deaths[] = {
        {DO_ALLREDUCE, "collnet_chain", "plain", 2},    {DO_ALLREDUCE, "collnet_chain", "notices", 8},
        {DO_ALLREDUCE, "collnet_direct", "notices", 4}, {DO_ALLREDUCE, "collnet_direct", "lazy", 1},
        {DO_REDUCE, "collnet_chain", "plain", 8},       {DO_REDUCE, "collnet_direct", "lazy", 1},
        {DO_BROADCAST, "collnet_chain", "plain", 2},    {DO_BROADCAST, "collnet_direct", "plain", 8},
        {DO_ALLGATHER, "collnet_direct", "plain", 4},   {DO_REDUCE_SCATTER, "collnet_direct", "plain", 2},
    };
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++)
        bad += is_victim_run(4, &deaths[i]);
    bad += test_run(TEST_PROCESSES, 4, 20, late, NULL);
    return bad != 0;
}
