/* Barriers and signals of kernels of the program's own (rondo_device.cuh, which has their layout). They lie in a window
 * whose memory is rondo's; behind the area that all ranks write into comes what this rank alone counts. */
#include <string.h>

#include "exec/cuda/user.h"

#define BARRIERS 1024
#define BARRIERS_MOST 65536
#define SIGNALS 16
#define SIGNALS_MOST 4096

typedef struct wish {
    rd_verdict_t verdict;
    int32_t barriers, signals;
} wish_t;

/* Adding to memory of another GPU is atomic over NVLink, and within a GPU. */
static rondo_result_t resolve(const rd_cuda_t *cuda, const rondo_device_config_t *config, wish_t *wish)
{
    const bool adds = cuda->k.nranks == 1 || !cuda->limits.split;
    rd_log_ctx_t *ctx = cuda->team->ctx;

    wish->barriers = config->barriers == -1 ? BARRIERS : config->barriers;
    wish->signals = config->signals == -1 ? (adds ? SIGNALS : 0) : config->signals;
    if (wish->barriers < 1 || wish->barriers > BARRIERS_MOST)
        return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "rondo_device_create: config->barriers is %d, allowed are 1 to %d, and -1", config->barriers,
                        BARRIERS_MOST);
    if (wish->signals < 0 || wish->signals > SIGNALS_MOST)
        return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "rondo_device_create: config->signals is %d, allowed are 0 to %d, and -1", config->signals,
                        SIGNALS_MOST);
    if (wish->signals && !adds)
        return rd_error(ctx, RONDO_ERR_UNSUPPORTED,
                        "rondo_device_create: config->signals is %d, but GPUs of this communicator reach each other by "
                        "PCIe, over which what they add to each other's memory may be lost: barriers and puts alone "
                        "are served there (signals 0)",
                        config->signals);
    return RONDO_SUCCESS;
}

static rondo_result_t agree(rd_cuda_t *cuda, const rondo_device_config_t *config, wish_t *own)
{
    wish_t all[RONDO_DEVICE_RANKS];

    memset(all, 0, sizeof all);
    rd_verdict_set(&own->verdict, resolve(cuda, config, own));
    all[cuda->k.rank] = *own;
    rondo_result_t result = rd_verdicts_exchange(cuda, all, sizeof all[0]);
    for (int r = 0; r < cuda->k.nranks && result == RONDO_SUCCESS; r++) {
        if (all[r].barriers == own->barriers && all[r].signals == own->signals)
            continue;
        result = rd_error(cuda->team->ctx, RONDO_ERR_INVALID_ARGUMENT,
                          "rondo_device_create: rank %d (%s) wants %d barriers and %d signals, this rank %d and %d: "
                          "they must be alike on all ranks",
                          r, rd_boot_whois(cuda->team->boot, r), all[r].barriers, all[r].signals, own->barriers,
                          own->signals);
    }
    return result;
}

rondo_result_t rd_cuda_device_create(rd_cuda_t *cuda, const rondo_device_config_t *config, rondo_device_t *device)
{
    const size_t size = device->size, n = (size_t)cuda->k.nranks;
    rd_cuda_window_t *w = NULL;
    wish_t wish;

    memset(&wish, 0, sizeof wish);
    rondo_result_t result = rd_user_possible(cuda, "rondo_device_create");
    if (result == RONDO_SUCCESS)
        result = agree(cuda, config, &wish);
    const size_t barriers = (size_t)wish.barriers, signals = n * (size_t)wish.signals;
    const size_t area = barriers * RONDO_DEVICE_RANKS + signals;
    if (result == RONDO_SUCCESS)
        result = rd_user_window_create(cuda, NULL, (area + barriers + signals) * sizeof(uint32_t), true, &w);
    if (result != RONDO_SUCCESS)
        return result;
    memset(device, 0, sizeof *device);
    device->size = size;
    device->rank = cuda->k.rank;
    device->nranks = cuda->k.nranks;
    device->barriers = (uint32_t)wish.barriers;
    device->signals = (uint32_t)wish.signals;
    for (size_t r = 0; r < n; r++)
        device->area[r] = (uint32_t *)(void *)w->base[r];
    device->own = device->area[cuda->k.rank] + area;
    device->host = &cuda->k.host->abort;
    device->made = w;
    return RONDO_SUCCESS;
}

bool rd_cuda_has_device(const rd_cuda_t *cuda, const rondo_device_t *device)
{
    for (const rd_cuda_window_t *w = cuda->user_windows; w; w = w->next) {
        if (w == device->made && w->kept)
            return true;
    }
    return false;
}

rondo_result_t rd_cuda_device_destroy(rd_cuda_t *cuda, rondo_device_t *device)
{
    rd_cuda_window_t *w = device->made;

    device->made = NULL;
    return rd_cuda_window_destroy(cuda, w);
}
