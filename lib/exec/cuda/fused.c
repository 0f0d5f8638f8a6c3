/* Groups: short operations that follow one another are launched together (kernels/fused.cuh).
 *
 * Each is chosen, cut and carried as if it were alone, so this rank decides for itself what it launches together, and
 * the ranks need not have the same groups. Collectives of a communicator take effect in the order of the calls, so a
 * call that reads what an earlier one of the launch writes, or writes what that one reads or writes, begins the next
 * launch. */
#include "exec/cuda/cuda_int.h"

void rd_fusion_begin(rd_fusion_t *f, rd_cuda_t *cuda)
{
    f->cuda = cuda;
    f->work.fused.count = f->work.fused.tiles = f->work.fused.passes = 0;
    f->ins = f->outs = (rd_buffer_span_t){UINTPTR_MAX, 0};
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
    for (uint32_t i = 0; i < f->work.fused.count; i++) {
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

static rondo_result_t run_alone(rd_fusion_t *f, const rd_call_t *call)
{
    rondo_result_t result = rd_fusion_end(f);

    return result == RONDO_SUCCESS ? rd_cuda_run(f->cuda, call) : result;
}

/* Keeps a short operation; those kept before are launched if it cannot go with them. */
static rondo_result_t keep(rd_fusion_t *f, const rd_call_t *call, const rd_klaunch_t *launch,
                           const rd_kreduce_t *reduce)
{
    rondo_result_t result = RONDO_SUCCESS;
    rd_kfused_t *k = &f->work.fused;
    size_t in_count, out_count, element = rondo_type_size(call->desc.type);

    rd_cuda_extents(f->cuda, call, &in_count, &out_count);
    rd_buffer_span_t in = span_of(call->in, in_count * element), out = span_of(call->out, out_count * element);
    if (k->count && (call->stream != f->first->stream || depends(f, in, out)))
        result = rd_fusion_end(f);
    if (result == RONDO_SUCCESS && !rd_kernel_fuse(k, launch, reduce)) {
        result = rd_fusion_end(f);
        (void)rd_kernel_fuse(k, launch, reduce); /* an empty launch has room for any */
    }
    if (result != RONDO_SUCCESS)
        return result;
    if (k->count == 1)
        f->first = call;
    f->in[k->count - 1] = in;
    f->out[k->count - 1] = out;
    widen(&f->ins, in);
    widen(&f->outs, out);
    return RONDO_SUCCESS;
}

rondo_result_t rd_fusion_add(rd_fusion_t *f, const rd_call_t *call)
{
    rd_kreduce_t reduce;
    rd_kchoice_t choice;

    if (!may_be_short(f->cuda, call))
        return run_alone(f, call);
    rondo_result_t result = rd_cuda_choose(f->cuda, call, &reduce, &choice);
    if (result != RONDO_SUCCESS) {
        (void)rd_fusion_end(f); /* the calls before it take effect */
        return result;
    }
    return choice.celled ? keep(f, call, &choice.launch, &reduce) : run_alone(f, call);
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

rondo_result_t rd_fusion_end(rd_fusion_t *f)
{
    const uint32_t count = f->work.fused.count, tiles = f->work.fused.tiles;
    rd_cuda_t *cuda = f->cuda;
    rondo_result_t result;

    if (count == 0)
        return RONDO_SUCCESS;
    rd_klaunch_t launch = launch_for(cuda, tiles);
    if (count > 1) {
        rd_log(cuda->team->ctx, RD_LOG_TRACE,
               "%u operations of a group in one launch: %u tiles, %u blocks of %u threads", count, tiles, launch.blocks,
               launch.threads);
        f->work.comm = cuda->k;
        cuda->order.number = f->first->number;
        result = rd_cuda_launch(cuda, &launch, &f->work, f->first->stream);
        cuda->order.number = 0;
    } else {
        result = rd_cuda_run(cuda, f->first);
    }
    rd_fusion_begin(f, cuda);
    return result;
}
