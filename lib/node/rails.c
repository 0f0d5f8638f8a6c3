/* Shares network devices among the ranks of a node: see rails.h. */
#include "node/rails.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo.h"

#define DEVICES_MOST 64

/* The NUMA node of a network device, whatever library calls it so: "mlx5_0:1", "eth0", "cxi0". */
static int device_numa(const char *sys, const char *name, size_t length)
{
    static const char *const classes[] = {"infiniband", "net", "cxi"};
    char path[256], text[32];

    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        snprintf(path, sizeof path, "%s/class/%s/%.*s/device/numa_node", sys, classes[i], (int)length, name);
        if (rd_topo_line(path, text, sizeof text) == 0)
            return atoi(text);
    }
    return -1;
}

/* Is device a the better one for a rank? Near ones before others, then those with fewer ranks, then the first. */
static bool is_better(int a, int b, const int *numa, const int *users, int here)
{
    bool near_a = here >= 0 && numa[a] == here, near_b = here >= 0 && numa[b] == here;

    return near_a != near_b ? near_a : users[a] < users[b];
}

int rd_node_share(const int *numa, int ndevices, const int *rank_numa, int nranks, int self)
{
    int users[DEVICES_MOST] = {0}, best = 0;
    int most = (nranks + ndevices - 1) / ndevices; /* ranks of a device */

    for (int r = 0; r <= self; r++) {
        best = -1;
        for (int d = 0; d < ndevices; d++)
            if (users[d] < most && (best < 0 || is_better(d, best, numa, users, rank_numa[r])))
                best = d;
        users[best]++;
    }
    return best;
}

int rd_node_rail(const rd_node_t *node, const char *list, const char *sys)
{
    int numa[DEVICES_MOST], n = 0;

    for (const char *c = list; *c && n < DEVICES_MOST; c += strcspn(c, ","), c += *c == ',')
        numa[n++] = device_numa(sys, c, strcspn(c, ":,"));
    if (n < 2 || !node->numa)
        return node->self;
    return rd_node_share(numa, n, node->numa, node->nlocal, node->self);
}
