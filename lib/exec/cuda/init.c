/* A CUDA communicator's beginning and end.
 *
 * The end is orderly when what is enqueued is over. After an error the stop word stands in pinned memory too, where
 * every kernel that waits sees it and leaves; so streams drain, and then, and only then, memory is given back.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/cuda/cuda_int.h"
#include "exec/cuda/proxy/proxy.h"

rondo_result_t rd_cuda_create(rondo_comm_t comm, const rd_net_comm_ops_t *net_comms)
{
    rd_cuda_t *cuda;
    rondo_result_t result;

    if (comm->nranks > RD_STAGE_RANKS)
        return rd_error(&comm->who, RONDO_ERR_UNSUPPORTED,
                        "%d ranks: this version's CUDA communicators have at most %d", comm->nranks, RD_STAGE_RANKS);
    if ((result = rd_kchoose_names(&comm->env, &comm->who)))
        return result;
    cuda = comm->cuda = calloc(1, sizeof *cuda);
    if (!cuda)
        return rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory for a CUDA communicator");
    cuda->comm = comm;
    cuda->net_comms = net_comms;
    cuda->device = comm->device;
    cuda->k.rank = comm->rank;
    cuda->k.nranks = comm->nranks;
    cuda->late_ms = RD_LATE_MS;
    for (int i = 0; i < RD_CHOSEN; i++)
        cuda->cache[i].chosen.launch.kind = RD_K_KINDS;
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    if ((result = rd_import_facts(cuda)) == RONDO_SUCCESS && (result = rd_order_create(cuda)) == RONDO_SUCCESS)
        result = rd_stage_needed(comm) ? rd_window_create(cuda) : rd_import_windows(cuda);
    if (result == RONDO_SUCCESS)
        result =
            rd_stage_needed(comm) ? rd_stage_create(cuda) : rd_signature_ring_create(&cuda->signatures, &comm->team);
    if (result == RONDO_SUCCESS) {
        cuda->limits.copies = (uint32_t)rd_registered_possible(cuda);
        atomic_store(&comm->health.stop.mirror, &cuda->host->abort);
        if (rd_health_check(&comm->health) != RONDO_SUCCESS) /* set in between */
            cuda->host->abort = 1;
        cuda->whole = 1;
        rd_crowd_join(cuda);
    }
    rd_device_leave(guard);
    return result;
}

static const char *whois(rondo_comm_t comm, int rank)
{
    return rank >= 0 && rank < comm->nranks ? rd_boot_whois(comm->boot, rank) : "?";
}

rondo_result_t rd_cuda_check(rondo_comm_t comm)
{
    volatile const rd_khost_t *host = comm->cuda->host;
    uint32_t failed = host->failed;

    if (__builtin_expect(failed == 0, 1))
        return RONDO_SUCCESS;
    atomic_thread_fence(memory_order_acquire);
    int late = (int)host->late;
    if (comm->cuda->stage && late < comm->node.nlocal) /* by a kernel of the node's own ranks */
        late = comm->node.local[late];
    if (failed == RD_KFAILED_TIMEOUT && late == (int)RD_KPROXY) /* kernels between nodes wait for nobody else */
        return rd_health_fail(&comm->health, RONDO_ERR_TIMEOUT, comm->rank,
                              "a kernel waited longer than %u ms for this process's own proxy thread",
                              host->timeout_ms);
    if (failed == RD_KFAILED_TIMEOUT)
        return rd_health_fail(
            &comm->health, RONDO_ERR_TIMEOUT, late,
            "a kernel waited longer than %u ms for rank %d (%s): it is alive but late or stopped; see "
            "RONDO_TIMEOUT_MS",
            host->timeout_ms, late, whois(comm, late));
    if (rd_health_check(&comm->health) != RONDO_SUCCESS)
        return rd_health_check(&comm->health);
    if (failed == RD_KFAILED_DIFFERS)
        return rd_health_fail(
            &comm->health, RONDO_ERR_MISMATCH, late,
            "rank %d (%s) has called another operation by copies than this rank, or with a buffer that "
            "lies elsewhere: all must be at the same offset of the same registration (RONDO_CUDA_COPY)",
            late, whois(comm, late));
    if (failed == RD_KFAILED_LEFT)
        return rd_health_fail(&comm->health, RONDO_ERR_REMOTE, late,
                              "rank %d (%s) has left an operation before this rank had copied its buffer", late,
                              whois(comm, late));
    return rd_health_fail(&comm->health, RONDO_ERR_INTERNAL, -1, "a kernel has left without having finished");
}

/* RONDO_IN_PROGRESS: a kernel is not over, or a proxy with what the last ones have left to it. */
static rondo_result_t over(rd_cuda_t *cuda)
{
    cudaError_t error = cudaEventQuery(cuda->order.event);

    if (error == cudaErrorNotReady) { /* what ends that may be a death or an abort */
        (void)cudaGetLastError();
        (void)rd_health_poll(&cuda->comm->health);
        return RONDO_IN_PROGRESS;
    }
    if (error != cudaSuccess)
        return rd_cuda_error(&cuda->comm->who, error, "waiting for what is enqueued");
    rondo_result_t result = rd_cuda_check(cuda->comm);
    result = result == RONDO_SUCCESS ? rd_health_check(&cuda->comm->health) : result;
    if (result != RONDO_SUCCESS || !rd_stage_busy(cuda))
        return result;
    result = rd_health_poll(&cuda->comm->health);
    return result == RONDO_SUCCESS ? RONDO_IN_PROGRESS : result;
}

rondo_result_t rd_cuda_drained(rondo_comm_t comm)
{
    rd_device_guard_t guard = rd_device_enter(comm->cuda->device);
    rondo_result_t result = over(comm->cuda);

    rd_device_leave(guard);
    return result;
}

/* A query now and then. */
static rondo_result_t wait_over(rd_cuda_t *cuda)
{
    const struct timespec pause = {0, 50000};
    rondo_result_t result;

    while ((result = over(cuda)) == RONDO_IN_PROGRESS)
        nanosleep(&pause, NULL);
    return result;
}

rondo_result_t rd_cuda_drain(rondo_comm_t comm)
{
    rd_device_guard_t guard = rd_device_enter(comm->cuda->device);
    rondo_result_t result = wait_over(comm->cuda);

    rd_device_leave(guard);
    return result;
}

rondo_result_t rd_cuda_close(rondo_comm_t comm)
{
    rd_device_guard_t guard = rd_device_enter(comm->cuda->device);
    rondo_result_t result = wait_over(comm->cuda);

    rd_stage_close(comm->cuda);
    rd_inner_close(comm->cuda);
    rd_registered_close(comm->cuda);
    rd_import_close(comm->cuda);
    rd_device_leave(guard);
    return result;
}

void rd_cuda_free(rondo_comm_t comm)
{
    rd_cuda_t *cuda = comm->cuda;

    if (!cuda)
        return;
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    atomic_store(&comm->health.stop.mirror, NULL);
    if (cuda->whole)
        rd_crowd_leave(cuda);
    rd_stage_close(cuda);
    rd_inner_free(cuda, &comm->node, cuda->whole ? comm->conns.controls : NULL);
    rd_registered_close(cuda);
    rd_import_close(cuda);
    rd_order_free(cuda);
    rd_signature_ring_free(cuda->signatures);
    rd_cuda_programs_free(cuda);
    rd_window_free(cuda, &comm->node, cuda->whole ? comm->conns.controls : NULL);
    rd_device_leave(guard);
    comm->cuda = NULL;
    free(cuda->peers);
    free(cuda);
}

/* ---- memory of the communicator's device ---- */

rondo_result_t rd_cuda_mem_alloc(void **buffer, size_t bytes, rondo_comm_t comm)
{
    rd_device_guard_t guard = rd_device_enter(comm->cuda->device);
    cudaError_t error = cudaMalloc(buffer, bytes ? bytes : 1);

    rd_device_leave(guard);
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(&comm->who, error, "rondo_mem_alloc");
}

rondo_result_t rd_cuda_mem_free(void *buffer, rondo_comm_t comm)
{
    rd_device_guard_t guard = rd_device_enter(comm->cuda->device);
    cudaError_t error = cudaFree(buffer);

    rd_device_leave(guard);
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(&comm->who, error, "rondo_mem_free");
}
