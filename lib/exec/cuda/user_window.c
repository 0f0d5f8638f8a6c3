/* Windows of a CUDA communicator: device memory of each rank, mapped by all, for kernels of the program's own
 * (rondo_device.cuh) and for one-sided operations on streams (stream_access.c). The ranks are on one node, and their
 * GPUs reach each other, as for rondo's own windows.
 *
 * Everything is exchanged by the bootstrap, and a rank that fails says so there. What a window leaves behind, at the
 * end of a communicator that has not destroyed it or after a failure, is neither unmapped nor freed before the last
 * communicator of the process has ended (graveyard.c): kernels of the program's may still be about to leave, and
 * nothing tells rondo when they have. */
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/user.h"

typedef struct offer {
    rd_verdict_t verdict;
    void *address;
    uint64_t offset, bytes; /* offset: within the allocation that the handle names */
    cudaIpcMemHandle_t handle;
} offer_t;

rondo_result_t rd_user_possible(const rd_cuda_t *cuda, const char *call)
{
    const rd_team_t *team = cuda->team;

    if (team->node->nnodes > 1)
        return rd_error(team->ctx, RONDO_ERR_UNSUPPORTED,
                        "%s: the ranks are on %d nodes, and kernels reach the memory of their own node's GPUs alone: "
                        "make a communicator for each node (rondo_comm_split)",
                        call, team->node->nnodes);
    if (team->nranks > RONDO_DEVICE_RANKS)
        return rd_error(team->ctx, RONDO_ERR_UNSUPPORTED, "%s: kernels reach %d ranks at most, and there are %d", call,
                        RONDO_DEVICE_RANKS, team->nranks);
    if (team->nranks > 1 && cuda->limits.host_windows)
        return rd_error(team->ctx, RONDO_ERR_UNSUPPORTED,
                        "%s: the GPUs of this communicator do not reach each other's memory, or RONDO_P2P is 0 "
                        "(rondo-info doctor says which pair does not)",
                        call);
    return RONDO_SUCCESS;
}

/* Memory of the program's: is it what all ranks could map? */
static rondo_result_t check_memory(const rd_cuda_t *cuda, const char *buffer, size_t bytes)
{
    rd_log_ctx_t *ctx = cuda->team->ctx;
    unsigned long long base = 0;
    struct cudaPointerAttributes a;
    size_t whole = 0;

    if (cudaPointerGetAttributes(&a, buffer) != cudaSuccess || a.type != cudaMemoryTypeDevice ||
        a.device != cuda->device) {
        (void)cudaGetLastError();
        return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "rondo_window_create: buffer is not memory of device %d from cudaMalloc", cuda->device);
    }
    rd_driver_find();
    if (rd_driver.range && rd_driver.range(&base, &whole, (unsigned long long)(uintptr_t)buffer) == 0 &&
        bytes > whole - ((uintptr_t)buffer - base))
        return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "rondo_window_create: bytes is %zu, but the allocation that buffer lies in ends after %zu",
                        bytes, (size_t)(whole - ((uintptr_t)buffer - base)));
    return RONDO_SUCCESS;
}

static cudaError_t clear(void *memory, size_t bytes)
{
    cudaStream_t stream;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

    if (error != cudaSuccess)
        return error;
    error = cudaMemsetAsync(memory, 0, bytes, stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    (void)cudaStreamDestroy(stream);
    return error;
}

/* In whole blocks of CUDA's allocator: peers map a block as a whole, and nothing else of the program is to lie in it.
 */
static rondo_result_t own_memory(rd_cuda_t *cuda, rd_cuda_window_t *w, void *buffer, size_t bytes)
{
    cudaError_t error = cudaSuccess;

    if (buffer)
        return check_memory(cuda, buffer, bytes);
    w->allocated = bytes ? (bytes + RD_KALIGN - 1) / RD_KALIGN * RD_KALIGN : RD_KALIGN;
    if (w->kept)
        w->memory = rd_window_left_take(cuda->device, w->allocated);
    if (!w->memory)
        error = cudaMalloc(&w->memory, w->allocated);
    if (error == cudaSuccess)
        error = clear(w->memory, w->allocated);
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(cuda->team->ctx, error, "device memory for a window");
}

static bool other_process(const rd_cuda_t *cuda)
{
    for (int r = 0; r < cuda->k.nranks; r++) {
        if (cuda->peers[r].process != cuda->peers[cuda->k.rank].process)
            return true;
    }
    return false;
}

static rondo_result_t own_offer(rd_cuda_t *cuda, rd_cuda_window_t *w, void *buffer, size_t bytes, offer_t *offer)
{
    rondo_result_t result;

    if (!w)
        return rd_error(cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for a window");
    result = own_memory(cuda, w, buffer, bytes);
    offer->address = buffer ? buffer : w->memory;
    offer->bytes = bytes;
    if (result != RONDO_SUCCESS || !other_process(cuda))
        return result;
    offer->offset = rd_import_offset(offer->address);
    cudaError_t error = cudaIpcGetMemHandle(&offer->handle, offer->address);
    if (error == cudaSuccess)
        return RONDO_SUCCESS;
    (void)cudaGetLastError();
    return rd_error(cuda->team->ctx, RONDO_ERR_INVALID_ARGUMENT,
                    "rondo_window_create: other processes cannot map the buffer (%s): only memory from cudaMalloc can, "
                    "not that of pools (cudaMallocAsync) or of cuMemCreate; NULL lets rondo allocate it",
                    cudaGetErrorString(error));
}

static rondo_result_t map_all(rd_cuda_t *cuda, rd_cuda_window_t *w, const offer_t *offers)
{
    for (int r = 0; r < cuda->k.nranks; r++) {
        const offer_t *o = &offers[r];
        cudaError_t error = cudaSuccess;
        w->bytes[r] = o->bytes;
        w->base[r] = o->address;
        if (r == cuda->k.rank)
            continue;
        if (cuda->peers[r].process == cuda->peers[cuda->k.rank].process) {
            error = rd_device_reach(cuda->device, cuda->peers[r].device);
        } else {
            error = rd_import_open(&w->imported[r], cuda->device, &o->handle, cuda->peers[r].process);
            w->imported[r] = error == cudaSuccess ? w->imported[r] : NULL;
            w->base[r] = w->imported[r] ? (char *)w->imported[r] + o->offset : NULL;
        }
        if (error == cudaSuccess)
            continue;
        (void)cudaGetLastError();
        return rd_error(cuda->team->ctx, RONDO_ERR_UNSUPPORTED,
                        "rondo_window_create: this rank's GPU cannot map the part of rank %d (%s): %s", r,
                        rd_boot_whois(cuda->team->boot, r), cudaGetErrorString(error));
    }
    return RONDO_SUCCESS;
}

static rondo_result_t make(rd_cuda_t *cuda, rd_cuda_window_t *w, void *buffer, size_t bytes)
{
    const int rank = cuda->k.rank;
    offer_t offers[RONDO_DEVICE_RANKS];

    memset(offers, 0, sizeof offers);
    rd_verdict_set(&offers[rank].verdict, own_offer(cuda, w, buffer, bytes, &offers[rank]));
    rondo_result_t result = rd_verdicts_exchange(cuda, offers, sizeof offers[0]);
    if (result != RONDO_SUCCESS)
        return result;
    result = map_all(cuda, w, offers);
    return rd_boot_meet(cuda->team->boot, result, rd_thread_error());
}

static void leave(rd_cuda_t *cuda, rd_cuda_window_t *w, rd_left_use_t use)
{
    for (int r = 0; r < RONDO_DEVICE_RANKS; r++) {
        if (w->imported[r])
            rd_window_leave(cuda, w->imported[r], 0, use);
    }
    if (w->memory)
        rd_window_leave(cuda, w->memory, w->allocated, use);
    free(w);
}

rondo_result_t rd_user_window_create(rd_cuda_t *cuda, void *buffer, size_t bytes, bool kept, rd_cuda_window_t **made)
{
    rd_cuda_window_t *w = calloc(1, sizeof *w);

    if (w)
        w->kept = kept;
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    rondo_result_t result = make(cuda, w, buffer, bytes);
    if (w && result != RONDO_SUCCESS) { /* peers may have mapped it */
        leave(cuda, w, RD_LEFT_PROGRAM);
    } else if (result == RONDO_SUCCESS) {
        w->next = cuda->user_windows;
        cuda->user_windows = w;
        *made = w;
    }
    rd_device_leave(guard);
    return result;
}

rondo_result_t rd_cuda_window_create(rd_cuda_t *cuda, void *buffer, size_t bytes, rd_cuda_window_t **window)
{
    rondo_result_t result = rd_user_possible(cuda, "rondo_window_create");

    return result == RONDO_SUCCESS ? rd_user_window_create(cuda, buffer, bytes, false, window) : result;
}

static void unlist(rd_cuda_t *cuda, const rd_cuda_window_t *w)
{
    for (rd_cuda_window_t **at = &cuda->user_windows; *at; at = &(*at)->next) {
        if (*at == w) {
            *at = w->next;
            return;
        }
    }
}

/* Memory that others have mapped may be freed when they have unmapped it, and unmapped when what this rank puts there
 * is over. A failure of that is one of the communicator, which the exchange finds, too. */
rondo_result_t rd_cuda_window_destroy(rd_cuda_t *cuda, rd_cuda_window_t *w)
{
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    rondo_result_t result;

    (void)rd_cuda_drain(cuda);
    unlist(cuda, w);
    for (int r = 0; r < RONDO_DEVICE_RANKS; r++) {
        if (w->imported[r])
            (void)cudaIpcCloseMemHandle(w->imported[r]);
        w->imported[r] = NULL;
    }
    result = rd_boot_barrier(cuda->team->boot);
    if (result == RONDO_SUCCESS && w->memory && !w->kept) {
        (void)cudaFree(w->memory);
        w->memory = NULL;
    }
    if (result == RONDO_SUCCESS) /* where ranks share a GPU, cudaFree would wait for what another one launches next */
        result = rd_boot_barrier(cuda->team->boot);
    leave(cuda, w, result == RONDO_SUCCESS ? RD_LEFT_UNUSED : RD_LEFT_PROGRAM);
    rd_device_leave(guard);
    return result;
}

/* The registration has the mappings, and ends them. */
rd_cuda_window_t *rd_cuda_window_of(rd_cuda_t *cuda, int number)
{
    const rd_kregistered_t *where = rd_registered_at(cuda, number);
    rd_cuda_window_t *w = where ? calloc(1, sizeof *w) : NULL;

    if (!w)
        return NULL;
    for (int r = 0; r < cuda->k.nranks; r++) {
        w->base[r] = (char *)(uintptr_t)where->base[r];
        w->bytes[r] = where->bytes[r];
    }
    w->next = cuda->user_windows;
    cuda->user_windows = w;
    return w;
}

void rd_cuda_window_close(rd_cuda_t *cuda, rd_cuda_window_t *w)
{
    unlist(cuda, w);
    free(w);
}

bool rd_cuda_has_window(const rd_cuda_t *cuda, const rd_cuda_window_t *window)
{
    for (const rd_cuda_window_t *w = cuda->user_windows; w; w = w->next) {
        if (w == window && !w->kept)
            return true;
    }
    return false;
}

void *rd_cuda_window_buffer(const rd_cuda_t *cuda, const rd_cuda_window_t *window)
{
    return window->base[cuda->k.rank];
}

void rd_cuda_window_view(const rd_cuda_t *cuda, const rd_cuda_window_t *window, rondo_device_window_t *view)
{
    for (int r = 0; r < RONDO_DEVICE_RANKS; r++) {
        view->base[r] = r < cuda->k.nranks ? window->base[r] : NULL;
        view->bytes[r] = r < cuda->k.nranks ? window->bytes[r] : 0;
    }
}

uint64_t rd_user_count(const rd_cuda_t *cuda)
{
    uint64_t bytes = 0;

    for (const rd_cuda_window_t *w = cuda->user_windows; w; w = w->next)
        bytes += w->kept ? w->allocated : 0;
    return bytes;
}

void rd_user_end(rd_cuda_t *cuda)
{
    while (cuda->user_windows) {
        rd_cuda_window_t *w = cuda->user_windows;
        cuda->user_windows = w->next;
        leave(cuda, w, RD_LEFT_PROGRAM);
    }
}
