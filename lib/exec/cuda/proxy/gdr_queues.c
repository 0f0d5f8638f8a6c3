/* The GPU's hardware queues, filled by way of trial.
 *
 * A GPU takes what streams hold from few queues (8, or CUDA_DEVICE_MAX_CONNECTIONS when the process starts), each in
 * order: what waits at the head of one holds up all behind it, of other streams, too. So a copy that an operation waits
 * for may come to stand behind that operation, for ever. A stream's priority or a green context does not help: on an
 * H200 none of 8 copies within the GPU went through where 16 streams waited, whatever stream they were given.
 *
 * So whoever lets kernels wait for what others do with the GPU's memory tries first whether they need a queue: whether
 * it is done while streams wait in all of them. With fewer streams it might be, or not: whose come to stand behind
 * whose depends on the order in which they were made.
 */
#include <stdlib.h>
#include <time.h>

#include "exec/cuda/proxy/proxy.h"

#define STREAMS 64 /* there are 32 queues at most, which are given to streams in turn */
#define PATIENCE_MS 500
#define NAP_NS 200000

struct rd_queues {
    cudaStream_t streams[STREAMS];
    int count;
    cudaEvent_t event;
    _Atomic int over, late;
    _Atomic int references; /* the caller's, and that of what is at the head of all */
};

static void drop(rd_queues_t *q)
{
    if (atomic_fetch_sub(&q->references, 1) == 1)
        free(q);
}

/* At the head of all: returns when the trial is over, or nobody can wait any longer. */
static void hold(void *arg)
{
    rd_queues_t *q = arg;
    const struct timespec nap = {0, NAP_NS};
    int64_t until = rd_clock_ms() + PATIENCE_MS;

    while (!atomic_load(&q->over) && !atomic_load(&q->late)) {
        if (rd_clock_ms() > until)
            atomic_store(&q->late, 1);
        nanosleep(&nap, NULL);
    }
    drop(q);
}

static cudaError_t begin(rd_queues_t *q)
{
    atomic_store(&q->references, 2);
    cudaError_t error = cudaLaunchHostFunc(q->streams[0], hold, q);
    if (error != cudaSuccess)
        drop(q);
    return error;
}

/* The first holds an event up, and the others wait for it, with something behind for each kind of queue that there is
 * known to be: kernels and copies within the GPU have theirs, and copies from the host. */
static cudaError_t fill(rd_queues_t *q, void *to, const void *from, size_t bytes)
{
    cudaError_t error = cudaEventCreateWithFlags(&q->event, cudaEventDisableTiming);

    for (int i = 0; i < STREAMS && error == cudaSuccess; i++) {
        error = cudaStreamCreateWithFlags(&q->streams[i], cudaStreamNonBlocking);
        q->count += error == cudaSuccess;
    }
    if (error == cudaSuccess)
        error = begin(q);
    if (error == cudaSuccess)
        error = cudaEventRecord(q->event, q->streams[0]);
    for (int i = 1; i < STREAMS && error == cudaSuccess; i++) {
        error = cudaStreamWaitEvent(q->streams[i], q->event, 0);
        if (error == cudaSuccess && i % 2)
            error = cudaMemsetAsync(to, 0, bytes, q->streams[i]);
        else if (error == cudaSuccess)
            error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, q->streams[i]);
    }
    return error;
}

rd_queues_t *rd_queues_fill(void *to, const void *from, size_t bytes)
{
    rd_queues_t *q = calloc(1, sizeof *q);

    if (!q)
        return NULL;
    atomic_store(&q->references, 1);
    if (fill(q, to, from, bytes) == cudaSuccess)
        return q;
    (void)cudaGetLastError(); /* the user's next look at it finds his own */
    (void)rd_queues_free(q);
    return NULL;
}

/* Waits for nothing: in their queues the streams may stand behind work of the program's, which may wait for more than
 * this. CUDA lets them run out. */
int rd_queues_free(rd_queues_t *q)
{
    if (!q)
        return 1;
    int late = atomic_load(&q->late);

    atomic_store(&q->over, 1);
    for (int i = 0; i < q->count; i++)
        (void)cudaStreamDestroy(q->streams[i]);
    if (q->event)
        (void)cudaEventDestroy(q->event);
    drop(q);
    return late;
}
