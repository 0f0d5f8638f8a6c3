/* One collective on a stream: the call is bound to the kernel that was chosen for it, and launched. */
#include <string.h>

#include "base/fpenv.h"
#include "base/types.h"
#include "exec/host/reduce.h"
#include "exec/cuda/cuda_int.h"
#include "plan/force.h"
#include "exec/cuda/proxy/proxy.h"

/* ---- scalars ---- */

/* Returns the number in one element of a floating type. */
static double number(rondo_type_t type, const unsigned char *element)
{
    double wide;

    if (type != RONDO_FLOAT64)
        return rd_scalar_widen(type, element);
    memcpy(&wide, element, sizeof wide);
    return wide;
}

static void set_real(rd_kreduce_t *r, rondo_type_t type, double value)
{
    float single = (float)value;

    r->scaled = RD_KSCALE_REAL;
    if (type == RONDO_FLOAT64 || type == RONDO_COMPLEX128)
        memcpy(r->scale, &value, sizeof value);
    else
        memcpy(r->scale, &single, sizeof single);
}

static bool is_narrow(rondo_type_t type)
{
    return rd_type_floating(type) && rondo_type_size(type) < sizeof(float);
}

/* AVG of types that have fractions is a sum of scaled contributions, as PREMULSUM is. */
static void set_op(const rd_cuda_t *cuda, const rd_call_t *call, rd_kreduce_t *r)
{
    const rd_op_scalar_t *scalar = call->scalar;
    const rd_coll_desc_t *desc = &call->desc;

    r->op = (uint32_t)desc->op;
    r->scaled = RD_KSCALE_NONE;
    r->device_scale = NULL;
    r->scale[0] = r->scale[1] = 0;
    if (desc->op == RONDO_AVG &&
        (rd_type_floating(desc->type) || desc->type == RONDO_COMPLEX64 || desc->type == RONDO_COMPLEX128)) {
        r->op = RONDO_SUM;
        set_real(r, desc->type, 1.0 / cuda->team->nranks);
    } else if (desc->op >= RONDO_NUM_OPS && scalar) {
        r->op = RONDO_SUM;
        r->device_scale = scalar->device;
        r->scaled = rd_type_floating(desc->type) ? RD_KSCALE_REAL : RD_KSCALE_ELEMENT;
        if (scalar->device)
            return;
        if (rd_type_floating(desc->type))
            set_real(r, desc->type, number(desc->type, scalar->here));
        else
            memcpy(r->scale, scalar->here, sizeof r->scale);
    }
}

void rd_cuda_op(const rd_cuda_t *cuda, const rd_call_t *call, rd_kreduce_t *r)
{
    rondo_type_t type = call->desc.type;

    set_op(cuda, call, r);
    r->narrow = r->scaled != RD_KSCALE_NONE && is_narrow(type) ? (uint32_t)type : 0;
    r->type = r->narrow ? RONDO_FLOAT32 : (uint32_t)type;
}

bool rd_cuda_is_wide(const rd_coll_desc_t *desc)
{
    return rd_coll_reduces(desc->coll) && is_narrow(desc->type) && (desc->op == RONDO_AVG || desc->op >= RONDO_NUM_OPS);
}

/* ---- choosing ---- */

static uint32_t cache_slot(const rd_wanted_t *w)
{
    uint64_t h = (w->count * 31 + w->coll) * 31 + w->type * 16 + w->op + ((uint64_t)w->forced << 32);

    return (uint32_t)(h * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (RD_KCHOICES - 1);
}

static void say(const rd_cuda_t *cuda, const rd_wanted_t *wanted, const rd_kchoice_t *choice, rd_log_level_t level)
{
    if (rd_log_enabled(level))
        rd_log(cuda->team->ctx, level,
               "%s %s, %llu elements: %s by %s, %u passes of %u tiles, %u blocks of %u threads, %.1f us",
               rd_coll_name((rd_coll_t)wanted->coll), rd_type_name((rondo_type_t)wanted->type),
               (unsigned long long)wanted->count, choice->launch.algo->name, rd_proto_name(choice->launch.proto),
               choice->passes, choice->tiles, choice->launch.blocks, choice->launch.threads, choice->us);
}

int rd_cuda_policy(const rd_cuda_t *cuda, const rd_call_t *call)
{
    const int own = call ? rd_force_cta_policy(call->desc.forced) : -1;

    return own >= 0 ? own : rd_cta_policy(cuda->team->env);
}

void rd_cuda_say_kernels(rd_cuda_t *cuda, const rd_call_t *call)
{
    const bool tabled = call && call->tables;
    const uint32_t bit = 1u << (call ? (int)call->desc.coll + 16 * tabled : 31);

    if ((cuda->said_kernels & bit) || rd_cuda_policy(cuda, call) != RONDO_CTA_POLICY_ZERO)
        return;
    cuda->said_kernels |= bit;
    rd_log(cuda->team->ctx, RD_LOG_INFO,
           "%s%s takes multiprocessors, though its policy (RONDO_CTA_POLICY) is zero: copy engines cannot do it%s",
           call ? rd_coll_name(call->desc.coll) : "a send or receive", tabled ? " with counts by rank" : "",
           cuda->path ? " between nodes" : "");
}

/* What a call with these budgets may take (rondo_resources_next). */
static rd_limits_t limits_of(const rd_cuda_t *cuda, unsigned forced)
{
    const int most = rd_force_blocks(forced);
    rd_limits_t limits = cuda->limits;

    if (most > 0 && (uint32_t)most < limits.blocks)
        limits.blocks = (uint32_t)most;
    return limits;
}

static rondo_result_t choose(rd_cuda_t *cuda, const rd_wanted_t *wanted, const rd_env_t *env, rd_kchoice_t *choice)
{
    uint32_t at = cache_slot(wanted);
    rd_log_ctx_t *ctx = cuda->team->ctx;
    const char *why;
    fenv_t program;

    if (env && cuda->cache[at].choice.launch.algo && memcmp(&cuda->cache[at].wanted, wanted, sizeof *wanted) == 0) {
        *choice = cuda->cache[at].choice;
        say(cuda, wanted, choice, RD_LOG_TRACE);
        return RONDO_SUCCESS;
    }
    rondo_result_t named = wanted->forced && env ? rd_kchoose_names(env, ctx) : RONDO_SUCCESS;
    if (named != RONDO_SUCCESS)
        return named;
    const rd_limits_t limits = limits_of(cuda, wanted->forced);
    rd_fpenv_begin(&program);
    why = rd_kchoose(wanted, &limits, env, choice);
    if (why && cuda->parent) { /* a part: others of the operation may be served */
        why = rd_kchoose(wanted, &limits, NULL, choice);
    } else if (why && rd_force_prefers(wanted->forced)) {
        rd_env_t otherwise = *cuda->team->env;
        if (rd_force_cta_policy(wanted->forced) >= 0)
            rd_cta_policy_set(&otherwise, rd_force_cta_policy(wanted->forced));
        why = rd_kchoose(wanted, &limits, &otherwise, choice);
    }
    rd_fpenv_end(&program);
    if (why)
        return rd_error(ctx, RONDO_ERR_UNSUPPORTED, "%s of %s, %llu elements, RONDO_ALGO '%s', RONDO_PROTO '%s': %s",
                        rd_coll_name((rd_coll_t)wanted->coll), rd_type_name((rondo_type_t)wanted->type),
                        (unsigned long long)wanted->count, env ? env->algo : "", env ? env->proto : "", why);
    say(cuda, wanted, choice, RD_LOG_INFO);
    if (env) {
        cuda->cache[at].wanted = *wanted;
        cuda->cache[at].choice = *choice;
    }
    return RONDO_SUCCESS;
}

/* ---- launching ---- */

/* Returns true if the kernel only writes what the operation's own kernel reads. */
static bool helps(const rd_klaunch_t *launch)
{
    return rd_launch_kernel(launch) == RD_KERNEL_WRITE;
}

rondo_result_t rd_cuda_launch(rd_cuda_t *cuda, const rd_klaunch_t *launch, rd_kwork_t *work, cudaStream_t stream)
{
    rd_device_before_t before = rd_device_switch(cuda->device);
    rondo_result_t result = rd_order_before(cuda, stream);

    if (result == RONDO_SUCCESS) {
        const rd_klaunch_t part = rd_occupancy_part(cuda, launch);
        const bool visits = rd_ring_order_follows(cuda, launch);
        if (visits)
            rd_ring_order_apply(cuda, work);
        const bool lets_in = rd_kernel_lets_in(&part) && rd_occupancy_alone(cuda);
        rd_cuda_t *outer = rd_cuda_outer(cuda);
        work->comm.lets_in = lets_in;
        work->comm.call = rd_ring_order_call(cuda, rd_order_call(cuda, rd_launch_has_epoch(launch)), visits);
        cudaError_t error = (cudaError_t)rd_kernel_launch(
            &part, work, stream, helps(launch) ? NULL : rd_order_event(cuda), lets_in || !outer->lets_in);
        outer->lets_in = lets_in;
        result = error == cudaSuccess ? rd_order_after(cuda, stream)
                                      : rd_cuda_error(cuda->team->ctx, error, "launching a kernel");
    }
    rd_device_back(before, cuda->device);
    return result;
}

rondo_result_t rd_cuda_copy(rd_cuda_t *cuda, void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    rd_device_before_t before;
    rondo_result_t result;

    if (to == from || bytes == 0)
        return RONDO_SUCCESS;
    before = rd_device_switch(cuda->device);
    result = rd_order_before(cuda, stream);
    if (result == RONDO_SUCCESS)
        result = rd_order_launched(cuda, stream);
    if (result == RONDO_SUCCESS) {
        cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
        result = error == cudaSuccess ? rd_order_after(cuda, stream)
                                      : rd_cuda_error(cuda->team->ctx, error, "cudaMemcpyAsync");
    }
    rd_device_back(before, cuda->device);
    return result;
}

rondo_result_t rd_cuda_write(rd_cuda_t *cuda, size_t offset, const void *data, size_t bytes, cudaStream_t stream)
{
    rd_klaunch_t launch = {.kernel = RD_KERNEL_WRITE, .blocks = 1, .threads = 128};
    rondo_result_t result = RONDO_SUCCESS;
    rd_kwork_t work;

    work.comm = cuda->k;
    for (size_t at = 0; at < bytes && result == RONDO_SUCCESS; at += RD_KWRITTEN) {
        work.write.offset = (uint32_t)(offset + at);
        work.write.bytes = (uint32_t)(bytes - at < RD_KWRITTEN ? bytes - at : RD_KWRITTEN);
        memcpy(work.write.data, (const char *)data + at, work.write.bytes);
        result = rd_cuda_launch(cuda, &launch, &work, stream);
    }
    return result;
}

/* Returns true if one rank's contribution is scaled. A rank that is alone on its node scales for an average, too,
 * because that covers the ranks of other nodes as well. */
static bool scales(const rd_cuda_t *cuda, const rd_coll_desc_t *desc)
{
    return rd_coll_reduces(desc->coll) && (desc->op >= RONDO_NUM_OPS || (desc->op == RONDO_AVG && cuda->parent));
}

void rd_cuda_spread(const rd_cuda_t *cuda, rd_klaunch_t *launch, size_t bytes)
{
    size_t blocks = (bytes + 16383) / 16384;

    launch->threads = rd_kernel_threads(launch->kernel, RD_PROTO_LL);
    launch->blocks = blocks < cuda->limits.blocks ? (uint32_t)blocks : cuda->limits.blocks;
}

/* A single rank: copies the input, which may have to be scaled. */
static rondo_result_t run_single(rd_cuda_t *cuda, const rd_call_t *call)
{
    rd_klaunch_t launch = {
        .kernel = RD_KERNEL_SINGLE, .coll = RD_ALLREDUCE, .type = (uint32_t)call->desc.type, .op = RONDO_SUM};
    size_t element = rondo_type_size(call->desc.type), count = call->desc.count;
    rd_kwork_t work;

    if (call->tables && call->desc.coll == RD_ALLTOALL) { /* alltoallv, gatherv, scatterv */
        const rd_tables_t *t = call->tables;
        return rd_cuda_copy(cuda, (char *)call->out + (t->out_displs ? t->out_displs[0] * element : 0),
                            (const char *)call->in + (t->in_displs ? t->in_displs[0] * element : 0),
                            t->in_counts[0] * element, call->stream);
    }
    if (call->tables && call->tables->out_displs)
        return rd_cuda_copy(cuda, (char *)call->out + call->tables->out_displs[0] * element, call->in, count * element,
                            call->stream);
    if (!scales(cuda, &call->desc))
        return rd_cuda_copy(cuda, call->out, call->in, count * element, call->stream);
    if (count == 0)
        return RONDO_SUCCESS; /* a grid for nothing would be empty, which CUDA refuses */
    work.comm = cuda->k;
    work.reduce = (rd_kreduce_t){.in = call->in,
                                 .out = call->out,
                                 .count = count,
                                 .coll = RD_ALLREDUCE,
                                 .type = (uint32_t)call->desc.type,
                                 .passes = 1,
                                 .tiles = 1};
    set_op(cuda, call, &work.reduce); /* one contribution, scaled, is the result */
    rd_cuda_spread(cuda, &launch, count * element);
    const uint32_t most = limits_of(cuda, call->desc.forced).blocks;
    launch.blocks = launch.blocks < most ? launch.blocks : most;
    return rd_cuda_launch(cuda, &launch, &work, call->stream);
}

static void set_portions(const rd_kchoice_t *choice, rd_kreduce_t *reduce)
{
    reduce->passes = choice->celled ? choice->tiles : choice->passes;
    reduce->tiles = choice->celled ? 1u << RD_KCELL_SHIFT(choice->celled) : choice->tiles;
    reduce->slice = choice->celled ? choice->celled : choice->slice;
}

static rondo_result_t run_barrier(rd_cuda_t *cuda, cudaStream_t stream)
{
    rd_wanted_t wanted = {RD_ALLREDUCE, RONDO_INT32, RONDO_SUM, 4, 1, 0, 0, 0};
    rd_kchoice_t choice;
    rd_kwork_t work;
    rondo_result_t result = choose(cuda, &wanted, NULL, &choice);

    if (result != RONDO_SUCCESS)
        return result;
    work.comm = cuda->k;
    work.reduce = (rd_kreduce_t){.in = cuda->scratch,
                                 .out = cuda->scratch,
                                 .count = 1,
                                 .coll = RD_ALLREDUCE,
                                 .type = RONDO_INT32,
                                 .op = RONDO_SUM};
    set_portions(&choice, &work.reduce);
    return rd_cuda_launch(cuda, &choice.launch, &work, stream);
}

static rd_wanted_t wanted_of(rd_cuda_t *cuda, const rd_call_t *call, rd_kreduce_t *reduce)
{
    const rd_coll_desc_t *desc = &call->desc;
    rd_wanted_t wanted;

    rd_cuda_op(cuda, call, reduce);
    memset(&wanted, 0, sizeof wanted);
    wanted.coll = reduce->coll = (uint32_t)desc->coll;
    wanted.type = reduce->type;
    wanted.narrow = reduce->narrow;
    wanted.op = reduce->op;
    wanted.element = (uint32_t)rondo_type_size((rondo_type_t)reduce->type);
    wanted.count = reduce->count = desc->count;
    wanted.forced = desc->forced;
    wanted.copies = cuda->team->env->cuda_copy || rd_cuda_policy(cuda, call) != RONDO_CTA_POLICY_DEFAULT
                        ? rd_copies_way(cuda, call)
                        : RD_COPIES_NONE;
    return wanted;
}

/* The arguments of the kernel that was chosen. */
static void bind(const rd_call_t *call, const rd_kchoice_t *choice, rd_kreduce_t *reduce)
{
    reduce->in = call->in;
    reduce->out = call->out;
    reduce->gap = 0;
    reduce->root = call->desc.root;
    set_portions(choice, reduce);
}

rondo_result_t rd_cuda_choose(rd_cuda_t *cuda, const rd_call_t *call, rd_kreduce_t *reduce, rd_kchoice_t *choice)
{
    rd_env_t own;
    const rd_env_t *env = rd_force_env(cuda->team->env, call->desc.forced, &own);
    const rd_wanted_t wanted = wanted_of(cuda, call, reduce);
    rondo_result_t result = choose(cuda, &wanted, env, choice);

    if (result != RONDO_SUCCESS)
        return result;
    bind(call, choice, reduce);
    return RONDO_SUCCESS;
}

rondo_result_t rd_cuda_run_by(rd_cuda_t *cuda, const rd_call_t *call, const rd_algo_t *algo, rd_proto_t proto)
{
    rd_kchoice_t choice;
    rd_kwork_t work;
    fenv_t program;
    const rd_wanted_t wanted = wanted_of(cuda, call, &work.reduce);
    const rd_limits_t limits = limits_of(cuda, call->desc.forced);

    rd_fpenv_begin(&program);
    const char *why = rd_kchoose_one(&wanted, &limits, algo, proto, &choice);
    rd_fpenv_end(&program);
    if (why)
        return rd_error(cuda->team->ctx, RONDO_ERR_INTERNAL, "%s by %s: %s", rd_coll_name(call->desc.coll), algo->name,
                        why);
    bind(call, &choice, &work.reduce);
    work.comm = cuda->k;
    return rd_cuda_launch(cuda, &choice.launch, &work, call->stream);
}

bool rd_cuda_follows(rd_cuda_t *cuda, const rd_call_t *call)
{
    rd_env_t own;
    const rd_env_t *env = rd_force_env(cuda->team->env, call->desc.forced, &own);
    rd_kreduce_t reduce;
    rd_kchoice_t choice;
    const rd_wanted_t wanted = wanted_of(cuda, call, &reduce);
    const rd_limits_t limits = limits_of(cuda, call->desc.forced);

    return !rd_kchoose(&wanted, &limits, env, &choice);
}

double rd_cuda_price(rd_cuda_t *cuda, const rd_call_t *call)
{
    rd_call_t one = *call;
    rd_kreduce_t reduce;
    rd_kchoice_t choice;

    if (cuda->k.nranks == 1)
        return 0;
    if (cuda->path || call->tables)
        return -1;
    if (one.desc.coll == RD_BARRIER)
        one.desc = (rd_coll_desc_t){.coll = RD_ALLREDUCE, .type = RONDO_INT32, .op = RONDO_SUM, .count = 1};
    if (one.desc.count == 0)
        return 0;
    return rd_cuda_choose(cuda, &one, &reduce, &choice) == RONDO_SUCCESS ? choice.us : -1;
}

double rd_cuda_price_least(rd_cuda_t *cuda, const rd_call_t *call, const rd_klaunch_t *launch)
{
    rd_call_t one = *call;
    rd_kreduce_t reduce;
    rd_kchoice_t choice;
    fenv_t program;

    one.desc.count = 1;
    const rd_wanted_t wanted = wanted_of(cuda, &one, &reduce);
    rd_fpenv_begin(&program);
    const char *why = rd_kchoose_one(&wanted, &cuda->limits, launch->algo, launch->proto, &choice);
    rd_fpenv_end(&program);
    return why ? 0 : choice.us;
}

/* Runs the collective by one kernel, whose output may lie elsewhere; `gap`: bytes between the blocks of a
 * reduce-scatter's input. */
static rondo_result_t run_one(rd_cuda_t *cuda, const rd_call_t *call, void *out, size_t gap)
{
    rd_kchoice_t choice;
    rd_kwork_t work;
    rondo_result_t result = rd_cuda_choose(cuda, call, &work.reduce, &choice);

    if (result != RONDO_SUCCESS)
        return result;
    if (rd_launch_kernel(&choice.launch) != RD_KERNEL_COPY)
        rd_cuda_say_kernels(cuda, call);
    if (rd_launch_kernel(&choice.launch) == RD_KERNEL_MESSAGES)
        return rd_messages_collective(cuda, call);
    if (rd_launch_kernel(&choice.launch) == RD_KERNEL_COPY)
        return rd_copies_collective(cuda, call);
    if (rd_ring_order_divides(cuda, &choice.launch))
        return rd_ring_order_blocks(cuda, call, out, gap);
    work.comm = cuda->k;
    work.reduce.out = out;
    work.reduce.gap = gap / rondo_type_size(call->desc.type) * rondo_type_size((rondo_type_t)work.reduce.type);
    if (rd_algo_is_program(choice.launch.algo))
        result = rd_cuda_program(cuda, &choice.launch, call->desc.root, &work.programmed.program);
    return result == RONDO_SUCCESS ? rd_cuda_launch(cuda, &choice.launch, &work, call->stream) : result;
}

/* For recv == send on another rank than 0: the result goes into the rank's own block, whose input is no longer needed
 * then, and from there to the front. */
static rondo_result_t run_bounce(rd_cuda_t *cuda, const rd_call_t *call)
{
    char *own = (char *)call->out + (size_t)cuda->k.rank * call->bounce;
    rondo_result_t result = run_one(cuda, call, own, 0);

    return result == RONDO_SUCCESS ? rd_cuda_copy(cuda, call->out, own, call->bounce, call->stream) : result;
}

/* A reduce_scatter by tables is done as a reduction to each rank in turn: blocks of different lengths have different
 * roots. */
static rondo_result_t reduce_each(rd_cuda_t *cuda, const rd_call_t *call)
{
    const size_t *counts = call->tables->in_counts;
    size_t element = rondo_type_size(call->desc.type), offset = 0;
    rondo_result_t result = RONDO_SUCCESS;

    for (int root = 0; root < cuda->k.nranks && result == RONDO_SUCCESS; root++) {
        char *block = (char *)(uintptr_t)call->in + offset;
        int own = root == cuda->k.rank;
        rd_call_t one = *call;
        offset += counts[root] * element;
        if (!counts[root])
            continue;
        one.desc.coll = RD_REDUCE;
        one.desc.root = root;
        one.desc.count = counts[root];
        one.tables = NULL;
        one.in = block;
        one.out = !own ? NULL : call->bounce ? block : call->out;
        one.bounce = 0;
        result = run_one(cuda, &one, one.out, 0);
        if (result == RONDO_SUCCESS && own && call->bounce)
            result = rd_cuda_copy_over(cuda, call->out, block, counts[root] * element, call->stream);
    }
    return result;
}

rondo_result_t rd_cuda_compare(rd_cuda_t *cuda, const rd_call_t *call)
{
    if (!cuda->signatures)
        return RONDO_SUCCESS;
    return rd_signature_ring_call(cuda->signatures, call, rd_cuda_captured(call->stream));
}

static rondo_result_t run(rd_cuda_t *cuda, const rd_call_t *call)
{
    if (cuda->path) {
        rd_cuda_say_kernels(cuda, call);
        return rd_proxy_path_collective(cuda, call);
    }
    if (call->desc.coll == RD_BARRIER)
        return cuda->k.nranks == 1 ? RONDO_SUCCESS : run_barrier(cuda, call->stream);
    if (cuda->k.nranks == 1)
        return call->desc.count || call->tables ? run_single(cuda, call) : RONDO_SUCCESS;
    if (call->tables && call->desc.coll == RD_REDUCE_SCATTER)
        return reduce_each(cuda, call);
    if (call->tables) {
        rd_cuda_say_kernels(cuda, call);
        return rd_messages_collective(cuda, call);
    }
    if (call->desc.count == 0)
        return RONDO_SUCCESS;
    return call->bounce ? run_bounce(cuda, call) : run_one(cuda, call, call->out, 0);
}

/* What a node communicator runs is part of a call of the outer one's. */
rondo_result_t rd_cuda_run(rd_cuda_t *cuda, const rd_call_t *call)
{
    if (cuda->parent)
        return run(cuda, call);
    cuda->order.number = call->number;
    cuda->order.launched = call->event;
    rondo_result_t result = run(cuda, call);
    if (result == RONDO_SUCCESS)
        result = rd_order_launched(cuda, call->stream); /* nothing was to be done */
    cuda->order.number = 0;
    cuda->order.launched = NULL;
    return result;
}

rondo_result_t rd_cuda_reduce_scatter(rd_cuda_t *cuda, const rd_call_t *call, size_t gap)
{
    return run_one(cuda, call, call->out, gap);
}

/* ---- the entry ---- */

void rd_cuda_extents(const rd_cuda_t *cuda, const rd_call_t *call, size_t *in, size_t *out)
{
    size_t n = (size_t)cuda->k.nranks, count = call->desc.count;
    int rooting = call->desc.root == cuda->k.rank, coll = (int)call->desc.coll;

    *in = *out = count;
    if (coll == RD_ALLGATHER || coll == RD_ALLTOALL || (coll == RD_GATHER && rooting))
        *out *= n;
    if (coll == RD_REDUCE_SCATTER || coll == RD_ALLTOALL || (coll == RD_SCATTER && rooting))
        *in *= n;
    if ((coll == RD_REDUCE || coll == RD_GATHER) && !rooting)
        *out = 0;
    if ((coll == RD_BROADCAST || coll == RD_SCATTER) && !rooting)
        *in = 0;
    if (call->tables)
        *in = *out = 1; /* the buffer is NULL if it has no elements */
}

rondo_result_t rd_cuda_collective(rd_cuda_t *cuda, const rd_call_t *call)
{
    const char *name = rd_coll_name(call->desc.coll);
    rondo_result_t result = rd_cuda_check(cuda);
    size_t in, out;

    rd_cuda_extents(cuda, call, &in, &out);
    if (result == RONDO_SUCCESS)
        result = rd_buffer_check(cuda, name, "send", call->in, in);
    if (result == RONDO_SUCCESS)
        result = rd_buffer_check(cuda, name, "recv", call->out, out);
    if (result != RONDO_SUCCESS)
        return result;
    if (call->group)
        return rd_cuda_record(cuda, call);
    result = rd_cuda_compare(cuda, call);
    return result == RONDO_SUCCESS ? rd_cuda_run(cuda, call) : result;
}
