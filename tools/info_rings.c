/* rondo-info topo: the rings that the search finds between the GPUs, on this machine and by each port of a network
 * device, with what they carry, and the one of RONDO_GRAPH_FILE; what several rings, and trees, carry at once; and the
 * machine and its ring as NCCL's XML. */
#include <stdio.h>
#include <stdlib.h>

#include "info.h"
#include "topo/pack.h"
#include "topo/ring_file.h"
#include "topo/topo_write.h"

#define PORTS 8 /* rings by that many ports are shown, */
#define SHOWN 8 /* and as many that go at once */

static void ring_print(const rd_graph_t *graph, const rd_tour_t *ring, bool given)
{
    if (given)
        printf("  RONDO_GRAPH_FILE:");
    else if (ring->net >= 0 && graph->node[ring->net].rail >= 0)
        printf("  by %s, rail %d:", graph->node[ring->net].name, graph->node[ring->net].rail);
    else if (ring->net >= 0)
        printf("  by %s:", graph->node[ring->net].name);
    else
        printf("  closed here:");
    for (int i = 0; i < ring->n; i++)
        printf(" %d", graph->node[ring->gpu[i]].number);
    if (ring->gbps > 0)
        printf("; %.1f GB/s, at worst %s%s\n", ring->gbps, rd_way_name(ring->worst),
               ring->best || given ? "" : ", the best of what was tried");
    else
        printf("; %s\n", ring->best || given ? "no ring: not all of these reach each other" : "no ring was found");
}

static int ring_show(const rd_graph_t *graph, int net)
{
    rd_tour_t ring;

    if (rd_tour_search(&ring, graph, graph->gpu, graph->ngpus, net) != RONDO_SUCCESS)
        return 1;
    ring_print(graph, &ring, false);
    rd_tour_free(&ring);
    return 0;
}

/* The ring of RONDO_GRAPH_FILE among all GPUs of the graph. */
static rondo_result_t given_get(rd_tour_t *ring, const rd_graph_t *graph, const rd_env_t *env)
{
    int *numbers = malloc(3 * (size_t)graph->ngpus * sizeof *numbers), *order = numbers + graph->ngpus;
    int *gpu = order + graph->ngpus;
    rd_ring_read_t read = {0};
    rondo_result_t result = numbers ? rd_ring_read(&read, env->graph_file, "RONDO_GRAPH_FILE")
                                    : rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for a ring");

    for (int i = 0; i < graph->ngpus && result == RONDO_SUCCESS; i++)
        numbers[i] = graph->node[graph->gpu[i]].number;
    if (result == RONDO_SUCCESS) {
        const char *why = rd_ring_order(&read, numbers, graph->ngpus, false, order);
        if (why)
            result =
                rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "RONDO_GRAPH_FILE=%.200s, line %d: %s; this machine has %d",
                         env->graph_file, read.line, why, graph->ngpus);
    }
    for (int i = 0; i < graph->ngpus && result == RONDO_SUCCESS; i++)
        gpu[i] = graph->gpu[order[i]];
    if (result == RONDO_SUCCESS)
        result = rd_tour_rate(ring, graph, gpu, graph->ngpus);
    free(numbers);
    free(read.gpu);
    return result;
}

static int given_show(const rd_graph_t *graph, const rd_env_t *env)
{
    rd_tour_t ring;

    if (given_get(&ring, graph, env) != RONDO_SUCCESS)
        return 1;
    ring_print(graph, &ring, true);
    rd_tour_free(&ring);
    return 0;
}

static void packed_print(const rd_graph_t *graph, const rd_pack_t *pack)
{
    for (int k = 0; k < pack->count && k < SHOWN; k++) {
        const rd_packed_t *ring = &pack->part[k];
        printf("    %.1f GB/s", ring->gbps);
        if (ring->net >= 0)
            printf(" by %s", graph->node[ring->net].name);
        if (ring->out != ring->net)
            printf(" and %s", graph->node[ring->out].name);
        printf(":");
        for (int i = 0; i < pack->n; i++)
            printf(" %d", graph->node[ring->gpu[i]].number);
        printf("\n");
    }
    if (pack->count > SHOWN)
        printf("    and %d slower ones\n", pack->count - SHOWN);
}

/* Says nothing of what carries no more than `known` GB/s, and sets it. */
static int pack_show(const rd_graph_t *graph, rd_pack_kind_t kind, double *known)
{
    static const char *const names[] = {"rings, closed here", "rings, each by one port",
                                        "rings, in by a port and out by any", "trees from the first GPU",
                                        "trees from any GPUs"};
    const bool by_port = kind == RD_PACK_PORTS || kind == RD_PACK_CROSSED;
    const bool rings = by_port || kind == RD_PACK_RINGS;
    rd_pack_t pack;

    if (!rd_pack_serves(graph->ngpus, by_port ? graph->nnets : 0)) {
        printf("  %s: not searched, there are too many\n", names[kind]);
        return 0;
    }
    if (rd_pack_search(&pack, graph, graph->gpu, graph->ngpus, kind) != RONDO_SUCCESS)
        return 1;
    if (pack.count > 0 && pack.gbps <= 1.01 * *known) {
        rd_pack_free(&pack);
        return 0;
    }
    *known = pack.gbps;
    if (pack.count == 0)
        printf("  %s: none, not all of these reach each other\n", names[kind]);
    else if (pack.gbps >= 0.99 * pack.bound)
        printf("  %s: %.1f GB/s by %d, the most that the links carry\n", names[kind], pack.gbps, pack.count);
    else
        printf("  %s: %.1f GB/s by %d, the best of what was tried\n", names[kind], pack.gbps, pack.count);
    if (pack.count > 1 && rings)
        packed_print(graph, &pack);
    rd_pack_free(&pack);
    return 0;
}

static int packs_show(const rd_graph_t *graph)
{
    double known = 0;
    int failed = 0;

    if (!rd_pack_serves(graph->ngpus, 0))
        return 0;
    printf("\nseveral at once, so that no link carries more than it can\n");
    for (rd_pack_kind_t kind = RD_PACK_RINGS; kind <= RD_PACK_ANY_ROOTS; kind++) {
        known = kind == RD_PACK_CROSSED || kind == RD_PACK_ANY_ROOTS ? known : 0;
        if ((kind != RD_PACK_PORTS || graph->nnets > 0) && (kind != RD_PACK_CROSSED || graph->nnets > 1))
            failed |= pack_show(graph, kind, &known);
    }
    return failed;
}

int info_rings(const rd_graph_t *graph, const rd_env_t *env)
{
    if (graph->ngpus < 2)
        return 0;
    printf("\nrings, as the search finds them (by the rates that NCCL reckons with)\n");
    for (int i = -1; i < graph->nnets && i < PORTS; i++)
        if (ring_show(graph, i < 0 ? -1 : graph->net[i]) != 0)
            return 1;
    if (graph->nnets > PORTS)
        printf("  and by %d more ports\n", graph->nnets - PORTS);
    if (env->graph_file[0] && given_show(graph, env) != 0)
        return 1;
    return packs_show(graph);
}

/* A machine that is too large for a matrix. */
int info_large(const rd_graph_t *graph, const rd_env_t *env)
{
    int hosts = 0;

    for (int i = 0; i < graph->nnodes; i++)
        hosts = graph->node[i].host >= hosts ? graph->node[i].host + 1 : hosts;
    printf("%d GPUs and %d ports of network devices on %d machine%s   [recorded in %s]\n", graph->ngpus, graph->nnets,
           hosts, hosts == 1 ? "" : "s", env->topo_file);
    return info_rings(graph, env);
}

/* Writes XML, and frees it. */
static int save(rd_xml_t *xml, const char *name)
{
    rondo_result_t result = rd_xml_save(xml, name);

    rd_xml_free(xml);
    return result != RONDO_SUCCESS;
}

int info_xml(const rd_env_t *env, const char *name)
{
    rd_xml_t *system;

    if (rd_graph_xml(&system, env->topo_file, "RONDO_TOPO_FILE") != RONDO_SUCCESS)
        return 1;
    return save(system, name);
}

int info_graph(const rd_env_t *env, const char *name)
{
    rd_graph_t graph = {0};
    rd_tour_t ring = {0};
    rd_xml_t *graphs;
    int code = 1;

    if (rd_graph_get(&graph, env->topo_file, "RONDO_TOPO_FILE") != RONDO_SUCCESS)
        return 1;
    if (graph.ngpus == 0)
        fprintf(stderr, "rondo-info topo: --graph: no GPUs are known here, so there is no ring\n");
    else if ((env->graph_file[0] ? given_get(&ring, &graph, env)
                                 : rd_tour_search(&ring, &graph, graph.gpu, graph.ngpus, -1)) == RONDO_SUCCESS &&
             rd_ring_xml(&graphs, &graph, &ring, NULL) == RONDO_SUCCESS)
        code = save(graphs, name);
    rd_tour_free(&ring);
    rd_graph_free(&graph);
    return code;
}
