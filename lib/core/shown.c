/* See shown.h. */
#include "core/shown.h"

#include <stdlib.h>
#include <string.h>

#include "core/caller.h"
#include "core/comm.h"
#include "core/hashes.h"
#include "core/hooks.h"
#include "core/nan_check.h"
#include "core/records.h"
#include "monitor/callsite.h"
#include "profile/nvtx.h"

struct rd_shown {
    rd_nan_check_t nan;
    bool nvtx, hashes, stacks;
    uint64_t stack, input;  /* of the call under way: what the record gets */
    rd_hashed_t *output;    /* NULL: it writes nothing, or has been taken */
    int start, stride;      /* the ranks' numbers in the job, for NVTX */
    rd_profile_t *profile;  /* NULL: there is no plugin */
    rd_profile_call_t call; /* under way. What follows is for the plugin. */
    rd_profile_span_t span;
    rd_profile_task_t *task; /* that runs now */
};

#define UNASKED "libnccl-profiler.so" /* libnccl.so.2 looks for it, as NCCL does, whether or not anybody wants it */

/* Without a setting of rondo's, NCCL's own variable names the plugin. */
static rd_plugin_t *plugin(const rd_env_t *env)
{
    const char *name = *env->profiler ? env->profiler : getenv("NCCL_PROFILER_PLUGIN");

    return rd_plugin_load(name, name && strcmp(name, UNASKED) != 0);
}

void rd_shown_begin(rondo_comm_t comm)
{
    const rd_plugin_comm_t what = {.name = comm->ctx.name,
                                   .id = rd_comm_number(comm),
                                   .nodes = comm->node.nnodes,
                                   .nranks = comm->team.nranks,
                                   .rank = comm->team.rank};
    rd_profile_t *profile = comm->internal ? NULL : rd_profile_make(plugin(&comm->env), &what);
    rd_nan_mode_t nan = comm->internal || comm->cuda ? RD_NAN_IGNORED : rd_nan_mode(&comm->env);
    bool nvtx = !comm->internal && rd_nvtx_wanted(comm->env.nvtx);
    bool hooked = !comm->internal && !comm->cuda && rd_hooks_wanted(RONDO_HOOK_COMPLETED); /* completed.h */
    bool hashes = !comm->internal && !comm->cuda && comm->env.hash && comm->seat.record;
    bool stacks = !comm->internal && comm->env.stacks && rd_callsite_begin(&comm->seat);
    rd_shown_t *shown = profile || nan || nvtx || hooked || hashes || stacks ? calloc(1, sizeof *shown) : NULL;

    if (shown)
        *shown =
            (rd_shown_t){.profile = profile, .nvtx = nvtx, .hashes = hashes, .stacks = stacks, .nan = {.mode = nan}};
    else
        rd_profile_end(profile);
    comm->shown = shown;
    if (nvtx && shown)
        rd_comm_job_ranks(comm, &shown->start, &shown->stride);
}

void rd_shown_end(rondo_comm_t comm)
{
    if (!comm->shown)
        return;
    rd_profile_end(comm->shown->profile);
    free(comm->shown);
    comm->shown = NULL;
}

static uint64_t sum_of(const size_t *counts, int n)
{
    uint64_t sum = 0;

    for (int r = 0; r < n; r++)
        sum += counts[r];
    return sum;
}

/* A call with tables: what the user called, and how many elements are this rank's own. */
static void describe_tables(const struct rondo_comm *comm, const rd_call_t *call, rd_profile_call_t *what)
{
    static const struct {
        const char *name;
        int func;
    } funcs[] = {{"allgatherv", RD_FUNC_ALLGATHERV},
                 {"reduce_scatterv", RD_FUNC_REDUCE_SCATTERV},
                 {"alltoallv", RD_FUNC_ALLTOALLV},
                 {"gatherv", RD_FUNC_GATHERV},
                 {"scatterv", RD_FUNC_SCATTERV}};

    for (size_t i = 0; i < sizeof funcs / sizeof funcs[0]; i++)
        if (call->name && strcmp(call->name, funcs[i].name) == 0)
            what->func = funcs[i].func;
    what->root = call->root;
    switch (what->func) {
    case RD_FUNC_ALLGATHERV:
        what->count = call->tables->out_counts[comm->team.rank];
        break;
    case RD_FUNC_REDUCE_SCATTERV:
        what->count = call->tables->in_counts[comm->team.rank];
        break;
    case RD_FUNC_SCATTERV:
        what->count = sum_of(call->tables->out_counts, comm->team.nranks);
        break;
    default:
        what->count = sum_of(call->tables->in_counts, comm->team.nranks);
        break;
    }
}

static rd_profile_call_t describe(const struct rondo_comm *comm, const rd_call_t *call)
{
    const rd_coll_desc_t *d = &call->desc;
    rd_profile_call_t what = {.func = (int)d->coll,
                              .count = d->coll == RD_BARRIER ? 0 : d->count,
                              .type = d->type,
                              .op = d->op,
                              .root = d->root,
                              .in = call->in,
                              .out = call->out,
                              .stream = call->stream,
                              .channels = comm->cuda ? 0 : 1};

    if (call->tables)
        describe_tables(comm, call, &what);
    return what;
}

/* Collectives, sends and receives have numbers of their own. */
static uint64_t number_of(const struct rondo_comm *comm, int func)
{
    rd_track_t track = func == RD_FUNC_SEND   ? RD_TRACK_SEND
                       : func == RD_FUNC_RECV ? RD_TRACK_RECV
                                              : RD_TRACK_COLLECTIVE;

    if (rd_caller()->depth)
        return 0;
    return atomic_load_explicit(&comm->seat.board->calls[track].begun, memory_order_relaxed) + 1;
}

static void begin_range(rondo_comm_t comm, const rd_profile_call_t *call, const char *name, bool reduces)
{
    const rd_nvtx_call_t range = {.comm = rd_comm_number(comm),
                                  .number = number_of(comm, call->func),
                                  .bytes = call->count * rondo_type_size(call->type),
                                  .root = call->root,
                                  .op = reduces ? call->op : -1,
                                  .ranks_start = comm->shown->start,
                                  .ranks_stride = comm->shown->stride,
                                  .ranks_size = comm->team.nranks};

    rd_nvtx_begin(name, &range);
}

static void begin(rondo_comm_t comm, rd_shown_t *s, const char *name, bool reduces)
{
    if (s->stacks)
        s->stack = rd_callsite(&comm->seat);
    s->task = NULL;
    if (s->nvtx)
        begin_range(comm, &s->call, name, reduces);
    if (!s->profile)
        return;
    rd_profile_call_begin(s->profile, &s->span, &s->call, rd_caller()->depth, comm->cuda && !rd_caller()->depth);
    if (!comm->cuda)
        return;
    s->task = rd_profile_task(s->profile, &s->span, &s->call);
    rd_profile_task_begin(s->task);
}

static void end(rd_shown_t *s)
{
    free(s->output);
    s->output = NULL;
    rd_profile_task_end(s->task);
    rd_profile_task_free(s->task);
    s->task = NULL;
    if (s->profile)
        rd_profile_call_end(s->profile, &s->span);
    if (s->nvtx)
        rd_nvtx_end();
}

rondo_result_t rd_shown_collective(rondo_comm_t comm, const rd_call_t *call, rd_run_collective_fn run)
{
    comm->shown->call = describe(comm, call);
    begin(comm, comm->shown, call->name ? call->name : rd_coll_name(call->desc.coll), rd_coll_reduces(call->desc.coll));
    if (comm->shown->hashes)
        rd_hashes_collective(comm, call, &comm->shown->input, &comm->shown->output);
    rondo_result_t result = rd_nan_collective(comm, &comm->shown->nan, call);
    if (result == RONDO_SUCCESS)
        result = run(comm, call);
    end(comm->shown);
    return result;
}

rondo_result_t rd_shown_message(rondo_comm_t comm, const rd_message_t *m, rd_run_message_fn run)
{
    comm->shown->call = (rd_profile_call_t){.func = m->send ? RD_FUNC_SEND : RD_FUNC_RECV,
                                            .count = m->bytes / rondo_type_size(m->type),
                                            .type = m->type,
                                            .root = m->peer,
                                            .in = m->buffer,
                                            .out = m->buffer,
                                            .stream = m->stream,
                                            .channels = comm->cuda ? 0 : 1};
    begin(comm, comm->shown, m->send ? "send" : "recv", false);
    if (comm->shown->hashes)
        rd_hashes_message(m, &comm->shown->input, &comm->shown->output);
    rondo_result_t result = rd_nan_message(comm, &comm->shown->nan, m);
    if (result == RONDO_SUCCESS)
        result = run(comm, m);
    end(comm->shown);
    return result;
}

static rd_profile_task_t *task_of(rd_shown_t *s, const rd_plan_t *plan)
{
    if (!s->profile)
        return NULL;
    s->call.algo = plan->algo;
    s->call.proto = plan->program->nlanes ? rd_proto_name(plan->lanes[0].proto) : NULL;
    return rd_profile_task(s->profile, &s->span, &s->call);
}

void rd_shown_runs(rondo_comm_t comm, const rd_plan_t *plan)
{
    comm->shown->task = task_of(comm->shown, plan);
    rd_profile_task_begin(comm->shown->task);
    rd_profile_task_runs(comm->shown->task);
}

void rd_shown_record(rondo_comm_t comm, rd_task_t *task)
{
    rd_task_more(task)->shown = task_of(comm->shown, task->plan);
    rd_task_more(task)->hashed = comm->shown->output;
    comm->shown->output = NULL;
}

void rd_shown_note(rondo_comm_t comm, rd_monitor_call_t *what)
{
    what->stack = comm->shown->stack;
    if (!comm->shown->hashes)
        return;
    what->flags |= RD_MONITOR_HASHED;
    what->input = comm->shown->input;
}

void rd_shown_other(rondo_comm_t comm, rd_monitor_call_t *what)
{
    if (comm->shown->stacks)
        what->stack = rd_callsite(&comm->seat);
}

void rd_shown_wrote(rondo_comm_t comm, uint64_t entry)
{
    if (comm->shown->output)
        rd_hashed_note(comm->shown->output, &comm->seat, entry);
}
