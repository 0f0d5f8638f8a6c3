/* Branch and bound over orders of GPUs: see search.h. */
#include "topo/search.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MOST (1L << 20)
#define NEAR_STEPS (1L << 15) /* after these steps the first order that carries as much as any is taken */
#define ALIKE 1e-6            /* rates that differ by less than this part are equal */

typedef struct search {
    const rd_graph_t *g;
    int fixed;                   /* 1: with a port, whose neighbour at the end of the order is chosen first */
    int n;                       /* ends: the port, if there is one, then the GPUs */
    int *end;                    /* node numbers */
    rd_graph_path_t **path;      /* of each end, to every node */
    int *near;                   /* [n * n]: the other ends, from near to far */
    int *uses;                   /* of each link, by the order so far */
    bool *used;                  /* of each end */
    int *order, *best;           /* ends */
    double best_gbps, most_gbps; /* of the best so far; that no order exceeds */
    int best_ways, least_way;    /* sum of the ways; the least of one hop */
    int least_ways;
    long steps;
} search_t;

static const rd_graph_path_t *way(const search_t *s, int a, int b)
{
    return &s->path[a][s->end[b]];
}

/* Adds the way from end a to end b, or takes it away, and returns the GB/s that are left: at most `gbps`. */
static double load(search_t *s, int a, int b, int by, double gbps)
{
    for (int v = s->end[b]; s->path[a][v].via >= 0; v = s->g->link[s->path[a][v].via].from) {
        int l = s->path[a][v].via;
        s->uses[l] += by;
        if (s->uses[l] > 0 && s->g->link[l].gbps / s->uses[l] < gbps)
            gbps = s->g->link[l].gbps / s->uses[l];
    }
    return gbps;
}

static bool may_be_better(const search_t *s, double gbps, int ways)
{
    return gbps > s->best_gbps * (1 + ALIKE) || (gbps > s->best_gbps * (1 - ALIKE) && ways < s->best_ways);
}

static bool carries_most(const search_t *s)
{
    return s->best_gbps >= s->most_gbps * (1 - ALIKE);
}

static bool is_finished(const search_t *s)
{
    return s->steps >= STEPS_MOST || (carries_most(s) && (s->best_ways <= s->least_ways || s->steps >= NEAR_STEPS));
}

/* All ends are in the order: the way from the last of its beginning to the rest closes the ring. */
static void close_ring(search_t *s, double gbps, int ways)
{
    int from = s->order[s->n - 1 - s->fixed], to = s->order[s->fixed ? s->n - 1 : 0];
    double left = load(s, from, to, 1, gbps);

    ways += way(s, from, to)->way;
    if (way(s, from, to)->way != RD_WAY_NONE && may_be_better(s, left, ways)) {
        s->best_gbps = left;
        s->best_ways = ways;
        memcpy(s->best, s->order, (size_t)s->n * sizeof *s->best);
    }
    (void)load(s, from, to, -1, gbps);
}

/* The order begins with `at` ends, whose ways leave `gbps`. */
static void extend(search_t *s, int at, double gbps, int ways)
{
    int last = s->order[at - 1];

    if (at == s->n - s->fixed) {
        close_ring(s, gbps, ways);
        return;
    }
    for (int k = 0; k < s->n - 1 && !is_finished(s); k++) {
        int next = s->near[last * s->n + k], far = way(s, last, next)->way;
        if (s->used[next] || far == RD_WAY_NONE)
            continue;
        s->steps++;
        double left = load(s, last, next, 1, gbps);
        if (may_be_better(s, left, ways + far + (s->n - at - s->fixed) * s->least_way)) {
            s->used[next] = true;
            s->order[at] = next;
            extend(s, at + 1, left, ways + far);
            s->used[next] = false;
        }
        (void)load(s, last, next, -1, gbps);
    }
}

static bool is_nearer(const rd_graph_path_t *a, const rd_graph_path_t *b)
{
    return a->way != b->way ? a->way < b->way : a->gbps != b->gbps ? a->gbps > b->gbps : a->hops < b->hops;
}

/* Sorts the other ends by nearness; equals stay in order. */
static void near_sort(search_t *s, int end)
{
    int *list = &s->near[end * s->n], count = 0;

    for (int b = 0; b < s->n; b++) {
        int k = count;
        if (b == end)
            continue;
        for (; k > 0 && is_nearer(way(s, end, b), way(s, end, list[k - 1])); k--)
            list[k] = list[k - 1];
        list[k] = b;
        count++;
    }
}

/* A port is the first end. The one before it is chosen first, because few GPUs are near a port, or reach it at all. */
static void extend_by_port(search_t *s)
{
    for (int k = 0; k < s->n - 1 && !is_finished(s); k++) {
        int last = s->near[k], far = way(s, last, 0)->way; /* a port is as near as the GPU is to it */
        if (far == RD_WAY_NONE)
            continue;
        s->used[last] = true;
        s->order[s->n - 1] = last;
        extend(s, 1, load(s, last, 0, 1, 1e9), far);
        (void)load(s, last, 0, -1, 1e9);
        s->used[last] = false;
    }
}

/* What no order exceeds: every end sends by one of its ways, and takes by one. */
static void bound(search_t *s)
{
    s->most_gbps = 1e9;
    s->least_way = RD_WAY_NONE;
    for (int a = 0; a < s->n; a++) {
        double out = 0, in = 0;
        int least = RD_WAY_NONE;
        for (int b = 0; b < s->n; b++) {
            if (a == b)
                continue;
            out = way(s, a, b)->gbps > out ? way(s, a, b)->gbps : out;
            in = way(s, b, a)->gbps > in ? way(s, b, a)->gbps : in;
            least = way(s, a, b)->way < least ? way(s, a, b)->way : least;
        }
        s->most_gbps = out < s->most_gbps ? out : s->most_gbps;
        s->most_gbps = in < s->most_gbps ? in : s->most_gbps;
        s->least_way = least < s->least_way ? least : s->least_way;
        s->least_ways += least;
    }
}

static rondo_result_t search_make(search_t *s, const rd_graph_t *g, const int *gpu, int n, int net)
{
    size_t ends = (size_t)(n + (net >= 0));

    s->g = g;
    s->n = (int)ends;
    s->end = calloc(ends, sizeof *s->end);
    s->path = calloc(ends, sizeof *s->path);
    s->near = calloc(ends * ends, sizeof *s->near);
    s->uses = calloc((size_t)g->nlinks + 1, sizeof *s->uses);
    s->used = calloc(ends, sizeof *s->used);
    s->order = calloc(ends, sizeof *s->order);
    s->best = calloc(ends, sizeof *s->best);
    if (!s->end || !s->path || !s->near || !s->uses || !s->used || !s->order || !s->best)
        return RONDO_ERR_NO_MEMORY;
    for (int i = 0; i < s->n; i++) {
        s->end[i] = net < 0 ? gpu[i] : i > 0 ? gpu[i - 1] : net;
        s->path[i] = malloc((size_t)g->nnodes * sizeof **s->path);
        if (!s->path[i] || rd_graph_paths(g, s->end[i], s->path[i]) != 0)
            return RONDO_ERR_NO_MEMORY;
    }
    for (int i = 0; i < s->n; i++)
        near_sort(s, i);
    return RONDO_SUCCESS;
}

static void search_free(search_t *s)
{
    for (int i = 0; s->path && i < s->n; i++)
        free(s->path[i]);
    free(s->path);
    free(s->end);
    free(s->near);
    free(s->uses);
    free(s->used);
    free(s->order);
    free(s->best);
}

static void worst_find(const search_t *s, const int *order, rd_tour_t *ring)
{
    ring->worst = RD_WAY_LOC;
    for (int i = 0; i < s->n; i++) {
        rd_way_t far = (rd_way_t)way(s, order[i], order[(i + 1) % s->n])->way;
        ring->worst = far > ring->worst ? far : ring->worst;
    }
}

static rondo_result_t result_of(const search_t *s, rd_tour_t *ring, int net)
{
    int first = net >= 0;

    ring->n = s->n - first;
    ring->net = net;
    ring->gbps = s->best_gbps;
    ring->steps = s->steps;
    ring->ways = s->best_ways;
    ring->best = s->steps < STEPS_MOST || carries_most(s);
    ring->gpu = malloc(((size_t)ring->n + 1) * sizeof *ring->gpu);
    if (!ring->gpu)
        return RONDO_ERR_NO_MEMORY;
    for (int i = 0; i < ring->n; i++)
        ring->gpu[i] = s->end[s->best_gbps > 0 ? s->best[i + first] : i + first];
    worst_find(s, s->best, ring);
    if (s->best_gbps == 0)
        ring->worst = RD_WAY_NONE;
    return RONDO_SUCCESS;
}

/* The order of the ends themselves, without a port. */
static void rate(search_t *s)
{
    double gbps = 1e9;
    int ways = 0;

    for (int i = 0; i < s->n; i++) {
        s->order[i] = i;
        if (i + 1 < s->n && way(s, i, i + 1)->way == RD_WAY_NONE)
            return;
        if (i + 1 < s->n) {
            gbps = load(s, i, i + 1, 1, gbps);
            ways += way(s, i, i + 1)->way;
        }
    }
    close_ring(s, gbps, ways);
}

rondo_result_t rd_tour_rate(rd_tour_t *ring, const rd_graph_t *graph, const int *gpu, int n)
{
    search_t s = {.best_ways = 1 << 30, .most_gbps = 1e9, .steps = STEPS_MOST};
    rondo_result_t result = search_make(&s, graph, gpu, n, -1);

    memset(ring, 0, sizeof *ring);
    if (result == RONDO_SUCCESS && s.n > 1)
        rate(&s);
    if (result == RONDO_SUCCESS)
        result = result_of(&s, ring, -1);
    search_free(&s);
    ring->steps = 0;
    return result == RONDO_SUCCESS ? result : rd_error(NULL, result, "no memory to rate a ring of %d GPUs", n);
}

rondo_result_t rd_tour_search(rd_tour_t *ring, const rd_graph_t *graph, const int *gpu, int n, int net)
{
    search_t s = {.best_ways = 1 << 30};
    rondo_result_t result = search_make(&s, graph, gpu, n, net);

    memset(ring, 0, sizeof *ring);
    if (result == RONDO_SUCCESS && s.n > 1) {
        bound(&s);
        s.used[0] = true;
        s.fixed = net >= 0;
        if (net >= 0)
            extend_by_port(&s);
        else
            extend(&s, 1, 1e9, 0);
    }
    if (result == RONDO_SUCCESS)
        result = result_of(&s, ring, net);
    search_free(&s);
    return result == RONDO_SUCCESS ? result : rd_error(NULL, result, "no memory to search a ring of %d GPUs", n);
}

void rd_tour_free(rd_tour_t *ring)
{
    free(ring->gpu);
    ring->gpu = NULL;
}
