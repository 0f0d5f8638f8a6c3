/* rondo-info topo: the rings that the search finds between the GPUs, on this machine and by each port of a network
 * device, with what they carry; and the machine as NCCL's XML. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "info.h"
#include "topo/search.h"

#define PORTS 8 /* rings by that many ports are shown */

static void ring_print(const rd_graph_t *graph, const rd_tour_t *ring)
{
    if (ring->net >= 0 && graph->node[ring->net].rail >= 0)
        printf("  by %s, rail %d:", graph->node[ring->net].name, graph->node[ring->net].rail);
    else if (ring->net >= 0)
        printf("  by %s:", graph->node[ring->net].name);
    else
        printf("  closed here:");
    for (int i = 0; i < ring->n; i++)
        printf(" %d", graph->node[ring->gpu[i]].number);
    if (ring->gbps > 0)
        printf("; %.1f GB/s, at worst %s%s\n", ring->gbps, rd_way_name(ring->worst),
               ring->best ? "" : ", the best of what was tried");
    else
        printf("; %s\n", ring->best ? "no ring: not all of these reach each other" : "no ring was found");
}

static int ring_show(const rd_graph_t *graph, int net)
{
    rd_tour_t ring;

    if (rd_tour_search(&ring, graph, graph->gpu, graph->ngpus, net) != RONDO_SUCCESS)
        return 1;
    ring_print(graph, &ring);
    rd_tour_free(&ring);
    return 0;
}

int info_rings(const rd_graph_t *graph)
{
    if (graph->ngpus < 2)
        return 0;
    printf("\nrings, as the search finds them (by the rates that NCCL reckons with)\n");
    for (int i = -1; i < graph->nnets && i < PORTS; i++)
        if (ring_show(graph, i < 0 ? -1 : graph->net[i]) != 0)
            return 1;
    if (graph->nnets > PORTS)
        printf("  and by %d more ports\n", graph->nnets - PORTS);
    return 0;
}

/* A machine that is too large for a matrix. */
int info_large(const rd_graph_t *graph, const rd_env_t *env)
{
    int hosts = 0;

    for (int i = 0; i < graph->nnodes; i++)
        hosts = graph->node[i].host >= hosts ? graph->node[i].host + 1 : hosts;
    printf("%d GPUs and %d ports of network devices on %d machine%s   [recorded in %s]\n", graph->ngpus, graph->nnets,
           hosts, hosts == 1 ? "" : "s", env->topo_file);
    return info_rings(graph);
}

int info_xml(const rd_env_t *env, const char *name)
{
    rd_xml_t *system;
    FILE *file;
    int bad;

    if (rd_graph_xml(&system, env->topo_file, "RONDO_TOPO_FILE") != RONDO_SUCCESS)
        return 1;
    if (!(file = fopen(name, "w"))) {
        fprintf(stderr, "rondo-info topo: %s: %s\n", name, strerror(errno));
        rd_xml_free(system);
        return 1;
    }
    rd_xml_write(system, file);
    rd_xml_free(system);
    bad = ferror(file);
    if (fclose(file) == 0 && !bad)
        return 0;
    fprintf(stderr, "rondo-info topo: %s cannot be written\n", name);
    return 1;
}
