/* Several rings, and trees, at once: what is packed is valid and fits the links, and no packing carries more.
 *
 * Of 10,000 random machines of 2 to 8 GPUs each ring visits all GPUs, each tree reaches all, no link carries more than
 * it can, and all together carry at least 0.95 of the best packing (trees: 0.9 of the best cut, where a cut may count
 * links in parts). The bound is worked out here, from the prices of links alone: among all orders the cheapest is
 * looked for, which is what one GB/s costs at least, and all links together are worth what they carry at their prices.
 * What is planted wrong (a packing a little short, a link a little slower than it was, a GPU twice) is noticed.
 */
#include "topo/pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/machines.h"
#include "topo/random_machine.h"
#include "util/check.h"

#define PORTS 2
#define ENDS (8 + PORTS)
#define LINKS 512

/* ---- the judge ---- */

typedef struct judge {
    const rd_graph_t *g;
    rd_pack_kind_t kind;
    int n, ends, end[ENDS]; /* GPUs, then ports */
    rd_graph_path_t path[ENDS][64];
    double price[ENDS][ENDS];
} judge_t;

static bool is_tree(rd_pack_kind_t kind)
{
    return kind == RD_PACK_TREES || kind == RD_PACK_ANY_ROOTS;
}

static int end_of(const judge_t *j, int node)
{
    for (int i = 0; i < j->ends; i++)
        if (j->end[i] == node)
            return i;
    return -1;
}

static void judge_make(judge_t *j, const rd_graph_t *g, rd_pack_kind_t kind)
{
    j->g = g;
    j->kind = kind;
    j->n = g->ngpus;
    j->ends = g->ngpus + g->nnets;
    if (j->n > 8 || g->nnets > PORTS || g->nnodes > 64 || g->nlinks > LINKS)
        exit(1);
    for (int i = 0; i < j->ends; i++) {
        j->end[i] = i < j->n ? g->gpu[i] : g->net[i - j->n];
        (void)rd_graph_paths(g, j->end[i], j->path[i]);
    }
}

/* Adds what a way carries to its links. Returns false if there is no such way. */
static bool carry(const judge_t *j, int from, int to, double gbps, double *load)
{
    if (from < 0 || to < 0 || j->path[from][j->end[to]].way == RD_WAY_NONE)
        return false;
    for (int v = j->end[to]; j->path[from][v].via >= 0; v = j->g->link[j->path[from][v].via].from)
        load[j->path[from][v].via] += gbps;
    return true;
}

/* Is it a port, and the right one? */
static bool are_ports(const judge_t *j, const rd_packed_t *ring)
{
    const int in = end_of(j, ring->net), out = end_of(j, ring->out);

    return in >= j->n && out >= j->n && (in == out || j->kind == RD_PACK_CROSSED);
}

static bool is_ring(const judge_t *j, const rd_packed_t *ring, double *load)
{
    const int first = end_of(j, ring->gpu[0]), last = end_of(j, ring->gpu[j->n - 1]);
    bool valid = true;

    for (int i = 0; i + 1 < j->n && valid; i++)
        valid = carry(j, end_of(j, ring->gpu[i]), end_of(j, ring->gpu[i + 1]), ring->gbps, load);
    if (j->kind == RD_PACK_RINGS)
        return valid && ring->net < 0 && ring->out < 0 && carry(j, last, first, ring->gbps, load);
    return valid && are_ports(j, ring) && carry(j, end_of(j, ring->net), first, ring->gbps, load) &&
           carry(j, last, end_of(j, ring->out), ring->gbps, load);
}

/* Every GPU but the root gets the data from one that has it before. */
static bool is_whole_tree(const judge_t *j, const rd_packed_t *tree, double *load)
{
    unsigned has = 1u << end_of(j, tree->gpu[0]);
    bool valid = tree->above[0] < 0 && (j->kind == RD_PACK_ANY_ROOTS || tree->gpu[0] == j->end[0]);

    for (int i = 1; i < j->n && valid; i++) {
        const int above = end_of(j, tree->above[i]);
        valid = above >= 0 && has & 1u << above && carry(j, above, end_of(j, tree->gpu[i]), tree->gbps, load);
        has |= 1u << end_of(j, tree->gpu[i]);
    }
    return valid;
}

static bool is_valid(const judge_t *j, const rd_packed_t *part, double *load)
{
    unsigned seen = 0;

    for (int i = 0; i < j->n; i++) {
        const int gpu = end_of(j, part->gpu[i]);
        if (gpu < 0 || gpu >= j->n || seen & 1u << gpu)
            return false;
        seen |= 1u << gpu;
    }
    return part->gbps > 0 && (is_tree(j->kind) ? is_whole_tree : is_ring)(j, part, load);
}

/* The cheapest of all orders that go on from a beginning to an end. */
static double cheapest_ring(const judge_t *j, unsigned seen, int last, int stop, double paid)
{
    double best = seen == (1u << j->n) - 1 ? paid + j->price[last][stop] : INFINITY;

    for (int to = 0; to < j->n; to++)
        if (!(seen & 1u << to)) {
            double one = cheapest_ring(j, seen | 1u << to, to, stop, paid + j->price[last][to]);
            best = one < best ? one : best;
        }
    return best;
}

static double cheapest_by_ports(const judge_t *j)
{
    double best = INFINITY;

    for (int in = j->n; in < j->ends; in++)
        for (int out = j->n; out < j->ends; out++)
            if (in == out || j->kind == RD_PACK_CROSSED) {
                double one = cheapest_ring(j, 0, in, out, 0);
                best = one < best ? one : best;
            }
    return best;
}

/* The cheapest tree over a set, taken apart leaf by leaf; from end 0, or from any. */
static double cheapest_tree(const judge_t *j, unsigned set, double *known)
{
    double best = set & (set - 1) ? INFINITY : 0;

    if (known[set] >= 0)
        return known[set];
    for (int leaf = j->kind == RD_PACK_TREES; leaf < j->n && best != 0; leaf++) {
        double hang = INFINITY;
        if (!(set & 1u << leaf))
            continue;
        for (int above = 0; above < j->n; above++)
            if (above != leaf && set & 1u << above && j->price[above][leaf] < hang)
                hang = j->price[above][leaf];
        hang += cheapest_tree(j, set & ~(1u << leaf), known);
        best = hang < best ? hang : best;
    }
    return known[set] = best;
}

static double cheapest(const judge_t *j)
{
    double known[1 << 8];

    for (int i = 0; i < 1 << 8; i++)
        known[i] = -1;
    return is_tree(j->kind)           ? cheapest_tree(j, (1u << j->n) - 1, known)
           : j->kind == RD_PACK_RINGS ? cheapest_ring(j, 1, 0, 0, 0)
                                      : cheapest_by_ports(j);
}

/* What no packing exceeds, if one may charge for links as the packing says. */
static double bound_of(judge_t *j, const rd_pack_t *pack)
{
    double worth = 0;

    for (int l = 0; l < j->g->nlinks; l++) {
        worth += pack->price[l] * j->g->link[l].gbps;
        if (pack->price[l] < 0)
            return INFINITY;
    }
    for (int a = 0; a < j->ends; a++)
        for (int b = 0; b < j->ends; b++) {
            double load[LINKS] = {0};
            j->price[a][b] = a != b && carry(j, a, b, 1, load) ? 0 : INFINITY;
            for (int l = 0; l < j->g->nlinks; l++)
                j->price[a][b] += load[l] * pack->price[l];
        }
    return worth > 0 ? worth / cheapest(j) : INFINITY;
}

/* Returns what is wrong with a packing, or NULL. */
static const char *judged(const rd_graph_t *g, const rd_pack_t *pack, rd_pack_kind_t kind)
{
    static judge_t j;
    double load[LINKS] = {0}, sum = 0;

    judge_make(&j, g, kind);
    for (int i = 0; i < pack->count; i++) {
        if (!is_valid(&j, &pack->part[i], load))
            return "one is not valid";
        sum += pack->part[i].gbps;
    }
    for (int l = 0; l < g->nlinks; l++)
        if (load[l] > g->link[l].gbps * (1 + 1e-9))
            return "a link carries more than it can";
    if (sum < pack->gbps * (1 - 1e-9) || sum > pack->gbps * (1 + 1e-9))
        return "they are not what they carry together";
    return pack->gbps >= (is_tree(kind) ? 0.9 : 0.95) * bound_of(&j, pack) ? NULL : "they might carry more";
}

/* ---- random machines ---- */

/* What is planted must be noticed. */
static void plant(rd_graph_t *g, rd_pack_t *pack, rd_pack_kind_t kind, int trial)
{
    const double part = is_tree(kind) ? 0.88 : 0.93;
    double load[LINKS] = {0};
    static judge_t j;
    int full = -1;

    for (int i = 0; i < pack->count; i++)
        pack->part[i].gbps *= part;
    pack->gbps *= part;
    CHECK(judged(g, pack, kind), "machine %d, kind %d: a shortage is not noticed", trial, kind);
    for (int i = 0; i < pack->count; i++)
        pack->part[i].gbps /= part;
    pack->gbps /= part;
    judge_make(&j, g, kind);
    for (int i = 0; i < pack->count; i++)
        (void)is_valid(&j, &pack->part[i], load);
    for (int l = 0; l < g->nlinks; l++)
        full = load[l] > 0.99 * g->link[l].gbps ? l : full;
    if (full < 0) {
        CHECK(0, "machine %d, kind %d: no link is full", trial, kind);
        return;
    }
    g->link[full].gbps *= 0.98;
    CHECK(judged(g, pack, kind), "machine %d, kind %d: a slower link is not noticed", trial, kind);
    g->link[full].gbps /= 0.98;
    CHECK(!judged(g, pack, kind), "machine %d, kind %d: what was taken back is noticed", trial, kind);
    pack->part[0].gpu[0] = pack->part[0].gpu[1];
    CHECK(judged(g, pack, kind), "machine %d, kind %d: a GPU twice is not noticed", trial, kind);
}

static void try_one(rd_graph_t *g, int trial, rd_pack_kind_t kind, double *least)
{
    rd_pack_t pack;
    static judge_t j;

    if (rd_pack_search(&pack, g, g->gpu, g->ngpus, kind) != RONDO_SUCCESS)
        exit(1);
    const char *wrong = judged(g, &pack, kind);
    judge_make(&j, g, kind);
    const double part = pack.gbps / bound_of(&j, &pack);
    CHECK(!wrong && pack.count > 0, "machine %d of %d GPUs, kind %d: %s: %g GB/s of %g", trial, g->ngpus, kind,
          wrong ? wrong : "none", pack.gbps, bound_of(&j, &pack));
    *least = part < *least ? part : *least;
    if (trial % 50 == 0 && !wrong)
        plant(g, &pack, kind, trial);
    rd_pack_free(&pack);
}

static void random_packs(void)
{
    static const char *const names[] = {"rings", "by ports", "crossed", "trees", "any roots"};
    double least[] = {1, 1, 1, 1, 1};

    random_begin(20261129);
    for (int trial = 0; trial < 10000 && failures < 10; trial++) {
        rd_graph_t g = {0};
        random_machine(&g, trial % 40 == 0 ? 7 + trial / 40 % 2 : 2 + below(5)); /* eight GPUs have 5,040 orders */
        for (rd_pack_kind_t kind = RD_PACK_RINGS; kind <= RD_PACK_ANY_ROOTS; kind++)
            if (g.ngpus < 8 || (kind != RD_PACK_PORTS && kind != RD_PACK_CROSSED)) /* and by ports 40,320 */
                try_one(&g, trial, kind, &least[kind]);
        rd_graph_free(&g);
    }
    for (int kind = 0; kind < 5; kind++)
        printf("%s: at least %.4f of the bound\n", names[kind], least[kind]);
}

/* ---- machines that one knows ---- */

static void machine_is(void (*write)(FILE *), rd_pack_kind_t kind, double gbps, int ports)
{
    FILE *f;
    const char *path = machine_file(&f);
    rd_graph_t g;
    rd_pack_t pack;
    unsigned used = 0;

    write(f);
    fflush(f);
    if (rd_graph_get(&g, path, "RONDO_TOPO_FILE") || rd_pack_search(&pack, &g, g.gpu, g.ngpus, kind)) {
        CHECK(0, "%s", rd_thread_error());
        exit(1);
    }
    CHECK(pack.gbps > gbps * 0.999 && pack.gbps < gbps * 1.001, "kind %d: %g GB/s, not %g", kind, pack.gbps, gbps);
    CHECK(pack.bound >= pack.gbps * (1 - 1e-5) && pack.bound < pack.gbps * 1.001, "bound %g", pack.bound);
    for (int i = 0; i < pack.count; i++)
        for (int k = 0; k < g.nnets; k++)
            used |= pack.part[i].net == g.net[k] ? 1u << k : 0;
    CHECK(__builtin_popcount(used) == ports, "%d ports have rings, not %d", __builtin_popcount(used), ports);
    rd_pack_free(&pack);
    rd_graph_free(&g);
    fclose(f);
}

static void hopper(FILE *f)
{
    machine_nvswitch(f, 1, 8, 90);
}

static void too_many(void)
{
    static const int gpus[72];
    const rd_graph_t none = {0};
    rd_pack_t pack;

    CHECK(rd_pack_serves(13, 0) && !rd_pack_serves(14, 0) && rd_pack_serves(10, 8) && !rd_pack_serves(11, 8));
    rd_log_set_level(RD_LOG_NONE);
    CHECK(rd_pack_search(&pack, &none, gpus, 72, RD_PACK_RINGS) == RONDO_ERR_UNSUPPORTED && !pack.part);
    rd_log_set_level(RD_LOG_WARN);
}

int main(void)
{
    alarm(300);
    random_packs();
    machine_is(machine_dgx1v, RD_PACK_RINGS, 121.5, 0);
    machine_is(machine_dgx1v, RD_PACK_PORTS, 48, 4); /* each port has its rail: 12.5 GB/s behind 12 of PCIe */
    machine_is(machine_dgx1v, RD_PACK_TREES, 121.5, 0);
    machine_is(hopper, RD_PACK_RINGS, 370.8, 0);
    machine_is(hopper, RD_PACK_PORTS, 384, 8);
    machine_is(hopper, RD_PACK_CROSSED, 384, 8);
    machine_is(hopper, RD_PACK_TREES, 370.8, 0);
    machine_is(hopper, RD_PACK_ANY_ROOTS, 370.8 * 8 / 7, 0); /* each GPU gets what the seven others begin */
    machine_is(machine_uneven, RD_PACK_RINGS, 12, 0);
    machine_is(machine_uneven, RD_PACK_PORTS, 3.125, 1);
    too_many();
    return failures != 0;
}
