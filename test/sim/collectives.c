/* The CUDA kernels of collectives, run by the machine of test/sim: every algorithm, protocol and operation at 2 to 16
 * ranks, every type and operator, on sizes around the ends of tiles and passes, in place and not, aligned to elements
 * only; several operations in a row, of different kinds and roots, that take the banks in turns while ranks run ahead
 * of each other. Results are compared bit by bit with the host's reducers; windows must be at rest in the end.
 *
 * Short operations and chains are launched together or one by one, as each rank draws for itself, among some that take
 * whole banks, until the cells of the banks, and the slots of fifos, have come round.
 *
 *   collectives [seed [rounds [ranks]]]   one seed gives one run; 1 round: a further one has other sizes, roots and
 *                                         types; of so many ranks at most, and less of everything */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/table.h"
#include "sched/algo/algos.h"
#include "sim/world.h"
#include "base/types.h"

#define BANK (1u << 16)

static const struct shape {
    const rd_algo_t *algo;
    rd_proto_t proto;
    rd_coll_t coll;
} shapes[] = {
    {&rd_algo_oneshot, RD_PROTO_LL, RD_ALLREDUCE},
    {&rd_algo_oneshot, RD_PROTO_LL, RD_REDUCE},
    {&rd_algo_oneshot, RD_PROTO_LL, RD_REDUCE_SCATTER},
    {&rd_algo_oneshot, RD_PROTO_LL128, RD_ALLREDUCE},
    {&rd_algo_oneshot, RD_PROTO_LL128, RD_REDUCE},
    {&rd_algo_oneshot, RD_PROTO_LL128, RD_REDUCE_SCATTER},
    {&rd_algo_oneshot, RD_PROTO_SENTINEL, RD_ALLREDUCE},
    {&rd_algo_oneshot, RD_PROTO_SENTINEL, RD_REDUCE},
    {&rd_algo_oneshot, RD_PROTO_SENTINEL, RD_REDUCE_SCATTER},
    {&rd_algo_oneshot, RD_PROTO_LL, RD_ALLGATHER},
    {&rd_algo_oneshot, RD_PROTO_LL, RD_BROADCAST},
    {&rd_algo_oneshot, RD_PROTO_LL, RD_ALLTOALL},
    {&rd_algo_oneshot, RD_PROTO_LL, RD_GATHER},
    {&rd_algo_oneshot, RD_PROTO_LL, RD_SCATTER},
    {&rd_algo_oneshot, RD_PROTO_LL128, RD_ALLGATHER},
    {&rd_algo_oneshot, RD_PROTO_LL128, RD_BROADCAST},
    {&rd_algo_oneshot, RD_PROTO_LL128, RD_ALLTOALL},
    {&rd_algo_oneshot, RD_PROTO_LL128, RD_GATHER},
    {&rd_algo_oneshot, RD_PROTO_LL128, RD_SCATTER},
    {&rd_algo_twoshot, RD_PROTO_LL128, RD_ALLREDUCE},
    {&rd_algo_twoshot, RD_PROTO_SENTINEL, RD_ALLREDUCE},
    {&rd_algo_twoshot, RD_PROTO_LL128, RD_REDUCE},
    {&rd_algo_twoshot, RD_PROTO_SENTINEL, RD_REDUCE},
    {&rd_algo_twoshot, RD_PROTO_LL128, RD_BROADCAST},
    {&rd_algo_ring, RD_PROTO_LL, RD_ALLREDUCE},
    {&rd_algo_ring, RD_PROTO_LL, RD_REDUCE_SCATTER},
    {&rd_algo_ring, RD_PROTO_LL, RD_ALLGATHER},
    {&rd_algo_ring, RD_PROTO_LL128, RD_ALLREDUCE},
    {&rd_algo_ring, RD_PROTO_SENTINEL, RD_ALLREDUCE},
    {&rd_algo_ring, RD_PROTO_LL128, RD_REDUCE_SCATTER},
    {&rd_algo_ring, RD_PROTO_SENTINEL, RD_REDUCE_SCATTER},
    {&rd_algo_ring, RD_PROTO_LL128, RD_ALLGATHER},
    {&rd_algo_ring, RD_PROTO_SENTINEL, RD_ALLGATHER},
    {&rd_algo_chain, RD_PROTO_LL, RD_REDUCE},
    {&rd_algo_chain, RD_PROTO_LL, RD_BROADCAST},
    {&rd_algo_chain, RD_PROTO_LL128, RD_REDUCE},
    {&rd_algo_chain, RD_PROTO_LL128, RD_BROADCAST},
    {&rd_algo_tree, RD_PROTO_LL128, RD_ALLREDUCE},
    {&rd_algo_tree, RD_PROTO_LL128, RD_REDUCE},
    {&rd_algo_tree, RD_PROTO_LL128, RD_BROADCAST},
    {&rd_algo_tree, RD_PROTO_LL, RD_ALLREDUCE},
    {&rd_algo_tree, RD_PROTO_LL, RD_BROADCAST},
    {&rd_algo_pat, RD_PROTO_LL128, RD_ALLREDUCE},
    {&rd_algo_pat, RD_PROTO_LL128, RD_REDUCE_SCATTER},
    {&rd_algo_pat, RD_PROTO_LL128, RD_ALLGATHER},
    {&rd_algo_pat, RD_PROTO_LL, RD_REDUCE_SCATTER},
    {&rd_algo_rd, RD_PROTO_LL128, RD_ALLREDUCE},
    {&rd_algo_rd, RD_PROTO_LL, RD_ALLREDUCE},
    {&rd_algo_binomial, RD_PROTO_LL128, RD_REDUCE},
    {&rd_algo_binomial, RD_PROTO_LL128, RD_BROADCAST},
    {&rd_algo_binomial, RD_PROTO_LL128, RD_GATHER},
    {&rd_algo_binomial, RD_PROTO_LL, RD_SCATTER},
    {&rd_algo_ring, RD_PROTO_SIMPLE, RD_ALLREDUCE},
    {&rd_algo_ring, RD_PROTO_SIMPLE, RD_REDUCE_SCATTER},
    {&rd_algo_ring, RD_PROTO_SIMPLE, RD_ALLGATHER},
    {&rd_algo_chain, RD_PROTO_SIMPLE, RD_REDUCE},
    {&rd_algo_chain, RD_PROTO_SIMPLE, RD_BROADCAST},
};
#define SHAPES (sizeof shapes / sizeof *shapes)

/* Fifos have one proto of a communicator, which is not LL128 where GPUs do not reach each other. */
static int fits(const world_t *w, const struct shape *s)
{
    if ((s->algo == &rd_algo_chain || rd_algo_is_program(s->algo)) && s->proto != RD_PROTO_SIMPLE)
        return s->proto == w->fifo_proto;
    return !w->host_windows || s->proto != RD_PROTO_LL128;
}

/* Where the walk through (type, operator, scaled) stands, so that all come in turn whatever is drawn. */
typedef struct walk {
    int type, op, scaled;
} walk_t;

static int scalable(int type)
{
    return rd_op_valid(RONDO_SUM, (rondo_type_t)type);
}

/* As rd_cuda_op does. */
static void set_narrow(op_plan_t *p, int type, int scaled)
{
    int narrow = scaled && rd_coll_reduces((rd_coll_t)p->launch.coll) && type >= RONDO_FLOAT16 &&
                 type <= RONDO_FLOAT8_E5M2 && rondo_type_size((rondo_type_t)type) < 4;

    p->launch.narrow = narrow ? (uint32_t)type : 0;
    p->launch.type = narrow ? RONDO_FLOAT32 : (uint32_t)type;
}

static int by_element(int type)
{
    return type <= RONDO_UINT64 || type == RONDO_BOOL || type == RONDO_COMPLEX64 || type == RONDO_COMPLEX128;
}

/* The next one that there is a kernel for: all built-in operators of a type, then PREMULSUM with a scalar in the
 * argument and with one in memory. */
static void next_number(walk_t *at, op_plan_t *p)
{
    do {
        if (++at->scaled > 2 || at->op < RONDO_NUM_OPS) {
            at->scaled = 0;
            if (++at->op > RONDO_NUM_OPS) {
                at->op = 0;
                at->type = (at->type + 1) % RONDO_NUM_TYPES;
            }
        }
        set_narrow(p, at->type, at->op == RONDO_AVG || at->op == RONDO_NUM_OPS);
        p->launch.op = at->op < RONDO_NUM_OPS ? (uint32_t)at->op : RONDO_SUM;
    } while (!(at->op < RONDO_NUM_OPS ? rd_op_valid(at->op, (rondo_type_t)at->type) : scalable(at->type)) ||
             !rd_kernel_find(&p->launch, 1));
    p->scaled = RD_KSCALE_NONE;
    p->device_scale = 0;
    if (at->op == RONDO_NUM_OPS) {
        p->scaled = by_element(at->type) ? RD_KSCALE_ELEMENT : RD_KSCALE_REAL;
        p->device_scale = at->scaled == 1;
    } else if (at->op == RONDO_AVG && at->type >= RONDO_FLOAT16) {
        p->scaled = RD_KSCALE_REAL;
    }
}

/* Chunks that the whole of an operation is cut in; of blocks, one is looked at. */
static uint64_t chunks_of(const world_t *w, const rd_klaunch_t *l)
{
    if (l->algo == &rd_algo_tree)
        return 2;
    return l->coll != RD_ALLREDUCE || l->algo == &rd_algo_oneshot || l->algo == &rd_algo_rd ? 1 : (uint64_t)w->n;
}

static uint32_t most_passes(const world_t *w, const op_plan_t *p)
{
    uint32_t most = rd_kernel_passes(p->launch.algo, p->launch.coll);

    if (most < 4)
        return most;
    if (rd_algo_is_program(p->launch.algo)) /* fifos come round, and it does not last too long */
        return 3 * RD_KSLOTS / (uint32_t)w->n;
    if (p->slice == RD_KSLICE)
        return 2;
    return p->launch.algo == &rd_algo_chain && !p->slice ? 3 * RD_KSLOTS : 7;
}

static void draw_size(world_t *w, op_plan_t *p)
{
    const rd_klaunch_t *l = &p->launch;
    uint64_t element = rondo_type_size((rondo_type_t)l->type), tile = rd_kernel_tile(l->algo, l->proto), chunk;

    if (l->proto == RD_PROTO_SIMPLE)
        tile = p->slice = world_draw(w, 8) ? WORLD_SLICE : RD_KSLICE;
    p->tiles =
        1 + world_draw(w, w->n < 5 && l->algo != &rd_algo_tree ? 3 : 2); /* a tree has two fifos of four for one */
    if (l->banks) /* more than one bank has room for, now and then */
        p->tiles = 1 + world_draw(w, 2 * BANK / (uint32_t)rd_kernel_bank(l->algo, l->proto, l->coll, w->n, 1));
    p->passes = 1 + world_draw(w, most_passes(w, p));
    p->count = p->passes * p->tiles * (tile / element) * chunks_of(w, l);
    switch (world_draw(w, 4)) {
    case 0: /* up to the end */
        break;
    case 1: /* a little less */
        p->count -= world_draw(w, 17);
        break;
    case 2:
        p->count = world_draw(w, 40);
        break;
    default:
        p->count = world_draw(w, (uint32_t)p->count);
    }
    chunk = rd_kernel_chunk(l->algo, l->coll, w->n, p->count * element);
    p->passes = (uint32_t)((chunk + p->tiles * tile - 1) / (p->tiles * tile));
    if (p->passes == 0)
        p->passes = 1;
}

/* A few operations, the first of the given shape. */
static int some(world_t *w, const struct shape *shape, walk_t *walks, uint64_t seed, int few)
{
    char text[16384];

    for (int i = 0; i < (w->n < 5 && !few ? 4 : 2); i++) {
        op_plan_t p;
        const struct shape *s = shape;
        while (i > 0 && !fits(w, s = &shapes[world_draw(w, SHAPES)])) {
        }
        memset(&p, 0, sizeof p);
        p.launch.algo = s->algo;
        p.launch.proto = s->proto;
        p.launch.coll = s->coll;
        p.launch.banks =
            s->algo == &rd_algo_ring && s->proto != RD_PROTO_SIMPLE && s->coll == RD_ALLREDUCE && world_draw(w, 2);
        do /* the reference rounds narrow sums of more than eight ranks more than once */
            next_number(&walks[s->proto], &p);
        while (w->n > 8 && rondo_type_size((rondo_type_t)p.launch.type) < 4);
        draw_size(w, &p);
        p.gap = s->coll == RD_REDUCE_SCATTER && p.count % 3 ? p.count % 41 : 0;
        p.root = (int)world_draw(w, (uint32_t)w->n);
        p.in_place = (int)world_draw(w, 2);
        world_add(w, &p);
    }
    if (world_run(w, text, sizeof text) == 0)
        return 0;
    printf("seed %llu, %d ranks: %s", (unsigned long long)seed, w->n, text);
    return -1;
}

/* Every type and operator once, with the kernels that decide at run time in turns. */
static int every_number(uint64_t seed)
{
    static const struct shape in_turns[5] = {{&rd_algo_oneshot, RD_PROTO_LL, RD_ALLREDUCE},
                                             {&rd_algo_twoshot, RD_PROTO_LL128, RD_ALLREDUCE},
                                             {&rd_algo_ring, RD_PROTO_LL128, RD_REDUCE_SCATTER},
                                             {&rd_algo_chain, RD_PROTO_LL128, RD_REDUCE},
                                             {&rd_algo_pat, RD_PROTO_LL128, RD_ALLREDUCE}};
    char text[16384];
    walk_t walk = {0, -1, 0};
    world_t w;
    int bad = 0, last = 0;

    world_begin(&w, 3, 1 + 4 * seed, 1, BANK);
    for (int i = 0; !bad && last <= walk.type; i++) {
        const struct shape *s = &in_turns[i % 5];
        op_plan_t p = {.launch = {s->algo, s->proto, (uint32_t)s->coll, 0, 0, 0, 0}, .tiles = 1, .passes = 1};
        last = walk.type;
        next_number(&walk, &p);
        p.count = 1 + world_draw(&w, 400 / (uint32_t)rondo_type_size((rondo_type_t)p.launch.type));
        p.root = i % 3;
        world_add(&w, &p);
        if (w.ops == 12 || last > walk.type)
            bad = world_run(&w, text, sizeof text);
    }
    if (bad)
        printf("seed %llu, every number: %s", (unsigned long long)seed, text);
    world_end(&w);
    return bad;
}

/* A ring that takes both banks, in one pass and in three, among operations that take one: each must know what the
 * others have used. */
static int both_banks(uint64_t seed, int n)
{
    static const op_plan_t turns[4] = {
        {.launch = {&rd_algo_ring, RD_PROTO_SENTINEL, RD_ALLREDUCE, RONDO_FLOAT32, .banks = 1},
         .tiles = 2,
         .passes = 1},
        {.launch = {&rd_algo_ring, RD_PROTO_LL, RD_ALLREDUCE, RONDO_FLOAT32, .banks = 1}, .tiles = 2, .passes = 3},
        {.launch = {&rd_algo_oneshot, RD_PROTO_LL, RD_ALLGATHER, RONDO_FLOAT32}, .tiles = 4, .passes = 1},
        {.launch = {&rd_algo_ring, RD_PROTO_LL, RD_ALLREDUCE, RONDO_FLOAT32}, .tiles = 2, .passes = 1},
    };
    char text[16384];
    world_t w;

    world_begin(&w, n, seed, 1, BANK);
    for (int i = 0; i < (n > 8 ? 2 : 12); i++) { /* many ranks are slow */
        op_plan_t p = turns[((uint64_t)i + seed) % 2 * 2 + (world_draw(&w, 4) == 0)];
        p.count = p.passes * p.tiles * (rd_kernel_tile(p.launch.algo, p.launch.proto) / 4) * chunks_of(&w, &p.launch);
        world_add(&w, &p);
    }
    int bad = world_run(&w, text, sizeof text);
    if (bad)
        printf("seed %llu, both banks, %d ranks: %s", (unsigned long long)seed, n, text);
    world_end(&w);
    return bad;
}

static int by_chain(const struct shape *s)
{
    return s->algo == &rd_algo_chain && s->proto != RD_PROTO_SIMPLE;
}

/* Mostly short operations and chains, or chains alone; one in `others` is any that takes banks as a whole, if that is
 * not 0. */
static int short_ones(uint64_t seed, int n, int ops, uint32_t others, int chains)
{
    char text[16384];
    walk_t walk = {0, -1, 0};
    world_t w;

    world_begin(&w, n, seed, 4, RD_KCELLS * 4 * 1024 * (uint32_t)n);
    w.fused = WORLD_FUSED_SOME;
    for (int i = 0; i < ops; i++) {
        op_plan_t p;
        const struct shape *s;
        int whole = others && world_draw(&w, others) == 0;
        do
            s = &shapes[world_draw(&w, SHAPES)];
        while (!fits(&w, s) || s->proto == RD_PROTO_SIMPLE ||
               (!whole && !by_chain(s) && (chains || !rd_kernel_by_cells(s->algo, s->coll))));
        memset(&p, 0, sizeof p);
        p.launch.algo = s->algo;
        p.launch.proto = s->proto;
        p.launch.coll = s->coll;
        do
            next_number(&walk, &p);
        while (n > 8 && rondo_type_size((rondo_type_t)p.launch.type) < 4);
        draw_size(&w, &p);
        p.is_short = !whole && !by_chain(s) && p.tiles < 3 &&
                     rd_kernel_bank(s->algo, s->proto, s->coll, n, p.tiles) <= world_cell(&w);
        p.root = (int)world_draw(&w, (uint32_t)n);
        p.in_place = (int)world_draw(&w, 2);
        world_add(&w, &p);
    }
    int bad = world_run(&w, text, sizeof text);
    if (bad)
        printf("seed %llu, short ones, %d ranks: %s", (unsigned long long)seed, n, text);
    world_end(&w);
    return bad;
}

/* Every program of every rank has room: in a launch, in its warp's scratch, and a warp for each track. */
static int program_fits(const rd_algo_t *algo, rd_coll_t coll, int n, int rank, int root)
{
    static rd_kprogram_t p;
    const char *why = rd_kernel_program(algo, (uint32_t)coll, n, rank, root, &p);

    if (!why && p.scratch <= algo->device.scratch && algo->device.scratch <= RD_KT_SCRATCH && p.tracks >= 1 &&
        p.tracks <= rd_kernel_warps(algo, n))
        return 0;
    printf("%s by %s, rank %d of %d, root %d: %s\n", rd_coll_name(coll), algo->name, rank, n, root,
           why ? why : "too many tracks, or too much scratch");
    return -1;
}

static int every_program(void)
{
    int bad = 0;

    for (const rd_algo_t *const *algo = rd_algos; *algo; algo++)
        for (int i = 0; i < RD_NUM_COLLS * (RD_KRANKS + 1); i++) {
            int coll = i % RD_NUM_COLLS, n = i / RD_NUM_COLLS;
            if (n < 2 || !rd_algo_is_program(*algo) || !((*algo)->device.colls & 1u << coll))
                continue;
            for (int k = 0; k < n * n; k++)
                bad |= program_fits(*algo, (rd_coll_t)coll, n, k % n, k / n);
        }
    return bad;
}

int main(int argc, char **argv)
{
    static const int ranks[] = {2, 3, 4, 5, 8};
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    int rounds = argc > 2 ? atoi(argv[2]) : 1, most = argc > 3 ? atoi(argv[3]) : RD_KRANKS, bad = 0;
    walk_t walks[RD_GPU_PROTOS] = {{0, -1, 0}, {0, -1, 0}, {0, -1, 0}, {0, -1, 0}};
    world_t w;

    printf("seed %llu, %d rounds\n", (unsigned long long)seed, rounds);
    bad = every_program() || (most == RD_KRANKS && every_number(seed));
    for (uint64_t i = 0; i < 6 && !bad; i++)
        bad = both_banks(seed + i, 3);
    bad = bad || (most == RD_KRANKS && both_banks(seed, RD_KRANKS));
    for (uint64_t i = 0; i < 4 && !bad; i++)
        bad = short_ones(seed + i, i < 2 ? 2 : 3, most == RD_KRANKS ? WORLD_OPS : 6, i % 2 ? 12 : 0, 0);
    for (uint64_t i = 0; i < 4 && !bad; i++)
        bad = short_ones(seed + i, i < 2 ? 2 : 3, most == RD_KRANKS ? 60 : 6, 0, 1);
    bad = bad || (most == RD_KRANKS && short_ones(seed, 8, 20, 6, 0));
    for (int round = 0; round < rounds && !bad; round++)
        for (size_t n = 0; n < sizeof ranks / sizeof *ranks && ranks[n] <= most && !bad; n++) {
            world_begin(&w, ranks[n], ++seed, 4, BANK);
            for (size_t s = 0; s < SHAPES && !bad; s += ranks[n] < 8 ? 1 : 2) /* many ranks are slow */
                if (fits(&w, &shapes[s]))
                    bad = some(&w, &shapes[s], walks, seed, most < RD_KRANKS);
            world_end(&w);
        }
    for (size_t s = 0; s < SHAPES && most == RD_KRANKS && !bad; s++) {
        if (s > 0 && (!rd_algo_is_program(shapes[s].algo) || shapes[s].coll == shapes[s - 1].coll))
            continue;
        world_begin(&w, RD_KRANKS, ++seed, 4, BANK);
        if (fits(&w, &shapes[s]))
            bad = some(&w, &shapes[s], walks, seed, 0);
        world_end(&w);
    }
    return bad ? 1 : 0;
}
