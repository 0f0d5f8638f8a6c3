/* Beginning and end of the part of a CUDA communicator that lies between nodes: see stage.h. */
#include "stage.h"

#include <stdlib.h>
#include <string.h>

#include "../boot_id.h"
#include "../comm.h"

#define SLOT ((size_t)2 << 20)
#define SLOTS 4u

static void layout(rd_stage_t *s, const rd_env_t *env, size_t *bytes)
{
    size_t n = (size_t)s->cuda->k.nranks, slot = env->cuda_stage ? env->cuda_stage : SLOT;

    s->k.slots = SLOTS;
    s->k.slot = (uint32_t)(slot / 4096 * 4096);
    s->k.message_slot = (uint32_t)((size_t)2 * s->k.slot / (2 * n) / 64 * 64);
    *bytes = (size_t)SLOTS * 2 * s->k.slot;
}

static rondo_result_t memory(rd_stage_t *s)
{
    size_t bytes;
    char *pinned = NULL;
    cudaError_t error;

    layout(s, &s->cuda->comm->env, &bytes);
    error = rd_stage_area_take(s->cuda->device, bytes, &s->area);
    if (error == cudaSuccess)
        error = cudaHostGetDevicePointer((void **)&pinned, s->area->pinned, 0);
    if (error != cudaSuccess)
        return rd_cuda_error(&s->cuda->comm->who, error, "memory to stage data between nodes");
    s->k.lanes = (rd_klane_t *)(void *)pinned;
    s->k.area = pinned + RD_STAGE_LANES_BYTES;
    s->k.state = s->area->state;
    s->slots = s->area->pinned + RD_STAGE_LANES_BYTES;
    s->nlanes = 1 + 2 * s->cuda->k.nranks;
    for (int l = 0; l < s->nlanes; l++)
        s->lanes[l].pinned = (rd_klane_t *)(void *)s->area->pinned + l;
    s->tasks = rd_stage_tasks_create();
    return s->tasks ? RONDO_SUCCESS
                    : rd_error(&s->cuda->comm->who, RONDO_ERR_NO_MEMORY, "no memory for a CUDA communicator");
}

/* A host communicator of those who pass the same `first`, which is one of them. */
static rondo_result_t carrier_make(rd_stage_t *s, int carrier, int first, int rank, int nranks)
{
    rondo_comm_t comm = s->cuda->comm;
    rondo_unique_id_t *ids = calloc((size_t)comm->nranks, sizeof *ids);

    if (!ids)
        return rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory for the ids of %d ranks", comm->nranks);
    if (comm->rank == first) /* on failure an id that carries the error */
        (void)rd_boot_id_create(&ids[first], &comm->env);
    rondo_result_t result = rd_boot_allgather(comm->boot, ids, sizeof *ids);
    s->carriers[carrier].rank = rank;
    s->carriers[carrier].nranks = nranks;
    if (result == RONDO_SUCCESS)
        result = rd_comm_make_carrier(&s->carriers[carrier].comm, comm, &ids[first], rank, nranks);
    else if (comm->rank == first)
        rd_boot_give_up(&ids[first], RONDO_ERR_ABORTED);
    free(ids);
    return result;
}

/* Ranks with one place on their nodes; 0: nodes have different numbers of ranks, or one each. `first`: of this rail. */
static int rail(const rd_node_t *node, int nranks, int *first)
{
    int place = 0;

    if (node->nlocal < 2 || node->nlocal * node->nnodes != nranks)
        return 0;
    for (int n = 0; n < node->nnodes; n++) {
        int here = 0;
        for (int r = 0; r < nranks; r++)
            here += node->node_of[r] == n;
        if (here != node->nlocal)
            return 0;
    }
    for (*first = 0; node->node_of[*first] != 0 || place++ < node->self; ++*first)
        continue;
    return 1;
}

rondo_result_t rd_stage_create(rd_cuda_t *cuda)
{
    rd_stage_t *s = cuda->stage = calloc(1, sizeof *s);

    if (!s)
        return rd_error(&cuda->comm->who, RONDO_ERR_NO_MEMORY, "no memory for a CUDA communicator");
    s->cuda = cuda;
    rondo_comm_t comm = cuda->comm;
    int first = 0, apart = 0;
    rondo_result_t result = memory(s);
    if (result == RONDO_SUCCESS)
        result = carrier_make(s, RD_CARRIER_ALL, 0, comm->rank, comm->nranks);
    if (result == RONDO_SUCCESS && !cuda->limits.apart && rail(&comm->node, comm->nranks, &first)) {
        result = rd_rail_create(cuda, &apart);
        if (result == RONDO_SUCCESS && apart)
            rd_rail_free(cuda, NULL, NULL);
        else if (result == RONDO_SUCCESS)
            result = carrier_make(s, RD_CARRIER_RAIL, first, comm->node.node_of[comm->rank], comm->node.nnodes);
    }
    if (result != RONDO_SUCCESS)
        return result;
    s->client.turn = rd_carry;
    s->client.arg = s;
    s->client.awake_us = comm->env.cuda_awake;
    int error = rd_proxy_add(&s->client);
    if (error)
        return rd_error(&cuda->comm->who, RONDO_ERR_SYSTEM, "no thread to serve the network: %s", strerror(error));
    s->served = 1;
    /* A late rank is the proxy's to name. Kernels wait for the proxy alone, and must not give up before it. */
    if (cuda->host->timeout_ms)
        cuda->host->timeout_ms = cuda->host->timeout_ms < INT32_MAX / 2 ? 2 * cuda->host->timeout_ms + 1000 : 0;
    if (cuda->comm->rank == 0)
        rd_log(&cuda->comm->who, RD_LOG_INFO,
               "CUDA between %d nodes: no direct path, data is staged through %zu MB of pinned memory a rank",
               cuda->comm->node.nnodes, s->area->bytes >> 20);
    return RONDO_SUCCESS;
}

void rd_stage_close(rd_cuda_t *cuda)
{
    rd_stage_t *s = cuda->stage;

    if (!s)
        return;
    if (s->served)
        rd_proxy_remove(&s->client);
    for (int i = RD_CARRIERS - 1; i >= 0; i--) {
        rd_carry_failure(s, i);
        if (s->carriers[i].comm)
            (void)rondo_comm_destroy(s->carriers[i].comm);
    }
    if (s->tasks)
        rd_stage_tasks_drop(s->tasks);
    if (s->area)
        rd_stage_area_give(s->area);
    free(s);
    cuda->stage = NULL;
}
