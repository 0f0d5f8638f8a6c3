/* Finds the kernel that serves a launch, and how much it can carry. The functions are pure, so all ranks get the same
 * answer. */
#include <rondo.h>

#include "sched/program.h"
#include "kernels/table.h"

#define BIT(coll) (1u << (coll))
#define REDUCING (BIT(RD_ALLREDUCE) | BIT(RD_REDUCE) | BIT(RD_REDUCE_SCATTER))

#define EACH 0 /* as many warps as there are ranks */

#define LINES (1u << RD_PROTO_LL | 1u << RD_PROTO_LL128)
#define SENTINEL (1u << RD_PROTO_SENTINEL)
#define SIMPLE (1u << RD_PROTO_SIMPLE)

/* The properties of each kernel, whichever algorithm it runs. */
static const struct {
    uint32_t protos; /* bits */
    uint32_t rows;   /* rows of 512 bytes in a tile of SENTINEL */
    uint32_t threads;
    uint32_t tiles;
    uint32_t warps; /* that serve a tile; PROGRAM: that serve a lane of its program */
} kernels[RD_NUM_KERNELS] = {
    [RD_KERNEL_ONESHOT] =
        {.protos = LINES | SENTINEL, .rows = 1, .threads = RD_KT_GROUPS, .tiles = UINT32_MAX, .warps = EACH},
    [RD_KERNEL_TWOSHOT] = {.protos = 1u << RD_PROTO_LL128 | SENTINEL,
                           .rows = 1,
                           .threads = RD_KT_GROUPS,
                           .tiles = UINT32_MAX,
                           .warps = EACH},
    [RD_KERNEL_RING] =
        {.protos = LINES | SENTINEL | SIMPLE, .rows = 2, .threads = RD_KT_RING, .tiles = UINT32_MAX, .warps = 1},
    [RD_KERNEL_CHAIN] = {.protos = LINES | SIMPLE, .threads = RD_KT_FIFOS, .tiles = RD_KFIFOS, .warps = 1},
    [RD_KERNEL_PROGRAM] = {.protos = LINES, .threads = RD_KT_PROGRAM, .tiles = RD_KFIFOS, .warps = 1},
    [RD_KERNEL_MESSAGES] = {.protos = LINES, .threads = RD_KT_FIFOS, .warps = 1},
    [RD_KERNEL_COPY] = {.threads = RD_KT_BARRIER, .warps = 1},
    [RD_KERNEL_SINGLE] = {.threads = RD_KT_SINGLE, .warps = 1},
    [RD_KERNEL_WRITE] = {.threads = RD_KT_SINGLE, .warps = 1},
    [RD_KERNEL_NOTHING] = {.threads = RD_KT_SINGLE, .warps = 1},
    [RD_KERNEL_STALL] = {.threads = RD_KT_SINGLE, .warps = 1},
    [RD_KERNEL_PROXIED] = {.threads = RD_KT_SINGLE, .warps = 1},
    [RD_KERNEL_PROXIED_MESSAGES] = {.threads = RD_KT_SINGLE, .warps = 1},
    [RD_KERNEL_PUT] = {.threads = RD_KT_SINGLE, .warps = 1},
    [RD_KERNEL_AWAIT] = {.threads = RD_KAWAITED, .warps = 1},
    [RD_KERNEL_STREAMS] = {.protos = LINES, .threads = RD_KT_STREAMS, .warps = 1},
    [RD_KERNEL_MIXED] = {.protos = LINES, .threads = RD_KT_FIFOS, .warps = 1},
    [RD_KERNEL_FUSED] = {.threads = RD_KT_GROUPS, .warps = EACH},
    [RD_KERNEL_GDR] = {.threads = RD_KT_SINGLE, .warps = 1},
};

static rd_karith_t number_of(uint32_t type, uint32_t op)
{
    if (op == RONDO_SUM || op == RONDO_AVG)
        switch (type) {
        case RONDO_FLOAT16:
            return RD_KN_F16;
        case RONDO_BFLOAT16:
            return RD_KN_BF16;
        case RONDO_FLOAT32:
            return RD_KN_F32;
        case RONDO_FLOAT64:
            return RD_KN_F64;
        default:
            break;
        }
    if (op != RONDO_SUM)
        return RD_KN_ANY;
    switch (type) {
    case RONDO_INT32:
    case RONDO_UINT32:
        return RD_KN_I32;
    case RONDO_INT64:
    case RONDO_UINT64:
        return RD_KN_I64;
    default:
        return RD_KN_ANY;
    }
}

/* Data that is only moved needs no arithmetic, but SENTINEL has to know the length of a word. */
static rd_karith_t number_moved(rd_proto_t proto, uint32_t type)
{
    rd_karith_t number = number_of(type, RONDO_SUM);

    return proto != RD_PROTO_SENTINEL ? RD_KN_I32 : number < RD_KN_I32 ? number : RD_KN_ANY;
}

/* Not all fast kernels of floating types have LL and LL128; the kernel for any type has both. */
static const void *in_table(const void *const table[RD_GPU_PROTOS][RD_KN_NUMBERS], rd_proto_t proto, rd_karith_t number)
{
    return table[proto][number] || proto == RD_PROTO_SENTINEL ? table[proto][number] : table[proto][RD_KN_ANY];
}

/* Finds the kernel of a collective by lines or SENTINEL. */
static const void *find_collective(const rd_klaunch_t *l, uint32_t passes, rd_karith_t number)
{
    switch (l->algo->device.kernel) {
    case RD_KERNEL_ONESHOT:
        return REDUCING & BIT(l->coll) ? in_table(rd_kernels_oneshot, l->proto, number)
                                       : rd_kernels_oneshot_move[l->proto];
    case RD_KERNEL_TWOSHOT:
        return l->coll == RD_BROADCAST ? rd_kernels_rooted_broadcast[l->proto]
               : l->coll == RD_REDUCE
                   ? in_table(rd_kernels_rooted_reduce, l->proto, number)
                   : in_table(passes == 2 ? rd_kernels_twoshot_ahead : rd_kernels_twoshot, l->proto, number);
    case RD_KERNEL_RING:
        return !l->banks                 ? in_table(rd_kernels_ring, l->proto, number)
               : l->coll == RD_ALLREDUCE ? in_table(rd_kernels_ring_banks, l->proto, number)
                                         : NULL;
    case RD_KERNEL_CHAIN:
        return in_table(rd_kernels_chain, l->proto, number);
    default:
        return in_table(rd_kernels_program, l->proto, number);
    }
}

static rd_karith_t number_by(const rd_klaunch_t *l)
{
    return !(REDUCING & BIT(l->coll)) ? number_moved(l->proto, l->type)
           : l->narrow                ? RD_KN_WIDE
                                      : number_of(l->type, l->op);
}

const void *rd_kernel_find(const rd_klaunch_t *l, uint32_t passes)
{
    rd_kernel_t kernel = rd_launch_kernel(l);
    rd_karith_t number;

    if (kernel == RD_KERNEL_MESSAGES)
        return rd_kernels_messages[l->proto];
    if (kernel == RD_KERNEL_STREAMS)
        return rd_kernels_streams[l->proto];
    if (kernel == RD_KERNEL_MIXED)
        return rd_kernels_mixed[l->proto];
    if (kernel == RD_KERNEL_FUSED)
        return rd_kernels_fused;
    if (kernel == RD_KERNEL_GDR)
        return rd_kernels_gdr[number_by(l)];
    if (kernel >= RD_KERNEL_COPY)
        return kernel < RD_NUM_KERNELS ? rd_kernels_single[kernel - RD_KERNEL_COPY] : NULL;
    if (!l->algo || l->coll >= RD_NUM_COLLS || !(l->algo->device.colls & BIT(l->coll)) ||
        !(kernels[kernel].protos & 1u << l->proto))
        return NULL;
    number = number_by(l);
    if (l->proto == RD_PROTO_SIMPLE)
        return REDUCING & BIT(l->coll) ? rd_kernels_simple[number] : rd_kernels_simple_move;
    return find_collective(l, passes, number);
}

bool rd_kernel_by_cells(const rd_algo_t *algo, uint32_t coll)
{
    const rd_kernel_t kernel = algo->device.kernel;

    return kernel == RD_KERNEL_ONESHOT || (kernel == RD_KERNEL_TWOSHOT && coll == RD_ALLREDUCE);
}

/* The arithmetic that decides at run time stands in for those of which rd_fused has none. */
static uint32_t kind_of(const rd_klaunch_t *l)
{
    rd_karith_t number = REDUCING & BIT(l->coll) ? number_by(l) : RD_KN_NUMBERS;
    const bool floats = number <= RD_KN_F32 && l->proto != RD_PROTO_LL128;

    if (l->proto != RD_PROTO_SENTINEL && !floats && number < RD_KN_ANY)
        number = RD_KN_ANY;
    return RD_KKIND((uint32_t)l->proto, (uint32_t)number) |
           (l->algo->device.kernel == RD_KERNEL_TWOSHOT ? RD_KTWOSHOT : 0);
}

static rd_kshort_t short_of(const rd_kreduce_t *r)
{
    return (rd_kshort_t){
        .in = r->in,
        .out = r->out,
        .scale = {r->device_scale ? (uintptr_t)r->device_scale : r->scale[0], r->scale[1]},
        .count = (uint32_t)r->count,
        .coll = (uint8_t)r->coll,
        .type = (uint8_t)r->type,
        .op = (uint8_t)r->op,
        .narrow = (uint8_t)r->narrow,
        .scaled = (uint8_t)(r->scaled | (r->device_scale ? RD_KPOINTED : 0)),
        .root = (uint8_t)r->root,
    };
}

static void fuse_chain(rd_kfused_t *f, const rd_klaunch_t *l, const rd_kreduce_t *r)
{
    rd_kshort_t *s = &f->op[RD_KFUSED - ++f->chains];

    *s = short_of(r);
    s->kind = (uint8_t)RD_KKIND((uint32_t)l->proto, (uint32_t)RD_KN_NUMBERS);
    s->tile = r->tiles & 0xffffff;
    s->pass = r->passes & 0xff;
    f->fifos = f->fifos < r->tiles ? r->tiles : f->fifos;
    if (f->count == 0)
        f->cell = 128; /* of none: any will do */
}

bool rd_kernel_fuse(rd_kfused_t *f, const rd_klaunch_t *l, const rd_kreduce_t *r)
{
    const uint32_t shift = RD_KCELL_SHIFT(r->slice), cells = rd_kernel_cells(r->passes, shift);

    if (f->count + f->chains == RD_KFUSED)
        return false;
    if (l->algo->device.kernel == RD_KERNEL_CHAIN) {
        fuse_chain(f, l, r);
        return true;
    }
    if (f->passes + cells > 2 * RD_KCELLS)
        return false;
    rd_kshort_t *s = &f->op[f->count++];
    *s = short_of(r);
    s->tile = f->tiles & 0xffffff;
    s->pass = f->passes & 0xff;
    s->shift = (uint8_t)shift;
    s->kind = (uint8_t)kind_of(l);
    f->cell = RD_KCELL(r->slice);
    f->tiles += r->passes;
    f->passes += cells;
    return true;
}

bool rd_kernel_chained(const rd_klaunch_t *l, const rd_kreduce_t *r)
{
    return rd_launch_kernel(l) == RD_KERNEL_CHAIN && l->proto != RD_PROTO_SIMPLE && r->passes <= RD_KCHAINED;
}

uint32_t rd_kernel_tile(const rd_algo_t *algo, rd_proto_t proto)
{
    rd_kernel_t kernel = algo->device.kernel;
    uint32_t pieces = rd_algo_is_program(algo) ? RD_KT_PIECES : 1;

    if (!(kernels[kernel].protos & 1u << proto))
        return 0;
    return proto == RD_PROTO_LL       ? 512 * pieces
           : proto == RD_PROTO_LL128  ? 960 * pieces
           : proto == RD_PROTO_SIMPLE ? RD_KSLICE
                                      : 512 * kernels[kernel].rows;
}

/* Returns the bytes of window that a tile takes. */
static uint32_t wire(rd_kernel_t kernel, rd_proto_t proto)
{
    return proto == RD_PROTO_SENTINEL ? 512 * kernels[kernel].rows : 1024;
}

uint32_t rd_kernel_warps(const rd_algo_t *algo, int n)
{
    uint32_t warps = kernels[algo->device.kernel].warps;

    if (rd_algo_is_program(algo))
        return warps * (uint32_t)algo->device.lanes;
    return warps == EACH ? (uint32_t)n : warps;
}

/* As its schedule cuts it. */
static uint64_t program_chunk(const rd_algo_t *algo, rd_coll_t coll, int n, uint64_t bytes)
{
    const rd_count_t count = rd_count(coll, n, 1, n, algo->device.param);
    rd_work_t work = {.chunks = 1};

    if (coll != RD_ALLREDUCE && coll != RD_REDUCE && coll != RD_BROADCAST)
        return bytes;
    (void)rd_algo_work(algo, &count, &work);
    return work.chunks > 1 ? rd_kchunk(bytes, (uint32_t)work.chunks) : bytes;
}

uint64_t rd_kernel_chunk(const rd_algo_t *algo, uint32_t coll, int n, uint64_t bytes)
{
    rd_kernel_t kernel = algo->device.kernel;

    if (kernel == RD_KERNEL_PROGRAM)
        return program_chunk(algo, (rd_coll_t)coll, n, bytes);
    if (kernel == RD_KERNEL_TWOSHOT && coll != RD_ALLREDUCE) /* the root has no chunk */
        return rd_kchunk(bytes, (uint32_t)n - 1);
    if (coll != RD_ALLREDUCE || (kernel != RD_KERNEL_TWOSHOT && kernel != RD_KERNEL_RING))
        return bytes;
    return rd_kchunk(bytes, (uint32_t)n);
}

uint64_t rd_kernel_bank(const rd_algo_t *algo, rd_proto_t proto, uint32_t coll, int n, uint32_t tiles)
{
    rd_kernel_t kernel = algo->device.kernel;
    uint64_t slots, row = (uint64_t)tiles * wire(kernel, proto);

    if (proto == RD_PROTO_SIMPLE)
        return 0;
    switch (kernel) {
    case RD_KERNEL_ONESHOT:
        slots = (uint64_t)n;
        break;
    case RD_KERNEL_TWOSHOT:
        slots = (coll == RD_ALLREDUCE ? 2 : 1) * (uint64_t)n;
        break;
    case RD_KERNEL_RING:
        slots = (coll == RD_ALLREDUCE ? 2 : 1) * (uint64_t)(n - 1);
        break;
    default:
        slots = 0;
    }
    return slots * row;
}

uint32_t rd_kernel_passes(const rd_algo_t *algo, uint32_t coll)
{
    unsigned unanswered = BIT(RD_REDUCE) | BIT(RD_BROADCAST) | BIT(RD_GATHER) | BIT(RD_SCATTER);

    return algo->device.kernel == RD_KERNEL_ONESHOT && unanswered & BIT(coll) ? 2 : UINT32_MAX;
}

uint32_t rd_kernel_tiles(const rd_algo_t *algo)
{
    uint32_t tiles = kernels[algo->device.kernel].tiles;

    return rd_algo_is_program(algo) ? tiles / (uint32_t)algo->device.channels : tiles;
}

uint32_t rd_kernel_threads(rd_kernel_t kernel, rd_proto_t proto)
{
    return proto == RD_PROTO_SIMPLE ? RD_KT_SIMPLE : kernels[kernel].threads;
}

_Static_assert(RD_KT_STREAMS == RD_KT_FIFOS * RD_KT_AT_ONCE, "lines find room for as many warps in both");

uint32_t rd_kernel_at_once(void)
{
    return RD_KT_FIFOS / 32 * RD_KT_AT_ONCE;
}

uint32_t rd_kernel_blocks(const rd_algo_t *algo, int n, uint32_t tiles, uint32_t threads)
{
    uint32_t in_block = threads / 32 / rd_kernel_warps(algo, n);

    return (tiles + in_block - 1) / in_block;
}

/* A block of SIMPLE has a power of two of movers, and one more warp for the clerk: see proto_simple.cuh. */
static void narrow_simple(rd_klaunch_t *launch, uint32_t sms, uint32_t parts)
{
    uint32_t movers = RD_KT_SIMPLE - 32;

    while (movers > 32 && (movers + 32) * parts > RD_KT_FIT_SIMPLE)
        movers /= 2;
    launch->threads = launch->threads < movers + 32 ? launch->threads : movers + 32;
    launch->blocks = launch->blocks < sms ? launch->blocks : sms;
}

void rd_kernel_narrow(rd_klaunch_t *launch, int n, uint32_t sms, uint32_t parts)
{
    rd_kernel_t kernel = rd_launch_kernel(launch);

    if (kernel != RD_KERNEL_FUSED && (!launch->algo || kernel > RD_KERNEL_PROGRAM))
        return;
    if (launch->proto == RD_PROTO_SIMPLE) { /* its slices hold whole rows of 16 bytes a mover */
        narrow_simple(launch, sms, parts);
        return;
    }
    if (kernel == RD_KERNEL_CHAIN || launch->chains) /* fifos have as many warps as were counted for them */
        return;
    uint32_t all = kernel == RD_KERNEL_PROGRAM ? RD_KT_FIT_PROGRAM : RD_KT_FIT;
    uint32_t group = 32 * (kernel == RD_KERNEL_FUSED ? (uint32_t)n : rd_kernel_warps(launch->algo, n));
    uint32_t fit = all / group, in_block = fit / parts;
    uint32_t blocks = in_block ? sms : sms / parts, most = kernels[kernel].threads / group;

    in_block = in_block < most ? in_block : most;
    in_block = in_block ? in_block : 1;
    blocks = blocks ? blocks : 1;
    if (launch->blocks * launch->threads <= blocks * in_block * group)
        return;
    launch->threads = in_block * group;
    launch->blocks = blocks;
}

bool rd_kernel_lets_in(const rd_klaunch_t *launch)
{
    const rd_kernel_t kernel = rd_launch_kernel(launch);
    const bool can = kernel == RD_KERNEL_ONESHOT || kernel == RD_KERNEL_TWOSHOT || kernel == RD_KERNEL_CHAIN ||
                     kernel == RD_KERNEL_MESSAGES;

    return can && launch->proto != RD_PROTO_SIMPLE && launch->blocks * launch->threads <= RD_KT_EARLY;
}

uint32_t rd_kernel_shared(const rd_klaunch_t *launch)
{
    rd_kernel_t kernel = rd_launch_kernel(launch);
    uint32_t items = launch->proto == RD_PROTO_LL128 ? 2 : 1, warps = launch->threads / 32;

    if (kernel == RD_KERNEL_STREAMS ||
        kernel == RD_KERNEL_MIXED) /* for what one thread of a block reads about a slot and passes to the others */
        return 16;
    if (kernel == RD_KERNEL_PROGRAM)
        return warps * (uint32_t)launch->algo->device.scratch * items * RD_KT_PIECES * 512;
    return kernels[kernel].warps == EACH ? warps * items * 2 * 512 : 0;
}
