/* What a CUDA communicator that is staged has been asked for and not done yet, and what graphs hold of it: see stage.h.
 */
#include "stage.h"

#include <stdlib.h>
#include <string.h>

rd_stage_tasks_t *rd_stage_tasks_create(void)
{
    rd_stage_tasks_t *t = calloc(1, sizeof *t);

    if (t) {
        pthread_mutex_init(&t->lock, NULL);
        t->references = 1;
    }
    return t;
}

void rd_stage_tasks_drop(rd_stage_tasks_t *t)
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

rd_stage_task_t *rd_stage_task(rd_stage_tasks_t *t, uint32_t number)
{
    pthread_mutex_lock(&t->lock);
    rd_stage_task_t *task = number < t->room ? t->all[number] : NULL;
    pthread_mutex_unlock(&t->lock);
    return task;
}

void rd_stage_task_drop(rd_stage_tasks_t *t, rd_stage_task_t *task)
{
    pthread_mutex_lock(&t->lock);
    t->all[task->number] = NULL;
    t->next = task->number;
    pthread_mutex_unlock(&t->lock);
    free(task);
}

static int tasks_grow(rd_stage_tasks_t *t)
{
    uint32_t room = t->room ? 2 * t->room : 64;
    rd_stage_task_t **more = realloc(t->all, room * sizeof(*more));

    if (!more)
        return -1;
    memset(more + t->room, 0, (room - t->room) * sizeof(*more));
    t->next = t->room;
    t->all = more;
    t->room = room;
    return 0;
}

int rd_stage_task_add(rd_stage_tasks_t *t, rd_stage_task_t *task)
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

/* ---- graphs: what they hold goes with them */

typedef struct held {
    rd_stage_tasks_t *tasks;
    rd_stage_task_t *task; /* NULL: messages need none */
} held_t;

static void graph_gone(void *arg)
{
    held_t *h = arg;

    atomic_fetch_sub(&h->tasks->captured, 1);
    if (h->task)
        rd_stage_task_drop(h->tasks, h->task);
    rd_stage_tasks_drop(h->tasks);
    free(h);
}

cudaError_t rd_stage_graph(cudaStream_t stream, cudaGraph_t *graph)
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

cudaError_t rd_stage_graph_hold(rd_stage_tasks_t *tasks, rd_stage_task_t *task, cudaGraph_t graph)
{
    held_t *h = malloc(sizeof *h);
    cudaUserObject_t object;
    cudaError_t error =
        h ? cudaUserObjectCreate(&object, h, graph_gone, 1, cudaUserObjectNoDestructorSync) : cudaErrorMemoryAllocation;

    if (error != cudaSuccess) {
        free(h);
        return error;
    }
    *h = (held_t){tasks, task};
    pthread_mutex_lock(&tasks->lock);
    tasks->references++;
    pthread_mutex_unlock(&tasks->lock);
    atomic_fetch_add(&tasks->captured, 1);
    if (task)
        task->captured = 1;
    error = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
    if (error != cudaSuccess)
        (void)cudaUserObjectRelease(object, 1); /* takes it all back */
    return error;
}
