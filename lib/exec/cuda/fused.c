/* Groups: short operations, and broadcasts and reductions by chain, that follow one another are launched together
 * (kernels/fused.cuh).
 *
 * Each is chosen, cut and carried as if it were alone, so this rank decides for itself what it launches together, and
 * the ranks need not have the same groups. Collectives of a communicator take effect in the order of the calls, so a
 * call that reads what an earlier one of the launch writes, or writes what that one reads or writes, begins the next
 * launch. */
#include "exec/cuda/cuda_int.h"
#include "plan/force.h"

static void empty(rd_fusion_t *f)
{
    rd_kfused_t *k = &f->work.fused;

    k->count = k->tiles = k->passes = k->chains = k->fifos = k->blocks = 0;
    k->share = 1;
    f->ins = f->outs = (rd_buffer_span_t){UINTPTR_MAX, 0};
    f->count = f->depth = 0;
    f->pieces = 0;
    f->least = f->flow = 0;
}

void rd_fusion_begin(rd_fusion_t *f, rd_cuda_t *cuda, bool priced)
{
    f->cuda = cuda;
    f->priced = priced;
    f->us = 0;
    empty(f);
}

/* ---- the buffers of a launch ---- */

static rd_buffer_span_t span_of(const void *buffer, size_t bytes)
{
    return (rd_buffer_span_t){(uintptr_t)buffer, (uintptr_t)buffer + bytes};
}

static bool meet(rd_buffer_span_t a, rd_buffer_span_t b)
{
    return a.begin < b.end && b.begin < a.end;
}

static void widen(rd_buffer_span_t *all, rd_buffer_span_t one)
{
    if (one.begin == one.end)
        return;
    all->begin = one.begin < all->begin ? one.begin : all->begin;
    all->end = one.end > all->end ? one.end : all->end;
}

/* Has a call with these buffers to come after one of those that are kept? */
static bool depends(const rd_fusion_t *f, rd_buffer_span_t in, rd_buffer_span_t out)
{
    if (!meet(out, f->ins) && !meet(out, f->outs) && !meet(in, f->outs))
        return false;
    for (uint32_t i = 0; i < f->count; i++) {
        if (meet(out, f->in[i]) || meet(out, f->out[i]) || meet(in, f->out[i]))
            return true;
    }
    return false;
}

/* ---- calls ---- */

/* Returns true if a kernel of this node's ranks may serve the call, be it a short operation or not. */
static bool may_be_short(const rd_cuda_t *cuda, const rd_call_t *call)
{
    return !cuda->path && cuda->k.nranks > 1 && call->desc.coll != RD_BARRIER && !call->tables && !call->bounce &&
           call->desc.count > 0;
}

/* Returns true if the call says something of its launch: an event, or how many multiprocessors it may take. */
static bool has_launch_of_its_own(const rd_call_t *call)
{
    return call->event || rd_force_blocks(call->desc.forced) > 0;
}

/* Returns true if the operator's factor is read when the operation runs: one kept before may be what makes it, and one
 * kept after it may write over it. */
static bool has_factor_on_device(const rd_call_t *call)
{
    return call->scalar && call->scalar->device;
}

static void add_price(rd_fusion_t *f, double us)
{
    f->us = us < 0 || f->us < 0 ? -1 : f->us + us;
}

static rondo_result_t run_alone(rd_fusion_t *f, const rd_call_t *call)
{
    rondo_result_t result = rd_fusion_end(f);

    if (f->priced)
        add_price(f, rd_cuda_price(f->cuda, call));
    else if (result == RONDO_SUCCESS)
        result = rd_cuda_run(f->cuda, call);
    return result;
}

/* The most warps of a block, in groups of as many as there are ranks. */
static uint32_t most_warps(const rd_cuda_t *cuda)
{
    const uint32_t n = cuda->limits.nranks;

    return rd_kernel_threads(RD_KERNEL_FUSED, RD_PROTO_LL) / 32 / n * n;
}

/* Can an operation by chain go with others? A fifo has a warp at least, and cells a block. Where communicators share
 * the device, launches of several would have to leave each other room, and fifos cannot do with fewer warps. */
static bool chained(const rd_cuda_t *cuda, const rd_klaunch_t *launch, const rd_kreduce_t *reduce)
{
    return rd_kernel_chained(launch, reduce) && rd_occupancy_parts(cuda) == 1 &&
           reduce->tiles <= (cuda->limits.blocks - 1) * most_warps(cuda);
}

/* Launched together, operations wait for their first bytes at the same time. */
static void count_in(rd_fusion_t *f, const rd_call_t *call, const rd_kchoice_t *choice)
{
    const bool by_chain = !choice->celled;
    const double least = f->priced ? rd_cuda_price_least(f->cuda, call, &choice->launch) : 0;

    f->least = least > f->least ? least : f->least;
    f->flow += choice->us > least ? choice->us - least : 0;
    f->depth += by_chain ? choice->passes : 0;
    f->pieces += by_chain ? (uint64_t)choice->passes * choice->tiles : 0;
}

/* Keeps an operation; those kept before are launched if it cannot go with them. */
static rondo_result_t keep(rd_fusion_t *f, const rd_call_t *call, const rd_kchoice_t *choice,
                           const rd_kreduce_t *reduce)
{
    rondo_result_t result = RONDO_SUCCESS;
    size_t in_count, out_count, element = rondo_type_size(call->desc.type);

    rd_cuda_extents(f->cuda, call, &in_count, &out_count);
    rd_buffer_span_t in = span_of(call->in, in_count * element), out = span_of(call->out, out_count * element);
    if (f->count && (call->stream != f->first->stream || depends(f, in, out)))
        result = rd_fusion_end(f);
    if (result == RONDO_SUCCESS && !rd_kernel_fuse(&f->work.fused, &choice->launch, reduce)) {
        result = rd_fusion_end(f);
        (void)rd_kernel_fuse(&f->work.fused, &choice->launch, reduce); /* an empty launch has room for any */
    }
    if (result != RONDO_SUCCESS)
        return result;
    if (f->count == 0)
        f->first = call;
    f->in[f->count] = in;
    f->out[f->count++] = out;
    count_in(f, call, choice);
    widen(&f->ins, in);
    widen(&f->outs, out);
    return RONDO_SUCCESS;
}

rondo_result_t rd_fusion_add(rd_fusion_t *f, const rd_call_t *call)
{
    rd_kreduce_t reduce;
    rd_kchoice_t choice;

    if (!may_be_short(f->cuda, call) || has_launch_of_its_own(call) || has_factor_on_device(call))
        return run_alone(f, call);
    rondo_result_t result = rd_cuda_choose(f->cuda, call, &reduce, &choice);
    if (result != RONDO_SUCCESS) {
        (void)rd_fusion_end(f); /* the calls before it take effect */
        add_price(f, -1);
        return result;
    }
    return choice.celled || chained(f->cuda, &choice.launch, &reduce) ? keep(f, call, &choice, &reduce)
                                                                      : run_alone(f, call);
}

/* ---- launching ---- */

/* Spreads the tiles over all blocks that there may be. */
static rd_klaunch_t launch_for(const rd_cuda_t *cuda, uint32_t tiles)
{
    const uint32_t group = 32 * cuda->limits.nranks, most = rd_kernel_threads(RD_KERNEL_FUSED, RD_PROTO_LL) / group;
    uint32_t groups = (tiles + cuda->limits.blocks - 1) / cuda->limits.blocks; /* of a block */

    groups = groups < most ? groups : most;
    uint32_t blocks = (tiles + groups - 1) / groups;
    return (rd_klaunch_t){.kernel = RD_KERNEL_FUSED,
                          .proto = RD_PROTO_LL128,
                          .blocks = blocks < cuda->limits.blocks ? blocks : cuda->limits.blocks,
                          .threads = groups * group};
}

static uint32_t chain_blocks(const rd_kfused_t *k, uint32_t warps)
{
    return warps < k->share ? UINT32_MAX : (k->fifos + warps / k->share - 1) / (warps / k->share);
}

static uint32_t cell_blocks(const rd_kfused_t *k, uint32_t groups)
{
    return (k->tiles + groups - 1) / groups;
}

/* Divides the blocks between chains and cells by the lines that they carry. A fifo has as many warps as find room and
 * something to do. */
static rd_klaunch_t launch_with_chains(rd_fusion_t *f)
{
    rd_kfused_t *k = &f->work.fused;
    const uint32_t all = f->cuda->limits.blocks, n = f->cuda->limits.nranks, most = most_warps(f->cuda);
    const uint32_t least = (k->fifos + most - 1) / most;
    uint32_t part = (uint32_t)(all * f->pieces / (f->pieces + k->tiles)), warps = (7 + n) / n * n;

    part = part < least ? least : k->tiles && part == all ? all - 1 : part;
    k->share = RD_KSHARE;
    while (k->share > 1 && (k->share / 2 >= f->depth || chain_blocks(k, most) > part))
        k->share /= 2;
    warps = warps < most ? warps : most;
    while (warps + n <= most && (chain_blocks(k, warps) > part || cell_blocks(k, warps / n) > all - part))
        warps += n;
    k->blocks = chain_blocks(k, warps);
    const uint32_t cells = cell_blocks(k, warps / n), left = all - k->blocks;
    return (rd_klaunch_t){.kernel = RD_KERNEL_FUSED,
                          .proto = RD_PROTO_LL128,
                          .blocks = k->blocks + (cells < left ? cells : left),
                          .threads = 32 * warps,
                          .chains = k->blocks};
}

static rondo_result_t launch(rd_fusion_t *f)
{
    rd_cuda_t *cuda = f->cuda;
    const rd_kfused_t *k = &f->work.fused;
    const rd_klaunch_t l = k->chains ? launch_with_chains(f) : launch_for(cuda, k->tiles);

    rd_log(cuda->team->ctx, RD_LOG_TRACE,
           "%u operations of a group in one launch: %u tiles, %u blocks of %u threads; %u by chain, with %u of the "
           "blocks and %u warps for each of %u fifos",
           f->count, k->tiles, l.blocks, l.threads, k->chains, k->blocks, k->share, k->fifos);
    f->work.comm = cuda->k;
    cuda->order.number = f->first->number;
    rondo_result_t result = rd_cuda_launch(cuda, &l, &f->work, f->first->stream);
    cuda->order.number = 0;
    return result;
}

/* The slots of a fifo come round in the time that a chain takes with no bytes: a hop there and one back. Derived from
 * the code, not measured. */
static double price(const rd_fusion_t *f)
{
    const double turns = f->depth ? (f->depth - 1) / RD_KSLOTS * f->least : 0;

    return f->least + (turns > f->flow ? turns : f->flow);
}

rondo_result_t rd_fusion_end(rd_fusion_t *f)
{
    rondo_result_t result = RONDO_SUCCESS;

    if (f->count && f->priced)
        add_price(f, f->count > 1 ? price(f) : f->least + f->flow);
    else if (f->count)
        result = f->count > 1 ? launch(f) : rd_cuda_run(f->cuda, f->first);
    empty(f);
    return result;
}
