/* Streams behind the end of another rank, in the way of NCCL.
 *
 * A call of rondo returns the error of a communicator that has failed. NCCL never notices that another rank is gone: it
 * enqueues the call, and the stream waits until somebody aborts the communicator. Programs written for it ask for the
 * communicator's error beside the stream, and take an error of the call for a mistake of their own; and a stream that
 * just went on would hand them results that nobody has computed. So lib/nccl has the stream stall. It does not stall
 * for ever, because a program that never asks must hear of the failure, too: by its next call. */
#include "exec/cuda/cuda_int.h"

#include "base/wait.h"

#define PATIENCE_MS 1000

/* Returns true if the streams have been stalled for as long as they may be. */
static bool is_over(rd_cuda_t *cuda)
{
    int64_t since = atomic_load(&cuda->stalled_ms);

    return since && rd_clock_ms() - since >= cuda->team->env->nccl_stall_ms;
}

rondo_result_t rd_cuda_stall(rd_cuda_t *cuda, rondo_stream_t stream)
{
    const rd_klaunch_t launch = {.kernel = RD_KERNEL_STALL, .blocks = 1, .threads = 32};
    rd_kwork_t work;
    int64_t none = 0;

    if (cuda->team->env->nccl_stall_ms == 0 || is_over(cuda) || rd_cuda_captured(stream))
        return rd_health_check(cuda->team->health);
    atomic_compare_exchange_strong(&cuda->stalled_ms, &none, rd_clock_ms());
    work.comm = cuda->k;
    return rd_cuda_launch(cuda, &launch, &work, stream);
}

void rd_cuda_release(rd_cuda_t *cuda)
{
    volatile rd_khost_t *host = cuda->host;

    if (!host)
        return;
    host->released = 1;
    if (rd_health_check(cuda->team->health) != RONDO_SUCCESS)
        host->abort = 1; /* which an impatient communicator's health has set itself */
}

/* A rank may end right behind its last call, and another one a moment later behind the same call. With NCCL neither of
 * them notices anything; so the end of another rank becomes known after PATIENCE_MS only, and kernels wait as long. */
void rd_cuda_patient(rd_cuda_t *cuda)
{
    if (cuda->team->env->nccl_stall_ms == 0)
        return;
    cuda->patient = true;
    atomic_store(&cuda->team->health->stop.mirror, NULL);
}

bool rd_cuda_shown(rd_cuda_t *cuda)
{
    volatile const rd_khost_t *host = cuda->host;

    return !cuda->patient || host->abort;
}

void rd_stall_poll(rd_cuda_t *cuda)
{
    rondo_result_t code = rd_health_check(cuda->team->health);
    volatile rd_khost_t *host = cuda->host;
    int64_t now = rd_clock_ms();

    if (is_over(cuda))
        rd_cuda_release(cuda);
    if (code == RONDO_SUCCESS || !cuda->patient)
        return;
    if (cuda->failed_ms == 0)
        cuda->failed_ms = now;
    if (code != RONDO_ERR_REMOTE || now - cuda->failed_ms >= PATIENCE_MS)
        host->abort = 1;
}

bool rd_cuda_complete(rd_cuda_t *cuda)
{
    volatile const rd_khost_t *host = cuda->host;

    if (atomic_load(&cuda->stalled_ms))
        return false;
    (void)rd_cuda_drain(cuda);
    return rd_cuda_drained(cuda) != RONDO_IN_PROGRESS && host->failed == 0;
}
