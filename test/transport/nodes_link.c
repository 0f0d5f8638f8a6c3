/* Two hosts on two networks, played by network namespaces, and what happens to a cable.
 *
 *   rails    RONDO_NET names both: the ranks of a host take them in turn, and both are used
 *   lossy    one packet in twenty is lost: everything comes out right, nobody is called dead
 *   down     the interface of one host goes down; the other one hears nothing more
 *   gone     the interface is taken out
 *   silent   every packet is dropped: nothing is closed anywhere
 *
 * After the last three every rank's call ends with RONDO_ERR_REMOTE and a sentence that names a rank of the other host,
 * or, where only one direction is cut, says that the others have lost this rank;
 * none hangs, nothing is left behind. How long it took is printed and not judged. Needs root, `ip`, and for two of them
 * `nft`. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"
#include "util/hosts.h"

#define RANKS 4
#define MOST 20000
#define LONG 400000

typedef struct trial {
    const char *name;
    const char *before, *damage; /* commands on the second host, or NULL */
    int operations;              /* until the damage is done; without damage, in all */
    const char *net;             /* RONDO_NET; NULL: not set */
} trial_t;

static rondo_result_t operate(rondo_comm_t comm, int k, int rank)
{
    static int32_t in[LONG], out[LONG];
    size_t count = (size_t)(k % 3 == 0 ? 1 : k % 3 == 1 ? 700 : k % 6 == 2 ? MOST : LONG);
    for (size_t i = 0; i < count; i++)
        in[i] = (int32_t)i + rank + k;
    rondo_result_t result = rondo_allreduce(in, out, count, RONDO_INT32, RONDO_SUM, comm, NULL);
    for (size_t i = 0; i < count && result == RONDO_SUCCESS; i++)
        if (out[i] != RANKS * ((int32_t)i + k) + RANKS * (RANKS - 1) / 2)
            return RONDO_ERR_INTERNAL;
    return result;
}

/* Bytes that this host has sent over the device. */
static long sent_over(const char *device)
{
    char line[512];
    long sent = -1, skip;
    FILE *f = fopen("/proc/self/net/dev", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *at = strstr(line, device);
        if (at && at[strlen(device)] == ':')
            sscanf(at + strlen(device) + 1, "%ld %ld %ld %ld %ld %ld %ld %ld %ld", &skip, &skip, &skip, &skip, &skip,
                   &skip, &skip, &skip, &sent);
    }
    if (f)
        fclose(f);
    return sent;
}

/* Goes on until it fails. */
static void suffer(test_rank_t *t, rondo_comm_t comm, const trial_t *trial)
{
    char name[24];
    int named = 0;
    rondo_result_t result = RONDO_SUCCESS;
    test_barrier(t); /* nobody is in the last operation before */
    if (t->rank == 0 && hosts_command(1, trial->damage) != 0)
        test_stop(t, "%s: the damage cannot be done", trial->name);
    int64_t began = test_clock_us();
    for (int k = 0; result == RONDO_SUCCESS; k++) {
        test_note(t, "%s: operation %d after the damage", trial->name, k);
        result = operate(comm, k, t->rank);
    }
    printf("nodes_link: %s: rank %d: %s after %.1f s: %s\n", trial->name, t->rank, rondo_result_string(result),
           (double)(test_clock_us() - began) / 1e6, rondo_last_error(comm));
    TEST_TRUE(t, result == RONDO_ERR_REMOTE);
    for (int r = 0; r < RANKS; r++) {
        snprintf(name, sizeof name, "rank %d ", r);
        named |= r % 2 != t->rank % 2 && strstr(rondo_last_error(comm), name) != NULL;
    }
    named |= strstr(rondo_last_error(comm), "that this rank") != NULL; /* "silent" cuts one direction alone */
    TEST_TRUE(t, named);
    test_barrier(t); /* who sees this one's process end first would blame it, and rightly */
    TEST_OK(t, NULL, rondo_comm_abort(comm));
}

static void body(test_rank_t *t, void *arg)
{
    const trial_t *trial = arg;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id;
    rondo_comm_t comm = NULL;
    int threads = test_count_entries("/proc/self/task");

    config.device = RONDO_DEVICE_HOST;
    setenv("RONDO_IFACE", "eth0", 1);
    if (trial->net)
        setenv("RONDO_NET", trial->net, 1);
    if (hosts_enter(t->rank % 2) != 0)
        test_stop(t, "cannot go to the host");
    test_id(t, &id);
    rondo_result_t made = rondo_comm_create(&comm, t->nranks, &id, t->rank, &config);
    if (trial->net && made == RONDO_ERR_REMOTE) { /* UCX 1.22 calls the other cable's network unreachable */
        printf("nodes_link: %s: left out: %s\n", trial->name, rondo_last_error(NULL));
        return;
    }
    if (!TEST_OK(t, NULL, made))
        return;
    for (int k = 0; k < trial->operations; k++) {
        test_note(t, "%s: operation %d", trial->name, k);
        if (!TEST_OK(t, comm, operate(comm, k, t->rank)))
            return;
    }
    if (trial->net) {
        printf("nodes_link: %s: rank %d: %ld bytes over eth0, %ld over eth1\n", trial->name, t->rank, sent_over("eth0"),
               sent_over("eth1"));
        TEST_TRUE(t, sent_over("eth1") > 100000);
    }
    if (trial->damage)
        suffer(t, comm, trial);
    else
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    /* A thread that was joined stays in /proc until the kernel has ended it. */
    for (int i = 0; i < 500 && test_count_entries("/proc/self/task") > threads; i++)
        usleep(10000);
    TEST_TRUE(t, test_count_entries("/proc/self/task") <= threads);
}

static int run(const trial_t *trial)
{
    int bad;
    if (hosts_make(2) != 0)
        return -1;
    if (trial->before && hosts_command(1, trial->before) != 0) {
        printf("nodes_link: %s: left out: nft cannot do it here\n", trial->name);
        hosts_remove();
        return 0;
    }
    bad = test_run(TEST_PROCESSES, RANKS, 40, body, (void *)trial);
    hosts_remove();
    return bad;
}

int main(int argc, char **argv)
{
#define NFT "nft '"
#define HOOK "add table ip t; add chain ip t in { type filter hook input priority 0 ; }; "
    static const trial_t trials[] = {
        {"rails", NULL, NULL, 12, "eth0,eth1"},
        {"lossy", NFT HOOK "add rule ip t in iifname eth0 numgen random mod 100 < 5 drop'", NULL, 60, NULL},
        {"down", NULL, "ip link set eth0 down", 20, NULL},
        {"gone", NULL, "ip link del eth0", 20, NULL},
        {"silent", NFT HOOK "'", NFT "add rule ip t in iifname eth0 drop'", 20, NULL},
    };
    int bad = 0;

    (void)argc;
    if (!getenv("UCX_LOG_LEVEL")) { /* it says of each lost peer that it is lost, and asks when it is loaded */
        setenv("UCX_LOG_LEVEL", "fatal", 1);
        execv("/proc/self/exe", argv);
    }
    test_begin("nodes_link", 170);
    if (hosts_make(2) != 0) {
        printf("nodes_link: skipped: needs root and network namespaces\n");
        return TEST_SKIPPED;
    }
    hosts_remove();
    for (int i = 0; i < (int)(sizeof trials / sizeof trials[0]) && bad == 0; i++)
        bad = run(&trials[i]);
    return bad != 0;
}
