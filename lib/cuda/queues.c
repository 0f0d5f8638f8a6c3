/* The GPU's hardware queues, filled by way of trial.
 *
 * A GPU takes what streams hold from few queues (8, or CUDA_DEVICE_MAX_CONNECTIONS when the process starts), each in
 * order: what waits at the head of one holds up all behind it, of other streams, too. So a copy that an operation waits
 * for may come to stand behind that operation, for ever. A stream's priority or a green context does not help: on an
 * H200 none of 8 copies within the GPU went through where 16 streams waited, whatever stream they were given.
 *
 * So whoever lets kernels wait for what others do with the GPU's memory tries first whether they need a queue: whether
 * it is done while streams wait in all of them. With fewer streams it might be, or not: whose come to stand behind whose
 * depends on the order in which they were made.
 */
#include <time.h>

#include "stage.h"

#define PATIENCE_MS 500
#define NAP_NS 200000

/* At the head of all: returns when the trial is over, or nobody can wait any longer. */
static void hold(void *arg)
{
    rd_queues_t *q = arg;
    const struct timespec nap = {0, NAP_NS};
    int64_t until = rd_clock_ms() + PATIENCE_MS;

    while (!atomic_load(&q->over) && !atomic_load(&q->late)) {
        atomic_store(&q->late, rd_clock_ms() > until);
        nanosleep(&nap, NULL);
    }
}

/* The first holds an event up, and the others wait for it, with something behind. */
static cudaError_t fill(rd_queues_t *q, void *word)
{
    cudaError_t error = cudaEventCreateWithFlags(&q->event, cudaEventDisableTiming);

    for (int i = 0; i < RD_QUEUES && error == cudaSuccess; i++) {
        error = cudaStreamCreateWithFlags(&q->streams[i], cudaStreamNonBlocking);
        q->count += error == cudaSuccess;
    }
    if (error == cudaSuccess)
        error = cudaLaunchHostFunc(q->streams[0], hold, q);
    if (error == cudaSuccess)
        error = cudaEventRecord(q->event, q->streams[0]);
    for (int i = 1; i < RD_QUEUES && error == cudaSuccess; i++) {
        error = cudaStreamWaitEvent(q->streams[i], q->event, 0);
        if (error == cudaSuccess)
            error = cudaMemsetAsync(word, 0, sizeof(int), q->streams[i]);
    }
    return error;
}

void rd_queues_fill(rd_queues_t *q, void *word)
{
    *q = (rd_queues_t){.count = 0};
    if (fill(q, word) != cudaSuccess) { /* the user's next look at CUDA's last error finds his own */
        (void)cudaGetLastError();
        atomic_store(&q->late, 1);
    }
}

int rd_queues_free(rd_queues_t *q)
{
    atomic_store(&q->over, 1);
    for (int i = 0; i < q->count; i++) {
        (void)cudaStreamSynchronize(q->streams[i]); /* of nothing but what lies in it */
        (void)cudaStreamDestroy(q->streams[i]);
    }
    if (q->event)
        (void)cudaEventDestroy(q->event);
    return atomic_load(&q->late);
}
