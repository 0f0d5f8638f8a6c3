/* Creation and end of a CUDA communicator.
 *
 * The end is orderly when everything enqueued is over. After an error the stop word is set in pinned memory, too, where
 * every kernel that waits sees it and leaves; so streams drain, and only then is memory freed. What stands behind a
 * kernel of the program's in its stream is not waited for then: graveyard.c. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/wait.h"
#include "exec/cuda/graveyard.h"

#define LEAVE_MS 300 /* in which kernels leave behind a failure, if they have begun */

/* What copy engines need beyond the window. They do without the stream; ranks of a process that share a GPU have few.
 * Ranks of one process do without copy engines: three threads with an H200 each hung in a broadcast, as if a copy
 * between two GPUs waited behind another rank's, which waited for a kernel. */
static void prepare_copies(rd_cuda_t *cuda)
{
    const rd_team_t *team = cuda->team;

    cuda->limits.copies = (uint32_t)rd_registered_possible(cuda);
    cuda->limits.staging = cuda->limits.copies ? rd_window_staging_bytes(cuda, team->env) : 0;
    if (!cuda->limits.staging || cuda->beside > 1 || rd_cta_policy(team->env) == RONDO_CTA_POLICY_DEFAULT)
        return;
    if (cudaStreamCreateWithFlags(&cuda->put_stream, cudaStreamNonBlocking) != cudaSuccess) {
        (void)cudaGetLastError();
        cuda->put_stream = NULL;
    }
}

rondo_result_t rd_cuda_create(rd_cuda_t **made, const rd_team_t *team, const rd_net_comm_ops_t *net_comms)
{
    rd_cuda_t *cuda;
    rondo_result_t result;

    if (team->nranks > RD_PROXY_PATH_RANKS)
        return rd_error(team->ctx, RONDO_ERR_UNSUPPORTED, "%d ranks: this version's CUDA communicators have at most %d",
                        team->nranks, RD_PROXY_PATH_RANKS);
    if ((result = rd_kchoose_names(team->env, team->ctx)))
        return result;
    cuda = *made = calloc(1, sizeof *cuda);
    if (!cuda)
        return rd_error(team->ctx, RONDO_ERR_NO_MEMORY, "no memory for a CUDA communicator");
    cuda->team = team;
    pthread_mutex_init(&cuda->late.lock, NULL);
    cuda->net_comms = net_comms;
    cuda->device = team->device;
    cuda->k.rank = team->rank;
    cuda->k.nranks = team->nranks;
    rd_driver_contexts_check();
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    if ((result = rd_import_facts(cuda)) == RONDO_SUCCESS && (result = rd_order_create(cuda)) == RONDO_SUCCESS)
        result =
            rd_proxy_path_needed(team->nranks, team->node->nnodes) ? rd_window_create(cuda) : rd_import_windows(cuda);
    if (result == RONDO_SUCCESS)
        result = rd_proxy_path_needed(team->nranks, team->node->nnodes)
                     ? rd_proxy_path_create(cuda)
                     : rd_signature_ring_create(&cuda->signatures, team);
    if (result == RONDO_SUCCESS && !cuda->path)
        result = rd_lengths_ring_create(&cuda->lengths, team);
    if (result == RONDO_SUCCESS) {
        prepare_copies(cuda);
        atomic_store(&team->health->stop.mirror, &cuda->host->abort);
        if (rd_health_check(team->health) != RONDO_SUCCESS) /* set in between */
            cuda->host->abort = 1;
        cuda->whole = true;
        rd_occupancy_join(cuda);
    }
    rd_device_leave(guard);
    return result;
}

void rd_cuda_foresee(const rd_env_t *env, const rondo_shape_t *shape, rd_foresee_fn net_comm, rondo_memory_t *memory)
{
    bool host_windows = !env->p2p || shape->p2p == 0;

    memory->pinned += RD_WORD_BYTES;
    if (rd_proxy_path_needed(shape->nranks, shape->nnodes))
        rd_proxy_path_foresee(env, shape, host_windows, net_comm, memory);
    else
        rd_window_foresee(env, shape->nranks, host_windows, memory);
}

void rd_cuda_count(const rd_cuda_t *cuda, rondo_memory_t *memory)
{
    rd_window_count(cuda, memory);
    memory->device += cuda->over ? RD_COPY_OVER_BYTES : 0;
    memory->device += rd_user_count(cuda);
    if (cuda->node_comm)
        rd_window_count(cuda->node_comm, memory);
    if (cuda->path)
        rd_proxy_path_count(cuda->path, memory);
}

bool rd_cuda_may_wait(const rd_cuda_t *cuda)
{
    const rd_cuda_t *outer = cuda->parent ? cuda->parent : cuda;

    return !outer->hastens && rd_health_check(cuda->team->health) == RONDO_SUCCESS;
}

void rd_cuda_hasten(rd_cuda_t *cuda)
{
    cuda->hastens = true;
}

/* Proxies report a late rank: kernels between nodes wait only for a proxy, and must not give up before it does. 24 days
 * count as for ever, because kernels compare clocks that wrap around. */
void rd_cuda_limit(rd_cuda_t *cuda)
{
    int64_t ms = cuda->team->timeout_ms, of_kernels = cuda->path && ms && ms < INT32_MAX ? 2 * ms + 1000 : ms;

    if (cuda->path)
        rd_proxy_path_limit(cuda->path, ms);
    *(volatile uint32_t *)&cuda->host->timeout_ms = of_kernels > INT32_MAX ? 0 : (uint32_t)of_kernels;
}

rondo_result_t rd_cuda_check(rd_cuda_t *cuda)
{
    volatile const rd_khost_t *host = cuda->host;
    const rd_team_t *team = cuda->team;
    uint32_t failed = host->failed;

    if (__builtin_expect(failed == 0, 1))
        return RONDO_SUCCESS;
    atomic_thread_fence(memory_order_acquire);
    int late = (int)host->late;
    if (failed == RD_KFAILED_TIMEOUT)
        late = rd_ring_order_peer(cuda, host->wait[RD_KWAIT_CALL], late);
    if (cuda->path && late < team->node->nlocal) /* by a kernel of the node's own ranks */
        late = team->node->local[late];
    if (failed == RD_KFAILED_TIMEOUT && late == (int)RD_KPROXY) /* kernels between nodes wait for nobody else */
        return rd_health_fail(team->health, RONDO_ERR_TIMEOUT, team->rank,
                              "a kernel waited longer than %u ms for this process's own proxy thread",
                              host->timeout_ms);
    if (failed == RD_KFAILED_TIMEOUT)
        return rd_device_late_timeout(cuda, late);
    if (rd_health_check(team->health) != RONDO_SUCCESS)
        return rd_health_check(team->health);
    if (failed == RD_KFAILED_DIFFERS)
        return rd_health_fail(team->health, RONDO_ERR_MISMATCH, late,
                              "rank %d (%s) has called another operation by copy engines than this rank, or with a "
                              "buffer that lies elsewhere: all buffers must be at the same offset of the same "
                              "registration, or not be registered (RONDO_CUDA_COPY, RONDO_CTA_POLICY)",
                              late, rd_health_whois(team->health, late));
    if (failed == RD_KFAILED_LEFT)
        return rd_health_fail(team->health, RONDO_ERR_REMOTE, late,
                              "rank %d (%s) has left an operation before rank %d had copied its buffer", late,
                              rd_health_whois(team->health, late), team->rank);
    if (failed == RD_KFAILED_ARGUMENT)
        return rd_health_fail(team->health, RONDO_ERR_INVALID_ARGUMENT, team->rank,
                              "a kernel of the program's has asked for %s that does not exist (rondo_device.cuh)",
                              late == (int)RD_KNO_BARRIER  ? "a barrier"
                              : late == (int)RD_KNO_SIGNAL ? "a signal"
                              : late == (int)RD_KNO_RANK   ? "a rank"
                                                           : "a part of a window");
    return rd_health_fail(team->health, RONDO_ERR_INTERNAL, -1, "a kernel has left without having finished");
}

/* Returns RONDO_IN_PROGRESS if a kernel is not over, or if a proxy is still busy with what the last kernels have left
 * to it. */
static rondo_result_t over(rd_cuda_t *cuda)
{
    cudaError_t error = cudaEventQuery(cuda->order.event);

    if (error == cudaErrorNotReady) { /* a death or an abort may end that */
        (void)cudaGetLastError();
        (void)rd_health_poll(cuda->team->health);
        return RONDO_IN_PROGRESS;
    }
    if (error != cudaSuccess)
        return rd_cuda_error(cuda->team->ctx, error, "waiting for what is enqueued");
    rondo_result_t result = rd_cuda_check(cuda);
    result = result == RONDO_SUCCESS ? rd_health_check(cuda->team->health) : result;
    if (result != RONDO_SUCCESS || !rd_proxy_path_busy(cuda))
        return result;
    result = rd_health_poll(cuda->team->health);
    return result == RONDO_SUCCESS ? RONDO_IN_PROGRESS : result;
}

rondo_result_t rd_cuda_drained(rd_cuda_t *cuda)
{
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    rondo_result_t result = over(cuda);

    rd_device_leave(guard);
    return result;
}

/* Queries now and then until everything is over. Returns RONDO_IN_PROGRESS if kernels have been told to leave, and it
 * is not over after LEAVE_MS: then it has not begun, or is a long copy. */
static rondo_result_t wait_over(rd_cuda_t *cuda)
{
    const struct timespec pause = {0, 50000};
    rondo_result_t result;
    int64_t leaving_ms = 0;

    while ((result = over(cuda)) == RONDO_IN_PROGRESS) {
        const bool leaving = *(volatile const uint32_t *)&cuda->host->abort;
        if (leaving && leaving_ms && rd_clock_ms() - leaving_ms >= LEAVE_MS)
            break;
        if (leaving && !leaving_ms)
            leaving_ms = rd_clock_ms();
        nanosleep(&pause, NULL);
    }
    return result;
}

rondo_result_t rd_cuda_drain(rd_cuda_t *cuda)
{
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    rondo_result_t result = wait_over(cuda);

    rd_device_leave(guard);
    return result == RONDO_IN_PROGRESS ? rd_health_check(cuda->team->health) : result;
}

bool rd_cuda_close(rd_cuda_t *cuda)
{
    rd_cuda_release(cuda);
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    while (wait_over(cuda) == RONDO_IN_PROGRESS && !rd_grave_hold(cuda))
        continue;
    rd_proxy_path_close(cuda);
    rd_node_comm_close(cuda);
    rd_registered_close(cuda);
    rd_import_leave(cuda);
    rd_device_leave(guard);
    return !cuda->remains;
}

void rd_cuda_free(rd_cuda_t *cuda, rd_node_t *node)
{
    if (!cuda)
        return;
    rd_control_t *const *controls = cuda->whole ? cuda->team->controls : NULL;
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    atomic_store(&cuda->team->health->stop.mirror, NULL);
    if (cuda->whole)
        rd_occupancy_leave(cuda);
    rd_proxy_path_close(cuda);
    rd_node_comm_free(cuda, node, controls);
    rd_registered_close(cuda);
    rd_import_leave(cuda);
    rd_order_free(cuda);
    if (cuda->put_stream)
        (void)cudaStreamDestroy(cuda->put_stream);
    rd_signature_ring_free(cuda->signatures);
    rd_lengths_ring_free(cuda->lengths);
    rd_cuda_programs_free(cuda);
    rd_device_late_forget(cuda);
    pthread_mutex_destroy(&cuda->late.lock);
    rd_user_end(cuda);
    if (cuda->over) /* cudaFree would wait for the kernels of others */
        rd_window_leave(cuda, cuda->over, RD_COPY_OVER_BYTES, RD_LEFT_ENQUEUED);
    rd_window_free(cuda, node, controls);
    free(cuda->kept);
    rd_device_leave(guard);
    free(cuda->peers);
    free(cuda);
}

/* ---- memory of the communicator's device ---- */

rondo_result_t rd_cuda_mem_alloc(rd_cuda_t *cuda, void **buffer, size_t bytes)
{
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    cudaError_t error = cudaMalloc(buffer, bytes ? bytes : 1);

    rd_device_leave(guard);
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(cuda->team->ctx, error, "rondo_mem_alloc");
}

rondo_result_t rd_cuda_mem_free(rd_cuda_t *cuda, void *buffer)
{
    rd_device_guard_t guard = rd_device_enter(cuda->device);
    cudaError_t error = cudaFree(buffer);

    rd_device_leave(guard);
    return error == cudaSuccess ? RONDO_SUCCESS : rd_cuda_error(cuda->team->ctx, error, "rondo_mem_free");
}

/* A multiple of an eighth of a power of two, so that a later communicator finds what this one leaves. */
static size_t rounded(size_t bytes)
{
    size_t step = (size_t)64 << 10;

    while (step < bytes / 16)
        step *= 2;
    return bytes > SIZE_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

rondo_result_t rd_cuda_scratch_alloc(rd_cuda_t *cuda, void **buffer, size_t *bytes)
{
    const size_t whole = rounded(*bytes);
    rondo_result_t result = RONDO_SUCCESS;
    void *memory = rd_window_left_take(cuda->device, whole);

    if (!memory)
        result = rd_cuda_mem_alloc(cuda, &memory, whole);
    if (result == RONDO_SUCCESS) {
        *buffer = memory;
        *bytes = whole;
    }
    return result;
}

void rd_cuda_scratch_free(rd_cuda_t *cuda, void *buffer, size_t bytes)
{
    rd_window_leave(cuda, buffer, bytes, RD_LEFT_ENQUEUED);
}
