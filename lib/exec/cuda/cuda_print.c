/* What rondo-info shows of CUDA: the devices, and for an operation every kernel that could serve it. */
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/cuda_int.h"

void rd_cuda_print(FILE *file)
{
    int count = 0, runtime = 0, driver = 0;
    cudaError_t error = cudaGetDeviceCount(&count);

    (void)cudaRuntimeGetVersion(&runtime);
    (void)cudaDriverGetVersion(&driver);
    if (error != cudaSuccess || count == 0) {
        (void)cudaGetLastError();
        fprintf(file, "CUDA          runtime %d.%d, no device: %s\n", runtime / 1000, runtime % 1000 / 10,
                error == cudaSuccess ? "none is visible" : cudaGetErrorString(error));
        return;
    }
    fprintf(file, "CUDA          runtime %d.%d, driver's %d.%d, %d devices\n", runtime / 1000, runtime % 1000 / 10,
            driver / 1000, driver % 1000 / 10, count);
    for (int d = 0; d < count; d++) {
        struct cudaDeviceProp prop;
        char bus[20] = "?";
        if (cudaGetDeviceProperties(&prop, d) != cudaSuccess)
            continue;
        (void)cudaDeviceGetPCIBusId(bus, sizeof bus, d);
        fprintf(file, "              device %d: %s, %s, compute capability %d.%d, %d multiprocessors, %zu MB, reaches",
                d, prop.name, bus, prop.major, prop.minor, prop.multiProcessorCount, prop.totalGlobalMem >> 20);
        for (int p = 0; p < count; p++) {
            int can = 0;
            if (p != d && cudaDeviceCanAccessPeer(&can, d, p) == cudaSuccess && can)
                fprintf(file, " %d", p);
        }
        fputc('\n', file);
    }
}

int rd_cuda_multiprocessors(const char *bus)
{
    int device, sms = 0;

    if (cudaDeviceGetByPCIBusId(&device, bus) != cudaSuccess ||
        cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
        (void)cudaGetLastError();
    return sms;
}

/* Sets the limits of a communicator of this shape, by these prices. */
static rondo_result_t shape_limits(const rd_cuda_shape_t *shape, const rd_env_t *env, const rd_prices_t *prices,
                                   rd_limits_t *limits, size_t *window)
{
    int sms = shape->sms;
    rd_cuda_t *cuda;

    if (shape->nranks < 2 || shape->nranks > RD_KRANKS)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "%d ranks: kernels of one node have plans for 2 to %d; what more ranks do goes through "
                        "proxies, and goes by the "
                        "host's plans, which are shown without --device cuda",
                        shape->nranks, RD_KRANKS);
    rondo_result_t result = rd_kchoose_names(env, NULL);
    if (result != RONDO_SUCCESS)
        return result;
    if (!(cuda = calloc(1, sizeof *cuda)))
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for a plan");
    cuda->k.nranks = shape->nranks;
    cuda->limits.nranks = (uint32_t)shape->nranks;
    cuda->limits.host_windows = !env->p2p;
    cuda->limits.copies = env->p2p != 0;
    cuda->limits.blocks = (uint32_t)(env->cuda_blocks && env->cuda_blocks < sms ? env->cuda_blocks : sms);
    cuda->limits.blocks_least = (uint32_t)env->cuda_blocks_least;
    rd_window_layout(cuda, env, (int)cuda->limits.blocks);
    cuda->limits.staging = rd_window_staging_bytes(cuda, env);
    rd_limits_path(&cuda->limits, shape->path);
    cuda->limits.prices = prices;
    rd_limits_sliced(&cuda->limits, env);
    *limits = cuda->limits;
    *window = cuda->shared_bytes;
    free(cuda);
    return RONDO_SUCCESS;
}

/* Where copy engines read, as far as no communicator is needed to know. */
static uint32_t planned(const rd_env_t *env)
{
    return rd_cta_policy(env) == RONDO_CTA_POLICY_DEFAULT ? RD_COPIES_REGISTERED : RD_COPIES_STAGING;
}

/* A line for each; a copy has one protocol. */
static void candidate_print(FILE *file, const rd_wanted_t *wanted, const rd_limits_t *limits, const rd_choice_t *c,
                            const rd_kchoice_t *best)
{
    rd_kernel_t kernel = c->algo->device.kernel;
    int is_best = best && best->launch.algo == c->algo && best->launch.proto == c->proto;
    rd_kchoice_t one;

    if (kernel == RD_KERNEL_COPY && c->proto != RD_PROTO_LL)
        return;
    fprintf(file, "%c %-9s %-9s", is_best ? '*' : ' ', c->algo->name, rd_proto_name(c->proto));
    if (c->excluded) {
        fprintf(file, "          %s\n", c->excluded);
        return;
    }
    fprintf(file, "%8.1f us", c->us);
    (void)rd_kchoose_one(wanted, limits, c->algo, c->proto, &one);
    if (kernel == RD_KERNEL_COPY)
        fprintf(file, "  from %s, where RONDO_CUDA_COPY%s says so",
                rd_copies_by_staging(wanted) ? "windows, into which it is put first" : "registered buffers",
                rd_copies_by_staging(wanted) ? " or RONDO_CTA_POLICY" : "");
    else if (kernel != RD_KERNEL_MESSAGES)
        fprintf(file, "  %u passes of %u tiles%s, %u blocks of %u threads", one.passes, one.tiles,
                one.launch.banks ? " in both banks" : "", one.launch.blocks, one.launch.threads);
    fprintf(file, "\n");
}

rondo_result_t rd_cuda_plan_print(FILE *file, rd_coll_t coll, rondo_type_t type, size_t count,
                                  const rd_cuda_shape_t *shape, const rd_env_t *env)
{
    const rd_forced_t forced = rd_forced(env, coll);
    rd_choices_t all;
    rd_wanted_t wanted = {(uint32_t)coll, (uint32_t)type, RONDO_SUM, (uint32_t)rondo_type_size(type), count, 0, 0, 0};
    rd_limits_t limits;
    rd_prices_t prices;
    rd_kchoice_t best;
    size_t window;
    char text[64];
    int number;

    wanted.copies = planned(env);
    if (coll == RD_BARRIER)
        wanted = (rd_wanted_t){RD_ALLREDUCE, RONDO_INT32, RONDO_SUM, 4, count = 1, 0, 0, 0};
    rondo_result_t result = rd_prices_find(&prices, &number, env->tune, NULL);
    if (result == RONDO_SUCCESS)
        result = shape_limits(shape, env, &prices, &limits, &window);
    if (result != RONDO_SUCCESS)
        return result;
    const char *why = rd_kchoose(&wanted, &limits, coll == RD_BARRIER ? NULL : env, &best);
    fprintf(file, "%s of %zu %s on %d GPUs of one node, %d multiprocessors each", rd_coll_name(coll), count,
            rd_type_name(type), shape->nranks, shape->sms);
    if (shape->path.gbps > 0)
        fprintf(file, ", %s, %.0f GB/s", rd_gpu_path_print(shape->path, text), shape->path.gbps);
    fprintf(file, "\na window of %zu KB%s: %u fifos a pair, two banks of %u KB\n\n", window >> 10,
            env->p2p ? "" : " in pinned host memory (RONDO_P2P=0; times reckoned, not measured)", limits.fifos,
            limits.bank >> 10);
    rd_kchoose_all(&wanted, &limits, &forced, &all);
    for (int i = 0; i < all.count; i++)
        candidate_print(file, &wanted, &limits, &all.entry[i], why ? NULL : &best);
    return why ? rd_error(NULL, RONDO_ERR_UNSUPPORTED, "nothing serves it: %s", why) : RONDO_SUCCESS;
}

/* Prints for one operation the sizes up to which a kernel is chosen; of blocks, for operations that have blocks, as in
 * rondo-perf. */
static void choices_line(FILE *file, rd_coll_t coll, const rd_limits_t *limits, const rd_env_t *env)
{
    uint64_t last = 0;
    char now[64], before[64] = "", size[24];

    fprintf(file, "%-15s", rd_coll_name(coll));
    for (uint64_t bytes = 8; bytes <= UINT64_C(1) << 30; last = bytes, bytes *= 2) {
        uint64_t count = bytes / 4 / (coll == RD_REDUCE_SCATTER ? limits->nranks : 1);
        rd_wanted_t wanted = {(uint32_t)coll, RONDO_FLOAT32, RONDO_SUM, 4, count ? count : 1, 0, 0, 0};
        rd_kchoice_t c;

        wanted.copies = planned(env);
        if (rd_kchoose(&wanted, limits, env, &c) != NULL)
            snprintf(now, sizeof now, "nothing");
        else
            snprintf(now, sizeof now, "%s %s", c.launch.algo->name, rd_proto_name(c.launch.proto));
        if (*before && strcmp(now, before) != 0)
            fprintf(file, " to %s %s,", rd_bytes_print(last, size), before);
        strcpy(before, now);
    }
    fprintf(file, " to %s %s\n", rd_bytes_print(last, size), before);
}

rondo_result_t rd_cuda_choices_print(FILE *file, const rd_cuda_shape_t *shape, const rd_env_t *env)
{
    rd_limits_t limits;
    rd_prices_t prices;
    size_t window;
    int number;
    rondo_result_t result = rd_prices_find(&prices, &number, env->tune, NULL);

    if (result == RONDO_SUCCESS)
        result = shape_limits(shape, env, &prices, &limits, &window);
    if (result != RONDO_SUCCESS)
        return result;
    fprintf(file, "chosen on %d GPUs of %d multiprocessors, float sums, bytes of a message as in rondo-perf:\n",
            shape->nranks, shape->sms);
    for (int coll = 0; coll <= RD_SCATTER; coll++)
        if (coll != RD_BARRIER)
            choices_line(file, (rd_coll_t)coll, &limits, env);
    return RONDO_SUCCESS;
}

bool rd_cuda_goes_by(const rd_algo_t *algo, rd_proto_t proto)
{
    return rd_kernel_tile(algo, proto) != 0;
}

double rd_cuda_expected(const rd_cuda_shape_t *shape, const rd_prices_t *prices, const rd_env_t *env, rd_coll_t coll,
                        uint64_t bytes, const rd_algo_t *algo, rd_proto_t proto)
{
    uint64_t count = bytes / 4 / (coll == RD_REDUCE_SCATTER ? (uint64_t)shape->nranks : 1);
    rd_wanted_t wanted = {(uint32_t)coll, RONDO_FLOAT32, RONDO_SUM, 4, count ? count : 1, 0, 0, 0};
    rd_limits_t limits;
    rd_kchoice_t choice;
    size_t window;

    if (shape_limits(shape, env, prices, &limits, &window) != RONDO_SUCCESS)
        return 0;
    limits.sliced_coll = proto == RD_PROTO_SIMPLE ? 0 : UINT64_MAX; /* it is forced */
    return rd_kchoose_one(&wanted, &limits, algo, proto, &choice) ? 0 : choice.us;
}
