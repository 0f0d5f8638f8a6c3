/* The choice of a kernel: see kernel_choose.h.
 *
 * A kernel's time is alpha + hops + bytes / bandwidth, by the prices that the ranks have agreed on (cost/prices.h).
 * They rank the candidates; nobody promises them.
 */
#include "exec/cuda/kernel_choose.h"

#include <stdio.h>
#include <string.h>

#include "sched/algo/algos.h"

#define UNITS_MOST (1u << 20) /* more than any device holds */

/* Through pinned host memory. Reckoned from a link of 40 GB/s and 1.5 us to look at host memory once; nothing of it has
 * been measured. */
static const rd_gpu_price_t prices_apart[RD_KERNEL_COPY][RD_GPU_PROTOS] = {
    [RD_KERNEL_ONESHOT] = {{6, 0, 20e3, 5}, {0}, {6.5, 0, 40e3, 5}},
    [RD_KERNEL_TWOSHOT] = {{0}, {0}, {11, 0, 40e3, 5}},
    [RD_KERNEL_RING] = {{7, 4, 20e3, 5}, {0}, {7, 4, 40e3, 5}, {12, 12, 20e3, 0}},
    [RD_KERNEL_CHAIN] = {{3, 4, 20e3, 0}, {0}, {0}, {12, 12, 15e3, 0}},
    [RD_KERNEL_PROGRAM] = {{4, 5, 20e3, 0}},
    [RD_KERNEL_MESSAGES] = {{7, 0, 20e3, 0}, {0}, {0}, {12, 0, 20e3, 0}},
};

/* Two meetings, and copies one behind the other: a broadcast on two H200. Both ways at once the links carry 290 GB/s.
 */
static const rd_gpu_price_t price_copy = {21, 0, 388e3, 3};

static int is_kernel(const rd_algo_t *algo, rd_kernel_t kernel)
{
    return algo->device.kernel == kernel;
}

/* Lines go through fifos. */
static int by_fifos(const rd_algo_t *algo)
{
    return is_kernel(algo, RD_KERNEL_CHAIN) || rd_algo_is_program(algo) || is_kernel(algo, RD_KERNEL_MESSAGES);
}

const rd_algo_t *rd_kchoose_algo(const char *name, size_t length)
{
    const rd_algo_t *algo = rd_algo_named(name, length);

    return algo && algo->device.kernel != RD_KERNEL_NONE ? algo : NULL;
}

/* Channels of SIMPLE to the next rank: in a ring a block receives and sends at once, and fewer fill the link. Never on
 * more than half of the multiprocessors: then another communicator's grid, which may want a place on as many as there
 * are, fits beside these blocks wherever they are. */
static uint32_t simple_channels(const rd_limits_t *l, const rd_algo_t *algo)
{
    uint32_t channels = is_kernel(algo, RD_KERNEL_RING) ? (l->channels * 3 + 3) / 4 : l->channels,
             half = (l->blocks + 1) / 2;

    return channels < half ? channels : half;
}

/* The part of the rate that the prices speak of, which was measured with all channels that there may be. Half of them
 * have nine tenths of it; below that it goes by their number. */
static double simple_part(const rd_limits_t *l, const rd_algo_t *algo)
{
    const rd_limits_t all = {.channels = RD_KCHANNELS, .blocks = 2 * RD_KCHANNELS};
    double part = 2.0 * simple_channels(l, algo) / simple_channels(&all, algo);

    return part < 1 ? part : 1;
}

/* What the table says, at the rate that there is here. */
static rd_gpu_price_t price(const rd_limits_t *l, const rd_algo_t *algo, rd_proto_t proto)
{
    const rd_prices_t *prices = l->prices ? l->prices : rd_prices_builtin(0);
    rd_gpu_price_t p = is_kernel(algo, RD_KERNEL_COPY) ? price_copy
                       : l->apart                      ? prices_apart[algo->device.kernel][proto]
                                                       : prices->gpu[rd_algo_number(algo)][proto];

    if (l->gbps > 0 && !l->apart)
        p.rate *= l->gbps / prices->links;
    if (proto == RD_PROTO_SIMPLE)
        p.rate *= simple_part(l, algo);
    return p;
}

/* Of steps that follow one another and bytes that flow meanwhile: the longer of the two, and a little more where they
 * are nearly alike. So bare rings of eight H200 measure, with 19 % and within 4 %, from 512 KB to 16 MB. */
static double beside(double way, double flow)
{
    double longer = way > flow ? way : flow, part = longer > 0 ? (way + flow - longer) / longer : 0;

    return longer * (1 + 0.19 * part * part * part);
}

/* Bytes of the whole operation, as the counts of work want it. */
static double whole_bytes(const rd_wanted_t *w, uint32_t n)
{
    double bytes = (double)(w->count * w->element);

    return w->coll == RD_ALLREDUCE || w->coll == RD_REDUCE || w->coll == RD_BROADCAST ? bytes : bytes * n;
}

static double expected(const rd_wanted_t *w, const rd_limits_t *l, const rd_algo_t *algo, rd_proto_t proto,
                       uint32_t passes)
{
    const rd_count_t count = rd_count((rd_coll_t)w->coll, (int)l->nranks, 1, (int)l->nranks, algo->device.param);
    const rd_gpu_price_t p = price(l, algo, proto);
    rd_work_t work = {.hops = 0};

    (void)rd_algo_work(algo, &count, &work);
    double way = work.hops * p.hop, flow = work.link * whole_bytes(w, l->nranks) / p.rate;
    if (is_kernel(algo, RD_KERNEL_CHAIN) || rd_algo_is_program(algo)) {
        double warps = (passes - 1) * p.pass; /* few fifos: their warps are what takes the time, not the link */
        return p.alpha + way + (warps > flow ? warps : flow);
    }
    /* The parts of the second of two passes are there already: by ranks that share an H200 it cost 0.6 us where it had
     * cost 1.9 (two ranks) and 3.7 (four). */
    int ahead = is_kernel(algo, RD_KERNEL_TWOSHOT) && w->coll == RD_ALLREDUCE && passes == 2;
    return p.alpha + beside(way, flow) + (passes - 1) * (ahead ? p.pass / 3 : p.pass);
}

/* How many threads a block has: as many as spread the units over all blocks that there may be, and no more. */
static uint32_t block_threads(const rd_limits_t *l, const rd_algo_t *algo, rd_proto_t proto, uint32_t units)
{
    uint32_t least = 32 * rd_kernel_warps(algo, (int)l->nranks), threads = least;
    uint32_t most = rd_kernel_threads(algo->device.kernel, proto);

    if (is_kernel(algo, RD_KERNEL_RING) || is_kernel(algo, RD_KERNEL_CHAIN) || rd_algo_is_program(algo))
        threads = most < 128 ? most : 128;
    while (threads + least <= most && rd_kernel_blocks(algo, (int)l->nranks, units, threads) > l->blocks)
        threads += least;
    return threads;
}

/* The most units of a pass that a bank of so many bytes, blocks and kernel allow. */
static uint32_t most_units(const rd_wanted_t *w, const rd_limits_t *l, const rd_algo_t *algo, rd_proto_t proto,
                           uint64_t bank)
{
    uint32_t warps = rd_kernel_warps(algo, (int)l->nranks), group = 32 * warps;
    uint32_t threads = rd_kernel_threads(algo->device.kernel, proto) / group * group;
    uint32_t low = 0, high = rd_kernel_units(algo);

    high = high < UNITS_MOST ? high : UNITS_MOST;
    if (is_kernel(algo, RD_KERNEL_CHAIN) && high > l->fifos)
        high = l->fifos;
    if (rd_algo_is_program(algo) && high > l->fifos / (uint32_t)algo->device.channels)
        high = l->fifos / (uint32_t)algo->device.channels;
    while (low < high) { /* the greatest that fits; both conditions are monotonous */
        uint32_t middle = low + (high - low + 1) / 2;
        int fits = threads && rd_kernel_bank(algo, proto, w->coll, (int)l->nranks, middle) <= bank &&
                   rd_kernel_blocks(algo, (int)l->nranks, middle, threads) <= l->blocks;
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
    return simple_channels(limits, &rd_algo_messages);
}

/* Both ends of a message must decide alike: by what all ranks share, and its bytes. From where on is the time by slices
 * at most `spare` percent above that by lines? */
void rd_limits_sliced(rd_limits_t *l, const rd_env_t *env)
{
    const rd_gpu_price_t lines = price(l, &rd_algo_messages, rd_fifo_proto(l));
    const rd_gpu_price_t slices = price(l, &rd_algo_messages, RD_PROTO_SIMPLE);
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

/* SIMPLE: a unit is a slice. All channels have one in each pass, as long as that makes them no shorter than may be. */
static void cut_slices(const rd_limits_t *l, uint64_t chunk, rd_chosen_t *chosen)
{
    uint32_t channels = simple_channels(l, chosen->launch.algo);
    uint64_t passes = (chunk + (uint64_t)channels * l->slice - 1) / ((uint64_t)channels * l->slice);

    passes = passes ? passes : 1;
    uint64_t slice = (chunk + passes * channels - 1) / (passes * channels);
    slice = slice ? (slice + RD_KSLICE - 1) / RD_KSLICE * RD_KSLICE : RD_KSLICE;
    uint64_t units = (chunk + passes * slice - 1) / (passes * slice);
    chosen->passes = (uint32_t)passes;
    chosen->slice = (uint32_t)slice;
    chosen->units = units ? (uint32_t)units : 1;
    chosen->launch.threads = rd_kernel_threads(chosen->launch.algo->device.kernel, RD_PROTO_SIMPLE);
    chosen->launch.blocks = chosen->units;
}

/* By lines or SENTINEL: as many units a pass as the bank, the fifos and the blocks have room for. NULL, or why none. */
static const char *cut_units(const rd_wanted_t *w, const rd_limits_t *l, uint64_t chunk, rd_chosen_t *chosen)
{
    const rd_algo_t *algo = chosen->launch.algo;
    rd_proto_t proto = chosen->launch.proto;
    uint32_t unit = rd_kernel_unit(algo, proto);
    uint64_t total = (chunk + unit - 1) / unit, most = most_units(w, l, algo, proto, l->bank);

    if (most == 0)
        return "the bank, the fifos or the blocks do not suffice";
    uint64_t passes = total ? (total + most - 1) / most : 1;
    if (is_kernel(algo, RD_KERNEL_RING) && w->coll == RD_ALLREDUCE && passes > 1) {
        uint64_t both = most_units(w, l, algo, proto, 2 * (uint64_t)l->bank), fewer = (total + both - 1) / both;
        chosen->launch.banks = 4 * fewer <= 3 * passes; /* for less it is not worth its fences */
        passes = chosen->launch.banks ? fewer : passes;
    }
    if (passes > rd_kernel_passes(algo, w->coll))
        return "too long for it";
    chosen->passes = (uint32_t)passes;
    chosen->units = total ? (uint32_t)((total + passes - 1) / passes) : 1;
    chosen->launch.threads = block_threads(l, algo, proto, chosen->units);
    chosen->launch.blocks = rd_kernel_blocks(algo, (int)l->nranks, chosen->units, chosen->launch.threads);
    return NULL;
}

/* Why the way between these GPUs does not carry the protocol, or NULL. */
static const char *proto_excluded(const rd_limits_t *l, const rd_algo_t *algo, rd_proto_t proto)
{
    if (l->apart && proto == RD_PROTO_LL128)
        return "lines of 128 bytes arrive in parts in host memory";
    if (l->split && proto == RD_PROTO_LL128)
        return "over PCIe a line of 128 bytes may arrive in parts";
    if (by_fifos(algo) && proto != RD_PROTO_SIMPLE && proto != rd_fifo_proto(l))
        return "fifos have one protocol: ll128, or ll over PCIe and through host memory";
    return NULL;
}

/* Messages are cut when they are known. */
static const char *cut_messages(const rd_wanted_t *w, const rd_limits_t *l, rd_chosen_t *chosen)
{
    int sliced = w->count * w->element >= l->sliced;

    if (chosen->launch.proto == RD_PROTO_SIMPLE && !l->streams)
        return "no room for a block of each direction for every peer";
    if (sliced != (chosen->launch.proto == RD_PROTO_SIMPLE))
        return sliced ? "messages of this length go by simple" : "messages of this length go by lines";
    return NULL;
}

static const char *cut_copies(const rd_limits_t *l, rd_chosen_t *chosen)
{
    if (!l->copies)
        return "ranks must be processes of their own, on one node, whose GPUs reach each other";
    if (chosen->launch.proto != RD_PROTO_LL)
        return "it has one protocol";
    chosen->passes = chosen->units = chosen->launch.blocks = 1;
    chosen->launch.threads = 32 * l->nranks;
    return NULL;
}

static const char *cut_chunk(const rd_wanted_t *w, const rd_limits_t *l, rd_chosen_t *chosen)
{
    const rd_algo_t *algo = chosen->launch.algo;
    rd_proto_t proto = chosen->launch.proto;

    if (!rd_kernel_unit(algo, proto) || !rd_kernel_find(&chosen->launch, 1))
        return "this protocol does not serve this operation and type";
    if (proto == RD_PROTO_SENTINEL && !rd_coll_reduces((rd_coll_t)w->coll))
        return "what is only moved must arrive bit by bit, and this protocol changes one NaN";
    uint64_t chunk = rd_kernel_chunk(algo, w->coll, (int)l->nranks, w->count * w->element);
    if (proto != RD_PROTO_SIMPLE)
        return cut_units(w, l, chunk, chosen);
    cut_slices(l, chunk, chosen);
    return NULL;
}

const char *rd_kchoose_one(const rd_wanted_t *w, const rd_limits_t *l, const rd_algo_t *algo, rd_proto_t proto,
                           rd_chosen_t *chosen)
{
    const rd_shape_t shape = {(int)l->nranks, 1, NULL};
    const rd_sched_args_t args = {&shape, (rd_coll_t)w->coll, 0, 0, algo->device.param, 0};
    const char *why;

    if (!(algo->device.colls & 1u << w->coll))
        return "does not do this operation";
    if (rd_algo_is_program(algo) && (why = algo->excluded(&args)) != NULL)
        return why;
    if ((why = proto_excluded(l, algo, proto)) != NULL)
        return why;
    *chosen = (rd_chosen_t){.launch = {.algo = algo, .proto = proto, .coll = w->coll, .type = w->type, .op = w->op}};
    why = is_kernel(algo, RD_KERNEL_MESSAGES) ? cut_messages(w, l, chosen)
          : is_kernel(algo, RD_KERNEL_COPY)   ? cut_copies(l, chosen)
                                              : cut_chunk(w, l, chosen);
    if (why)
        return why;
    uint32_t passes = is_kernel(algo, RD_KERNEL_COPY) ? l->nranks - 1 : chosen->passes ? chosen->passes : 1;
    chosen->us = expected(w, l, algo, proto, passes);
    return NULL;
}

/* The names of the algorithms that GPUs run. */
static const char *names(char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (const rd_algo_t *const *algo = rd_algos; *algo; algo++)
        if ((*algo)->device.kernel != RD_KERNEL_NONE && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", (*algo)->name);
    return text;
}

rondo_result_t rd_kchoose_names(const rd_env_t *env, rd_who_t *who)
{
    int known = !env->proto[0];
    char text[160];

    for (const char *p = env->algo; *p; p += strcspn(p, ","), p += *p == ',') {
        size_t n = strcspn(p, ","), skip = strcspn(p, "=,");
        skip = skip < n ? skip + 1 : 0;
        if (!rd_kchoose_algo(p + skip, n - skip))
            return rd_error(who, RONDO_ERR_INVALID_ARGUMENT,
                            "RONDO_ALGO=%s: on CUDA there is no algorithm \"%.*s\"; there are %s", env->algo,
                            (int)(n - skip), p + skip, names(text, sizeof text));
    }
    for (int proto = 0; proto < RD_GPU_PROTOS; proto++)
        known |= strcmp(env->proto, rd_proto_name((rd_proto_t)proto)) == 0;
    if (!known)
        return rd_error(who, RONDO_ERR_INVALID_ARGUMENT,
                        "RONDO_PROTO=%s: on CUDA there are ll, ll128, sentinel and simple", env->proto);
    return RONDO_SUCCESS;
}

/* "ring" speaks of every operation but the barrier, "allreduce=ring,broadcast=chain" of those that it names. NULL: not
 * forced. */
static const rd_algo_t *algo_forced(const rd_env_t *env, uint32_t coll)
{
    const char *name = rd_coll_name((rd_coll_t)coll);
    const rd_algo_t *forced = NULL;

    for (const char *p = env->algo; *p; p += strcspn(p, ","), p += *p == ',') {
        size_t n = strcspn(p, ","), key = strcspn(p, "=,");
        if (key < n && (strlen(name) != key || memcmp(name, p, key) != 0))
            continue;
        const char *value = key < n ? p + key + 1 : p;
        const rd_algo_t *named = rd_kchoose_algo(value, n - (size_t)(value - p));
        forced = named ? named : forced;
        if (key < n)
            return forced;
    }
    return forced;
}

/* From registered buffers, because RONDO_CUDA_COPY says that they lie alike. */
static int copied(const rd_wanted_t *w, const rd_limits_t *l, const rd_env_t *env, rd_chosen_t *chosen)
{
    return env && env->cuda_copy && !w->kernels && w->count * w->element >= env->cuda_copy &&
           !rd_kchoose_one(w, l, &rd_algo_copy, RD_PROTO_LL, chosen);
}

/* Whether RONDO_ALGO and RONDO_PROTO let it be. */
static int allowed(const rd_algo_t *algo, rd_proto_t proto, const rd_algo_t *forced, const rd_env_t *env)
{
    if (forced ? algo != forced : is_kernel(algo, RD_KERNEL_NONE) || is_kernel(algo, RD_KERNEL_COPY))
        return 0;
    return !env || !env->proto[0] || is_kernel(algo, RD_KERNEL_MESSAGES) || is_kernel(algo, RD_KERNEL_COPY) ||
           strcmp(env->proto, rd_proto_name(proto)) == 0;
}

const char *rd_kchoose(const rd_wanted_t *w, const rd_limits_t *l, const rd_env_t *env, rd_chosen_t *chosen)
{
    const rd_algo_t *forced = env ? algo_forced(env, w->coll) : NULL;
    const char *why = "no kernel serves it";
    rd_chosen_t one, simple = {.us = 0};
    int found = 0;

    if (!forced && copied(w, l, env, chosen))
        return NULL;
    for (const rd_algo_t *const *algo = rd_algos; *algo; algo++) {
        for (int proto = 0; proto < RD_GPU_PROTOS; proto++) {
            if (!allowed(*algo, (rd_proto_t)proto, forced, env))
                continue;
            const char *reason = rd_kchoose_one(w, l, *algo, (rd_proto_t)proto, &one);
            if (reason) {
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
