/* The graph itself: made node by node and link by link, and asked for ways. See graph.h. */
#include "topo/graph.h"

#include <stdlib.h>
#include <string.h>

const char *rd_way_name(rd_way_t way)
{
    static const char *const names[] = {"LOC", "NVL", "C2C", "PIX", "PXB", "PHB", "SYS", "DIS"};

    return names[way];
}

/* Room for one more, in steps of powers of two. */
static void *grown(void *array, int count, size_t bytes)
{
    if (count & (count - 1))
        return array;
    return realloc(array, (size_t)(count > 0 ? 2 * count : 1) * bytes);
}

int rd_graph_add(rd_graph_t *g, rd_graph_kind_t kind, const char *name)
{
    rd_graph_node_t *more = grown(g->node, g->nnodes, sizeof *more);

    if (!more)
        return -1;
    g->node = more;
    memset(&more[g->nnodes], 0, sizeof *more);
    more[g->nnodes].kind = kind;
    more[g->nnodes].cpu = more[g->nnodes].rail = more[g->nnodes].number = -1;
    snprintf(more[g->nnodes].name, sizeof more->name, "%s", name);
    return g->nnodes++;
}

int rd_graph_join(rd_graph_t *g, int from, int to, rd_way_t way, double gbps)
{
    rd_graph_link_t *more = grown(g->link, g->nlinks, sizeof *more);

    if (!more)
        return -1;
    g->link = more;
    more[g->nlinks] = (rd_graph_link_t){from, to, way, gbps};
    return g->nlinks++;
}

static int by_ends(const void *a, const void *b)
{
    const rd_graph_link_t *x = a, *y = b;

    return x->from != y->from ? x->from - y->from : x->to != y->to ? x->to - y->to : (int)x->way - (int)y->way;
}

/* Links of one kind between two nodes become one. */
static void links_merge(rd_graph_t *g)
{
    int n = 0;

    if (g->nlinks > 0)
        qsort(g->link, (size_t)g->nlinks, sizeof *g->link, by_ends);
    for (int i = 0; i < g->nlinks; i++)
        if (n > 0 && by_ends(&g->link[n - 1], &g->link[i]) == 0)
            g->link[n - 1].gbps += g->link[i].gbps;
        else
            g->link[n++] = g->link[i];
    g->nlinks = n;
    for (int i = n - 1; i >= 0; i--) {
        g->node[g->link[i].from].first = i;
        g->node[g->link[i].from].count++;
    }
}

/* Devices are listed by host and PCI address, and ports by host and name: so the result of a search does not depend on
 * the order in which a file or a program numbers them. */
static void list_sort(const rd_graph_t *g, int *list, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0; k--) {
            const rd_graph_node_t *a = &g->node[list[k - 1]], *b = &g->node[list[k]];
            int way = a->host != b->host ? a->host - b->host : strcmp(a->name, b->name);
            if (way <= 0)
                break;
            int swap = list[k];
            list[k] = list[k - 1];
            list[k - 1] = swap;
        }
}

rondo_result_t rd_graph_finish(rd_graph_t *g)
{
    links_merge(g);
    g->gpu = calloc((size_t)g->nnodes + 1, sizeof *g->gpu);
    g->net = calloc((size_t)g->nnodes + 1, sizeof *g->net);
    if (!g->gpu || !g->net)
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for the graph of a machine");
    for (int i = 0; i < g->nnodes; i++)
        if (g->node[i].kind == RD_GRAPH_GPU)
            g->gpu[g->ngpus++] = i;
        else if (g->node[i].kind == RD_GRAPH_NET)
            g->net[g->nnets++] = i;
    if (g->ngpus > RD_GRAPH_MOST || g->nnets > RD_GRAPH_MOST)
        return rd_error(NULL, RONDO_ERR_UNSUPPORTED,
                        "a machine of %d GPUs and %d ports of network devices: at most %d of each are supported",
                        g->ngpus, g->nnets, RD_GRAPH_MOST);
    list_sort(g, g->gpu, g->ngpus);
    list_sort(g, g->net, g->nnets);
    return RONDO_SUCCESS;
}

void rd_graph_free(rd_graph_t *g)
{
    free(g->node);
    free(g->link);
    free(g->gpu);
    free(g->net);
    memset(g, 0, sizeof *g);
}

/* ---- ways ---- */

static bool is_end(const rd_graph_node_t *node)
{
    return node->kind == RD_GRAPH_GPU || node->kind == RD_GRAPH_NET;
}

/* Goes on from all nodes that are `hops` links away, over links of the kinds up to `way`. Returns the nodes reached. */
static int advance(const rd_graph_t *g, int from, rd_way_t way, int hops, rd_graph_path_t *path)
{
    int reached = 0;

    for (int v = 0; v < g->nnodes; v++) {
        if (path[v].way > way || path[v].hops != hops || (v != from && is_end(&g->node[v])))
            continue;
        for (int l = g->node[v].first; l < g->node[v].first + g->node[v].count; l++) {
            const rd_graph_link_t *link = &g->link[l];
            rd_graph_path_t *to = &path[link->to];
            float gbps = link->gbps < path[v].gbps ? (float)link->gbps : path[v].gbps;

            if (link->way > way || link->gbps <= 0)
                continue;
            if (to->way == RD_WAY_NONE || (to->way == way && to->hops == hops + 1 && to->gbps < gbps)) {
                reached += to->way == RD_WAY_NONE;
                *to = (rd_graph_path_t){(unsigned char)way, (short)(hops + 1), l, gbps};
            }
        }
    }
    return reached;
}

int rd_graph_paths(const rd_graph_t *g, int from, rd_graph_path_t *path)
{
    int most = 0;

    for (int v = 0; v < g->nnodes; v++)
        path[v] = (rd_graph_path_t){RD_WAY_NONE, -1, -1, 0};
    path[from] = (rd_graph_path_t){RD_WAY_LOC, 0, -1, 1e9f};
    for (rd_way_t way = RD_WAY_LOC; way < RD_WAY_NONE; way++)
        for (int hops = 0; hops <= most; hops++)
            if (advance(g, from, way, hops, path) > 0 && hops == most)
                most++;
    return 0;
}
