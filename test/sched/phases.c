/* Phases (sched/phases.h) of every operation, played on symbols: machines of 1x1 to 4x4 ranks and uneven ones, ranks
 * counted node by node and dealt out, every root, in place and not, pieces of scratch, with tables and without. All
 * ranks of a scope come to the same phase, what one gives is what the other takes, nothing is read that was not written
 * or written that is not the operation's, every contribution is scaled once, by a node or by all, and every element
 * that is to be there holds what it should. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sched/model.h"
#include "sched/phases.h"

#define RANKS 16
#define ROOM 8192 /* elements of each buffer, at most */
#define ELEMENT 8

/* An element: which contributions are in it, and whether they are scaled. */
typedef struct {
    uint64_t sum;
    int scaled;
} symbol_t;

typedef struct {
    symbol_t *at[3]; /* RD_IN, RD_OUT, RD_TMP */
    size_t size[3];
    symbol_t *memory;
    rd_hier_t h;
    rd_tables_t tables;
    size_t counts[4][RANKS];
    rd_phases_t phases;
    size_t next;
} rank_t;

typedef struct {
    int nodes, n, node_of[RANKS], sizes[RANKS], local[RANKS][RANKS];
    rd_coll_t coll;
    int root, place; /* 1: in place, 2: a reduce_scatter's output over its input's front */
    bool tabled, fused, holes;
    size_t count, scratch, least;
    rank_t rank[RANKS];
    uint64_t random;
} world_t;

static long runs, ran[RD_NUM_COLLS];
static int failures;

static uint64_t draw(world_t *w, uint64_t below)
{
    return model_mix(w->random++) % below;
}

static bool failed(const world_t *w, const char *why)
{
    if (++failures <= 20) {
        printf("%s, nodes of", rd_coll_name(w->coll));
        for (int m = 0; m < w->nodes; m++)
            printf(" %d", w->sizes[m]);
        printf("%s, root %d, count %zu, place %d, scratch %zu, least %zu%s%s%s: %s\n",
               w->rank[0].h.ordered ? "" : " dealt out", w->root, w->count, w->place, w->scratch, w->least,
               w->tabled ? ", tables" : "", w->holes ? " with holes" : "", w->fused ? ", fused" : "", why);
    }
    return false;
}

/* ---- the operation itself */

static uint64_t name(int rank, size_t i)
{
    return model_mix((uint64_t)rank << 32 | i);
}

/* Does the rank have a block for every rank on this side (0: input)? */
static bool has_all(const world_t *w, int r, int side)
{
    switch (w->coll) {
    case RD_ALLTOALL:
        return true;
    case RD_ALLGATHER:
        return side == 1;
    case RD_REDUCE_SCATTER:
        return side == 0;
    case RD_GATHER:
        return side == 1 && r == w->root;
    case RD_SCATTER:
        return side == 0 && r == w->root;
    default:
        return false;
    }
}

static bool has_none(const world_t *w, int r, int side)
{
    return r != w->root && (((w->coll == RD_REDUCE || w->coll == RD_GATHER) && side == 1) ||
                            ((w->coll == RD_BROADCAST || w->coll == RD_SCATTER) && side == 0));
}

/* Elements of the block of rank r on this side that is for, or of, rank q, and where it lies. */
static size_t block(const world_t *w, int r, int side, int q, size_t *at)
{
    const rank_t *k = &w->rank[r];
    const size_t *counts = k->counts[2 * side], *displs = k->counts[2 * side + 1];

    *at = 0;
    if (has_none(w, r, side))
        return 0;
    if (!has_all(w, r, side))
        return w->tabled ? k->counts[side ? 0 : 2][r] : w->count; /* of the other side's table */
    *at = w->tabled ? displs[q] : (size_t)q * w->count;
    return w->tabled ? counts[q] : w->count;
}

static symbol_t input(int r, size_t i)
{
    return (symbol_t){name(r, i), 0};
}

/* What is to be in element i of the block of rank r's output that is rank q's. */
static symbol_t result(const world_t *w, int r, int q, size_t i)
{
    symbol_t s = {0, 0};
    size_t at;

    switch (w->coll) {
    case RD_ALLREDUCE:
    case RD_REDUCE:
    case RD_REDUCE_SCATTER:
        for (int p = 0; p < w->n; p++) {
            (void)block(w, p, 0, r, &at);
            s.sum += name(p, (w->coll == RD_REDUCE_SCATTER ? at : 0) + i);
        }
        s.scaled = 1;
        return s;
    case RD_BROADCAST:
        return input(w->root, i);
    case RD_SCATTER:
        (void)block(w, w->root, 0, r, &at);
        return input(w->root, at + i);
    case RD_ALLTOALL:
        (void)block(w, q, 0, r, &at);
        return input(q, at + i);
    default:
        return input(q, i);
    }
}

static size_t extent(const world_t *w, int r, int side)
{
    size_t at, end = 0;

    for (int q = 0; q < w->n; q++) {
        size_t count = block(w, r, side, q, &at);
        end = at + count > end ? at + count : end;
    }
    return end;
}

/* ---- phases on symbols */

static int members(const world_t *w, const rank_t *k, rd_scope_t scope, int *list)
{
    int n = 0;

    switch (scope) {
    case RD_SCOPE_NODE:
        memcpy(list, k->h.local, (size_t)k->h.locals * sizeof *list);
        return k->h.locals;
    case RD_SCOPE_RAIL: /* node by node */
        for (int m = 0; m < w->nodes; m++)
            list[n++] = w->rank[w->local[m][0]].h.local[k->h.local_rank];
        return n;
    case RD_SCOPE_ALL:
        for (int r = 0; r < w->n; r++)
            list[n++] = r;
        return n;
    default:
        list[0] = k->h.rank;
        return 1;
    }
}

/* The symbols of a spot; NULL: some lie beyond the buffer. */
static symbol_t *reach(const rank_t *k, rd_spot_t spot, size_t count)
{
    return !count || spot.at + count <= k->size[spot.where] ? k->at[spot.where] + spot.at : NULL;
}

static bool overlap(const symbol_t *a, size_t n, const symbol_t *b, size_t m)
{
    return n && m && a < b + m && b < a + n;
}

/* What kernels and proxies may have in place: what a rank gives to itself lies where it takes it from itself, and other
 * than that nothing that it gives, except where the same block comes back. */
static bool is_apart(const rank_t *k, const rd_phase_t *f, int self, int n)
{
    rd_spot_t from, to, own_from, own_to;
    size_t own = rd_phase_given(f, self, self, &own_from);

    if (f->scope == RD_SCOPE_SELF)
        return true;
    (void)rd_phase_taken(f, self, self, &own_to);
    bool same = own && k->at[own_from.where] + own_from.at == k->at[own_to.where] + own_to.at;
    for (int q = 0; q < n; q++) {
        for (int i = 0; i < n; i++) {
            size_t given = rd_phase_given(f, self, q, &from), taken = rd_phase_taken(f, self, i, &to);
            const symbol_t *a = k->at[from.where] + from.at, *b = k->at[to.where] + to.at;
            if (overlap(a, given, b, taken) && !(same && q == self && i == self) && !(a == b && given == taken))
                return false;
        }
    }
    return true;
}

static bool alike(const rd_phase_t *a, const rd_phase_t *b)
{
    return a->scope == b->scope && a->coll == b->coll && a->root == b->root && a->tabled == b->tabled &&
           (a->tabled || (a->count == b->count && a->gap == b->gap));
}

/* What the phase brings the rank in place `self` of the list, into `got`. */
static bool take(world_t *w, const int *list, int n, int self, symbol_t *got, size_t *used)
{
    const rank_t *k = &w->rank[list[self]];
    const rd_phase_t *f = &k->phases.list[k->next];
    bool sums = rd_coll_reduces(f->coll);
    rd_spot_t from, to;

    for (int i = 0; i < n; i++) {
        const rank_t *giver = &w->rank[list[i]];
        const rd_phase_t *g = &giver->phases.list[giver->next];
        size_t given = rd_phase_given(g, i, self, &from), taken = rd_phase_taken(f, self, i, &to);
        const symbol_t *s = reach(giver, from, given);
        if (!alike(f, g) || given != taken)
            return failed(w, "two ranks of a phase do not agree");
        if (!s || !reach(k, to, taken))
            return failed(w, "a phase goes beyond a buffer");
        for (size_t e = 0; e < taken; e++) {
            symbol_t *sum = &got[*used + e];
            if (sums && !w->fused && s[e].scaled != (f->scope == RD_SCOPE_RAIL))
                return failed(w, "a contribution is not scaled, or twice");
            *sum = sums && i ? (symbol_t){sum->sum + s[e].sum, 1} : (symbol_t){s[e].sum, sums ? 1 : s[e].scaled};
        }
        *used += sums && i < n - 1 ? 0 : taken;
    }
    return is_apart(k, f, self, n) ? true : failed(w, "a phase writes over its input");
}

static void put(rank_t *k, int n, int self, const symbol_t *got)
{
    const rd_phase_t *f = &k->phases.list[k->next];
    rd_spot_t to;

    for (int i = 0; i < n; i++) {
        size_t taken = rd_phase_taken(f, self, i, &to);
        memcpy(k->at[to.where] + to.at, got, taken * sizeof *got);
        got += taken;
        if (rd_coll_reduces(f->coll))
            return;
    }
}

/* If all of its scope are there. 1: it was done, 0: not yet, -1: it is wrong. */
static int run_phase(world_t *w, const rank_t *k)
{
    static symbol_t got[RANKS * ROOM];
    size_t used[RANKS + 1] = {0};
    rd_scope_t scope = k->phases.list[k->next].scope;
    int list[RANKS], n = members(w, k, scope, list);

    for (int i = 0; i < n; i++) {
        const rank_t *other = &w->rank[list[i]];
        if (other->next == other->phases.count || other->phases.list[other->next].scope != scope)
            return 0;
    }
    for (int i = 0; i < n; i++) {
        used[i + 1] = used[i];
        if (!take(w, list, n, i, got, &used[i + 1]))
            return -1;
    }
    for (int i = 0; i < n; i++) {
        put(&w->rank[list[i]], n, i, got + used[i]);
        w->rank[list[i]].next++;
    }
    return 1;
}

static bool run_phases(world_t *w)
{
    bool moved, left;

    do {
        moved = left = false;
        for (int r = 0; r < w->n; r++) {
            rank_t *k = &w->rank[r];
            int done = k->next < k->phases.count ? run_phase(w, k) : 0;
            if (done < 0)
                return false;
            moved |= done != 0;
            left |= k->next < k->phases.count;
        }
    } while (moved);
    return left ? failed(w, "ranks wait for each other") : true;
}

/* ---- before and after */

static void fill(world_t *w, rank_t *k)
{
    size_t in = extent(w, k->h.rank, 0), out = extent(w, k->h.rank, 1), at = 0;
    bool has = !has_none(w, k->h.rank, 0) && !has_none(w, k->h.rank, 1);

    k->memory = malloc((in + out + w->scratch / ELEMENT + 1) * sizeof *k->memory);
    for (size_t i = 0; i < in + out + w->scratch / ELEMENT; i++)
        k->memory[i] = (symbol_t){model_mix(i ^ UINT64_C(0x5eed)), 7};
    k->at[RD_IN] = k->memory;
    k->at[RD_OUT] = k->memory + in;
    k->at[RD_TMP] = k->memory + in + out;
    if (w->place && has && in <= out) { /* the input lies in the output, at its own block */
        if (w->coll != RD_ALLTOALL)
            (void)block(w, k->h.rank, 1, k->h.rank, &at);
        k->at[RD_IN] = k->at[RD_OUT] + at;
    } else if (w->place && has) {
        (void)block(w, k->h.rank, 0, k->h.rank, &at);
        k->at[RD_OUT] = k->at[RD_IN] + (w->place == 2 ? 0 : at);
        k->h.bounce = w->place == 2 && at;
    }
    k->size[RD_IN] = in;
    k->size[RD_OUT] = k->h.bounce ? in : out;
    k->size[RD_TMP] = w->scratch / ELEMENT;
    for (size_t i = 0; i < in; i++)
        k->at[RD_IN][i] = input(k->h.rank, i);
}

static bool verify(world_t *w, const rank_t *k)
{
    size_t in = extent(w, k->h.rank, 0), out = extent(w, k->h.rank, 1), at;
    bool *written = calloc(out + 1, sizeof *written), right = true;

    for (int q = 0; q < w->n; q++) {
        size_t count = block(w, k->h.rank, 1, q, &at);
        for (size_t i = 0; i < count && right; i++) {
            symbol_t want = result(w, k->h.rank, q, i), have = k->at[RD_OUT][at + i];
            written[at + i] = true;
            if (want.sum != have.sum || want.scaled != have.scaled)
                right = failed(w, "a wrong result");
        }
        if (!has_all(w, k->h.rank, 1))
            break;
    }
    for (size_t i = 0; i < in && right && !w->place; i++)
        if (k->at[RD_IN][i].sum != name(k->h.rank, i))
            right = failed(w, "the input was written");
    for (size_t i = 0; i < out && right && !w->place; i++)
        if (!written[i] && k->at[RD_OUT][i].scaled != 7)
            right = failed(w, "what lies between blocks was written");
    free(written);
    return right;
}

/* ---- ranks and tables */

static void tables_make(world_t *w)
{
    for (int r = 0; r < w->n; r++)
        for (int q = 0; q < w->n; q++) /* what r gives to q, or everybody's alike */
            w->rank[r].counts[0][q] = r && w->coll != RD_ALLTOALL ? w->rank[0].counts[0][q]
                                      : draw(w, 4)                ? draw(w, w->count + 1)
                                                                  : 0;
    for (int r = 0; r < w->n; r++) {
        rank_t *k = &w->rank[r];
        for (int q = 0; q < w->n; q++)
            k->counts[2][q] = w->coll == RD_ALLTOALL ? w->rank[q].counts[0][r] : k->counts[0][q];
        for (int side = 0; side < 2; side++) {
            size_t at = 0;
            for (int q = 0; q < w->n; q++) {
                k->counts[2 * side + 1][q] = at;
                at += k->counts[2 * side][q] + (w->holes ? (size_t)q % 3 : 0);
            }
        }
        k->tables = (rd_tables_t){k->counts[0], k->counts[1], k->counts[2], k->counts[3]};
        if (w->coll == RD_ALLGATHER)
            k->tables.in_counts = k->tables.in_displs = NULL;
        if (w->coll == RD_REDUCE_SCATTER)
            k->tables.out_counts = k->tables.out_displs = k->tables.in_displs = NULL;
    }
}

/* As the entry of a call has it: what all have in common. */
static size_t asked(const world_t *w)
{
    size_t sum = 0;

    for (int q = 0; q < w->n; q++)
        sum += w->rank[0].counts[0][q];
    return !w->tabled ? w->count : w->coll == RD_ALLTOALL ? 0 : sum;
}

static void ranks_make(world_t *w)
{
    int fewest = RANKS, most = 0, before = 0;
    bool ordered = true, rotates = w->fused && (w->coll == RD_BROADCAST || w->coll == RD_REDUCE);

    for (int m = 0; m < w->nodes; m++) {
        fewest = w->sizes[m] < fewest ? w->sizes[m] : fewest;
        most = w->sizes[m] > most ? w->sizes[m] : most;
        for (int r = 0, i = 0; r < w->n; r++)
            if (w->node_of[r] == m)
                w->local[m][i++] = r;
    }
    for (int r = 1; r < w->n; r++)
        ordered &= w->node_of[r] >= w->node_of[r - 1];
    for (int i = 0; i < w->sizes[w->node_of[w->root]]; i++)
        before += w->local[w->node_of[w->root]][i] < w->root;
    for (int i = 0; rotates && i < before; i++) { /* on its node the root comes first, and the others as they follow */
        int *local = w->local[w->node_of[w->root]], size = w->sizes[w->node_of[w->root]], first = local[0];
        memmove(local, local + 1, (size_t)(size - 1) * sizeof *local);
        local[size - 1] = first;
    }
    for (int r = 0; r < w->n; r++) {
        int m = w->node_of[r], local_rank = 0;
        while (w->local[m][local_rank] != r)
            local_rank++;
        w->rank[r].h = (rd_hier_t){w->node_of,
                                   w->n,
                                   w->nodes,
                                   w->local[m],
                                   w->sizes[m],
                                   r,
                                   m,
                                   local_rank,
                                   fewest,
                                   fewest == most,
                                   ordered,
                                   w->coll,
                                   w->root,
                                   rotates ? 0 : before,
                                   asked(w),
                                   w->tabled ? &w->rank[r].tables : NULL,
                                   false,
                                   w->fused,
                                   fewest - 1,
                                   ELEMENT,
                                   w->scratch,
                                   w->least,
                                   (size_t)1 << 20};
    }
}

static size_t kernels(const rank_t *k)
{
    size_t n = 0;

    for (size_t i = 0; i < k->phases.count; i++)
        n += k->phases.list[i].scope == RD_SCOPE_NODE;
    return n;
}

static bool run_all(world_t *w)
{
    for (int r = 0; r < w->n; r++) {
        rank_t *k = &w->rank[r];
        k->next = 0;
        fill(w, k);
        if (rd_hier_phases(&k->h, &k->phases) != 0)
            return failed(w, "no memory");
        if (kernels(k) > rd_hier_launches(&k->h))
            return failed(w, "more phases inside a node than were promised");
    }
    if (!run_phases(w))
        return false;
    for (int r = 0; r < w->n; r++)
        if (!verify(w, &w->rank[r]))
            return false;
    return true;
}

static void run(world_t *w)
{
    if (w->tabled)
        tables_make(w);
    ranks_make(w);
    bool serves = rd_hier_serves(&w->rank[0].h);
    for (int r = 1; r < w->n; r++)
        if (rd_hier_serves(&w->rank[r].h) != serves)
            (void)failed(w, "ranks do not agree whether phases serve");
    if (!serves)
        return;
    runs++;
    ran[w->coll]++;
    (void)run_all(w);
    for (int r = 0; r < w->n; r++) {
        rd_phases_free(&w->rank[r].phases);
        free(w->rank[r].memory);
        w->rank[r].memory = NULL;
    }
}

/* ---- all of it */

static bool has_tables(rd_coll_t coll)
{
    return coll == RD_ALLGATHER || coll == RD_REDUCE_SCATTER || coll == RD_ALLTOALL;
}

static void run_places(world_t *w)
{
    int places = w->coll == RD_REDUCE_SCATTER ? 3 : w->coll == RD_ALLTOALL && w->tabled ? 1 : 2;

    for (w->place = 0; w->place < places; w->place++)
        for (int small = 0; small < (w->fused ? 1 : 2); small++) { /* fused, scratch is not by elements */
            w->scratch = small ? (size_t)(400 + 256 * w->nodes) * (size_t)w->nodes : (size_t)1 << 14;
            w->least = 0;
            run(w);
            w->least = 8 * draw(w, 200);
            run(w);
        }
}

static void run_coll(world_t *w)
{
    static const size_t counts[] = {1, 2, 5, 16, 67, 301};
    bool rooted = model_rooted(w->coll) || w->coll == RD_GATHER || w->coll == RD_SCATTER;

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        w->count = counts[i];
        for (w->root = 0; w->root < (rooted ? w->n : 1); w->root++) {
            w->tabled = w->holes = w->fused = false;
            run_places(w);
            w->fused = w->coll == RD_ALLREDUCE || w->coll == RD_BROADCAST || w->coll == RD_ALLGATHER;
            if (w->fused)
                run_places(w);
            w->fused = false;
            w->tabled = has_tables(w->coll);
            if (w->tabled)
                run_places(w);
            w->holes = w->tabled && w->coll != RD_REDUCE_SCATTER;
            if (w->holes)
                run_places(w);
        }
        w->root = 0;
    }
}

/* `by`: ranks are dealt out to the nodes, so many at a time. */
static void machine(const int *sizes, int nodes, int by)
{
    static world_t w;
    int left[RANKS], all = 0;

    memset(&w, 0, sizeof w);
    w.nodes = nodes;
    for (int m = 0; m < nodes; m++)
        left[m] = w.sizes[m] = sizes[m];
    for (int m = 0; m < nodes; m++)
        all += sizes[m];
    for (int m = 0; w.n < all; m = (m + 1) % nodes)
        for (int k = 0; k < by && left[m] > 0; k++, left[m]--)
            w.node_of[w.n++] = m;
    for (int coll = 0; coll < RD_BARRIER; coll++) {
        w.coll = (rd_coll_t)coll;
        run_coll(&w);
    }
}

int main(void)
{
    static const int uneven[][5] = {{2, 2, 1},    {2, 1, 2},    {2, 3, 1}, {2, 1, 3},    {2, 4, 2},
                                    {3, 2, 1, 3}, {3, 4, 4, 2}, {2, 5, 2}, {3, 2, 3, 2}, {4, 4, 3, 2, 3}};

    alarm(200);
    for (int nodes = 1; nodes <= 4; nodes++)
        for (int size = 1; size <= 4; size++) {
            const int sizes[] = {size, size, size, size};
            machine(sizes, nodes, size);
            if (nodes > 1 && size > 1)
                machine(sizes, nodes, 1);
        }
    for (size_t i = 0; i < sizeof uneven / sizeof uneven[0]; i++) {
        machine(uneven[i] + 1, uneven[i][0], RANKS);
        machine(uneven[i] + 1, uneven[i][0], 1);
    }
    for (int coll = 0; coll < RD_BARRIER; coll++)
        if (!ran[coll])
            failures++;
    printf("%ld runs, %d failures\n", runs, failures);
    return failures > 0;
}
