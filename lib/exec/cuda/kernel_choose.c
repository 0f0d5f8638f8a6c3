/* The choice of a kernel: see kernel_choose.h.
 *
 * A kernel's time is alpha + hops + bytes / bandwidth, by the prices that the ranks have agreed on (cost/prices.h). They rank
 * the candidates; nobody promises them.
 */
#include "exec/cuda/kernel_choose.h"

#include <string.h>

#define UNITS_MOST (1u << 20) /* more than any device holds */

_Static_assert(RD_GPU_KINDS == RD_K_MESSAGES + 1 && RD_GPU_PROTOS == RD_GPU_PROTOS, "a price for each");

/* Through pinned host memory. Reckoned from a link of 40 GB/s and 1.5 us to look at host memory once; nothing of it has
 * been measured. */
static const rd_gpu_price_t prices_apart[RD_K_MESSAGES + 1][RD_GPU_PROTOS] = {
    [RD_K_ONESHOT] = {{6, 0, 20e3, 5}, {0}, {6.5, 0, 40e3, 5}},
    [RD_K_TWOSHOT] = {{0}, {0}, {11, 0, 40e3, 5}},
    [RD_K_RING] = {{7, 4, 20e3, 5}, {0}, {7, 4, 40e3, 5}, {12, 12, 20e3, 0}},
    [RD_K_CHAIN] = {{3, 4, 20e3, 0}, {0}, {0}, {12, 12, 15e3, 0}},
    [RD_K_TREE] = {{4, 5, 20e3, 0}},
    [RD_K_PAT] = {{4, 5, 20e3, 0}},
    [RD_K_RD] = {{4, 5, 20e3, 0}},
    [RD_K_BINOMIAL] = {{4, 5, 20e3, 0}},
    [RD_K_MESSAGES] = {{7, 0, 20e3, 0}, {0}, {0}, {12, 0, 20e3, 0}},
};

/* Two meetings, and copies one behind the other: a broadcast on two H200. Both ways at once the links carry 290 GB/s. */
static const rd_gpu_price_t price_copy = {21, 0, 388e3, 3};

static const char *const kind_names[RD_K_KINDS] = {
    "oneshot", "twoshot", "ring", "chain", "tree", "pat", "rd", "binomial", "messages", "copy",
    "alone", "write", "nothing", "staged", "staged messages", "streams", "mixed"};

const char *rd_kind_name(rd_kkind_t kind)
{
    return kind_names[kind];
}

int rd_kind_parse(const char *name, size_t length, rd_kkind_t *kind)
{
    for (int k = RD_K_ONESHOT; k <= RD_K_COPY; k++) {
        if (strlen(kind_names[k]) == length && memcmp(kind_names[k], name, length) == 0) {
            *kind = (rd_kkind_t)k;
            return 0;
        }
    }
    return -1;
}

static int is_program(rd_kkind_t kind)
{
    return rd_kernel_channels(kind) > 0;
}

/* The same of programs: see doc/algorithms.md. A root's link is the narrow one, whether it sends or receives. */
static void program_traffic(const rd_wanted_t *w, uint32_t n, rd_kkind_t kind, double *bytes, double *hops)
{
    double block = (double)(w->count * w->element), log = 0;

    for (uint32_t p = 1; p < n; p *= 2)
        log++;
    if (kind == RD_K_TREE) { /* an inner rank of one tree sends up and twice down, and up in the other one */
        *hops = w->coll == RD_ALLREDUCE ? 2 * log : log;
        *bytes = w->coll == RD_ALLREDUCE && n > 2 ? 2 * block : block;
    } else if (kind == RD_K_PAT) { /* one block after the other: its rounds send n - 1 messages */
        *hops = w->coll == RD_ALLREDUCE ? 2 * (n - 1.0) : n - 1.0;
        *bytes = w->coll == RD_ALLREDUCE ? block * 2 * (n - 1) / n : block * (n - 1);
    } else if (kind == RD_K_RD) {
        *hops = (n & (n - 1)) == 0 ? log : log + 1;
        *bytes = block * log;
    } else {
        *hops = log;
        *bytes = w->coll == RD_REDUCE || w->coll == RD_BROADCAST ? block * log : block * (n - 1);
    }
}

/* Bytes that the busiest rank sends, and how many steps from rank to rank the longest way of a byte has. */
static void traffic(const rd_wanted_t *w, uint32_t n, rd_kkind_t kind, double *bytes, double *hops)
{
    double block = (double)(w->count * w->element);

    if (is_program(kind)) {
        program_traffic(w, n, kind, bytes, hops);
        return;
    }
    *hops = kind == RD_K_RING ? (w->coll == RD_ALLREDUCE ? 2.0 : 1.0) * (n - 1) : kind == RD_K_CHAIN ? n - 1.0 : 0;
    if (kind == RD_K_CHAIN)
        *bytes = block;
    else if (kind == RD_K_COPY && w->coll == RD_BROADCAST) /* a part to each, then everybody's to everybody */
        *bytes = n == 2 ? block : block * 2 * (n - 1) / n;
    else if (kind == RD_K_TWOSHOT && w->coll != RD_ALLREDUCE)
        *bytes = block;
    else if (kind == RD_K_ONESHOT || w->coll != RD_ALLREDUCE)
        *bytes = block * (n - 1); /* to each peer: the whole, or a block */
    else
        *bytes = block * 2 * (n - 1) / n;
    if (kind == RD_K_ONESHOT && (w->coll == RD_REDUCE || w->coll == RD_GATHER)) /* the root's link is the narrow one */
        *bytes = block * (n - 1);
}

/* Channels of SIMPLE to the next rank: in a ring a block receives and sends at once, and fewer fill the link. Never on more
 * than half of the multiprocessors: then another communicator's grid, which may want a place on as many as there are,
 * fits beside these blocks wherever they are. */
static uint32_t simple_channels(const rd_limits_t *l, rd_kkind_t kind)
{
    uint32_t channels = kind == RD_K_RING ? (l->channels * 3 + 3) / 4 : l->channels, half = (l->blocks + 1) / 2;

    return channels < half ? channels : half;
}

/* The part of the rate that the prices speak of, which was measured with all channels that there may be. Half of them
 * have nine tenths of it; below that it goes by their number. */
static double simple_part(const rd_limits_t *l, rd_kkind_t kind)
{
    const rd_limits_t all = {.channels = RD_KCHANNELS, .blocks = 2 * RD_KCHANNELS};
    double part = 2.0 * simple_channels(l, kind) / simple_channels(&all, kind);

    return part < 1 ? part : 1;
}

/* What the table says, at the rate that there is here. */
static rd_gpu_price_t price(const rd_limits_t *l, rd_kkind_t kind, rd_proto_t proto)
{
    const rd_prices_t *prices = l->prices ? l->prices : rd_prices_builtin(0);
    rd_gpu_price_t p = kind == RD_K_COPY ? price_copy : l->apart ? prices_apart[kind][proto] : prices->gpu[kind][proto];

    if (l->gbps > 0 && !l->apart)
        p.rate *= l->gbps / prices->links;
    if (proto == RD_PROTO_SIMPLE)
        p.rate *= simple_part(l, kind);
    return p;
}

/* Of steps that follow one another and bytes that flow meanwhile: the longer of the two, and a little more where they
 * are nearly alike. So bare rings of eight H200 measure, with 19 % and within 4 %, from 512 KB to 16 MB. */
static double beside(double way, double flow)
{
    double longer = way > flow ? way : flow, part = longer > 0 ? (way + flow - longer) / longer : 0;

    return longer * (1 + 0.19 * part * part * part);
}

static double expected(const rd_wanted_t *w, const rd_limits_t *l, rd_kkind_t kind, rd_proto_t proto, uint32_t passes)
{
    const rd_gpu_price_t p = price(l, kind, proto);
    double bytes, hops;

    traffic(w, l->nranks, kind, &bytes, &hops);
    double way = hops * p.hop, flow = bytes / p.rate;
    if (kind == RD_K_CHAIN || is_program(kind)) { /* few fifos: their warps are what takes the time, not the link */
        double warps = (passes - 1) * p.pass;
        return p.alpha + way + (warps > flow ? warps : flow);
    }
    /* The parts of the second of two passes are there already: by ranks that share an H200 it cost 0.6 us where it had
     * cost 1.9 (two ranks) and 3.7 (four). */
    double pass = kind == RD_K_TWOSHOT && w->coll == RD_ALLREDUCE && passes == 2 ? p.pass / 3 : p.pass;
    return p.alpha + beside(way, flow) + (passes - 1) * pass;
}

static int serves(rd_kkind_t kind, uint32_t coll)
{
    switch (kind) {
    case RD_K_ONESHOT:
        return coll <= RD_SCATTER;
    case RD_K_TWOSHOT:
        return coll == RD_ALLREDUCE || coll == RD_REDUCE || coll == RD_BROADCAST;
    case RD_K_RING:
        return coll == RD_ALLREDUCE || coll == RD_REDUCE_SCATTER || coll == RD_ALLGATHER;
    case RD_K_CHAIN:
        return coll == RD_REDUCE || coll == RD_BROADCAST;
    case RD_K_TREE:
        return coll == RD_ALLREDUCE || coll == RD_REDUCE || coll == RD_BROADCAST;
    case RD_K_PAT:
        return coll == RD_ALLREDUCE || coll == RD_REDUCE_SCATTER || coll == RD_ALLGATHER;
    case RD_K_RD:
        return coll == RD_ALLREDUCE;
    case RD_K_BINOMIAL:
        return coll == RD_REDUCE || coll == RD_BROADCAST || coll == RD_GATHER || coll == RD_SCATTER;
    case RD_K_MESSAGES:
        return coll == RD_BROADCAST || coll == RD_ALLGATHER || (coll >= RD_ALLTOALL && coll <= RD_SCATTER);
    case RD_K_COPY:
        return coll == RD_BROADCAST || coll == RD_ALLGATHER || coll == RD_ALLTOALL;
    default:
        return 0;
    }
}

/* How many threads a block has: as many as spread the units over all blocks that there may be, and no more. */
static uint32_t block_threads(const rd_limits_t *l, rd_kkind_t kind, rd_proto_t proto, uint32_t units)
{
    uint32_t least = 32 * rd_kernel_warps(kind, (int)l->nranks), most = rd_kernel_threads(kind, proto), threads = least;

    if (kind == RD_K_RING || kind == RD_K_CHAIN || is_program(kind))
        threads = most < 128 ? most : 128;
    while (threads + least <= most && rd_kernel_blocks(kind, (int)l->nranks, units, threads) > l->blocks)
        threads += least;
    return threads;
}

/* The most units of a pass that a bank of so many bytes, blocks and kernel allow. */
static uint32_t most_units(const rd_wanted_t *w, const rd_limits_t *l, rd_kkind_t kind, rd_proto_t proto, uint64_t bank)
{
    uint32_t warps = rd_kernel_warps(kind, (int)l->nranks), threads = rd_kernel_threads(kind, proto) / (32 * warps) * 32 * warps;
    uint32_t low = 0, high = rd_kernel_units(kind);

    high = high < UNITS_MOST ? high : UNITS_MOST;
    if (kind == RD_K_CHAIN && high > l->fifos)
        high = l->fifos;
    if (is_program(kind) && high > l->fifos / rd_kernel_channels(kind))
        high = l->fifos / rd_kernel_channels(kind);
    while (low < high) { /* the greatest that fits; both conditions are monotonous */
        uint32_t middle = low + (high - low + 1) / 2;
        int fits = threads && rd_kernel_bank(kind, proto, w->coll, (int)l->nranks, middle) <= bank &&
                   rd_kernel_blocks(kind, (int)l->nranks, middle, threads) <= l->blocks;
        if (fits)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

rd_proto_t rd_fifo_proto(const rd_limits_t *limits)
{
    return limits->apart || limits->split ? RD_PROTO_LL : RD_PROTO_LL128;
}

void rd_limits_way(rd_limits_t *limits, rd_gpu_way_t way)
{
    limits->gbps = way.gbps;
    limits->split = way.near > RD_NEAR_NVLINK && way.near < RD_NEAR_UNKNOWN;
}

uint32_t rd_limits_senders(const rd_limits_t *limits)
{
    return simple_channels(limits, RD_K_MESSAGES);
}

/* Both ends of a message must decide alike: by what all ranks share, and its bytes. From where on is the time by slices
 * at most `spare` percent above that by lines? */
void rd_limits_sliced(rd_limits_t *l, const rd_env_t *env)
{
    const rd_gpu_price_t lines = price(l, RD_K_MESSAGES, rd_fifo_proto(l));
    const rd_gpu_price_t slices = price(l, RD_K_MESSAGES, RD_PROTO_SIMPLE);
    double spare = 1 + env->cuda_spare / 100.0, gain = spare / lines.rate - 1 / slices.rate; /* us a byte */
    double loss = slices.alpha - spare * lines.alpha;

    if (!l->streams || (env->proto[0] && strcmp(env->proto, "simple") != 0))
        l->sliced = UINT64_MAX;
    else if (env->proto[0])
        l->sliced = 1;
    else if (env->cuda_long)
        l->sliced = env->cuda_long;
    else if (gain <= 0)
        l->sliced = UINT64_MAX;
    else
        l->sliced = loss > RD_KSLICE * gain ? (uint64_t)(loss / gain) : RD_KSLICE;
}

static int refuse(const char **why, const char *text)
{
    if (why)
        *why = text;
    return -1;
}

/* SIMPLE: a unit is a slice. All channels have one in each pass, as long as that makes them no shorter than may be. */
static void cut_slices(const rd_limits_t *l, uint64_t chunk, rd_chosen_t *chosen)
{
    uint32_t channels = simple_channels(l, chosen->launch.kind);
    uint64_t passes = (chunk + (uint64_t)channels * l->slice - 1) / ((uint64_t)channels * l->slice);

    passes = passes ? passes : 1;
    uint64_t slice = (chunk + passes * channels - 1) / (passes * channels);
    slice = slice ? (slice + RD_KSLICE - 1) / RD_KSLICE * RD_KSLICE : RD_KSLICE;
    uint64_t units = (chunk + passes * slice - 1) / (passes * slice);
    chosen->passes = (uint32_t)passes;
    chosen->slice = (uint32_t)slice;
    chosen->units = units ? (uint32_t)units : 1;
    chosen->launch.threads = rd_kernel_threads(chosen->launch.kind, RD_PROTO_SIMPLE);
    chosen->launch.blocks = chosen->units;
}

int rd_kchoose_one(const rd_wanted_t *w, const rd_limits_t *l, rd_kkind_t kind, rd_proto_t proto, rd_chosen_t *chosen,
                  const char **why)
{
    uint64_t bytes = w->count * w->element;

    if (!serves(kind, w->coll))
        return refuse(why, "does not do this operation");
    memset(chosen, 0, sizeof *chosen);
    chosen->launch = (rd_klaunch_t){kind, proto, w->coll, w->type, w->op, 0, 0, 0};
    if (l->apart && proto == RD_PROTO_LL128)
        return refuse(why, "lines of 128 bytes arrive in parts in host memory");
    if (l->split && proto == RD_PROTO_LL128)
        return refuse(why, "over PCIe a line of 128 bytes may arrive in parts");
    if ((kind == RD_K_MESSAGES || kind == RD_K_CHAIN || is_program(kind)) && proto != RD_PROTO_SIMPLE &&
        proto != rd_fifo_proto(l))
        return refuse(why, "fifos have one protocol: ll128, or ll over PCIe and through host memory");
    if (kind == RD_K_MESSAGES) {
        if (proto == RD_PROTO_SIMPLE && !l->streams)
            return refuse(why, "no room for a block of each direction for every peer");
        if ((bytes >= l->sliced) != (proto == RD_PROTO_SIMPLE))
            return refuse(why, bytes >= l->sliced ? "messages of this length go by simple"
                                                  : "messages of this length go by lines");
        chosen->us = expected(w, l, kind, proto, 1);
        return 0;
    }
    if (kind == RD_K_COPY && !l->copies)
        return refuse(why, "ranks must be processes of their own, on one node, whose GPUs reach each other");
    if (kind == RD_K_COPY && proto != RD_PROTO_LL)
        return refuse(why, "it has one protocol");
    if (kind == RD_K_COPY) {
        chosen->passes = chosen->units = chosen->launch.blocks = 1;
        chosen->launch.threads = 32 * l->nranks;
        chosen->us = expected(w, l, kind, proto, l->nranks - 1);
        return 0;
    }
    uint32_t unit = rd_kernel_unit(kind, proto);
    if (!unit || !rd_kernel_find(&chosen->launch, 1))
        return refuse(why, "this protocol does not serve this operation and type");
    if (proto == RD_PROTO_SENTINEL && !rd_coll_reduces((rd_coll_t)w->coll))
        return refuse(why, "what is only moved must arrive bit by bit, and this protocol changes one NaN");
    uint64_t chunk = rd_kernel_chunk(kind, w->coll, (int)l->nranks, bytes), total = (chunk + unit - 1) / unit;
    if (proto == RD_PROTO_SIMPLE) {
        cut_slices(l, chunk, chosen);
        chosen->us = expected(w, l, kind, proto, chosen->passes);
        return 0;
    }
    uint64_t most = most_units(w, l, kind, proto, l->bank);
    if (most == 0)
        return refuse(why, "the bank, the fifos or the blocks do not suffice");
    uint64_t passes = total ? (total + most - 1) / most : 1;
    if (kind == RD_K_RING && w->coll == RD_ALLREDUCE && passes > 1) {
        uint64_t both = most_units(w, l, kind, proto, 2 * (uint64_t)l->bank), fewer = (total + both - 1) / both;
        chosen->launch.banks = 4 * fewer <= 3 * passes; /* for less it is not worth its fences */
        passes = chosen->launch.banks ? fewer : passes;
    }
    if (passes > rd_kernel_passes(kind, w->coll))
        return refuse(why, "too long for it");
    chosen->passes = (uint32_t)passes;
    chosen->units = total ? (uint32_t)((total + passes - 1) / passes) : 1;
    chosen->launch.threads = block_threads(l, kind, proto, chosen->units);
    chosen->launch.blocks = rd_kernel_blocks(kind, (int)l->nranks, chosen->units, chosen->launch.threads);
    chosen->us = expected(w, l, kind, proto, chosen->passes);
    return 0;
}

rondo_result_t rd_kchoose_names(const rd_env_t *env, rd_who_t *who)
{
    rd_kkind_t kind;

    for (const char *p = env->algo; *p; p += strcspn(p, ","), p += *p == ',') {
        size_t n = strcspn(p, ","), skip = strcspn(p, "=,");
        skip = skip < n ? skip + 1 : 0;
        if (rd_kind_parse(p + skip, n - skip, &kind) != 0)
            return rd_error(who, RONDO_ERR_INVALID_ARGUMENT,
                            "RONDO_ALGO=%s: on CUDA there is no algorithm \"%.*s\"; there are oneshot, twoshot, ring, "
                            "chain, tree, pat, rd, binomial, messages, copy",
                            env->algo, (int)(n - skip), p + skip);
    }
    if (env->proto[0] && strcmp(env->proto, "ll") != 0 && strcmp(env->proto, "ll128") != 0 &&
        strcmp(env->proto, "sentinel") != 0 && strcmp(env->proto, "simple") != 0)
        return rd_error(who, RONDO_ERR_INVALID_ARGUMENT,
                        "RONDO_PROTO=%s: on CUDA there are ll, ll128, sentinel and simple", env->proto);
    return RONDO_SUCCESS;
}

/* "ring" speaks of every operation but the barrier, "allreduce=ring,broadcast=chain" of those that it names. 1: forced. */
static int kind_forced(const rd_env_t *env, uint32_t coll, rd_kkind_t *kind)
{
    const char *name = rd_coll_name((rd_coll_t)coll);
    int forced = 0;

    for (const char *p = env->algo; *p; p += strcspn(p, ","), p += *p == ',') {
        size_t n = strcspn(p, ","), key = strcspn(p, "=,");
        if (key < n && (strlen(name) != key || memcmp(name, p, key) != 0))
            continue;
        const char *value = key < n ? p + key + 1 : p;
        if (rd_kind_parse(value, n - (size_t)(value - p), kind) == 0)
            forced = 1;
        if (key < n)
            return forced;
    }
    return forced;
}

/* From registered buffers, because RONDO_CUDA_COPY says that they lie alike. */
static int copied(const rd_wanted_t *w, const rd_limits_t *l, const rd_env_t *env, rd_chosen_t *chosen)
{
    return env && env->cuda_copy && !w->kernels && w->count * w->element >= env->cuda_copy &&
           rd_kchoose_one(w, l, RD_K_COPY, RD_PROTO_LL, chosen, NULL) == 0;
}

const char *rd_kchoose(const rd_wanted_t *w, const rd_limits_t *l, const rd_env_t *env, rd_chosen_t *chosen)
{
    rd_kkind_t only = RD_K_KINDS;
    int forced = env && kind_forced(env, w->coll, &only), found = 0;
    const char *why = "no kernel serves it";
    rd_chosen_t one, simple = {.us = 0};

    if (!forced && copied(w, l, env, chosen))
        return NULL;
    for (int kind = RD_K_ONESHOT; kind <= (forced ? RD_K_COPY : RD_K_MESSAGES); kind++) {
        for (int proto = 0; proto < RD_GPU_PROTOS; proto++) {
            const char *reason;
            if ((forced && (rd_kkind_t)kind != only) ||
                (env && env->proto[0] && kind < RD_K_MESSAGES && strcmp(env->proto, rd_proto_name((rd_proto_t)proto)) != 0))
                continue;
            if (rd_kchoose_one(w, l, (rd_kkind_t)kind, (rd_proto_t)proto, &one, &reason) != 0) {
                why = reason;
                continue;
            }
            if (!found || one.us < chosen->us)
                *chosen = one;
            if (proto == RD_PROTO_SIMPLE && (!simple.us || one.us < simple.us))
                simple = one;
            found = 1;
        }
    }
    if (env && simple.us > 0 && simple.us <= chosen->us * (1 + env->cuda_spare / 100.0))
        *chosen = simple;
    return found ? NULL : why;
}
