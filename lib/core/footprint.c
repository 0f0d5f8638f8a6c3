/* How much of a rank's memory a communicator takes, known before it is made and counted while it lives.
 *
 * What is foreseen comes from the functions that lay out the memory when a communicator is made, so the two cannot
 * differ as long as the shape is right. What is counted comes from what the modules have got. */
#include "core/footprint.h"

#include <stddef.h>
#include <string.h>

#include "core/lifetime.h"
#include "exec/cuda/cuda.h"
#include "rma/rma.h"
#include "progress/lengths.h"
#include "progress/signature.h"
#include "topo/topo.h"
#include "transport/switch.h"

#define SHORTEST_MEMORY offsetof(rondo_memory_t, pinned)
#define SHORTEST_SHAPE offsetof(rondo_shape_t, most)

void rd_footprint_layout(rd_layout_t *layout, int most, int nnodes, bool cuda, const rd_env_t *given)
{
    rd_env_t env = *given;

    if (cuda) {
        env.slots = 1;
        env.slot_bytes = 4096;
    }
    rd_layout_init(layout, most, nnodes, &env);
    if (cuda && layout->board) {
        layout->segment_bytes = layout->board;
        layout->board = 0;
    }
    if (cuda)
        layout->segment_bytes += rd_lengths_ring_bytes();
    if (cuda && env.check)
        layout->segment_bytes += rd_signature_ring_bytes();
}

static void foresee_host(const rd_env_t *env, const rondo_shape_t *shape, rondo_memory_t *memory)
{
    rd_footprint_foresee(env, shape, false, memory);
}

void rd_footprint_foresee(const rd_env_t *env, const rondo_shape_t *shape, bool cuda, rondo_memory_t *memory)
{
    rd_layout_t layout;

    rd_footprint_layout(&layout, shape->most, shape->nnodes, cuda, env);
    memory->shared += shape->local > 1 ? layout.segment_bytes : 0;
    if (cuda)
        rd_cuda_foresee(env, shape, foresee_host, memory);
    else
        memory->network += rd_layout_mirrors(&layout, shape->nranks - shape->local);
}

void rd_footprint_count(const struct rondo_comm *comm, rondo_memory_t *memory)
{
    memory->shared += comm->node.base ? comm->node.segment_bytes : 0;
    memory->network += comm->conns.mirrors ? comm->conns.mirror_bytes : 0;
    memory->network +=
        comm->conns.collnet && comm->conns.collnet->send.slots ? rd_collnet_bytes(comm->conns.layout.slot_bytes) : 0;
    if (comm->cuda)
        rd_cuda_count(comm->cuda, memory);
    if (comm->rma)
        memory->shared += comm->rma->memory.segment_bytes;
    if (comm->rma_net)
        rd_comm_net_ops.count(comm->rma_net, memory);
}

/* Returns the bytes for a switch, on a rank that is the head of a rail where a CollNet plugin serves. */
static size_t switch_foreseen(const rd_env_t *env, const rondo_shape_t *shape)
{
    rd_layout_t layout;

    rd_footprint_layout(&layout, shape->most, shape->nnodes, false, env);
    return env->collnet && shape->nnodes > 1 ? rd_collnet_bytes(layout.slot_bytes) : 0;
}

static rondo_result_t wrong(const char *field, int value, int least, int most)
{
    return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_memory: shape->%s is %d: it must be %d to %d", field,
                    value, least, most);
}

rondo_result_t rd_footprint_shape(rondo_shape_t *full, const rondo_shape_t *given)
{
    rondo_shape_t s = RONDO_SHAPE_INIT;
    rd_topo_t topo;

    if (!given || given->size < SHORTEST_SHAPE)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "rondo_comm_memory: shape is NULL, or not initialised with RONDO_SHAPE_INIT");
    memcpy(&s, given, given->size < sizeof s ? given->size : sizeof s);
    s.size = sizeof s;
    if (s.nranks < 1)
        return wrong("nranks", s.nranks, 1, INT_MAX);
    if (s.nnodes < 1 || s.nnodes > s.nranks)
        return wrong("nnodes", s.nnodes, 1, s.nranks);
    int even = s.nranks / s.nnodes + (s.nranks % s.nnodes != 0), last = s.nranks - s.nnodes + 1;
    if (s.most && (s.most < even || s.most > last))
        return wrong("most", s.most, even, last);
    s.most = s.most ? s.most : even;
    if (s.local < 0 || s.local > s.most)
        return wrong("local", s.local, 1, s.most);
    s.local = s.local ? s.local : s.most;
    if (s.cores < 0)
        return wrong("cores", s.cores, 0, INT_MAX);
    if (s.p2p < -1 || s.p2p > 1)
        return wrong("p2p", s.p2p, -1, 1);
    if (!s.cores) {
        rd_topo_basic(&topo);
        s.cores = topo.usable;
    }
    *full = s;
    return RONDO_SUCCESS;
}

/* An older caller's struct is shorter. */
static void give(rondo_memory_t *to, rondo_memory_t *full)
{
    full->size = to->size;
    memcpy(to, full, to->size < sizeof *full ? to->size : sizeof *full);
}

static rondo_result_t fits(rondo_comm_t comm, const char *call, const rondo_memory_t *memory)
{
    if (memory && memory->size >= SHORTEST_MEMORY)
        return RONDO_SUCCESS;
    return rd_error(comm ? &comm->ctx : NULL, RONDO_ERR_INVALID_ARGUMENT,
                    "%s: memory is NULL, or its size is not sizeof(rondo_memory_t)", call);
}

rondo_result_t rondo_comm_memory(const rondo_config_t *config, const rondo_shape_t *shape, rondo_memory_t *memory)
{
    rondo_memory_t all = {0};
    rondo_config_t full;
    rondo_shape_t its;
    rondo_result_t result;
    rd_env_t env;
    int device;

    if ((result = fits(NULL, "rondo_comm_memory", memory)) || (result = rd_env_read(&env)) ||
        (result = rd_comm_config(&full, config)) || (result = rd_cuda_device(full.device, &device)) ||
        (result = rd_footprint_shape(&its, shape)))
        return result;
    rd_config_over(&env, &full);
    rd_footprint_foresee(&env, &its, device >= 0, &all);
    all.network += device < 0 ? switch_foreseen(&env, &its) : 0;
    give(memory, &all);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_comm_memory_now(rondo_comm_t comm, rondo_memory_t *memory)
{
    const char *call = "rondo_comm_memory_now";
    rondo_result_t result = rd_comm_valid_suspended(comm, call);
    rondo_memory_t all = {0};

    if (result != RONDO_SUCCESS || (result = fits(comm, call, memory)))
        return result;
    if (rd_comm_query_enter(comm)) {
        rd_footprint_count(comm, &all);
        rd_comm_query_leave(comm);
    }
    give(memory, &all);
    return RONDO_SUCCESS;
}
