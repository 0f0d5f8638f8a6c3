/* Operations between nodes in phases: what sched/phases.h lists for this rank is enqueued in the call's stream, one
 * phase after the other. A phase inside the node goes by the kernels of its ranks (node_comm.c); one on the rail, or of
 * all ranks, by the proxies, on the net communicator of that scope. Operations that phases do not serve, or that are
 * too short for them, are one launch on the net communicator of all ranks. */
#include "exec/cuda/proxy/proxy.h"
#include "plan/force.h"
#include "sched/phases.h"

_Static_assert(RD_KRANKS * 16 <= RD_HIER_REST, "what is left over has less than an element, 16 bytes at most, of each");

/* A stream takes some thousand kernels before one has to end, and a thread that calls for several ranks must get to the
 * call for the last one before that. */
#define LAUNCHES_MOST 256

/* Returns true for an average of integers, which is divided once, when everything is summed. */
static bool is_divided(const rd_coll_desc_t *desc)
{
    return rd_coll_reduces(desc->coll) && desc->op == RONDO_AVG && desc->type < RONDO_FLOAT16;
}

static bool is_rooted(rd_coll_t coll)
{
    return coll == RD_REDUCE || coll == RD_BROADCAST || coll == RD_GATHER || coll == RD_SCATTER;
}

static rd_hier_t facts_of(const rd_cuda_t *cuda, const rd_call_t *call)
{
    const rd_node_t *node = cuda->team->node;
    const rd_coll_desc_t *desc = &call->desc;

    return (rd_hier_t){
        .node_of = node->node_of,
        .nranks = cuda->k.nranks,
        .nnodes = node->nnodes,
        .local = node->local,
        .locals = node->nlocal,
        .rank = cuda->k.rank,
        .node = node->node_of[cuda->k.rank],
        .local_rank = node->self,
        .rails = cuda->path->rails,
        .alike = node->fewest == node->most,
        .ordered = cuda->path->ordered,
        .coll = desc->coll,
        .root = desc->root,
        .root_local_rank = is_rooted(desc->coll) ? rd_local_rank(node->node_of, desc->root) : 0,
        .count = desc->count,
        .tables = call->tables,
        .bounce = call->bounce != 0,
        .element = rondo_type_size(desc->type),
        .scratch = rd_window_scratch_bytes(cuda->node_comm),
        .least = cuda->path->k.least,
        .launches = LAUNCHES_MOST,
    };
}

/* Returns the address of a spot, or NULL if the rank has no such buffer: then nothing of it is touched. */
static char *address(const rd_cuda_t *cuda, const rd_call_t *call, rd_spot_t spot)
{
    char *base = spot.where == RD_IN    ? (char *)(uintptr_t)call->in
                 : spot.where == RD_OUT ? (char *)call->out
                                        : rd_window_scratch(cuda->node_comm);

    return base ? base + spot.at * rondo_type_size(call->desc.type) : NULL;
}

/* Contributions have been scaled inside the nodes already: so an average of types with fractions, or a sum of scaled
 * contributions, is a plain sum. */
static rondo_result_t run_rail(rd_cuda_t *cuda, rd_call_t *part)
{
    if (part->desc.op == RONDO_AVG || part->desc.op >= RONDO_NUM_OPS)
        part->desc.op = RONDO_SUM;
    return rd_proxy_path_run(cuda->path, RD_NET_COMM_RAIL, part);
}

static rondo_result_t run_phase(rd_cuda_t *cuda, const rd_call_t *call, const rd_phase_t *phase)
{
    size_t element = rondo_type_size(call->desc.type);
    rd_call_t part = *call;

    part.desc.coll = phase->coll;
    part.desc.root = phase->root;
    part.desc.count = phase->count;
    part.tables = phase->tabled ? &phase->tables : NULL;
    part.in = address(cuda, call, phase->from);
    part.out = address(cuda, call, phase->to);
    part.bounce = 0;
    switch (phase->scope) {
    case RD_SCOPE_NODE:
        return phase->gap ? rd_cuda_reduce_scatter(cuda->node_comm, &part, phase->gap * element)
                          : rd_cuda_run(cuda->node_comm, &part);
    case RD_SCOPE_RAIL:
        return run_rail(cuda, &part);
    case RD_SCOPE_ALL:
        return rd_proxy_path_run(cuda->path, RD_NET_COMM_ALL, &part);
    default:
        return rd_cuda_copy_over(cuda, part.out, part.in, phase->count * element, call->stream);
    }
}

/* Returns true if the operation has phases; otherwise all ranks do it together, through the host. Partial results lie
 * in the user's memory between two phases, and it has no room for wider ones. */
static bool has_phases(const rd_call_t *call, const rd_hier_t *facts)
{
    return !is_divided(&call->desc) && !rd_cuda_is_wide(&call->desc) && rd_hier_serves(facts);
}

rondo_result_t rd_hier_run(rd_cuda_t *cuda, const rd_call_t *call)
{
    const rd_hier_t facts = facts_of(cuda, call);
    rondo_result_t result = RONDO_SUCCESS;
    rd_phases_t phases;

    if (!has_phases(call, &facts))
        return rd_proxy_path_run(cuda->path, RD_NET_COMM_ALL, call);
    if (rd_hier_phases(&facts, &phases) != 0)
        result = rd_error(cuda->team->ctx, RONDO_ERR_NO_MEMORY, "no memory for an operation of %d ranks", facts.nranks);
    for (size_t i = 0; i < phases.count && result == RONDO_SUCCESS; i++)
        result = run_phase(cuda, call, &phases.list[i]);
    rd_phases_free(&phases);
    return result;
}

static bool follows(rd_cuda_t *cuda, const rd_call_t *call, const rd_phase_t *phase)
{
    rd_env_t own;
    const rd_env_t *env = rd_force_env(cuda->team->env, call->desc.forced, &own);
    const rd_forced_t forced = rd_forced(env, phase->coll);
    rd_call_t part = *call;

    part.desc.coll = phase->coll;
    part.desc.count = phase->count;
    return phase->scope == RD_SCOPE_NODE && cuda->node_comm->k.nranks > 1 && phase->count && !phase->tabled &&
           (forced.algo || forced.protos) && rd_cuda_follows(cuda->node_comm, &part);
}

bool rd_hier_follows(rd_cuda_t *cuda, const rd_call_t *call)
{
    const rd_node_t *node = cuda->team->node;
    bool found = false;
    rd_phases_t phases;

    /* A rank that is alone on its node cannot tell what others' kernels do, and all must judge alike. */
    if (!cuda->node_comm || node->fewest == 1)
        return false;
    const rd_hier_t facts = facts_of(cuda, call);
    if (!has_phases(call, &facts) || rd_hier_phases(&facts, &phases) != 0)
        return false;
    for (size_t i = 0; i < phases.count && !found; i++)
        found = follows(cuda, call, &phases.list[i]);
    rd_phases_free(&phases);
    return found;
}
