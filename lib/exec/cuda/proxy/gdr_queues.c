/* The GPU's hardware queues, filled for a trial.
 *
 * A GPU takes the work of streams from few queues (8, or CUDA_DEVICE_MAX_CONNECTIONS when the process starts), each in
 * order: an entry that waits at the head of one holds up everything behind it, also that of other streams. So a copy
 * that an operation waits for may get queued behind that operation, for ever. A stream's priority or a green context
 * does not help: on an H200 none of 8 copies within the GPU went through where 16 streams waited, whatever stream they
 * were given.
 *
 * So code that lets kernels wait for what others do with the GPU's memory first tries whether they need a queue, that
 * is, whether their work gets done while streams wait in all queues. With fewer waiting streams the result would be
 * chance: which stream is queued behind which depends on the order in which they were created. */
#include <stdlib.h>
#include <time.h>

#include "exec/cuda/proxy/proxy.h"

#define STREAMS 64 /* there are 32 queues at most, which streams get in turn */
#define PATIENCE_MS 500
#define NAP_NS 200000

struct rd_queues {
    cudaStream_t streams[STREAMS];
    int count;
    cudaEvent_t event;
    _Atomic int over, late;
    _Atomic int references; /* the caller's, and that of the function at the head of all */
};

static void drop(rd_queues_t *q)
{
    if (atomic_fetch_sub(&q->references, 1) == 1)
        free(q);
}

/* Runs at the head of all queues. Returns when the trial is over, or when it has waited too long. */
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

/* The first stream holds up an event. The others wait for it, with work behind it for each kind of queue that is known:
 * kernels and copies within the GPU have theirs, and so have copies from the host. */
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
    (void)cudaGetLastError(); /* the user's next check must find only the user's own errors */
    (void)rd_queues_free(q);
    return NULL;
}

/* Waits for nothing: in their queues the streams may be behind work of the program, which may wait for more than this.
 * CUDA lets them run out. */
bool rd_queues_free(rd_queues_t *q)
{
    if (!q)
        return true;
    int late = atomic_load(&q->late);

    atomic_store(&q->over, 1);
    for (int i = 0; i < q->count; i++)
        (void)cudaStreamDestroy(q->streams[i]);
    if (q->event)
        (void)cudaEventDestroy(q->event);
    drop(q);
    return late;
}
