/* What ranks tell each other about devices, and how each maps the windows of all.
 *
 * Within a process a window is reached by its address, once peer access is allowed; between processes by an IPC handle,
 * which names the base of the allocation. Everything is exchanged by the bootstrap's authenticated allgather, and a
 * rank that fails says so there: so all ranks fail together, each with an error that names the rank and the reason. If
 * one GPU does not reach another one, all windows lie in host memory instead: window_host.c. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "node/agree.h"
#include "exec/cuda/cuda_int.h"
#include "exec/cuda/proxy/proxy.h"

/* A GPU that another one does not reach. */
typedef struct rd_missed {
    int32_t is, peer;
    char why[160];
} rd_missed_t;

typedef struct facts {
    rd_verdict_t verdict;
    rd_cuda_peer_t peer;
    uint64_t key;
} facts_t;

typedef struct offer {
    rd_verdict_t verdict;
    rd_missed_t missed; /* why other processes cannot map the window */
    void *window;
    uint64_t offset; /* of the window within the allocation that the handle names */
    uint64_t buffer; /* rd_import_name_t's */
    cudaIpcMemHandle_t handle;
    rd_gpu_path_t path; /* path between the farthest pair, as this rank sees it */
    rd_ring_offer_t ring;
} offer_t;

/* Returns a number that the process keeps as long as it lives. A forked child that may use CUDA has started anew by
 * exec. */
static uint64_t process_number(void)
{
    static _Atomic uint64_t number;
    uint64_t drawn = 0, none = 0;

    if (atomic_load(&number) == 0) {
        if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn || drawn == 0)
            drawn = (uintptr_t)&number;
        atomic_compare_exchange_strong(&number, &none, drawn);
    }
    return atomic_load(&number);
}

rondo_result_t rd_verdicts_exchange(rd_cuda_t *cuda, void *all, size_t each)
{
    const rd_team_t *team = cuda->team;
    rondo_result_t result = rd_boot_allgather(team->boot, all, each);

    for (int r = 0; r < team->nranks && result == RONDO_SUCCESS; r++) {
        const rd_verdict_t *v = (const rd_verdict_t *)(const void *)((const char *)all + (size_t)r * each);
        if (v->result == RONDO_SUCCESS)
            continue;
        result = (rondo_result_t)v->result;
        if (r != team->rank)
            rd_error(team->ctx, result, "rank %d (%s): %.*s", r, rd_boot_whois(team->boot, r), (int)sizeof v->text,
                     v->text);
    }
    return result;
}

void rd_verdict_set(rd_verdict_t *v, rondo_result_t result)
{
    v->result = result;
    if (result != RONDO_SUCCESS)
        snprintf(v->text, sizeof v->text, "%s", rd_thread_error());
}

/* ---- where ranks are ---- */

static rondo_result_t own_facts(rd_cuda_t *cuda, rd_cuda_peer_t *peer)
{
    rd_log_ctx_t *ctx = cuda->team->ctx;
    int sms = 0;
    cudaError_t error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, cuda->device);

    if (error == cudaSuccess)
        error = cudaDeviceGetPCIBusId(peer->bus, sizeof peer->bus, cuda->device);
    if (error != cudaSuccess)
        return rd_cuda_error(ctx, error, "asking what the device is");
    error = (cudaError_t)rd_kernel_load(rd_driver_context(cuda->device));
    if (error == cudaErrorNoKernelImageForDevice)
        return rd_error(ctx, RONDO_ERR_UNSUPPORTED,
                        "this library has no kernels for device %d: build it with --with-cuda-arch, or use "
                        "RONDO_DEVICE_HOST",
                        cuda->device);
    if (error != cudaSuccess)
        return rd_cuda_error(ctx, error, "loading the kernels");
    peer->process = process_number();
    peer->machine = rd_machine_number();
    peer->device = cuda->device;
    peer->sms = sms;
    return RONDO_SUCCESS;
}

/* Returns the number of ranks on the GPU of rank `a`; `together`: only of those that belong to its process. */
static int sharing_with(const rd_cuda_t *cuda, int n, int a, bool together)
{
    int here = 0;

    for (int b = 0; b < n; b++)
        here += cuda->peers[a].machine == cuda->peers[b].machine &&
                strcmp(cuda->peers[a].bus, cuda->peers[b].bus) == 0 &&
                (!together || cuda->peers[a].process == cuda->peers[b].process);
    return here;
}

/* The same for the GPU on which it is greatest. */
static int most_sharing(const rd_cuda_t *cuda, int n, bool together)
{
    int most = 1;

    for (int a = 0; a < n; a++) {
        int here = sharing_with(cuda, n, a, together);
        most = here > most ? here : most;
    }
    return most;
}

#define MPS_ENABLED ((enum cudaDeviceAttr)133) /* older headers have no name for it, older drivers no value */

static void warn_of_sharing(const rd_cuda_t *cuda)
{
    rd_log_ctx_t *ctx = cuda->team->ctx;
    int together = most_sharing(cuda, cuda->team->nranks, true), mps = 0;

    if (cudaDeviceGetAttribute(&mps, MPS_ENABLED, cuda->device) != cudaSuccess)
        (void)cudaGetLastError();
    if (cuda->sharing > together && mps)
        rd_log(ctx, RD_LOG_WARN,
               "%d ranks share one GPU under MPS: operations work, but each rank has only %d of its multiprocessors",
               cuda->sharing, (int)cuda->limits.blocks);
    else if (cuda->sharing > together)
        rd_log(ctx, RD_LOG_WARN,
               "%d ranks share one GPU: operations work, but without MPS the processes take turns on it, and a step "
               "takes milliseconds",
               cuda->sharing);
    if (together > 1)
        rd_log(
            ctx, RD_LOG_WARN,
            "%d ranks of one process share one GPU: if they use more than 8 streams together, set "
            "CUDA_DEVICE_MAX_CONNECTIONS=32 before the process starts, and capture no parallel branches in a graph, or "
            "streams wait for one another for ever",
            together);
}

static rondo_result_t no_memory(const rd_cuda_t *cuda)
{
    return rd_error(cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for a CUDA communicator of %d ranks",
                    cuda->team->nranks);
}

/* *sms: multiprocessors of the smallest GPU. */
static rondo_result_t exchange_facts(rd_cuda_t *cuda, facts_t *all, int *sms)
{
    const rd_team_t *team = cuda->team;
    facts_t *own = &all[team->rank];

    if (getrandom(&own->key, sizeof own->key, 0) != sizeof own->key)
        own->key = (uintptr_t)cuda;
    rd_verdict_set(&own->verdict, own_facts(cuda, &own->peer));
    rondo_result_t result = rd_verdicts_exchange(cuda, all, sizeof *all);
    if (result != RONDO_SUCCESS)
        return result;
    *sms = INT_MAX;
    for (int r = 0; r < team->nranks; r++) {
        cuda->peers[r] = all[r].peer;
        *sms = all[r].peer.sms < *sms ? all[r].peer.sms : *sms;
    }
    cuda->key = all[0].key;
    return RONDO_SUCCESS;
}

rondo_result_t rd_import_facts(rd_cuda_t *cuda)
{
    const rd_team_t *team = cuda->team;
    facts_t *all = calloc((size_t)team->nranks, sizeof *all);
    int sms = 0;

    cuda->peers = calloc((size_t)team->nranks, sizeof *cuda->peers);
    rondo_result_t result = all && cuda->peers ? exchange_facts(cuda, all, &sms) : no_memory(cuda);
    free(all);
    if (result != RONDO_SUCCESS)
        return result;
    cuda->sharing = most_sharing(cuda, team->nranks, false);
    cuda->beside = sharing_with(cuda, team->nranks, team->rank, true);
    int blocks = sms / cuda->sharing;
    if (team->env->cuda_blocks && team->env->cuda_blocks < blocks)
        blocks = team->env->cuda_blocks;
    cuda->limits.nranks = (uint32_t)team->nranks;
    cuda->limits.host_windows = !team->env->p2p;
    cuda->limits.prices = team->prices;
    cuda->limits.blocks = blocks > 0 ? (uint32_t)blocks : 1;
    cuda->limits.blocks_least = (uint32_t)team->env->cuda_blocks_least;
    if (team->rank == 0)
        warn_of_sharing(cuda);
    if (team->nranks > 1 && !rd_proxy_path_needed(team->nranks, team->node->nnodes))
        rd_window_layout(cuda, team->env, blocks);
    return RONDO_SUCCESS;
}

/* ---- windows ---- */

/* Only the driver knows where the allocation begins. */
uint64_t rd_import_offset(const void *pointer)
{
    unsigned long long base = (unsigned long long)(uintptr_t)pointer;
    size_t bytes;

    rd_driver_find();
    if (rd_driver.range)
        (void)rd_driver.range(&base, &bytes, (unsigned long long)(uintptr_t)pointer);
    return (uint64_t)(uintptr_t)pointer - base;
}

static bool other_process(const rd_cuda_t *cuda)
{
    for (int r = 0; r < cuda->k.nranks; r++) {
        if (cuda->peers[r].process != cuda->peers[cuda->k.rank].process)
            return true;
    }
    return false;
}
static void note_missed(rd_missed_t *missed, int peer, const char *what, cudaError_t error)
{
    (void)cudaGetLastError();
    missed->is = 1;
    missed->peer = peer;
    snprintf(missed->why, sizeof missed->why, "%s: %s", what, cudaGetErrorString(error));
}

static rondo_result_t own_offer(rd_cuda_t *cuda, offer_t *offer)
{
    rondo_result_t result = rd_window_create(cuda);

    if (result != RONDO_SUCCESS || !cuda->window)
        return result;
    offer->window = cuda->window;
    if (!other_process(cuda))
        return RONDO_SUCCESS;
    offer->offset = rd_import_offset(cuda->window);
    if (!rd_driver.attribute ||
        rd_driver.attribute(&offer->buffer, RD_DRIVER_BUFFER_ID, (unsigned long long)(uintptr_t)cuda->window) != 0)
        offer->buffer = 0;
    cudaError_t error = cudaIpcGetMemHandle(&offer->handle, cuda->window);
    if (error != cudaSuccess)
        note_missed(&offer->missed, -1, "cudaIpcGetMemHandle", error);
    return RONDO_SUCCESS;
}

/* Maps the window of a rank of this process. */
static void map_here(rd_cuda_t *cuda, int r, const offer_t *offer, rd_missed_t *missed)
{
    cudaError_t error = rd_device_reach(cuda->device, cuda->peers[r].device);

    if (error != cudaSuccess)
        note_missed(missed, r, "peer access", error);
    cuda->k.window[r] = offer->window;
}

cudaError_t rd_import_open(void **memory, int device, const cudaIpcMemHandle_t *handle, uint64_t process)
{
    cudaError_t error = cudaIpcOpenMemHandle(memory, *handle, cudaIpcMemLazyEnablePeerAccess);

    if (error != cudaErrorAlreadyMapped)
        return error;
    (void)cudaGetLastError();
    rd_window_mapped_close(device, process);
    return cudaIpcOpenMemHandle(memory, *handle, cudaIpcMemLazyEnablePeerAccess);
}

static void map_there(rd_cuda_t *cuda, int r, const offer_t *offer, rd_missed_t *missed)
{
    const uint64_t process = cuda->peers[r].process;
    cudaError_t error = cudaSuccess;

    cuda->imports[r] = (rd_import_name_t){process, offer->buffer};
    cuda->imported[r] = rd_window_mapped(cuda->device, cuda->imports[r]);
    if (!cuda->imported[r])
        error = rd_import_open(&cuda->imported[r], cuda->device, &offer->handle, process);
    if (error != cudaSuccess) {
        cuda->imported[r] = NULL;
        note_missed(missed, r, "cudaIpcOpenMemHandle", error);
        return;
    }
    cuda->k.window[r] = (char *)cuda->imported[r] + offer->offset;
}

/* Reports the first pair, by one rank only, so that the message appears once. */
static void distinguish(const rd_cuda_t *cuda, int r, const rd_missed_t *missed)
{
    char peer[64] = "those of other processes";

    if (cuda->k.rank != 0 || cuda->parent)
        return;
    if (missed->peer >= 0 && missed->peer < cuda->k.nranks)
        snprintf(peer, sizeof peer, "that of rank %d at %s", missed->peer, cuda->peers[missed->peer].bus);
    rd_log_slow(
        cuda->team->ctx,
        "the GPU of rank %d at %s does not reach %s (%.*s): all data goes through pinned host memory, at some tens of "
        "GB/s a GPU instead of hundreds, and a step takes several microseconds more. rondo-info doctor tries every "
        "pair; access control services of PCIe bridges, an IOMMU and containers without --ipc=host prevent it",
        r, cuda->peers[r].bus, peer, (int)sizeof missed->why, missed->why);
}

static rd_gpu_path_t own_path(const rd_cuda_t *cuda)
{
    const char *buses[RD_KRANKS];

    for (int r = 0; r < cuda->k.nranks; r++)
        buses[r] = cuda->peers[r].bus;
    return rd_gpu_farthest_here(buses, cuda->k.nranks);
}

/* Some ranks may not see all GPUs: the farthest path that any rank knows counts for all. */
static void agree_path(rd_cuda_t *cuda, const offer_t *all)
{
    rd_gpu_path_t path = {RD_NEAR_SELF, 0, 0, 0};

    for (int i = 0; i < cuda->k.nranks; i++) {
        int r = rd_cuda_rank_of(cuda, i);
        if (all[r].path.near != RD_NEAR_UNKNOWN)
            path = rd_gpu_farther(path, all[r].path);
    }
    rd_limits_path(&cuda->limits, path);
    cuda->limits.ring_gbps = rd_ring_order_take(cuda, &all[rd_cuda_rank_of(cuda, 0)].ring) * path.gbps;
    cuda->limits.visits = cuda->visits.is;
    rd_limits_sliced(&cuda->limits, cuda->team->env);
}

/* Exchanges what each rank offers, maps the windows, and exchanges what each rank cannot map. */
static rondo_result_t map_windows(rd_cuda_t *cuda, bool again, offer_t *offers, rd_missed_t *missed)
{
    const rd_team_t *team = cuda->team;
    rondo_result_t result;

    result = own_offer(cuda, &offers[team->rank]);
    if (result == RONDO_SUCCESS && !again) /* channels go on counting, so the order stays what it was */
        result = rd_ring_order_offer(cuda, &offers[team->rank].ring);
    rd_verdict_set(&offers[team->rank].verdict, result);
    offers[team->rank].path = own_path(cuda);
    if ((result = rd_verdicts_exchange(cuda, offers, sizeof *offers)))
        return result;
    if (!again)
        agree_path(cuda, offers);
    for (int i = 0; i < cuda->k.nranks; i++) {
        int r = rd_cuda_rank_of(cuda, i);
        if (i == cuda->k.rank)
            cuda->k.window[i] = cuda->window;
        else if (cuda->peers[i].process == cuda->peers[cuda->k.rank].process)
            map_here(cuda, i, &offers[r], &missed[team->rank]);
        else if (!offers[r].missed.is)
            map_there(cuda, i, &offers[r], &missed[team->rank]);
    }
    if (offers[team->rank].missed.is)
        missed[team->rank] = offers[team->rank].missed;
    return rd_boot_allgather(team->boot, missed, sizeof *missed);
}

/* See cuda_int.h. */
rondo_result_t rd_import_device_windows(rd_cuda_t *cuda, bool again, bool *host_windows)
{
    const rd_team_t *team = cuda->team;
    offer_t *offers = calloc((size_t)team->nranks, sizeof *offers);
    rd_missed_t *missed = calloc((size_t)team->nranks, sizeof *missed);
    rondo_result_t result = offers && missed ? RONDO_SUCCESS : no_memory(cuda);

    if (again) /* it is no end of a creation, which the others would hear of */
        result = rd_boot_meet(team->boot, result, rd_thread_error());
    if (result == RONDO_SUCCESS)
        result = map_windows(cuda, again, offers, missed);
    for (int r = 0; result == RONDO_SUCCESS && r < team->nranks && !*host_windows; r++) {
        if ((*host_windows = missed[r].is))
            distinguish(cuda, r, &missed[r]);
    }
    free(offers);
    free(missed);
    if (result != RONDO_SUCCESS)
        return result;
    if (*host_windows) {
        rd_import_leave(cuda);
        rd_window_release(cuda);
    }
    return RONDO_SUCCESS;
}

rondo_result_t rd_import_windows(rd_cuda_t *cuda)
{
    rondo_result_t result = RONDO_SUCCESS;
    bool host_windows = false;

    if (cuda->k.nranks == 1)
        return rd_window_create(cuda);
    if (!cuda->limits.host_windows) {
        if ((result = rd_import_device_windows(cuda, false, &host_windows)) || !host_windows)
            return result;
        cuda->limits.host_windows = true;
        rd_window_layout(cuda, cuda->team->env, (int)cuda->limits.blocks);
    } else if (cuda->k.rank == 0) {
        rd_log(cuda->team->ctx, RD_LOG_INFO, "RONDO_P2P is 0: all data goes through pinned host memory");
    }
    rd_limits_sliced(&cuda->limits, cuda->team->env);
    return rd_window_host_map(cuda);
}

/* On the proxy path there may be more ranks than RD_KRANKS, which have imported nothing. */
void rd_import_leave(rd_cuda_t *cuda)
{
    for (int r = 0; r < RD_KRANKS; r++) {
        if (cuda->imported[r])
            rd_window_unmap(cuda, cuda->imported[r], cuda->imports[r]);
        cuda->imported[r] = NULL;
    }
}

void rd_import_close(rd_cuda_t *cuda)
{
    for (int r = 0; r < RD_KRANKS; r++) {
        if (cuda->imported[r])
            (void)cudaIpcCloseMemHandle(cuda->imported[r]);
        cuda->imported[r] = NULL;
    }
}
