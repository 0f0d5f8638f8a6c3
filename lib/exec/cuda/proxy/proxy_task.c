/* The tasks of a CUDA communicator on the proxy path that are not done yet, and those that graphs hold: see proxy.h. */
#include "exec/cuda/proxy/proxy.h"

#include <stdlib.h>
#include <string.h>

rd_proxy_path_tasks_t *rd_proxy_path_tasks_create(void)
{
    rd_proxy_path_tasks_t *t = calloc(1, sizeof *t);

    if (t) {
        pthread_mutex_init(&t->lock, NULL);
        t->references = 1;
    }
    return t;
}

/* Drops a reference. */
static void drop(rd_proxy_path_tasks_t *t)
{
    pthread_mutex_lock(&t->lock);
    int left = --t->references;
    pthread_mutex_unlock(&t->lock);
    if (left)
        return;
    for (uint32_t i = 0; i < t->room; i++)
        free(t->all[i]);
    free(t->all);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

rd_proxy_path_task_t *rd_proxy_path_task(rd_proxy_path_tasks_t *t, uint32_t number)
{
    pthread_mutex_lock(&t->lock);
    rd_proxy_path_task_t *task = number < t->room ? t->all[number] : NULL;
    pthread_mutex_unlock(&t->lock);
    return task;
}

void rd_proxy_path_task_release(rd_proxy_path_tasks_t *t, rd_proxy_path_task_t *task)
{
    pthread_mutex_lock(&t->lock);
    t->all[task->number] = NULL;
    t->next = task->number;
    pthread_mutex_unlock(&t->lock);
    free(task);
}

static int tasks_grow(rd_proxy_path_tasks_t *t)
{
    uint32_t room = t->room ? 2 * t->room : 64;
    rd_proxy_path_task_t **more = realloc(t->all, room * sizeof(*more));

    if (!more)
        return -1;
    memset(more + t->room, 0, (room - t->room) * sizeof(*more));
    t->next = t->room;
    t->all = more;
    t->room = room;
    return 0;
}

int rd_proxy_path_task_add(rd_proxy_path_tasks_t *t, rd_proxy_path_task_t *task)
{
    int result = 0;

    pthread_mutex_lock(&t->lock);
    uint32_t tries = 0;
    while (tries < t->room && t->all[t->next]) {
        t->next = (t->next + 1) % t->room;
        tries++;
    }
    if (tries == t->room)
        result = tasks_grow(t);
    if (result == 0) {
        task->number = t->next;
        t->all[t->next] = task;
        t->next = (t->next + 1) % t->room;
    }
    pthread_mutex_unlock(&t->lock);
    return result;
}

/* ---- graphs: what they hold is freed with them
 *
 * This does not happen at once: a kernel whose rank gets nothing back leaves when its trigger is raised, so a graph may
 * end before the proxies have begun to serve its triggers. When it ends, its kernels are over, and the lanes show how
 * many triggers they have raised. The proxy of channel 0, which naps but does not sleep as long as `captured` is not
 * zero, frees the task when all proxy channels have come that far. A communicator ends when no proxy has anything left
 * to do. */

typedef struct rd_proxy_path_held {
    struct rd_proxy_path_held *next;
    rd_proxy_path_tasks_t *tasks;
    rd_proxy_path_task_t *task;         /* NULL: messages need none, and their kernels wait for the proxies */
    bool counted;                       /* `until` has been set, by proxy channel 0 after the graph's end */
    uint32_t until[RD_KPROXY_CHANNELS]; /* value of `done` in each channel's lane 0 when nothing of it is left */
} held_t;

static void let_go(held_t *h)
{
    atomic_fetch_sub(&h->tasks->captured, 1);
    if (h->task)
        rd_proxy_path_task_release(h->tasks, h->task);
    drop(h->tasks);
    free(h);
}

static void graph_gone(void *arg)
{
    held_t *h = arg;
    rd_proxy_path_tasks_t *t = h->tasks;

    pthread_mutex_lock(&t->lock);
    int stays = h->task && !t->closed;
    if (stays) {
        h->next = t->left;
        t->left = h;
        atomic_fetch_add(&t->gone, 1);
    }
    pthread_mutex_unlock(&t->lock);
    if (!stays)
        let_go(h);
}

static uint32_t done_of(const rd_proxy_channel_t *channel)
{
    return __atomic_load_n(&channel->lanes[0].pinned->done, __ATOMIC_ACQUIRE);
}

/* Returns how far the channel's triggers are ahead of `done`, which was read before: so it does not matter if the
 * channel proceeds meanwhile. */
static uint32_t ahead_of(const rd_proxy_channel_t *channel, uint32_t done)
{
    const rd_klane_t *lane = channel->lanes[0].pinned;
    uint32_t most = 0;

    for (uint32_t i = 0; i < channel->path->k.slots; i++) {
        uint32_t number = __atomic_load_n(&lane->trigger[i].number, __ATOMIC_ACQUIRE);
        uint32_t ahead = (number - done) & ~RD_KVALID; /* a quarter of the range of numbers or more: behind */
        if (number & RD_KVALID && number == __atomic_load_n(&lane->trigger[i].again, __ATOMIC_ACQUIRE) &&
            ahead < RD_KVALID / 4 && ahead > most)
            most = ahead;
    }
    return most;
}

uint32_t rd_proxy_path_undone(const rd_proxy_channel_t *channel)
{
    return ahead_of(channel, done_of(channel));
}

/* Returns true if all triggers that the graph has raised are done. */
static bool done_with(const rd_proxy_path_t *s, held_t *h)
{
    bool busy = false;

    for (int c = 0; c < s->nchannels && !h->counted; c++) {
        uint32_t done = done_of(&s->channels[c]);
        h->until[c] = done + ahead_of(&s->channels[c], done);
    }
    h->counted = true;
    for (int c = 0; c < s->nchannels; c++)
        busy |= (int32_t)(done_of(&s->channels[c]) - h->until[c]) < 0;
    return !busy;
}

void rd_proxy_path_tasks_sweep(rd_proxy_path_t *s)
{
    rd_proxy_path_tasks_t *t = s->tasks;
    held_t *over = NULL, *h;

    if (atomic_load_explicit(&t->gone, memory_order_relaxed) == 0)
        return;
    pthread_mutex_lock(&t->lock);
    for (held_t **at = &t->left; (h = *at);) {
        if (!done_with(s, h)) {
            at = &h->next;
            continue;
        }
        *at = h->next;
        h->next = over;
        over = h;
        atomic_fetch_sub(&t->gone, 1);
    }
    pthread_mutex_unlock(&t->lock);
    while ((h = over)) {
        over = h->next;
        let_go(h);
    }
}

void rd_proxy_path_tasks_close(rd_proxy_path_tasks_t *t)
{
    held_t *h;

    pthread_mutex_lock(&t->lock);
    t->closed = true;
    held_t *left = t->left;
    t->left = NULL;
    pthread_mutex_unlock(&t->lock);
    while ((h = left)) {
        left = h->next;
        let_go(h);
    }
    drop(t);
}

cudaError_t rd_proxy_path_graph(cudaStream_t stream, cudaGraph_t *graph)
{
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *deps;
    const cudaGraphEdgeData *edges;
    unsigned long long id;
    size_t ndeps;
    cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, &id, graph, &deps, &edges, &ndeps);

    if (error == cudaSuccess && status != cudaStreamCaptureStatusActive)
        *graph = NULL;
    return error;
}

cudaError_t rd_proxy_path_graph_hold(rd_proxy_path_tasks_t *tasks, rd_proxy_path_task_t *task, cudaGraph_t graph)
{
    held_t *h = malloc(sizeof *h);
    cudaUserObject_t object;
    cudaError_t error =
        h ? cudaUserObjectCreate(&object, h, graph_gone, 1, cudaUserObjectNoDestructorSync) : cudaErrorMemoryAllocation;

    if (error != cudaSuccess) {
        free(h);
        if (task)
            rd_proxy_path_task_release(tasks, task);
        return error;
    }
    *h = (held_t){.tasks = tasks, .task = task};
    pthread_mutex_lock(&tasks->lock);
    tasks->references++;
    pthread_mutex_unlock(&tasks->lock);
    atomic_fetch_add(&tasks->captured, 1);
    if (task)
        task->captured = true;
    error = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
    if (error != cudaSuccess)
        (void)cudaUserObjectRelease(object, 1); /* undoes all of it */
    return error;
}
