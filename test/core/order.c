/* Ranks that alternate between NUMA nodes: the order of the communicator goes node by node and NUMA node by NUMA node,
 * the same on all ranks, and rings, chains and trees give the right results in it. With a rank that may run anywhere,
 * or with RONDO_ORDER=rank, all go by number; where ranks differ in that, none makes a communicator. A communicator
 * that moves the data of GPUs goes by where these are, whatever its ranks are bound to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/comm.h"
#include "util/harness.h"

#define RANKS 6
#define COUNT 1000

typedef struct trial {
    const char *name, *algo, *order;
    int hosts; /* ranks alternate between them; 1: all share a node; 0: and each moves the data of a GPU */
    struct {
        int16_t package, numa;
    } at[RANKS];     /* the places that ranks have */
    int want[RANKS]; /* the rank at each place */
    int by_number;
} trial_t;

static rd_locality_t own;

rd_locality_t rd_locality_here(void)
{
    return own;
}

static char sys[] = "/tmp/rondo-order-XXXXXX";

const char *rd_locality_sys(void)
{
    return sys;
}

static void file_write(const char *folder, const char *name, const char *text)
{
    char command[128], path[128];
    FILE *f;

    snprintf(command, sizeof command, "mkdir -p %s/%s", sys, folder);
    snprintf(path, sizeof path, "%s/%s/%s", sys, folder, name);
    if (system(command) != 0 || !(f = fopen(path, "w")) || fputs(text, f) < 0 || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

/* Two NUMA nodes, and a GPU for each rank: those with even addresses are on the second one. */
static void machine_write(void)
{
    file_write("devices/system/node", "online", "0-1\n");
    file_write("devices/system/node/node0", "cpulist", "0-3\n");
    file_write("devices/system/node/node1", "cpulist", "4-7\n");
    file_write("devices/system/cpu/cpu0/topology", "physical_package_id", "0\n");
    file_write("devices/system/cpu/cpu4/topology", "physical_package_id", "1\n");
    for (int r = 0; r < RANKS; r++) {
        char folder[64];

        snprintf(folder, sizeof folder, "bus/pci/devices/0000:%02x:00.0", 16 + r);
        file_write(folder, "numa_node", r % 2 ? "0\n" : "1\n");
    }
}

static rondo_comm_t comm_of_gpus(test_rank_t *t)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id;
    rondo_comm_t comm;
    char bus[16];

    snprintf(bus, sizeof bus, "0000:%02X:00.0", 16 + t->rank);
    config.device = RONDO_DEVICE_HOST;
    test_id(t, &id);
    if (rd_comm_make(&comm, t->nranks, &id, t->rank, &config, NULL, rd_pci_number(bus), NULL) != RONDO_SUCCESS)
        test_stop(t, "%s", rondo_last_error(NULL));
    return comm;
}

static void order_check(test_rank_t *t, const trial_t *trial, rondo_comm_t comm)
{
    const int *order = comm->node.order;

    if (trial->by_number && order)
        test_fail(t, "%s: the ranks have an order, from %d on", trial->name, order[0]);
    for (int i = 0; i < RANKS && !trial->by_number; i++)
        if (!order || order[i] != trial->want[i] || order[RANKS + trial->want[i]] != i)
            test_fail(t, "%s: at place %d is rank %d, not %d", trial->name, i, order ? order[i] : -1, trial->want[i]);
}

static void sums(test_rank_t *t, const trial_t *trial, rondo_comm_t comm)
{
    static int64_t in[RANKS * COUNT], out[RANKS * COUNT];

    for (int i = 0; i < RANKS * COUNT; i++)
        in[i] = i + 1000000 * t->rank;
    rondo_result_t result = rondo_allreduce(in, out, COUNT, RONDO_INT64, RONDO_SUM, comm, NULL);
    for (int i = 0; i < COUNT && result == RONDO_SUCCESS; i++)
        if (out[i] != (int64_t)RANKS * i + 1000000 * RANKS * (RANKS - 1) / 2) {
            test_fail(t, "%s: allreduce: element %d", trial->name, i);
            break;
        }
    for (int root = 0; root < RANKS && result == RONDO_SUCCESS; root++) {
        memcpy(out, in, COUNT * sizeof *in);
        result = rondo_broadcast(out, out, COUNT, RONDO_INT64, root, comm, NULL);
        if (result == RONDO_SUCCESS && (out[0] != 1000000 * root || out[COUNT - 1] != COUNT - 1 + 1000000 * root))
            test_fail(t, "%s: broadcast from %d", trial->name, root);
        if (result == RONDO_SUCCESS)
            result = rondo_reduce(in, out, COUNT, RONDO_INT64, RONDO_SUM, root, comm, NULL);
        if (result == RONDO_SUCCESS && t->rank == root && out[7] != RANKS * 7 + 1000000 * RANKS * (RANKS - 1) / 2)
            test_fail(t, "%s: reduce to %d", trial->name, root);
    }
    if (result == RONDO_SUCCESS && strcmp(trial->algo, "ring") == 0) {
        result = rondo_allgather(in, out, COUNT, RONDO_INT64, comm, NULL);
        for (int r = 0; r < RANKS && result == RONDO_SUCCESS; r++)
            if (out[r * COUNT + 3] != 3 + 1000000 * r)
                test_fail(t, "%s: allgather: block %d", trial->name, r);
        if (result == RONDO_SUCCESS)
            result = rondo_reduce_scatter(in, out, COUNT, RONDO_INT64, RONDO_SUM, comm, NULL);
        if (result == RONDO_SUCCESS &&
            out[5] != (int64_t)RANKS * (t->rank * COUNT + 5) + 1000000 * RANKS * (RANKS - 1) / 2)
            test_fail(t, "%s: reduce_scatter", trial->name);
    }
    if (result != RONDO_SUCCESS)
        test_stop(t, "%s: %s", trial->name, rondo_last_error(comm));
}

static void body(test_rank_t *t, void *arg)
{
    const trial_t *trial = arg;
    rondo_comm_t comm;

    own = (rd_locality_t){trial->at[t->rank].package, trial->at[t->rank].numa, 0};
    setenv("RONDO_ALGO", trial->algo, 1);
    setenv("RONDO_ORDER", trial->order, 1);
    comm = trial->hosts ? test_comm_on(t, trial->hosts) : comm_of_gpus(t);
    if (!comm)
        return; /* there is no transport between nodes */
    order_check(t, trial, comm);
    sums(t, trial, comm);
    if (rondo_comm_destroy(comm) != RONDO_SUCCESS)
        test_fail(t, "%s: destroy", trial->name);
}

static void differ(test_rank_t *t, void *arg)
{
    (void)arg;
    setenv("RONDO_ORDER", t->rank == 2 ? "rank" : "machine", 1);
    (void)test_comm_gives(t, RONDO_ERR_INVALID_USAGE, "RONDO_ORDER");
    test_sentence(t, "rank 2");
}

int main(void)
{
#define PLACES(a, b, c, d, e, f)                                                                                       \
    {                                                                                                                  \
        {0, a}, {0, b}, {0, c}, {0, d}, {0, e},                                                                        \
        {                                                                                                              \
            0, f                                                                                                       \
        }                                                                                                              \
    }
    static trial_t trials[] = {
        {"two NUMA nodes", "ring", "machine", 1, PLACES(0, 1, 0, 1, 0, 1), {0, 2, 4, 1, 3, 5}, 0},
        {"two NUMA nodes, trees", "tree", "machine", 1, PLACES(0, 1, 0, 1, 0, 1), {0, 2, 4, 1, 3, 5}, 0},
        {"uneven", "ring", "machine", 1, PLACES(3, 3, 0, 3, 1, 0), {2, 5, 4, 0, 1, 3}, 0},
        {"two nodes", "ring", "machine", 2, PLACES(1, 1, 0, 0, 1, 0), {2, 0, 4, 3, 5, 1}, 0},
        {"two nodes, trees", "tree", "machine", 2, PLACES(1, 1, 0, 0, 1, 0), {2, 0, 4, 3, 5, 1}, 0},
        {"in order as they are", "ring", "machine", 1, PLACES(0, 0, 0, 1, 1, 1), {0}, 1},
        {"one is anywhere", "ring", "machine", 1, {{0, 1}, {0, 0}, {-1, -1}, {0, 0}, {0, 1}, {0, 0}}, {0}, 1},
        {"by packages", "ring", "machine", 1, {{1, 1}, {0, -1}, {1, 3}, {0, 0}, {1, 1}, {0, 2}}, {1, 3, 5, 0, 2, 4}, 0},
        {"by number", "ring", "rank", 1, PLACES(0, 1, 0, 1, 0, 1), {0}, 1},
        {"by GPUs", "ring", "machine", 0, PLACES(0, 0, 0, 1, 1, 1), {1, 3, 5, 0, 2, 4}, 0},
        {"by GPUs, unbound", "tree", "machine", 0, {{-1, -1}, {0, 0}, {-1, -1}}, {1, 3, 5, 0, 2, 4}, 0},
    };
    char command[64];
    int failures = 0;

    test_begin("order", 120);
    if (!mkdtemp(sys))
        return 1;
    machine_write();
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++)
        failures += test_run(TEST_PROCESSES, RANKS, 60, body, &trials[i]);
    failures += test_run(TEST_PROCESSES, RANKS, 60, differ, NULL);
    snprintf(command, sizeof command, "rm -rf %s", sys);
    return failures != 0 || system(command) != 0;
}
