/* Communicators that are made by a caller who waits, and among them net communicators: those on host memory that
 * another one makes for itself, for data between nodes. See progress/net_comm.h. */
#include "progress/net_comm.h"

#include <stddef.h>
#include <stdio.h>

#include "core/footprint.h"
#include "core/lifetime.h"
#include "exec/cuda/cuda.h"
#include "plan/candidates.h"

rondo_result_t rd_comm_make(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *id, int rank,
                            const rondo_config_t *config, const rd_env_t *env, uint32_t gpu, rondo_comm_t parent)
{
    rondo_comm_t made;
    rondo_result_t result = rd_comm_allocate(&made, env);

    if (result == RONDO_ERR_NO_MEMORY)
        rd_boot_cancel(id, 1, rank, result);
    if (result != RONDO_SUCCESS)
        return result;
    made->gpu = gpu;
    result = rd_comm_build(made, nranks, id, rank, config, NULL, parent);
    if (result != RONDO_SUCCESS) {
        rd_comm_release(made);
        return result;
    }
    rd_comm_publish(made);
    *comm = made;
    return RONDO_SUCCESS;
}

static rondo_result_t make(const rd_team_t *of, const char *purpose, const rondo_unique_id_t *id, int rank, int nranks,
                           rd_queue_t **queue)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = (rondo_comm_t)(uintptr_t)rd_comm_of_team(of), made;
    char name[sizeof comm->ctx.name + sizeof "/check"];
    rd_env_t env;

    rd_forced_between(&comm->env, &env);
    snprintf(name, sizeof name, "%s/%.5s", comm->ctx.name, purpose);
    config.name = name;
    config.device = RONDO_DEVICE_HOST;
    config.timeout_ms = comm->team.timeout_ms;
    rondo_result_t result = rd_comm_make(&made, nranks, id, rank, &config, &env, rd_cuda_pci(of->device), comm);
    if (result == RONDO_SUCCESS)
        *queue = &made->queue;
    return result;
}

static void leave(rd_queue_t *queue)
{
    if (rondo_comm_finalize(rd_comm_of(queue)) == RONDO_SUCCESS)
        rd_transport_leave(queue->net);
}

static void end(rd_queue_t *queue)
{
    (void)rd_comm_end(rd_comm_of(queue));
}

static void count(const rd_queue_t *queue, rondo_memory_t *memory)
{
    const char *at = (const char *)queue - offsetof(struct rondo_comm, queue);

    rd_footprint_count((const struct rondo_comm *)(const void *)at, memory);
}

const rd_net_comm_ops_t rd_comm_net_ops = {make, leave, end, count};
