/* The order of a communicator's GPUs: see gpu_ring.h. */
#include "topo/gpu_ring.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "topo/ring_file.h"
#include "topo/topo_write.h"

#define BETTER                                                                                                         \
    1.01 /* an order is taken for what it carries if that exceeds what the ranks' own order carries by 1 %             \
          */

typedef struct finding {
    const rd_env_t *env;
    const rd_log_ctx_t *ctx;
    const rd_ring_gpus_t *gpus;
    const rd_graph_t *graph; /* `own`, or that of this machine, which is kept */
    rd_graph_t own;
    int n, node[RD_GPUS_MOST]; /* of each GPU */
} finding_t;

/* NVML is asked once in a process. A machine that cannot be read has no GPUs. */
static pthread_once_t here_once = PTHREAD_ONCE_INIT;
static rd_graph_t here;

static void here_get(void)
{
    if (rd_graph_get(&here, "", "RONDO_TOPO_FILE") != RONDO_SUCCESS)
        memset(&here, 0, sizeof here);
}

static const rd_xml_t *child(const rd_xml_t *e, const char *name)
{
    for (const rd_xml_t *c = e->first; c; c = c->next)
        if (rd_xml_named(c, name))
            return c;
    return NULL;
}

/* The next element, in the order of the file; NULL: none. */
static rd_xml_t *next(const rd_xml_t *e)
{
    if (e->first)
        return e->first;
    while (e && !e->next)
        e = e->parent;
    return e ? e->next : NULL;
}

static const rd_xml_t *pci_find(const rd_xml_t *machine, const char *bus)
{
    for (const rd_xml_t *e = machine; e; e = next(e)) {
        const char *its = rd_xml_named(e, "pci") ? rd_xml_get(e, "busid") : NULL;
        if (its && strcasecmp(its, bus) == 0)
            return e;
    }
    return NULL;
}

/* Copies attributes that `to` has not. Returns false if there is no memory. */
static bool attrs_copy(rd_xml_t *to, const rd_xml_t *from)
{
    for (int i = 0; i < from->nattrs; i++)
        if (!rd_xml_get(to, from->attrs[i].name) &&
            rd_xml_put(to, from->attrs[i].name, "%s", from->attrs[i].value) != 0)
            return false;
    return true;
}

/* Files of cloud images describe PCIe and leave NVLinks to be detected: a GPU that has none there gets this machine's.
 */
static bool gpu_complete(rd_xml_t *pci, const rd_xml_t *machine)
{
    const char *bus = rd_xml_get(pci, "busid");
    const rd_xml_t *mine = bus ? pci_find(machine, bus) : NULL, *gpu = mine ? child(mine, "gpu") : NULL;
    rd_xml_t *to = (rd_xml_t *)(uintptr_t)child(pci, "gpu"), *link;

    if (!gpu || (to && child(to, "nvlink")))
        return true;
    if ((!to && !(to = rd_xml_make(pci, "gpu"))) || !attrs_copy(to, gpu))
        return false;
    for (const rd_xml_t *c = gpu->first; c; c = c->next)
        if (rd_xml_named(c, "nvlink") && (!(link = rd_xml_make(to, "nvlink")) || !attrs_copy(link, c)))
            return false;
    return true;
}

static rondo_result_t merged_get(rd_graph_t *graph, const char *file)
{
    const rd_graph_origin_t origin = {"RONDO_TOPO_FILE", file};
    rd_xml_t *system, *machine = NULL;
    rondo_result_t result = rd_graph_xml(&system, file, origin.variable);
    bool whole = true;

    if (result != RONDO_SUCCESS)
        return result;
    if (rd_graph_xml(&machine, "", origin.variable) == RONDO_SUCCESS)
        for (rd_xml_t *e = system; e && whole; e = next(e))
            whole = !rd_xml_named(e, "pci") || gpu_complete(e, machine);
    result = whole ? rd_graph_read(graph, system, &origin)
                   : rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for the graph of a machine");
    rd_xml_free(system);
    rd_xml_free(machine);
    return result;
}

static int node_find(const rd_graph_t *g, const char *bus, int host)
{
    for (int i = 0; i < g->ngpus; i++) {
        const rd_graph_node_t *node = &g->node[g->gpu[i]];
        if (node->host == host && strcasecmp(node->name, bus) == 0) /* CUDA writes upper case */
            return g->gpu[i];
    }
    return -1;
}

static bool is_twice(const int *node, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (node[i] == node[k])
                return true;
    return false;
}

/* Finds all GPUs on one machine of the graph: a file may have several that are alike. */
static bool nodes_find(finding_t *f)
{
    int hosts = 0;

    for (int i = 0; i < f->graph->nnodes; i++)
        hosts = f->graph->node[i].host >= hosts ? f->graph->node[i].host + 1 : hosts;
    for (int host = 0; host < hosts; host++) {
        int found = 0;
        while (found < f->n && (f->node[found] = node_find(f->graph, f->gpus->bus[found], host)) >= 0)
            found++;
        if (found == f->n)
            return true;
    }
    return false;
}

/* Sets *known if there is a graph that has all the GPUs. */
static rondo_result_t graph_get(finding_t *f, bool *known)
{
    const char *file = f->env->topo_file;

    *known = false;
    if (*file && rd_graph_is_hwloc(file)) /* of processors alone */
        return RONDO_SUCCESS;
    rondo_result_t result = RONDO_SUCCESS;
    if (*file)
        result = merged_get(&f->own, file);
    else
        pthread_once(&here_once, here_get);
    if (result != RONDO_SUCCESS)
        return result;
    f->graph = *file ? &f->own : &here;
    *known = nodes_find(f);
    if (!*known && *file)
        rd_log(f->ctx, RD_LOG_WARN,
               "RONDO_TOPO_FILE=%s does not have all GPUs of this communicator (%s and %d more), "
               "so rings visit the ranks by number",
               file, f->gpus->bus[0], f->n - 1);
    *known = *known && !is_twice(f->node, f->n); /* ranks that share a GPU have no order */
    return RONDO_SUCCESS;
}

/* Has every pair the same way? Then no order is better than another. */
static bool is_alike(const finding_t *f)
{
    rd_graph_path_t *path = malloc((size_t)f->graph->nnodes * sizeof *path), first = {RD_WAY_NONE, 0, 0, 0};
    bool alike = path != NULL;

    for (int a = 0; a < f->n && alike; a++) {
        alike = rd_graph_paths(f->graph, f->node[a], path) == 0;
        for (int b = 0; b < f->n && alike; b++) {
            const rd_graph_path_t *to = &path[f->node[b]];
            if (a == b)
                continue;
            first = a == 0 && b == 1 ? *to : first;
            alike = to->way == first.way && to->hops == first.hops && to->gbps == first.gbps;
        }
    }
    free(path);
    return alike;
}

static void misfit(const finding_t *f, const rd_ring_read_t *read, const char *why, const char *instead)
{
    rd_log(f->ctx, RD_LOG_WARN, "RONDO_GRAPH_FILE=%s, line %d: %s; this communicator has %d, and %s",
           f->env->graph_file, read->line, why, f->n, instead);
}

/* Rank 0 is the first: where it begins makes no difference to a ring. */
static void take(rd_gpu_ring_t *ring, const int *rank, int n)
{
    int first = 0;

    while (first < n && rank[first] != 0)
        first++;
    for (int i = 0; i < n; i++) {
        ring->rank[i] = rank[(first + i) % n];
        ring->is = ring->is || ring->rank[i] != i;
    }
}

static void take_tour(const finding_t *f, const rd_tour_t *tour, rd_gpu_ring_t *ring)
{
    int rank[RD_GPUS_MOST] = {0};

    for (int i = 0; i < f->n; i++)
        for (rank[i] = 0; f->node[rank[i]] != tour->gpu[i];)
            rank[i]++;
    take(ring, rank, f->n);
    ring->gbps = tour->gbps;
}

/* A ring of ranks, on a machine of which nothing is known. */
static void take_ranks(const finding_t *f, const rd_ring_read_t *read, rd_gpu_ring_t *ring)
{
    int rank[RD_GPUS_MOST] = {0};
    const char *why = read->ranked ? rd_ring_order(read, f->gpus->rank, f->n, true, rank)
                                   : "its ring has no ranks, and the machine's GPUs are not known";

    ring->given = !why;
    if (why)
        misfit(f, read, why, "they are visited by number");
    else
        take(ring, rank, f->n);
}

/* The ring of a file, if it fits, or the best. */
static rondo_result_t ring_get(finding_t *f, const rd_ring_read_t *read, rd_tour_t *tour, bool *given)
{
    int numbers[RD_GPUS_MOST], order[RD_GPUS_MOST], gpu[RD_GPUS_MOST];
    const char *why = NULL;

    for (int i = 0; i < f->n; i++)
        numbers[i] = f->graph->node[f->node[i]].number;
    if (read->n > 0 && read->ranked)
        why = rd_ring_order(read, f->gpus->rank, f->n, true, order);
    if (read->n > 0 && (why || !read->ranked)) /* another node's ranks, but the same devices */
        why = rd_ring_order(read, numbers, f->n, false, order);
    *given = read->n > 0 && !why;
    if (why)
        misfit(f, read, why, "its ring is searched");
    if (!*given)
        return rd_tour_search(tour, f->graph, f->node, f->n, -1);
    for (int i = 0; i < f->n; i++)
        gpu[i] = f->node[order[i]];
    return rd_tour_rate(tour, f->graph, gpu, f->n);
}

static void dump_ring(const finding_t *f, const rd_gpu_ring_t *ring)
{
    int gpu[RD_GPUS_MOST], rank[RD_GPUS_MOST];
    rd_xml_t *graphs;
    rd_tour_t tour;

    for (int i = 0; i < f->n; i++) {
        gpu[i] = f->node[ring->rank[i]];
        rank[i] = f->gpus->rank[ring->rank[i]];
    }
    rondo_result_t result = rd_tour_rate(&tour, f->graph, gpu, f->n);
    if (result == RONDO_SUCCESS && (result = rd_ring_xml(&graphs, f->graph, &tour, rank)) == RONDO_SUCCESS) {
        result = rd_xml_save(graphs, f->env->graph_dump_file);
        rd_xml_free(graphs);
    }
    if (result == RONDO_SUCCESS)
        rd_log(f->ctx, RD_LOG_INFO, "the ring of this communicator is in %s (RONDO_GRAPH_DUMP_FILE)",
               f->env->graph_dump_file);
    else
        rd_log(f->ctx, RD_LOG_WARN, "RONDO_GRAPH_DUMP_FILE: %s", rd_thread_error());
    rd_tour_free(&tour);
}

static rondo_result_t order_find(finding_t *f, const rd_ring_read_t *read, rd_gpu_ring_t *ring)
{
    rd_tour_t plain, best = {0};
    rondo_result_t result = rd_tour_rate(&plain, f->graph, f->node, f->n);

    if (result == RONDO_SUCCESS)
        result = ring_get(f, read, &best, &ring->given);
    if (result == RONDO_SUCCESS) {
        ring->gbps = ring->number_gbps = plain.gbps;
        if (ring->given || best.gbps > BETTER * plain.gbps ||
            (best.gbps * BETTER > plain.gbps && best.ways < plain.ways))
            take_tour(f, &best, ring);
    }
    rd_tour_free(&plain);
    rd_tour_free(&best);
    return result;
}

rondo_result_t rd_gpu_ring_find(rd_gpu_ring_t *ring, const rd_env_t *env, const rd_ring_gpus_t *gpus, bool dump,
                                const rd_log_ctx_t *ctx)
{
    const bool wanted = env->graph_file[0] || strcmp(env->order, "rank") != 0;
    const int n = gpus->n;
    finding_t f = {.env = env, .ctx = ctx, .gpus = gpus, .n = n};
    rd_ring_read_t read = {0};
    bool known;

    memset(ring, 0, sizeof *ring);
    for (int i = 0; i < n && i < RD_GPUS_MOST; i++)
        ring->rank[i] = i;
    if (n < 2 || n > RD_GPUS_MOST || !(wanted || dump) || (n == 2 && !dump && !env->graph_file[0]))
        return RONDO_SUCCESS; /* two have one order */
    rondo_result_t result =
        env->graph_file[0] ? rd_ring_read(&read, env->graph_file, "RONDO_GRAPH_FILE") : RONDO_SUCCESS;
    if (result == RONDO_SUCCESS)
        result = graph_get(&f, &known);
    if (result == RONDO_SUCCESS && known && wanted && n > 2 && (read.n || !is_alike(&f)))
        result = order_find(&f, &read, ring);
    if (result == RONDO_SUCCESS && !known && read.n)
        take_ranks(&f, &read, ring);
    if (result == RONDO_SUCCESS && known && dump)
        dump_ring(&f, ring);
    rd_graph_free(&f.own);
    free(read.gpu);
    return result;
}
