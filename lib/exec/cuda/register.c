/* Registered buffers: every rank maps those of all others, so that long messages go from the sender's buffer directly
 * into the receiver's. The receiver's kernel looks up its buffer among the registered ones and posts what it has found
 * (kernels/fifo.cuh); so the host decides nothing at a call, and a graph needs no data about it. Copy engines
 * (copy_engine.c) use the host's table here.
 *
 * Registering is collective: all ranks give a buffer the same number, tell each other where theirs is, map the others',
 * and exchange whether that succeeded; if one rank failed, the registration is a promise only. It is that from the
 * start where GPUs do not reach each other, and where several ranks belong to one process, of which one thread may call
 * for all, one after the other. The table that kernels use is written behind what was enqueued. */
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/cuda_int.h"

typedef struct registered {
    enum { FREE, USED, LEFT } state; /* LEFT: kernels that use the imported memory may still be under way */
    void *imported[RD_KRANKS];       /* bases to be closed */
    rd_kregistered_t where;          /* USED, LEFT: the entry in the kernels' table */
} registered_t;

struct rd_cuda_registered {
    cudaStream_t stream; /* for writing into the table */
    bool decided, posts; /* by the first buffer that all ranks have mapped; the same on all ranks */
    registered_t all[RD_KREGISTERED];
};

typedef struct offer {
    rd_verdict_t verdict;
    int32_t captured;       /* a graph of this rank has a long message that waits for no post */
    uint64_t offset, bytes; /* bytes 0: this rank's buffer cannot be mapped */
    cudaIpcMemHandle_t handle;
} offer_t;

typedef struct mapped {
    rd_verdict_t verdict;
    int32_t all;
} mapped_t;

/* Returns one more than the highest number of a registered buffer in use. */
static uint32_t count_used(const rd_cuda_t *cuda)
{
    uint32_t count = RD_KREGISTERED;

    if (!cuda->registered)
        return 0;
    while (count && cuda->registered->all[count - 1].state != USED)
        count--;
    return count;
}

uint32_t rd_registered_posts(const rd_cuda_t *cuda)
{
    uint32_t used = count_used(cuda);

    if (!cuda->registered || !cuda->registered->posts)
        return 0;
    return used ? used : 1;
}

cudaStream_t rd_registered_stream(const rd_cuda_t *cuda)
{
    return cuda->registered->stream;
}

const rd_kregistered_t *rd_registered_find(const rd_cuda_t *cuda, const void *buffer, size_t bytes, int *number,
                                           uint64_t *offset)
{
    for (int i = 0, count = (int)count_used(cuda); i < count; i++) {
        const registered_t *r = &cuda->registered->all[i];
        uint64_t base = r->where.base[cuda->k.rank], here = r->where.bytes[cuda->k.rank];
        uint64_t at = (uint64_t)(uintptr_t)buffer - base;
        if (r->state != USED || (uintptr_t)buffer < base || at > here || bytes > here - at)
            continue;
        *number = i;
        *offset = at;
        return &r->where;
    }
    return NULL;
}

const rd_kregistered_t *rd_registered_at(const rd_cuda_t *cuda, int number)
{
    const bool is = number >= 0 && cuda->registered && cuda->registered->all[number].state == USED;

    return is ? &cuda->registered->all[number].where : NULL;
}

bool rd_registered_possible(const rd_cuda_t *cuda)
{
    if (cuda->path) /* no pair of ranks has a window for it */
        return false;
    for (int a = 0; a < cuda->k.nranks; a++)
        for (int b = 0; b < a; b++) {
            if (cuda->peers[a].process == cuda->peers[b].process)
                return false;
        }
    return cuda->k.nranks > 1 && !cuda->limits.host_windows;
}

/* Writes an entry of the table, behind everything that is enqueued. */
static rondo_result_t write_entry(rd_cuda_t *cuda, int number, const rd_kregistered_t *entry)
{
    return rd_cuda_write(cuda, offsetof(rd_kcontrol_t, registered) + (size_t)number * sizeof *entry, entry,
                         sizeof *entry, cuda->registered->stream);
}

/* Closing waits for whatever runs on the GPU. Where the end must not wait they are left; in all other cases the buffers
 * are closed, because they are the program's, which may want their memory back. */
static void close_imports(rd_cuda_t *cuda, registered_t *r)
{
    for (int i = 0; i < RD_KRANKS; i++) {
        if (r->imported[i] && !rd_cuda_may_wait(cuda))
            rd_window_unmap(cuda, r->imported[i], (rd_import_name_t){cuda->peers[i].process, 0});
        else if (r->imported[i])
            (void)cudaIpcCloseMemHandle(r->imported[i]);
        r->imported[i] = NULL;
    }
    r->state = FREE;
}

void rd_registered_close(rd_cuda_t *cuda)
{
    if (!cuda->registered)
        return;
    for (int i = 0; i < RD_KREGISTERED; i++)
        close_imports(cuda, &cuda->registered->all[i]);
    (void)cudaStreamDestroy(cuda->registered->stream);
    free(cuda->registered);
    cuda->registered = NULL;
}

static rondo_result_t begin(rd_cuda_t *cuda)
{
    struct rd_cuda_registered *made = cuda->registered ? NULL : calloc(1, sizeof *made);

    if (cuda->registered)
        return RONDO_SUCCESS;
    if (!made)
        return rd_error(cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory to register a buffer");
    cudaError_t error = cudaStreamCreateWithFlags(&made->stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) {
        free(made);
        return rd_cuda_error(cuda->team->ctx, error, "a stream to register a buffer");
    }
    cuda->registered = made;
    return RONDO_SUCCESS;
}

/* Memory that cannot be exported, such as that of a pool, is no error. */
static void own_offer(rd_cuda_t *cuda, void *buffer, size_t bytes, offer_t *offer)
{
    struct cudaPointerAttributes a;

    if (!buffer || !bytes || cudaPointerGetAttributes(&a, buffer) != cudaSuccess || a.type != cudaMemoryTypeDevice ||
        a.device != cuda->device || cudaIpcGetMemHandle(&offer->handle, buffer) != cudaSuccess) {
        (void)cudaGetLastError();
        return;
    }
    offer->offset = rd_import_offset(buffer);
    offer->bytes = bytes;
}

/* Returns true if all buffers that are offered have been mapped. */
static bool map_all(rd_cuda_t *cuda, registered_t *r, const offer_t *offers, void *buffer, rd_kregistered_t *entry)
{
    for (int i = 0; i < cuda->k.nranks; i++) {
        char *base = buffer;

        if (!offers[i].bytes)
            continue;
        if (i != cuda->k.rank) {
            if (rd_import_open(&r->imported[i], cuda->device, &offers[i].handle, cuda->peers[i].process) !=
                cudaSuccess) {
                (void)cudaGetLastError();
                r->imported[i] = NULL;
                return false;
            }
            base = (char *)r->imported[i] + offers[i].offset;
        }
        entry->base[i] = (uint64_t)(uintptr_t)base;
        entry->bytes[i] = offers[i].bytes;
    }
    return true;
}

/* Whether a long message is posted, a graph keeps from its capture, while a peer's plain call may meet it at any later
 * time. So the first buffer that all ranks have mapped decides for the communicator's life: long messages are posted
 * from then on, deregistered or not, unless a rank has already captured one that is not. */
static void decide(const rd_cuda_t *cuda, const offer_t *offers)
{
    struct rd_cuda_registered *r = cuda->registered;

    if (r->decided)
        return;
    r->decided = r->posts = true;
    for (int i = 0; i < cuda->k.nranks; i++)
        r->posts &= !offers[i].captured;
    if (!r->posts && cuda->team->rank == 0)
        rd_log_slow(cuda->team->ctx, "long messages of this communicator are never written into registered buffers, "
                                     "because a graph captured one before the first buffer was registered: register "
                                     "buffers before messages are captured");
}

/* No rank posts the number any more. */
static rondo_result_t forget(rd_cuda_t *cuda, registered_t *r)
{
    const rd_kregistered_t none = {{0}, {0}};
    rondo_result_t result = write_entry(cuda, (int)(r - cuda->registered->all), &none);

    close_imports(cuda, r);
    return result;
}

/* Waits until everything enqueued is over, closes the memory that it used, and finds the first free number, which is
 * the same on all ranks. */
static rondo_result_t prepare(rd_cuda_t *cuda, registered_t **free_one)
{
    rondo_result_t result = begin(cuda);

    *free_one = NULL;
    if (result == RONDO_SUCCESS)
        result = rd_cuda_drain(cuda);
    for (int i = RD_KREGISTERED; i-- > 0 && result == RONDO_SUCCESS;) {
        registered_t *r = &cuda->registered->all[i];
        if (r->state == LEFT)
            result = forget(cuda, r);
        if (r->state == FREE)
            *free_one = r;
    }
    return result;
}

/* Maps the buffers and exchanges the result; *made: all ranks succeeded. */
static rondo_result_t make(rd_cuda_t *cuda, registered_t *r, const offer_t *offers, void *buffer, int *made)
{
    int rank = cuda->k.rank, number = (int)(r - cuda->registered->all);
    rd_kregistered_t entry = {{0}, {0}};
    mapped_t mapped[RD_KRANKS];
    rondo_result_t result = RONDO_SUCCESS;

    memset(mapped, 0, sizeof mapped);
    if ((mapped[rank].all = map_all(cuda, r, offers, buffer, &entry)))
        result = write_entry(cuda, number, &entry);
    rd_verdict_set(&mapped[rank].verdict, result);
    if ((result = rd_verdicts_exchange(cuda, mapped, sizeof mapped[0])))
        return result;
    *made = 1;
    for (int i = 0; i < cuda->k.nranks; i++)
        *made &= mapped[i].all;
    r->state = *made ? USED : LEFT;
    if (*made)
        decide(cuda, offers);
    r->where = entry;
    memset(&entry, 0, sizeof entry);
    return *made ? RONDO_SUCCESS : write_entry(cuda, number, &entry);
}

/* Logs whether the registration is of use. `kept`: peers cannot map this rank's buffer; `room`: the table had a free
 * entry. */
static void say(const rd_cuda_t *cuda, bool kept, size_t bytes, bool room, bool made)
{
    const rd_team_t *team = cuda->team;

    if (kept)
        rd_log_slow(
            team->ctx,
            "a registered buffer of %zu bytes cannot be mapped by peers, so long messages to it are copied: only "
            "memory of this communicator's GPU from cudaMalloc can, not that of pools (cudaMallocAsync)",
            bytes);
    if (team->rank != 0)
        return;
    if (made)
        rd_log(team->ctx, RD_LOG_INFO, "a buffer of %zu bytes is registered: %s", bytes,
               cuda->registered->posts ? "peers write long messages into it directly" : "copy engines may read it");
    else if (!room)
        rd_log_slow(
            team->ctx,
            "a registered buffer of %zu bytes is not used: %d are registered, which is the most; deregister some",
            bytes, RD_KREGISTERED);
    else
        rd_log_slow(team->ctx,
                    "a registered buffer of %zu bytes is not used, because a rank cannot map a peer's buffer: long "
                    "messages are copied. rondo-info doctor tries every pair of GPUs",
                    bytes);
}

static rondo_result_t register_all(rd_cuda_t *cuda, void *buffer, size_t bytes, int *number)
{
    const rd_team_t *team = cuda->team;
    offer_t offers[RD_KRANKS];
    registered_t *r;
    rondo_result_t result;
    int made = 0;

    memset(offers, 0, sizeof offers);
    rd_verdict_set(&offers[team->rank].verdict, prepare(cuda, &r));
    offers[team->rank].captured = cuda->unposted_captured;
    own_offer(cuda, buffer, bytes, &offers[team->rank]);
    result = rd_verdicts_exchange(cuda, offers, sizeof offers[0]);
    if (result == RONDO_SUCCESS && r)
        result = make(cuda, r, offers, buffer, &made);
    if (made)
        *number = (int)(r - cuda->registered->all);
    if (result == RONDO_SUCCESS)
        say(cuda, buffer && !offers[team->rank].bytes, bytes, r != NULL, made);
    return result;
}

rondo_result_t rd_cuda_register(rd_cuda_t *cuda, void *buffer, size_t bytes, int *number)
{
    rondo_result_t result;

    *number = -1;
    if (!rd_registered_possible(cuda))
        return RONDO_SUCCESS;
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    result = register_all(cuda, buffer, bytes, number);
    rd_device_leave(guard);
    return result;
}

void rd_cuda_windows(rd_cuda_t *cuda)
{
    cuda->windows = true;
}

/* Nobody waits and nothing is exchanged: a communicator may be ended without the others, and while kernels wait. A peer
 * may still receive into its own buffer by this number, which this rank's kernels find in the entry until all ranks
 * have come to register another one; this rank's own buffer they do not find any more. */
rondo_result_t rd_cuda_deregister(rd_cuda_t *cuda, int number)
{
    if (number < 0 || !cuda->registered)
        return RONDO_SUCCESS;
    registered_t *r = &cuda->registered->all[number];
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    r->state = LEFT;
    r->where.base[cuda->k.rank] = r->where.bytes[cuda->k.rank] = 0;
    rondo_result_t result = cuda->window ? write_entry(cuda, number, &r->where) : RONDO_SUCCESS; /* NULL: suspended */
    rd_device_leave(guard);
    return result;
}
