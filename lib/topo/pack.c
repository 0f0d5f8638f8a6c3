/* The linear program of pack.h, by the simplex method: a row for each link that a way between GPUs leads over, a column
 * for each ring or tree, found when it is wanted. The basis has as many columns as there are rows; in the beginning
 * they are the links' idle rests. */
#include "topo/pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MOST (1L << 28) /* as of rd_cheapest_steps: less than a second */
#define STEP_MOST (1L << 20)  /* of one search for the cheapest: there are hundreds */
#define ENOUGH 0.9995         /* a ring that costs so much of what it earns is not worth a step */
#define TINY 1e-9

typedef struct column {
    bool idle; /* what is left of a link */
    double costs;
    int port, out; /* by which the ring comes in and leaves; -1: it is closed, or a tree */
    int order[RD_CHEAPEST_ENDS], above[RD_CHEAPEST_ENDS]; /* ends */
} column_t;

typedef struct packing {
    const rd_graph_t *g;
    rd_pack_kind_t kind;
    int n, ports; /* ends: GPUs, then ports */
    int *end;     /* node numbers */
    rd_graph_path_t **path;
    int rows;
    int *row, *link;          /* the row of each link, or -1, and the link of each row */
    double *most, *price;     /* of each row: GB/s, what one costs */
    double *inverse, *amount; /* of the basis, and how much of each of its columns there is */
    double *uses, *direction; /* of the entering column, by rows, and by columns of the basis */
    double *ways;             /* prices between ends, for rd_cheapest */
    column_t *basis;
    rd_cheapest_t room;
    double bound, *proof; /* the prices that it follows from */
    long steps;
} packing_t;

/* ---- the rows ---- */

static bool reaches(const packing_t *p, int a, int b)
{
    return p->path[a][p->end[b]].way != RD_WAY_NONE;
}

/* Adds `by` for each link on the way to by_row, and returns the sum of its prices. */
static double walk(const packing_t *p, int a, int b, double by, double *by_row)
{
    double price = 0;

    for (int v = p->end[b]; p->path[a][v].via >= 0; v = p->g->link[p->path[a][v].via].from) {
        const int row = p->row[p->path[a][v].via];
        price += p->price[row];
        if (by_row)
            by_row[row] += by;
    }
    return price;
}

/* Returns a part of a millionth, by the number of the row. Where many sums of links are equal, the method might go
 * round in a circle of steps that gain nothing; this keeps it from that. */
static double perturbation(int row)
{
    return 1e-6 * (double)((unsigned)(row + 1) * 2654435761u >> 8) / (1 << 24);
}

/* Counts the links on the ways between all ends. */
static void rows_find(packing_t *p)
{
    const int ends = p->n + p->ports;

    for (int l = 0; l < p->g->nlinks; l++)
        p->row[l] = -1;
    for (int a = 0; a < ends; a++)
        for (int b = 0; b < ends; b++)
            for (int v = p->end[b]; (a < p->n || b < p->n) && p->path[a][v].via >= 0;
                 v = p->g->link[p->path[a][v].via].from) {
                const int l = p->path[a][v].via;
                if (p->row[l] < 0) {
                    p->row[l] = p->rows;
                    p->link[p->rows++] = l;
                }
            }
}

static bool is_tree(rd_pack_kind_t kind)
{
    return kind == RD_PACK_TREES || kind == RD_PACK_ANY_ROOTS;
}

static bool is_by_port(rd_pack_kind_t kind)
{
    return kind == RD_PACK_PORTS || kind == RD_PACK_CROSSED;
}

static rondo_result_t ends_make(packing_t *p, const int *gpu)
{
    const int ends = p->n + p->ports;

    p->end = calloc((size_t)ends, sizeof *p->end);
    p->path = calloc((size_t)ends, sizeof *p->path);
    p->row = calloc((size_t)p->g->nlinks + 1, sizeof *p->row);
    p->link = calloc((size_t)p->g->nlinks + 1, sizeof *p->link);
    if (!p->end || !p->path || !p->row || !p->link)
        return RONDO_ERR_NO_MEMORY;
    for (int i = 0; i < ends; i++) {
        p->end[i] = i < p->n ? gpu[i] : p->g->net[i - p->n];
        p->path[i] = malloc((size_t)p->g->nnodes * sizeof **p->path);
        if (!p->path[i] || rd_graph_paths(p->g, p->end[i], p->path[i]) != 0)
            return RONDO_ERR_NO_MEMORY;
    }
    rows_find(p);
    return RONDO_SUCCESS;
}

static rondo_result_t packing_make(packing_t *p, const int *gpu)
{
    rondo_result_t result = ends_make(p, gpu);
    const size_t rows = (size_t)p->rows + 1;
    const size_t ends = (size_t)(p->n + is_by_port(p->kind));

    if (result != RONDO_SUCCESS)
        return result;
    p->most = calloc(rows, sizeof *p->most);
    p->price = calloc(rows, sizeof *p->price);
    p->proof = calloc(rows, sizeof *p->proof);
    p->inverse = calloc(rows * rows, sizeof *p->inverse);
    p->amount = calloc(rows, sizeof *p->amount);
    p->uses = calloc(rows, sizeof *p->uses);
    p->direction = calloc(rows, sizeof *p->direction);
    p->basis = calloc(rows, sizeof *p->basis);
    p->ways = calloc(ends * ends, sizeof *p->ways);
    if (!p->most || !p->price || !p->proof || !p->inverse || !p->amount || !p->uses || !p->direction || !p->basis ||
        !p->ways || !rd_cheapest_make(&p->room, (int)ends))
        return RONDO_ERR_NO_MEMORY;
    for (int i = 0; i < p->rows; i++) {
        p->most[i] = p->amount[i] = p->g->link[p->link[i]].gbps * (1 - perturbation(i));
        p->inverse[i * p->rows + i] = 1;
        p->basis[i].idle = true;
    }
    return RONDO_SUCCESS;
}

static void packing_free(packing_t *p)
{
    for (int i = 0; p->path && i < p->n + p->ports; i++)
        free(p->path[i]);
    free(p->path);
    free(p->end);
    free(p->row);
    free(p->link);
    free(p->most);
    free(p->price);
    free(p->proof);
    free(p->inverse);
    free(p->amount);
    free(p->uses);
    free(p->direction);
    free(p->basis);
    free(p->ways);
    rd_cheapest_free(&p->room);
}

/* ---- columns ---- */

/* The end that the search for the cheapest counts by this number: by ports, the port is its first. */
static int end_at(const packing_t *p, int number, int port)
{
    return port < 0 ? number : number == 0 ? p->n + port : number - 1;
}

/* The port by which a ring that comes in by `port` leaves from a GPU. */
static int way_out(const packing_t *p, int gpu, int port)
{
    double least = INFINITY;
    int out = port;

    for (int q = 0; q < p->ports && p->kind == RD_PACK_CROSSED; q++) {
        const double price = reaches(p, gpu, p->n + q) ? walk(p, gpu, p->n + q, 0, NULL) : INFINITY;
        if (price < least) {
            least = price;
            out = q;
        }
    }
    return out;
}

static void ways_price(packing_t *p, int port)
{
    const int ends = p->n + (port >= 0);

    for (int a = 0; a < ends; a++)
        for (int b = 0; b < ends; b++) {
            const int from = end_at(p, a, port);
            const int to = port >= 0 && b == 0 && a > 0 ? p->n + way_out(p, from, port) : end_at(p, b, port);
            p->ways[a * ends + b] = a == b || !reaches(p, from, to) ? INFINITY : walk(p, from, to, 0, NULL);
        }
}

static void cheapest_by(packing_t *p, int port, column_t *best)
{
    const int ends = p->n + (port >= 0);
    column_t one = {.port = port, .out = -1};

    ways_price(p, port);
    p->steps += rd_cheapest_steps(ends);
    if (is_tree(p->kind))
        one.costs = rd_cheapest_tree(&p->room, p->ways, ends, p->kind == RD_PACK_TREES ? 0 : -1, one.order, one.above);
    else
        one.costs = rd_cheapest_ring(&p->room, p->ways, ends, one.order);
    if (one.costs >= best->costs)
        return;
    if (port >= 0)
        one.out = way_out(p, end_at(p, one.order[ends - 1], port), port);
    *best = one;
}

/* Its costs are INFINITY if there is none. */
static column_t cheapest(packing_t *p)
{
    column_t best = {.costs = INFINITY, .port = -1, .out = -1};

    if (!is_by_port(p->kind))
        cheapest_by(p, -1, &best);
    for (int port = 0; port < p->ports; port++)
        cheapest_by(p, port, &best);
    return best;
}

/* How often a ring or tree leads over each link. */
static void uses_of(packing_t *p, const column_t *c)
{
    const int ends = p->n + (c->port >= 0);

    memset(p->uses, 0, (size_t)p->rows * sizeof *p->uses);
    for (int i = 0; i < ends; i++) {
        const int self = end_at(p, c->order[i], c->port), next = end_at(p, c->order[(i + 1) % ends], c->port);
        if (!is_tree(p->kind))
            (void)walk(p, self, i == ends - 1 && c->port >= 0 ? p->n + c->out : next, 1, p->uses);
        else if (i > 0)
            (void)walk(p, c->above[i], c->order[i], 1, p->uses);
    }
}

/* ---- the simplex method ---- */

/* What one more GB/s of each link would gain. Returns the row whose price is least. */
static int prices_find(packing_t *p)
{
    int least = 0;

    for (int r = 0; r < p->rows; r++) {
        p->price[r] = 0;
        for (int i = 0; i < p->rows; i++)
            p->price[r] += p->basis[i].idle ? 0 : p->inverse[i * p->rows + r];
        least = p->price[r] < p->price[least] ? r : least;
    }
    return least;
}

/* Returns the leaving column: the one of the basis that the entering one uses up first; -1: none. */
static int leaving(const packing_t *p)
{
    int out = -1;

    for (int i = 0; i < p->rows; i++)
        if (p->direction[i] > TINY && (out < 0 || p->amount[i] * p->direction[out] < p->amount[out] * p->direction[i]))
            out = i;
    return out;
}

/* Puts a column into the basis, in the place of the leaving one. `p->uses` are its uses. Returns false if none leaves.
 */
static bool pivot(packing_t *p, const column_t *c)
{
    const int m = p->rows;

    for (int i = 0; i < m; i++) {
        p->direction[i] = 0;
        for (int r = 0; r < m; r++)
            p->direction[i] += p->inverse[i * m + r] * p->uses[r];
    }
    const int out = leaving(p);
    if (out < 0)
        return false;
    const double by = p->direction[out];
    for (int r = 0; r < m; r++)
        p->inverse[out * m + r] /= by;
    p->amount[out] /= by;
    for (int i = 0; i < m; i++) {
        const double part = i == out ? 0 : p->direction[i];
        for (int r = 0; r < m && part != 0; r++)
            p->inverse[i * m + r] -= part * p->inverse[out * m + r];
        p->amount[i] = p->amount[i] - part * p->amount[out];
        p->amount[i] = p->amount[i] > 0 ? p->amount[i] : 0;
    }
    p->basis[out] = *c;
    return true;
}

/* One step. Returns false at the end. */
static bool improve(packing_t *p)
{
    const int row = prices_find(p);
    column_t next = {.idle = true};
    double all = 0;

    p->steps += (long)p->rows * p->rows;
    if (p->price[row] < -TINY) {
        memset(p->uses, 0, (size_t)p->rows * sizeof *p->uses);
        p->uses[row] = 1;
        return pivot(p, &next);
    }
    for (int r = 0; r < p->rows; r++) {
        p->price[r] = p->price[r] > 0 ? p->price[r] : 0;
        all += p->price[r] * p->most[r];
    }
    next = cheapest(p);
    if (next.costs > 0 && all / next.costs < p->bound) {
        p->bound = all / next.costs;
        memcpy(p->proof, p->price, (size_t)p->rows * sizeof *p->proof);
    }
    if (next.costs >= ENOUGH)
        return false;
    uses_of(p, &next);
    return pivot(p, &next);
}

/* ---- the result ---- */

static void part_fill(const packing_t *p, const column_t *c, double gbps, rd_packed_t *part)
{
    const int first = c->port >= 0;

    *part = (rd_packed_t){.gbps = gbps, .net = -1, .out = -1};
    if (first) {
        part->net = p->end[p->n + c->port];
        part->out = p->end[p->n + c->out];
    }
    for (int i = 0; i < p->n; i++) {
        part->gpu[i] = p->end[end_at(p, c->order[i + first], c->port)];
        part->above[i] = !is_tree(p->kind) || i == 0 ? -1 : p->end[c->above[i]];
    }
}

/* The fastest first. What differs by thousandths of a GB/s goes by port and order. */
static int by_gbps(const void *a, const void *b)
{
    const rd_packed_t *x = a, *y = b;
    const long more = lrint(1000 * y->gbps) - lrint(1000 * x->gbps);

    return more != 0          ? (more > 0) - (more < 0)
           : x->net != y->net ? x->net - y->net
                              : memcmp(x->gpu, y->gpu, sizeof x->gpu);
}

static rondo_result_t result_of(const packing_t *p, rd_pack_t *pack)
{
    pack->n = p->n;
    pack->steps = p->steps;
    pack->part = calloc((size_t)p->rows + 1, sizeof *pack->part);
    pack->price = calloc((size_t)p->g->nlinks + 1, sizeof *pack->price);
    if (!pack->part || !pack->price)
        return RONDO_ERR_NO_MEMORY;
    for (int i = 0; i < p->rows; i++) {
        pack->price[p->link[i]] = p->proof[i];
        if (p->basis[i].idle || p->amount[i] < 1e-3)
            continue;
        pack->gbps += p->amount[i];
        part_fill(p, &p->basis[i], p->amount[i], &pack->part[pack->count++]);
    }
    pack->bound = pack->count > 0 ? p->bound : 0;
    qsort(pack->part, (size_t)pack->count, sizeof *pack->part, by_gbps);
    return RONDO_SUCCESS;
}

bool rd_pack_serves(int n, int ports)
{
    const int ends = n + (ports > 0);

    return n <= RD_PACK_GPUS && ports <= RD_GRAPH_MOST &&
           rd_cheapest_steps(ends) * (ports > 0 ? ports : 1) <= STEP_MOST;
}

rondo_result_t rd_pack_search(rd_pack_t *pack, const rd_graph_t *graph, const int *gpu, int n, rd_pack_kind_t kind)
{
    packing_t p = {.g = graph, .kind = kind, .n = n, .ports = is_by_port(kind) ? graph->nnets : 0};

    memset(pack, 0, sizeof *pack);
    if (!rd_pack_serves(n, p.ports))
        return rd_error(NULL, RONDO_ERR_UNSUPPORTED, "several rings are not searched among %d GPUs by %d ports", n,
                        p.ports);
    p.bound = INFINITY;
    rondo_result_t result = packing_make(&p, gpu);
    while (result == RONDO_SUCCESS && p.rows > 0 && p.steps < STEPS_MOST && improve(&p))
        continue;
    if (result == RONDO_SUCCESS)
        result = result_of(&p, pack);
    packing_free(&p);
    if (result == RONDO_SUCCESS)
        return result;
    rd_pack_free(pack);
    return rd_error(NULL, result, "no memory to search rings of %d GPUs", n);
}

void rd_pack_free(rd_pack_t *pack)
{
    free(pack->part);
    free(pack->price);
    memset(pack, 0, sizeof *pack);
}
