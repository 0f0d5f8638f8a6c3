/* Which kernel serves a launch, and what it can carry: pure functions, the same answer on every rank. */
#include <rondo.h>

#include "sched/program.h"
#include "kernels/table.h"

#define BIT(coll) (1u << (coll))
#define REDUCING (BIT(RD_ALLREDUCE) | BIT(RD_REDUCE) | BIT(RD_REDUCE_SCATTER))

#define EACH 0 /* as many as ranks */

static const struct {
    unsigned colls;
    uint32_t protos; /* bits */
    uint32_t rows;   /* of 512 bytes in a unit of the sentinel proto */
    uint32_t threads;
    uint32_t units;
    uint32_t warps;    /* of a unit */
    uint32_t channels; /* programs: of any rank of so many as there may be */
    uint32_t places;   /* likewise */
} kinds[RD_K_KINDS] = {
    [RD_K_ONESHOT] = {REDUCING | BIT(RD_ALLGATHER) | BIT(RD_BROADCAST) | BIT(RD_ALLTOALL) | BIT(RD_GATHER) |
                          BIT(RD_SCATTER),
                      7, 1, RD_KT_GROUPS, UINT32_MAX, EACH, 0, 0},
    [RD_K_TWOSHOT] = {BIT(RD_ALLREDUCE) | BIT(RD_REDUCE) | BIT(RD_BROADCAST), 6, 1, RD_KT_GROUPS, UINT32_MAX, EACH, 0, 0},
    [RD_K_RING] = {BIT(RD_ALLREDUCE) | BIT(RD_REDUCE_SCATTER) | BIT(RD_ALLGATHER), 15, 2, RD_KT_RING, UINT32_MAX, 1, 0,
                   0},
    [RD_K_CHAIN] = {BIT(RD_REDUCE) | BIT(RD_BROADCAST), 11, 0, RD_KT_FIFOS, RD_KFIFOS, 1, 0, 0},
    [RD_K_TREE] = {BIT(RD_ALLREDUCE) | BIT(RD_REDUCE) | BIT(RD_BROADCAST), 3, 0, RD_KT_PROGRAM, RD_KFIFOS / 2,
                   RD_KTRACKS, 2, 0},
    [RD_K_PAT] = {BIT(RD_ALLREDUCE) | BIT(RD_REDUCE_SCATTER) | BIT(RD_ALLGATHER), 3, 0, RD_KT_PROGRAM, RD_KFIFOS, 1, 1,
                  RD_KT_PLACES},
    [RD_K_RD] = {BIT(RD_ALLREDUCE), 3, 0, RD_KT_PROGRAM, RD_KFIFOS, 1, 1, 2},
    [RD_K_BINOMIAL] = {BIT(RD_REDUCE) | BIT(RD_BROADCAST) | BIT(RD_GATHER) | BIT(RD_SCATTER), 3, 0, RD_KT_PROGRAM,
                       RD_KFIFOS, 1, 1, 0},
    [RD_K_MESSAGES] = {0, 3, 0, RD_KT_FIFOS, 0, 1, 0, 0},
    [RD_K_COPY] = {0, 0, 0, RD_KT_MEET, 0, 1, 0, 0},
    [RD_K_ALONE] = {0, 0, 0, RD_KT_ALONE, 0, 1, 0, 0},
    [RD_K_WRITE] = {0, 0, 0, RD_KT_ALONE, 0, 1, 0, 0},
    [RD_K_NOTHING] = {0, 0, 0, RD_KT_ALONE, 0, 1, 0, 0},
    [RD_K_STAGED] = {0, 0, 0, RD_KT_ALONE, 0, 1, 0, 0},
    [RD_K_STAGED_MESSAGES] = {0, 0, 0, RD_KT_ALONE, 0, 1, 0, 0},
    [RD_K_STREAMS] = {0, 3, 0, RD_KT_STREAMS, 0, 1, 0, 0},
    [RD_K_MIXED] = {0, 3, 0, RD_KT_FIFOS, 0, 1, 0, 0},
};

static rd_knumber_t number_of(uint32_t type, uint32_t op)
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

/* What is moved only needs no arithmetic, but a sentinel has to know how long a word is. */
static rd_knumber_t number_moved(rd_proto_t proto, uint32_t type)
{
    rd_knumber_t number = number_of(type, RONDO_SUM);

    return proto != RD_PROTO_SENTINEL ? RD_KN_I32 : number < RD_KN_I32 ? number : RD_KN_ANY;
}

/* The fast kernels of floating types have no LL and LL128 everywhere, the one for anything has. */
static const void *in_table(const void *const table[RD_GPU_PROTOS][RD_KN_NUMBERS], rd_proto_t proto,
                            rd_knumber_t number)
{
    return table[proto][number] || proto == RD_PROTO_SENTINEL ? table[proto][number] : table[proto][RD_KN_ANY];
}

const void *rd_kernel_find(const rd_klaunch_t *l, uint32_t passes)
{
    rd_knumber_t number;

    if (l->kind == RD_K_MESSAGES)
        return rd_kernels_messages[l->proto];
    if (l->kind == RD_K_STREAMS)
        return rd_kernels_streams[l->proto];
    if (l->kind == RD_K_MIXED)
        return rd_kernels_mixed[l->proto];
    if (l->kind > RD_K_MESSAGES)
        return l->kind < RD_K_KINDS ? rd_kernels_alone[l->kind - RD_K_COPY] : NULL;
    if (l->coll >= RD_NUM_COLLS || !(kinds[l->kind].colls & BIT(l->coll)) || !(kinds[l->kind].protos & 1u << l->proto))
        return NULL;
    number = REDUCING & BIT(l->coll) ? number_of(l->type, l->op) : number_moved(l->proto, l->type);
    if (l->proto == RD_PROTO_SIMPLE)
        return REDUCING & BIT(l->coll) ? rd_kernels_simple[number] : rd_kernels_simple_move;
    switch (l->kind) {
    case RD_K_ONESHOT:
        return REDUCING & BIT(l->coll) ? in_table(rd_kernels_oneshot, l->proto, number)
                                       : rd_kernels_oneshot_move[l->proto];
    case RD_K_TWOSHOT:
        return l->coll == RD_BROADCAST ? rd_kernels_rooted_broadcast[l->proto]
               : l->coll == RD_REDUCE  ? in_table(rd_kernels_rooted_reduce, l->proto, number)
                                       : in_table(passes == 2 ? rd_kernels_twoshot_ahead : rd_kernels_twoshot,
                                                  l->proto, number);
    case RD_K_RING:
        return !l->banks                  ? in_table(rd_kernels_ring, l->proto, number)
               : l->coll == RD_ALLREDUCE ? in_table(rd_kernels_ring_banks, l->proto, number)
                                         : NULL;
    case RD_K_CHAIN:
        return in_table(rd_kernels_chain, l->proto, number);
    default:
        return in_table(rd_kernels_program, l->proto, number);
    }
}

uint32_t rd_kernel_unit(rd_kkind_t kind, rd_proto_t proto)
{
    uint32_t pieces = kinds[kind].channels ? RD_KT_PIECES : 1;

    if (!(kinds[kind].protos & 1u << proto))
        return 0;
    return proto == RD_PROTO_LL       ? 512 * pieces
           : proto == RD_PROTO_LL128  ? 960 * pieces
           : proto == RD_PROTO_SIMPLE ? RD_KSLICE
                                   : 512 * kinds[kind].rows;
}

/* Bytes of window that a unit takes. */
static uint32_t wire(rd_kkind_t kind, rd_proto_t proto)
{
    return proto == RD_PROTO_SENTINEL ? 512 * kinds[kind].rows : 1024;
}

uint32_t rd_kernel_warps(rd_kkind_t kind, int n)
{
    return kinds[kind].warps == EACH ? (uint32_t)n : kinds[kind].warps;
}

uint32_t rd_kernel_channels(rd_kkind_t kind)
{
    return kinds[kind].channels;
}

uint64_t rd_kernel_chunk(rd_kkind_t kind, uint32_t coll, int n, uint64_t bytes)
{
    if (kind == RD_K_TREE) /* a part for each of the two trees */
        return rd_kchunk(bytes, 2);
    if (kind == RD_K_TWOSHOT && coll != RD_ALLREDUCE) /* the root has none */
        return rd_kchunk(bytes, (uint32_t)n - 1);
    if (coll != RD_ALLREDUCE || (kind != RD_K_TWOSHOT && kind != RD_K_RING && kind != RD_K_PAT))
        return bytes;
    return rd_kchunk(bytes, (uint32_t)n);
}

uint64_t rd_kernel_bank(rd_kkind_t kind, rd_proto_t proto, uint32_t coll, int n, uint32_t units)
{
    uint64_t slots, row = (uint64_t)units * wire(kind, proto);

    if (proto == RD_PROTO_SIMPLE)
        return 0;
    switch (kind) {
    case RD_K_ONESHOT:
        slots = (uint64_t)n;
        break;
    case RD_K_TWOSHOT:
        slots = (coll == RD_ALLREDUCE ? 2 : 1) * (uint64_t)n;
        break;
    case RD_K_RING:
        slots = (coll == RD_ALLREDUCE ? 2 : 1) * (uint64_t)(n - 1);
        break;
    default:
        slots = 0;
    }
    return slots * row;
}

uint32_t rd_kernel_passes(rd_kkind_t kind, uint32_t coll)
{
    unsigned unanswered = BIT(RD_REDUCE) | BIT(RD_BROADCAST) | BIT(RD_GATHER) | BIT(RD_SCATTER);

    return kind == RD_K_ONESHOT && unanswered & BIT(coll) ? 2 : UINT32_MAX;
}

uint32_t rd_kernel_units(rd_kkind_t kind)
{
    return kinds[kind].units;
}

uint32_t rd_kernel_threads(rd_kkind_t kind, rd_proto_t proto)
{
    return proto == RD_PROTO_SIMPLE ? RD_KT_SIMPLE : kinds[kind].threads;
}

_Static_assert(RD_KT_STREAMS == RD_KT_FIFOS * RD_KT_AT_ONCE, "lines find room for as many warps in both");

uint32_t rd_kernel_at_once(void)
{
    return RD_KT_FIFOS / 32 * RD_KT_AT_ONCE;
}

uint32_t rd_kernel_blocks(rd_kkind_t kind, int n, uint32_t units, uint32_t threads)
{
    uint32_t in_block = threads / 32 / rd_kernel_warps(kind, n);

    return (units + in_block - 1) / in_block;
}

/* A power of two of threads and a warp: see proto_simple.cuh. */
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
    uint32_t all = kinds[launch->kind].channels ? RD_KT_FIT_PROGRAM : RD_KT_FIT;
    uint32_t group = 32 * rd_kernel_warps(launch->kind, n), fit = all / group, in_block = fit / parts;
    uint32_t blocks = in_block ? sms : sms / parts, most = kinds[launch->kind].threads / group;

    if (launch->proto == RD_PROTO_SIMPLE && launch->kind <= RD_K_CHAIN) { /* slices hold rows of so many threads */
        narrow_simple(launch, sms, parts);
        return;
    }
    in_block = in_block < most ? in_block : most;
    in_block = in_block ? in_block : 1;
    blocks = blocks ? blocks : 1;
    if (launch->kind == RD_K_CHAIN || launch->kind > RD_K_BINOMIAL ||
        launch->blocks * launch->threads <= blocks * in_block * group)
        return;
    launch->threads = in_block * group;
    launch->blocks = blocks;
}

uint32_t rd_kernel_shared(rd_kkind_t kind, rd_proto_t proto, uint32_t threads)
{
    uint32_t items = proto == RD_PROTO_LL128 ? 2 : 1;

    if (kind == RD_K_STREAMS || kind == RD_K_MIXED) /* where one of a block's threads has read of a place */
        return 16;
    if (kinds[kind].channels)
        return threads / 32 * kinds[kind].places * items * RD_KT_PIECES * 512;
    return kinds[kind].warps == EACH ? threads / 32 * items * 2 * 512 : 0;
}
