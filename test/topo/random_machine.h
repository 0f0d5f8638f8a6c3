/* Machines by the dice: GPUs in a tree of switches on one or two sockets, with some NVLinks, which may lack in one
 * direction, perhaps an NVSwitch, and one or two ports of network devices. */
#ifndef TEST_TOPO_RANDOM_MACHINE_H
#define TEST_TOPO_RANDOM_MACHINE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/graph.h"

static uint64_t state;

static int below(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

/* Says the seed, which TEST_SEED sets. */
static void random_begin(uint64_t seed)
{
    const char *given = getenv("TEST_SEED");

    state = given ? strtoull(given, NULL, 0) : seed;
    printf("seed %llu\n", (unsigned long long)state);
}

static void random_port(rd_graph_t *g, int above, const char *name)
{
    int nic = rd_graph_add(g, RD_GRAPH_NIC, ""), net = rd_graph_add(g, RD_GRAPH_NET, name);

    rd_graph_join(g, nic, net, RD_WAY_LOC, 5 + below(40));
    rd_graph_join(g, net, nic, RD_WAY_LOC, 5 + below(40));
    rd_graph_join(g, nic, above, RD_WAY_PIX, 6 + below(20));
    rd_graph_join(g, above, nic, RD_WAY_PIX, 6 + below(20));
}

static void random_machine(rd_graph_t *g, int n)
{
    int cpu[2], sw[3], gpu[8], nvs = below(4) == 0 ? rd_graph_add(g, RD_GRAPH_NVS, "") : -1;
    char name[32];

    for (int i = 0; i < 2; i++)
        cpu[i] = rd_graph_add(g, RD_GRAPH_CPU, "");
    for (int i = 0; i < 2; i++)
        rd_graph_join(g, cpu[i], cpu[!i], RD_WAY_SYS, 4 + below(20));
    for (int i = 0; i < 3; i++) {
        int above = i > 0 && below(2) ? sw[i - 1] : cpu[below(2)];
        sw[i] = rd_graph_add(g, RD_GRAPH_PCI, "");
        rd_graph_join(g, sw[i], above, i > 0 && above == sw[i - 1] ? RD_WAY_PXB : RD_WAY_PHB, 6 + below(20));
        rd_graph_join(g, above, sw[i], i > 0 && above == sw[i - 1] ? RD_WAY_PXB : RD_WAY_PHB, 6 + below(20));
    }
    for (int i = 0; i < n; i++) {
        int place = below(5), above = place < 3 ? sw[place] : cpu[place - 3];
        snprintf(name, sizeof name, "0000:%02x:00.0", i);
        gpu[i] = rd_graph_add(g, RD_GRAPH_GPU, name);
        rd_graph_join(g, gpu[i], above, place < 3 ? RD_WAY_PIX : RD_WAY_PHB, 6 + below(20));
        rd_graph_join(g, above, gpu[i], place < 3 ? RD_WAY_PIX : RD_WAY_PHB, 6 + below(20));
        for (int k = 0; k < i; k++)
            for (int turn = 0; turn < 2; turn++)
                if (below(3) == 0)
                    rd_graph_join(g, gpu[turn ? i : k], gpu[turn ? k : i], RD_WAY_NVL, 20 * (1 + below(3)));
        if (nvs >= 0 && below(4)) {
            rd_graph_join(g, gpu[i], nvs, RD_WAY_NVL, 100 + below(200));
            rd_graph_join(g, nvs, gpu[i], RD_WAY_NVL, 100 + below(200));
        }
    }
    random_port(g, sw[below(3)], "port");
    if (below(2))
        random_port(g, sw[below(3)], "second");
    if (rd_graph_finish(g) != RONDO_SUCCESS)
        exit(1);
}

#endif
