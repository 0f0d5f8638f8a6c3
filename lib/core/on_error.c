/* See on_error.h. */
#include "core/on_error.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/dump_wait.h"
#include "core/lifetime.h"
#include "core/living.h"
#include "exec/cuda/cuda.h"

#define STATUS 134 /* as of a process that has aborted */

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
    return strcmp(env->on_error, "exit") == 0     ? RONDO_ON_ERROR_EXIT
           : strcmp(env->on_error, "revoke") == 0 ? RONDO_ON_ERROR_REVOKE_ALL
                                                  : RONDO_ON_ERROR_RETURN;
}

/* Nothing of the program's runs any more, such as functions of atexit, which might wait for a rank that is gone. */
static void end_process(rd_log_ctx_t *ctx)
{
    rd_dump_wait();
    rd_log(ctx, RD_LOG_WARN, "this process ends, with status %d (RONDO_ON_ERROR=exit)", STATUS);
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

/* Only once: communicators that are made when this one has failed are not concerned. */
void rd_on_error_act(rondo_comm_t comm)
{
    if (comm->on_error == RONDO_ON_ERROR_EXIT)
        end_process(&comm->ctx);
    if (comm->on_error == RONDO_ON_ERROR_REVOKE_ALL && !atomic_exchange(&comm->acted, 1))
        rd_living_each(revoke_one, comm);
}

void rd_on_error_unmade(int on_error)
{
    if (on_error == RONDO_ON_ERROR_EXIT)
        end_process(NULL);
}
