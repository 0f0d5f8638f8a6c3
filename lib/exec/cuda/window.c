/* The window of a rank and the words that it shares with its kernels: kernels/work.h describes what a window contains.
 * What becomes of it at the communicator's end is told in graveyard.c. */
#include <string.h>

#include "base/page.h"
#include "exec/cuda/graveyard.h"

#define WINDOW_MOST ((size_t)70 << 20) /* with the barrier's page: CUDA allocates by 2 MB */
#define MESSAGE_SLICE (16u << 10)      /* of messages of some megabytes: a fence takes as long as moving this much */

/* Returns the greatest power of two that is at most `most` and RD_KFIFOS. */
static uint32_t power_of_two(size_t most)
{
    uint32_t power = 1;

    while (power * 2 <= most && power < RD_KFIFOS)
        power *= 2;
    return power;
}

/* How much memory banks, fifos and slices may take: links between GPUs need megabytes under way, the path through host
 * memory a tenth of that. */
static const struct {
    size_t bank, fifos, slices;
} sizes[2] = {
    {(size_t)10 << 20, (size_t)16 << 20, (size_t)16 << 20},
    {(size_t)3 << 19, (size_t)4 << 20, (size_t)2 << 20},
};

/* Sets the number of channels to the next rank, which is also that of blocks that receive messages, and the length of
 * their slices. Returns the bytes of all slices. */
static size_t slices_layout(rd_cuda_t *cuda, const rd_env_t *env, size_t most)
{
    uint32_t channels = env->cuda_channels ? (uint32_t)env->cuda_channels : RD_KCHANNELS;

    if (channels > most / (RD_KSLICES * RD_KSLICE))
        channels = (uint32_t)(most / (RD_KSLICES * RD_KSLICE));
    cuda->limits.channels = channels;
    cuda->limits.slice = (uint32_t)(most / (channels * RD_KSLICES) / RD_KSLICE * RD_KSLICE);
    cuda->k.slice_bytes = cuda->limits.slice;
    cuda->k.slice_least = MESSAGE_SLICE;
    return rd_round_up((size_t)channels * RD_KSLICES * cuda->limits.slice, RD_KALIGN);
}

/* Returns the number of a pair's fifos if there are `ranks` ranks. */
static uint32_t fifos_of(const rd_env_t *env, bool host_windows, size_t ranks)
{
    uint32_t fifos = power_of_two(sizes[host_windows].fifos / (RD_KSLOTS * RD_KSLOT) / ranks);

    return env->cuda_fifos && (uint32_t)env->cuda_fifos < fifos ? (uint32_t)env->cuda_fifos : fifos;
}

/* Lays out the window. For algorithms that go from neighbour to neighbour, a pair has as many fifos as fit into the
 * memory for them. Messages go between all pairs at once: the fifos that they use are limited by what the device runs
 * at once, beside a block each way for every peer if messages may go by slices. */
void rd_window_layout(rd_cuda_t *cuda, const rd_env_t *env, int sms)
{
    rd_kcomm_t *k = &cuda->k;
    size_t control = rd_round_up(sizeof(rd_kcontrol_t), RD_KALIGN), host_windows = cuda->limits.host_windows;
    size_t fifos, slices, streams, bank = env->cuda_bank ? env->cuda_bank : sizes[host_windows].bank;
    size_t peers = (size_t)k->nranks - 1, fifo = (size_t)RD_KSLOTS * RD_KSLOT, most = (size_t)sms;

    k->fifos = fifos_of(env, cuda->limits.host_windows, peers + 1);
    fifos = rd_round_up((peers + 1) * k->fifos * fifo, RD_KALIGN);
    slices = slices_layout(cuda, env, sizes[host_windows].slices);
    streams = rd_round_up((size_t)cuda->limits.channels * RD_KSLICE_SLOTS * RD_KSLICE, RD_KALIGN);
    cuda->limits.streams = most >= 4 * peers && cuda->limits.channels >= peers;
    most -= cuda->limits.streams ? 2 * peers : 0;
    size_t spread = power_of_two(most * rd_kernel_at_once() / (2 * peers));
    k->spread = (uint16_t)(spread < k->fifos ? spread : k->fifos);
    if (control + fifos + slices + streams + 2 * bank > WINDOW_MOST - RD_PAGE)
        bank = (WINDOW_MOST - RD_PAGE - control - fifos - slices - streams) / 2;
    bank = bank / 128 * 128;
    k->fifo_offset = (uint32_t)(control / RD_KALIGN);
    k->slice_offset = (uint32_t)((control + fifos) / RD_KALIGN);
    k->stream_offset = (uint32_t)((control + fifos + slices) / RD_KALIGN);
    k->bank_offset = (uint32_t)((control + fifos + slices + streams) / RD_KALIGN);
    k->bank_bytes = (uint32_t)bank;
    cuda->shared_bytes = rd_round_up(control + fifos + slices + streams + 2 * bank, RD_PAGE);
    cuda->window_bytes = (host_windows ? control : cuda->shared_bytes) + RD_PAGE; /* and the barrier's element */
    cuda->limits.bank = k->bank_bytes;
    cuda->limits.fifos = k->fifos;
}

void rd_window_foresee(const rd_env_t *env, int nranks, bool host_windows, rondo_memory_t *memory)
{
    rd_cuda_t cuda = {.k = {.nranks = nranks}, .limits = {.host_windows = host_windows}};

    if (nranks == 1)
        return;
    rd_window_layout(&cuda, env, 1); /* the multiprocessors do not change the bytes */
    memory->device += cuda.window_bytes;
    memory->suspend += cuda.window_bytes;
    memory->pinned += host_windows ? cuda.shared_bytes : 0;
}

/* Of host memory that the node's ranks share, each counts its own part. */
void rd_window_count(const rd_cuda_t *cuda, rondo_memory_t *memory)
{
    memory->device += cuda->window ? cuda->window_bytes : 0;
    memory->suspend += cuda->window ? cuda->window_bytes : 0;
    memory->suspended += cuda->kept && !cuda->window ? cuda->window_bytes : 0;
    memory->pinned += cuda->pinned ? cuda->shared.segment_bytes : 0;
    memory->pinned += cuda->host && !cuda->parent ? RD_WORD_BYTES : 0;
}

/* ---- a communicator's window ---- */

/* The control words of a communicator that is resumed are those that it had. */
static cudaError_t clear(rd_cuda_t *cuda)
{
    cudaStream_t stream;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

    if (error != cudaSuccess)
        return error;
    error = cudaMemsetAsync(cuda->window, 0xff, cuda->window_bytes, stream);
    if (error == cudaSuccess)
        error = cuda->kept
                    ? cudaMemcpyAsync(cuda->window, cuda->kept, sizeof *cuda->kept, cudaMemcpyHostToDevice, stream)
                    : cudaMemsetAsync(cuda->window, 0, sizeof(rd_kcontrol_t), stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    (void)cudaStreamDestroy(stream);
    return error;
}

/* Rails send from a node communicator's window, which they can where nothing else was announced: after a suspension
 * CUDA likes to give the same place again. Where no other is found, they send from copies. */
static cudaError_t allocate(rd_cuda_t *cuda)
{
    bool fresh;

    return cuda->parent ? rd_rcache_allocate(cuda, cuda->window_bytes, &cuda->window, &fresh)
                        : cudaMalloc((void **)&cuda->window, cuda->window_bytes);
}

rondo_result_t rd_window_create(rd_cuda_t *cuda)
{
    cudaError_t error = cudaSuccess;

    cuda->window = rd_grave_window_take(cuda);
    if (cuda->window_bytes && !cuda->window)
        error = allocate(cuda);
    if (error == cudaSuccess && !cuda->host)
        cuda->host = cuda->parent ? cuda->parent->host : rd_words_take(&error);
    if (error == cudaSuccess)
        error = cudaHostGetDevicePointer((void **)&cuda->k.host, cuda->host, 0);
    if (error == cudaSuccess && cuda->window)
        error = clear(cuda);
    if (error != cudaSuccess)
        return rd_cuda_error(cuda->team->ctx, error, "device memory for a communicator");
    if (!cuda->parent)
        rd_cuda_limit(cuda);
    cuda->k.own = cuda->window;
    cuda->scratch = cuda->window ? cuda->window + cuda->window_bytes - RD_PAGE : NULL;
    return RONDO_SUCCESS;
}

char *rd_window_scratch(const rd_cuda_t *cuda)
{
    const rd_kcomm_t *k = &cuda->k;

    return cuda->window + (size_t)k->fifo_offset * RD_KALIGN + (size_t)k->rank * k->fifos * RD_KSLOTS * RD_KSLOT;
}

size_t rd_window_scratch_bytes(const rd_cuda_t *cuda)
{
    return (size_t)fifos_of(cuda->team->env, 0, (size_t)cuda->team->node->most) * RD_KSLOTS * RD_KSLOT;
}

size_t rd_window_staging(const rd_cuda_t *cuda)
{
    return (size_t)cuda->k.slice_offset * RD_KALIGN;
}

size_t rd_window_staging_bytes(const rd_cuda_t *cuda, const rd_env_t *env)
{
    const size_t all = (size_t)(cuda->k.bank_offset - cuda->k.slice_offset) * RD_KALIGN, most = env->cuda_staging;

    return cuda->limits.host_windows ? 0 : most && most < all ? most : all;
}

rondo_result_t rd_window_give_back(rd_cuda_t *cuda)
{
    cudaError_t error = cuda->window ? cudaFree(cuda->window) : cudaSuccess;

    cuda->window = cuda->k.own = NULL;
    cuda->scratch = NULL;
    rd_window_left_free(cuda->device);
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(cuda->team->ctx, error, "giving back device memory");
}
