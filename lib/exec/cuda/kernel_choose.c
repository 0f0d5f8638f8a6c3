/* What GPUs allow of each algorithm, and in what portions a kernel does it: see kernel_choose.h. cost/model_gpu.c says
 * what that costs, and plan/candidates.c makes the choice itself. */
#include "exec/cuda/kernel_choose.h"

#include <stdbool.h>
#include <string.h>

#include "sched/algo/algos.h"

#define TILES_MOST (1u << 20) /* more than any device can hold */
#define CELLS_MOST 16         /* of a short operation: eight such find room in a launch */
#define STAGING_ALIGN 512     /* bytes: of what a turn of copy_staging.c moves of a block */
#define EFFICIENCY_SPARE 10   /* percent: RONDO_CUDA_SPARE by that policy, at least */

/* Messages of this many bytes have slices of full length (rd_kslice). A stream of several has few receiving blocks, and
 * shorter slices keep them waiting: 4 MB to each of three ranks took 70 us by slices of 16 KB, and 45 by lines. */
#define LONGEST_SLICES ((uint64_t)RD_KSLICES * RD_KCHANNELS * (RD_KSLICE / 16 * 15))

static bool is_kernel(const rd_algo_t *algo, rd_kernel_t kernel)
{
    return algo->device.kernel == kernel;
}

/* Returns true if the algorithm's lines go through fifos. */
static bool by_fifos(const rd_algo_t *algo)
{
    return is_kernel(algo, RD_KERNEL_CHAIN) || rd_algo_is_program(algo) || is_kernel(algo, RD_KERNEL_MESSAGES);
}

/* Returns the number of SIMPLE's channels to the next rank. In a ring a block receives and sends at once, so fewer fill
 * the link, unless the communicator wants more. They never take more than half of the multiprocessors: then another
 * communicator's grid, which may need as many blocks as there are multiprocessors, fits beside these blocks wherever
 * they are. */
static uint32_t simple_channels(const rd_limits_t *l, const rd_algo_t *algo)
{
    uint32_t channels = l->channels, half = (l->blocks + 1) / 2, fill = (channels * 3 + 3) / 4;

    if (is_kernel(algo, RD_KERNEL_RING) && l->blocks_least < channels)
        channels = l->blocks_least > fill ? l->blocks_least : fill;
    return channels < half ? channels : half;
}

/* Returns the part of the rate in the prices that is reached: the prices were measured with the most channels that
 * there may be. Half of them reach nine tenths of the rate, which counts as all of it; with fewer the rate is
 * proportional to their number. */
static double simple_part(const rd_limits_t *l, const rd_algo_t *algo)
{
    const rd_limits_t all = {.channels = RD_KCHANNELS, .blocks = 2 * RD_KCHANNELS};
    double part = 2.0 * simple_channels(l, algo) / simple_channels(&all, algo);

    return part < 1 ? part : 1;
}

static rd_cost_gpus_t gpus_of(const rd_limits_t *l)
{
    return (rd_cost_gpus_t){
        .nranks = (int)l->nranks, .host_windows = l->host_windows, .gbps = l->gbps, .prices = l->prices};
}

/* Returns which part of the rate the receiving blocks of a collective reach. Each stream has a power of two of them
 * (rd_streams_divide), so that of 64 blocks three streams have 48. On H100, among three and four ranks, 48 reach 0.94
 * of what two ranks have with 64, and 24 reach three quarters. */
static double receiving_part(const rd_limits_t *l)
{
    rd_kmessages_t k = {.sends = l->nranks - 1, .receives = l->nranks - 1};

    if (l->nranks < 2 || !l->streams)
        return 1;
    rd_streams_divide(l, 1, UINT32_MAX, &k);
    double share = (double)(k.receives * k.receivers) / rd_limits_senders(l);
    return share >= 1 ? 1 : share < 0.47 ? 2 * share : 0.94;
}

static double part_of(const rd_limits_t *l, const rd_algo_t *algo, rd_proto_t proto)
{
    if (proto != RD_PROTO_SIMPLE)
        return 1;
    return simple_part(l, algo) * (is_kernel(algo, RD_KERNEL_MESSAGES) ? receiving_part(l) : 1);
}

/* Returns how many threads a block has: as many as spread the tiles over all blocks that there may be, and no more.
 * Where a link is filled by fewer blocks they have 128, unless the communicator wants more blocks. */
static uint32_t block_threads(const rd_limits_t *l, const rd_algo_t *algo, rd_proto_t proto, uint32_t tiles)
{
    uint32_t least = 32 * rd_kernel_warps(algo, (int)l->nranks), threads = least;
    uint32_t most = rd_kernel_threads(algo->device.kernel, proto);

    if (is_kernel(algo, RD_KERNEL_RING) || is_kernel(algo, RD_KERNEL_CHAIN) || rd_algo_is_program(algo))
        threads = most < 128 ? most : 128;
    while (threads >= 2 * least && rd_kernel_blocks(algo, (int)l->nranks, tiles, threads) < l->blocks_least)
        threads -= least;
    while (threads + least <= most && rd_kernel_blocks(algo, (int)l->nranks, tiles, threads) > l->blocks)
        threads += least;
    return threads;
}

/* Returns the most tiles of a pass that a bank of `bank` bytes, the blocks and the kernel allow. */
static uint32_t most_tiles(const rd_wanted_t *w, const rd_limits_t *l, const rd_algo_t *algo, rd_proto_t proto,
                           uint64_t bank)
{
    uint32_t warps = rd_kernel_warps(algo, (int)l->nranks), group = 32 * warps;
    uint32_t threads = rd_kernel_threads(algo->device.kernel, proto) / group * group;
    uint32_t low = 0, high = rd_kernel_tiles(algo);

    high = high < TILES_MOST ? high : TILES_MOST;
    if (is_kernel(algo, RD_KERNEL_CHAIN) && high > l->fifos)
        high = l->fifos;
    if (rd_algo_is_program(algo) && high > l->fifos / (uint32_t)algo->device.channels)
        high = l->fifos / (uint32_t)algo->device.channels;
    while (low < high) { /* the greatest that fits; both conditions are monotonic */
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
    return limits->host_windows || limits->split ? RD_PROTO_LL : RD_PROTO_LL128;
}

void rd_limits_path(rd_limits_t *limits, rd_gpu_path_t path)
{
    limits->gbps = path.gbps;
    limits->split = path.near > RD_NEAR_NVLINK && path.near < RD_NEAR_UNKNOWN;
}

uint32_t rd_limits_senders(const rd_limits_t *limits)
{
    return simple_channels(limits, &rd_algo_messages);
}

/* RONDO_CTA_POLICY=efficiency is content with a tenth more time. */
static double spare_part(const rd_env_t *env)
{
    const int spare = rd_cta_policy(env) == RONDO_CTA_POLICY_EFFICIENCY && env->cuda_spare < EFFICIENCY_SPARE
                          ? EFFICIENCY_SPARE
                          : env->cuda_spare;

    return 1 + spare / 100.0;
}

/* Returns the bytes from which slices, by `part` of their blocks, take at most RONDO_CUDA_SPARE percent longer than
 * lines. */
static uint64_t cheaper_from(const rd_limits_t *l, const rd_env_t *env, double part)
{
    const rd_cost_gpus_t gpus = gpus_of(l);
    const rd_gpu_price_t lines = rd_cost_gpu_price(&gpus, &rd_algo_messages, rd_fifo_proto(l)),
                         slices = rd_cost_gpu_price(&gpus, &rd_algo_messages, RD_PROTO_SIMPLE);
    double spare = spare_part(env), gain = spare / lines.rate - 1 / (slices.rate * part); /* us a byte */
    double loss = slices.alpha - spare * lines.alpha;

    if (gain <= 0)
        return UINT64_MAX;
    return loss > RD_KSLICE * gain ? (uint64_t)(loss / gain) : RD_KSLICE;
}

/* Both ends of a message must decide alike, so the decision follows from its bytes and from what all ranks share. */
void rd_limits_sliced(rd_limits_t *l, const rd_env_t *env)
{
    const unsigned forced = rd_forced_message_protos(env), simple = 1u << RD_PROTO_SIMPLE;

    if (!l->streams || (forced && !(forced & simple)))
        l->sliced = l->sliced_coll = UINT64_MAX;
    else if (forced == simple)
        l->sliced = l->sliced_coll = 1;
    else if (env->cuda_long)
        l->sliced = l->sliced_coll = env->cuda_long;
    else {
        l->sliced = cheaper_from(l, env, simple_part(l, &rd_algo_messages));
        l->sliced_coll = cheaper_from(l, env, part_of(l, &rd_algo_messages, RD_PROTO_SIMPLE));
        if (l->nranks > 2 && rd_fifo_proto(l) == RD_PROTO_LL128 && l->sliced_coll < LONGEST_SLICES)
            l->sliced_coll = LONGEST_SLICES;
    }
}

/* SIMPLE: a tile is a slice. Each pass has one slice for each channel, unless that makes slices shorter than allowed.
 */
static void cut_slices(const rd_limits_t *l, uint64_t chunk, rd_kchoice_t *choice)
{
    uint32_t channels = simple_channels(l, choice->launch.algo);
    uint64_t passes = (chunk + (uint64_t)channels * l->slice - 1) / ((uint64_t)channels * l->slice);

    passes = passes ? passes : 1;
    uint64_t slice = (chunk + passes * channels - 1) / (passes * channels);
    slice = slice ? (slice + RD_KSLICE - 1) / RD_KSLICE * RD_KSLICE : RD_KSLICE;
    uint64_t tiles = (chunk + passes * slice - 1) / (passes * slice);
    choice->passes = (uint32_t)passes;
    choice->slice = (uint32_t)slice;
    choice->tiles = tiles ? (uint32_t)tiles : 1;
    choice->launch.threads = rd_kernel_threads(choice->launch.algo->device.kernel, RD_PROTO_SIMPLE);
    choice->launch.blocks = choice->tiles;
}

/* What has one pass takes cells of a bank in place of the bank. Its tiles are the same, and so is what it costs. */
static void cut_cells(const rd_wanted_t *w, const rd_limits_t *l, rd_kchoice_t *choice)
{
    const rd_algo_t *algo = choice->launch.algo;
    uint32_t cell = l->bank / RD_KCELLS / 128 * 128, shift = 0;
    uint64_t row = rd_kernel_bank(algo, choice->launch.proto, w->coll, (int)l->nranks, 1);

    if (choice->passes > 1 || row > cell)
        return;
    while (row << (shift + 1) <= cell)
        shift++;
    if (rd_kernel_cells(choice->tiles, shift) <= CELLS_MOST)
        choice->celled = RD_KCELLED(cell, shift);
}

/* By lines or SENTINEL: a pass has as many tiles as the bank, the fifos and the blocks allow. Returns NULL, or the
 * reason why there is none. */
static const char *cut_tiles(const rd_wanted_t *w, const rd_limits_t *l, uint64_t chunk, rd_kchoice_t *choice)
{
    const rd_algo_t *algo = choice->launch.algo;
    rd_proto_t proto = choice->launch.proto;
    uint32_t tile = rd_kernel_tile(algo, proto);
    uint64_t total = (chunk + tile - 1) / tile, most = most_tiles(w, l, algo, proto, l->bank);

    if (most == 0)
        return "the bank, the fifos or the blocks do not suffice";
    uint64_t passes = total ? (total + most - 1) / most : 1;
    if (is_kernel(algo, RD_KERNEL_RING) && w->coll == RD_ALLREDUCE && passes > 1) {
        uint64_t both = most_tiles(w, l, algo, proto, 2 * (uint64_t)l->bank), fewer = (total + both - 1) / both;
        choice->launch.banks = 4 * fewer <= 3 * passes; /* a smaller gain is not worth the additional fences */
        passes = choice->launch.banks ? fewer : passes;
    }
    if (passes > rd_kernel_passes(algo, w->coll))
        return "too long for it";
    choice->passes = (uint32_t)passes;
    choice->tiles = total ? (uint32_t)((total + passes - 1) / passes) : 1;
    choice->launch.threads = block_threads(l, algo, proto, choice->tiles);
    choice->launch.blocks = rd_kernel_blocks(algo, (int)l->nranks, choice->tiles, choice->launch.threads);
    if (rd_kernel_by_cells(algo, w->coll))
        cut_cells(w, l, choice);
    return NULL;
}

/* Returns the reason why the path between these GPUs does not carry the protocol, or NULL. */
static const char *proto_excluded(const rd_limits_t *l, const rd_algo_t *algo, rd_proto_t proto)
{
    if (l->host_windows && proto == RD_PROTO_LL128)
        return "lines of 128 bytes arrive in parts in host memory";
    if (l->split && proto == RD_PROTO_LL128)
        return "over PCIe a line of 128 bytes may arrive in parts";
    if (by_fifos(algo) && proto != RD_PROTO_SIMPLE && proto != rd_fifo_proto(l))
        return "fifos have one protocol: ll128, or ll over PCIe and through host memory";
    return NULL;
}

/* Messages are cut when they are known. */
static const char *cut_messages(const rd_wanted_t *w, const rd_limits_t *l, rd_kchoice_t *choice)
{
    int sliced = w->count * w->element >= l->sliced_coll;

    if (choice->launch.proto == RD_PROTO_SIMPLE && !l->streams)
        return "no room for a block of each direction for every peer";
    if (sliced != (choice->launch.proto == RD_PROTO_SIMPLE))
        return sliced ? "messages of this length go by simple" : "messages of this length go by lines";
    return NULL;
}

bool rd_copies_by_staging(const rd_wanted_t *w)
{
    return w->copies == RD_COPIES_STAGING || rd_copies_staging_only((rd_coll_t)w->coll);
}

bool rd_copies_staging_only(rd_coll_t coll)
{
    return coll == RD_GATHER || coll == RD_SCATTER;
}

bool rd_copies_for_each(rd_coll_t coll)
{
    return coll == RD_ALLTOALL || coll == RD_SCATTER;
}

size_t rd_copies_turn(const rd_limits_t *l, rd_coll_t coll)
{
    const size_t blocks = rd_copies_for_each(coll) ? l->nranks - 1 : 1;

    return l->staging / 2 / blocks / STAGING_ALIGN * STAGING_ALIGN; /* two halves, used in turn */
}

static const char *cut_copies(const rd_wanted_t *w, const rd_limits_t *l, rd_kchoice_t *choice)
{
    const uint64_t bytes = w->count * w->element, turn = rd_copies_turn(l, (rd_coll_t)w->coll);

    if (!rd_copies_by_staging(w) && !l->copies)
        return "ranks must be processes of their own, on one node, whose GPUs reach each other";
    if (rd_copies_by_staging(w) && !turn)
        return "there is no staging memory: ranks must be processes of their own, whose GPUs reach each other";
    if (choice->launch.proto != RD_PROTO_LL)
        return "it has one protocol";
    choice->passes = rd_copies_by_staging(w) && bytes ? (uint32_t)((bytes + turn - 1) / turn) : 1;
    choice->tiles = choice->launch.blocks = 1;
    choice->launch.threads = 32 * l->nranks;
    return NULL;
}

static const char *cut_chunk(const rd_wanted_t *w, const rd_limits_t *l, rd_kchoice_t *choice)
{
    const rd_algo_t *algo = choice->launch.algo;
    rd_proto_t proto = choice->launch.proto;

    if (!rd_kernel_tile(algo, proto) || !rd_kernel_find(&choice->launch, 1))
        return "this protocol does not serve this operation and type";
    if (proto == RD_PROTO_SENTINEL && !rd_coll_reduces((rd_coll_t)w->coll))
        return "what is only moved must arrive bit by bit, and this protocol changes one NaN";
    uint64_t chunk = rd_kernel_chunk(algo, w->coll, (int)l->nranks, w->count * w->element);
    if (proto != RD_PROTO_SIMPLE)
        return cut_tiles(w, l, chunk, choice);
    cut_slices(l, chunk, choice);
    return NULL;
}

/* Sets the candidate's launch, passes and tiles. Returns NULL, or the reason why there are none. */
static const char *cut(const rd_wanted_t *w, const rd_limits_t *l, const rd_algo_t *algo, rd_proto_t proto,
                       rd_kchoice_t *choice)
{
    *choice = (rd_kchoice_t){
        .launch = {.algo = algo, .proto = proto, .coll = w->coll, .type = w->type, .op = w->op, .narrow = w->narrow}};
    if (is_kernel(algo, RD_KERNEL_MESSAGES))
        return cut_messages(w, l, choice);
    return is_kernel(algo, RD_KERNEL_COPY) ? cut_copies(w, l, choice) : cut_chunk(w, l, choice);
}

static bool by_visits(const rd_limits_t *l, const rd_algo_t *algo, rd_proto_t proto)
{
    return l->visits && proto == RD_PROTO_SIMPLE &&
           (is_kernel(algo, RD_KERNEL_RING) || is_kernel(algo, RD_KERNEL_CHAIN));
}

/* A ring by places moves the blocks of an allgather or reduce_scatter by a chain each, one after the other. Sets the
 * time of all. */
static const char *by_chains(const rd_wanted_t *w, const rd_limits_t *l, rd_kchoice_t *choice)
{
    rd_wanted_t one = *w;
    rd_kchoice_t chain;

    one.coll = w->coll == RD_ALLGATHER ? RD_BROADCAST : RD_REDUCE;
    const char *why = rd_kchoose_one(&one, l, &rd_algo_chain, RD_PROTO_SIMPLE, &chain);
    choice->us = why ? 0 : l->nranks * chain.us;
    return why;
}

static double expected(const rd_wanted_t *w, const rd_limits_t *l, const rd_kchoice_t *c)
{
    const rd_algo_t *algo = c->launch.algo;
    const bool copies = is_kernel(algo, RD_KERNEL_COPY);
    rd_cost_gpus_t gpus = gpus_of(l);

    if (by_visits(l, algo, c->launch.proto) && l->ring_gbps > 0)
        gpus.gbps = l->ring_gbps;
    uint32_t passes = copies ? l->nranks - 1 : c->passes ? c->passes : 1;
    double us = rd_cost_gpu_us(&gpus, (rd_coll_t)w->coll, algo, c->launch.proto, w->count * w->element, passes,
                               part_of(l, algo, c->launch.proto));

    if (copies && rd_copies_by_staging(w))
        us += rd_cost_staging_us(l->nranks, rd_copies_for_each((rd_coll_t)w->coll), w->count * w->element, c->passes);
    return us;
}

const char *rd_kchoose_one(const rd_wanted_t *w, const rd_limits_t *l, const rd_algo_t *algo, rd_proto_t proto,
                           rd_kchoice_t *choice)
{
    const char *why = proto_excluded(l, algo, proto);

    if (!(algo->device.colls & 1u << w->coll))
        return "does not do this operation";
    if (!why)
        why = cut(w, l, algo, proto, choice);
    if (!why)
        choice->us = expected(w, l, choice);
    if (!why && by_visits(l, algo, proto) && (w->coll == RD_ALLGATHER || w->coll == RD_REDUCE_SCATTER))
        why = by_chains(w, l, choice);
    return why;
}

/* ---- the choice ---- */

typedef struct desc {
    const rd_wanted_t *wanted;
    const rd_limits_t *limits;
} coll_desc_t;

static const char *excluded(const void *limits, const rd_choice_t *c)
{
    const coll_desc_t *k = limits;
    rd_kchoice_t choice;

    return rd_kchoose_one(k->wanted, k->limits, c->algo, c->proto, &choice);
}

/* Slices are as long as the tiles make them, so there is one price. */
static void price(const void *limits, rd_choice_t c, rd_choices_t *to)
{
    const coll_desc_t *k = limits;
    rd_kchoice_t choice;

    (void)rd_kchoose_one(k->wanted, k->limits, c.algo, c.proto, &choice);
    c.slice = choice.slice;
    c.us = choice.us;
    c.wanted_name = is_kernel(c.algo, RD_KERNEL_COPY);
    rd_candidates_add(to, &c);
}

static const rd_executor_t gpus = {.gpus = true, .protos = RD_PROTOS_GPU, .excluded = excluded, .price = price};

rondo_result_t rd_kchoose_names(const rd_env_t *env, rd_log_ctx_t *ctx)
{
    return rd_names_check(env, &gpus, ctx);
}

void rd_kchoose_all(const rd_wanted_t *w, const rd_limits_t *l, const rd_forced_t *forced, rd_choices_t *all)
{
    const rd_shape_t shape = {(int)l->nranks, 1, NULL};
    const rd_sched_args_t args = {.shape = &shape, .coll = (rd_coll_t)w->coll};
    const coll_desc_t k = {w, l};

    rd_candidates(&gpus, &k, &args, (int)l->nranks, forced, all);
}

/* Returns the bytes from which copy engines serve what they can, whatever it costs; 0: they do not. */
static uint64_t copies_from(const rd_env_t *env)
{
    return env->cuda_copy ? env->cuda_copy : rd_cta_policy(env) == RONDO_CTA_POLICY_ZERO;
}

/* Chooses copy engines, if RONDO_CUDA_COPY or the policy wants them and nothing else is forced. Returns true if so. */
static bool copied(const rd_wanted_t *w, const rd_limits_t *l, const rd_env_t *env, rd_kchoice_t *choice)
{
    return copies_from(env) && w->copies != RD_COPIES_NONE && w->count * w->element >= copies_from(env) &&
           !rd_kchoose_one(w, l, &rd_algo_copy, RD_PROTO_LL, choice);
}

/* Chooses copy engines for their price, which that policy allows. `us`: what the best kernel takes. That of staging
 * decides, whatever this rank has registered: what others have is not known, and all must choose alike. */
static bool copied_for_price(const rd_wanted_t *w, const rd_limits_t *l, const rd_env_t *env, double us,
                             rd_kchoice_t *choice)
{
    rd_wanted_t unregistered = *w;

    unregistered.copies = RD_COPIES_STAGING;
    return rd_cta_policy(env) == RONDO_CTA_POLICY_EFFICIENCY && w->copies != RD_COPIES_NONE &&
           !rd_kchoose_one(&unregistered, l, &rd_algo_copy, RD_PROTO_LL, choice) &&
           choice->us <= us * spare_part(env) && !rd_kchoose_one(w, l, &rd_algo_copy, RD_PROTO_LL, choice);
}

/* Returns true if the candidate's launch has fewer blocks than the communicator wants. */
static bool falls_short(const coll_desc_t *k, const rd_choice_t *c)
{
    rd_kchoice_t choice;

    return k->limits->blocks_least && !is_kernel(c->algo, RD_KERNEL_MESSAGES) &&
           !rd_kchoose_one(k->wanted, k->limits, c->algo, c->proto, &choice) &&
           choice.launch.blocks < k->limits->blocks_least;
}

/* Returns the candidate to be used: SIMPLE leaves multiprocessors to others, so it is chosen if it is little slower
 * than the best, but not where it leaves those that the communicator wants and the best has. */
static const rd_choice_t *spare(const coll_desc_t *k, const rd_choices_t *all, const rd_choice_t *best,
                                const rd_env_t *env)
{
    for (int i = 0; i < all->count && !all->entry[i].excluded; i++) {
        const rd_choice_t *c = &all->entry[i];
        if (c->proto == RD_PROTO_SIMPLE)
            return c->us <= best->us * spare_part(env) && (!falls_short(k, c) || falls_short(k, best)) ? c : best;
    }
    return best;
}

const char *rd_kchoose(const rd_wanted_t *w, const rd_limits_t *l, const rd_env_t *env, rd_kchoice_t *choice)
{
    const rd_forced_t forced = env ? rd_forced(env, (rd_coll_t)w->coll) : (rd_forced_t){.protos = 0};
    const bool free = env && (!forced.algo || forced.except) && rd_forced_allows(&forced, &rd_algo_copy);
    const rd_choice_t *best;
    rd_choices_t all;

    if (free && copied(w, l, env, choice))
        return NULL;
    rd_kchoose_all(w, l, &forced, &all);
    best = rd_candidates_best(&all, &forced);
    if (!best) {
        best = rd_candidates_reason(&all, &forced);
        return best ? best->excluded : "no kernel serves it";
    }
    if (free && copied_for_price(w, l, env, best->us, choice))
        return NULL;
    if (env)
        best = spare(&(const coll_desc_t){w, l}, &all, best, env);
    return rd_kchoose_one(w, l, best->algo, best->proto, choice);
}
