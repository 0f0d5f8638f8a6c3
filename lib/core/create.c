/* How a communicator is made and ends: its struct, the rendezvous of its ranks, and what the others hear of a failure.
 * The modules are made in modules.c. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/fork.h"
#include "base/fpenv.h"
#include "core/health_ops.h"
#include "core/hooks.h"
#include "core/lifetime.h"
#include "core/living.h"
#include "core/metrics.h"
#include "core/modules.h"
#include "core/on_error.h"
#include "core/ras_tcp.h"
#include "core/rma_calls.h"
#include "core/status_lines.h"
#include "core/transports.h"
#include "core/triggers.h"
#include "exec/cuda/cuda.h"

#define FIRST_MARK 0x726f6e646f436f6du

uint64_t rd_comm_mark = FIRST_MARK;

/* Guards the stop word of a communicator that is being made: an abort sets it while an attempt may be beginning. */
static pthread_mutex_t making_lock = PTHREAD_MUTEX_INITIALIZER;

/* Threads of the parent may have held the locks. */
static void fork_child(void)
{
    rd_comm_mark++;
    pthread_mutex_init(&making_lock, NULL);
    rd_explain_forget();
    rd_living_forget();
    rd_ras_tcp_forget();
}

static const rd_fork_handlers_t at_fork = {.prepare = rd_living_lock, .parent = rd_living_unlock, .child = fork_child};

bool rd_comm_not_own(rondo_comm_t comm)
{
    const uint64_t states = RD_COMM_MAKING | RD_COMM_BUSY | RD_COMM_SUSPENDED;
    uint64_t alive = atomic_load_explicit(&comm->alive, memory_order_relaxed) & ~states;
    return alive >= FIRST_MARK && alive < rd_comm_mark;
}

void rd_comm_end_modules(rondo_comm_t comm)
{
    const bool leaves = !comm->cuda || rd_cuda_close(comm->cuda);
    fenv_t program; /* UCX computes, too */

    rd_fpenv_begin(&program);
    rd_comm_rma_leave(comm);
    if (rd_health_check(&comm->health) != RONDO_SUCCESS)
        rd_comm_cancel(comm);
    if (leaves)
        atomic_store_explicit(&comm->conns.self->left, 1, memory_order_release);
    rd_boot_farewell(comm->boot, RONDO_SUCCESS, -1);
    rd_modules_end(comm);
    rd_fpenv_end(&program);
}

static rondo_result_t read_config(rondo_comm_t comm, const rondo_config_t *given)
{
    static _Atomic unsigned serial;
    rondo_config_t config;
    rondo_result_t result = rd_comm_config(&config, given);

    if (result != RONDO_SUCCESS)
        return result;
    comm->blocking = config.blocking;
    comm->team.timeout_ms = config.timeout_ms >= 0 ? config.timeout_ms : comm->env.timeout_ms;
    comm->first_timeout_ms = config.first_timeout_ms >= 0 ? config.first_timeout_ms : comm->env.timeout_first_ms;
    rd_config_over(&comm->env, &config);
    comm->on_error = rd_on_error(&config, &comm->env);
    comm->contexts = config.contexts > 0 ? config.contexts : 1;
    comm->signals = config.signals > 0 ? config.signals : RD_RMA_SIGNALS;
    unsigned number = atomic_fetch_add(&serial, 1);
    if (config.name)
        snprintf(comm->ctx.name, sizeof comm->ctx.name, "%s", config.name);
    else
        snprintf(comm->ctx.name, sizeof comm->ctx.name, "comm%u", number);
    return rd_cuda_device(config.device, &comm->team.device);
}

/* Makes the bootstrap. When all ranks have come they detect each other's death themselves, so neither the liveness nor
 * the stop word of the parent communicator is needed any more, unless the parent makes the communicator for itself. */
static rondo_result_t rendezvous(rondo_comm_t comm, const rondo_unique_id_t *id, rd_meeting_t *meeting,
                                 rondo_comm_t parent)
{
    rondo_result_t result;

    comm->health.stop.parent = parent ? &parent->health.stop : NULL;
    if (parent && comm->internal)
        rd_stop_heir(&parent->health.stop, &comm->health.stop, &comm->ctx);
    if (meeting)
        rd_liveness_meeting_begin(meeting, &comm->ctx, &comm->health.stop);
    result = rd_boot_create_by(&comm->boot, id, comm->roots > 1 ? comm->roots : 1, comm->team.rank, comm->team.nranks,
                               &comm->env, &comm->ctx, &comm->health.stop);
    if (meeting)
        rd_liveness_meeting_end(meeting);
    if (!comm->internal)
        comm->health.stop.parent = NULL;
    return result == RONDO_SUCCESS ? rd_health_check(&comm->health) : result;
}

/* The others learn this rank's reason if it failed first, else that another one failed, before they see it end. */
static void say_why(rondo_comm_t made, rondo_result_t result)
{
    rd_stop_t *stop = &made->health.stop;
    rd_failure_t failure = {.said = result,
                            .failed_rank = result != RONDO_ERR_REMOTE    ? made->team.rank
                                           : rd_stop_get(stop) == result ? atomic_load(&stop->failed_rank)
                                                                         : -1};

    snprintf(failure.text, sizeof failure.text, "the communicator cannot be made: %s", rd_thread_error());
    /* First: who hears of it by the bootstrap tells its node, and has no sentence to tell. */
    if (failure.failed_rank >= 0 && result != RONDO_ERR_MISMATCH)
        rd_conns_notify(&made->conns, made->team.rank, &failure);
    rd_boot_pass_on(made->boot, &failure);
}

static void stop_abandoned(rondo_comm_t comm)
{
    if (atomic_load(&comm->abandoned))
        rd_stop_set(&comm->health.stop, &comm->ctx, RONDO_ERR_ABORTED, comm->team.rank,
                    "rank %d called rondo_comm_abort while the communicator was being made", comm->team.rank);
}

void rd_comm_abandon(rondo_comm_t comm)
{
    pthread_mutex_lock(&making_lock);
    atomic_store(&comm->abandoned, 1);
    stop_abandoned(comm);
    pthread_mutex_unlock(&making_lock);
}

/* Sets everything to zero that an earlier attempt may have left. */
static void begin(rondo_comm_t comm, int nranks, int rank)
{
    pthread_mutex_lock(&making_lock);
    memset(&comm->ctx, 0, sizeof *comm - offsetof(struct rondo_comm, ctx));
    comm->team.rank = comm->ctx.rank = rank;
    comm->team.nranks = comm->ctx.nranks = nranks;
    comm->conns.self = &comm->conns.own;
    rd_seat_init(&comm->seat);
    rd_health_begin(&comm->health, &comm->ctx, &comm->conns.own.notice, &rd_comm_health_ops, comm);
    stop_abandoned(comm);
    pthread_mutex_unlock(&making_lock);
}

rondo_result_t rd_comm_allocate(rondo_comm_t *comm, const rd_env_t *env)
{
    rondo_comm_t made = aligned_alloc(RD_LINE, (sizeof *made + RD_LINE - 1) / RD_LINE * RD_LINE);
    rondo_result_t result;

    if (!made)
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for a communicator");
    rd_fork_register(RD_FORK_COMM, &at_fork);
    memset(made, 0, sizeof *made);
    if (env)
        made->env = *env;
    made->internal = env != NULL;
    if ((!env && (result = rd_env_read(&made->env))) || (result = rd_transport_check(&made->env, NULL))) {
        free(made);
        return result;
    }
    begin(made, 1, 0);
    atomic_store(&made->references, 1);
    atomic_store(&made->background, RONDO_IN_PROGRESS);
    atomic_store(&made->alive, rd_comm_mark | RD_COMM_MAKING);
    *comm = made;
    return RONDO_SUCCESS;
}

/* Whoever aborts the parent waits for this thread, so it is told of that to the end. */
static rondo_result_t make_modules(rondo_comm_t made, const rondo_unique_id_t *id, rd_meeting_t *meeting,
                                   rondo_comm_t parent)
{
    rondo_result_t result = rendezvous(made, id, meeting, parent);

    if (result == RONDO_SUCCESS)
        result = rd_modules_make(made);
    if (parent && made->internal) {
        rd_stop_heir(&parent->health.stop, NULL, NULL);
        made->health.stop.parent = NULL;
    }
    return result == RONDO_SUCCESS ? rd_health_check(&made->health) : result;
}

/* Other libraries open descriptors here, too. */
rondo_result_t rd_comm_build(rondo_comm_t made, int nranks, const rondo_unique_id_t *id, int rank,
                             const rondo_config_t *config, rd_meeting_t *meeting, rondo_comm_t parent)
{
    rondo_result_t result;
    fenv_t program;

    rd_fpenv_begin(&program);
    rd_fd_guard_begin();
    begin(made, nranks, rank);
    if ((result = read_config(made, config)) || (result = make_modules(made, id, meeting, parent))) {
        if (result == rd_health_check(&made->health)) /* another thread found the failure */
            rd_error_again(&made->ctx, made->health.stop.text);
        char why[RD_ERROR_BYTES]; /* kept: rd_modules_end may log what the others say of this rank */
        snprintf(why, sizeof why, "%s", rd_thread_error());
        rd_conns_failed(&made->conns); /* its program may end in order for that */
        if (made->boot)
            say_why(made, result);
        rd_stop_known(&made->health.stop, result, rank, why); /* the network must not take this for an orderly end */
        rd_modules_end(made);
        rd_thread_error_set(why);
    }
    rd_fd_guard_end();
    rd_fpenv_end(&program);
    return result;
}

void rd_comm_fail_aborted(rondo_comm_t comm)
{
    rd_health_fail(&comm->health, RONDO_ERR_ABORTED, comm->team.rank, "rank %d called rondo_comm_abort",
                   comm->team.rank);
}

void rd_comm_unbuild(rondo_comm_t comm)
{
    rd_comm_fail_aborted(comm);
    rd_comm_end_modules(comm);
}

void rd_comm_publish(rondo_comm_t comm)
{
    rd_living_add(comm);
    comm->published = !comm->internal;
    rd_hooks_post(RONDO_HOOK_COMM_MADE, comm, RONDO_SUCCESS, "");
    rd_triggers_join(comm);
    rd_status_lines_join(comm);
    rd_metrics_join(comm);
    rd_ras_tcp_join(comm);
    atomic_store(&comm->alive, rd_comm_mark);
    atomic_store(&comm->background, RONDO_SUCCESS);
}
