/* The graveyard: memory of communicators that have ended, until nobody touches it any more.
 *
 * That is neither this rank's kernels, when they are over, nor the peers, which show that by leaving. Destroying a
 * communicator waits for nobody, so a window whose peers have not left is put here. Later communicators look for a
 * window here first, and the last communicator of the process to end frees those whose peers have left. cudaFree waits
 * for everything that runs on the device, so it is called only when this process has no communicator left whose kernels
 * might wait for what this thread does next. The same holds for unpinning, where windows lie in host memory
 * (window_host.c), and for unmapping the windows of peers, which is why they stay mapped until then, too. Of these, and
 * of memory beside windows, an end that may wait frees the older half when there is too much; a communicator that gets
 * the same one of a peer again takes what is mapped already. The peer may have freed its window meanwhile, and what it
 * allocates in its place is mapped when the old mapping is gone.
 *
 * Behind a failure the end does not wait for this rank's own kernels either, where they stand behind a kernel of the
 * program's in their stream. They will still begin, find the word of the abort and leave; until then all that they may
 * touch stays as it is, and to the peers this rank has not left yet. Whoever makes or ends a communicator asks whether
 * they are over. Until then the communicator counts as living and nothing is freed, which would wait for them.
 *
 * CUDA may keep whoever asks it something waiting for another thread's call, and that one may wait for what a third
 * thread does, which makes or ends a communicator. So it is called without the lock, but by the end of the last one. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/graveyard.h"

#define IMPORTS 128                /* that are kept mapped, at most, unless their communicator must not wait */
#define BURIED 16                  /* communicators that end before their kernels, at most */
#define MEMORY ((size_t)256 << 20) /* bytes beside windows that are kept, as imports are */

/* Memory that outlives its communicator. */
typedef struct rd_left {
    struct rd_left *next;
    void *memory;
    size_t bytes;    /* 0: it was imported */
    uint64_t number; /* of the allocation, by the driver */
    int device;
    bool used;                 /* a kernel of the program's may still write there: it is freed, not taken again */
    rd_import_name_t imported; /* of a window */
} rd_left_t;

/* What a communicator has enqueued and is not over, though it has ended. */
typedef struct rd_remains {
    struct rd_remains *next;
    cudaEvent_t event;          /* recorded behind the last operation */
    int living;                 /* communicators that count as living */
    rd_khost_t *words;          /* NULL: not given back */
    rd_control_t *own;          /* where it says that it has left; NULL: to nobody */
    rd_node_t node;             /* keeps `own` mapped, if no grave does */
    rd_proxy_path_area_t *area; /* NULL: none */
    rd_left_t *left;
} rd_remains_t;

typedef struct grave {
    struct grave *next;
    rd_left_t *left; /* beside the window: peers use it as long */
    char *window;
    size_t bytes;
    uint64_t number;                   /* of the allocation, by the driver */
    int device;                        /* -1: it is pinned host memory */
    const rd_remains_t *remains;       /* NULL: this rank's kernels are over */
    int peers;                         /* 0: none touches it any more */
    rd_node_t node;                    /* keeps `controls` mapped */
    rd_control_t *controls[RD_KRANKS]; /* of the node's ranks, in the node's order */
} grave_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static grave_t *graves;
static rd_left_t *left; /* that no peer uses any more */
static rd_remains_t *remains;
static int buried; /* the length of `remains`, and those that are about to be there */
static int living; /* communicators of this process */

/* ---- who still touches what; with the lock held ---- */

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

/* All that the communicator had enqueued is over. */
static void passed(rd_remains_t *r)
{
    if (r->own)
        atomic_store_explicit(&r->own->left, 1, memory_order_release);
    if (r->words)
        rd_words_give(r->words);
    if (r->area)
        rd_proxy_path_area_give(r->area);
    left_add(&left, &r->left);
    for (grave_t *g = graves; g; g = g->next)
        g->remains = g->remains == r ? NULL : g->remains;
    rd_node_free(&r->node);
    living -= r->living;
    buried--;
    free(r);
}

/* The list is taken off for the question. Meanwhile `buried` still counts them. */
static void sweep_remains(void)
{
    rd_remains_t *over = NULL, *r;

    pthread_mutex_lock(&lock);
    rd_remains_t *asked = remains;
    remains = NULL;
    pthread_mutex_unlock(&lock);
    for (rd_remains_t **at = &asked; (r = *at);) {
        cudaError_t error = cudaEventQuery(r->event);
        if (error != cudaSuccess)
            (void)cudaGetLastError();
        if (error == cudaErrorNotReady) {
            at = &r->next;
            continue;
        }
        (void)cudaEventDestroy(r->event);
        *at = r->next;
        r->next = over;
        over = r;
    }
    pthread_mutex_lock(&lock);
    while ((r = asked)) {
        asked = r->next;
        r->next = remains;
        remains = r;
    }
    while ((r = over)) {
        over = r->next;
        passed(r);
    }
    pthread_mutex_unlock(&lock);
}

static void sweep_graves(void)
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

static void give_back(rd_left_t *gone)
{
    while (gone) {
        rd_left_t *l = gone;
        gone = l->next;
        rd_device_guard_t guard = rd_device_enter(l->device);
        if (!l->bytes)
            (void)cudaIpcCloseMemHandle(l->memory);
        else if (!rd_driver_buffer_gone(l->memory, l->number))
            (void)cudaFree(l->memory);
        rd_device_leave(guard);
        free(l);
    }
}

/* Kernels of the program's may still be about to leave: on the device whose memory it is, and on this process's others,
 * which have mapped it. They also look at the words in pinned memory. */
static void free_left(void)
{
    await_kernels(left);
    for (const grave_t *g = graves; g; g = g->next)
        await_kernels(g->left);
    give_back(left);
    left = NULL;
}

/* ---- what is left, and found again ---- */

void rd_window_leave(rd_cuda_t *cuda, void *memory, size_t bytes, rd_left_use_t use)
{
    rd_left_t *l = malloc(sizeof *l);

    if (!l)
        return; /* then it is never freed */
    *l = (rd_left_t){.memory = memory, .bytes = bytes, .device = cuda->device, .used = use == RD_LEFT_PROGRAM};
    l->number = rd_driver_buffer(memory);
    pthread_mutex_lock(&lock);
    left_add(use == RD_LEFT_PROGRAM ? &cuda->left : use == RD_LEFT_ENQUEUED ? &cuda->enqueued : &left, &l);
    pthread_mutex_unlock(&lock);
}

/* Takes the first memory out of the list that may be used again and is as wanted: of that device and length and, if it
 * was imported, of that process and, unless that is 0, that buffer. NULL: there is none. */
static rd_left_t *left_find(const rd_left_t *wanted)
{
    rd_left_t **at = &left, *l;

    pthread_mutex_lock(&lock);
    while ((l = *at) && (l->used || l->device != wanted->device || l->bytes != wanted->bytes ||
                         (!l->bytes && l->imported.process != wanted->imported.process) ||
                         (wanted->imported.buffer && l->imported.buffer != wanted->imported.buffer)))
        at = &l->next;
    if (l)
        *at = l->next;
    pthread_mutex_unlock(&lock);
    return l;
}

static void *left_take(const rd_left_t *wanted)
{
    void *memory = NULL;

    for (rd_left_t *l; !memory && (l = left_find(wanted)); free(l))
        memory = rd_driver_buffer_gone(l->memory, l->number) ? NULL : l->memory;
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

/* How much of what is kept mapped that is, or of the memory that is kept: mappings, or bytes. */
static size_t kept_by(const rd_left_t *l, bool imported)
{
    return l->used || (l->bytes == 0) != imported ? 0 : imported ? 1 : l->bytes;
}

/* Takes the older half out of the list, if there is too much of it: the newest is what a later communicator is likely
 * to take. */
static rd_left_t *too_much(bool imported)
{
    const size_t most = imported ? IMPORTS : MEMORY;
    rd_left_t *old = NULL;
    size_t kept = 0;

    for (const rd_left_t *l = left; l; l = l->next)
        kept += kept_by(l, imported);
    if (kept <= most)
        return NULL;
    kept = 0;
    for (rd_left_t **at = &left; *at;) {
        rd_left_t *l = *at;
        kept += kept_by(l, imported);
        if (kept_by(l, imported) == 0 || kept <= most / 2) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        l->next = old;
        old = l;
    }
    return old;
}

size_t rd_window_left_room(void)
{
    size_t kept = 0;

    pthread_mutex_lock(&lock);
    for (const rd_left_t *l = left; l; l = l->next)
        kept += kept_by(l, false);
    pthread_mutex_unlock(&lock);
    return kept < MEMORY ? MEMORY - kept : 0;
}

void rd_window_left_free(int device)
{
    rd_left_t *gone = NULL;

    pthread_mutex_lock(&lock);
    for (rd_left_t **at = &left; *at;) {
        rd_left_t *l = *at;
        if (l->device != device || kept_by(l, false) == 0) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        l->next = gone;
        gone = l;
    }
    pthread_mutex_unlock(&lock);
    give_back(gone);
}

void rd_window_unmap(rd_cuda_t *cuda, void *memory, rd_import_name_t name)
{
    rd_remains_t *r = rd_cuda_outer(cuda)->remains;
    rd_left_t *old = NULL;

    pthread_mutex_lock(&lock);
    bool now = !r && is_alone(cuda);
    rd_left_t *l = now ? NULL : malloc(sizeof *l); /* without memory it is never unmapped */
    if (l) {
        *l = (rd_left_t){.memory = memory, .device = cuda->device, .imported = name};
        left_add(r ? &r->left : &left, &l);
        old = !buried && rd_cuda_may_wait(cuda) ? too_much(true) : NULL;
    }
    pthread_mutex_unlock(&lock);
    if (now)
        (void)cudaIpcCloseMemHandle(memory);
    give_back(old);
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

/* ---- the end of a communicator ---- */

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
        } else if (!rd_driver_buffer_gone(g->window, g->number)) {
            (void)cudaFree(g->window);
        }
        free(g);
    }
    rd_proxy_path_areas_free();
    rd_words_free();
}

/* Puts memory that a communicator leaves into the graveyard. Returns NULL without memory for the entry: then it is
 * never freed. */
static grave_t *close_comm(char *window, size_t bytes, uint64_t number, int device)
{
    grave_t *g = calloc(1, sizeof *g);

    if (g) {
        *g = (grave_t){.next = graves, .window = window, .bytes = bytes, .number = number, .device = device};
        graves = g;
    }
    return g;
}

/* Host memory stays mapped as long as it is pinned; `last`: no other rank of the process uses it. What peers do with
 * their own mappings of it does not matter here. */
static void close_shared(rd_cuda_t *cuda, bool last)
{
    grave_t *g;

    if (!last) {
        rd_node_free(&cuda->shared);
        return;
    }
    if ((g = close_comm(cuda->shared.base, 0, 0, -1)))
        g->node = cuda->shared;
    memset(&cuda->shared, 0, sizeof cuda->shared);
}

void rd_window_release(rd_cuda_t *cuda)
{
    const uint64_t number = cuda->window ? rd_driver_buffer(cuda->window) : 0;

    pthread_mutex_lock(&lock);
    if (cuda->window)
        (void)close_comm(cuda->window, cuda->window_bytes, number, cuda->device);
    pthread_mutex_unlock(&lock);
    cuda->window = cuda->k.own = NULL;
}

bool rd_grave_hold(rd_cuda_t *cuda)
{
    const rd_team_t *team = cuda->team;
    rd_remains_t *r = calloc(1, sizeof *r);

    sweep_remains();
    pthread_mutex_lock(&lock);
    bool buries = r && buried < BURIED;
    buried += buries;
    pthread_mutex_unlock(&lock);
    if (!buries) {
        free(r);
        return false;
    }
    r->event = cuda->order.event;
    cuda->order.event = NULL;
    r->own = team->node->base ? team->controls[team->rank] : NULL;
    cuda->remains = r;
    return true;
}

void rd_grave_area_leave(rd_cuda_t *cuda, rd_proxy_path_area_t *area)
{
    if (cuda->remains)
        cuda->remains->area = area;
    else
        rd_proxy_path_area_give(area);
}

static void leave_words(rd_cuda_t *cuda)
{
    if (!cuda->host || cuda->parent)
        return;
    if (cuda->left) /* kernels of the program's may still look there, and are to leave */
        *(volatile uint32_t *)&cuda->host->abort = 1;
    else if (cuda->remains)
        cuda->remains->words = cuda->host;
    else
        rd_words_give(cuda->host);
}

static void leave_window(rd_cuda_t *cuda, uint64_t number, rd_node_t *node, rd_control_t *const *controls)
{
    grave_t *g;

    if (!cuda->window && !(cuda->kept && cuda->left))
        return;
    g = close_comm(cuda->window, cuda->window_bytes, number, cuda->device);
    if (g)
        g->remains = rd_cuda_outer(cuda)->remains;
    if (g && controls && !cuda->limits.host_windows) {
        g->peers = node->nlocal; /* at most RD_KRANKS ranks map windows */
        for (int m = 0; m < node->nlocal; m++)
            g->controls[m] = controls[node->local[m]];
        g->node = *node;
        memset(node, 0, sizeof *node);
        left_add(&g->left, &cuda->left);
    }
}

/* Its kernels are over, or it counts as living until they are. */
static void leave_living(rd_cuda_t *cuda, rd_node_t *node)
{
    rd_remains_t *r = rd_cuda_outer(cuda)->remains;

    if (!r) {
        living -= cuda->living; /* a creation that failed before it came to its window was never counted */
        return;
    }
    r->living += cuda->living;
    if (cuda->parent)
        return;
    r->node = *node; /* empty if a grave has it */
    memset(node, 0, sizeof *node);
    r->next = remains;
    remains = r;
    cuda->remains = NULL;
}

void rd_window_free(rd_cuda_t *cuda, rd_node_t *node, rd_control_t *const *controls)
{
    rd_remains_t *r = rd_cuda_outer(cuda)->remains;
    const bool waits = rd_cuda_may_wait(cuda), last = cuda->pinned && rd_window_host_unpin(cuda->shared.base);
    const uint64_t number = cuda->window ? rd_driver_buffer(cuda->window) : 0;

    pthread_mutex_lock(&lock);
    leave_words(cuda);
    leave_window(cuda, number, node, controls);
    left_add(&left, &cuda->left);
    left_add(r ? &r->left : &left, &cuda->enqueued);
    close_shared(cuda, last);
    leave_living(cuda, node);
    pthread_mutex_unlock(&lock);
    sweep_remains();
    pthread_mutex_lock(&lock);
    sweep_graves();
    rd_left_t *old = !buried && waits ? too_much(false) : NULL;
    if (living == 0)
        free_all();
    pthread_mutex_unlock(&lock);
    give_back(old);
}

/* ---- what a later one takes ---- */

/* Takes a window out of the graveyard that nobody touches. NULL: there is none. */
static grave_t *grave_find(int device, size_t bytes)
{
    grave_t **at = &graves, *g;

    pthread_mutex_lock(&lock);
    sweep_graves();
    while ((g = *at) && (g->peers || g->remains || g->device != device || g->bytes != bytes))
        at = &g->next;
    if (g)
        *at = g->next;
    pthread_mutex_unlock(&lock);
    return g;
}

char *rd_grave_window_take(rd_cuda_t *cuda)
{
    char *window = NULL;

    sweep_remains();
    pthread_mutex_lock(&lock);
    living += !cuda->living;
    cuda->living = true;
    pthread_mutex_unlock(&lock);
    for (grave_t *g; cuda->window_bytes && !window && (g = grave_find(cuda->device, cuda->window_bytes)); free(g))
        window = rd_driver_buffer_gone(g->window, g->number) ? NULL : g->window;
    return window;
}
