/* See on_error.h. */
#include "core/on_error.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/dump_wait.h"
#include "core/failed_call.h"
#include "core/lifetime.h"
#include "core/living.h"
#include "core/metrics.h"
#include "exec/cuda/cuda.h"

#define STATUS 134  /* as of a process that has aborted */
#define LOOK_MS 400 /* the watch looks each 300 ms */

static _Atomic int of_process = -1; /* as the program has said; -1: it has not */

void rd_on_error_of_process(int on_error)
{
    atomic_store(&of_process, on_error);
}

int rd_on_error(const rondo_config_t *config, const rd_env_t *env)
{
    const int said = config->on_error >= 0 ? config->on_error : atomic_load(&of_process);

    if (said >= 0)
        return said;
    return strcmp(env->on_error, "exit") == 0          ? RONDO_ON_ERROR_EXIT
           : strcmp(env->on_error, "revoke") == 0      ? RONDO_ON_ERROR_REVOKE_ALL
           : strcmp(env->on_error, "report") == 0      ? RONDO_ON_ERROR_REPORT
           : strcmp(env->on_error, "revoke-exit") == 0 ? RONDO_ON_ERROR_REVOKE_EXIT
                                                       : RONDO_ON_ERROR_RETURN;
}

void rd_on_error_set(rondo_comm_t comm, int on_error)
{
    comm->on_error = on_error;
    atomic_store(&comm->queue.reports, on_error == RONDO_ON_ERROR_REPORT);
}

/* Nothing of the program's runs any more, such as functions of atexit, which might wait for a rank that is gone. */
static void end_process(rd_log_ctx_t *ctx)
{
    rd_dump_wait();
    rd_metrics_end();
    rd_log(ctx, RD_LOG_WARN, "this process ends, with status %d (RONDO_ON_ERROR)", STATUS);
    fflush(stdout);
    _exit(STATUS);
}

/* Whoever is in a call there leaves it by himself, and it may be this thread, in a group: so nobody is waited for. */
static void revoke_one(rondo_comm_t comm, void *arg)
{
    const struct rondo_comm *failed = arg;

    if (comm == failed || !rd_comm_query_enter(comm))
        return;
    if (rd_health_check(&comm->health) == RONDO_SUCCESS)
        rd_health_fail(&comm->health, RONDO_ERR_ABORTED, comm->team.rank,
                       "rank %d has revoked all its communicators, because %s has failed: %s", comm->team.rank,
                       failed->ctx.name, failed->health.stop.text);
    if (comm->cuda)
        rd_cuda_release(comm->cuda);
    rd_comm_query_leave(comm);
}

/* What a revocation tells others at its end, as this process does not live to see the calls that other threads are in
 * leave by themselves. */
static void tell_one(rondo_comm_t comm, void *arg)
{
    bool *far = arg;

    if (!rd_comm_query_enter(comm))
        return;
    if (rd_health_check(&comm->health) != RONDO_SUCCESS)
        rd_comm_cancel(comm);
    *far |= comm->node.nnodes > 1;
    rd_comm_query_leave(comm);
}

/* Other nodes hear of it from the thread that watches over communicators, at its next look. */
static void tell_all(void)
{
    const struct timespec look = {0, LOOK_MS * 1000000};
    bool far = false;

    rd_living_each(tell_one, &far);
    if (far)
        nanosleep(&look, NULL);
}

/* Only once: communicators that are made when this one has failed are not concerned. */
void rd_on_error_act(rondo_comm_t comm)
{
    const bool ends = rd_on_error_ends(comm->on_error);
    const bool revokes = comm->on_error == RONDO_ON_ERROR_REVOKE_ALL || comm->on_error == RONDO_ON_ERROR_REVOKE_EXIT;

    if (revokes && !atomic_exchange(&comm->acted, 1)) {
        rd_living_each(revoke_one, comm);
        if (ends)
            tell_all();
    }
    if (ends)
        rd_failed_threads_say(comm);
    if (ends)
        end_process(&comm->ctx);
}

bool rd_on_error_ends(int on_error)
{
    return on_error == RONDO_ON_ERROR_EXIT || on_error == RONDO_ON_ERROR_REVOKE_EXIT;
}

void rd_on_error_unmade(int on_error)
{
    if (rd_on_error_ends(on_error))
        end_process(NULL);
}
