/* What lib/cuda lays out and chooses stays within what there is, whatever RONDO_CUDA_* say: banks and fifos within the
 * window, launches within the blocks. And a process goes to no device but its communicators', a thread keeps its
 * context, and what living communicators need stays when the creation of another one fails. The estimate of a group
 * does not look at communicators that are gone. While CUDA is asked whether the kernels of an aborted one are over,
 * other threads may make and end theirs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rondo.h>

#include "exec/cuda/cuda_int.h"
#include "exec/cuda/proxy/proxy.h"
#include "core/comm.h"
#include "kernels/table.h"
#include "sched/algo/algos.h"
#include "sim/runtime.h"
#include "util/check.h"

/* ---- how what goes between nodes is cut */

static void check_pieces(void)
{
    static const struct {
        uint64_t bytes;
        uint32_t parts, channels, piece;
    } known[] = {
        {1, 1, 8, 8192},        {8192, 1, 8, 8192},       {16384, 1, 8, 8192},   {32768, 1, 8, 8192},
        {40000, 1, 8, 10048},   {65536, 1, 8, 16384},     {131072, 1, 8, 32768}, {262144, 1, 8, 32768},
        {1 << 20, 1, 8, 65536}, {1 << 30, 1, 8, 1 << 19}, {32768, 1, 1, 32768},  {32768, 1, 2, 16384},
        {16384, 2, 8, 8192},    {32768, 4, 8, 16384},     {65536, 8, 8, 32768},  {32768, 16, 8, 32768},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        CHECK(rd_kpiece(known[i].bytes, known[i].parts, known[i].channels, 32768, 1 << 19) == known[i].piece);
    for (uint32_t least = 1024; least <= 1 << 19; least *= 2)
        for (uint32_t channels = 1; channels <= RD_KPROXY_CHANNELS; channels++)
            for (uint64_t bytes = 1; bytes < 1 << 24; bytes += bytes / 3 + 1) {
                uint32_t piece = rd_kpiece(bytes, 1, channels, least, 1 << 19);
                CHECK(piece % 64 == 0 && piece <= 1 << 19 && piece >= (least / 4 < 64 ? 64 : least / 4));
                CHECK(piece >= least || (bytes + piece - 1) / piece <= RD_KFEW);
            }
}

/* ---- windows and choices */

static void check_choices(const rd_cuda_t *cuda)
{
    static const uint64_t counts[] = {1, 1000, 100000, 1 << 22, UINT64_C(1) << 33};
    static const rondo_type_t types[] = {RONDO_INT8, RONDO_BFLOAT16, RONDO_FLOAT64};

    for (uint32_t coll = 0; coll <= RD_SCATTER; coll++)
        for (size_t i = 0; i < 15; i++) {
            uint32_t element = (uint32_t)rondo_type_size(types[i % 3]);
            rd_wanted_t wanted = {coll, types[i % 3], RONDO_SUM, element, counts[i / 3], 0, 0, 0};
            for (const rd_algo_t *const *algo = rd_algos; *algo; algo++)
                for (int c = 0; c < RD_GPU_PROTOS; c++) {
                    rd_kernel_t kernel = (*algo)->device.kernel;
                    rd_kchoice_t one;
                    if (kernel < RD_KERNEL_ONESHOT || kernel >= RD_KERNEL_MESSAGES ||
                        rd_kchoose_one(&wanted, &cuda->limits, *algo, (rd_proto_t)c, &one))
                        continue;
                    CHECK(one.launch.blocks >= 1 && one.launch.blocks <= cuda->limits.blocks);
                    CHECK(rd_kernel_bank(*algo, (rd_proto_t)c, coll, cuda->k.nranks, one.tiles) <=
                          (1 + one.launch.banks) * cuda->limits.bank);
                    CHECK(!rd_algo_is_program(*algo) ||
                          one.tiles * (uint32_t)(*algo)->device.channels <= cuda->k.fifos);
                    CHECK(kernel != RD_KERNEL_CHAIN ||
                          one.tiles <= (one.slice ? cuda->limits.channels : cuda->k.fifos));
                    CHECK((c == RD_PROTO_SIMPLE) == (one.slice > 0) && one.slice <= cuda->limits.slice);
                    CHECK(!one.slice || (uint64_t)one.passes * one.tiles * one.slice >=
                                            rd_kernel_chunk(*algo, coll, cuda->k.nranks, wanted.count * element));
                }
        }
}

/* Small kernels let the next one in beside them, larger ones do not, nor does a ring. */
static void check_lets_in(const rd_cuda_t *cuda)
{
    const rd_wanted_t wanted = {RD_ALLREDUCE, RONDO_FLOAT32, RONDO_SUM, 4, 2, 0, 0, 0};
    rd_kchoice_t one;

    CHECK(!rd_kchoose_one(&wanted, &cuda->limits, &rd_algo_oneshot, RD_PROTO_LL, &one));
    CHECK(rd_kernel_lets_in(&one.launch));
    one.launch.blocks = 1 + RD_KT_EARLY / one.launch.threads;
    CHECK(!rd_kernel_lets_in(&one.launch));
    if (!rd_kchoose_one(&wanted, &cuda->limits, &rd_algo_ring, RD_PROTO_LL, &one))
        CHECK(!rd_kernel_lets_in(&one.launch));
}

/* By lines: as many blocks as the communicator wants, or as there are tiles, unless one group of warps fewer in a block
 * makes them too many. A ring by slices takes more of its channels. What is wanted makes no launch smaller. */
static void check_least_of(const rd_cuda_t *cuda, const rd_wanted_t *wanted, const rd_algo_t *algo, rd_proto_t proto,
                           uint32_t least)
{
    rd_limits_t l = cuda->limits;
    rd_kchoice_t free, one;

    if (rd_kchoose_one(wanted, &l, algo, proto, &free))
        return;
    l.blocks_least = least;
    CHECK(!rd_kchoose_one(wanted, &l, algo, proto, &one));
    const uint32_t group = 32 * rd_kernel_warps(algo, cuda->k.nranks), most = one.tiles < least ? one.tiles : least;
    CHECK(one.launch.blocks >= 1 && one.launch.blocks <= l.blocks && one.passes <= free.passes);
    if (proto != RD_PROTO_SIMPLE) {
        CHECK(one.launch.blocks >= free.launch.blocks && one.tiles == free.tiles);
        CHECK(one.launch.blocks >= most || one.launch.threads < 2 * group ||
              rd_kernel_blocks(algo, cuda->k.nranks, one.tiles, one.launch.threads - group) > l.blocks);
    } else if (algo->device.kernel == RD_KERNEL_RING && l.channels >= 16 && 2 * l.channels <= l.blocks &&
               16 * least >= 15 * l.channels && wanted->count >= 1 << 28) {
        CHECK(one.launch.blocks > free.launch.blocks);
    }
}

/* What is spared leaves no fewer blocks than the communicator wants, if the fastest kernel has them. */
static void check_least_spared(const rd_cuda_t *cuda, const rd_wanted_t *wanted, uint32_t least)
{
    const rd_env_t all = {.cuda_spare = 0}, some = {.cuda_spare = 1000};
    rd_limits_t l = cuda->limits;
    rd_kchoice_t fastest, spared;

    l.blocks_least = least;
    if (rd_kchoose(wanted, &l, &all, &fastest) || fastest.launch.algo->device.kernel >= RD_KERNEL_MESSAGES)
        return;
    CHECK(rd_kchoose(wanted, &l, &some, &spared) == NULL);
    CHECK(spared.launch.blocks >= least || fastest.launch.blocks < least || spared.launch.algo == &rd_algo_messages);
}

static void check_least(const rd_cuda_t *cuda)
{
    static const uint64_t counts[] = {1, 1000, 30000, 1 << 22, 1 << 28};
    const uint32_t wants[] = {1, 7, 60, cuda->limits.blocks / 2, cuda->limits.blocks, 1024};

    for (uint32_t i = 0; i < 30 * (RD_SCATTER + 1) && !failures; i++) {
        const rd_wanted_t wanted = {i / 30, RONDO_FLOAT32, RONDO_SUM, 4, counts[i % 5], RD_COPIES_NONE, 0, 0};

        for (const rd_algo_t *const *algo = rd_algos; *algo; algo++)
            for (int c = 0; c < RD_GPU_PROTOS; c++)
                if ((*algo)->device.kernel >= RD_KERNEL_ONESHOT && (*algo)->device.kernel < RD_KERNEL_MESSAGES)
                    check_least_of(cuda, &wanted, *algo, (rd_proto_t)c, wants[i / 5 % 6]);
        if (wanted.coll != RD_BARRIER)
            check_least_spared(cuda, &wanted, wants[i / 5 % 6]);
    }
}

/* Copy engines serve what a policy wants of them and no more, and what they stage fits into half of the memory. Returns
 * how often RONDO_CTA_POLICY=efficiency has chosen them. */
static int check_copies(const rd_cuda_t *cuda)
{
    static const char *const policies[] = {"default", "efficiency", "zero"};
    static const uint64_t counts[] = {1, 1000, 1 << 18, 1 << 22, 1 << 26};
    rd_limits_t l = cuda->limits;
    int content = 0;

    for (uint32_t i = 0; i < 5 * 2 * (RD_SCATTER + 1); i++) {
        rd_wanted_t wanted = {i / 10, RONDO_INT32, RONDO_SUM, 4, counts[i % 5], RD_COPIES_STAGING, 0, 0};
        const uint64_t bytes = wanted.count * wanted.element;
        const bool can = rd_algo_copy.device.colls & 1u << wanted.coll;
        rd_kchoice_t c[3];

        if (wanted.coll == RD_BARRIER)
            continue;
        if (i / 5 % 2)
            wanted.copies = RD_COPIES_REGISTERED;
        for (int p = 0; p < 3; p++) {
            rd_env_t env = {.cuda_spare = 3};
            snprintf(env.cta_policy, sizeof env.cta_policy, "%s", policies[p]);
            l.copies = !l.host_windows;
            l.staging = rd_window_staging_bytes(cuda, &env);
            CHECK(rd_kchoose(&wanted, &l, &env, &c[p]) == NULL);
        }
        if (failures)
            return 0;
        CHECK(c[0].launch.algo != &rd_algo_copy);
        CHECK((c[2].launch.algo == &rd_algo_copy) == (can && !l.host_windows));
        if (c[2].launch.algo == &rd_algo_copy && rd_copies_by_staging(&wanted)) {
            const uint64_t turn = rd_copies_turn(&l, (rd_coll_t)wanted.coll);
            CHECK(turn * (rd_copies_for_each((rd_coll_t)wanted.coll) ? l.nranks - 1 : 1) <= l.staging / 2);
            CHECK(c[2].passes * turn >= bytes && (c[2].passes - 1) * turn < bytes);
        }
        if (c[1].launch.algo == &rd_algo_copy) {
            CHECK(can && c[1].us <= 1.1 * c[0].us && wanted.count > 1000);
            content++;
        }
    }
    return content;
}

/* Whether copy engines are chosen for their price does not depend on what a rank has registered, which others do not
 * know. Returns how often they are. */
static int check_alike(const rd_cuda_t *cuda)
{
    rd_env_t env = {.cuda_spare = 3, .cta_policy = "efficiency"};
    rd_limits_t l = cuda->limits;
    int chosen = 0;

    l.copies = !l.host_windows;
    l.staging = rd_window_staging_bytes(cuda, &env);
    for (uint32_t coll = 0; coll <= RD_SCATTER; coll++)
        for (uint64_t count = 1 << 12; rd_algo_copy.device.colls >> coll & 1 && count <= 1 << 28; count += count / 4) {
            bool by_copies[2] = {false};

            for (int registered = 0; registered < 2; registered++) {
                const rd_wanted_t wanted = {.coll = coll,
                                            .type = RONDO_INT32,
                                            .op = RONDO_SUM,
                                            .element = 4,
                                            .count = count,
                                            .copies = registered ? RD_COPIES_REGISTERED : RD_COPIES_STAGING};
                rd_kchoice_t c;
                CHECK(rd_kchoose(&wanted, &l, &env, &c) == NULL);
                by_copies[registered] = c.launch.algo == &rd_algo_copy;
            }
            CHECK(by_copies[0] == by_copies[1], "%s of %llu", rd_coll_name((rd_coll_t)coll), (unsigned long long)count);
            chosen += by_copies[0];
        }
    return chosen;
}

/* All blocks that wait run at once, and those that receive have places; with the other communicators', if there are
 * any. */
static void check_divided(const rd_cuda_t *cuda, uint32_t sends, uint32_t receives, uint32_t lines, uint32_t parts)
{
    const rd_limits_t *l = &cuda->limits;
    rd_kmessages_t k = {.sends = sends, .receives = receives, .npairs = lines, .warps = cuda->k.spread};
    uint32_t warps = rd_kernel_threads(RD_KERNEL_STREAMS, RD_PROTO_LL) / 32, least = sends + receives;

    for (uint32_t slices = 1; slices < 1000 && least; slices *= 3) {
        k.to_self.bytes = slices << 14;
        rd_streams_divide(l, parts, slices, &k);
        uint32_t busy = (lines * k.warps + warps - 1) / warps, blocks = sends * k.senders + receives * k.receivers;
        rd_klaunch_t launch = rd_streams_launch(l, false, &k);
        CHECK(busy + blocks <= l->blocks && launch.blocks > busy + blocks && launch.kernel == RD_KERNEL_STREAMS);
        CHECK(parts == 1 || blocks <= l->blocks / parts || blocks == least);
        CHECK(k.senders >= 1 && k.receivers >= 1 && (k.receivers & (k.receivers - 1)) == 0);
        CHECK(receives * k.receivers <= l->channels && k.senders <= slices && k.receivers < 2 * slices);
    }
}

/* Messages by slices: movers carry a slice at once, and a block each way for every peer fits beside all lines. */
static void check_streams(const rd_cuda_t *cuda)
{
    const rd_kcomm_t *k = &cuda->k;
    uint32_t jobs = 2 * (cuda->limits.nranks - 1), warps = rd_kernel_threads(RD_KERNEL_STREAMS, RD_PROTO_LL128) / 32;

    for (uint64_t bytes = 1; bytes < UINT64_C(1) << 40; bytes = bytes * 3 + 1) {
        uint32_t slice = rd_kslice(bytes, k->slice_least);
        CHECK(slice >= k->slice_least && slice <= RD_KSLICE / 16 * 15 && slice % 128 == 0);
        CHECK((uint64_t)slice * rd_kslices(bytes, slice) >= bytes);
        CHECK((uint64_t)slice * (rd_kslices(bytes, slice) - 1) < bytes);
    }
    if (!cuda->limits.streams)
        return;
    CHECK((jobs * k->spread + warps - 1) / warps + jobs <= cuda->limits.blocks);
    CHECK(cuda->limits.channels >= cuda->limits.nranks - 1 && rd_limits_senders(&cuda->limits) >= jobs / 2);
    for (uint32_t parts = 1; parts <= 3; parts++)
        for (uint32_t i = 0; i < 4; i++) {
            check_divided(cuda, jobs / 2, jobs / 2, i * jobs / 3, parts);
            check_divided(cuda, i & 1, i >> 1, i * jobs / 3, parts);
            check_divided(cuda, i * jobs / 6, 1, jobs, parts);
            check_divided(cuda, 1, i * jobs / 6, 0, parts);
        }
}

/* Where several nodes have `nlocal` ranks each: messages within a node fit on the device beside those to others. */
static void check_beside(int nlocal, int nodes, uint32_t blocks, uint32_t channels)
{
    const rd_node_t node = {.nlocal = nlocal, .nnodes = nodes};
    const rd_team_t team = {.nranks = nlocal * nodes, .node = &node};
    rd_cuda_t cuda = {.team = &team, .limits = {.blocks = blocks}}, node_comm = {.k = {.nranks = nlocal}};
    uint32_t all = 2 * (uint32_t)(team.nranks - 1), jobs = 2 * (uint32_t)(nlocal - 1);
    rd_proxy_path_t path = {.cuda = &cuda, .k = {.channels = channels}, .pairs = all < RD_KPAIRS ? all : RD_KPAIRS};
    uint32_t beside = rd_proxy_path_beside_most(&path), warps = rd_kernel_at_once();
    rd_env_t env = {.cuda_bank = 0};

    CHECK(beside >= 1 && rd_proxy_path_beside(&path, 2) <= beside);
    if (beside >= blocks)
        return;
    node_comm.limits.nranks = (uint32_t)nlocal;
    node_comm.limits.blocks = blocks - beside;
    rd_window_layout(&node_comm, &env, (int)node_comm.limits.blocks);
    CHECK((jobs * node_comm.k.spread + warps - 1) / warps + beside <= blocks || node_comm.k.spread == 1);
    check_streams(&node_comm);
    if (failures)
        printf("%d nodes of %d ranks, %u blocks, %u proxy channels\n", nodes, nlocal, blocks, channels);
}

/* `apart`: GPUs do not reach each other. */
static void check_layouts(uint32_t host_windows)
{
    static const size_t banks[] = {0, 16384, 16448, 1 << 20, 16 << 20};
    static const int blocks[] = {1, 4, 40, 132};

    int content = 0, alike = 0;

    for (int n = 2; n <= RD_KRANKS && !failures; n++)
        for (int fifos = 0; fifos <= RD_KFIFOS && !failures; fifos = fifos ? 2 * fifos : 1)
            for (size_t i = 0; i < 20 && !failures; i++) {
                rd_env_t env = {.cuda_fifos = fifos, .cuda_bank = banks[i % 5], .cuda_channels = fifos % 67};
                rd_cuda_t cuda = {.k = {.nranks = n}};
                cuda.limits.nranks = (uint32_t)n;
                cuda.limits.blocks = (uint32_t)blocks[i / 5];
                cuda.limits.host_windows = host_windows;
                rd_window_layout(&cuda, &env, blocks[i / 5]);
                const rd_kcomm_t *k = &cuda.k;
                size_t first = (size_t)k->bank_offset * RD_KALIGN, fifo = (size_t)k->fifo_offset * RD_KALIGN;
                CHECK(k->fifos >= 1 && k->fifos <= RD_KFIFOS && k->spread >= 1 && k->spread <= k->fifos);
                CHECK(sizeof(rd_kcontrol_t) <= fifo && fifo + (size_t)n * k->fifos * RD_KSLOTS * RD_KSLOT <= first);
                size_t slices = (size_t)k->slice_offset * RD_KALIGN, channels = cuda.limits.channels;
                CHECK(fifo + (size_t)n * k->fifos * RD_KSLOTS * RD_KSLOT <= slices && k->slice_bytes % RD_KSLICE == 0);
                size_t streams = (size_t)k->stream_offset * RD_KALIGN;
                CHECK(k->slice_bytes && slices + channels * RD_KSLICES * k->slice_bytes <= streams);
                CHECK(streams + channels * RD_KSLICE_SLOTS * RD_KSLICE <= first);
                CHECK(channels >= 1 && channels <= RD_KCHANNELS && k->slice_bytes == cuda.limits.slice);
                CHECK(k->bank_bytes >= 16384 && k->bank_bytes % 128 == 0);
                CHECK(first + 2 * (size_t)k->bank_bytes <= cuda.shared_bytes);
                CHECK((host_windows ? (size_t)RD_KALIGN : cuda.shared_bytes) + sizeof(int) <= cuda.window_bytes);
                CHECK(cuda.shared_bytes + cuda.window_bytes * host_windows <= (size_t)(host_windows ? 16 : 72) << 20 ||
                      (env.cuda_bank && host_windows));
                CHECK(k->spread == 1 ||
                      k->spread * 2 * (uint32_t)(n - 1) <= (uint32_t)blocks[i / 5] * rd_kernel_at_once());
                check_choices(&cuda);
                check_lets_in(&cuda);
                if (fifos == 0 && i % 5 == 0) {
                    content += check_copies(&cuda);
                    alike += check_alike(&cuda);
                    check_least(&cuda);
                }
                check_streams(&cuda);
                if (failures)
                    printf("apart %u, %d ranks, %d fifos, banks of %zu, %d blocks\n", host_windows, n, fifos,
                           banks[i % 5], blocks[i / 5]);
            }
    CHECK((content > 0) == !host_windows && (alike > 0) == !host_windows);
}

/* ---- devices and communicators */

static int no_kernels;        /* the next creation fails, before it comes to its window */
static int launches, settled; /* of all kernels, and of those while kernels are loaded */

cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments)
{
    launches++;
    return __real_cudaLaunchKernelExC(config, function, arguments);
}

int __real_rd_kernel_load(uint64_t context);
int __wrap_rd_kernel_load(uint64_t context);
int __wrap_rd_kernel_load(uint64_t context)
{
    const int before = launches;
    const int error = no_kernels ? (int)cudaErrorNoKernelImageForDevice : __real_rd_kernel_load(context);

    settled += launches - before;
    return error;
}

static int asks; /* what CUDA is asked, another thread waits with until it has asked the graveyard */

static void *ask_graveyard(void *arg)
{
    CHECK(!rd_window_left_take(1, 12345));
    return arg;
}

cudaError_t __real_cudaEventQuery(cudaEvent_t event);
cudaError_t __wrap_cudaEventQuery(cudaEvent_t event);
cudaError_t __wrap_cudaEventQuery(cudaEvent_t event)
{
    pthread_t thread;

    if (asks && pthread_create(&thread, NULL, ask_graveyard, NULL) == 0) {
        asks++;
        (void)pthread_join(thread, NULL);
    }
    return __real_cudaEventQuery(event);
}

static rondo_comm_t create_on(int device, int64_t timeout_ms)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id;
    rondo_comm_t comm = NULL;

    config.device = device;
    config.timeout_ms = timeout_ms;
    if (rondo_unique_id_create(&id) != RONDO_SUCCESS || rondo_comm_create(&comm, 1, &id, 0, &config) != RONDO_SUCCESS)
        return NULL;
    return comm;
}

static rondo_comm_t create(int64_t timeout_ms)
{
    return create_on(1, timeout_ms);
}

/* By a thread whose context is the program's own, on another device: it has that again after each call. */
static void *by_own_context(void *unused)
{
    void *own = sim_context_own(0), *buffer = NULL;
    rondo_comm_t comm = create(0);

    CHECK(comm && sim_context() == own);
    CHECK(rondo_barrier(comm, NULL) == RONDO_SUCCESS && sim_context() == own);
    CHECK(rondo_mem_alloc(&buffer, 4096, comm) == RONDO_SUCCESS && sim_context() == own);
    CHECK(rondo_mem_free(buffer, comm) == RONDO_SUCCESS && sim_context() == own);
    CHECK(rondo_comm_destroy(comm) == RONDO_SUCCESS && sim_context() == own);
    return unused;
}

/* By a thread that has never gone to a device. */
static void *elsewhere(void *arg)
{
    rondo_comm_t part = NULL;
    int device = -1;

    rondo_comm_t comm = create(INT64_C(1) << 32);
    CHECK(comm && rondo_barrier(comm, NULL) == RONDO_SUCCESS);
    CHECK(sim_contexts() == 1u << 1);
    CHECK(cudaGetDevice(&device) == cudaSuccess && device == 0);
    CHECK(comm && comm->cuda->host->timeout_ms == 0); /* 50 days: no kernel's clock goes so far */
    CHECK(comm && rondo_comm_split(comm, 0, 0, &part, NULL) == RONDO_SUCCESS);
    CHECK(part && rondo_comm_device(part, &device) == RONDO_SUCCESS && device == 1);
    CHECK(part && rondo_comm_destroy(part) == RONDO_SUCCESS);
    CHECK(!create_on(RONDO_DEVICE_AUTO, 0)); /* the program is on device 1 by now, this thread nowhere */
    (void)arg;
    return comm;
}

/* What nobody has gone to is not taken unasked: the program may keep to host memory. */
static void check_auto(int wanted)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id;
    rondo_comm_t comm;
    int device = 17;

    CHECK(rondo_unique_id_create(&id) == RONDO_SUCCESS);
    CHECK(rondo_comm_create(&comm, 1, &id, 0, &config) == RONDO_SUCCESS);
    CHECK(rondo_comm_device(comm, &device) == RONDO_SUCCESS && device == wanted);
    CHECK(rondo_comm_destroy(comm) == RONDO_SUCCESS);
}

static int estimates; /* of calls of CUDA communicators */

double __real_rd_cuda_group_estimate(void);
double __wrap_rd_cuda_group_estimate(void);
double __wrap_rd_cuda_group_estimate(void)
{
    estimates++;
    return __real_rd_cuda_group_estimate();
}

static void *abort_comm(void *comm)
{
    CHECK(rondo_comm_abort(comm) == RONDO_SUCCESS);
    return NULL;
}

/* A group whose communicator another thread has aborted has calls on what is freed: they are not looked at. */
static void check_estimate(void)
{
    void *data = NULL;
    double us = -1;
    pthread_t thread;

    CHECK(cudaSetDevice(1) == cudaSuccess && cudaMalloc(&data, 64) == cudaSuccess);
    for (int aborted = 0; aborted < 2; aborted++) {
        rondo_comm_t comm = create(0);

        if (!comm)
            return;
        CHECK(rondo_group_start() == RONDO_SUCCESS);
        CHECK(rondo_allreduce(data, data, 1, RONDO_INT32, RONDO_SUM, comm, NULL) == RONDO_SUCCESS);
        if (aborted)
            CHECK(pthread_create(&thread, NULL, abort_comm, comm) == 0 && pthread_join(thread, NULL) == 0);
        CHECK(rondo_group_estimate(&us) == (aborted ? RONDO_ERR_ABORTED : RONDO_SUCCESS));
        CHECK(estimates == 1);
        if (!aborted)
            CHECK(rondo_comm_destroy(comm) == RONDO_SUCCESS);
    }
    CHECK(cudaFree(data) == cudaSuccess);
}

static void await_word(void *word)
{
    while (!atomic_load((_Atomic int *)word))
        usleep(1000);
}

/* A communicator ends while its kernel stands behind what the program has in its stream. */
static void check_buried(void)
{
    rondo_comm_t comm = create(0), later;
    static _Atomic int go;
    void *data = NULL;
    cudaStream_t stream;

    CHECK(cudaSetDevice(1) == cudaSuccess && cudaMalloc(&data, 64) == cudaSuccess);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(cudaLaunchHostFunc(stream, await_word, &go) == cudaSuccess);
    CHECK(comm && rondo_allreduce(data, (char *)data + 32, 1, RONDO_INT32, RONDO_SUM, comm, stream) == RONDO_SUCCESS);
    CHECK(rondo_comm_abort(comm) == RONDO_SUCCESS);
    asks = 1;
    later = create(0);
    CHECK(asks > 1);
    asks = 0;
    atomic_store(&go, 1);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(later && rondo_comm_destroy(later) == RONDO_SUCCESS);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess && cudaFree(data) == cudaSuccess);
}

int main(void)
{
    char before[256], after[256];
    pthread_t thread;
    void *comm;

    setenv("RONDO_DEBUG", "none", 1);
    alarm(300);
    check_pieces();
    check_auto(RONDO_DEVICE_HOST);
    for (int nlocal = 2; nlocal <= RD_KRANKS; nlocal++)
        for (int nodes = 2; nodes <= 4; nodes++)
            for (uint32_t i = 0; i < 9 * RD_KPROXY_CHANNELS && !failures; i++)
                check_beside(nlocal, nodes, 1u << i / RD_KPROXY_CHANNELS, 1 + i % RD_KPROXY_CHANNELS);
    for (uint32_t host_windows = 0; host_windows < 2; host_windows++)
        check_layouts(host_windows);
    if (pthread_create(&thread, NULL, elsewhere, NULL) != 0 || pthread_join(thread, &comm) != 0)
        return 1;
    CHECK(settled == 1); /* it has made two communicators; a kernel beside might fill the GPU when the second is made */
    (void)sim_live(before, sizeof before);
    no_kernels = 1;
    CHECK(!create(0));
    no_kernels = 0;
    (void)sim_live(after, sizeof after);
    CHECK(strcmp(before, after) == 0);
    CHECK(comm && rondo_comm_destroy(comm) == RONDO_SUCCESS);
    check_estimate();
    check_buried();
    CHECK(sim_live(after, sizeof after) == 0);
    if (pthread_create(&thread, NULL, by_own_context, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    CHECK(cudaSetDevice(0) == cudaSuccess);
    check_auto(0);
    CHECK(settled == 2); /* once on each device */
    return failures != 0;
}
