/* The window of a rank and the words that it shares with its kernels: kernels/work.h describes what a window contains.
 *
 * A window is freed when nobody touches it any more: neither this rank's kernels, when they are over, nor the peers,
 * which show that by leaving. Destroying a communicator waits for nobody, so a window whose peers have not left is put
 * into the graveyard of the process. Later communicators look for a window there first, and the last communicator of
 * the process to end frees those whose peers have left. cudaFree waits for everything that runs on the device, so it is
 * called only when this process has no communicator left whose kernels might wait for what this thread does next. The
 * same holds for unpinning, where windows lie in host memory (window_host.c), and for unmapping the windows of peers,
 * which is why they stay mapped until then, too, or until there are too many; a communicator that gets the same one of
 * a peer again takes what is mapped already. The peer may have freed its window meanwhile, and what it allocates in its
 * place is mapped when the old mapping is gone. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/page.h"
#include "exec/cuda/cuda_int.h"
#include "exec/cuda/proxy/proxy.h"

#define WINDOW_MOST ((size_t)70 << 20) /* with the barrier's page: CUDA allocates by 2 MB */
#define MESSAGE_SLICE (16u << 10)      /* of messages of some megabytes: a fence takes as long as moving this much */
#define WORDS 64                       /* communicators whose words a pinned page holds */
#define IMPORTS 128                    /* that are kept mapped, at most, unless their communicator must not wait */

/* Memory that outlives its communicator. */
typedef struct rd_left {
    struct rd_left *next;
    void *memory;
    size_t bytes; /* 0: it was imported */
    int device;
    bool used;                 /* a kernel may still write there: it is freed, not taken again */
    rd_import_name_t imported; /* of a window */
} rd_left_t;

typedef struct grave {
    struct grave *next;
    rd_left_t *left; /* beside the window: peers use it as long */
    char *window;
    size_t bytes;
    int device;                        /* -1: it is pinned host memory */
    int peers;                         /* 0: nobody touches it any more */
    rd_node_t node;                    /* keeps `controls` mapped */
    rd_control_t *controls[RD_KRANKS]; /* of the node's ranks, in the node's order */
} grave_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static grave_t *graves;
static rd_left_t *left; /* that no peer uses any more */
static int living;      /* communicators of this process */
static struct page {
    struct page *next;
    char *base;
    uint64_t taken;
} * pages;

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

/* ---- the graveyard; with the lock held ---- */

static bool process_over(const rd_node_t *node, int m)
{
    struct pollfd p = {node->pidfd[m], POLLIN, 0};

    return p.fd >= 0 && poll(&p, 1, 0) == 1;
}

static bool at_rest(const grave_t *g)
{
    for (int m = 0; m < g->peers; m++) {
        if (g->controls[m] && !atomic_load_explicit(&g->controls[m]->left, memory_order_acquire) &&
            !process_over(&g->node, m))
            return false;
    }
    return true;
}

/* Moves a list to another one. */
static void left_add(rd_left_t **to, rd_left_t **from)
{
    rd_left_t **end = from;

    while (*end)
        end = &(*end)->next;
    *end = *to;
    *to = *from;
    *from = NULL;
}

static void sweep(void)
{
    for (grave_t *g = graves; g; g = g->next) {
        if (g->peers && at_rest(g)) {
            rd_node_free(&g->node);
            g->peers = 0;
            left_add(&left, &g->left);
        }
    }
}

static void await_kernels(const rd_left_t *l)
{
    for (; l; l = l->next) {
        if (!l->used)
            continue;
        rd_device_guard_t guard = rd_device_enter(l->device);
        (void)cudaDeviceSynchronize();
        rd_device_leave(guard);
    }
}

/* Kernels of the program's may still be about to leave: on the device whose memory it is, and on this process's others,
 * which have mapped it. They also look at the words in pinned memory. */
static void free_left(void)
{
    await_kernels(left);
    for (const grave_t *g = graves; g; g = g->next)
        await_kernels(g->left);
    while (left) {
        rd_left_t *l = left;
        left = l->next;
        rd_device_guard_t guard = rd_device_enter(l->device);
        (void)(l->bytes ? cudaFree(l->memory) : cudaIpcCloseMemHandle(l->memory));
        rd_device_leave(guard);
        free(l);
    }
}

void rd_window_leave(rd_cuda_t *cuda, void *memory, size_t bytes, bool used)
{
    rd_left_t *l = malloc(sizeof *l);

    if (!l)
        return; /* then it is never freed */
    *l = (rd_left_t){.memory = memory, .bytes = bytes, .device = cuda->device, .used = used};
    pthread_mutex_lock(&lock);
    left_add(used ? &cuda->left : &left, &l);
    pthread_mutex_unlock(&lock);
}

/* Takes the first memory out of the list that may be used again and is as wanted: of that device and length and, if it
 * was imported, of that process and, unless that is 0, that buffer. NULL: there is none. */
static void *left_take(const rd_left_t *wanted)
{
    void *memory = NULL;

    pthread_mutex_lock(&lock);
    for (rd_left_t **at = &left; *at && !memory;) {
        rd_left_t *l = *at;
        if (l->used || l->device != wanted->device || l->bytes != wanted->bytes ||
            (!l->bytes && l->imported.process != wanted->imported.process) ||
            (wanted->imported.buffer && l->imported.buffer != wanted->imported.buffer)) {
            at = &l->next;
            continue;
        }
        memory = l->memory;
        *at = l->next;
        free(l);
    }
    pthread_mutex_unlock(&lock);
    return memory;
}

void *rd_window_left_take(int device, size_t bytes)
{
    return left_take(&(rd_left_t){.device = device, .bytes = bytes});
}

/* Unmapping waits for whatever runs on the device: is that of this communicator alone? */
static bool is_alone(const rd_cuda_t *cuda)
{
    const rd_cuda_t *outer = cuda->parent ? cuda->parent : cuda;

    return living == outer->living + (outer->node_comm && outer->node_comm->living);
}

static bool is_kept(const rd_left_t *l)
{
    return !l->bytes && !l->used;
}

/* Takes the older half of what is kept mapped out of the list, if there is too much of it: the newest is what a later
 * communicator is likely to take. */
static rd_left_t *too_many(void)
{
    rd_left_t *old = NULL;
    int kept = 0;

    for (const rd_left_t *l = left; l; l = l->next)
        kept += is_kept(l);
    if (kept <= IMPORTS)
        return NULL;
    kept = 0;
    for (rd_left_t **at = &left; *at;) {
        rd_left_t *l = *at;
        kept += is_kept(l);
        if (!is_kept(l) || kept <= IMPORTS / 2) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        l->next = old;
        old = l;
    }
    return old;
}

void rd_window_unmap(rd_cuda_t *cuda, void *memory, rd_import_name_t name)
{
    rd_left_t *old = NULL;

    pthread_mutex_lock(&lock);
    bool now = is_alone(cuda);
    rd_left_t *l = now ? NULL : malloc(sizeof *l); /* without memory it is never unmapped */
    if (l) {
        *l = (rd_left_t){.memory = memory, .device = cuda->device, .imported = name};
        left_add(&left, &l);
        old = rd_cuda_may_wait(cuda) ? too_many() : NULL;
    }
    pthread_mutex_unlock(&lock);
    if (now)
        (void)cudaIpcCloseMemHandle(memory);
    while (old) {
        rd_left_t *gone = old;
        old = gone->next;
        rd_device_guard_t guard = rd_device_enter(gone->device);
        (void)cudaIpcCloseMemHandle(gone->memory);
        rd_device_leave(guard);
        free(gone);
    }
}

void *rd_window_mapped(int device, rd_import_name_t name)
{
    return name.buffer ? left_take(&(rd_left_t){.device = device, .imported = name}) : NULL;
}

void rd_window_mapped_close(int device, uint64_t process)
{
    const rd_left_t any = {.device = device, .imported = {process, 0}};

    for (void *memory; process && (memory = left_take(&any)) != NULL;)
        (void)cudaIpcCloseMemHandle(memory);
}

/* Called when no communicator of this process is left that might wait for anything. */
static void free_all(void)
{
    free_left();
    for (grave_t **at = &graves; *at;) {
        grave_t *g = *at;
        if (g->peers) {
            at = &g->next;
            continue;
        }
        *at = g->next;
        if (g->device < 0) {
            (void)cudaHostUnregister(g->window);
            rd_node_free(&g->node);
        } else {
            (void)cudaFree(g->window);
        }
        free(g);
    }
    rd_proxy_path_areas_free();
    while (pages) {
        struct page *p = pages;
        pages = p->next;
        (void)cudaFreeHost(p->base);
        free(p);
    }
}

static char *reuse(int device, size_t bytes)
{
    for (grave_t **at = &graves; *at; at = &(*at)->next) {
        grave_t *g = *at;
        if (g->peers == 0 && g->device == device && g->bytes == bytes) {
            char *window = g->window;
            *at = g->next;
            free(g);
            return window;
        }
    }
    return NULL;
}

static rd_khost_t *words_take(cudaError_t *error)
{
    struct page *p = pages;

    while (p && p->taken == UINT64_MAX)
        p = p->next;
    if (!p) {
        p = calloc(1, sizeof *p);
        *error =
            p ? cudaHostAlloc((void **)&p->base, WORDS * RD_WORD_BYTES, cudaHostAllocPortable | cudaHostAllocMapped)
              : cudaErrorMemoryAllocation;
        if (*error != cudaSuccess) {
            free(p);
            return NULL;
        }
        p->next = pages;
        pages = p;
    }
    int i = __builtin_ctzll(~p->taken);
    p->taken |= UINT64_C(1) << i;
    return memset(p->base + i * RD_WORD_BYTES, 0, RD_WORD_BYTES);
}

static void words_give(rd_khost_t *words)
{
    for (struct page *p = pages; p; p = p->next) {
        ptrdiff_t at = (char *)words - p->base;
        if (at >= 0 && at < WORDS * RD_WORD_BYTES)
            p->taken &= ~(UINT64_C(1) << (at / RD_WORD_BYTES));
    }
}

/* Puts memory that a communicator leaves into the graveyard. Returns NULL without memory for the entry: then it is
 * never freed. */
static grave_t *close_comm(char *window, size_t bytes, int device)
{
    grave_t *g = calloc(1, sizeof *g);

    if (g) {
        *g = (grave_t){.next = graves, .window = window, .bytes = bytes, .device = device};
        graves = g;
    }
    return g;
}

/* Host memory stays mapped as long as it is pinned. What peers do with their own mappings of it does not matter here.
 */
static void close_shared(rd_cuda_t *cuda)
{
    grave_t *g;

    if (!cuda->pinned || !rd_window_host_unpin(cuda->shared.base)) {
        rd_node_free(&cuda->shared);
        return;
    }
    if ((g = close_comm(cuda->shared.base, 0, -1)))
        g->node = cuda->shared;
    memset(&cuda->shared, 0, sizeof cuda->shared);
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

    return cuda->parent ? rd_rcache_allocate(cuda->window_bytes, &cuda->window, &fresh)
                        : cudaMalloc((void **)&cuda->window, cuda->window_bytes);
}

rondo_result_t rd_window_create(rd_cuda_t *cuda)
{
    cudaError_t error = cudaSuccess;

    pthread_mutex_lock(&lock);
    living += !cuda->living;
    cuda->living = true;
    sweep();
    if (cuda->window_bytes)
        cuda->window = reuse(cuda->device, cuda->window_bytes);
    pthread_mutex_unlock(&lock);
    if (cuda->window_bytes && !cuda->window) /* CUDA may wait for kernels, and those for a rank that wants the lock */
        error = allocate(cuda);
    pthread_mutex_lock(&lock);
    if (error == cudaSuccess && !cuda->host)
        cuda->host = cuda->parent ? cuda->parent->host : words_take(&error);
    pthread_mutex_unlock(&lock);
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
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(cuda->team->ctx, error, "giving back device memory");
}

void rd_window_release(rd_cuda_t *cuda)
{
    pthread_mutex_lock(&lock);
    if (cuda->window)
        (void)close_comm(cuda->window, cuda->window_bytes, cuda->device);
    pthread_mutex_unlock(&lock);
    cuda->window = cuda->k.own = NULL;
}

void rd_window_free(rd_cuda_t *cuda, rd_node_t *node, rd_control_t *const *controls)
{
    grave_t *g;

    pthread_mutex_lock(&lock);
    if (cuda->host && cuda->left) /* kernels of the program's may still look there, and are to leave */
        *(volatile uint32_t *)&cuda->host->abort = 1;
    else if (cuda->host && !cuda->parent)
        words_give(cuda->host);
    g = cuda->window || (cuda->kept && cuda->left) ? close_comm(cuda->window, cuda->window_bytes, cuda->device) : NULL;
    if (g && controls && !cuda->limits.host_windows) {
        g->peers = node->nlocal; /* at most RD_KRANKS ranks map windows */
        for (int m = 0; m < node->nlocal; m++)
            g->controls[m] = controls[node->local[m]];
        g->node = *node;
        memset(node, 0, sizeof *node);
        left_add(&g->left, &cuda->left);
    }
    left_add(&left, &cuda->left);
    close_shared(cuda);
    living -= cuda->living; /* a creation that failed before it came to its window was never counted */
    sweep();
    if (living == 0)
        free_all();
    pthread_mutex_unlock(&lock);
}
