/* From a checked call to its run: at once, or recorded in this thread's group. */
#include "core/submit.h"

#include <stdlib.h>
#include <string.h>

#include "exec/cuda/cuda.h"
#include "core/force_next.h"
#include "core/op.h"
#include "core/binding.h"
#include "core/shown.h"
#include "progress/signature.h"

/* ---- what the record says of a call (monitor/) ---- */

/* Returns how many blocks of `count` elements the longer of the two buffers has. */
static uint64_t blocks_of(rd_coll_t coll, int nranks)
{
    switch (coll) {
    case RD_ALLGATHER:
    case RD_REDUCE_SCATTER:
    case RD_ALLTOALL:
    case RD_GATHER:
    case RD_SCATTER:
        return (uint64_t)nranks;
    case RD_BARRIER:
        return 0;
    default:
        return 1;
    }
}

static rd_monitor_call_t noted(rondo_comm_t comm, const rd_call_t *call)
{
    const rd_coll_desc_t *d = &call->desc;
    uint64_t count = call->tables || d->coll == RD_BARRIER ? 0 : d->count;
    rd_coll_t coll = call->name ? call->kind : d->coll;
    rd_monitor_call_t what = {
        .count = count,
        .bytes = count * rondo_type_size(d->type) * blocks_of(coll, comm->team.nranks),
        .tag = call->tag,
        .root = call->name ? call->root : d->root,
        .kind = (uint8_t)coll,
        .type = (uint8_t)d->type,
        .op = (uint8_t)(d->op < RONDO_NUM_OPS ? d->op : RONDO_NUM_OPS),
        .flags = (uint8_t)((call->tables ? RD_MONITOR_TABLES : 0) | (call->group ? RD_MONITOR_GROUPED : 0))};

    if (comm->shown)
        rd_shown_note(comm, &what);
    return what;
}

static void forget_last(rondo_comm_t comm)
{
    if (comm->last.plan)
        rd_plan_put(comm->last.plan);
    comm->last.plan = NULL;
}

/* A collective begins that has an event of its own: the next one that is counted as a repetition must repeat this one,
 * and not the one that is remembered. */
static uint64_t begin(rondo_comm_t comm, const rd_monitor_call_t *call)
{
    uint64_t entry = rd_monitor_begin(&comm->seat, RD_TRACK_COLLECTIVE, call);

    if (entry)
        forget_last(comm);
    return entry;
}

/* A call is over, or was refused after it had begun. */
static void end(rondo_comm_t comm, rd_track_t track, uint64_t entry, rondo_result_t result)
{
    if (rd_monitor_refuses((int)result))
        rd_monitor_take_back(&comm->seat, track, entry, (int)result);
    else
        rd_monitor_end(&comm->seat, track, entry, (int)result);
}

/* The record says by what the call of that entry runs. */
static void note_choice(rondo_comm_t comm, uint64_t entry, const rd_plan_t *plan)
{
    if (entry)
        rd_monitor_choice(
            &comm->seat, entry,
            rd_monitor_choice_word(plan->algo_number, plan->program->nlanes ? (int)plan->lanes[0].proto : -1));
}

/* ---- signatures (monitor/called.h) ---- */

/* Without signatures it stays empty. */
static rd_signed_call_t signed_call(rondo_comm_t comm, const rd_call_t *call, const rd_plan_t *plan,
                                    const rd_monitor_call_t *what)
{
    if (!comm->queue.signing.called)
        return (rd_signed_call_t){.hash = 0};
    bool reduces = rd_coll_reduces(call->desc.coll);
    size_t factor = reduces ? 1 : rondo_type_size(call->desc.type); /* of what only moves, bytes count */
    rd_signed_call_t s = {
        .call = *what, .tables = rd_signature_counts(call, comm->team.nranks, factor), .tuned = plan->tuned};

    if (call->tables)
        s.call.count = call->desc.count; /* of all blocks, where every rank knows it */
    rd_sign_hash(&s, reduces);
    return s;
}

/* Signs a call that the record says has begun. As for the record, what is remembered is repeated no more. */
static uint64_t sign(rondo_comm_t comm, const rd_signed_call_t *call)
{
    const rd_monitor_calls_t *calls = &comm->seat.board->calls[RD_TRACK_COLLECTIVE];
    rd_signing_t *signing = &comm->queue.signing;

    if (!signing->called)
        return 0;
    if (call->hash != signing->last || call->call.count != signing->last_count || call->call.type != signing->last_type)
        forget_last(comm);
    return rd_sign_call(signing, call, atomic_load_explicit(&calls->begun, memory_order_relaxed));
}

/* A message begins of which the record may say more than its arguments. Apart from the others, whose way is short. */
static __attribute__((noinline)) uint64_t begin_shown(rondo_comm_t comm, rd_track_t track,
                                                      const rd_monitor_call_t *what)
{
    rd_monitor_note_message(&comm->seat, track);
    return rd_monitor_begin(&comm->seat, track, what);
}

static uint64_t begin_noted(rondo_comm_t comm, rd_track_t track, const rd_monitor_call_t *what)
{
    return comm->shown ? begin_shown(comm, track, what) : rd_monitor_begin_message(&comm->seat, track, what);
}

/* Returns the index of the last one. */
static int begin_followers(rondo_comm_t comm, const rd_task_t *task)
{
    rd_followers_t *f = task->followers;
    rd_monitor_call_t what = task->noted;

    for (int i = 0; i < f->n; i++) {
        what.count = what.bytes = f->of[i].plan->desc.count;
        f->of[i].entry = begin_noted(comm, task->track, &what);
    }
    return f->of[f->n - 1].index;
}

void rd_call_begin_task(rondo_comm_t comm, rd_task_t *task)
{
    if (!task->recorded)
        return;
    if (task->has_more)
        rd_profile_task_begin(task->more.shown);
    if (task->track == RD_TRACK_COLLECTIVE) {
        task->entry = begin(comm, &task->noted);
        task->sign = sign(comm, &task->called);
        note_choice(comm, task->entry, task->plan);
    } else {
        task->entry = begin_noted(comm, task->track, &task->noted);
    }
    task->number = atomic_load_explicit(&comm->seat.board->calls[task->track].begun, memory_order_relaxed);
    const int last = task->followers ? begin_followers(comm, task) : task->index;
    if (last > comm->latest.index) {
        comm->latest.index = last;
        comm->latest.track = task->track;
    } else { /* only messages have followers, so that call was one */
        rd_monitor_note_message(&comm->seat, comm->latest.track);
    }
}

uint64_t rd_call_begin_other(rondo_comm_t comm, uint8_t kind, const char *name)
{
    rd_signed_call_t other = {.call = {.kind = kind}};

    if (comm->shown)
        rd_shown_other(comm, &other.call);
    uint64_t entry = begin(comm, &other.call);

    rd_sign_hash(&other, false);
    sign(comm, &other);
    rd_boot_exchange_for(comm->boot, name);
    return entry;
}

void rd_call_end_other(rondo_comm_t comm, uint64_t entry, rondo_result_t result)
{
    rd_boot_exchange_for(comm->boot, NULL);
    rd_monitor_end(&comm->seat, RD_TRACK_COLLECTIVE, entry, result);
}

static rondo_result_t record(rondo_comm_t comm, const rd_call_t *call, rd_plan_t *plan)
{
    rondo_result_t result = RONDO_SUCCESS;
    rd_task_t *task;

    if (comm->env.check && comm->team.nranks > 1) {
        result = rd_signature_task(&comm->queue, call, plan->tuned, &task);
        if (result == RONDO_SUCCESS)
            result = rd_group_record(call->group, comm, task);
    }
    if (result != RONDO_SUCCESS) {
        rd_plan_put(plan);
        return result;
    }
    result = rd_task_create(&comm->queue, plan, RD_CHAIN_COLLECTIVE, call->in, call->out, &task);
    if (result != RONDO_SUCCESS)
        return result;
    task->recorded = true;
    task->track = RD_TRACK_COLLECTIVE;
    task->noted = noted(comm, call);
    task->called = signed_call(comm, call, plan, &task->noted);
    if (call->bounce) {
        rd_task_more_t *more = rd_task_more(task);
        task->out = more->bounce = malloc(call->bounce);
        more->result = call->out;
        more->result_bytes = call->bounce;
        if (!more->bounce) {
            rd_task_free(&comm->queue, task);
            return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory for %zu bytes of output", call->bounce);
        }
    }
    if (comm->shown)
        rd_shown_record(comm, task);
    return rd_group_record(call->group, comm, task);
}

static rondo_result_t run_bounce(rondo_comm_t comm, const rd_call_t *call, rd_plan_t *plan)
{
    void *bounce = malloc(call->bounce);
    rondo_result_t result;

    if (!bounce) {
        rd_plan_put(plan);
        return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory for %zu bytes of output", call->bounce);
    }
    result = rd_queue_run(&comm->queue, plan, RD_CHAIN_COLLECTIVE, call->in, bounce);
    if (result == RONDO_SUCCESS)
        memcpy(call->out, bounce, call->bounce);
    free(bounce);
    return result;
}

/* Remembers a plan that has run, so that there are scratch and lanes for it. */
static void remember(rondo_comm_t comm, const rd_call_t *call, rd_plan_t *plan)
{
    rd_plan_put(comm->last.plan);
    comm->last.plan = plan;
    comm->last.kind = call->tables ? rd_call_kind_v(call->kind) : (int)call->desc.coll;
    comm->last.type = call->desc.type;
    comm->last.op = call->desc.op;
    comm->last.root = call->name ? call->root : call->desc.root;
    comm->last.count = call->tables ? 0 : call->desc.count;
    comm->last.hash = comm->queue.signing.last;
    comm->last.tag = call->tag;
}

/* RONDO_DEBUG=trace: a line for each call. `plan` is NULL on a CUDA communicator, which says its choice itself. */
static void trace(rondo_comm_t comm, const rd_call_t *call, const rd_plan_t *plan)
{
    const rd_coll_desc_t *d = &call->desc;
    const char *name = call->name ? call->name : rd_coll_name(d->coll);
    const char *op = d->op < RONDO_NUM_OPS ? rd_op_name(d->op) : "user";
    const char *proto = plan && plan->program->nlanes ? rd_proto_name(plan->lanes[0].proto) : "no message";

    if (plan)
        rd_log(&comm->ctx, RD_LOG_TRACE, "calls %s%s: count %zu, type %s, op %s, root %d, %s by %s", name,
               call->group ? " in a group" : "", d->count, rd_type_name(d->type), op, d->root, plan->algo, proto);
    else
        rd_log(&comm->ctx, RD_LOG_TRACE, "calls %s%s: count %zu, type %s, op %s, root %d, on stream %p", name,
               call->group ? " in a group" : "", d->count, rd_type_name(d->type), op, d->root, call->stream);
}

/* `what`: what the record says of the call; NULL in a group, where it has not begun. `entry`: where it says that. */
static rondo_result_t run(rondo_comm_t comm, const rd_call_t *call, const rd_reducer_t *custom,
                          const rd_monitor_call_t *what, uint64_t entry)
{
    bool checks = comm->env.check && comm->team.nranks > 1 && !call->group;
    bool has_say = comm->tuned.tuner || call->desc.forced; /* somebody has a say in what is chosen */
    rondo_result_t result = RONDO_SUCCESS;
    rd_plan_t *plan;

    if (checks && !has_say)
        result = rd_signature_exchange(&comm->queue, call, 0, &comm->sequence);
    if (result == RONDO_SUCCESS)
        result = rd_plan_get(comm->planner, &call->desc, call->tables, custom, &plan);
    if (result != RONDO_SUCCESS)
        return result;
    if (checks && has_say) /* what is chosen is compared, too */
        result = rd_signature_exchange(&comm->queue, call, plan->tuned, &comm->sequence);
    if (result != RONDO_SUCCESS) {
        rd_plan_put(plan);
        return result;
    }
    if (rd_log_enabled(RD_LOG_TRACE))
        trace(comm, call, plan);
    if (!what)
        return record(comm, call, plan);
    const rd_signed_call_t s = signed_call(comm, call, plan, what);
    sign(comm, &s);
    note_choice(comm, entry, plan);
    if (comm->shown)
        rd_shown_runs(comm, plan);
    if (call->bounce)
        return run_bounce(comm, call, plan);
    if (custom || call->desc.own || call->desc.forced || comm->env.check || comm->shown ||
        rd_log_enabled(RD_LOG_TRACE)) /* a call that is repeated passes by `trace`, and is not shown */
        return rd_queue_run(&comm->queue, plan, RD_CHAIN_COLLECTIVE, call->in, call->out);
    plan->users++;
    result = rd_queue_run(&comm->queue, plan, RD_CHAIN_COLLECTIVE, call->in, call->out);
    if (result == RONDO_SUCCESS)
        remember(comm, call, plan);
    else
        rd_plan_put(plan);
    return result;
}

static rondo_result_t run_on_host(rondo_comm_t comm, const rd_call_t *call)
{
    const rd_reducer_t *custom = NULL;

    if (call->desc.op >= RONDO_NUM_OPS) {
        custom = rd_op_reducer(comm, call->desc.op, call->desc.type, rd_coll_name(call->desc.coll));
        if (!custom)
            return RONDO_ERR_INVALID_ARGUMENT;
    }
    if (call->group)
        return run(comm, call, custom, NULL, 0);
    const rd_monitor_call_t what = noted(comm, call);
    uint64_t entry = begin(comm, &what);
    rondo_result_t result = run(comm, call, custom, &what, entry);
    if (comm->shown && result == RONDO_SUCCESS)
        rd_shown_wrote(comm, entry);
    end(comm, RD_TRACK_COLLECTIVE, entry, result);
    return result;
}

/* A group that uses the communicator holds it until its end. */
static rondo_result_t note_group(struct rd_group *group, rondo_comm_t comm)
{
    return group ? rd_group_note(group, comm) : RONDO_SUCCESS;
}

static rondo_result_t run_on_device(rondo_comm_t comm, const rd_call_t *call)
{
    rondo_result_t result = note_group(call->group, comm);
    rd_call_t whole = *call;

    if (rd_log_enabled(RD_LOG_TRACE))
        trace(comm, call, NULL);
    if (call->desc.op >= RONDO_NUM_OPS)
        whole.scalar = rd_op_scalar(comm, call->desc.op);
    if (result != RONDO_SUCCESS)
        return result;
    const rd_monitor_call_t what = noted(comm, call);
    uint64_t entry = begin(comm, &what);
    whole.number = atomic_load_explicit(&comm->seat.board->calls[RD_TRACK_COLLECTIVE].begun, memory_order_relaxed);
    result = rd_cuda_collective(comm->cuda, &whole);
    end(comm, RD_TRACK_COLLECTIVE, entry, result);
    return result;
}

/* ---- messages ---- */

static rd_track_t track_of(const rd_message_t *m)
{
    return m->send ? RD_TRACK_SEND : RD_TRACK_RECV;
}

static uint8_t message_flags(const rd_message_t *m)
{
    return m->group ? RD_MONITOR_GROUPED : 0;
}

/* `bytes` are the message's. On host memory they are in a register: to load them twice is made one load, wider than
 * their store, which waits for that to leave the core, behind the last message. */
static rd_monitor_call_t noted_message(rondo_comm_t comm, const rd_message_t *m, size_t bytes)
{
    rd_monitor_call_t what = rd_monitor_message(m->send, bytes, m->peer, message_flags(m), m->tag);

    if (comm->shown)
        rd_shown_note(comm, &what);
    return what;
}

static uint64_t begin_message(rondo_comm_t comm, const rd_message_t *m, size_t bytes)
{
    const rd_monitor_call_t what = noted_message(comm, m, bytes);

    return begin_noted(comm, track_of(m), &what);
}

static rondo_result_t message_on_device(rondo_comm_t comm, const rd_message_t *m)
{
    rondo_result_t result = note_group(m->group, comm);

    if (result != RONDO_SUCCESS)
        return result;
    uint64_t entry = begin_message(comm, m, m->bytes);
    result = rd_cuda_message(comm->cuda, m);
    end(comm, track_of(m), entry, result);
    return result;
}

static void trace_message(rondo_comm_t comm, const rd_message_t *m)
{
    rd_log(&comm->ctx, RD_LOG_TRACE, "calls %s%s: %zu bytes, rank %d", m->send ? "send" : "recv",
           m->group ? " in a group" : "", m->bytes, m->peer);
}

/* The communicator is said to have failed calls before this one is seen to have ended. */
static __attribute__((noinline, cold)) rondo_result_t repeat_failed(rondo_comm_t comm, rondo_result_t result)
{
    rd_monitor_failed(&comm->seat, RD_TRACK_COLLECTIVE, (int)result);
    rd_monitor_repeat_end(&comm->seat);
    rd_monitor_end_event(&comm->seat, RD_TRACK_COLLECTIVE, 0, (int)result);
    return rd_comm_leave(comm, rd_group_failed(rd_call_spoiled(comm, result)));
}

rondo_result_t rd_call_repeat(rondo_comm_t comm, const void *in, void *out)
{
    rondo_result_t result = rd_comm_enter(comm);

    uint64_t number = rd_monitor_repeat_begin(&comm->seat);
    if (result == RONDO_SUCCESS)
        result = rd_queue_repeat(&comm->queue, comm->last.plan, in, out,
                                 rd_sign_repeat(&comm->queue.signing, comm->last.hash, number));
    if (result != RONDO_SUCCESS)
        return repeat_failed(comm, result);
    rd_monitor_repeat_end(&comm->seat);
    return rd_comm_leave(comm, RONDO_SUCCESS);
}

rondo_result_t rd_call_refused(rondo_result_t result)
{
    rd_force_drop();
    return rd_message_refused(result);
}

rondo_result_t rd_message_refused(rondo_result_t result)
{
    return rd_group_failed(rd_limit_drop(result));
}

rondo_result_t rd_call_spoiled(rondo_comm_t comm, rondo_result_t result)
{
    if (result != RONDO_ERR_NO_MEMORY && result != RONDO_ERR_SYSTEM && result != RONDO_ERR_INTERNAL &&
        result != RONDO_ERR_CUDA)
        return result;
    return rd_health_fail(&comm->health, result, comm->team.rank, "an operation could not begin: %s",
                          rd_thread_error());
}

static rondo_result_t run_collective(rondo_comm_t comm, const rd_call_t *call)
{
    return comm->cuda ? run_on_device(comm, call) : run_on_host(comm, call);
}

rondo_result_t rd_call_collective(const rd_caller_t *caller, rondo_comm_t comm, rd_call_t *call)
{
    rondo_result_t result = rd_comm_enter(comm);

    call->tag = caller->tag;
    call->group = rd_caller_group(caller);
    if (caller->differs)
        rd_force_take(call, comm->cuda != NULL);
    rd_call_limit(caller, comm);
    if (result == RONDO_SUCCESS && call->event && !comm->cuda)
        result = rd_error(&comm->ctx, RONDO_ERR_UNSUPPORTED,
                          "rondo_launch_event_next: no kernel is launched on a host communicator: record an event "
                          "behind the call");
    if (result == RONDO_SUCCESS)
        result = comm->shown ? rd_shown_collective(comm, call, run_collective) : run_collective(comm, call);
    rd_limit_own_end(&comm->queue.limit);
    if (result != RONDO_SUCCESS)
        result = rd_group_failed(rd_call_spoiled(comm, result));
    return rd_comm_leave(comm, result);
}

static rondo_result_t record_message(rondo_comm_t comm, const rd_message_t *m, size_t bytes, rd_plan_t *plan)
{
    int chain = m->send ? RD_CHAIN_SEND(m->peer) : RD_CHAIN_RECV(m->peer);
    rd_task_t *task;

    if (plan->one_message && !comm->shown && rd_group_follow(m->group, comm, m, plan))
        return RONDO_SUCCESS;
    rondo_result_t result = rd_task_create(&comm->queue, plan, chain, m->buffer, m->buffer, &task);
    if (result != RONDO_SUCCESS)
        return result;
    task->recorded = true;
    task->track = track_of(m);
    task->noted = rd_monitor_message(m->send, bytes, m->peer, message_flags(m), m->tag); /* in its place at once */
    if (comm->shown) {
        rd_shown_note(comm, &task->noted);
        rd_shown_record(comm, task);
    }
    return rd_group_record(m->group, comm, task);
}

static rondo_result_t message_at_once(rondo_comm_t comm, const rd_message_t *m, size_t bytes, rd_plan_t *plan)
{
    int chain = m->send ? RD_CHAIN_SEND(m->peer) : RD_CHAIN_RECV(m->peer);
    uint64_t entry = begin_message(comm, m, bytes);

    if (comm->shown)
        rd_shown_runs(comm, plan);
    rondo_result_t result = rd_queue_run(&comm->queue, plan, chain, m->buffer, m->buffer);
    if (comm->shown && result == RONDO_SUCCESS)
        rd_shown_wrote(comm, entry);
    rd_monitor_end(&comm->seat, track_of(m), entry, result);
    return result;
}

static rondo_result_t message_on_host(rondo_comm_t comm, const rd_message_t *m)
{
    const size_t bytes = m->bytes;
    rd_plan_t *plan;

    if (m->peer == comm->team.rank && m->group)
        return rd_group_record_self(m->group, comm, m);
    if (m->peer == comm->team.rank)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_USAGE,
                        "%s to this rank itself would wait for ever: put it into a group with its partner",
                        m->send ? "rondo_send" : "rondo_recv");
    if (comm->queue.deadlock.listed)
        rd_deadlock_call(&comm->queue, m->send ? "a send" : "a recv", -1);
    rondo_result_t result = rd_plan_get_p2p(comm->planner, m->peer, m->send, bytes, &plan);
    if (result != RONDO_SUCCESS)
        return result;
    return m->group ? record_message(comm, m, bytes, plan) : message_at_once(comm, m, bytes, plan);
}

static rondo_result_t run_message(rondo_comm_t comm, const rd_message_t *m)
{
    return comm->cuda ? message_on_device(comm, m) : message_on_host(comm, m);
}

rondo_result_t rd_call_message(const rd_caller_t *caller, rondo_comm_t comm, rd_message_t *m)
{
    rondo_result_t result = rd_comm_enter(comm);

    m->tag = caller->tag;
    m->group = rd_caller_group(caller);
    rd_call_limit(caller, comm);
    if (rd_log_enabled(RD_LOG_TRACE))
        trace_message(comm, m);
    /* The receiver of an earlier message may have found that it was wrong. */
    if (result == RONDO_SUCCESS && rd_health_noticed(&comm->health) != RONDO_SUCCESS)
        result = rd_health_poll(&comm->health);
    if (result == RONDO_SUCCESS)
        result = comm->shown ? rd_shown_message(comm, m, run_message) : run_message(comm, m);
    rd_limit_own_end(&comm->queue.limit);
    if (result != RONDO_SUCCESS)
        result = rd_group_failed(rd_call_spoiled(comm, result));
    return rd_comm_leave(comm, result);
}

rondo_result_t rondo_call_refuse(rondo_comm_t comm, rondo_result_t result, const char *call, const char *sentence)
{
    rondo_result_t valid = rd_comm_valid(comm, call);

    return rd_group_failed(valid == RONDO_SUCCESS ? rd_error(&comm->ctx, result, "%s: %s", call, sentence) : valid);
}
